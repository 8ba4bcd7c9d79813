"""Compares what two versions of a program would do, step by step, as both are loaded here.

Two functions are alike if their code is, and all that it reaches: constants, defaults, closures,
and the globals that it names, through functions, classes, objects and modules. Where lines are in a
file does not count. Whatever cannot be looked into counts as different, as code that finds more by
itself does, such as `eval`: a mistake must not leave old code running.

What comes from Python or from installed packages is the same object for both versions.
"""

import builtins
import dis
import logging
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import (
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final, NewType, ParamSpec, TypeAlias, TypeVar

from gearpy.wire.values.class_names import without_package

_ATOMS: Final = frozenset(
    {int, bool, float, complex, str, bytes, type(None), type(...), type(NotImplemented)}
)
_BASES: Final = (int, float, complex, str, bytes)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


#: Code that uses one of these names may find more than what it names.
_FINDERS: Final = _words("""
    eval exec globals __import__ __builtins__ __globals__ __file__ __path__ __spec__ __loader__
    importlib import_module inspect pkgutil runpy pickle cloudpickle dill modules get_objects
    _getframe f_globals f_lineno co_firstlineno tb_lineno
""")
_OF_CODE: Final = _words("""
    co_code co_names co_varnames co_freevars co_cellvars co_argcount co_posonlyargcount
    co_kwonlyargcount co_flags co_name co_qualname co_exceptiontable
""")
#: Attributes of a class that follow from others, or say where it is.
_NOT_OF_CLASS: Final = _words("""
    __dict__ __weakref__ __module__ __firstlineno__ __static_attributes__ _abc_impl
    __pydantic_core_schema__ __pydantic_validator__ __pydantic_serializer__
""")
_NOT_OF_MODULE: Final = _words(
    "__builtins__ __cached__ __file__ __loader__ __package__ __path__ __spec__"
)
#: Parts of what pickle knows by name only.
_PARTS_OF_NAMED: Final = _words(
    "__wrapped__ __bound__ __constraints__ __covariant__ __contravariant__ __supertype__"
)
_NOTHING: Final = object()
_PAIRS_MAX: Final = 300_000
_Pair: TypeAlias = tuple[Any, Any]


def difference(old: object, new: object, *, but: frozenset[str] = frozenset()) -> str:
    """Return the difference as text for people; empty if both do the same.

    Nothing of it is called but what pickle would call.

    Args:
        old: an object of one version.
        new: that of the other one.
        but: attributes of gearpy's own objects that are not looked at.

    Example:
        >>> def adds(number): return lambda other: other + number
        >>> difference(adds(1), adds(1))
        ''
        >>> difference(adds(1), adds(2))
        'in adds.<locals>.<lambda>, 1 has become 2'
    """
    try:
        return _Comparison(but).run(old, new)
    except Exception as error:  # noqa: BLE001 - of user code: then nothing is known
        return f"it cannot be compared: {type(error).__name__}: {error}"


class _DifferentError(Exception):
    """Two things are not alike."""


class _Comparison:
    """One walk through both; pairs that were met are alike unless something else is not.

    Invariant: an object of one side that can change belongs to one of the other side.
    """

    def __init__(self, but: frozenset[str]) -> None:
        self._but = but
        self._pending: list[tuple[str, Any, Any]] = []
        self._seen: set[tuple[int, int]] = set()
        self._new_of: dict[int, int] = {}
        self._old_of: dict[int, int] = {}
        self._alive: list[Any] = []  # So that no id is given twice.
        self._where = "the step"
        self._moved = ""  # The first class that is of another module; more may be different.

    def run(self, old: object, new: object) -> str:
        self._push([(old, new)])
        for _ in range(_PAIRS_MAX):
            if not self._pending:
                return self._moved
            self._where, one, other = self._pending.pop()
            try:
                self._compare(one, other)
            except _DifferentError as found:
                return "; ".join(filter(None, (f"in {self._where}, {found}", self._moved)))
        return "there is too much to compare"

    def _push(self, pairs: Iterable[_Pair], where: str = "") -> None:
        self._pending += ((where or self._where, one, other) for one, other in pairs)

    def _compare(self, old: Any, new: Any) -> None:
        if old is new:
            return
        kind = type(old)
        if kind in _ATOMS:
            _check(type(new) is kind and _plain(old) == _plain(new), old, new)
        elif kind is tuple or kind is CodeType:
            _check(type(new) is kind, old, new)
            self._items(old, new) if kind is tuple else self._code(old, new)
        elif not self._is_met(old, new):
            self._alive += (old, new)
            handler = _HANDLERS.get(kind) or (
                _Comparison._class if isinstance(old, type) else _Comparison._instance
            )
            if handler not in (_Comparison._class, _Comparison._instance):
                _check(type(new) is kind, old, new)
            handler(self, old, new)

    def _is_met(self, old: Any, new: Any) -> bool:
        pair = id(old), id(new)
        if pair in self._seen:
            return True
        self._seen.add(pair)
        if not isinstance(old, frozenset | MethodType | MappingProxyType):
            is_one = self._new_of.setdefault(pair[0], pair[1]) == pair[1]
            is_one &= self._old_of.setdefault(pair[1], pair[0]) == pair[0]
            _check(is_one, old, new, "what was one is two")
        return False

    # -- plain values ----------------------------------------------------------------------

    def _items(self, old: Any, new: Any) -> None:
        _check(len(old) == len(new), old, new)
        self._push(zip(old, new, strict=True))

    def _mapping(self, old: Mapping[Any, Any], new: Mapping[Any, Any]) -> None:
        self._items([*old.items()], [*new.items()])

    def _set(self, old: Iterable[Any], new: Iterable[Any]) -> None:
        _check({*map(_plain, old)} == {*map(_plain, new)}, old, new)

    # -- code ------------------------------------------------------------------------------

    def _function(self, old: FunctionType, new: FunctionType) -> None:
        is_own = _titles(old)[0].startswith("gearpy.")  # No name that people know.
        where = "" if is_own else old.__qualname__
        _check(_titles(old)[1:] == _titles(new)[1:], old, new)
        self._push(
            [
                (old.__code__, new.__code__),
                (old.__defaults__, new.__defaults__),
                (old.__kwdefaults__, new.__kwdefaults__),
                (old.__closure__, new.__closure__),
                (old.__annotations__, new.__annotations__),
                (old.__dict__, new.__dict__),
            ],
            where,
        )
        if old.__code__ is new.__code__ and old.__globals__ is new.__globals__:
            return
        for used in _names_of(old.__code__, old.__globals__):
            pair = old.__globals__.get(used, _NOTHING), new.__globals__.get(used, _NOTHING)
            _check(used not in _FINDERS, used, used, f"{used} may find anything")
            is_in_both = (pair[0] is _NOTHING) == (pair[1] is _NOTHING)
            _check(is_in_both, *pair, f"{used} is not defined in both programs")
            self._push([pair], where)

    def _code(self, old: CodeType, new: CodeType) -> None:
        whose = "" if old.co_qualname == self._where else f" of {old.co_qualname}"
        for attribute in _OF_CODE:
            is_same = getattr(old, attribute) == getattr(new, attribute)
            _check(is_same, old, new, f"the code{whose} is another one")
        found = {*_FINDERS} & {*old.co_names}
        _check(not found, old, new, f"{', '.join(sorted(found))} may find anything")
        self._items(old.co_consts, new.co_consts)

    def _cell(self, old: CellType, new: CellType) -> None:
        self._push([(_content(old), _content(new))])

    def _method(self, old: MethodType, new: MethodType) -> None:
        self._push([(old.__func__, new.__func__), (old.__self__, new.__self__)])

    def _wrapper(self, old: Any, new: Any) -> None:
        self._push([(old.__func__, new.__func__)])

    def _property(self, old: property, new: property) -> None:
        self._push((getattr(old, each), getattr(new, each)) for each in ("fget", "fset", "fdel"))

    def _cached_property(self, old: Any, new: Any) -> None:
        self._push([(old.func, new.func), (old.attrname, new.attrname)])

    def _descriptor(self, old: Any, new: Any) -> None:
        _check(old.__name__ == new.__name__, old, new)

    def _logger(self, old: logging.Logger, new: logging.Logger) -> None:
        self._push([(old.name, new.name), (old.level, new.level)])

    def _class(self, old: type, new: Any) -> None:
        _check(isinstance(new, type) and _titles(old)[1:] == _titles(new)[1:], old, new)
        if _titles(old) != _titles(new):
            self._moved = self._moved or f"in {self._where}, {_moved(old, new)}"
        one, other = (
            {name: value for name, value in vars(each).items() if name not in _NOT_OF_CLASS}
            for each in (old, new)
        )
        self._push(
            [(type(old), type(new)), (old.__bases__, new.__bases__), (one, other)],
            old.__qualname__,
        )

    def _module(self, old: ModuleType, new: ModuleType) -> None:
        one, other = (
            {name: vars(each)[name] for name in sorted(vars(each)) if name not in _NOT_OF_MODULE}
            for each in (old, new)
        )
        self._push([(one, other)], f"module {without_package(old.__name__)}")

    # -- objects ---------------------------------------------------------------------------

    def _instance(self, old: Any, new: Any) -> None:
        _check(isinstance(new, type) is False, old, new)
        self._push([(type(old), type(new))])
        for base in _BASES:
            if isinstance(old, base):
                _check(isinstance(new, base) and _value(base, old) == _value(base, new), old, new)
        has = getattr(old, "__dict__", {})
        if self._but & has.keys() and type(old).__module__.startswith("gearpy."):
            one, other = (
                {name: value for name, value in vars(each).items() if name not in self._but}
                for each in (old, new)
            )
            self._push([(one, other)])
            return
        self._push([(_attributes(old), _attributes(new))])
        reduced, other = old.__reduce_ex__(4), new.__reduce_ex__(4)
        if isinstance(reduced, str):
            self._named(old, new)
            return
        _check(isinstance(other, tuple), old, new)
        self._push([(_listed(reduced), _listed(other))])

    def _named(self, old: Any, new: Any) -> None:
        """Compare what pickle knows by name only."""
        is_known = isinstance(old, TypeVar | ParamSpec | NewType) or hasattr(
            old, "cache_parameters"
        )
        _check(is_known and _titles(old) == _titles(new), old, new)
        for name in _PARTS_OF_NAMED:
            self._push([(getattr(old, name, _NOTHING), getattr(new, name, _NOTHING))])
        if hasattr(old, "cache_parameters"):
            self._push([(old.cache_parameters(), new.cache_parameters())])


_HANDLERS: Final[Mapping[type, Callable[[_Comparison, Any, Any], None]]] = {
    list: _Comparison._items,  # noqa: SLF001 - a table of its own methods
    dict: _Comparison._mapping,  # noqa: SLF001
    MappingProxyType: _Comparison._mapping,  # noqa: SLF001
    set: _Comparison._set,  # noqa: SLF001
    frozenset: _Comparison._set,  # noqa: SLF001
    FunctionType: _Comparison._function,  # noqa: SLF001
    CellType: _Comparison._cell,  # noqa: SLF001
    MethodType: _Comparison._method,  # noqa: SLF001
    staticmethod: _Comparison._wrapper,  # noqa: SLF001
    classmethod: _Comparison._wrapper,  # noqa: SLF001
    property: _Comparison._property,  # noqa: SLF001
    cached_property: _Comparison._cached_property,  # noqa: SLF001
    MemberDescriptorType: _Comparison._descriptor,  # noqa: SLF001
    GetSetDescriptorType: _Comparison._descriptor,  # noqa: SLF001
    logging.Logger: _Comparison._logger,  # noqa: SLF001
    ModuleType: _Comparison._module,  # noqa: SLF001
}


def _check(is_same: bool, old: Any, new: Any, reason: str = "") -> None:  # noqa: FBT001 - says it
    if not is_same:
        before, now = _shown(old), _shown(new)
        other = f"{now} is another one" if before == now else f"{before} has become {now}"
        raise _DifferentError(reason or other)


def _shown(value: Any) -> str:
    if type(value) in _ATOMS:
        return repr(value)[:80]
    return getattr(value, "__qualname__", "") or f"a {type(value).__qualname__}"


def _plain(value: Any) -> Any:
    """Return a value of atoms such that it equals no other one."""
    kind = type(value)
    plain: Any = value
    if kind is str:
        plain = without_package(value)
    elif kind is float:
        plain = struct.pack("d", value)
    elif kind is complex:
        plain = struct.pack("dd", value.real, value.imag)
    elif kind is tuple or kind is frozenset:
        plain = kind(map(_plain, value))
    elif kind not in _ATOMS:
        if not isinstance(value, type):
            raise _DifferentError(f"a {kind.__qualname__} in a set")
        plain = id(value)  # The same one only.
    return kind, plain


def _value(base: type, value: Any) -> Any:
    return _plain(base.__getnewargs__(value)[0] if base is not str else str.__str__(value))  # type: ignore[attr-defined]


def _titles(value: Any) -> tuple[str, ...]:
    return (
        without_package(getattr(value, "__module__", None) or ""),
        getattr(value, "__name__", ""),
        getattr(value, "__qualname__", ""),
    )


def _moved(old: type, new: type) -> str:
    before, now = (_titles(each)[0] for each in (old, new))
    return f"class {old.__qualname__} is of module {now} now, and was of {before}"


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _NOTHING


def _attributes(value: Any) -> list[Any]:
    """Return all that an object of a class in Python has."""
    found: list[Any] = [getattr(value, "__dict__", None)]
    for each in type(value).__mro__:
        for descriptor in vars(each).values():
            if isinstance(descriptor, MemberDescriptorType) and descriptor.__objclass__ is each:
                try:
                    found.append(descriptor.__get__(value))
                except AttributeError:
                    found.append(_NOTHING)
    return found


def _listed(reduced: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([*each] if isinstance(each, Iterator) else each for each in reduced)


def _names_of(code: CodeType, names: Mapping[str, Any]) -> Iterator[str]:
    """Yield the globals that code and the code in it name.

    Raises:
        _DifferentError: it imports something, and that may be of the program.
    """
    instructions = list(dis.get_instructions(code))
    for at, each in enumerate(instructions):
        if "GLOBAL" in each.opname or each.opname == "LOAD_NAME":
            if each.argval in names or not hasattr(builtins, each.argval):
                yield each.argval
        elif each.opname == "IMPORT_NAME":
            level = instructions[at - 2].argval
            if level != 0 or not _is_installed(each.argval.partition(".")[0], names):
                raise _DifferentError(f"it imports {each.argval}")
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _names_of(const, names)


def _is_installed(top: str, names: Mapping[str, Any]) -> bool:
    file = names.get("__file__")
    if not isinstance(file, str):
        return False
    depth = without_package(str(names.get("__name__"))).count(".")
    folders = Path(file).parents
    if depth >= len(folders):
        return False
    if any(
        (folder / each).exists() for folder in folders[: depth + 1] for each in (top, f"{top}.py")
    ):
        return False
    return top in sys.stdlib_module_names or top in sys.modules
