"""A source that is watched while it is read: every read checks the promises of its reader."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypedDict

from gearpy.columns.row_schema import RowSchema
from gearpy.errors import ContractBroken, OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import Source, SourceReader
from gearpy.task.api.sides import BadRecord
from gearpy.testing.contract import plain

#: While a source has nothing to give it is left alone for so long.
_PAUSE_S: Final = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePatience:
    """The bounds of a source: its time, in seconds of wall time, and the records that it may give.

    Attributes:
        quiet_s: a partition from which more must come gives nothing for at most so long.
        read_s: one read takes at most so long: it does not wait for records.
        has_late: records may be older than their partition has promised.
        ends: so many records are read of a partition, then it counts as finished.
    """

    quiet_s: float = 10.0
    read_s: float = 2.0
    has_late: bool = False
    ends: Mapping[str, int] = field(default_factory=dict)


class WatchedPlace(TypedDict):
    """The place of a reader, and the number of records that it has given so far."""

    place: Any
    count: int


class WatchedSource(Source):
    """A source whose readers are `WatchedReader`s.

    Args:
        source: which one.
        patience: with it.
    """

    def __init__(self, source: Source, patience: SourcePatience) -> None:
        self._source = source
        self._patience = patience
        self.replayable = source.replayable
        self.bounded = source.bounded or bool(patience.ends)
        self.is_by_arrival = source.is_by_arrival
        self.sets_bad_aside = source.sets_bad_aside
        self.quarantines_bad = source.quarantines_bad
        self.calls_program = source.calls_program

    @property
    def description(self) -> str:
        return self._source.description

    @property
    def schema(self) -> RowSchema | None:
        return self._source.schema

    def partitions(self) -> Sequence[str]:
        """Return the names, each a text and there once."""
        names = list(self._source.partitions())
        if "" in names or len({*names}) < len(names) or {*map(type, names)} - {str}:
            raise ContractBroken(
                f"{self.description}: partitions() gave {names!r:.200}: a text each"
            )
        return names

    def open(self, partition: str, resume: WatchedPlace | None) -> "WatchedReader":
        """Open a partition where `WatchedReader.snapshot` was taken."""
        reader = self._source.open(partition, None if resume is None else resume["place"])
        where = f"{self.description}, partition {partition!r}"
        if self.is_by_arrival and not reader.is_by_arrival:
            raise ContractBroken(f"{where}: the source is_by_arrival, and its reader is not")
        return WatchedReader(
            where,
            reader,
            self._patience,
            count=0 if resume is None else resume["count"],
            end=self._patience.ends.get(partition),
            has_columns=self.schema is not None,
        )


class WatchedReader(SourceReader):
    """Reads as another reader does, and raises `ContractBroken` where that breaks a promise.

    Args:
        where: source and partition, for texts.
        reader: of the source.
        patience: with it.
        count: so many records were given before.
        end: after so many it counts as finished; None: when its reader says so.
        has_columns: it is to give tables.
    """

    def __init__(
        self,
        where: str,
        reader: SourceReader,
        patience: SourcePatience,
        *,
        count: int,
        end: int | None,
        has_columns: bool,
    ) -> None:
        self._where = where
        self._reader = reader
        self._patience = patience
        self._end = end
        self._has_columns = has_columns
        self._thread = threading.get_ident()
        self._quiet_since_s: float | None = None
        self._is_closed = False
        self.count = count
        self.is_by_arrival = reader.is_by_arrival
        self.out_of_order_ms = reader.out_of_order_ms
        self._note()

    def read_batch(self, max_records: int) -> Batch | None:
        """Return the records of the reader, checked; after a pause if there are none."""
        if self._is_closed or threading.get_ident() != self._thread:
            raise AssertionError(f"{self._where}: read after close, or on another thread")
        if self._end is not None:
            max_records = min(max_records, self._end - self.count)
        before_ms, before = self._reader.watermark_ms, self._reader.progress
        begun_s = time.monotonic()
        batch = self._reader.read_batch(max_records) if max_records else None
        took_s = time.monotonic() - begun_s
        self._require(
            took_s <= self._patience.read_s,
            lambda: (
                f"read_batch took {took_s:.1f} s: return None when there is nothing yet, "
                "rather than wait"
            ),
        )
        if batch is not None:
            values, times = batch.values, batch.timestamps
            self._require(
                len(values) == len(times),
                lambda: f"{len(values)} values have {len(times)} timestamps",
            )
            self._require(
                len(values) <= max_records,
                lambda: f"{len(values)} records came where {max_records} were asked for",
            )
            kinds = (isinstance(values, Table), isinstance(times, Times))
            self._require(
                kinds == (self._has_columns, self._has_columns),
                lambda: (
                    f"{type(values).__name__} came with {type(times).__name__}: give a Table with "
                    "Times if the source has a schema, else two lists"
                ),
            )
            self._check_times(list(batch.timestamps), before_ms)
        self.count += 0 if batch is None else len(batch.values)
        gave = bool(batch is not None and len(batch.values))
        reader = self._reader
        self._require(
            reader.watermark_ms >= before_ms,
            lambda: f"the watermark went back from {before_ms} to {reader.watermark_ms}",
        )
        (was, _), (done, total) = before, reader.progress
        self._require(
            was <= done and (done <= total or not total),
            lambda: f"progress was {before}, and is {reader.progress}",
        )
        self._require(
            not (gave and reader.idle), lambda: "it gave records, and says that it is idle"
        )
        self._check_quiet(gave=gave or reader.finished)
        self._note()
        return batch

    def take_bad(self) -> Sequence[BadRecord]:
        return self._reader.take_bad()

    def take_refused(self) -> Sequence[tuple[Any, OperatorError]]:
        return self._reader.take_refused()

    def snapshot(self) -> WatchedPlace:
        """Return where the reader is, as it comes back from a checkpoint."""
        place = plain(f"{self._where}: its snapshot", self._reader.snapshot())
        return {"place": place, "count": self.count}

    @property
    def watermark_ms(self) -> int:
        return self._reader.watermark_ms

    @property
    def progress(self) -> tuple[int, int]:
        return self._reader.progress

    def close(self) -> None:
        self._is_closed = True
        self._reader.close()

    def _note(self) -> None:
        is_at_end = self._end is not None and self.count >= self._end
        self.finished = self._reader.finished or is_at_end
        self.idle = self._reader.idle
        self.waits_for = self._reader.waits_for
        self.skipped_records = self._reader.skipped_records

    def _check_times(self, times: list[int], promised_ms: int) -> None:
        bad = [each for each in times if type(each) is not int or not MIN_MS <= each <= MAX_MS]
        self._require(
            not bad, lambda: f"{bad[0]!r} is no event time: give whole ms since the epoch, in UTC"
        )
        late = [each for each in times if each < promised_ms]
        self._require(
            self._patience.has_late or not late,
            lambda: (
                f"a record of time {late[0]} came after watermark {promised_ms}: promise less "
                "in watermark_ms (or, if records may be late, say has_late=True)"
            ),
        )

    def _check_quiet(self, *, gave: bool) -> None:
        if gave:
            self._quiet_since_s = None
            return
        now_s = time.monotonic()
        since_s = self._quiet_since_s = self._quiet_since_s or now_s
        waits = f"; it waits for {self._reader.waits_for}" if self._reader.waits_for else ""
        self._require(
            now_s - since_s < self._patience.quiet_s,
            lambda: (
                f"after {self.count} records nothing came for {self._patience.quiet_s} s, and "
                f"it has not finished{waits}"
            ),
        )
        time.sleep(_PAUSE_S)

    def _require(self, holds: bool, reason: Callable[[], str]) -> None:  # noqa: FBT001 - as assert
        if not holds:
            raise ContractBroken(f"{self._where}: {reason()}")
