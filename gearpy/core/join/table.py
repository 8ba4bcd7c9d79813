"""Joins with a table that is complete: which of its rows belong to a key, at an event time."""

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from datetime import date, datetime, time, timedelta
from itertools import chain
from numbers import Number
from reprlib import repr as short_repr
from typing import Any, Final, Literal, TypeAlias

from gearpy.core.base.one_key import are_plain, one_if_key
from gearpy.errors import ConfigError

#: What becomes of several rows with one key.
Many: TypeAlias = Literal["error", "all", "first", "last"]

_NONE: Final[tuple[int, ...]] = ()
#: Classes of keys that never equal those of another line, with a word for people.
_FAMILIES: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (str, "text"),
    ((bytes, bytearray), "bytes"),
    (Number, "a number"),
    (datetime, "a datetime"),
    (date, "a date"),
    ((time, timedelta), "a time"),
)
_NAMED_MAX: Final = 3


class RowsOfKeys:
    """The places of a table's rows, by key; where rows have versions, by key and event time.

    Where they have, a row counts from its own time on, until the next row of its key does. Rows of
    one key and time are duplicates; without versions those of one key are.

    Args:
        times: event times of the rows, in ms, if they have versions.
        many: what becomes of duplicates: "error" refuses the table, "first" and "last" take one,
            "all" takes all of them.

    Raises:
        ConfigError: there are duplicates, and they are to be refused; or a key cannot be hashed.
    """

    def __init__(
        self, keys: Sequence[Any], *, times: Sequence[int] | None = None, many: Many = "error"
    ) -> None:
        self._many = many
        self._families: set[str] = set()
        self._fitting: set[Any] = set()  # Types of keys, and of the parts of tuples, that fit.
        self._places: dict[Any, tuple[int, ...]] = {}
        self._versions: dict[Any, tuple[list[int], list[tuple[int, ...]]]] = {}
        self.is_versioned = times is not None
        if times is None:
            self._add_all(keys)
        else:
            self._add_versions(keys, times)
        self._families = {
            family_of(key) for key in list(self._versions if self.is_versioned else self._places)
        }
        at_once = chain(self._places.values(), *(each for _, each in self._versions.values()))
        #: A record never belongs to several rows.
        self.is_single = many != "all" or all(len(places) == 1 for places in at_once)

    def find(self, key: Any, time_ms: int) -> tuple[int, ...]:
        """Return the places of the rows of a key at a time; none if there is no such row.

        Raises:
            TypeError: the key cannot be hashed, or no key of the table can ever equal it.
        """
        (found,) = self.find_each([key], [time_ms])
        return found

    def find_each(self, keys: Sequence[Any], times_ms: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the same for several keys, each at its time.

        Raises:
            TypeError: one cannot be hashed, or no key of the table can ever equal it.
        """
        if not self._fitting.issuperset(map(type, keys)):
            for key in keys:
                self._check_fits(key)
        if not are_plain(keys):
            keys = list(map(one_if_key, keys))
        if self.is_versioned:
            return list(map(self._version_of, keys, times_ms))
        get = self._places.get
        return [get(key, _NONE) for key in keys]

    def _version_of(self, key: Any, time_ms: int) -> tuple[int, ...]:
        known = self._versions.get(key)
        at = bisect_right(known[0], time_ms) if known is not None else 0
        return known[1][at - 1] if known is not None and at else _NONE

    def _add_all(self, keys: Sequence[Any]) -> None:
        places, many = self._places, self._many
        twice: dict[Any, int] = {}
        for place, key in enumerate(map(_hashable, keys)):
            known = places.get(key)
            if known is None or many == "last":
                places[key] = (place,)
            elif many == "all":
                places[key] = (*known, place)
            elif many == "error":
                twice[key] = twice.get(key, 1) + 1
        _refuse_duplicates(twice)

    def _add_versions(self, keys: Sequence[Any], times: Sequence[int]) -> None:
        by_key: dict[Any, dict[int, list[int]]] = {}
        for place, (key, time_ms) in enumerate(zip(map(_hashable, keys), times, strict=True)):
            by_key.setdefault(key, {}).setdefault(time_ms, []).append(place)
        if self._many == "error":
            same = ((key, at) for key, found in by_key.items() for at in found)
            _refuse_duplicates(
                {(key, f"at {at} ms"): n for key, at in same if (n := len(by_key[key][at])) > 1}
            )
        pick = {"first": slice(0, 1), "last": slice(-1, None)}.get(self._many, slice(None))
        for key, found in by_key.items():
            at = sorted(found)
            self._versions[key] = at, [tuple(found[each][pick]) for each in at]

    def _check_fits(self, key: Any) -> None:
        """Refuse a key of a kind that the table has none of: that is a mistake, not a miss."""
        kind = tuple(map(type, key)) if isinstance(key, tuple) else type(key)
        if kind in self._fitting:
            return
        family, known = family_of(key), self._families
        if family and known and family not in known and "" not in known:
            raise TypeError(
                f"the key {short_repr(key)} is {family}, and keys of the table are "
                f"{' or '.join(sorted(known))}, so no row can ever be found: convert one of them, "
                "in the schema of the source or by a function in on="
            )
        self._fitting.add(kind)


def family_of(key: Any) -> str:
    """Return a word for the family of keys that may equal a key; empty if it is not known.

    For a tuple, the families of its parts.
    """
    if isinstance(key, tuple):
        parts = [family_of(part) for part in key]
        return f"({', '.join(parts)})" if all(parts) else ""
    return next((word for kind, word in _FAMILIES if isinstance(key, kind)), "")


def _hashable(key: Any) -> Any:
    if not isinstance(key, Hashable):
        raise ConfigError(
            f"the key {short_repr(key)} of a row is a {type(key).__name__}, which cannot be looked "
            "up: choose a key of text, numbers or tuples of them"
        )
    return one_if_key(key)


def _refuse_duplicates(twice: dict[Any, int]) -> None:
    if not twice:
        return
    shown = ", ".join(
        f"{short_repr(key)} ({n} rows)" for key, n in list(twice.items())[:_NAMED_MAX]
    )
    more = f" and {len(twice) - _NAMED_MAX} more" if len(twice) > _NAMED_MAX else ""
    raise ConfigError(
        f"several rows have one key: {shown}{more}: take them out, or say what counts with "
        'many="first", "last" or "all"'
    )
