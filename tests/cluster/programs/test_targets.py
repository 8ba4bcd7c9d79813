"""Which module and attribute the words behind a path mean."""

import time
from pathlib import Path
from typing import Final

import pytest

from gearpy.cluster.programs.targets import Entry, entry_of, split_path, tops_of
from gearpy.errors import ConfigError

SHOP: Final = (
    "shop/__init__.py",
    "shop/app.py",
    "shop/jobs/__init__.py",
    "shop/jobs/daily.py",
    "shop/data.csv",
)


def entry(files: tuple[str, ...], *names: str) -> Entry:
    return entry_of(files, names, tops=tops_of(files), shown="shop")


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ((), ("shop.app", "")),
        (("make",), ("shop.app", "make")),
        (("app",), ("shop.app", "")),
        (("jobs",), ("shop.jobs", "")),
        (("jobs.daily",), ("shop.jobs.daily", "")),
        (("shop.jobs.daily",), ("shop.jobs.daily", "")),
        (("jobs.daily.make",), ("shop.jobs.daily", "make")),
        (("shop.jobs.make",), ("shop.jobs", "make")),
        (("jobs.daily", "make"), ("shop.jobs.daily", "make")),
        (("shop.app", "make"), ("shop.app", "make")),
        (("", "make"), ("shop.app", "make")),
    ],
)
def test_a_name_is_as_much_of_a_module_as_there_is(
    names: tuple[str, ...], found: tuple[str, str]
) -> None:
    assert entry(SHOP, *names) == found


@pytest.mark.parametrize(
    ("files", "module"),
    [
        (("shop/__init__.py", "shop/__main__.py"), "shop.__main__"),
        (("shop/__init__.py",), "shop"),
        (("shop/__init__.py", "shop/app/__init__.py"), "shop.app"),
        (("app.py", "helper.py", "data/x.csv"), "app"),
        (("jobs.py", "data/x.csv"), "jobs"),
        (("app.py", "shop/__init__.py"), "app"),
    ],
)
def test_without_a_name_it_is_the_usual_one(files: tuple[str, ...], module: str) -> None:
    """`app.py`, then `__main__.py`, then the package itself."""
    assert entry(files) == (module, "")


@pytest.mark.parametrize(
    ("files", "names", "message"),
    [
        (("a.py", "b.py"), (), r"shop has 2 packages and modules at its top: .* it has a, b$"),
        (("data.csv",), (), "shop has 0 packages .* no Python modules at its top"),
        (("plain/a.py",), (), "shop has 0 packages"),
        (SHOP, ("weekly.app",), "shop has no module weekly or weekly.app; it has shop, shop.app"),
        (SHOP, ("weekly", "app"), "shop has no module weekly; it has shop"),
        (SHOP, ("jobs.daily.make.more",), "has no module jobs.daily.make or"),
    ],
)
def test_what_is_not_clear_is_asked(
    files: tuple[str, ...], names: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        entry(files, *names)


def test_very_many_files_are_looked_at_once() -> None:
    files = [f"f{number}/x.py" for number in range(200_000)]
    begun = time.process_time()

    assert tops_of([*files, "shop/__init__.py", "one.py", "deep/er/__init__.py"]) == ("one", "shop")

    assert time.process_time() - begun < 10


def test_a_path_may_have_colons_itself(tmp_path: Path) -> None:
    odd = tmp_path / "a:b"
    odd.mkdir()

    assert split_path(f"{odd}") == (odd, ())
    assert split_path(f"{odd}:c") == (odd, ("c",))
    assert split_path(f"{odd}:c.d:e") == (odd, ("c.d", "e"))


@pytest.mark.parametrize("target", ["nowhere.py", "nowhere.py:app", "nowhere.py:a:b:c", ":app", ""])
def test_a_path_that_is_not_there_is_named(target: str) -> None:
    with pytest.raises(ConfigError, match=r"^no such file( or module)?: (nowhere\.py)?$"):
        split_path(target)


@pytest.mark.parametrize(
    ("target", "path", "names"),
    [
        ("jobs:daily", "jobs.py", ("daily",)),
        ("jobs", "jobs.py", ()),
        ("store.jobs.daily:make", "store", ("store.jobs.daily", "make")),
        ("store.jobs.daily", "store", ("store.jobs.daily",)),
        ("bare.daily:make", "bare", ("daily", "make")),
    ],
)
def test_a_module_of_the_working_directory_is_a_program(
    target: str, path: str, names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file, or the whole package; nothing is imported to find it."""
    for name in ("jobs.py", "store/__init__.py", "store/jobs/daily.py", "bare/daily.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("raise RuntimeError")
    monkeypatch.chdir(tmp_path)
    for taken in ("store", "bare"):  # Else the folder of that name is meant.
        assert split_path(f"{taken}:daily").path == Path(taken)

    assert split_path(target) == (Path(path), names)


def test_a_module_that_is_installed_is_a_program() -> None:
    assert split_path("hypothesis.strategies:integers").path.name == "hypothesis"
    for name in ("os:app", "sys", "no_such_module:app", "jobs-1:app", "json.tool"):
        with pytest.raises(ConfigError, match="no such file or module"):
            split_path(name)
