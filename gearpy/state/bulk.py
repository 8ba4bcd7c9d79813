"""Pairs that a part of a task keeps by itself, in dicts of its own, stored as keyed state is.

For parts that look at whole batches: they gain nothing from a store that is asked for one key at
a time. They tell at the end of an epoch what has changed, and get all pairs back after a restart.
"""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, islice
from types import NoneType
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgpack

from gearpy.core.stable_hash import key_group
from gearpy.errors import ConfigError, OperatorError, ProtocolError
from gearpy.state.api import Section
from gearpy.state.cells import Tables, Tag, runs_of
from gearpy.state.coders import MSGPACK, atom_packer
from gearpy.state.delta import GroupCell, Reads, drain_all, sections_of_cells
from gearpy.state.keys import TASK_GROUP, decode_key, encode_key
from gearpy.state.place import namespace_of, part_of
from gearpy.wire.payload import decode_value

__all__ = ["BulkDelta", "BulkState", "Bulks"]

#: Names of such state begin with it, so that it is found in a section without decoding it.
_ROOT: Final = "#bulk"
_MARK: Final = f"bp\0{_ROOT}\0".encode()
#: What can never change. Of bytes nobody could tell whether they are encoded already.
_ATOMS: Final = frozenset(
    {NoneType, bool, int, float, str, Decimal, date, datetime, time, timedelta, UUID}
)
_IN_TUPLES: Final = _ATOMS | {bytes}
#: Keys of these types are given back exactly as they were; of others it is stored what they were.
_EXACT: Final = frozenset({str, int, bytes, NoneType})
#: Begins what is stored where the key is not exact; msgpack begins no value with this byte.
_WITH_KEY: Final = b"\xc1"
_MISSING: Final = object()
_PAIR: Final = b"\x92"  # A list of two, for msgpack.


class _Change(NamedTuple):
    table: bytes
    pairs: dict[Any, Any]
    before: dict[Any, Any]
    deleted: int | None = None  # So many of the first keys have no value any more.


class BulkState:
    """Pairs of keys and values in namespaces. Keeps changes only, until they are handed over.

    Args:
        tag: names it in the store.
        operator: whom to blame for what cannot be stored.
        is_keyed: the records of the task come by these keys; else the pairs belong to the task.
        restored: of a namespace, cells as they were stored.
    """

    def __init__(self, tag: Tag, operator: str, restored: Tables, *, is_keyed: bool = True) -> None:
        self._tag = tag.encode()
        self._operator = operator
        self._is_keyed = is_keyed
        self._restored = restored
        self._changes: list[_Change] = []

    def restored(self) -> Iterator[tuple[Any, dict[Any, Any]]]:
        """Yield namespaces and the pairs that were kept in each; they are not kept here.

        Raises:
            ProtocolError: they are malformed, or a class is not registered here.
        """
        while self._restored:
            table, cells = self._restored.popitem()
            pairs = dict[Any, Any]()
            for key, data in cells.items():
                if data is not None:
                    _take_in(pairs, key, data)
            if pairs:
                yield namespace_of(table[len(self._tag) :]), pairs

    def isolated(self, pairs: dict[Any, Any]) -> dict[Any, Any]:
        """Return pairs whose values nobody can change: these if there are no others.

        Values that may change become what they would be stored as.

        Raises:
            OperatorError: a value cannot be stored.
        """
        if _are_atoms(pairs.values()):
            return pairs
        try:
            return {key: MSGPACK.encode(value) for key, value in pairs.items()}
        except ConfigError as error:
            raise _blamed(self._operator, error) from error

    def put(
        self,
        pairs: dict[Any, Any],
        namespace: Any = None,
        *,
        before: dict[Any, Any] | None = None,
    ) -> None:
        """Set what keys have from now on. Takes the dict; its values must be `isolated`.

        Args:
            pairs: what has changed; or all, if it is told what they were.
            namespace: where they are.
            before: what they were when they were told last. It is taken, too.
        """
        if pairs:
            self._changes.append(_Change(self._tag + part_of(namespace), pairs, before or {}))

    def delete_first(self, count: int, pairs: dict[Any, Any], namespace: Any = None) -> None:
        """Take away the first ``count`` keys of a dict. Takes the dict."""
        self._changes.append(_Change(self._tag + part_of(namespace), pairs, {}, count))

    def snapshot(self) -> "BulkDelta | None":
        """Hand over what has changed since the last call; None if nothing has."""
        if not self._changes:
            return None
        changes, self._changes = self._changes, []
        return BulkDelta(changes, self._operator, is_keyed=self._is_keyed)


class BulkDelta:
    """Changed pairs; see `StateDelta`. Keys are encoded here."""

    def __init__(self, changes: list[_Change], operator: str, *, is_keyed: bool) -> None:
        self._changes = changes
        self._operator = operator
        self._group_of = key_group if is_keyed else _group_of_task

    def sections(self) -> Iterator[Section]:
        """Yield all changes.

        Raises:
            OperatorError: a key cannot be stored.
        """
        try:
            yield from sections_of_cells(self._cells(), Reads())
        except ConfigError as error:
            raise _blamed(self._operator, error) from error

    def release(self) -> None:
        """Free the memory."""
        for each in self._changes:  # The next change may need what came of it.
            drain_all([each.before if each.deleted is None else each.pairs])
        self._changes = []

    def _cells(self) -> Iterator[GroupCell]:
        return chain.from_iterable(
            self._set(each) if each.deleted is None else self._deleted(each)
            for each in self._changes
        )

    def _set(self, change: _Change) -> Iterator[GroupCell]:
        group_of, table = self._group_of, change.table
        before, pack = change.before, atom_packer()
        for key, value in change.pairs.items():
            known = before.get(key, _MISSING)
            # Of what cannot change there is a new object.
            if value is known or (type(value) is bytes and value == known):
                continue
            packed = value if type(value) is bytes else pack(value)
            if type(key) not in _EXACT:
                packed = _WITH_KEY + _PAIR + MSGPACK.encode(key) + packed
            yield group_of(key), table + encode_key(key), packed

    def _deleted(self, change: _Change) -> Iterator[GroupCell]:
        for key in islice(change.pairs, change.deleted):
            yield self._group_of(key), change.table + encode_key(key), None


class Bulks:
    """All bulk state of one task, by tag."""

    def __init__(self) -> None:
        self._states: dict[Tag, BulkState] = {}
        self._restored: Tables = {}

    def load(self, section: Section) -> Section | None:
        """Take what is bulk state out of a section; return the rest of it, if there is any.

        Raises:
            ProtocolError: it is no section.
        """
        if _MARK not in section.body:
            return section
        rest: dict[bytes, bytes | None] = {}
        for run in runs_of(section):
            if run.table.startswith(_MARK, 1):
                cells = self._restored.setdefault(run.table, {})
                cells.update(zip(run.rests, run.values, strict=True))
            else:
                rest.update(zip(map(run.table.__add__, run.rests), run.values, strict=True))
        return Section(section.group, msgpack.packb(rest)) if rest else None

    def declare(self, path: tuple[str, ...], operator: str, *, is_keyed: bool) -> BulkState:
        """Return new state, with what was kept under its name; no name twice."""
        tag = Tag((_ROOT, *path), "bulk", MSGPACK.name)
        assert tag not in self._states, f"bulk state {tag.name!r} is there already"
        head = tag.encode()
        mine = {name: cells for name, cells in self._restored.items() if name.startswith(head)}
        for name in mine:
            del self._restored[name]
        state = self._states[tag] = BulkState(tag, operator, mine, is_keyed=is_keyed)
        return state

    def snapshot(self) -> list[BulkDelta]:
        """Hand over what has changed."""
        deltas = (state.snapshot() for state in self._states.values())
        return [delta for delta in deltas if delta is not None]


def _are_atoms(values: Iterable[Any]) -> bool:
    """Tell whether no value can ever change. Nothing is called for each: there may be millions."""
    kinds = set(map(type, values))
    if tuple not in kinds or not kinds - {tuple} <= _ATOMS:
        return kinds <= _ATOMS
    tuples = (value for value in values if type(value) is tuple)
    return set(map(type, chain.from_iterable(tuples))) <= _IN_TUPLES


def _take_in(pairs: dict[Any, Any], key: bytes, data: bytes) -> None:
    if data.startswith(_WITH_KEY):
        at = _WITH_KEY + _PAIR
        if not data.startswith(at):
            raise ProtocolError(f"malformed value of bulk state: {data[:40]!r}")
        kept, value = decode_value(data[len(_WITH_KEY) :])
        pairs[kept] = value
    else:
        pairs[decode_key(key)] = decode_value(data)


def _group_of_task(_: Any) -> int:
    return TASK_GROUP


def _blamed(operator: str, error: ConfigError) -> OperatorError:
    return OperatorError(operator=operator, cause=f"its snapshot cannot be stored: {error}")
