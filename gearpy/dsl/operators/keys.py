"""The key of a stream: a function of the record, or the names of its fields."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

from gearpy.core.base.fields import NAN, key_getter
from gearpy.dsl.operators.names import check_function
from gearpy.errors import ConfigError
from gearpy.expressions.expr import Expr, expression_of
from gearpy.expressions.nodes import ColumnNode

KeyLike: TypeAlias = Callable[[Any], Any] | str | Expr


@dataclass(frozen=True, slots=True)
class Key:
    """A key by which a stream is grouped.

    Attributes:
        function: gives the key of a record.
        columns: the names, if it was given by names; then it can be found in a table, too.
        expressions: of its parts, if one of them is no name; these can be computed for a table.
        is_ordered: steps that see the order of a key's records get them by event time.
    """

    function: Callable[[Any], Any]
    columns: tuple[str, ...] = ()
    expressions: tuple[Expr, ...] = ()
    is_ordered: bool = True


def _itself(record: Any) -> Any:
    return record


#: Groups equal records.
ITSELF: Final = Key(_itself)


def _nothing(_: Any) -> None:
    return None


#: Groups all records.
EVERYTHING: Final = Key(_nothing)


class ComputedKey:
    """The key that some expressions make of a record: a value, or the tuple of several."""

    def __init__(self, expressions: Sequence[Expr]) -> None:
        self._expressions = expressions

    @cached_property
    def function(self) -> Callable[[Any], Any]:
        parts = [each.row() for each in self._expressions]
        if len(parts) == 1:
            (only,) = parts
            return lambda record: _one_nan(only(record))
        return lambda record: tuple([_one_nan(part(record)) for part in parts])

    def __call__(self, record: Any) -> Any:
        return self.function(record)

    def __getstate__(self) -> dict[str, Any]:
        return {"_expressions": self._expressions}


def _one_nan(value: Any) -> Any:
    return NAN if value != value else value  # noqa: PLR0124 - all NaN are one key


def key_of(kind: str, keys: Sequence[KeyLike]) -> Key:
    """Return the key by a function, or by names; of several names it is a tuple."""
    keys = [_name_if_column(each) for each in keys]
    names = tuple(name for name in keys if isinstance(name, str))
    if keys and len(names) == len(keys):
        if len(set(names)) < len(names) or not all(names):
            raise ConfigError(f"{kind}: give each of the names {names!r} once, and none empty")
        return Key(key_getter(*names), names)
    if keys and all(isinstance(each, str | Expr) for each in keys):
        expressions = tuple(map(expression_of, keys))
        return Key(ComputedKey(expressions).function, expressions=expressions)
    if len(keys) == 1 and callable(keys[0]):
        check_function(kind, keys[0])
        return Key(keys[0])
    given = ", ".join(map(repr, keys)) or "nothing"
    raise ConfigError(
        f"{kind} takes one function of a record, or names of fields, not {given}: "
        f'write {kind}(lambda record: ...) or {kind}("user", "country")'
    )


def sent_key(key: Key) -> Callable[[Any], Any]:
    """Return the function of a key in a form that other processes can be sent."""
    return ComputedKey(key.expressions) if key.expressions else key.function


def _name_if_column(key: KeyLike) -> KeyLike:
    """Return the name of a plain column, which is the key of more than an expression can be."""
    if isinstance(key, Expr) and isinstance(key.node, ColumnNode) and "." not in key.node.name:
        return key.node.name
    return key
