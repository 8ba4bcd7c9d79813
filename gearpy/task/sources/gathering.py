"""Joins small batches of a reader, since a batch costs all steps behind it the same as a large one.

What is late, and where an epoch is cut, must not depend on it. So batches are joined only as long
as their records are judged as if one batch came after the other.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import SourceReader

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

#: A batch is small below this share of what was asked for; a table, whose rows cost less, below a
#: smaller one.
ROWS_SHARE: Final = 2
TABLE_SHARE: Final = 16


class JoinedBatch(NamedTuple):
    """Holds a batch, and the promise behind it.

    Attributes:
        other: the batch after it, which could not join.
        empty_ms: when the reader was asked for more and had nothing; None: it was not.
    """

    batch: Batch
    after_ms: int
    other: Batch | None = None
    empty_ms: int | None = None


class BatchJoiner:
    """Reads on behind a small batch, as long as more is there at once.

    The first record waits meanwhile, so that ends with the ms of the clock, or soon after.

    Args:
        read: reads a batch of so many records at most, and checks it.
        promised_ms: tells what is promised behind the batch that was read last.
        clock_ms: any clock.
    """

    def __init__(
        self,
        reader: SourceReader,
        read: Callable[[int], Batch | None],
        *,
        promised_ms: Callable[[], int],
        clock_ms: Callable[[], int],
    ) -> None:
        self._reader = reader
        self._read = read
        self._promised_ms = promised_ms
        self._clock_ms = clock_ms

    def behind(self, first: Batch, max_records: int, before_ms: int) -> JoinedBatch:
        """Return a batch that was just read, with those that join it.

        Args:
            max_records: asked for when it was read.
            before_ms: was promised before it.
        """
        after_ms, count = self._promised_ms(), len(first)
        enough = max_records // (TABLE_SHARE if type(first.values) is Table else ROWS_SHARE)
        if count >= enough or not _may_join(first):
            return JoinedBatch(first, after_ms)
        now_ms = self._clock_ms()
        batches, until_ms = [first], now_ms + 1
        while now_ms <= until_ms and count < enough and self._may_read_on(before_ms, after_ms):
            batch = self._read(max_records - count)
            if batch is None:
                return JoinedBatch(_joined(batches), after_ms, empty_ms=now_ms)
            if not _can_join(first, batch):
                return JoinedBatch(_joined(batches), after_ms, batch)
            batches.append(batch)
            after_ms, count = self._promised_ms(), count + len(batch)
            now_ms = self._clock_ms()
        return JoinedBatch(_joined(batches), after_ms)

    def _may_read_on(self, before_ms: int, after_ms: int) -> bool:
        """Tell whether records that follow are judged alike; of those by arrival none is late."""
        reader = self._reader
        if reader.finished or reader.may_wait:
            return False
        is_known = reader.out_of_order_ms is not None or reader.is_by_arrival
        return is_known or after_ms == before_ms


def _may_join(batch: Batch) -> bool:
    values, times = batch.values, batch.timestamps
    if type(values) is not Table:
        return type(values) is list
    return type(times) is Times and times.promised is None and _is_plain(values.batch.schema)


def _can_join(first: Batch, other: Batch) -> bool:
    mine, others = first.values, other.values
    if type(mine) is not Table or type(others) is not Table:
        return type(mine) is type(others)
    return mine.batch.schema.equals(others.batch.schema, check_metadata=True) and _may_join(other)


@lru_cache(maxsize=64)
def _is_plain(schema: "pa.Schema") -> bool:
    return all(_has_no_dictionary(field.type) for field in schema)


def _has_no_dictionary(kind: "pa.DataType") -> bool:
    import pyarrow as pa  # noqa: PLC0415 - there is a type, so Arrow is there

    if pa.types.is_dictionary(kind):
        return False
    return all(_has_no_dictionary(kind.field(at).type) for at in range(kind.num_fields))


def _joined(batches: Sequence[Batch]) -> Batch:
    first = batches[0]
    if len(batches) == 1:
        return first
    if type(first.values) is Table:
        return _joined_tables(batches)
    values: list[Any] = []
    times: list[int] = []
    for batch in batches:
        values += batch.values
        times += batch.timestamps
    return Batch(values, times)


def _joined_tables(batches: Sequence[Batch]) -> Batch:
    import pyarrow as pa  # noqa: PLC0415 - the tables have loaded it

    tables = [batch.values.batch for batch in batches if type(batch.values) is Table]
    times = [batch.timestamps.array for batch in batches if type(batch.timestamps) is Times]
    return Batch(Table(pa.concat_batches(tables)), Times(pa.concat_arrays(times)))
