"""What an application core may decide, and what it does about epochs."""

from typing import get_args

from msgspec import Struct

from gearpy.core.app import decisions
from gearpy.core.app.decisions import (
    DropSnapshots,
    Ended,
    EpochAborted,
    EpochsRetired,
    FellBack,
    StoreManifest,
    Survived,
)
from gearpy.core.app.deployment import Send
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import TaskId
from gearpy.messages.app import LaunchTasks, SnapshotFile, TaskOffsets
from tests.core.manager_bench import A, Bench, kinds, only


def test_every_decision_is_a_command() -> None:
    commands = get_args(decisions.Command)
    own = (
        each
        for each in vars(decisions).values()
        if isinstance(each, type) and issubclass(each, Struct)
    )
    classes = {each for each in own if each.__module__ == decisions.__name__}

    made = classes - {decisions.RecoveryLimits}

    assert made <= set(commands)
    assert all(each.__struct_config__.frozen for each in commands)


def test_a_restart_goes_on_from_the_newest_epoch() -> None:
    bench = Bench()
    bench.tick(300)
    [store] = only(bench.end_epoch(), StoreManifest)
    bench.fail_task(TaskId(0, 0))

    sent = [each.message for each in only(bench.tick(500), Send)]
    launches = [each for each in sent if isinstance(each, LaunchTasks)]
    assert [each.snapshots for each in launches] == [(file,) for file in store.manifest.snapshots]
    assert {each.epoch for each in launches} == {store.manifest.epoch + 2}
    assert bench.manager.epoch == 1


def test_snapshots_are_deleted_when_a_newer_epoch_is_stored() -> None:
    bench = Bench()
    manifests = []
    for _ in range(3):
        bench.tick(300)
        done = bench.end_epoch()
        manifests += [each.manifest for each in only(done, StoreManifest)]

    assert [each for each in done if isinstance(each, EpochsRetired | DropSnapshots)] == [
        EpochsRetired(region=0, epochs=(1,)),
        DropSnapshots(files=manifests[0].snapshots),
    ]
    assert bench.manager.regions.newest_manifests == [manifests[2]]


def test_overrides_reach_the_executors() -> None:
    overrides = [TaskOffsets(task_id=TaskId(0, 0), offsets={"p": b"7"})]
    bench = Bench(is_begun=False)
    bench.manager = bench.another(overrides=overrides)

    bench.begin()

    sent = [each.message for each in only(bench.done, Send)]
    assert sorted(len(each.overrides) for each in sent if isinstance(each, LaunchTasks)) == [0, 1]


def test_files_of_others_are_never_deleted() -> None:
    bench = Bench(is_begun=False)
    file = SnapshotFile(location="other/app1/x", sha256="", tasks=tuple(bench.manager.dag.tasks()))
    found = Manifest(region=0, epoch=1, attempt=1, clock_ms=0, snapshots=(file,))
    bench.manager = bench.another(manifests=[found], owns=lambda name: name.startswith("0/"))
    bench.begin()

    for _ in range(3):
        bench.tick(300)
        bench.end_epoch()

    dropped = [each for drop in only(bench.done, DropSnapshots) for each in drop.files]
    assert [each.location.split("-")[0] for each in dropped] == ["0/2", "0/2"]


def test_an_epoch_that_is_late_is_given_up_without_a_restart() -> None:
    """Told for the log, and to the executors; the next one follows."""
    bench = Bench(epoch_timeout_ms=1000)
    bench.tick(300)
    begun = bench.announced(bench.manager.regions[0])

    commands = bench.tick(1000)

    assert kinds(commands) == ["EpochAborted", *["AbortEpoch"] * 2, *["BeginEpoch"] * 2]
    assert only(commands, EpochAborted) == [
        EpochAborted(
            region=0, epoch=begun.epoch, reason="not stored within 1000 ms by executor 0, 1"
        )
    ]
    assert bench.manager.restarts == 0
    assert bench.manager.regions[0].epochs.aborted == 1


def test_a_manifest_that_could_not_be_stored_comes_again() -> None:
    bench = Bench(backoff_ms=0)
    bench.stores = False
    bench.tick(300)
    first = only(bench.end_epoch(), StoreManifest)
    bench.fail_task(TaskId(0, 0))
    assert bench.states == ["waiting"]

    again = bench.tick(2000)

    assert only(again, StoreManifest) == first
    assert bench.states == ["waiting"]
    bench.obey(bench.manager.on_manifest_stored(0, first[0].manifest.epoch, bench.now_ms))
    assert bench.states == ["running"]
    assert not [each for each in kinds(bench.done) if each == "CommitEpoch"]


def test_damage_of_all_epochs_ends_it_rather_than_begin_anew() -> None:
    """Nobody has asked for what was done to be done again; and nothing is deleted."""
    bench = Bench()
    bench.tick(300)
    [store] = only(bench.end_epoch(), StoreManifest)
    bench.unanswered = {(A, LaunchTasks)}
    bench.fail_task(TaskId(0, 0))
    bench.tick(500)
    location = store.manifest.snapshots[0].location

    commands = bench.damage(A, location)

    ended = commands[-1]
    assert isinstance(ended, Ended)
    assert ended.status == "failed"
    assert ended.cause is not None
    assert f"none of its stored epochs (1), as {location} is needed" in ended.cause.cause
    assert not only(commands, DropSnapshots)
    assert not only(commands, FellBack)


def test_what_could_not_be_read_this_time_is_a_failure_like_others() -> None:
    bench = Bench(backoff_ms=0)
    bench.tick(300)
    bench.end_epoch()
    bench.unanswered = {(A, LaunchTasks)}
    bench.fail_task(TaskId(0, 0))
    bench.unanswered = set()

    commands = bench.damage(A, "")

    assert isinstance(commands[0], Survived)
    assert commands[0].error.cause == "executor 0 could not read the snapshots: bad"
    assert bench.manager.restarts == 2
    assert (bench.states, bench.manager.epoch) == (["running"], 1)


def test_damage_of_an_attempt_that_is_over_is_nothing() -> None:
    bench = Bench(backoff_ms=0)
    attempt = bench.manager.regions[0].attempt
    bench.fail_task(TaskId(0, 0))

    assert bench.damage(A, "what", attempt=attempt) == []


def test_at_the_end_everything_is_committed_before_it_is_stopped() -> None:
    bench = Bench()

    commands = bench.finish(0)

    assert kinds(commands)[:9] == [
        *["BeginEpoch"] * 2,
        "StoreManifest",
        *["CommitEpoch"] * 2,
        *["StopAllTasks"] * 2,
        *["Stop"] * 2,
    ]
    assert commands[-1] == Ended(status="succeeded", cause=None)


def test_a_failure_that_no_restart_would_mend_ends_it_at_once() -> None:
    bench = Bench()

    commands = bench.fail_task(TaskId(1, 0), "a record cannot be sent", kind="final")

    assert isinstance(commands[-1], Ended)
    assert commands[-1].status == "failed"


def test_where_errors_are_final_a_lost_executor_still_costs_a_restart_only() -> None:
    """So it is in a run on several processes, whose program is at hand to be corrected."""
    bench = Bench(retries_errors=False, backoff_ms=0)

    survived = [bench.lose(A), bench.fail_task(TaskId(1, 0), kind="lost")]
    failed = bench.fail_task(TaskId(1, 0), "division by zero")

    assert not any(isinstance(each, Ended) for commands in survived for each in commands)
    assert isinstance(failed[-1], Ended)
    assert failed[-1].status == "failed"
