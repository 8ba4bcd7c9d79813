"""Values of options that are soon what they shall be.

Newer typers have pydantic make them. To load it takes a third of the start of a small command, and
most values are texts, or defaults.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias, get_args, get_origin

from typer import core

#: Returns what typer makes the values of a parameter with.
_ByTyper: TypeAlias = Callable[[Any], Any]
_MISSING: Final = object()  #: Stands for a value that typer makes.


def coerce_without_pydantic() -> None:
    """Have typer ask pydantic only for values that are not simple; older ones never do."""
    parameter: Any = getattr(core, "_TyperParameter", None)
    by_typer: _ByTyper | None = getattr(parameter, "get_runtime_param", None)
    if by_typer is not None:
        parameter.get_runtime_param = lambda given: _Simple(given, by_typer)


class _Simple:
    """Makes the value of one parameter."""

    def __init__(self, parameter: Any, by_typer: _ByTyper) -> None:
        self._parameter = parameter
        self._by_typer = by_typer

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        found = self._made(value)
        if found is _MISSING:
            return self._by_typer(self._parameter).coerce(value, param=param, ctx=ctx)
        return found

    def _made(self, value: Any) -> Any:
        is_many = self._parameter.multiple or self._parameter.nargs == -1
        if value is None:
            return () if is_many else None
        kind = self._parameter.type_descriptor.annotation
        info = self._parameter.type_descriptor.parameter_info
        if info.parser is not None:
            return _MISSING
        if is_many:
            are_texts = kind == list[str] and all(type(each) is str for each in value)
            return list(value) if are_texts else _MISSING
        if type(value) is kind or (get_origin(kind) is Literal and value in get_args(kind)):
            return value
        if kind is int and value.isascii() and value.isdigit():
            number = int(value)
            is_within = (info.min or 0) <= number and (info.max is None or number <= info.max)
            return number if is_within else _MISSING
        if isinstance(kind, type) and issubclass(kind, StrEnum) and value in set(kind):
            return kind(value)
        return _MISSING
