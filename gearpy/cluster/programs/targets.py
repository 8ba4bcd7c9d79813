"""Finds the module of a program that holds the application.

A target is ``PATH``, ``PATH:NAME`` or ``PATH:MODULE:ATTR``. For a ``.py`` file the name is an
attribute. For all others (a package folder, a folder of modules, a zip or wheel) it is a dotted
name: as much of it as is a module, then an attribute if a word is left. Modules are named from
the top, or from within the package that was given: ``shop:jobs.daily.app`` is ``app`` of
``shop.jobs.daily``.

Where there is no such path, ``MODULE`` or ``MODULE:ATTR`` is a module that the working directory or
the environment has; its file or its package is the program.

Without a name a package means its module ``app``, else ``__main__``, else the package itself; a
folder of modules means ``app.py``.
"""

import sys
from collections.abc import Collection, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final, NamedTuple

from gearpy.errors import ConfigError

_PACKAGE_ENTRIES: Final = (".app", ".__main__", "")
_INIT: Final = "/__init__.py"


class Target(NamedTuple):
    """A submitted program: a path, and up to two names behind it."""

    path: Path
    names: tuple[str, ...]


class Entry(NamedTuple):
    """The module to import, and the name of the application in it (empty: find it)."""

    module: str
    attr: str


def split_path(target: str) -> Target:
    """Split a target; a path may have colons itself, if it exists."""
    path, names = target, tuple[str, ...]()
    for _ in range(3):
        if path and Path(path).exists():
            return Target(Path(path), names)
        path, colon, name = path.rpartition(":")
        if not colon:
            break
        names = (name, *names)
    name, _, attr = target.partition(":")
    if (found := _importable(name, attr)) is not None:
        return found
    is_file = name.endswith(".py") or "/" in name
    raise ConfigError(f"no such file{'' if is_file else ' or module'}: {name}")


def _importable(name: str, attr: str) -> Target | None:
    top, *below = name.split(".")
    if not all(each.isidentifier() for each in (top, *below)):
        return None
    here = str(Path.cwd())
    spec = PathFinder.find_spec(top, [here, *sys.path])
    if spec is None or top in sys.stdlib_module_names:
        return None
    if spec.submodule_search_locations:
        folder = Path(next(iter(spec.submodule_search_locations)))
        is_package = (folder / "__init__.py").is_file()
        module = name if is_package else ".".join(below)
        return Target(_as_typed(folder), (module, attr) if attr and module else (module or attr,))
    if below or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Target(_as_typed(Path(spec.origin)), (attr,) if attr else ())


def _as_typed(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def tops_of(files: Collection[str]) -> tuple[str, ...]:
    packages = {
        name.removesuffix(_INIT) for name in files if name.count("/") == 1 and name.endswith(_INIT)
    }
    modules = {
        name.removesuffix(".py") for name in files if "/" not in name and name.endswith(".py")
    }
    return tuple(sorted(packages | modules))


def entry_of(
    files: Collection[str], names: Sequence[str], *, tops: Sequence[str], shown: str
) -> Entry:
    if len(names) == 2 and names[0]:  # noqa: PLR2004 - module and attribute
        module = _module_named(files, names[0], tops)
        if module is None:
            raise ConfigError(f"{shown} has no module {names[0]}; {_known(files, tops)}")
        return Entry(module, names[1])
    name = names[-1] if names else ""
    if not name or "." not in name:
        module = _module_named(files, name, tops) if name else None
        return Entry(module, "") if module else Entry(_default(files, tops, shown), name)
    module = _module_named(files, name, tops)
    if module is not None:
        return Entry(module, "")
    above, _, attr = name.rpartition(".")
    module = _module_named(files, above, tops)
    if module is None:
        raise ConfigError(f"{shown} has no module {above} or {name}; {_known(files, tops)}")
    return Entry(module, attr)


def _default(files: Collection[str], tops: Sequence[str], shown: str) -> str:
    if "app" in tops and "app.py" in files:
        return "app"
    if len(tops) != 1:
        raise ConfigError(
            f"{shown} has {len(tops)} packages and modules at its top: "
            f"say which: {shown}:MODULE; {_known(files, tops)}"
        )
    return next(
        f"{tops[0]}{ending}"
        for ending in _PACKAGE_ENTRIES
        if not ending or _is_module(files, f"{tops[0]}{ending}")
    )


def _module_named(files: Collection[str], name: str, tops: Sequence[str]) -> str | None:
    within = [f"{tops[0]}.{name}"] if len(tops) == 1 else []
    return next((each for each in (*within, name) if _is_module(files, each)), None)


def _is_module(files: Collection[str], name: str) -> bool:
    path = name.replace(".", "/")
    return f"{path}.py" in files or f"{path}{_INIT}" in files


def _known(files: Collection[str], tops: Sequence[str]) -> str:
    known = sorted(
        name.removesuffix(_INIT).removesuffix(".py").replace("/", ".")
        for name in files
        if name.endswith(".py") and name.partition("/")[0].removesuffix(".py") in tops
    )
    return f"it has {', '.join(known[:10])}" if known else "it has no Python modules at its top"
