"""Late records of a source: older than an earlier promise of their own partition.

Whether a record is late depends on the records before it in its partition and on nothing else,
least of all on how many are read at a time. So a replay finds the same ones again.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from operator import sub
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from gearpy.columns.row_schema import RowSchema
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS
from gearpy.messages.data import Batch
from gearpy.messages.late_time import OrderedTimes, late_time
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import TaskCounters
from gearpy.task.api.sides import Side, split_sides

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]


SourceLate: TypeAlias = Literal["keep", "drop", "restamp", "side"]
WindowLate: TypeAlias = Literal["drop", "restamp", "side"]

SOURCE_LATE: Final[tuple[SourceLate, ...]] = ("keep", "drop", "restamp", "side")
WINDOW_LATE: Final[tuple[WindowLate, ...]] = ("drop", "restamp", "side")
#: The name of the side output for late records, in plans and messages.
LATE: Final = "late"


def promised_before(batch: Batch) -> Sequence[int]:
    """Return the watermark that was promised before each record; never falls."""
    before_ms, after_ms, bound_ms, _ = batch.promise
    if bound_ms is None or after_ms <= before_ms:
        return [before_ms] * len(batch)
    if type(times := batch.timestamps) is Times:
        import pyarrow as pa  # noqa: PLC0415 - the times are there, so Arrow is
        import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415

        first = pa.array([min(before_ms + bound_ms, MAX_MS)], pa.int64())
        known = pa.concat_arrays([first, times.array.slice(0, max(0, len(times) - 1))])
        return Times(pc.subtract(pc.cumulative_max(known.slice(0, len(times))), bound_ms))
    newest = accumulate(batch.timestamps[:-1], max, initial=before_ms + bound_ms)
    return [time_ms - bound_ms for time_ms in newest]


def picked(batch: Batch, places: Sequence[int]) -> Batch:
    values = [batch.values[at] for at in places]
    return replace(batch, values=values, timestamps=[batch.timestamps[at] for at in places])


def filtered(batch: Batch, flags: Any) -> Batch:
    values, times, promise = batch.values, batch.timestamps, batch.promise
    assert type(values) is Table
    assert type(times) is Times
    if promise.aside is not None:
        promise = promise._replace(aside=promise.aside.filter(flags))
    return replace(
        batch, values=values.filter(flags), timestamps=times.filter(flags), promise=promise
    )


def part_of(batch: Batch, start: int, stop: int) -> Batch:
    part, aside = batch.part(start, stop), batch.promise.aside
    part.promise = batch.promise._replace(aside=None if aside is None else aside[start:stop])
    return part


class LateRecords:
    """Finds late records, counts them, and does with them as a policy says.

    Args:
        policy: "keep" lets them pass with the promise before them, and does not count them,
            since windows will; "drop" leaves them out; "restamp" gives them the time that was
            promised; "side" wraps them for a side output.
    """

    def __init__(self, policy: SourceLate, counters: TaskCounters, tag: str = LATE) -> None:
        self._policy = policy
        self._counters = counters
        self._tag = tag

    @property
    def sets_aside(self) -> bool:
        return self._policy == "side"

    def judge(self, batch: Batch) -> Batch:
        """Return the batch as it goes on, by its own promise; may be empty."""
        times, (before_ms, after_ms, bound_ms, _) = batch.timestamps, batch.promise
        if type(times) is Times:
            return self._judged_table(batch, times)
        if times[0] >= before_ms and (type(times) is OrderedTimes or min(times) >= after_ms):
            return batch
        if bound_ms is not None and after_ms > before_ms:  # How far each is behind the newest.
            newest = accumulate(times, max, initial=before_ms + bound_ms)
            if max(map(sub, newest, times)) <= bound_ms:
                return batch
        promised = promised_before(batch)
        pairs = zip(times, promised, strict=True)
        late = [at for at, (time_ms, least_ms) in enumerate(pairs) if time_ms < least_ms]
        if not late:
            return batch
        if self._policy != "keep":
            self._counters.late_records += len(late)
        if self._policy == "drop":
            dropped = set(late)
            return picked(batch, [at for at in range(len(batch)) if at not in dropped])
        values, timestamps = list(batch.values), list(times)
        for at in late:
            if self._policy == "side":
                values[at] = Side(self._tag, values[at])
            elif self._policy == "keep":
                timestamps[at] = late_time(timestamps[at], promised[at])
            else:
                timestamps[at] = promised[at]
        is_marked = self._policy == "keep"
        return replace(batch, values=values, timestamps=timestamps, has_late=is_marked)

    def parted(self, batch: Batch, schema: RowSchema | None) -> tuple[Batch, Batch]:
        """Return the rows that go on, and wrapped rows for the side output; each may be empty."""
        values, times, flags = batch.values, batch.timestamps, batch.promise.aside
        if type(values) is not Table or type(times) is not Times:
            *main, sides = split_sides(values, times)
            return batch.giving(main[0], main[1]), sides
        if flags is None:
            return batch, Batch([], [])
        aside, main_rows = values.filter(flags), others(flags)
        rows = list(aside) if schema is None else schema.rows(aside.batch)
        wrapped: list[Any] = [Side(self._tag, row) for row in rows]
        sides = batch.giving(wrapped, list(times.filter(flags)))
        return batch.giving(values.filter(main_rows), times.filter(main_rows)), sides

    def _judged_table(self, batch: Batch, times: Times) -> Batch:
        import pyarrow as pa  # noqa: PLC0415 - the times are there, so Arrow is
        import pyarrow.compute as pc  # noqa: PLC0415 - the same

        array, (before_ms, after_ms, _, _) = times.array, batch.promise
        if times[0] >= before_ms:
            falls = pc.less(array.slice(1), array.slice(0, max(0, len(array) - 1)))
            if not pc.any(falls).as_py() or times.bounds()[0] >= after_ms:
                return batch
        promised = promised_before(batch)
        least = promised.array if isinstance(promised, Times) else before_ms
        late = pc.less(array, least)
        if not pc.any(late).as_py():
            return batch
        if self._policy == "keep":
            if not isinstance(promised, Times):
                least = pa.repeat(pa.scalar(before_ms, pa.int64()), len(times))
            return replace(batch, timestamps=Times(array, least), has_late=True)
        self._counters.late_records += len(places_of(late))
        if self._policy == "restamp":
            return replace(batch, timestamps=Times(pc.max_element_wise(array, least)))
        if self._policy == "side":
            return replace(batch, promise=batch.promise._replace(aside=late))
        return filtered(batch, others(late))


def check_late(policy: str, allowed: Sequence[str]) -> None:
    """Refuse a policy for late records that is none."""
    if policy not in allowed:
        names = ", ".join(map(repr, allowed))
        raise ConfigError(f"late={policy!r} is unknown: use one of {names}")


def parted_at(batch: Batch, limit_ms: int) -> tuple[Batch, Batch]:
    """Return the records that are not newer than a time, and the others."""
    times = batch.timestamps
    if isinstance(times, Times):
        import pyarrow.compute as pc  # noqa: PLC0415 - the times are there, so Arrow is

        newer = pc.greater(times.array, limit_ms)
        return filtered(batch, others(newer)), filtered(batch, newer)
    newer = [at for at, time_ms in enumerate(times) if time_ms > limit_ms]
    there = set(newer)
    older = [at for at in range(len(times)) if at not in there]
    return picked(batch, older), picked(batch, newer)


def rows_before(times: Times, cut_ms: int, *, until: int) -> "pa.BooleanArray":
    """Return flags of the first ``until`` rows that are older than a time; later rows are not."""
    import pyarrow as pa  # noqa: PLC0415 - the times are there, so Arrow is
    import pyarrow.compute as pc  # noqa: PLC0415 - the same

    older = pc.less(times.array.slice(0, until), cut_ms)
    return pa.concat_arrays([older, pa.array([False] * (len(times) - until), pa.bool_())])


def others(flags: "pa.BooleanArray") -> "pa.BooleanArray":
    import pyarrow.compute as pc  # noqa: PLC0415 - the flags are there, so Arrow is

    return pc.invert(flags)


def places_of(flags: "pa.BooleanArray") -> list[int]:
    import pyarrow.compute as pc  # noqa: PLC0415 - the flags are there, so Arrow is

    places: list[int] = pc.indices_nonzero(flags).to_pylist()
    return places


def flags_at(places: list[int], count: int) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - there is a table, so Arrow is there

    there = set(places)
    return pa.array([at in there for at in range(count)], pa.bool_())
