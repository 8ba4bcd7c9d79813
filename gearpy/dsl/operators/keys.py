"""The key of a stream: a function of the record, or the names of its fields."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from gearpy.core.base.fields import key_getter
from gearpy.dsl.operators.names import check_function
from gearpy.errors import ConfigError

KeyLike: TypeAlias = Callable[[Any], Any] | str


@dataclass(frozen=True, slots=True)
class Key:
    """A key by which a stream is grouped.

    Attributes:
        function: gives the key of a record.
        columns: the names, if it was given by names; then it can be found in a table, too.
        is_ordered: steps that see the order of a key's records get them by event time.
    """

    function: Callable[[Any], Any]
    columns: tuple[str, ...] = ()
    is_ordered: bool = True


def _itself(record: Any) -> Any:
    return record


#: Groups equal records.
ITSELF: Final = Key(_itself)


def _nothing(_: Any) -> None:
    return None


#: Groups all records.
EVERYTHING: Final = Key(_nothing)


def key_of(kind: str, keys: Sequence[KeyLike]) -> Key:
    """Return the key by a function, or by names; of several names it is a tuple."""
    names = tuple(name for name in keys if isinstance(name, str))
    if keys and len(names) == len(keys):
        if len(set(names)) < len(names) or not all(names):
            raise ConfigError(f"{kind}: give each of the names {names!r} once, and none empty")
        return Key(key_getter(*names), names)
    if len(keys) == 1 and callable(keys[0]):
        check_function(kind, keys[0])
        return Key(keys[0])
    given = ", ".join(map(repr, keys)) or "nothing"
    raise ConfigError(
        f"{kind} takes one function of a record, or names of fields, not {given}: "
        f'write {kind}(lambda record: ...) or {kind}("user", "country")'
    )
