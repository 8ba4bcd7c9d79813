"""Finds the statements of a program that set something for all of its code, as it is loaded.

Steps of two versions that are alike do not do the same if one version says
``decimal.getcontext().prec = 10`` and the other does not, as no step names it. Such a statement
calls, sets or deletes something of an imported module, and its result is not used. What is looked
at is code that runs when the program is loaded, or may: of modules and classes, of ``main``, and of
what they call by its name.
"""

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

_Scope: TypeAlias = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES: Final = (*_FUNCTIONS, ast.ClassDef, ast.Lambda)
#: Results do not depend on what is set there.
_HARMLESS: Final = frozenset({"gearpy", "logging", "warnings", "print"})
_MAIN: Final = "main"
#: Methods of sources and sinks that are asked when a program is made.
_ASKED: Final = frozenset({"partitions", "schema", "description"})


def setup_of(folder: Path) -> dict[str, list[str]]:
    """Return the settings that the modules of a program make, by file; see `setup_code`.

    Raises:
        OSError: a file cannot be read.
        SyntaxError, UnicodeDecodeError: it is no Python.
    """
    files = sorted(folder.rglob("*.py"))
    return {str(each.relative_to(folder)): setup_code(each.read_text("utf-8")) for each in files}


def setup_code(source: str) -> list[str]:
    """Return the statements by which a module sets something for others, without places of lines.

    A statement that depends on more than the module itself says is told with all of the module.

    Raises:
        SyntaxError: it is no Python.
    """
    module = ast.parse(source)
    imported = _imported(module)
    assigned = _assigned(module)
    reaching = _reaching(imported, assigned)
    found: list[str] = []
    for scope in _run_at_load(module):
        for statement in scope.body:
            if not any(_root(each) in reaching for each in _statements(statement)):
                continue
            found.append(ast.dump(statement))
            needed = _slice(statement, module, imported, assigned)
            found += [ast.dump(module)] if needed is None else map(ast.dump, needed)
    return found


def _imported(module: ast.Module) -> frozenset[str]:
    names: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names |= {(each.asname or each.name).partition(".")[0] for each in node.names}
            names -= {each.asname or "" for each in node.names if _is_harmless(each.name)}
        elif isinstance(node, ast.ImportFrom) and not _is_harmless(node.module or ""):
            names |= {each.asname or each.name for each in node.names}
    return frozenset(names) - _HARMLESS


def _is_harmless(module: str) -> bool:
    return module.partition(".")[0] in _HARMLESS


def _assigned(module: ast.Module) -> dict[str, list[ast.stmt]]:
    """Return the statements that give names their values, in the whole module."""
    assigned: dict[str, list[ast.stmt]] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.With):
            stored = (
                each.id
                for each in ast.walk(node)
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            )
            for name in stored:
                assigned.setdefault(name, []).append(node)
    return assigned


def _run_at_load(module: ast.Module) -> list[_Scope]:
    """Return the scopes whose statements may run when the module is loaded, or a program is made.

    A program is made by ``main``, or by a function that nothing else in the module names.
    """
    scopes: dict[str, list[_Scope]] = {}
    for node in ast.walk(module):
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            scopes.setdefault(node.name, []).append(node)
    named = {each.id for each in ast.walk(module) if isinstance(each, ast.Name)}
    makers = [
        each
        for each in module.body
        if isinstance(each, _FUNCTIONS) and (each.name == _MAIN or each.name not in named)
    ]
    found: list[_Scope] = []
    pending: list[_Scope] = [module, *makers]
    while pending:
        scope = pending.pop()
        if scope not in found:
            found.append(scope)
            pending += [each for name in _called(scope) for each in scopes.get(name, ())]
    return found


def _called(scope: _Scope) -> Iterator[str]:
    """Yield the names that a scope calls, or that decorate something in it.

    Of a class these are what is called when one is made, or asked about when a program is made.
    """
    for statement in scope.body:
        if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
            for each in statement.decorator_list:
                yield from (node.id for node in ast.walk(each) if isinstance(node, ast.Name))
            if isinstance(statement, ast.ClassDef) or _is_asked(statement, scope):
                yield statement.name
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                yield from _of_own(node.func)


def _is_asked(method: ast.FunctionDef | ast.AsyncFunctionDef, scope: _Scope) -> bool:
    if not isinstance(scope, ast.ClassDef):
        return False
    is_special = method.name.startswith("__") or method.name in _ASKED
    return is_special or bool(method.decorator_list)


def _of_own(called: ast.expr) -> Iterator[str]:
    """Yield the name of a function, or of a method of the same object."""
    match called:
        case ast.Name(id=name):
            yield name
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            yield name


def _statements(statement: ast.AST) -> Iterator[ast.stmt]:
    """Yield a statement and those in it, but not those of functions in it."""
    if isinstance(statement, _SCOPES):
        return
    if isinstance(statement, ast.stmt):
        yield statement
    for each in ast.iter_child_nodes(statement):
        if not isinstance(each, ast.expr):
            yield from _statements(each)


def _root(statement: ast.stmt) -> str:
    """Return the name that a statement does something to; empty if it has a use of its own."""
    if isinstance(statement, ast.Expr):
        return _leftmost(statement.value) if isinstance(statement.value, ast.Call) else ""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign | ast.Delete):
        targets = statement.targets
    elif isinstance(statement, ast.AugAssign | ast.AnnAssign):
        targets = [statement.target]
    for target in targets:
        if isinstance(target, ast.Attribute | ast.Subscript):
            return _leftmost(target)
    return ""


def _leftmost(node: ast.expr) -> str:
    while not isinstance(node, ast.Name):
        match node:
            case ast.Attribute() | ast.Subscript() | ast.Await():
                node = node.value
            case ast.Call():
                node = node.func
            case _:
                return ""
    return node.id


def _reaching(imported: frozenset[str], assigned: dict[str, list[ast.stmt]]) -> frozenset[str]:
    """Return the names of what is imported, and of what comes from that."""
    names = set(imported)
    while True:
        more = {
            name
            for name, statements in assigned.items()
            if name not in names
            and any(
                isinstance(each, ast.Assign | ast.AnnAssign)
                and each.value is not None
                and _leftmost(each.value) in names
                for each in statements
            )
        }
        if not more:
            return frozenset(names)
        names |= more


def _slice(
    statement: ast.stmt,
    module: ast.Module,
    imported: frozenset[str],
    assigned: dict[str, list[ast.stmt]],
) -> list[ast.stmt] | None:
    """Return the statements that give the names in one their values; None if others do, too."""
    given = {each.arg for each in ast.walk(module) if isinstance(each, ast.arg)}
    needed: list[ast.stmt] = []
    known = set(imported)
    pending: list[ast.stmt] = [statement]
    while pending:
        for node in ast.walk(pending.pop()):
            if not isinstance(node, ast.Name) or node.id in known:
                continue
            known.add(node.id)
            if node.id in given or (node.id not in assigned and not hasattr(builtins, node.id)):
                return None
            needed += assigned.get(node.id, ())
            pending += assigned.get(node.id, ())
    return needed
