"""Windows with triggers, and streams for them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Any, Final

from gearpy.core.window.aligned import AlignedPanes
from gearpy.core.window.counted import CountPanes
from gearpy.core.window.sessions import SessionPanes
from gearpy.core.window.trigger import (
    AT_CLOSE,
    AfterWatermark,
    AnyOf,
    EveryCount,
    EveryEvent,
    EveryWall,
    Trigger,
    after_count,
    after_watermark,
    all_of,
    any_of,
    every,
)
from gearpy.core.window.windows import (
    Accumulation,
    AlignedWindows,
    CountWindows,
    GlobalWindows,
    SessionWindows,
    SlidingWindows,
    TumblingWindows,
    WindowClock,
    Windows,
)
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS
from gearpy.wire.values.payload import decode_value, encode_value
from tests.oracle.windows import Condition, Firing, WindowPlan, WindowReplay

ACCUMULATIONS: Final[tuple[Accumulation, ...]] = ("discarding", "accumulating", "retracting")
CLOCKS: Final[tuple[WindowClock, ...]] = ("event", "processing")

Panes = AlignedPanes | SessionPanes | CountPanes

KINDS: Final[dict[str, Windows]] = {
    "tumbling": TumblingWindows(10),
    "tumbling with an offset": TumblingWindows(7, 3),
    "sliding": SlidingWindows(10, 5),
    "sliding unevenly": SlidingWindows(10, 4, 1),
    "global": GlobalWindows(),
    "session": SessionWindows(5),
    "count": CountWindows(3),
}

TRIGGERS: Final[dict[str, Trigger]] = {
    "default": AT_CLOSE,
    "early count": after_watermark(early=every(count=2)),
    "early event": after_watermark(early=every(event="3ms")),
    "early wall": after_watermark(early=every("3ms")),
    "late count": after_watermark(late=every(count=2)),
    "late event": after_watermark(late=every(event="6ms")),
    "late wall": after_watermark(early=every(event="2ms"), late=every("4ms")),
    "any": after_watermark(
        early=any_of(every(count=3), every(event="4ms")), late=any_of(every("2ms"))
    ),
    "all": after_watermark(early=all_of(every(count=2), every(event="2ms"), every("2ms"))),
    "nested": any_of(all_of(every(count=2), every("3ms")), every(count=4)),
    "after count": after_count(2),
    "each": every(count=1),
}


@dataclass(frozen=True)
class AFold:
    """A fold that keeps the records, so that what comes of them tells which they were."""

    first: Callable[..., Any]
    add: Callable[..., Any]
    merge: Callable[[Any, Any], Any] | None
    result: Callable[[Any], Any] | None = None
    timed: bool = False
    takes_parts: bool = False


def _append(kept: list[Any], record: Any) -> list[Any]:
    kept.append(record)
    return kept


def _extend(kept: list[Any], other: list[Any]) -> list[Any]:
    kept.extend(other)
    other.append("spoilt")  # Nobody may use it any more.
    return kept


FOLDS: Final[dict[str, AFold]] = {
    "anew": AFold(
        lambda record: (record,), lambda kept, record: (*kept, record), lambda a, b: a + b, list
    ),
    "in place": AFold(lambda record: [record], _append, _extend),
    "timed": AFold(
        lambda record, time: [(record, time)],
        lambda kept, record, time: [*kept, (record, time)],
        lambda a, b: a + b,
        lambda kept: [record for record, _ in kept],
        timed=True,
    ),
}


def panes_of(windows: Windows, fold: AFold) -> Panes:
    if isinstance(windows, SessionWindows):
        return SessionPanes(windows, fold)
    if isinstance(windows, CountWindows):
        return CountPanes(windows, fold)
    assert isinstance(windows, AlignedWindows)
    return AlignedPanes(windows, fold)


def variants_of(windows: Windows, trigger: Trigger) -> Iterator[Windows]:
    for accumulation, lateness, clock in product(ACCUMULATIONS, (0, 4, 25), CLOCKS):
        try:
            yield replace(
                windows,
                trigger=trigger,
                accumulation=accumulation,
                allowed_lateness_ms=lateness,
                clock=clock,
            )
        except ConfigError:
            continue


def restarted(panes: Panes, windows: Windows, fold: AFold) -> Panes:
    """Return panes that go on from what others had, stored and read again, in any order."""
    again = panes_of(windows, fold)
    if isinstance(panes, AlignedPanes):
        assert isinstance(again, AlignedPanes)
        kept = [
            (start, stored({key: of[key] for key in reversed([*of])}))
            for start, of in reversed(panes.panes.items())
        ]
        again.restore(panes.clock_ms, kept)
    else:
        assert not isinstance(again, AlignedPanes)
        again.restore(panes.clock_ms, stored(dict(reversed(panes.panes.items()))))
    return again


def stored(value: Any) -> Any:
    return decode_value(encode_value(value))


def random_steps(seed: int, length: int = 40) -> list[tuple[Any, ...]]:
    """Return a stream out of order: records, steps of time, and at last its end."""
    rng = Random(seed)
    steps: list[tuple[Any, ...]] = []
    watermark, newest = -5, 0
    for number in range(length):
        newest += rng.choice((0, 0, 1, 1, 2, 3, 9))
        if rng.random() < 0.7:
            time = newest - rng.choice((0, 0, 1, 2, 5, 9, 14, 22))
            steps.append(("record", rng.choice("aab"), number, time))
        elif rng.random() < 0.7:
            watermark = max(watermark, newest - rng.randrange(14))
            steps.append(("watermark", watermark))
        else:
            steps.append(("wall",))
        if rng.random() < 0.5:
            steps.append(("pass", rng.randrange(4)))
    return [*steps, ("watermark", MAX_MS)]


def check_stream(
    windows: Windows, fold: AFold, steps: list[tuple[Any, ...]], *, restarts: bool = False
) -> None:
    panes, replay = panes_of(windows, fold), WindowReplay(plan_of(windows), 1000)
    now, event, seen = 1000, -(10**6), []
    for step in steps:
        if step[0] == "pass":
            now += step[1]
            replay.pass_wall(now)
            continue
        if step[0] == "record":
            _, key, value, time = step
            late = len(replay.late)
            got, expected = panes.add(key, value, time, now), replay.on_record(key, value, time)
            assert (got is None) == (len(replay.late) > late), f"late at {step}"
        else:
            event = max(event, step[1]) if step[0] == "watermark" else event
            got = [each for each in panes.advance(event, now) if each is not None]
            expected = replay.on_clocks(event, now)
        rows = [(key, list(value), *rest, time) for (key, value, *rest), time in got or ()]
        assert _alike(rows, windows) == _alike(map(_row_of, expected), windows), f"at {step}"
        seen += [(row, list(of[0][1])) for row, of in zip(rows, got or (), strict=True)]
        assert panes.hold_ms == replay.hold_ms, f"hold at {step}"
        if restarts:
            panes = restarted(panes, windows, fold)
        elif got:
            assert all(row[1] == value for row, value in seen), "a result has changed"
    assert not panes.panes, "all is freed"
    if isinstance(panes, AlignedPanes):
        assert not any(panes.touched.values()), "of windows, too"


def plan_of(windows: Windows) -> WindowPlan:
    trigger = windows.trigger
    early: Any = trigger
    late: Any = None
    if isinstance(trigger, AfterWatermark):
        early, late = trigger.early, trigger.late
    shape = {name: getattr(windows, name) for name in _SHAPE if hasattr(windows, name)}
    return WindowPlan(
        kind=_KINDS[type(windows)],
        clock=windows.clock,
        early=None if early is None else _condition_of(early),
        late=None if late is None else _condition_of(late),
        is_bare=early is trigger,
        accumulation=windows.accumulation,
        lateness_ms=windows.allowed_lateness_ms,
        **shape,
    )


_SHAPE: Final = ("size_ms", "every_ms", "offset_ms", "gap_ms", "records")
_KINDS: Final[dict[type, Any]] = {
    TumblingWindows: "tumbling",
    SlidingWindows: "sliding",
    GlobalWindows: "global",
    SessionWindows: "session",
    CountWindows: "count",
}


def _condition_of(trigger: Any) -> Condition:
    match trigger:
        case EveryCount():
            return ("count", trigger.records)
        case EveryEvent():
            return ("event", trigger.interval_ms)
        case EveryWall():
            return ("wall", trigger.interval_ms)
        case _:
            kind = "any" if isinstance(trigger, AnyOf) else "all"
            return (kind, *map(_condition_of, trigger.triggers))


def _row_of(firing: Firing) -> tuple[Any, ...]:
    values = [arrival.row for arrival in firing.arrivals]
    return (firing.key, values, *firing[2:])


def _alike(rows: Iterable[Any], windows: Windows) -> list[Any]:
    """Return rows to compare: merged sessions have their records in another order."""
    if isinstance(windows, SessionWindows):
        return [(key, sorted(values), *rest) for key, values, *rest in rows]
    return [tuple(row) for row in rows]
