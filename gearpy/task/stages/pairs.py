"""The stage that pairs each row of tables with the one of its key before it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray

from gearpy.columns.row_schema import RowSchema, as_table
from gearpy.core.base.fields import FieldGetter, FieldsGetter
from gearpy.core.flow.table_partition import distinct_keys
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times, joined_rows
from gearpy.state.encoding.keys import encode_key, encode_keys
from gearpy.task.api.failure import USER_ERRORS
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.stage import Stage, step_state
from gearpy.task.joins.join_schema import JoinSchema

_Array: TypeAlias = NDArray[Any]
_NAMES: Final = ("previous", "current")
#: The last rows of so many keys are at hand; those of others are read again.
_KEYS_MAX: Final = 1 << 16
_BAD: Final = b""


@dataclass(frozen=True)
class PairSchema(JoinSchema):
    """The columns ``previous`` and ``current``, a record each; rows are pairs of these."""

    @classmethod
    def of_pairs(cls, records: RowSchema) -> "PairSchema":
        kind = pa.struct(list(records.arrow))
        fields = [pa.field(name, kind, nullable=False) for name in _NAMES]
        return cls(pa.schema(fields), tuple, records, records)

    def rows(self, batch: pa.RecordBatch) -> list[Any]:
        assert self.left is not None
        tables = map(pa.RecordBatch.from_struct_array, batch.columns)
        return list(zip(*map(self.left.rows, tables), strict=True))

    def table(self, values: Sequence[Any]) -> pa.RecordBatch:
        assert self.left is not None
        sides = map(self.left.table, zip(*values, strict=True))
        return pa.RecordBatch.from_arrays([each.to_struct_array() for each in sides], _NAMES)


class PairTablesStage(Stage):
    """Gives each row with the one of its key before it; the first of a key gives nothing.

    The last row of each key is at hand in a table, and written when an epoch ends, as the state of
    the same step over rows: a step goes on from it in either form.

    Args:
        key: names of the columns by which the records come.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        key: FieldGetter | FieldsGetter,
        schema: RowSchema,
    ) -> None:
        self.name = name
        self._context = context
        self._rejects = context.rejects
        self._key = key
        self._schema = schema
        self._columns = RowSchema(schema.arrow)
        self._begin_again()

    def _begin_again(self) -> None:
        self._code_of: dict[bytes, int] = {}
        self._last: pa.RecordBatch | None = None
        self._last_at: _Array = np.zeros(0, np.int64)  # By code, -1 for none.
        self._is_changed: _Array = np.zeros(0, bool)

    def restore(self, state: Any) -> None:
        self._kept = step_state(self._context, "map_with_state", self.place).value("kept")

    def snapshot(self) -> None:
        changed = np.flatnonzero(self._is_changed)
        if not len(changed):
            return
        assert self._last is not None
        rows = self._schema.rows(self._last.take(pa.array(self._last_at[changed])))
        keys, (_, write) = list(self._code_of), self._kept.accessors()
        for code, row in zip(changed.tolist(), rows, strict=True):
            write(keys[code], (row,))
        self._is_changed[:] = False

    def process(self, batch: Batch) -> Iterator[Batch]:
        table, times = as_table(batch.values, self._columns), Times.of(batch.timestamps)
        codes = self._codes_of(table, times)
        if (codes < 0).any():
            good = np.flatnonzero(codes >= 0)
            table, times, codes = (
                table.take(pa.array(good)),
                times.take(pa.array(good)),
                codes[good],
            )
        if not len(table):
            return
        known = 0 if self._last is None else len(self._last)
        rows = table.batch if self._last is None else joined_rows([self._last, table.batch])
        previous, ends = _previous(codes, self._last_at, known)
        has_one = np.flatnonzero(previous >= 0)
        if len(has_one):
            current = table.batch
            if len(has_one) < len(table):
                current, times = current.take(pa.array(has_one)), times.take(pa.array(has_one))
            before = rows.take(pa.array(previous[has_one]))
            records = map(self._schema.records_in, (before, current))
            pair = [each.to_struct_array() for each in records]
            pairs = Table(pa.RecordBatch.from_arrays(pair, _NAMES))
            yield batch.giving(pairs, times)
        self._last_at[codes[ends]] = known + ends
        self._is_changed[codes[ends]] = True
        kept = np.flatnonzero(self._last_at >= 0)
        self._last = rows.take(pa.array(self._last_at[kept]))
        self._last_at[kept] = np.arange(len(kept))

    def _codes_of(self, table: Table, times: Times) -> _Array:
        """Return the number of the key of each row, -1 where it can be none."""
        if len(self._code_of) > _KEYS_MAX:
            self.snapshot()
            self._begin_again()
        found = distinct_keys(table, self._key)
        assert found is not None, "the types of the key can be keys"
        places = found[1].to_numpy(zero_copy_only=False)
        try:
            keys = encode_keys(found[0])
        except USER_ERRORS:
            keys = self._good_keys(found[0], places, table, times)
        code_of, known = self._code_of, len(self._code_of)
        codes = [code_of.setdefault(key, len(code_of)) if key else -1 for key in keys]
        if len(code_of) > known:
            self._read(list(code_of)[known:])
        of_rows: _Array = np.array(codes, np.int64)[places]
        return of_rows

    def _good_keys(
        self, keys: list[Any], places: _Array, table: Table, times: Times
    ) -> list[bytes]:
        """Reject the records whose key can be none."""
        encoded: list[bytes] = []
        for at, key in enumerate(keys):
            try:
                encoded.append(encode_key(key))
            except USER_ERRORS as error:
                encoded.append(_BAD)
                # One that comes again needs what was computed for its key.
                told = self._columns if self._schema.row_type is None else self._schema
                for row in np.flatnonzero(places == at).tolist():
                    (record,) = told.rows(table.batch.slice(row, 1))
                    self._rejects.blame(self.name, error, record, times[row], place=self.place)
        return encoded

    def _read(self, keys: list[bytes]) -> None:
        """Take the last rows of keys from their state."""
        read, _ = self._kept.accessors()
        at, records = list[int](), list[Any]()
        known = 0 if self._last is None else len(self._last)
        for of_key in map(read, keys):
            at.append(known + len(records) if of_key else -1)
            records += of_key or ()
        self._last_at = np.append(self._last_at, np.array(at, np.int64))
        self._is_changed = np.append(self._is_changed, np.zeros(len(at), bool))
        if records:
            rows = self._schema.table(records)
            self._last = rows if self._last is None else joined_rows([self._last, rows])


def _previous(codes: _Array, last_at: _Array, known: int) -> tuple[_Array, _Array]:
    """Return where the row before each one is, -1 for none, and which rows are the last ones."""
    small = codes.astype(np.uint16) if len(last_at) < 1 << 16 else codes
    order = np.argsort(small, kind="stable")
    ordered = codes[order]
    is_first = np.append([True], ordered[1:] != ordered[:-1])
    before = np.empty(len(codes), np.int64)
    before[order[1:]] = known + order[:-1]
    firsts = order[is_first]
    before[firsts] = last_at[codes[firsts]]
    return before, order[np.append(is_first[1:], [True])]
