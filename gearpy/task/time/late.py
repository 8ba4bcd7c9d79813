"""Late records of a source: older than an earlier promise of their own partition.

Whether a record is late depends on the records before it in its partition and on nothing else,
least of all on how many are read at a time. So a replay finds the same ones again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from gearpy.columns.row_schema import RowSchema
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS
from gearpy.messages.data import NOWHERE, Batch, Origin
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


@dataclass(slots=True)  # Not frozen, which would make it slow to make.
class Portion:
    """Some records of one partition in their order, and the promises around them.

    Attributes:
        before_ms: promised before the first one: no record is older, late ones excepted.
        out_of_order_ms: the promise is the newest event time less this. None: it has moved at
            the end, as far as is known.
        aside: of a table, for each row whether it is for the side output, as a
            `pyarrow.BooleanArray`; None if none is. Other records are wrapped.
    """

    values: list[Any]
    timestamps: list[int]
    before_ms: int
    after_ms: int
    out_of_order_ms: int | None = None
    aside: Any = None
    origin: Origin = NOWHERE

    def __len__(self) -> int:
        return len(self.values)

    def picked(self, places: Sequence[int]) -> "Portion":
        """Return the records at some places; not for a table."""
        return replace(
            self,
            values=[self.values[at] for at in places],
            timestamps=[self.timestamps[at] for at in places],
        )

    def part(self, start: int, stop: int | None = None) -> "Portion":
        """Return the records between two places; the promises stay."""
        return replace(
            self,
            values=self.values[start:stop],
            timestamps=self.timestamps[start:stop],
            aside=None if self.aside is None else self.aside[start:stop],
        )

    def filtered(self, flags: Any) -> "Portion":
        values, times = self.values, self.timestamps
        assert type(values) is Table
        assert type(times) is Times
        return replace(
            self,
            values=values.filter(flags),
            timestamps=times.filter(flags),
            aside=None if self.aside is None else self.aside.filter(flags),
        )

    @property
    def is_in_time(self) -> bool:
        """Whether it is seen at a glance that no record is late."""
        times = self.timestamps
        if times[0] < self.before_ms:
            return False
        if type(times) is Times:
            return are_sorted(times) or times.bounds()[0] >= self.after_ms
        return type(times) is OrderedTimes or min(times) >= self.after_ms

    def promised(self) -> Sequence[int]:
        """Return the watermark that was promised before each record; never falls."""
        bound_ms = self.out_of_order_ms
        if bound_ms is None or self.after_ms <= self.before_ms:
            return [self.before_ms] * len(self.values)
        if type(self.timestamps) is Times:
            return promised_times(self.timestamps, before_ms=self.before_ms, bound_ms=bound_ms)
        newest = accumulate(self.timestamps[:-1], max, initial=self.before_ms + bound_ms)
        return [time_ms - bound_ms for time_ms in newest]


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
        self.has_marked = False  #: Times of some records have been made a `LateTime`.

    @property
    def sets_aside(self) -> bool:
        return self._policy == "side"

    def judge(self, portion: Portion) -> Portion:
        """Return the portion as it goes on; may be empty."""
        if portion.is_in_time:
            return portion
        if type(portion.timestamps) is Times:
            return self._judged_table(portion, portion.timestamps)
        promised = portion.promised()
        pairs = zip(portion.timestamps, promised, strict=True)
        late = [at for at, (time_ms, least_ms) in enumerate(pairs) if time_ms < least_ms]
        if not late:
            return portion
        if self._policy == "keep":
            self.has_marked = True
        else:
            self._counters.late_records += len(late)
        return (
            self._without(portion, late)
            if self._policy == "drop"
            else self._changed(portion, late, promised)
        )

    def parted(self, portion: Portion, schema: RowSchema | None) -> tuple[Batch, Batch]:
        """Return the rows that go on, and wrapped rows for the side output; each may be empty."""
        values, times = portion.values, portion.timestamps
        if type(values) is not Table or type(times) is not Times:
            *main, sides = split_sides(values, times)
            return Batch(main[0], main[1]), sides
        if portion.aside is None:
            return Batch(values, times), Batch([], [])
        aside, main_rows = values.filter(portion.aside), others(portion.aside)
        rows = list(aside) if schema is None else schema.rows(aside.batch)
        sides = Batch([Side(self._tag, row) for row in rows], list(times.filter(portion.aside)))
        return Batch(values.filter(main_rows), times.filter(main_rows)), sides

    def _judged_table(self, portion: Portion, times: Times) -> Portion:
        promised = portion.promised()
        least = promised if isinstance(promised, Times) else portion.before_ms
        late = late_rows(times, least)
        if late is None:
            return portion
        if self._policy == "keep":
            self.has_marked = True
            return replace(portion, timestamps=marked(times, least))
        self._counters.late_records += len(places_of(late))
        if self._policy == "restamp":
            return replace(portion, timestamps=restamped(times, least))
        if self._policy == "side":
            return replace(portion, aside=late)
        return portion.filtered(others(late))

    def _without(self, portion: Portion, late: list[int]) -> Portion:
        dropped = set(late)
        return portion.picked([at for at in range(len(portion)) if at not in dropped])

    def _changed(self, portion: Portion, late: list[int], promised: Sequence[int]) -> Portion:
        values, timestamps = list(portion.values), list(portion.timestamps)
        for at in late:
            if self._policy == "side":
                values[at] = Side(self._tag, values[at])
            elif self._policy == "keep":
                timestamps[at] = late_time(timestamps[at], promised[at])
            else:
                timestamps[at] = promised[at]
        return replace(portion, values=values, timestamps=timestamps)


def check_late(policy: str, allowed: Sequence[str]) -> None:
    """Refuse a policy for late records that is none.

    Raises:
        ConfigError: it is none of those allowed.
    """
    if policy not in allowed:
        names = ", ".join(map(repr, allowed))
        raise ConfigError(f"late={policy!r} is unknown: use one of {names}")


def promised_times(times: Times, *, before_ms: int, bound_ms: int) -> Times:
    """Return the promise before each row: the newest time before it, less the bound."""
    import pyarrow as pa  # noqa: PLC0415 - the times are there, so Arrow is
    import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415

    first = pa.array([min(before_ms + bound_ms, MAX_MS)], pa.int64())
    known = pa.concat_arrays([first, times.array.slice(0, max(0, len(times) - 1))])
    return Times(pc.subtract(pc.cumulative_max(known.slice(0, len(times))), bound_ms))


def are_sorted(times: Times) -> bool:
    import pyarrow.compute as pc  # noqa: PLC0415 - the times are there, so Arrow is

    array = times.array
    return not pc.any(pc.less(array.slice(1), array.slice(0, max(0, len(array) - 1)))).as_py()


def late_rows(times: Times, promised: "Times | int") -> "pa.BooleanArray | None":
    import pyarrow.compute as pc  # noqa: PLC0415 - the times are there, so Arrow is

    late = pc.less(times.array, promised.array if isinstance(promised, Times) else promised)
    return late if pc.any(late).as_py() else None


def marked(times: Times, promised: "Times | int") -> Times:
    import pyarrow as pa  # noqa: PLC0415 - the times are there, so Arrow is

    if isinstance(promised, Times):
        return Times(times.array, promised.array)
    return Times(times.array, pa.repeat(pa.scalar(promised, pa.int64()), len(times)))


def restamped(times: Times, promised: "Times | int") -> Times:
    import pyarrow.compute as pc  # noqa: PLC0415 - the times are there, so Arrow is

    least = promised.array if isinstance(promised, Times) else promised
    return Times(pc.max_element_wise(times.array, least))


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
