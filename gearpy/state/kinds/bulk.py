"""Pairs that a part of a task keeps by itself, in dicts of its own, stored as keyed state is.

For parts that take whole batches: they gain nothing from a store that is asked for one key at a
time. At the end of an epoch they hand over what has changed; after a restart they get all back.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, compress, islice
from operator import is_not
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import UUID

import msgpack

from gearpy.core.base.key_copy import finish, in_steps
from gearpy.core.base.one_key import one_key
from gearpy.errors import CannotTravel, ConfigError, OperatorError, ProtocolError
from gearpy.state.encoding.coders import MSGPACK, atoms_packer
from gearpy.state.encoding.keys import decode_key
from gearpy.state.kinds.place import namespace_of, part_of
from gearpy.state.stores.cells import Tables, Tag, runs_of
from gearpy.state.stores.delta import drain
from gearpy.state.stores.many import CHUNK, WITH_KEY, Chunk, sections_of_chunks
from gearpy.state.stores.sizes import Members, estimated_bytes
from gearpy.state.stores.store import Section
from gearpy.wire.values.payload import decode_value

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

    from gearpy.state.stores.tables import TableChunk

#: Names of such state begin with it, so that it is found in a section without decoding it.
ROOT: Final = "#bulk"
_MARK: Final = f"bp\0{ROOT}\0".encode()
#: Values that can never change. Bytes are not: nobody could tell whether they are encoded already.
_ATOMS: Final = frozenset(
    {NoneType, bool, int, float, str, Decimal, date, datetime, time, timedelta, UUID}
)
_ATOMS_AND_TUPLES: Final = _ATOMS | {tuple}
_IN_TUPLES: Final = _ATOMS_AND_TUPLES | {bytes}
#: Rows of a table that are encoded at a time.
_TABLE_ROWS: Final = 1 << 14
#: Deeper tuples are encoded at once, as what can change is.
_TUPLES_DEPTH_MAX: Final = 4


class Copies:
    """Copies of a task's state that are made in steps, while it goes on.

    Each is an iterator of small pieces of work, and behind it another one, for what its owner has
    to do when it is whole.
    """

    def __init__(self) -> None:
        self._copying: list[Iterator[object]] = []
        self._merging: list[Iterable[object]] = []

    def add(self, copying: Iterator[object], merging: Iterable[object] = ()) -> None:
        self._copying.append(copying)
        self._merging.append(merging)

    def steps(self) -> Iterator[bool] | None:
        """Return the pieces of all copies that have begun; None if there are none.

        Each tells whether a copy is not whole yet.
        """
        if not self._copying:
            return None
        copying, self._copying = self._copying, []
        merging, self._merging = self._merging, []
        return chain(
            (True for _ in chain.from_iterable(copying)),
            (False for _ in chain.from_iterable(merging)),
        )

    def finish(self) -> None:
        finish(self.steps() or ())


@dataclass(slots=True)
class Changed:
    """Keys of a table with their values, or, with ``values`` None, keys that have none any more.

    Whole when its copy is: until then keys and values are added to. What is the same as ``before``,
    the old values of the first keys, is not stored. With ``is_last`` nobody else uses keys and
    values. ``count``: of a dict, as many of its first keys are meant.
    """

    table: bytes
    keys: list[Any] | dict[Any, Any]
    values: list[Any] | None
    before: list[Any]
    is_last: bool = True
    count: int | None = None

    def chunks(self) -> Iterator[Chunk]:
        keys = islice(self.keys, self.count)
        if self.values is None:
            while gone := list(islice(keys, CHUNK)):
                yield Chunk(self.table, gone, None)
            return
        for at in range(0, len(self.values), CHUNK):
            values = self.values[at : at + CHUNK]
            before = self.before[at : at + len(values)]
            if bytes in set(map(type, values)):
                known = zip(values, before, strict=False)
                changed = [
                    now is not old and (type(now) is not bytes or now != old) for now, old in known
                ]
            else:  # A value that cannot change has a new object.
                changed = list(map(is_not, values, before))
            changed += [True] * (len(values) - len(before))
            some = list(compress(islice(keys, len(values)), changed))
            if some:
                yield Chunk(self.table, some, list(compress(values, changed)))

    def release(self) -> None:
        drain(self.before)
        if self.is_last:
            drain(self.values or [])
            drain(self.keys)


class TableForm(Protocol):
    """How rows of a table of Arrow are pairs of a key and a value."""

    @property
    def key(self) -> Sequence[str]:
        """The columns of the key."""
        ...

    def keys(self, table: Any) -> list[Any]:
        """Return the keys of rows."""
        ...

    def packed(self, table: Any) -> "pa.BinaryArray":
        """Return the values of rows as they are stored."""
        ...


@dataclass(frozen=True, slots=True)
class ChangedTable:
    """Rows of a table of Arrow, which are changed pairs, or whose keys have no value any more."""

    table: bytes
    form: TableForm
    rows: "pa.RecordBatch"
    is_gone: bool

    def chunks(self) -> Iterator["Chunk | TableChunk"]:
        from gearpy.state.stores.tables import chunk_of  # noqa: PLC0415 - there is a table

        for at in range(0, self.rows.num_rows, _TABLE_ROWS):
            rows = self.rows.slice(at, _TABLE_ROWS)
            keys = [rows.column(name) for name in self.form.key]
            values = None if self.is_gone else self.form.packed(rows)
            chunk = chunk_of(self.table, keys, values)
            if chunk is not None:
                yield chunk
                continue
            found = self.form.keys(rows)
            data = None if values is None else values.to_pylist()
            for start in range(0, len(found), CHUNK):
                some = slice(start, start + CHUNK)
                yield Chunk(self.table, found[some], None if data is None else data[some])

    def release(self) -> None:
        """Do nothing: no object of Python waits for the collector."""


class BulkState:
    """Pairs of keys and values in namespaces. Keeps changes only, until they are handed over.

    Args:
        operator: whom to blame for what cannot be stored.
        is_keyed: the records of the task come by these keys; else the pairs belong to the task.
        left: cells of tables as they were stored, not restored yet.
    """

    def __init__(
        self, tag: Tag, operator: str, left: Tables, copies: Copies, *, is_keyed: bool = True
    ) -> None:
        self.copies = copies
        self.left = left
        self.tell_again: Callable[[], object] | None = None
        self._tag = tag.encode()
        self._operator = operator
        self._is_keyed = is_keyed
        self.changes: list[Changed | ChangedTable] = []
        self._held: Callable[[], Iterable[Members]] = tuple

    def holds(
        self, held: Callable[[], Iterable[Members]], tell_again: Callable[[], object]
    ) -> None:
        """Take functions of the owner.

        Args:
            held: returns its state: dicts by key, or other collections. Only its size is asked for,
                when an epoch ends.
            tell_again: has it hand over all of its state at the end of the epoch, as if it had none
                before.
        """
        self._held, self.tell_again = held, tell_again

    def holds_tables(
        self, held: Callable[[], Iterable[Any]], tell_again: Callable[[], object]
    ) -> None:
        """Take functions of an owner whose state is tables of Arrow."""
        # A range of so many whole numbers counts as so many bytes.
        self.holds(lambda: [range(each.nbytes // 8) for each in held()], tell_again)

    @property
    def size_bytes(self) -> int:
        return estimated_bytes(self._held())

    def restored(self) -> Iterator[tuple[Any, dict[Any, Any]]]:
        """Yield namespaces and the pairs that were kept in each; they are not kept here."""
        while self.left:
            table, cells = self.left.popitem()
            pairs = dict[Any, Any]()
            for key, data in cells.items():
                if data is None:
                    continue
                if data[:1] != WITH_KEY[:1]:
                    pairs[decode_key(key)] = decode_value(data)
                elif data.startswith(WITH_KEY):
                    kept, value = decode_value(data[1:])
                    pairs[one_key(kept)] = value
                else:
                    raise ProtocolError(f"malformed value of bulk state: {data[:40]!r}")
            if pairs:
                yield namespace_of(table[len(self._tag) :]), pairs

    def isolated(self, values: list[Any]) -> tuple[list[Any], bool]:
        """Return values that nobody can change, and whether some of the others can.

        If so, all become what they would be stored as. Give it few at a time: each is read again
        while it is in the processor's cache.
        """
        fixed, within = _ATOMS_AND_TUPLES, values
        for _ in range(_TUPLES_DEPTH_MAX):  # Nothing is called for each: there may be millions.
            kinds = set(map(type, within))
            if not kinds <= fixed:
                break
            if tuple not in kinds:
                return values, False
            fixed = _IN_TUPLES
            tuples = within if len(kinds) == 1 else [each for each in within if type(each) is tuple]
            within = list(chain.from_iterable(tuples))
        try:
            return list(map(MSGPACK.encode, values)), True
        except ConfigError as error:
            raise _blamed(self._operator, error) from error

    def encoded(self, steps: Iterator[object], values: list[Any]) -> Iterator[None]:
        """Do steps that append values, and make these into bytes.

        The collector visits a million lists or tuples that wait to be stored again and again, which
        stops the task for some 100 ms. It does not visit bytes.
        """
        pack, known = atoms_packer(), 0
        for _ in steps:
            try:
                values[known:] = pack(values[known:])
            except ConfigError as error:
                raise _blamed(self._operator, error) from error
            known = len(values)
            yield

    def put_all(
        self,
        keys: list[Any],
        values: list[Any],
        namespace: Any = None,
        *,
        before: list[Any] | None = None,
        is_last: bool = True,
    ) -> Changed:
        """Set the values of keys; see `Changed`.

        Args:
            keys: only added to from now on.
            values: of the first keys; `isolated`, and not changed any more. Lists that nobody uses
                any more need not be: they are encoded when they are stored, and only then one turns
                up that cannot be.
            namespace: where they are.
            before: it is taken.
            is_last: keys and values are taken, too.
        """
        table = self._tag + part_of(namespace)
        changed = Changed(table, keys, values, [] if before is None else before, is_last)
        self.changes.append(changed)
        return changed

    def delete(
        self,
        keys: list[Any] | dict[Any, Any],
        namespace: Any = None,
        *,
        count: int | None = None,
    ) -> None:
        self.changes.append(Changed(self._tag + part_of(namespace), keys, None, [], count=count))

    def put_table(self, form: TableForm, rows: "pa.RecordBatch", namespace: Any = None) -> None:
        """Set the values of the keys that rows of a table have; each key is there once."""
        self._add_table(form, rows, namespace, is_gone=False)

    def delete_table(self, form: TableForm, rows: "pa.RecordBatch", namespace: Any = None) -> None:
        self._add_table(form, rows, namespace, is_gone=True)

    def _add_table(
        self, form: TableForm, rows: "pa.RecordBatch", namespace: Any, *, is_gone: bool
    ) -> None:
        self.changes.append(ChangedTable(self._tag + part_of(namespace), form, rows, is_gone))

    def go_on_with(self, copying: Iterator[object], amount: int) -> None:
        """Do the work that makes changes whole; where it is much, in steps."""
        if in_steps(copying, amount) is not None:
            self.copies.add(copying)

    def snapshot(self) -> "BulkDelta | None":
        if not self.changes:
            return None
        changes, self.changes = self.changes, []
        return BulkDelta(changes, self._operator, is_keyed=self._is_keyed)


class BulkDelta:
    """Changed pairs; see `StateDelta`. They are compared and encoded here."""

    def __init__(
        self, changes: list[Changed | ChangedTable], operator: str, *, is_keyed: bool
    ) -> None:
        self._changes = changes
        self._operator = operator
        self._is_keyed = is_keyed

    def sections(self) -> Iterator[Section]:
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
        """Take the bulk state out of a section; return the rest of it, if there is any."""
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
        """Have all that is kept handed over once more; False if some of it is nobody's."""
        states = self._states.values()
        if self._restored or any(each.tell_again is None or each.left for each in states):
            return False
        for each in states:
            each.changes = []
            assert each.tell_again is not None, "it has an owner"
            each.tell_again()
        return True

    @property
    def size_bytes(self) -> int:
        return sum(state.size_bytes for state in self._states.values())

    def snapshot(self) -> list[BulkDelta]:
        deltas = (state.snapshot() for state in self._states.values())
        return [delta for delta in deltas if delta is not None]


def _blamed(operator: str, error: ConfigError) -> OperatorError:
    return OperatorError(
        operator=operator,
        cause=f"its snapshot cannot be stored: {error}",
        is_final=isinstance(error, CannotTravel),
    )
