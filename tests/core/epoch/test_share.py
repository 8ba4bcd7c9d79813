"""Of how many epochs one is recorded, by what recording has cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.epoch.share import EVERY_MAX, RecordingShare

SECOND_NS = 1_000_000_000


def past_its_start() -> RecordingShare:
    share = RecordingShare(0)
    assert all(share.takes(epoch, 1000 * epoch) for epoch in range(1, 11))
    return share


def test_all_epochs_behind_a_start_are_recorded() -> None:
    quick = RecordingShare(0)
    for epoch in range(1, 200):  # Epochs of 50 ms, for ten seconds.
        assert quick.takes(epoch, 50 * epoch)
        quick.on_recorded(SECOND_NS, busy_ns=2 * SECOND_NS, open_ms=50)
    assert [quick.takes(epoch, 20_000) for epoch in (201, 202)] == [False, False]

    slow = RecordingShare(0)
    slow.on_recorded(SECOND_NS, busy_ns=2 * SECOND_NS, open_ms=60_000)
    assert [slow.takes(epoch, 60_000 * epoch) for epoch in range(1, 10)] == [True] * 8 + [False]


@pytest.mark.parametrize(
    ("cost", "every"), [(0.0, 1), (0.03, 1), (0.06, 2), (0.12, 4), (0.2, 8), (0.9, EVERY_MAX)]
)
def test_it_takes_a_twentieth_of_the_time_of_a_busy_task(cost: float, every: int) -> None:
    """The more it costs, the fewer are recorded; by number, so that tasks have some in common."""
    share = past_its_start()
    share.on_recorded(int(cost * SECOND_NS), busy_ns=SECOND_NS, open_ms=1000)
    assert share.every == every
    taken = [epoch for epoch in range(100, 300) if share.takes(epoch, 10**6)]
    assert taken == [epoch for epoch in range(100, 300) if epoch % every == 0]


def test_of_a_task_that_is_hardly_busy_all_epochs_are_recorded() -> None:
    """Half of what it does would be much; a thousandth of the time is not."""
    share = past_its_start()
    share.on_recorded(SECOND_NS // 1000, busy_ns=SECOND_NS // 500, open_ms=1000)
    assert share.every == 1


def test_it_follows_what_changes() -> None:
    share = past_its_start()
    share.on_recorded(SECOND_NS // 2, busy_ns=SECOND_NS, open_ms=1000)
    assert share.every == 32
    for _ in range(10):
        share.on_recorded(SECOND_NS // 100, busy_ns=SECOND_NS, open_ms=1000)
    assert share.every == 1


@given(costs=st.lists(st.floats(0.001, 0.6), min_size=1, max_size=5), busy=st.floats(0.05, 1.0))
def test_what_is_recorded_stays_within_its_share(costs: list[float], busy: float) -> None:
    share = past_its_start()
    for cost in costs:
        share.on_recorded(int(cost * SECOND_NS), busy_ns=SECOND_NS, open_ms=1000)
    cost_ns, busy_ns = int(costs[-1] * busy * SECOND_NS), int(busy * SECOND_NS)
    spent = 0
    for epoch in range(1000, 1000 + 64 * EVERY_MAX):
        if share.takes(epoch, 1000 * epoch):
            spent += cost_ns
            share.on_recorded(cost_ns, busy_ns=busy_ns, open_ms=1000)
    allowed = max(0.05 * (busy_ns - cost_ns), 0.006 * SECOND_NS)
    assert spent / (64 * EVERY_MAX) <= allowed


def test_a_task_that_cannot_be_measured_changes_nothing() -> None:
    share = past_its_start()
    share.on_recorded(0, busy_ns=0, open_ms=0)
    assert share.every == 1
