"""ProgramFiles: finds the definitions in a program's files that some of its code comes from.

A definition is a statement at the top of a file: a function, a class, a value, an import. It uses
those whose names are in it, in its file and in files that it imports from. A module that is
imported as a whole counts as a whole, and code that finds more by itself, such as `eval`, uses all
files. Only text is read: comments and places of lines do not count, and nothing is called.
"""

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from types import CodeType
from typing import Final, NamedTuple, TypeAlias

from gearpy.wire.values.class_names import without_package

#: Code that uses one of these names may find more than what it names.
_FINDERS: Final = re.compile(
    "eval|exec|globals|vars|locals|inspect|importlib|import_module|pkgutil|runpy|modules|"
    "get_objects|__(import|builtins|globals|file|path|spec)__"
)
#: Results do not depend on what is set there.
_HARMLESS: Final = frozenset({"gearpy", "logging", "warnings"})
_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Definition(NamedTuple):
    """A part of a file; ``title`` is for people."""

    path: Path
    node: ast.AST
    title: str


class ProgramFiles:
    """The files of a program as it was uploaded.

    Its methods raise `OSError`, `SyntaxError` or `UnicodeDecodeError` if a file cannot be read.
    """

    def __init__(self, folder: str) -> None:
        self._modules: dict[str, Path] = {}
        self._trees: dict[Path, ast.Module] = {}
        self._bindings: dict[Path, dict[str, list[Definition]]] = {}
        self._root = Path(folder).resolve()  # Code names its files so.
        for path in sorted(self._root.rglob("*.py")) if folder else ():
            *above, file = path.relative_to(self._root).parts
            stem = file.removesuffix(".py").replace(".", "_")
            self._modules[".".join([*above, stem] if stem != "__init__" else above)] = path

    def of_function(self, code: CodeType, title: str) -> list[Definition]:
        """Return the definitions of a function; none if it is of none of these files.

        Of functions without names that begin in one line it is the one around its code, if Python
        tells columns.
        """
        path = Path(code.co_filename)
        if path not in self._modules.values():
            return []
        found: list[ast.AST] = [
            each
            for each in ast.walk(self._tree(path))
            if isinstance(each, _Function)
            and code.co_firstlineno
            == min(one.lineno for one in [each, *getattr(each, "decorator_list", ())])
        ]
        around = [each for each in found if _is_around(each, code)]
        return [Definition(path, each, title) for each in around or found or [self._tree(path)]]

    def of_module(self, name: str, qualified: str = "") -> list[Definition]:
        """Return a class of a module, or all of the module; nothing if it is not of these files."""
        path = self._modules.get(without_package(name))
        if path is None:
            return []
        return self._bound(path, qualified.partition(".")[0]) or [self._whole(path)]

    def reached(self, first: Iterable[Definition]) -> list[Definition]:
        """Return some definitions and all that they use, in the order in which they are found."""
        pending = [*dict.fromkeys(first)]
        known = set(pending)
        for each in pending:
            new = [used for used in dict.fromkeys(self._used(each)) if used not in known]
            known.update(new)
            pending += new
        return pending

    @cached_property
    def settings(self) -> list[Definition]:
        """The statements that set something for all code of the program: ``random.seed(1)``.

        They do something to a thing that was imported, or that comes from that; in a function only
        if it is given to nobody, as functions of steps are.
        """
        found: list[Definition] = []
        for path, tree in ((each, self._tree(each)) for each in self._modules.values()):
            known = {name for each in tree.body for name in _bound_by(each)} | {*dir(builtins)}
            nodes = [*ast.walk(tree)]
            calls = {id(each.func) for each in nodes if isinstance(each, ast.Call)}
            given = {
                each.id for each in nodes if isinstance(each, ast.Name) and id(each) not in calls
            }
            for top in tree.body:
                is_of_steps = isinstance(top, ast.ClassDef) or getattr(top, "name", "") in given
                outer = _imported_names(nodes, aliases=not is_of_steps)
                for each in ast.walk(top):
                    if outer.isdisjoint(_changed_by(each)):
                        continue
                    names = {one.id for one in ast.walk(each) if isinstance(one, ast.Name)}
                    node = each if names <= known else top
                    found.append(Definition(path, node, "what is set for the whole program"))
        return self.reached(found)

    @cached_property
    def _all_files(self) -> list[Definition]:
        """All modules, and data beside them, which code may read that knows its folder."""
        data = [
            each
            for each in sorted(self._root.rglob("*"))
            if each.suffix not in {".py", ".pyc"} and each.is_file()
        ]
        return [
            *map(self._whole, self._modules.values()),
            *(
                Definition(each, ast.Constant(sha256(each.read_bytes()).digest()), each.name)
                for each in data
            ),
        ]

    def _tree(self, path: Path) -> ast.Module:
        if path not in self._trees:
            tree = self._trees[path] = ast.parse(path.read_bytes())
            body = list[ast.stmt]()
            for each in tree.body:
                if isinstance(each, ast.ImportFrom):  # One name each.
                    body += [ast.ImportFrom(each.module, [one], each.level) for one in each.names]
                else:
                    body.append(each)
            tree.body = body
        return self._trees[path]

    def _whole(self, path: Path) -> Definition:
        return Definition(path, self._tree(path), path.name)

    def _bound(self, path: Path, name: str) -> list[Definition]:
        if path not in self._bindings:
            found = self._bindings[path] = defaultdict(list)
            for each in self._tree(path).body:
                for one in dict.fromkeys(_bound_by(each)):
                    found[one].append(Definition(path, each, one))
        return [*self._bindings[path].get(name, ()), *self._bindings[path].get("*", ())]

    def _used(self, definition: Definition) -> Iterator[Definition]:
        path, node, _ = definition
        for each in ast.walk(node):
            names: list[str] = []
            match each:
                case ast.Name(id=name):
                    names = [name]
                    yield from self._bound(path, name)
                case ast.Constant(value=str(name)) if name[:1].isupper():  # A class, in a type.
                    yield from self._bound(path, name)
                case ast.Attribute(attr=name):
                    names = [name]
                case ast.Import() | ast.ImportFrom():
                    names = [part for one in each.names for part in one.name.split(".")]
                    yield from self._imported(path, each)
            if any(map(_FINDERS.fullmatch, names)):
                yield from self._all_files

    def _imported(self, path: Path, node: ast.Import | ast.ImportFrom) -> Iterator[Definition]:
        start = ""
        if isinstance(node, ast.ImportFrom):
            own = next(name for name, each in self._modules.items() if each == path).split(".")
            is_package = path.name == "__init__.py"
            base = own[: len(own) + is_package - node.level] if node.level else []
            start = ".".join([*base, *filter(None, [node.module])])
        for alias in node.names:
            full = f"{start}.{alias.name}" if start else alias.name
            ends = [full[:at] for at, each in enumerate(f"{full}.") if each == "."]
            inner = [self._modules[each] for each in ends if each in self._modules]
            if start in self._modules and full not in self._modules:
                outer = self._modules[start]
                yield from self._bound(outer, alias.name) or [self._whole(outer)]
            else:
                yield from map(self._whole, inner)


def difference(old: Sequence[Definition], new: Sequence[Definition]) -> str:
    for one, other in zip_longest(old, new):
        if one is not None and other is not None and ast.dump(one.node) == ast.dump(other.node):
            continue
        if one is not None and other is not None:
            for was, now in zip(ast.walk(one.node), ast.walk(other.node), strict=False):
                if isinstance(was, ast.Constant) and ast.dump(was) != ast.dump(now):
                    if was is one.node:
                        return f"file {other.title} is another one"
                    after = now.value if isinstance(now, ast.Constant) else now
                    return f"in {other.title}, {was.value!r:.80} has become {after!r:.80}"
        return f"in {(other or one).title}, the code is another one"
    return ""


def _is_around(node: ast.AST, code: CodeType) -> bool:
    if not isinstance(node, ast.Lambda):
        return False
    begin, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    return all(
        begin <= (line, column) and (end_line, end_column) <= end
        for line, end_line, column, end_column in code.co_positions()
        if column is not None and (line, column) != (end_line, end_column)
    )


def _bound_by(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from ((each.asname or each.name).partition(".")[0] for each in names)
        case _:
            for each in ast.walk(statement):
                yield from _changed_by(each)
                match each:
                    case ast.Name(id=name, ctx=ast.Store()):
                        yield name
                    case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                        yield name


def _changed_by(node: ast.AST) -> Iterator[str]:
    """Yield the names whose values a statement may change: of what it calls, or sets a part of."""
    targets: Sequence[ast.expr] = ()
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(), args=args)):
            targets = [node.value, *args]
        case ast.Expr(value=ast.Call()):
            targets = [node.value]
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            targets = [each for each in targets if not isinstance(each, ast.Name)]
        case ast.AugAssign(target=ast.Attribute() | ast.Subscript() as target):
            targets = [target]
    yield from map(_leftmost, targets)


def _leftmost(node: ast.AST) -> str:
    while not isinstance(node, ast.Name):
        match node:
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Await(value=inner):
                node = inner
            case ast.Call(func=inner):
                node = inner
            case _:
                return ""
    return node.id


def _imported_names(nodes: Iterable[ast.AST], *, aliases: bool = False) -> set[str]:
    names: set[str] = set()
    for each in nodes:
        if isinstance(each, ast.Import | ast.ImportFrom):
            module = getattr(each, "module", None)
            names |= {
                (one.asname or one.name).partition(".")[0]
                for one in each.names
                if (module or one.name).partition(".")[0] not in _HARMLESS
            }
        elif aliases and isinstance(each, ast.Assign) and _leftmost(each.value) in names:
            names |= {one.id for one in each.targets if isinstance(one, ast.Name)}
    return names
