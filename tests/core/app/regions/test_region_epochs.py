"""The epochs of a region, attempt after attempt."""

import pytest

from gearpy.core.app.decisions import Command, DamageFound, EpochAborted, FellBack, StoreManifest
from gearpy.core.app.deployment import Send
from gearpy.core.epoch.epochs import REPEAT_MS
from gearpy.ids import MAX_MS, ExecutorId
from gearpy.messages.app import AbortEpoch, BeginEpoch, EpochUnstored, SnapshotsDamaged
from tests.core.manager_bench import some_limits
from tests.core.region_build import (
    INTERVAL_MS,
    ONE,
    SINK,
    SOURCE,
    TIMEOUT_MS,
    TWO,
    a_file,
    a_manifest,
    begins,
    clock,
    commits,
    committed,
    complete_epoch,
    file_of,
    finish,
    some_epochs,
    some_running,
    store_epoch,
    stored,
)

# -- one after the other -------------------------------------------------------------------


def test_epochs_begin_when_all_tasks_run() -> None:
    epochs = some_epochs()
    assert epochs.next_epoch == 1
    assert epochs.advance(10**6) == []
    assert epochs.on_deploy(7) is None
    assert epochs.advance(10**6) == []

    epochs.on_ready(0)

    assert epochs.advance(INTERVAL_MS - 1) == []
    assert epochs.advance(INTERVAL_MS) == begins(1)
    assert epochs.advance(INTERVAL_MS) == []
    assert epochs.advance(INTERVAL_MS + REPEAT_MS) == begins(1)


def test_an_epoch_is_stored_then_committed_then_the_next_begins() -> None:
    epochs = some_running()
    epochs.advance(INTERVAL_MS)
    manifest = store_epoch(epochs, 310)
    assert manifest.epoch == 1

    late_ms = 310 + REPEAT_MS
    assert epochs.advance(late_ms - 1) == [], "the next one waits"
    assert epochs.advance(late_ms) == [StoreManifest(manifest=manifest)]
    assert epochs.on_manifest_stored(1, late_ms) == commits(1)
    assert epochs.on_manifest_stored(1, late_ms) == [], "it is told once"
    epochs.on_committed(committed(TWO, 1))
    assert epochs.advance(late_ms) == begins(2)
    assert epochs.advance(late_ms + REPEAT_MS) == begins(2) + commits(1, ONE)
    epochs.on_committed(committed(ONE, 1))
    assert epochs.advance(late_ms + 2 * REPEAT_MS) == begins(2)


def test_that_an_older_epoch_is_stored_says_nothing_of_a_newer_one() -> None:
    epochs = some_running()
    complete_epoch(epochs, 300)
    epochs.advance(600)
    store_epoch(epochs, 600)

    assert epochs.on_manifest_stored(1, 610) == []


def test_an_answer_of_another_attempt_is_none() -> None:
    """It would end a region before its sinks show all."""
    epochs = some_running()
    finish(epochs)
    epochs.advance(1)
    store_epoch(epochs, 2)
    epochs.on_manifest_stored(1, 3)
    for each in (ONE, TWO):
        epochs.on_committed(committed(each, 1, attempt=6))

    assert not epochs.is_closed


def test_no_attempt_begins_from_an_epoch_that_is_not_stored() -> None:
    """A relaunched app master would go back further."""
    epochs = some_running()
    epochs.advance(300)
    store_epoch(epochs, 300)
    epochs.on_over()

    with pytest.raises(AssertionError):
        epochs.on_deploy(8)


def test_no_number_comes_twice() -> None:
    """Not that of an epoch that was announced before a failure, or is only open.

    Also when an attempt fails before all its tasks run: those that did have sent records, and what
    comes late of an attempt is told from what its successor sends by the epoch, until that opens
    its links.
    """
    epochs = some_running()
    complete_epoch(epochs, 300)
    epochs.advance(600)

    epochs.on_over()
    assert epochs.next_epoch == 3
    epochs.on_deploy(8)
    epochs.on_over()
    epochs.on_over()
    assert epochs.next_epoch == 4, "some of its tasks may have run"


# -- the clock -----------------------------------------------------------------------------


def test_the_clock_of_an_epoch_is_that_of_the_slowest_task_that_is_busy() -> None:
    epochs = some_running()
    clock(epochs, SOURCE, 30)
    clock(epochs, SINK, 20)
    assert complete_epoch(epochs, 300).clock_ms == 20

    clock(epochs, SINK, 25, idle=True)
    assert complete_epoch(epochs, 600).clock_ms == 30

    clock(epochs, SINK, 40)
    clock(epochs, SOURCE, MAX_MS)
    assert complete_epoch(epochs, 900).clock_ms == 40


# -- cut times -----------------------------------------------------------------------------

BY_TIME = some_limits(retained=2, cut="event-time", epoch_timeout_ms=TIMEOUT_MS)


def cut_times(commands: list[Command]) -> list[int | None]:
    sent = [each.message for each in commands if isinstance(each, Send)]
    return [each.cut_time_ms for each in sent if isinstance(each, BeginEpoch)]


def test_by_event_time_all_are_told_the_same_cut_time() -> None:
    """Ahead of what sources have read; again when it is announced again."""
    epochs = some_running(limits=BY_TIME)
    clock(epochs, SOURCE, 5, newest_ms=1000)
    begun = cut_times(epochs.advance(300))

    assert begun == cut_times(epochs.advance(300 + REPEAT_MS))
    assert begun == [1003, 1003]
    assert store_epoch(epochs, 3000).cut_time_ms == 1003


def test_a_missed_cut_makes_the_lead_longer() -> None:
    epochs = some_running(limits=BY_TIME)
    clock(epochs, SOURCE, 5, newest_ms=1000)
    epochs.advance(300)
    epochs.on_stored(stored(ONE, has_missed_cut=True), 310)
    [store] = epochs.on_stored(stored(TWO), 310)
    assert isinstance(store, StoreManifest)
    assert store.manifest.cut_time_ms is None

    epochs.on_manifest_stored(1, 320)
    clock(epochs, SOURCE, 5, newest_ms=1001)
    clock(epochs, SOURCE, 5, newest_ms=2000)

    assert cut_times(epochs.advance(700)) == [2000 + 4 * 999 + 1] * 2


def test_without_progress_of_event_time_epochs_end_by_position() -> None:
    epochs = some_running(limits=BY_TIME)
    clock(epochs, SOURCE, 5, newest_ms=1000)
    complete_epoch(epochs, 300)

    assert cut_times(epochs.advance(600)) == [None, None]


def test_an_epoch_that_no_source_comes_to_is_followed_by_one_by_position() -> None:
    epochs = some_running(limits=BY_TIME)
    clock(epochs, SOURCE, 5, newest_ms=10**15)
    epochs.advance(300)
    clock(epochs, SOURCE, 6, newest_ms=10**15 + 1)

    commands = epochs.advance(300 + TIMEOUT_MS)

    assert cut_times(commands) == [None, None]


def test_cut_times_go_on_behind_those_that_are_stored() -> None:
    """After a relaunch, though sources read older records again."""
    epochs = some_running(
        a_manifest(1, cut_time_ms=9000), a_manifest(2, cut_time_ms=None), limits=BY_TIME
    )
    clock(epochs, SOURCE, 5, newest_ms=1000)

    assert cut_times(epochs.advance(300)) == [9001, 9001]


# -- files ---------------------------------------------------------------------------------


def test_files_of_an_epoch_that_will_not_be_complete_are_given_out() -> None:
    epochs = some_running()
    epochs.advance(300)
    epochs.on_stored(stored(ONE), 310)
    assert epochs.take_garbage() == ()

    epochs.on_over()

    assert epochs.take_garbage() == (file_of(ONE, 1),)
    epochs.on_stored(stored(ONE), 320)
    assert epochs.take_garbage() == ()


def test_files_that_come_too_late_are_given_out() -> None:
    """Their attempt is over, or another has begun; of one that was never known nothing is."""
    epochs = some_running()
    epochs.on_over()
    epochs.on_stored(stored(ONE), 330)
    assert epochs.take_garbage() == (file_of(ONE, 1),)

    epochs.on_deploy(8)
    epochs.on_stored(stored(ONE, 2), 340)
    epochs.on_stored(stored(ONE, 3, attempt=5), 340)
    epochs.on_stored(stored(ExecutorId(9), 3), 340)

    assert epochs.take_garbage() == (file_of(ONE, 2),)
    assert [epochs.knows(each) for each in (5, 7, 8)] == [False, True, True]


def test_only_the_latest_attempts_are_known() -> None:
    epochs = some_epochs()
    for attempt in range(100):
        epochs.on_deploy(attempt)

    assert [each for each in range(100) if epochs.knows(each)] == list(range(84, 100))


def test_files_of_another_application_are_never_given_out() -> None:
    epochs = some_running(
        a_manifest(1, "mine/base"), owns=lambda location: location.startswith("mine/")
    )

    complete_epoch(epochs, 300)

    assert epochs.take_garbage() == (a_file("mine/base"),)


# -- damage --------------------------------------------------------------------------------


def damaged(location: str) -> SnapshotsDamaged:
    return SnapshotsDamaged(
        executor_id=ONE, version=0, attempt=7, location=location, reason="bad checksum"
    )


def test_a_damaged_epoch_is_never_gone_back_to() -> None:
    epochs = some_epochs(a_manifest(5), a_manifest(6))
    epochs.on_deploy(7)

    fell_back = epochs.fall_back(damaged("old6"))
    epochs.on_over()

    assert fell_back == FellBack(
        region=4, epochs=(6,), to=5, location="old6", reason="bad checksum"
    )
    assert fell_back.text == (
        "region 4 falls back to epoch 5, as epoch 6 cannot be read: old6: bad checksum"
    )
    assert epochs.take_garbage() == (a_file("old6"),)
    assert epochs.on_deploy(8) == a_manifest(5)
    assert epochs.next_epoch == 8


def test_when_no_epoch_is_left_all_stay_as_they_are() -> None:
    epochs = some_epochs(a_manifest(5, "base"), a_manifest(6, "base"))
    epochs.on_deploy(7)

    assert epochs.fall_back(damaged("base")) is None
    assert epochs.history.manifests == (a_manifest(5, "base"), a_manifest(6, "base"))
    assert epochs.take_garbage() == ()


# -- the end -------------------------------------------------------------------------------


def test_the_last_epoch_is_tried_until_it_is_stored() -> None:
    epochs = some_running()
    finish(epochs)
    epochs.advance(0)

    assert epochs.advance(TIMEOUT_MS)[3:] == begins(2)
    assert epochs.advance(2 * TIMEOUT_MS)[3:] == begins(3)
    assert epochs.aborted == 2
    epochs.on_stored(stored(ONE, 3), 20_010)
    epochs.on_stored(stored(TWO, 3), 20_010)
    epochs.on_manifest_stored(3, 20_020)
    for each in (ONE, TWO):
        epochs.on_committed(committed(each, 3))

    assert epochs.is_closed


def test_epoch_that_would_go_on_from_a_damaged_file_is_given_up_at_once() -> None:
    """The next one begins; people are told once which stored epochs need the file."""
    epochs = some_running(a_manifest(1), a_manifest(2, "old1"))
    epochs.advance(INTERVAL_MS)

    def unstored(epoch: int, damaged: str = "old1") -> EpochUnstored:
        return EpochUnstored(
            executor_id=ONE, attempt=7, epoch=epoch, reason=f"snapshot {damaged}", damaged=damaged
        )

    first = epochs.on_unstored(unstored(3), INTERVAL_MS)
    again = epochs.on_unstored(unstored(3), INTERVAL_MS)
    next_one = epochs.advance(INTERVAL_MS)
    full_disk = epochs.on_unstored(unstored(4, damaged=""), INTERVAL_MS)

    (found, aborted, *told) = first
    assert isinstance(found, DamageFound)
    assert found.text.startswith(
        "snapshot old1; stored epochs 1, 2 need this file for task 0.0, 1.0; a restart of region 4 "
        "could go on from none of its stored epochs: "
    )
    assert found.text.endswith(
        "; all goes on, and the epoch after 3 stores anew what the tasks of executor 1 have in "
        "memory: look for what harms files there"
    )
    assert aborted == EpochAborted(region=4, epoch=3, reason="old1 is damaged")
    assert told == [
        Send(executor_id=each, message=AbortEpoch(version=0, attempt=7, epoch=3))
        for each in (ONE, TWO)
    ]
    assert next_one == begins(4)
    assert (again, full_disk) == ([], [])
    assert epochs.last_abort == "epoch 3 of region 4: old1 is damaged"


def test_an_epoch_without_the_damaged_file_is_kept_until_a_newer_one_is_whole() -> None:
    epochs = some_running(a_manifest(1), a_manifest(2, "extra"))
    epochs.advance(INTERVAL_MS)

    (found, *_) = epochs.on_unstored(
        EpochUnstored(executor_id=ONE, attempt=7, epoch=3, reason="no", damaged="extra"), 0
    )

    assert isinstance(found, DamageFound)
    assert "; a restart of region 4 would go back to epoch 1; " in found.text
