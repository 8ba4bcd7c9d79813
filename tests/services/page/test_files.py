"""The files of the page, without a browser: complete, small, and within the security policy."""

import hashlib
import re
from pathlib import Path
from typing import Final

import pytest

import gearpy

pytestmark = pytest.mark.smoke

PAGE: Final = Path(gearpy.__file__).parent / "services" / "page"
VENDOR: Final = PAGE / "vendor"
BYTES_MAX: Final = 400_000
#: Scripts that `index.html` starts by themselves.
STARTED: Final = frozenset({"app/early.js", "app/main.js"})
_IMPORT: Final = re.compile(r'(?:from|import) ?"(\.[^"]+)"')


def _name(path: Path) -> str:
    return path.relative_to(PAGE).as_posix()


def _scripts() -> dict[str, str]:
    return {_name(path): path.read_text("utf-8") for path in sorted(PAGE.rglob("*.js"))}


def test_the_index_names_all_modules_so_that_they_load_side_by_side() -> None:
    """Otherwise each level of imports waits for the one before."""
    index = (PAGE / "index.html").read_text("utf-8")

    named = re.findall(r'<link rel="modulepreload" href="([^"]+)">', index)

    assert sorted(named) == sorted(set(_scripts()) - STARTED)


def test_imports_name_files_that_are_there() -> None:
    missing = [
        f"{name} imports {target}"
        for name, text in _scripts().items()
        for target in _IMPORT.findall(text)
        if not (PAGE / name).parent.joinpath(target).is_file()
    ]

    assert not missing


def test_every_module_is_imported_or_started() -> None:
    imported = {
        _name((PAGE / name).parent.joinpath(target).resolve())
        for name, text in _scripts().items()
        for target in _IMPORT.findall(text)
    }

    assert set(_scripts()) - imported - STARTED == set()


def test_nothing_needs_an_exception_of_the_security_policy() -> None:
    """`default-src 'self'`: no script or style within HTML, no code from text, no other host."""
    index = (PAGE / "index.html").read_text("utf-8")
    own = {name: text for name, text in _scripts().items() if not name.startswith("vendor/")}

    assert not re.search(r"<style|\sstyle=|\son\w+=|<script>", index)
    for name, text in own.items():
        assert not re.search(r"\beval\(|new Function|https?://|style=\"|setAttribute", text), name
        assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write", text), name
    for path in PAGE.rglob("*.css"):
        assert "url(" not in path.read_text("utf-8"), path.name


def test_all_of_it_is_small() -> None:
    """500 kB may be transferred in all, the first answers of the API among them."""
    served = [path for path in PAGE.rglob("*") if path.suffix in {".js", ".css", ".html", ".svg"}]

    assert sum(path.stat().st_size for path in served) <= BYTES_MAX


def test_libraries_are_those_that_their_page_names() -> None:
    readme = (VENDOR / "README.md").read_text("utf-8")
    named = dict(re.findall(r"^\| `([\w.]+)` \|.*`([0-9a-f]{64})` \|$", readme, re.MULTILINE))

    there = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.iterdir()
        if path.suffix in {".css", ".js"}
    }

    assert named == there
    assert (VENDOR / "LICENSES.txt").read_text("utf-8").count("=====\n") == len(
        ("preact", "htm", "uplot", "dagre", "graphlib")
    )
