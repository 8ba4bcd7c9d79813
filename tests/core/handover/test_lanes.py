"""Several lanes read as one stream."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.handover.lanes import LanePlace, Lanes
from gearpy.ids import MIN_MS


def seen(ends: dict[str, int], *, idle_ms: int = 100, until: dict[str, int] | None = None) -> Lanes:
    lanes = Lanes({}, until=until, idle_ms=idle_ms)
    lanes.on_listing(dict.fromkeys(ends, 0), ends, now_ms=0)
    return lanes


def test_the_lane_that_is_furthest_behind_is_next() -> None:
    lanes = seen({"w-1": 2, "w-0": 2})

    order = []
    for watermark_ms in (50, 20, 30, 60):
        lane = lanes.next()
        assert lane is not None
        order.append(lane)
        lanes.on_batch(lane, watermark_ms, now_ms=0)

    assert order == ["w-0", "w-1", "w-1", "w-0"]
    assert lanes.next() is None


def test_a_batch_that_was_begun_is_read_to_its_end_first() -> None:
    lanes = seen({"a-0": 1, "b-0": 1})

    lanes.on_rows("b-0", 3)

    assert lanes.next() == "b-0"
    assert lanes.of("b-0") == LanePlace(0, 3, MIN_MS)


def test_all_silent_lanes_are_idle_and_promise_what_the_furthest_does() -> None:
    lanes = seen({"a-0": 1, "b-0": 1}, idle_ms=100)
    lanes.on_batch("a-0", 20, now_ms=0)
    lanes.on_batch("b-0", 10, now_ms=0)

    lanes.on_listing({}, {"a-0": 1, "b-0": 1}, now_ms=100)

    assert lanes.is_idle(100)
    assert lanes.watermark_ms == 20


def test_a_silent_lane_counts_again_when_it_has_something() -> None:
    lanes = seen({"a-0": 1, "b-0": 1}, idle_ms=100)
    lanes.on_batch("a-0", 20, now_ms=0)
    lanes.on_batch("b-0", 10, now_ms=0)
    lanes.on_listing({}, {"a-0": 2, "b-0": 2}, now_ms=200)

    lanes.on_batch("a-0", 90, now_ms=200)

    assert lanes.watermark_ms == 10
    lanes.on_batch("b-0", 50, now_ms=200)
    assert lanes.watermark_ms == 50


def test_with_an_end_nothing_behind_it_is_read() -> None:
    """Also no lane that has begun since, and lanes that are done hold nothing back."""
    lanes = seen({"a-0": 3, "b-0": 1, "c-0": 5}, until={"a-0": 2, "b-0": 1})

    lanes.on_batch("b-0", 10, now_ms=0)
    lanes.on_batch("a-0", 30, now_ms=0)
    halfway = lanes.is_finished
    promised_ms = lanes.watermark_ms
    lanes.on_batch("a-0", 60, now_ms=0)

    assert not halfway
    assert promised_ms == 30
    assert lanes.is_finished
    assert lanes.next() is None
    assert sorted(lanes.names) == ["a-0", "b-0"]


def test_an_end_of_nothing_is_there_at_once() -> None:
    """A partition without lanes ends; without an end it is idle."""
    assert Lanes({}, until={}).is_finished
    assert not Lanes({}).is_finished
    assert Lanes({}).is_idle(0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50), st.booleans()), max_size=30))
def test_the_watermark_never_falls(steps: list[tuple[str, int, bool]]) -> None:
    """Property: whatever lanes promise and whenever they come, and a copy goes on alike."""
    lanes, now_ms = Lanes({}, idle_ms=20), 0
    ends: dict[str, int] = {}
    for lane, promised_ms, is_new in steps:
        now_ms += promised_ms
        before_ms = lanes.watermark_ms
        if is_new:
            ends[lane] = ends.get(lane, 0) + 1
            lanes.on_listing(dict.fromkeys(ends, 0), ends, now_ms=now_ms)
        elif (turn := lanes.next()) is not None:
            lanes.on_batch(turn, promised_ms, now_ms=now_ms)

        assert lanes.watermark_ms >= before_ms
        again = Lanes(lanes.places, watermark_ms=lanes.watermark_ms, idle_ms=20)
        again.on_listing(dict.fromkeys(ends, 0), ends, now_ms=now_ms)
        assert again.next() == lanes.next()
