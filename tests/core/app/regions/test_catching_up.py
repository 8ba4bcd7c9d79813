"""Regions that end when their sources have caught up with what was there."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.app.decisions import StoreManifest
from gearpy.core.app.deployment import Send
from gearpy.core.app.regions.region_epochs import RegionEpochs
from gearpy.ids import MAX_MS, TaskId
from gearpy.messages.app import BeginEpoch
from tests.core.region_build import (
    INTERVAL_MS,
    ONE,
    SINK,
    SOURCE,
    TIMEOUT_MS,
    TWO,
    clock,
    committed,
    complete_epoch,
    some_running,
    stored,
)


def begun(epochs: RegionEpochs, now_ms: int) -> list[tuple[int, bool, bool]]:
    """Return the epoch that is begun, whether it is the last, and since all have caught up."""
    told = [each.message for each in epochs.advance(now_ms) if isinstance(each, Send)]
    begins = [each for each in told if isinstance(each, BeginEpoch)]
    return sorted({(each.epoch, each.is_last, each.caught_up) for each in begins})


def test_the_last_epoch_begins_when_all_have_caught_up_and_is_no_end_of_the_streams() -> None:
    epochs = some_running()
    clock(epochs, SINK, 5, caught_up=True)
    assert begun(epochs, 0) == []
    clock(epochs, SOURCE, 5, caught_up=True)
    assert begun(epochs, 0) == [(1, True, True)]
    complete_epoch(epochs, 1)
    assert epochs.is_closed
    assert epochs.is_drained
    assert epochs.has_caught_up


def test_a_source_that_is_at_its_end_need_not_catch_up() -> None:
    epochs = some_running()
    clock(epochs, SINK, 5, caught_up=True)
    clock(epochs, SOURCE, MAX_MS, caught_up=False)
    assert begun(epochs, 0) == [(1, True, True)]


def test_streams_that_have_ended_have_done_more_than_caught_up() -> None:
    epochs = some_running()
    for task in (SOURCE, SINK):
        clock(epochs, task, MAX_MS, caught_up=True)
    assert begun(epochs, 0) == [(1, False, False)]


def test_sources_that_begin_again_have_to_catch_up_again() -> None:
    """They go on from the newest epoch, and what they had read since is not in it."""
    epochs = some_running()
    clock(epochs, SINK, 5, caught_up=True)
    clock(epochs, SOURCE, 5, caught_up=True)
    epochs.advance(0)
    epochs.on_over()
    epochs.on_deploy(8)
    epochs.on_ready(10)
    assert not epochs.is_caught_up
    assert begun(epochs, 10) == []
    assert [last for _, last, _ in begun(epochs, 10 + INTERVAL_MS)] == [False]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from([SOURCE, SINK]), st.sampled_from(["", "caught up", "ended"])),
            st.sampled_from(["again", "drain", "store", "late"]),
        ),
        max_size=30,
    )
)
def test_none_is_the_last_one_of_a_run_before_all_tasks_of_the_attempt_said_so(
    events: list[object],
) -> None:
    epochs, attempt, now_ms, newest = some_running(), 7, 0, 0
    said: dict[TaskId, set[str]] = {SOURCE: set(), SINK: set()}
    has_drained = False
    for event in events:
        now_ms += INTERVAL_MS
        if isinstance(event, tuple):
            task, what = event
            clock_ms = MAX_MS if what == "ended" else 5
            said[task] |= {what} - {""}
            clock(epochs, task, clock_ms, caught_up=what == "caught up")
        elif event == "again":
            epochs.on_over()
            attempt += 1
            epochs.on_deploy(attempt)
            epochs.on_ready(now_ms)
            said = {SOURCE: set(), SINK: set()}
        elif event == "store":
            for each in (ONE, TWO):
                for command in epochs.on_stored(stored(each, newest, attempt=attempt), now_ms):
                    if isinstance(command, StoreManifest):
                        epochs.on_manifest_stored(newest, now_ms)
            for each in (ONE, TWO):
                epochs.on_committed(committed(each, newest, attempt))
        elif event == "drain":
            has_drained = True
            epochs.drain()
        elif event == "late":
            now_ms += TIMEOUT_MS
        for epoch, is_last, caught_up in begun(epochs, now_ms):
            newest = epoch
            have_ended = all("ended" in each for each in said.values())
            if caught_up:
                assert all(said.values())
                assert is_last
            if is_last and not has_drained:
                assert caught_up
            if have_ended and not has_drained:
                assert not is_last or caught_up
