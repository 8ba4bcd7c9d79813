"""What panes have in common whose windows close; all combinations are in `test_panes`."""

from collections.abc import Callable
from operator import length_hint
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.window.aligned import AlignedPanes
from gearpy.core.window.panes import ORDER, TimedPanes
from gearpy.core.window.sessions import SessionPanes
from gearpy.core.window.trigger import AT_CLOSE, Trigger, after_watermark, every
from gearpy.core.window.windows import SessionWindows, SlidingWindows, TumblingWindows, WindowClock
from gearpy.ids import MAX_MS, MIN_MS
from tests.core.pieces import tiny_pieces
from tests.core.window_cases import FOLDS

MakePanes: TypeAlias = Callable[..., AlignedPanes | SessionPanes]

ANEW: Final = FOLDS["anew"]


def tumbling(trigger: Trigger = AT_CLOSE, *, clock: WindowClock = "event") -> AlignedPanes:
    return AlignedPanes(TumblingWindows(10, clock=clock).triggering(trigger), ANEW)


def sessions(trigger: Trigger = AT_CLOSE, *, clock: WindowClock = "event") -> SessionPanes:
    return SessionPanes(SessionWindows(10, clock=clock).triggering(trigger), ANEW)


BOTH: Final = pytest.mark.parametrize("panes_of", [tumbling, sessions])
EARLY: Final = after_watermark(early=every("7ms"))


@BOTH
def test_they_hold_the_oldest_record_that_is_in_no_result(panes_of: MakePanes) -> None:
    panes = panes_of()
    assert isinstance(panes, TimedPanes)
    assert (panes.hold_ms, panes.clock_ms) == (MAX_MS, MIN_MS)

    for key, time_ms in (("k", 3), ("l", 2), ("k", 5)):
        panes.add(key, "a", time_ms, 0)
    assert panes.hold_ms == 2
    assert len(list(panes.advance(20, 0))) == 2

    assert (panes.hold_ms, panes.clock_ms) == (MAX_MS, 20)


@BOTH
def test_they_wake_in_wall_time_alone(panes_of: MakePanes) -> None:
    plain, early, wall = panes_of(), panes_of(EARLY), panes_of(clock="processing")

    for panes in (plain, early, wall):
        panes.add("k", "a", 0, 1000)

    assert (plain.wake_ms, early.wake_ms, wall.wake_ms) == (MAX_MS, 1007, 1010)
    assert len(list(early.advance(5, 1007))) == 1
    assert (early.wake_ms, early.hold_ms) == (MAX_MS, MAX_MS)


@BOTH
@pytest.mark.parametrize(
    ("trigger", "times"), [(EARLY, (5, 1007)), (after_watermark(early=every(event="7ms")), (9, 0))]
)
def test_others_may_go_on_while_triggers_are_asked(
    panes_of: MakePanes, trigger: Trigger, times: tuple[int, int]
) -> None:
    """Whether they fire or not; the order is that of windows, then of first records."""
    panes, plain = panes_of(trigger), panes_of(trigger)
    for each in (panes, plain):
        for key in range(20):
            assert each.add(key, "a", key % 3, 0) == ()

    with tiny_pieces():
        fired = list(panes.advance(*times))

    assert [each for each in fired if each is not None] == [
        each for each in plain.advance(*times) if each is not None
    ]
    assert len([each for each in fired if each is not None]) == 20
    assert fired.count(None) >= 40, "they are found, and then asked"


def sliding(_: Trigger = AT_CLOSE, *, clock: WindowClock = "event") -> AlignedPanes:
    return AlignedPanes(SlidingWindows(10, 5, clock=clock), FOLDS["in place"])


@pytest.mark.parametrize("panes_of", [tumbling, sliding, sessions])
@pytest.mark.parametrize("trigger", [AT_CLOSE, EARLY])
@given(
    batches=st.lists(
        st.tuples(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60))), st.integers(0, 9))
    )
)
def test_many_records_are_taken_as_each_would_be(
    panes_of: MakePanes, trigger: Trigger, batches: list[tuple[list[tuple[str, int]], int]]
) -> None:
    """Property: in order or not, late ones too; what is left out is what `add` takes."""
    many, single = panes_of(trigger), panes_of(trigger)
    clock_ms = 0
    for batch, step_ms in batches:
        keys, times = [key for key, _ in batch], [time_ms for _, time_ms in batch]
        records = [f"{at}" for at in range(len(batch))]
        fired: list[object] = []
        places = iter(range(len(batch)))
        while not many.add_plainly(places, keys, records, times):
            at = len(batch) - length_hint(places) - 1
            fired.append(many.add(keys[at], records[at], times[at], 0))

        each = [
            single.add(key, record, time_ms, 0)
            for key, record, time_ms in zip(keys, records, times, strict=True)
        ]
        assert [x for x in fired if x != ()] == [x for x in each if x != ()]
        clock_ms += step_ms
        assert [*many.advance(clock_ms, 0)] == [*single.advance(clock_ms, 0)]
        # Numbers of panes only tell their order.
        assert _but_order(many) == _but_order(single)
        assert many.touched == single.touched
        assert many.hold_ms == single.hold_ms


def _but_order(panes: AlignedPanes | SessionPanes) -> dict[Any, Any]:
    if isinstance(panes, SessionPanes):
        return panes.panes
    return {
        start: [(key, each[key][ORDER + 1 :]) for key in each]
        for start, each in panes.panes.items()
    }
