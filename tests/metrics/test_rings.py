"""Rings: one point for each interval, the oldest forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.metrics.rings import Ring


@given(st.integers(1, 50), st.integers(1, 20), st.lists(st.integers(0, 30), max_size=200))
def test_a_ring_keeps_the_first_point_of_each_of_the_last_intervals(
    interval_ms: int, points: int, pauses: list[int]
) -> None:
    """The invariant, against all points in a list."""
    ring: Ring[int] = Ring(interval_ms=interval_ms, points=points)
    firsts: dict[int, int] = {}
    now_ms = 0
    for pause in pauses:
        now_ms += pause
        is_due = ring.is_due(now_ms)
        assert ring.add(now_ms, now_ms) is is_due
        firsts.setdefault(now_ms // interval_ms, now_ms)

    kept = [at_ms for at_ms, _ in ring.since()]

    assert kept == list(firsts.values())[-points:]
    assert len(ring) == len(kept)


def test_only_what_came_after_a_time() -> None:
    ring: Ring[str] = Ring(interval_ms=10, points=5)
    for at_ms in (0, 10, 20):
        ring.add(at_ms, f"at {at_ms}")

    assert ring.since(10) == [(20, "at 20")]


def test_a_clock_that_was_set_back_begins_anew() -> None:
    """Points of a time that is yet to come would stay for long."""
    ring: Ring[str] = Ring(interval_ms=10, points=5)
    ring.add(1000, "later")

    assert ring.add(500, "earlier")
    assert ring.since() == [(500, "earlier")]
