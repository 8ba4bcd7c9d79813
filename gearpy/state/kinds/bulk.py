"""Pairs that a part of a task keeps by itself, in dicts of its own, stored as keyed state is.

For parts that look at whole batches: they gain nothing from a store that is asked for one key at
a time. They tell at the end of an epoch what has changed, and get all pairs back after a restart.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, compress, islice
from operator import is_not
from types import NoneType
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

import msgpack

from gearpy.core.base.key_copy import LOOKED_UP
from gearpy.core.base.one_key import one_key
from gearpy.errors import CannotTravel, ConfigError, OperatorError, ProtocolError
from gearpy.state.encoding.coders import MSGPACK, atoms_packer
from gearpy.state.encoding.keys import decode_key
from gearpy.state.kinds.place import namespace_of, part_of
from gearpy.state.kinds.steps import Copies
from gearpy.state.stores.cells import Tables, Tag, runs_of
from gearpy.state.stores.delta import drain_all, drain_list
from gearpy.state.stores.many import CHUNK, WITH_KEY, Chunk, sections_of_chunks
from gearpy.state.stores.sizes import Members, estimated_bytes
from gearpy.state.stores.store import Section
from gearpy.wire.values.payload import decode_value

#: Names of such state begin with it, so that it is found in a section without decoding it.
ROOT: Final = "#bulk"
_MARK: Final = f"bp\0{ROOT}\0".encode()
#: What can never change. Of bytes nobody could tell whether they are encoded already.
_ATOMS: Final = frozenset(
    {NoneType, bool, int, float, str, Decimal, date, datetime, time, timedelta, UUID}
)
_ATOMS_AND_TUPLES: Final = _ATOMS | {tuple}
_IN_TUPLES: Final = _ATOMS_AND_TUPLES | {bytes}
#: How deep tuples are looked into; deeper ones are encoded at once, as what can change is.
_TUPLES_DEPTH_MAX: Final = 4


@dataclass(slots=True)
class AllPairs:
    """All pairs, and the old values of the first ones; ``keys`` may have grown since.

    With ``is_last`` nobody uses the keys or the values any more.
    """

    table: bytes
    keys: list[Any]
    values: list[Any]
    before: list[Any]
    is_last: bool

    def chunks(self) -> Iterator[Chunk]:
        for at in range(0, len(self.values), CHUNK):
            end = min(at + CHUNK, len(self.values))
            values = self.values[at:end]
            before = self.before[at:end]
            if bytes in set(map(type, values)):
                known = zip(values, before, strict=False)
                changed = [
                    now is not old and (type(now) is not bytes or now != old) for now, old in known
                ]
            else:  # Of what cannot change there is a new object.
                changed = list(map(is_not, values, before))
            is_changed = changed + [True] * (len(values) - len(before))
            keys = list(compress(self.keys[at:end], is_changed))
            if keys:
                yield Chunk(self.table, keys, list(compress(values, is_changed)))

    def release(self) -> None:
        """Free the old values; the new ones may be compared with the next."""
        drain_list(self.before)
        if self.is_last:
            drain_list(self.values)
            drain_list(self.keys)


class _Deleted(NamedTuple):
    """The first keys of a dict, which have no value any more."""

    table: bytes
    pairs: dict[Any, Any]
    deleted: int

    def chunks(self) -> Iterator[Chunk]:
        keys = islice(self.pairs, self.deleted)
        while chunk := list(islice(keys, CHUNK)):
            yield Chunk(self.table, chunk, None)

    def release(self) -> None:
        drain_all([self.pairs])


class _Gone(NamedTuple):
    """Keys which have no value any more."""

    table: bytes
    keys: list[Any]

    def chunks(self) -> Iterator[Chunk]:
        for at in range(0, len(self.keys), CHUNK):
            yield Chunk(self.table, self.keys[at : at + CHUNK], None)

    def release(self) -> None:
        drain_list(self.keys)


_Change: TypeAlias = AllPairs | _Deleted | _Gone


class BulkState:
    """Pairs of keys and values in namespaces. Keeps changes only, until they are handed over.

    Args:
        tag: names it in the store.
        operator: whom to blame for what cannot be stored.
        is_keyed: the records of the task come by these keys; else the pairs belong to the task.
        restored: of a namespace, cells as they were stored.
        copies: of the task.
    """

    def __init__(
        self,
        tag: Tag,
        operator: str,
        restored: Tables,
        copies: Copies,
        *,
        is_keyed: bool = True,
    ) -> None:
        self._tag = tag.encode()
        self._copies = copies
        self._operator = operator
        self._is_keyed = is_keyed
        self._restored = restored
        self._changes: list[_Change] = []
        self._held: Callable[[], Iterable[Members]] = tuple
        self._tell_again: Callable[[], object] | None = None

    def holds(
        self, held: Callable[[], Iterable[Members]], tell_again: Callable[[], object]
    ) -> None:
        """Take functions of the owner.

        Args:
            held: returns its state: dicts by key, or other collections. Only its size is asked for,
                when an epoch ends.
            tell_again: has it tell all of its state at the end of the epoch, as if it had told
                none.
        """
        self._held, self._tell_again = held, tell_again

    @property
    def has_owner(self) -> bool:
        return self._tell_again is not None and not self._restored

    def tell_again(self) -> None:
        """Have all that is kept told once more."""
        assert self._tell_again is not None, "it has an owner"
        self._changes = []
        self._tell_again()

    @property
    def size_bytes(self) -> int:
        return estimated_bytes(self._held())

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
                    if data[:1] == WITH_KEY[:1]:
                        if not data.startswith(WITH_KEY):
                            raise ProtocolError(f"malformed value of bulk state: {data[:40]!r}")
                        kept, value = decode_value(data[1:])
                        pairs[one_key(kept)] = value
                    else:
                        pairs[decode_key(key)] = decode_value(data)
            if pairs:
                yield namespace_of(table[len(self._tag) :]), pairs

    def isolated(self, values: Iterable[Any]) -> tuple[list[Any], bool]:
        """Return values that nobody can change, and whether some of the others can.

        If so, all become what they would be stored as.

        Raises:
            OperatorError: a value cannot be stored.
        """
        isolated, can_change = _copied(values)
        if not can_change:
            return isolated, False
        try:
            return list(map(MSGPACK.encode, isolated)), True
        except ConfigError as error:
            raise _blamed(self._operator, error) from error

    def encoded(self, steps: Iterator[int], values: list[Any]) -> Iterator[int]:
        """Do steps that append values, and make these into bytes; yields the costs of both.

        A million lists or tuples that wait to be stored are looked at by the collector, again and
        again, which stops the task for some 100 ms. It does not look at bytes.

        Raises:
            OperatorError: a value cannot be stored.
        """
        pack, known = atoms_packer(), 0
        for cost in steps:
            try:
                values[known:] = pack(values[known:])
            except ConfigError as error:
                raise _blamed(self._operator, error) from error
            before, known = known, len(values)
            yield cost + (known - before) * LOOKED_UP

    def put_all(
        self,
        keys: list[Any],
        values: list[Any],
        namespace: Any = None,
        *,
        before: list[Any],
        is_last: bool = False,
    ) -> AllPairs:
        """Set the values of keys; a value that is the same as before is not stored again.

        Args:
            keys: only added to from now on.
            values: of the first keys; `isolated`, and not changed any more, but added to by what
                `go_on_with` is given. Lists that nobody uses any more need not be isolated:
                they are encoded when they are stored, and only then one shows that cannot be.
            namespace: where they are.
            before: what the first of them were when they were told last. It is taken.
            is_last: keys and values are taken, too.
        """
        columns = AllPairs(self._tag + part_of(namespace), keys, values, before, is_last)
        self._changes.append(columns)
        return columns

    def go_on_with(self, copying: Iterator[int], merging: Iterator[int]) -> None:
        """Take the work that makes the changes whole, and what the owner does behind it.

        See `Copies`.
        """
        self._copies.add(copying, merging)

    def delete(self, keys: list[Any], namespace: Any = None) -> None:
        self._changes.append(_Gone(self._tag + part_of(namespace), keys))

    def delete_first(self, count: int, pairs: dict[Any, Any], namespace: Any = None) -> None:
        self._changes.append(_Deleted(self._tag + part_of(namespace), pairs, count))

    def snapshot(self) -> "BulkDelta | None":
        """Hand over the changes since the last call; None if there are none."""
        if not self._changes:
            return None
        changes, self._changes = self._changes, []
        return BulkDelta(changes, self._operator, is_keyed=self._is_keyed)


class BulkDelta:
    """Changed pairs; see `StateDelta`. They are compared and encoded here."""

    def __init__(self, changes: list[_Change], operator: str, *, is_keyed: bool) -> None:
        self._changes = changes
        self._operator = operator
        self._is_keyed = is_keyed

    def sections(self) -> Iterator[Section]:
        """Yield all changes.

        Raises:
            OperatorError: a key cannot be stored, or a value that was given.
        """
        chunks = chain.from_iterable(each.chunks() for each in self._changes)
        try:
            yield from sections_of_chunks(chunks, is_keyed=self._is_keyed)
        except ConfigError as error:
            raise _blamed(self._operator, error) from error

    def release(self) -> None:
        for each in self._changes:
            each.release()
        self._changes = []


class Bulks:
    """All bulk state of one task, by tag."""

    def __init__(self) -> None:
        self.copies = Copies()
        self._states: dict[Tag, BulkState] = {}
        self._restored: Tables = {}

    def load(self, section: Section) -> Section | None:
        """Take the bulk state out of a section; return the rest of it, if there is any.

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
                rest.update(zip(run.cells, run.values, strict=True))
        return Section(section.group, msgpack.packb(rest)) if rest else None

    def declare(self, path: tuple[str, ...], operator: str, *, is_keyed: bool) -> BulkState:
        """Return new state, with the values kept under its name; no name twice."""
        tag = Tag((ROOT, *path), "bulk", MSGPACK.name)
        assert tag not in self._states, f"bulk state {tag.name!r} is there already"
        head = tag.encode()
        mine = {name: cells for name, cells in self._restored.items() if name.startswith(head)}
        for name in mine:
            del self._restored[name]
        state = self._states[tag] = BulkState(tag, operator, mine, self.copies, is_keyed=is_keyed)
        return state

    def tell_again(self) -> bool:
        """Have all that is kept told once more; False if some of it is nobody's."""
        states = self._states.values()
        if self._restored or not all(each.has_owner for each in states):
            return False
        for each in states:
            each.tell_again()
        return True

    @property
    def size_bytes(self) -> int:
        return sum(state.size_bytes for state in self._states.values())

    def snapshot(self) -> list[BulkDelta]:
        deltas = (state.snapshot() for state in self._states.values())
        return [delta for delta in deltas if delta is not None]


def _copied(values: Iterable[Any]) -> tuple[list[Any], bool]:
    """Return a list of values, and whether any of them can change.

    Nothing is called for each: there may be millions. And each is looked at again while it is near
    the processor, as to fetch it is most of the work.
    """
    copied: list[Any] = []
    can_change = False
    left = iter(values)
    while chunk := list(islice(left, CHUNK)):
        can_change = can_change or _can_change(chunk)
        copied += chunk
    return copied, can_change


def _can_change(values: list[Any]) -> bool:
    """Tell whether some of the values could change, as far as one need look into tuples."""
    fixed, within = _ATOMS_AND_TUPLES, values
    for _ in range(_TUPLES_DEPTH_MAX):
        kinds = set(map(type, within))
        if not kinds <= fixed:
            return True
        if tuple not in kinds:
            return False
        fixed = _IN_TUPLES
        tuples = within if len(kinds) == 1 else [each for each in within if type(each) is tuple]
        within = list(chain.from_iterable(tuples))
    return True


def _blamed(operator: str, error: ConfigError) -> OperatorError:
    return OperatorError(
        operator=operator,
        cause=f"its snapshot cannot be stored: {error}",
        is_final=isinstance(error, CannotTravel),
    )
