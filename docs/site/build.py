"""Builds the site of these pages, with a reference of all public names: ``bin/docs``.

The pages are copied, as a site has other links than a folder of files, and built with every warning
an error: a dead link, an anchor that is not there, a name that the reference does not find.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"

#: Where a page is found, by what a person wants. A page that is missing here is an error.
NAVIGATION: Final[Mapping[str, Sequence[str]]] = {
    "Start": [
        "index",
        "tutorial",
        "features",
        "coming-from",
        "side-by-side",
        "coming-from-gearpump",
        "observe",
    ],
    "Cookbook": ["cookbook"],
    "Guides": [
        *(f"operators/{name}" for name in ("transforms", "keyed", "windows", "triggers", "late")),
        *(f"operators/{name}" for name in ("joins", "aggregates", "columns", "sources")),
        "expressions",
        *(
            "sql",
            "state",
            "values",
            "kafka",
            "postgres",
            "databases",
            "connectors",
            "testing",
            "notebook",
        ),
        *(f"spark/{name}" for name in ("index", "spark-sink", "data-source", "table-sinks")),
        *(f"spark/{name}" for name in ("window-log", "batch-twin", "session", "pipeline")),
        *("nexmark", "actor-apps"),
    ],
    "Operate": [
        *("guarantees", "exactly-once", "cluster", "stores", "spark/cluster"),
        *(f"deploy/{name}" for name in ("index", "containers", "systemd", "kubernetes")),
        *("live", "debug", "plan", "prometheus", "alerts", "metrics", "determinism"),
    ],
    "Reference": [
        "commands",
        "rest",
        "wire-protocol",
        "glossary",
        "versions",
        "SECURITY",
        "changelog",
    ],
    "Internals": ["design", "CONTRIBUTING", "deviations", "benchmarks", "scale"],
}
#: Pages of the reference of names, by the packages that names come from.
REFERENCE: Final[Mapping[str, Sequence[str]]] = {
    "Programs and runs": ["gearpy.dsl.application", "gearpy.cluster", "gearpy.config"],
    "Streams": ["gearpy.dsl.streams", "gearpy.task.api.window_result", "gearpy.task.api.sides"],
    "Windows and triggers": ["gearpy.core.window.windows", "gearpy.core.window.trigger"],
    "Aggregates": ["gearpy.core.window.aggregates", "gearpy.core.window.accumulators"],
    "Sources and sinks": ["gearpy.connectors"],
    "Tasks and state": ["gearpy.task.api", "gearpy.state", "gearpy.messages", "gearpy.wire"],
    "Graphs": ["gearpy.core.dag", "gearpy.core.flow", "gearpy.core.gearpump"],
    "Expressions": ["gearpy.expressions"],
    "Metrics": ["gearpy.metrics"],
    "Errors and ids": ["gearpy.errors", "gearpy.ids"],
}
UNSEARCHED: Final = "---\nsearch:\n  exclude: true\n---\n\n"
_LANGUAGES: Final = {".py": "python", ".toml": "toml", ".yml": "yaml", ".yaml": "yaml"}
_LINK: Final = re.compile(r"\]\(([^)#:\s]+)((?:#[^)]*)?)\)")


def main(target: Path) -> int:
    """Build the site into a folder; return the exit code."""
    pages = target / "pages"
    if target.exists() and any(target.iterdir()) and not (target / "zensical.toml").exists():
        print(f"docs: {target} has other files: name an empty folder", file=sys.stderr)
        return 1
    shutil.rmtree(target, ignore_errors=True)
    pages.mkdir(parents=True)
    (target / "zensical.toml").touch()  # It marks the folder as ours, also if this fails.
    for path in sorted(DOCS.rglob("*")):
        inside = path.relative_to(DOCS)
        if path.is_dir() or inside.parts[0] in {"changes", "site"} or "__pycache__" in inside.parts:
            continue
        place = pages / inside
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            # Whoever searches asks how to do a thing, not why or since when it is so.
            hidden = UNSEARCHED if inside.parts[0] in {"adr", "changelog.md"} else ""
            place.write_text(hidden + page_of_site(path, pages), encoding="utf-8")
        else:
            shutil.copy(path, place)
    reference = write_reference(pages / "reference")
    # The reader of docstrings knows programs below "Examples:" alone.
    for path in sorted((ROOT / "gearpy").rglob("*.py*")):
        if path.suffix in {".py", ".pyi"}:
            place = target / "source" / path.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            text = re.sub(
                r"^( +)Example:$",
                r"\1Examples:",
                path.read_text(encoding="utf-8"),
                flags=re.MULTILINE,
            )
            place.write_text(text, encoding="utf-8")
    decisions = sorted(f"adr/{path.stem}" for path in (DOCS / "adr").glob("*.md"))
    navigation: dict[str, Any] = {part: list(names) for part, names in NAVIGATION.items()}
    navigation["Reference"] += reference
    navigation["Internals"] += decisions
    named = {name for names in navigation.values() for name in names}
    there = {str(path.relative_to(pages).with_suffix("")) for path in pages.rglob("*.md")}
    if lost := sorted(each for each in named ^ there if not each.startswith("files/")):
        print(f"docs: the navigation and the pages differ: {', '.join(lost)}", file=sys.stderr)
        return 1
    lines = [
        f'  {{ "{part}" = {[f"{name}.md" for name in names]!r} }},'
        for part, names in navigation.items()
    ]
    settings = (DOCS / "site" / "zensical.toml").read_text(encoding="utf-8")
    nav = "\n".join(["[project]", "nav = [", *lines, "]"])
    if not copy_mermaid(pages / "assets" / "mermaid.min.js"):
        print("docs: npm brings no Mermaid here, so diagrams stay text", file=sys.stderr)
        settings = re.sub(
            r"^(extra_javascript|  \{ name = \"mermaid\").*$", r"# \1", settings, flags=re.MULTILINE
        )
    (target / "zensical.toml").write_text(settings.replace("[project]", nav, 1), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
    built = subprocess.run(command, cwd=target, check=False)
    if built.returncode == 0:
        size = sum(path.stat().st_size for path in (target / "html").rglob("*") if path.is_file())
        print(f"docs: {len(there)} pages, {size / 1e6:.0f} MB: {target / 'html' / 'index.html'}")
    return built.returncode


def page_of_site(path: Path, pages: Path) -> str:
    """Return a page as the site needs it; files beyond the pages that it links to become pages."""
    text = re.sub(
        r"^```(\w+) notest$", r"```\1", path.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    up = "../" * len(path.relative_to(DOCS).parent.parts)

    def link(match: re.Match[str]) -> str:
        linked = (path.parent / match[1]).resolve()
        if linked.is_relative_to(DOCS):
            if linked.is_dir():
                first = min((each.name for each in linked.glob("*.md")), default="../index.md")
                name = "index.md" if (linked / "index.md").exists() else first
                return f"]({up}{linked.relative_to(DOCS)}/{name})"
            return match[0]
        if not linked.is_file():
            return f"]({up}index.md)"
        inside = linked.relative_to(ROOT)
        page = pages / "files" / f"{inside}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        language = _LANGUAGES.get(linked.suffix, "text")
        shown = linked.read_text(encoding="utf-8")
        page.write_text(f"# {inside}\n\n````{language}\n{shown}````\n", encoding="utf-8")
        return f"]({up}files/{inside}.md)"

    return _LINK.sub(link, text)


def write_reference(folder: Path) -> list[str]:
    """Write a page for each part of the public names; return the names of the pages."""
    folder.mkdir()
    left = dict(public_names())
    pages = []
    for title, packages in REFERENCE.items():
        names = {
            name: module
            for package in packages
            for name, module in left.items()
            if f"{module}.".startswith(f"{package}.")
        }
        left = {name: module for name, module in left.items() if name not in names}
        slug = re.sub(r"\W+", "-", title.lower())
        lines = [f"# {title}", ""]
        if title == "Aggregates":
            lines += ["All of these are in `gp.agg`.", "", "::: gearpy.core.window.aggregates", ""]
        else:
            lines += [f"::: {module}.{name}\n" for name, module in names.items()]
        (folder / f"{slug}.md").write_text("\n".join(lines), encoding="utf-8")
        pages.append(f"reference/{slug}")
    for package in ("testing", "spark"):
        text = f"# gearpy.{package}\n\n"
        text += "".join(f"::: {module}.{name}\n\n" for name, module in lazy_names(package))
        (folder / f"{package}.md").write_text(text, encoding="utf-8")
        pages.append(f"reference/{package}")
    if left:
        raise SystemExit(f"docs: no page of the reference has {', '.join(sorted(left))}")
    return pages


def public_names() -> Iterator[tuple[str, str]]:
    """Yield each public name with the module that has it."""
    table = (ROOT / "gearpy" / "__init__.pyi").read_text(encoding="utf-8")
    for module, name, shown in re.findall(
        r"^from (\S+) import (\w+)(?: as (\w+))?$", table, re.MULTILINE
    ):
        if (shown or name) not in {"aggregates", "load"}:
            yield name, module


def lazy_names(package: str) -> Iterator[tuple[str, str]]:
    """Yield the public names of a package of gearpy with their modules."""
    tree = ast.parse((ROOT / "gearpy" / package / "__init__.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("gearpy."):
            yield from ((alias.name, str(node.module)) for alias in node.names)


def copy_mermaid(place: Path) -> bool:
    """Bring what draws the diagrams, as nothing is loaded from elsewhere; tell if it is there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "gearpy" / "mermaid"
    library = cache / "node_modules" / "mermaid" / "dist" / "mermaid.min.js"
    if not library.exists() and shutil.which("npm"):
        cache.mkdir(parents=True, exist_ok=True)
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(cache)]
        command = ["npm", "install", *options, "mermaid@11"]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    if not library.exists():
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(library, place)
    shutil.copy(DOCS / "site" / "diagrams.js", place.parent)
    return True


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs"))
