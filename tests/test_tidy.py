"""Rules of this code base that ruff, mypy and import-linter cannot hold.

Each test lists what breaks its rule, so that a red run is a list of things to do.
"""

import ast
import gc
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from gearpy.config.schema import DEFAULTS

ROOT: Final = Path(__file__).parents[1]
LIBRARY: Final = ROOT / "gearpy"
TESTS: Final = ROOT / "tests"

MODULE_LINES_MAX: Final = 800
FUNCTION_LINES_MAX: Final = 60

ROOM_MODULES_MAX: Final = 15

#: Packages without input and output: each of their rooms has tests of its own.
PURE: Final = ("core", "wire")
#: Steps give streams and joins take them, so modules that streams are made of name their types.
CIRCLES_OF_TYPES: Final = {
    "stream": "asynchronous grouped joined keyed program records routes table_join windowed",
    "keyed": "joined",
}
#: Folders of tests that are not about one package.
UNMIRRORED: Final = (
    *("bench", "deploy", "docs", "examples", "parity", "servers", "sim", "system", "transcripts"),
)

#: Names that say nothing about what is inside.
BANNED_MODULES: Final = frozenset({"common", "helper", "helpers", "misc", "util", "utils"})

#: Banned in the library: name, what to use instead, and below which paths it is allowed.
BANNED: Final = (
    ("print", "logging, or return the text", ("gearpy/cli/", "gearpy/connectors/console.py")),
    (".utcnow", "datetime.now(UTC)", ()),
    *(
        (name, "gearpy.wire.values.payload or gearpy.wire.codec", ())
        for name in ("pickle", "dill", "marshal", "shelve", "jsonpickle", "yaml")
    ),
    # PySpark sends functions by it; what they need of the program is registered with it.
    ("cloudpickle", "gearpy.spark.query.shipping", ("gearpy/spark/query/shipping.py",)),
    *((name, "a program as a list of arguments", ()) for name in ("os.system", "os.popen", "pty")),
    ("eval", "a parser of what you expect", ()),
    # Source made there, of fixed words and quoted names of fields only; for rows and columns.
    ("exec", "a function", ("gearpy/task/chain/fused.py", "gearpy/core/base/fields.py")),
)


@pytest.fixture(autouse=True, scope="module")
def _no_collections() -> Iterator[None]:
    """Look for no garbage in the trees of all modules, which stay: parsing takes less time."""
    gc.disable()
    yield
    _tree.cache_clear()
    gc.enable()


def test_folders_of_tests_are_packages_or_rooms() -> None:
    stale = [
        f"{_name(folder)} has no {_name(room)}"
        for folder in sorted({path.parent for path in TESTS.rglob("test_*.py")})
        if folder != TESTS and folder.relative_to(TESTS).parts[0] not in UNMIRRORED
        if not (room := LIBRARY / folder.relative_to(TESTS)).is_dir()
    ]

    assert not stale, "\n".join(stale)


def test_every_room_of_cores_has_tests() -> None:
    untested = [
        _name(folder)
        for package in PURE
        for folder in sorted({path.parent for path in _modules(LIBRARY / package)})
        if not any((TESTS / folder.relative_to(LIBRARY)).rglob("test_*.py"))
    ]

    assert not untested, "\n".join(untested)


def test_rooms_are_not_crowded() -> None:
    """A listing of a folder tells what it is made of; too long a one tells nothing."""
    crowded = [
        f"{_name(folder)} has {len(modules)} modules, at most {ROOM_MODULES_MAX}: make rooms in it"
        for folder in sorted({path.parent for path in _modules(LIBRARY)})
        if len(modules := [path for path in folder.glob("*.py") if path.name != "__init__.py"])
        > ROOM_MODULES_MAX
    ]

    assert not crowded, "\n".join(crowded)


def test_modules_are_short() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in _everything()}

    too_long = [
        f"{_name(path)}: {lines} lines, at most {MODULE_LINES_MAX}: split what changes apart"
        for path, lines in lengths.items()
        if lines > MODULE_LINES_MAX
    ]

    assert not too_long, "\n".join(too_long)


def test_functions_are_short() -> None:
    too_long = [
        f"{_name(path)}:{function.lineno}: {function.name} has {lines} lines of code, "
        f"at most {FUNCTION_LINES_MAX}"
        for path in _everything()
        for function in _functions(path)
        if (lines := _code_lines(function, path)) > FUNCTION_LINES_MAX
    ]

    assert not too_long, "\n".join(too_long)


def test_no_circle_of_imports_is_hidden_behind_types() -> None:
    """Import contracts leave out imports for type checkers; a reader meets those circles, too."""
    imports = {_dotted_name(path): _imports_of(path) for path in _modules(LIBRARY)}
    known = {
        (f"gearpy.dsl.streams.{below}", f"gearpy.dsl.streams.{named}")
        for named, belows in CIRCLES_OF_TYPES.items()
        for below in belows.split()
    }
    waiting = {
        module: {
            other
            for other in others
            if other in imports and other != module and (module, other) not in known
        }
        for module, others in imports.items()
    }
    assert all(other in imports[module] for module, other in known), "one is no circle any more"
    while done := {module for module, others in waiting.items() if not others & waiting.keys()}:
        waiting = {module: others for module, others in waiting.items() if module not in done}

    assert not waiting, "in a circle, or above one:\n" + "\n".join(sorted(waiting))


def test_every_package_has_a_map() -> None:
    """A package names its rooms; of a module its own first line tells, in one place."""
    incomplete = [
        f"{_name(package)} has a docstring that does not name `{name}`"
        for package in _modules(LIBRARY)
        if package.name == "__init__.py" and package.parent != LIBRARY
        for name in sorted(path.parent.name for path in package.parent.glob("*/__init__.py"))
        if f"`{name}`" not in (ast.get_docstring(_tree(package)) or "")
    ]

    assert not incomplete, "\n".join(incomplete)


def test_every_folder_with_modules_is_a_package_with_a_docstring() -> None:
    folders = {path.parent for path in _modules(LIBRARY)}

    lacking = [
        _name(folder)
        for folder in sorted(folders)
        if not (init := folder / "__init__.py").exists() or not ast.get_docstring(_tree(init))
    ]

    assert not lacking, "\n".join(lacking)


def test_no_two_public_classes_share_a_name() -> None:
    homes = defaultdict[str, list[str]](list)
    for path in _modules(LIBRARY):
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(_name(path))

    doubled = [f"{name}: {', '.join(paths)}" for name, paths in homes.items() if len(paths) > 1]

    assert not doubled, "\n".join(doubled)


def test_no_module_is_named_after_nothing() -> None:
    nameless = [
        _name(path)
        for path in _everything()
        if {*path.relative_to(ROOT).parts[:-1], path.stem} & BANNED_MODULES
    ]

    assert not nameless, "\n".join(nameless)


def test_banned_names_are_not_used() -> None:
    last_words = "|".join(banned.rpartition(".")[2] for banned, _, _ in BANNED)
    used = [
        f"{_name(path)}:{line}: banned: {banned}, use {instead}"
        for path in _with_word(LIBRARY, last_words)
        for name, line in _used_names(_tree(path))
        for banned, instead, allowed in BANNED
        if name == banned or name.startswith(f"{banned}.")
        if not _name(path).startswith(allowed)
    ]

    assert not used, "\n".join(used)


def test_no_shell_reads_what_is_started() -> None:
    shells = [
        f"{_name(path)}:{node.lineno}"
        for path in _with_word(LIBRARY, "shell")
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call)
        and any(
            keyword.arg == "shell"
            and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
            for keyword in node.keywords
        )
    ]

    assert not shells, "\n".join(shells)


def test_tests_do_not_sleep() -> None:
    """A test that sleeps is slow on a fast machine and red on a slow one; wait for the event."""
    sleepers = [
        f"{_name(path)}:{line}"
        for path in _with_word(TESTS, "sleep")
        if not _name(path).startswith(("tests/bench/", "tests/servers/", "tests/system/"))
        for name, line in _used_names(_tree(path))
        if name == "time.sleep"
    ]

    assert not sleepers, "\n".join(sleepers)


def _modules(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def _with_word(folder: Path, words: str) -> list[Path]:
    """Return the modules with one of these words, or more: most need not be looked at."""
    found = re.compile(rf"\b({words})\b")
    return [path for path in _modules(folder) if found.search("\n".join(_lines(path)))]


def _dotted_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports_of(path: Path) -> set[str]:
    """Return all modules in the imports of a module, also of those inside functions."""
    found = set[str]()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner | ({node.module} if _is_module(node.module) else set())
    return found


def _is_module(dotted: str) -> bool:
    return (ROOT / Path(*dotted.split("."))).with_suffix(".py").exists()


def _everything() -> list[Path]:
    return _modules(LIBRARY) + _modules(TESTS)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return every function, also in classes and in other functions; none is in an expression."""
    waiting: list[ast.AST] = [_tree(path)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        # Most nodes are expressions: not to go there is what makes this quick.
        waiting += (each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr))


def _code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef, path: Path) -> int:
    """Count the lines of a body without its docstring, blank lines and comments."""
    if (function.end_lineno or 0) - function.body[0].lineno < FUNCTION_LINES_MAX:
        return 0  # Short, whatever its lines hold.
    body = function.body[ast.get_docstring(function) is not None :]
    if not body:
        return 0
    lines = _lines(path)[body[0].lineno - 1 : function.end_lineno]
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in lines)


def _used_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Return every dotted name that is imported or read, and ``.attribute`` of every attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield _dotted(node), node.lineno
            yield f".{node.attr}", node.lineno


def _dotted(node: ast.expr) -> str:
    """Return ``a.b.c``, or what comes behind a call or the like, with a dot before it."""
    names = list[str]()
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    names.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(names))


def test_every_key_of_the_configuration_is_used() -> None:
    sources = [path for path in _modules(LIBRARY) if "config" not in path.parts]
    read = {
        name
        for path in sources
        for name in re.findall(r"\.(\w+)", path.read_text(encoding="utf-8"))
    }

    unread = [f"{section}{field}" for section, field in _config_fields() if field not in read]

    assert not unread, unread


def _config_fields() -> Iterator[tuple[str, str]]:
    for field in msgspec.structs.fields(DEFAULTS):
        value: Any = getattr(DEFAULTS, field.name)
        if isinstance(value, msgspec.Struct):
            yield from ((f"{field.name}.", inner.name) for inner in msgspec.structs.fields(value))
        else:
            yield "", field.name
