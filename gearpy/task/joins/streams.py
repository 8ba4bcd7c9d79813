"""The stage that joins two streams by key, and the specification of a join."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, Final, Literal, TypeAlias

from gearpy.core.base.copies import own_each
from gearpy.core.base.fields import WITH_ATTRIBUTES, FieldGetter
from gearpy.core.base.one_key import are_plain, one_key
from gearpy.core.base.times import Duration, duration_ms
from gearpy.core.join.asof import AsOfJoin, Direction
from gearpy.core.join.interval import IntervalJoin
from gearpy.core.join.keys import KeysOfSides
from gearpy.core.join.latest import LatestJoin
from gearpy.core.join.session import SessionJoin
from gearpy.core.join.sides import LEFT, PAIR, RIGHT, How, Join, Pairing, Row
from gearpy.core.join.window import WindowJoin
from gearpy.core.window.trigger import AfterWatermark
from gearpy.core.window.windows import (
    AlignedWindows,
    LocalSlidingWindows,
    LocalWindows,
    SessionWindows,
    Windows,
    too_many_windows,
)
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.task.api.failure import USER_ERRORS, operator_error
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.window_result import (
    CoGroup,
    JoinResult,
    LocalCoGroup,
    LocalJoinResult,
    local_bounds,
)
from gearpy.task.chain.event_gate import EventGate, Waits, marked_late
from gearpy.task.chain.stage import Stage, step_bulk
from gearpy.task.joins.join_schema import SIDE_NAMES, JoinSchema

_log = logging.getLogger(__name__)

#: A user's function of a left and a right value; None stands for one that is missing.
Combine: TypeAlias = Callable[[Any, Any], Any]
JoinKind: TypeAlias = Literal["window", "cogroup", "interval", "asof", "latest"]
_Keyed: TypeAlias = tuple[int, Any, Any]

_left: Final = itemgetter(1)  # Of a row.
_right: Final = itemgetter(2)
_HOWS: Final = ("inner", "left", "right", "outer")
_HOWS_OF_LEFT: Final = ("left", "inner")
_DIRECTIONS: Final = ("backward", "forward", "nearest")

#: Key of a record that `as_left` or `as_right` has made; both inputs are partitioned by it.
join_key: Final[Callable[[Any], Any]] = itemgetter(1)


def as_left(key: Callable[[Any], Any]) -> Callable[[Any], _Keyed]:
    return _wrap(LEFT, key)


def as_right(key: Callable[[Any], Any]) -> Callable[[Any], _Keyed]:
    return _wrap(RIGHT, key)


def _wrap(side: int, key: Callable[[Any], Any]) -> Callable[[Any], _Keyed]:
    if not isinstance(key, FieldGetter):
        return lambda value: (side, key(value), value)
    name = key.name

    def wrap(value: Any) -> _Keyed:
        if type(value) in WITH_ATTRIBUTES:  # As the getter does, without its calls.
            try:
                found = getattr(value, name)
            except AttributeError:
                return side, key(value), value  # It says what there is.
            if type(found) is not float:
                return side, found, value
        return side, key(value), value

    return wrap


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSpec:
    """A join; made by `over`, `cogroup`, `interval`, `asof` or `latest`, which check it.

    Attributes:
        description: all that the state depends on, for plans, ids, and snapshots.
        start: makes it; is given how many rows it yields at once.
        interval_ms: of one by intervals, how much older and newer right records may be.
        direction: of an as-of join.
        tolerance_ms: of one, how far away right records may be; None for any distance.
        combine: makes a result of a pair; None: `JoinResult`.
        windows: those in which records meet, if it has any.
    """

    kind: JoinKind
    description: str
    start: Callable[[int], Join]
    combine: Combine | None = None
    how: How = "inner"
    interval_ms: tuple[int, int] | None = None
    direction: Direction = "backward"
    tolerance_ms: int | None = None
    windows: Windows | None = None

    @property
    def why_rows(self) -> str:
        """Why it has no form for columns; empty if it has one."""
        if self.kind == "cogroup":
            return "it gives lists of records to functions over rows"
        if isinstance(self.windows, LocalWindows | LocalSlidingWindows):
            return "joins over windows of a local clock are in rows"
        return ""

    @classmethod
    def over(
        cls, windows: Windows, *, how: How = "inner", combine: Combine | None = None
    ) -> "JoinSpec":
        """Return a join of all records of a key in a window.

        Raises:
            ConfigError: the windows are none for joins, or an argument is not known.
        """
        _refuse([*_of_windows(windows), *_of_how(how, _HOWS), *_of_combine(combine)])
        return cls(
            kind="window",
            description=f"{how} join, {_text_of(windows)}",
            start=partial(_window_join, windows, how, False),
            combine=combine,
            how=how,
            windows=windows,
        )

    @classmethod
    def cogroup(cls, windows: Windows) -> "JoinSpec":
        """Return the spec that gathers all records of a key in a window.

        Raises:
            ConfigError: the windows are none for joins.
        """
        _refuse(_of_windows(windows))
        return cls(
            kind="cogroup",
            description=f"cogroup, {_text_of(windows)}",
            start=partial(_window_join, windows, "outer", True),
            windows=windows,
        )

    @classmethod
    def interval(
        cls,
        *,
        before: Duration,
        after: Duration,
        how: How = "inner",
        combine: Combine | None = None,
    ) -> "JoinSpec":
        """Return a join of records with ``left - before <= right <= left + after``.

        Raises:
            ConfigError: these are no durations, or an argument is not known.
        """
        older_ms, mistakes = _duration("before", before)
        newer_ms, more = _duration("after", after)
        _refuse([*mistakes, *more, *_of_how(how, _HOWS), *_of_combine(combine)])
        return cls(
            kind="interval",
            description=f"{how} interval join, {older_ms} ms before to {newer_ms} ms after",
            start=lambda limit: IntervalJoin(
                before_ms=older_ms, after_ms=newer_ms, how=how, limit=limit
            ),
            combine=combine,
            how=how,
            interval_ms=(older_ms, newer_ms),
        )

    @classmethod
    def asof(
        cls,
        *,
        tolerance: Duration | None = None,
        direction: Direction = "backward",
        how: Literal["left", "inner"] = "left",
        combine: Combine | None = None,
    ) -> "JoinSpec":
        """Return a join of each left record with the nearest right one.

        Raises:
            ConfigError: the tolerance is no duration, or an argument is not known.
        """
        mistakes: list[str] = []
        tolerance_ms: int | None = None
        if tolerance is not None:
            tolerance_ms, mistakes = _duration("tolerance", tolerance)
        if direction not in _DIRECTIONS:
            mistakes.append(f"direction={direction!r} is unknown: use {_one_of(_DIRECTIONS)}")
        _refuse([*mistakes, *_of_how(how, _HOWS_OF_LEFT), *_of_combine(combine)])
        within = "any distance" if tolerance_ms is None else f"{tolerance_ms} ms"
        return cls(
            kind="asof",
            description=f"{how} as-of join, {direction}, {within}",
            start=lambda limit: AsOfJoin(
                direction=direction, tolerance_ms=tolerance_ms, how=how, limit=limit
            ),
            combine=combine,
            how=how,
            direction=direction,
            tolerance_ms=tolerance_ms,
        )

    @classmethod
    def latest(
        cls, *, how: Literal["left", "inner"] = "left", combine: Combine | None = None
    ) -> "JoinSpec":
        """Return a join of each left record with the newest right record of its key by now.

        Raises:
            ConfigError: an argument is not known.
        """
        _refuse([*_of_how(how, _HOWS_OF_LEFT), *_of_combine(combine)])
        return cls(
            kind="latest",
            description=f"{how} join with the latest",
            start=lambda _: LatestJoin(how=how),
            combine=combine,
            how=how,
        )


class JoinStage(Stage):
    """Joins two streams by key. Records are ``(side, key, value)``, as `as_left` makes them.

    The records that a join keeps are keyed state. It is encoded beside the task, when it is stored;
    so results have copies of records that could be changed.

    A record whose key cannot be hashed is rejected. So is a pair on which ``combine`` raises, while
    other pairs of the same records come out: quarantine has the pair,
    ``(PAIR, key, (left, right, start, end))``, which is combined once more when it is given again.
    Records that came too late are counted and dropped.

    A record without a partner comes out with its own time, long after the watermark has passed it.
    So stages behind it are told of the watermark only as far as no such record waits: the stage is
    one that `Stage.defers`, whose `process` does yield known results at once.

    Args:
        waits: which records wait for event time; all, where it is to see their order.
        schema: of the results, if it is known: of what a join over windows has kept in columns.
    """

    defers = True

    def __init__(
        self,
        context: TaskContext,
        name: str,
        spec: JoinSpec,
        *,
        waits: Waits = "late",
        schema: JoinSchema | None = None,
    ) -> None:
        self.name = name
        self._context = context
        self._spec = spec
        kinds = (CoGroup, LocalCoGroup) if spec.kind == "cogroup" else (JoinResult, LocalJoinResult)
        self._made, self._bounds_of = local_bounds(spec.windows, *kinds)
        self._join = spec.start(context.limits.batch_records)
        self._watermark_ms = MIN_MS
        self._gate = EventGate(context, join_key, waits=waits, sides_of=_right_first)
        self._keys = KeysOfSides()
        self._schema = schema
        self._gone: list[tuple[Any, list[Any]]] = []

    def process(self, batch: Batch) -> Iterator[Batch]:
        """Yield the results that are known now; a pair is of two partitions, and of no origin."""
        batch = self._joinable(batch)
        values = batch.values
        if values and values[0][0] == PAIR:  # Given again: one alone.
            yield from self._results([(key, *pair) for _, key, pair in values], batch.timestamps)
            return
        if not self._keys.is_settled:
            self._judge_keys(partial(self._keys.take, values))
        batch = self._gate.take(batch)
        if batch.values:
            yield from self._joined(batch)
        if len(self._gate):
            yield from self._due(self._watermark_ms)

    def _due(self, watermark_ms: int) -> Iterator[Batch]:
        """Take the records whose turn has come, each late one when event time is where it was."""
        for at_ms, batch in self._gate.due(watermark_ms):
            if at_ms == MIN_MS:
                yield from self._joined(batch)
                continue
            yield from self._advance(max(at_ms, self._watermark_ms))
            for results in self._joined(batch):
                yield marked_late(results, at_ms)

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        """Yield the results that were waiting for it."""
        if watermark_ms == MAX_MS:
            self._judge_keys(self._keys.check)
        if len(self._gate):
            yield from self._due(watermark_ms)
        yield from self._advance(watermark_ms)

    def _advance(self, watermark_ms: int) -> Iterator[Batch]:
        self._watermark_ms = watermark_ms
        for rows, times in self._join.on_watermark(watermark_ms):
            yield from self._results(rows, times)

    def snapshot(self) -> list[Any]:
        self._gate.tell()
        gone, self._gone = self._gone, []
        for namespace, keys in gone:
            self._kept.delete(keys, namespace)
        for namespace, keys, values, steps in self._join.changes():
            if values is None:
                self._kept.delete(keys, namespace)
            else:
                self._kept.put_all(keys, values, namespace)
            if values is not None and steps is not None:
                self._kept.copies.add(self._kept.encoded(steps, values))
        return [self._spec.description, self._watermark_ms]

    def restore(self, state: list[Any] | None) -> None:
        """Go on from the watermark, and from the keyed state.

        Raises:
            ConfigError: it was kept by another join.
        """
        self._watermark_ms = watermark_kept(state, self._spec.description)
        self._kept = step_bulk(self._context, "joins", self.place, operator=self.name)
        self._kept.holds(self._join.held, self._join.tell_again)
        tables: dict[Any, dict[Any, Any]] = {}
        for namespace, pairs in self._kept.restored():
            if namespace[0] in SIDE_NAMES:
                tables[namespace] = pairs
            else:
                self._join.load(namespace, pairs)
        if tables:
            self._load_tables(tables)
        self._join.resume(self._watermark_ms)
        if tables:
            self._join.tell_again()
        self._gate.restore(self.place, self.name)

    def _load_tables(self, tables: dict[Any, dict[Any, Any]]) -> None:
        """Take over what joins over windows have kept in columns; it is told as records."""
        if self._schema is None:
            raise ConfigError(
                f"{self.name}: its state is in columns, and those of its records are not known any "
                "more: annotate the functions before it with the class of their records, or give "
                "the join another name to begin anew"
            )
        from gearpy.task.joins.group_cells import (  # noqa: PLC0415 - NumPy
            kept_in_sessions,
            kept_records,
        )

        self._gone = [(namespace, [*pairs]) for namespace, pairs in tables.items()]
        windows: Any = self._spec.windows
        if isinstance(windows, SessionWindows):
            for records, times in kept_in_sessions(tables, self._schema):
                assert not [*self._join.on_records(records, times)], "no session is over"
            return
        for piece, pairs in kept_records(tables, windows, self._schema).items():
            self._join.load(("records", piece, 0), pairs)

    @property
    def hold_ms(self) -> int:
        return min(self._join.hold_ms, self._gate.first_ms)

    @property
    def passed_ms(self) -> int:
        """The event time behind the join. Only grows: no later result is older."""
        return min(self._watermark_ms, self._join.hold_ms)

    def _joined(self, batch: Batch) -> Iterator[Batch]:
        values = batch.values
        if not are_plain(map(join_key, values)):  # Also those that were stored.
            values = [(side, one_key(key), value) for side, key, value in values]
        late = self._join.late_records
        for rows, times in self._join.on_records(values, batch.timestamps):
            yield from self._results(rows, times)
        self._context.counters.late_records += self._join.late_records - late

    def _joinable(self, batch: Batch) -> Batch:
        if are_plain(map(join_key, batch.values)):
            return batch
        good: list[Any] = []
        times: list[int] = []
        for value, time in zip(batch.values, batch.timestamps, strict=True):
            side, key, record = value
            try:
                key = one_key(key)
                hash(key)
            except USER_ERRORS as error:
                self._reject(error, value, record, time)
                continue
            good.append((side, key, record))
            times.append(time)
        return batch.giving(good, times)

    def _judge_keys(self, judge: Callable[[], None]) -> None:
        """Fail if no two records can ever meet; no record is to blame, so none is rejected."""
        try:
            judge()
        except TypeError as error:
            if self._keys.is_sure and not self._context.rejects.may_go_on:
                raise OperatorError(operator=self.name, cause=f"{error}") from error
            _log.warning("%s: %s", self.name, error)

    def _results(self, rows: list[Row], times: list[int]) -> Iterator[Batch]:
        """Yield the results of the rows, with copies of records that are kept or in other pairs."""
        if not rows:
            yield Batch([], [])  # Others may go on.
            return
        rows = _own_rows(rows)
        combine = self._spec.combine
        if combine is None:
            if (bounds_of := self._bounds_of) is None:
                yield Batch(list(map(self._made, rows)), times)
            else:
                made = [self._made((*row, *bounds_of(row[3], row[4]))) for row in rows]
                yield Batch(made, times)
            return
        results: list[Any] = []
        rejected: set[int] = set()
        for key, left, right, start, end in rows:
            try:
                results.append(combine(left, right))
            except USER_ERRORS as error:
                at = len(results) + len(rejected)
                pair = (PAIR, key, (left, right, start, end))
                self._reject(error, pair, JoinResult(key, left, right, start, end), times[at])
                rejected.add(at)
        if rejected:
            times = [time for at, time in enumerate(times) if at not in rejected]
        if results:
            yield Batch(results, times)

    def _reject(self, error: BaseException, value: _Keyed, shown: Any, time: int) -> None:
        blamed = operator_error(self.name, error, record=shown, event_time_ms=time)
        self._context.rejects.take(value, time, blamed, place=self.place)


def watermark_kept(state: list[Any] | None, description: str) -> int:
    """Return the watermark of a snapshot of a join.

    Raises:
        ConfigError: it was kept by another join.
    """
    if state is None:
        return MIN_MS
    kept, watermark_ms = state
    if kept != description:
        raise ConfigError(
            f"snapshot is of: {kept}; the program has: {description}: "
            "what was kept for the one is of no use to the other, give it another name"
        )
    found: int = watermark_ms
    return found


def _right_first(values: list[_Keyed]) -> list[int]:
    return list(map(RIGHT.__sub__, map(itemgetter(0), values)))


def _own_rows(rows: list[Row]) -> list[Row]:
    """Return rows with records of their own; these, if no record can change."""
    lefts, rights = list(map(_left, rows)), list(map(_right, rows))
    mine, others = own_each(lefts), own_each(rights)
    if mine is lefts and others is rights:
        return rows
    pairs = zip(rows, mine, others, strict=True)
    return [(key, left, right, start, end) for (key, _, _, start, end), left, right in pairs]


def _window_join(windows: Windows, how: How, gathers: bool, limit: int) -> Join:  # noqa: FBT001
    pairing = Pairing(how, gathers=gathers, limit=limit)
    if isinstance(windows, SessionWindows):
        return SessionJoin(windows.gap_ms, pairing)
    assert isinstance(windows, AlignedWindows), "checked when the spec was made"
    return WindowJoin(windows, pairing)


def _refuse(mistakes: Sequence[str]) -> None:
    if mistakes:
        raise ConfigError(*mistakes)


def _of_windows(windows: object) -> list[str]:
    if not isinstance(windows, Windows):
        return [f'a join takes windows such as gp.tumbling("10s"), not {windows!r:.100}']
    if not isinstance(windows, AlignedWindows | SessionWindows):
        name = type(windows).__name__
        return [f"a join has no {name}: use tumbling, sliding, session or global windows"]
    mistakes = too_many_windows(windows)
    if windows.trigger != AfterWatermark():
        mistakes.append("windows of a join fire once, when they close: leave out the trigger")
    if windows.accumulation != "discarding":
        mistakes.append(f"windows of a join fire once: leave out {windows.accumulation}()")
    if windows.allowed_lateness_ms:
        mistakes.append("windows of a join take nothing late: leave out allowed_lateness(...)")
    if windows.clock != "event":
        mistakes.append(f"windows of a join are of event time: leave out clock={windows.clock!r}")
    return mistakes


def _text_of(windows: Windows) -> str:
    if isinstance(windows, SessionWindows):
        return f"session windows, {windows.gap_ms} ms"
    numbers = [
        f"{name.removesuffix('_ms')} {value} ms"
        for name in ("size_ms", "every_ms", "offset_ms")
        if (value := getattr(windows, name, 0))
    ]
    if isinstance(windows, LocalWindows | LocalSlidingWindows):
        months = getattr(windows, "months", 0)
        numbers += [*([f"{months} months"] if months else []), windows.zone]
    return ", ".join([type(windows).__name__, *numbers])


def _of_how(how: str, allowed: Sequence[str]) -> list[str]:
    return [] if how in allowed else [f"how={how!r} is unknown: use {_one_of(allowed)}"]


def _of_combine(combine: object) -> list[str]:
    if combine is None or callable(combine):
        return []
    return [f"combine={combine!r} is no function: give one of the left and the right record"]


def _duration(name: str, value: Duration) -> tuple[int, list[str]]:
    try:
        return duration_ms(value), []
    except ConfigError as error:
        return 0, [f"{name}: {error}"]


def _one_of(names: Sequence[str]) -> str:
    return f"one of {', '.join(map(repr, names))}"
