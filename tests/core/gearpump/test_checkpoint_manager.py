"""Checkpoints by event time: the same for all tasks, and no record on the wrong side."""

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.gearpump.checkpoint_manager import (
    CheckpointManager,
    CheckpointTimes,
    InMemoryCheckpointStore,
)
from gearpy.core.gearpump.monoid_state import NonWindowState
from gearpy.core.gearpump.monoids import SumGroup
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS

TIMES = st.integers(-50, 150)


class Json:
    """A serializer for tests."""

    def to_bytes(self, value: Any) -> bytes:
        """Return it as JSON."""
        return json.dumps(value).encode()

    def from_bytes(self, data: bytes) -> Any:
        """Read JSON."""
        return json.loads(data)


class AStore(InMemoryCheckpointStore):
    """Tells whether it was closed."""

    is_closed = False

    def close(self) -> None:
        """Note it."""
        self.is_closed = True


def a_manager(interval_ms: int | None = 10) -> CheckpointManager:
    """Return a manager with a store of its own."""
    return CheckpointManager(interval_ms, InMemoryCheckpointStore())


# -- CheckpointTimes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("newest_ms", "time_ms"), [(0, 10), (9, 10), (10, 20), (-1, 0), (-10, 0), (-11, -10)]
)
def test_time_is_the_next_multiple_of_the_interval(newest_ms: int, time_ms: int) -> None:
    """Later than the newest record, also before the epoch."""
    times = CheckpointTimes(10)
    times.on_report(newest_ms=newest_ms)

    assert times.choose() == time_ms


def test_no_time_is_chosen_before_the_first_record() -> None:
    """It would be a guess."""
    assert CheckpointTimes(10).choose() is None


def test_no_time_is_chosen_twice() -> None:
    """A checkpoint without a record behind the last one would hold the same."""
    times = CheckpointTimes(10)
    times.on_report(newest_ms=5)
    times.choose()

    nothing_new = times.choose()
    times.on_report(newest_ms=10)  # At the time itself: not part of the checkpoint there.

    assert nothing_new is None
    assert times.choose() == 20


def test_times_that_others_have_chosen_are_passed_over() -> None:
    """After a restart the next one is later than that of the checkpoint."""
    times = CheckpointTimes(10)
    times.pass_over(30)
    times.on_report(newest_ms=7)

    assert times.choose() is None
    times.on_report(newest_ms=31)
    assert times.choose() == 40


@pytest.mark.parametrize(("span_ms", "interval_ms"), [(0, 10), (9, 10), (10, 20), (35, 40)])
def test_interval_is_longer_than_the_largest_span(span_ms: int, interval_ms: int) -> None:
    """Else a source would be past the next cut before it has promised this one."""
    times = CheckpointTimes(10)
    times.on_report(newest_ms=1, span_ms=span_ms)
    times.on_report(newest_ms=1, span_ms=1)

    assert times.interval_ms == interval_ms
    assert times.choose() == interval_ms


def test_last_time_is_the_end() -> None:
    """Every watermark gets there, and no record is later."""
    times = CheckpointTimes(10)
    times.on_report(newest_ms=MAX_MS - 1)

    assert times.choose() == MAX_MS
    assert times.choose() is None


@pytest.mark.parametrize("interval_ms", [0, -1])
def test_interval_must_be_positive(interval_ms: int) -> None:
    """The text names the value."""
    with pytest.raises(ConfigError, match=f"is {interval_ms} ms, must be more than 0"):
        CheckpointTimes(interval_ms)


@given(
    st.integers(1, 20),
    st.lists(st.tuples(TIMES, st.integers(0, 100)) | st.none(), max_size=40),
)
def test_times_rise_and_are_later_than_what_was_reported(
    interval_ms: int, steps: list[tuple[int, int] | None]
) -> None:
    """The invariant; and behind a newer record there is always another time."""
    times, chosen, newest = CheckpointTimes(interval_ms), [MIN_MS], MIN_MS

    for step in steps:
        if step is not None:
            times.on_report(newest_ms=step[0], span_ms=step[1])
            newest = max(newest, step[0])
            continue
        time_ms = times.choose()
        assert (time_ms is None) == (newest == MIN_MS or newest < chosen[-1])
        if time_ms is not None:
            assert time_ms > max(newest, chosen[-1])
            assert time_ms % interval_ms == 0
            chosen.append(time_ms)


# -- CheckpointManager: times of its own -------------------------------------------------------


def test_first_record_sets_the_time_of_the_first_checkpoint() -> None:
    """Gearpump: `CheckpointManager.update`."""
    manager = a_manager()

    assert manager.checkpoint_time_ms is None
    assert [manager.update(time_ms) for time_ms in (12, 3, 25)] == [20, 20, 20]
    assert manager.newest_ms == 25


def test_checkpoint_is_due_when_the_watermark_is_there() -> None:
    """Then nothing that belongs to it will come."""
    manager = a_manager()
    before = manager.should_checkpoint(MAX_MS)
    manager.update(12)

    assert [before, manager.should_checkpoint(19), manager.should_checkpoint(20)] == [
        False,
        False,
        True,
    ]


def test_next_checkpoint_is_later_than_all_that_has_come() -> None:
    """What was right of one is left of the next."""
    manager = a_manager()
    for time_ms in (12, 47):
        manager.update(time_ms)

    assert manager.checkpoint(20, b"") == 50


def test_without_later_records_there_is_no_next_checkpoint() -> None:
    """The next record sets it; a late one does not, as its time has passed."""
    manager = a_manager()
    manager.update(12)

    assert manager.checkpoint(20, b"") is None
    assert manager.update(13) is None
    assert manager.update(20) == 30


def test_record_at_the_time_of_a_checkpoint_gets_into_the_next() -> None:
    """Gearpump forgets it until another one comes."""
    manager = a_manager()
    for time_ms in (12, 20):
        manager.update(time_ms)

    assert manager.checkpoint(20, b"") == 30


def test_span_of_the_records_makes_the_interval_longer() -> None:
    """From the next time on."""
    manager = a_manager()
    manager.update(12, span_ms=25)

    assert manager.checkpoint_time_ms == 30


def test_other_times_are_not_stored() -> None:
    """A checkpoint holds what is older than its time, and no other has been waited for."""
    manager = a_manager()
    manager.update(12)

    with pytest.raises(AssertionError, match="30, 20"):
        manager.checkpoint(30, b"")


def test_checkpoint_comes_back_by_its_time() -> None:
    """And later times follow."""
    store = InMemoryCheckpointStore()
    manager = CheckpointManager(10, store)
    manager.update(12)
    manager.checkpoint(20, b"kept")

    restarted = CheckpointManager(10, store)

    assert restarted.recover(20) == b"kept"
    assert [restarted.update(time_ms) for time_ms in (15, 20)] == [None, 30]


def test_unknown_time_has_no_checkpoint() -> None:
    """Not even one that is nearby."""
    assert a_manager().recover(20) is None


def test_store_is_closed() -> None:
    """Once with its manager."""
    store = AStore()

    CheckpointManager(10, store).close()

    assert store.is_closed


def test_nothing_has_to_be_released_in_memory() -> None:
    """What was kept can be read still."""
    store = InMemoryCheckpointStore()
    store.persist(1, b"kept")

    store.close()

    assert store.recover(1) == b"kept"


# -- CheckpointManager: agreed times -----------------------------------------------------------


def test_agreed_times_need_no_record() -> None:
    """An idle task takes its checkpoint with the others; in Gearpump it holds them all up."""
    manager = a_manager(None)

    assert manager.agree(100)
    assert manager.should_checkpoint(100)
    assert manager.checkpoint(100, b"") is None


def test_records_choose_no_time_that_is_agreed() -> None:
    """Else tasks with different records would choose different times."""
    manager = a_manager(None)

    assert manager.update(50) is None
    assert not manager.should_checkpoint(MAX_MS)


def test_time_may_be_told_again() -> None:
    """By who has not heard the answer."""
    manager = a_manager(None)

    assert [manager.agree(100), manager.agree(100)] == [True, True]
    assert manager.checkpoint(100, b"") is None


def test_time_that_a_record_has_passed_is_too_late() -> None:
    """It was counted as if it were older, and cannot be told apart any more."""
    manager = a_manager(None)
    manager.update(100)

    assert [manager.agree(99), manager.agree(100), manager.agree(101)] == [False, False, True]
    assert manager.checkpoint_time_ms == 101


def test_times_are_agreed_in_order() -> None:
    """None before one that is known, none before one that was stored."""
    manager = a_manager(None)
    manager.agree(100)

    assert not manager.agree(90)
    manager.checkpoint(100, b"")
    assert not manager.agree(100)
    assert manager.agree(101)


def test_manager_with_its_own_times_agrees_to_none() -> None:
    """It has told nobody about them."""
    with pytest.raises(AssertionError, match="its own"):
        a_manager(10).agree(100)


def test_several_times_may_be_ahead() -> None:
    """Records are numbered by all of them."""
    manager = a_manager(None)
    for time_ms in (100, 200):
        manager.agree(time_ms)

    numbers = [manager.epoch_of(time_ms) for time_ms in (99, 100, 199, 200)]
    manager.checkpoint(100, b"")

    assert numbers == [1, 2, 2, 3]
    assert [manager.epoch_of(time_ms) for time_ms in (99, 199, 200)] == [2, 2, 3]


# -- with state --------------------------------------------------------------------------------


class Task(NamedTuple):
    """What `PersistentTask` is in Gearpump: a state and a manager, driven by event times."""

    manager: CheckpointManager
    state: NonWindowState[int]

    def take(self, time_ms: int, value: int) -> None:
        """Process a record."""
        self.manager.update(time_ms)
        self.state.enter(self.manager.epoch_of(time_ms))
        self.state.update(time_ms, value)

    def on_watermark(self, watermark_ms: int) -> list[int]:
        """Take the checkpoints that are due; return their times."""
        taken = []
        while self.manager.should_checkpoint(watermark_ms):
            time_ms = self.manager.checkpoint_time_ms
            assert time_ms is not None
            self.manager.checkpoint(time_ms, self.state.checkpoint())
            taken.append(time_ms)
        return taken


def a_task(interval_ms: int | None, store: InMemoryCheckpointStore) -> Task:
    """Return a task that adds numbers up."""
    return Task(CheckpointManager(interval_ms, store), NonWindowState(SumGroup(), Json()))


@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 30), st.integers(-9, 9), st.booleans()), max_size=40),
)
def test_checkpoint_holds_all_records_that_are_older_and_no_other(
    interval_ms: int, steps: list[tuple[int, int, bool]]
) -> None:
    """Property: for a stream out of order; a restart from there with the others gets it all."""
    store = InMemoryCheckpointStore()
    task, watermark_ms = a_task(interval_ms, store), 0
    records: list[tuple[int, int]] = []

    for ahead_ms, value, has_watermark in steps:
        records.append((watermark_ms + ahead_ms, value))
        task.take(*records[-1])
        if not has_watermark:
            continue
        watermark_ms += ahead_ms
        for time_ms in task.on_watermark(watermark_ms):
            data = store.recover(time_ms)
            assert data is not None
            assert json.loads(data) == sum(v for at, v in records if at < time_ms)
            restarted = a_task(interval_ms, store)
            restarted.state.recover(restarted.manager.recover(time_ms) or b"")
            for at, replayed in records:
                if at >= time_ms:
                    restarted.take(at, replayed)
            assert restarted.state.left + restarted.state.right == sum(v for _, v in records)


@given(
    st.lists(st.lists(st.tuples(TIMES, st.integers(-9, 9)), max_size=10), min_size=1, max_size=4),
    st.integers(1, 60),
)
def test_all_tasks_take_the_checkpoints_that_were_agreed(
    records: list[list[tuple[int, int]]], interval_ms: int
) -> None:
    """Property: also tasks without records. In Gearpump the checkpoint clock waits for ever."""
    times = CheckpointTimes(interval_ms)
    times.on_report(newest_ms=-51)
    tasks = [a_task(None, InMemoryCheckpointStore()) for _ in records]
    agreed = [times.choose()]
    times.on_report(newest_ms=60)
    agreed.append(times.choose())

    for task, given_to_it in zip(tasks, records, strict=True):
        assert all(time_ms is not None and task.manager.agree(time_ms) for time_ms in agreed)
        for record in given_to_it:
            task.take(*record)

    assert [task.on_watermark(MAX_MS) for task in tasks] == [agreed] * len(tasks)
