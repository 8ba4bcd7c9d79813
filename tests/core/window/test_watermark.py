"""Event time of a task over its input links, and of a partition over its records."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.window.watermark import BoundedOutOfOrder, WatermarkTracker
from gearpy.ids import MAX_MS, MIN_MS, TaskId

A, B, C = TaskId(0, 0), TaskId(0, 1), TaskId(1, 0)


def test_watermark_is_the_least_of_all_links() -> None:
    tracker = WatermarkTracker([A, B])

    moved = [
        tracker.on_link(A, 10, idle=False),
        tracker.on_link(B, 5, idle=False),
        tracker.on_link(A, 20, idle=False),
        tracker.on_link(B, 15, idle=False),
    ]

    assert moved == [False, True, False, True]
    assert tracker.watermark_ms == 15


def test_idle_link_holds_nothing_back() -> None:
    tracker = WatermarkTracker([A, B])
    tracker.on_link(A, 10, idle=False)

    moved = tracker.on_link(B, MIN_MS, idle=True)

    assert moved
    assert tracker.watermark_ms == 10
    assert not tracker.is_idle


def test_link_that_gives_again_counts_again() -> None:
    tracker = WatermarkTracker([A, B])
    tracker.on_link(A, 10, idle=False)
    tracker.on_link(B, 3, idle=True)

    moved = tracker.on_link(B, 4, idle=False)
    ahead = tracker.on_link(A, 50, idle=False)

    assert (moved, ahead, tracker.watermark_ms) == (False, False, 10)


@given(st.dictionaries(st.sampled_from([A, B, C]), st.integers(0, 30), min_size=3), st.data())
def test_order_in_which_links_become_idle_does_not_matter(
    promised: dict[TaskId, int], data: st.DataObject
) -> None:
    """Property: nor whether they told their promise before."""
    tracker = WatermarkTracker([A, B, C])

    for link in data.draw(st.permutations([A, B, C])):
        if data.draw(st.booleans()):
            tracker.on_link(link, promised[link], idle=False)
    for link in data.draw(st.permutations([A, B, C])):
        tracker.on_link(link, promised[link], idle=True)

    assert tracker.watermark_ms == max(promised.values())


def test_link_that_has_ended_holds_nothing_back() -> None:
    tracker = WatermarkTracker([A, B])
    tracker.on_link(A, MAX_MS, idle=False)

    tracker.on_link(B, 7, idle=False)

    assert tracker.watermark_ms == 7


def test_end_waits_for_an_idle_link() -> None:
    """It may give again; if windows closed for good, its records would all be late."""
    tracker = WatermarkTracker([A, B])
    tracker.on_link(A, 5, idle=True)

    moved = tracker.on_link(B, MAX_MS, idle=False)

    assert moved
    assert tracker.watermark_ms == 5
    assert tracker.is_idle
    assert tracker.on_link(A, 6, idle=False)
    assert tracker.watermark_ms == 6


EVENTS = st.tuples(st.sampled_from([A, B, C]), st.integers(0, 30) | st.just(MAX_MS), st.booleans())


@given(st.lists(EVENTS, max_size=40))
def test_watermark_is_what_a_recount_over_all_links_gives(
    events: list[tuple[TaskId, int, bool]],
) -> None:
    """Invariant: monotone, and the least of the links that are neither idle nor ended.

    If there is none of those, it is the most of the links that have not ended.
    """
    tracker = WatermarkTracker([A, B, C])
    promised = dict.fromkeys([A, B, C], MIN_MS)
    idle = dict.fromkeys([A, B, C], False)
    expected = MIN_MS

    for link, watermark_ms, is_idle in events:
        promised[link] = max(promised[link], watermark_ms)
        idle[link] = is_idle
        open_links = [each for each, at_ms in promised.items() if at_ms < MAX_MS]
        active = [promised[each] for each in open_links if not idle[each]]
        low = min(active) if active else max(map(promised.__getitem__, open_links), default=MAX_MS)
        before, expected = expected, max(expected, low)

        moved = tracker.on_link(link, watermark_ms, idle=is_idle)

        assert tracker.watermark_ms == expected
        assert moved == (expected > before)
        assert tracker.is_idle == (bool(open_links) and not active)


@given(st.integers(0, 20), st.lists(st.lists(st.integers(0, 100), max_size=5), max_size=10))
def test_partition_promises_its_newest_record_less_the_bound(
    bound_ms: int, batches: list[list[int]]
) -> None:
    """Invariant: a function of the records so far, however they were cut; never moves back."""
    order = BoundedOutOfOrder(bound_ms)
    seen: list[int] = []

    for batch in batches:
        order.on_records(batch)
        seen += batch

        assert order.watermark_ms == (max(seen) - bound_ms if seen else MIN_MS)
