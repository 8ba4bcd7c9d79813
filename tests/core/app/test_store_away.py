"""Regions that wait for a store: at no cost, for as long as it takes, not at the first start."""

from gearpy.core.app.decisions import Ended, Survived
from gearpy.core.app.deployment import Send
from gearpy.ids import MIN_MS, ProcessorId, TaskId
from gearpy.messages.app import (
    BeginEpoch,
    EpochUnstored,
    HaltSources,
    LaunchTasks,
    SnapshotsDamaged,
    SourceHalt,
    StartAllTasks,
    TaskClock,
)
from tests.core.manager_bench import A, Bench, only, sent

SOURCE = TaskId(ProcessorId(0), 0)


def test_a_sink_that_is_away_spends_no_restart_however_long() -> None:
    """It is told once; the pauses grow up to some seconds."""
    bench = Bench((1, 1), executors=1, restarts=1)
    survived, began_ms = [], bench.now_ms
    for _ in range(200):
        done = bench.fail_task(SOURCE, "the disk is full", is_away=True)
        survived += only(done, Survived)
        assert bench.manager.away == "the disk is full"
        assert not sent(done, LaunchTasks), "it pauses first"
        bench.tick(4_000)
        assert bench.states == ["running"]

    assert len(survived) == 1
    assert bench.now_ms - began_ms >= 600_000
    assert bench.manager.restarts == 0


def test_a_store_is_back_when_the_region_has_been_at_work_for_a_while() -> None:
    bench = Bench((1, 1), executors=1)
    bench.fail_task(SOURCE, "it is away", is_away=True)
    bench.tick(4_000)
    region = bench.manager.regions[0]
    assert region.attempt is not None
    bench.report(region.attempt, A)
    assert bench.manager.away

    bench.tick(6_000)

    assert bench.manager.away == ""


def test_a_store_that_is_away_at_the_first_start_ends_the_application() -> None:
    bench = Bench((1, 1), executors=1)
    bench.manager._has_run = False  # noqa: SLF001 - no event takes it back

    done = bench.fail_task(SOURCE, "make it first", is_away=True)

    assert not only(done, Survived)
    (ended,) = only(done, Ended)
    assert ended.status == "failed"
    assert ended.cause is not None
    assert ended.cause.cause == "make it first"


def test_state_that_cannot_be_read_as_its_store_is_away_is_waited_for() -> None:
    bench = Bench((1, 1), executors=1, restarts=0)
    bench.tick(1_000)
    bench.end_epoch()
    bench.unanswered = {(A, LaunchTasks)}
    bench.fail_task(SOURCE, "the disk is full", is_away=True)
    for _ in range(20):
        while not sent(bench.tick(200), LaunchTasks):
            pass
        attempt = bench.manager.regions[0].attempt
        assert attempt is not None
        message = SnapshotsDamaged(
            executor_id=A,
            version=0,
            attempt=attempt,
            location="",
            reason="nothing is there",
            is_away=True,
        )
        assert not only(bench.obey(bench.manager.on_answer(message, bench.now_ms)), Ended)
    assert bench.manager.away == "nothing is there"

    bench.unanswered = set()
    bench.tick(4_000)

    assert (bench.states, bench.manager.restarts) == (["running"], 0)
    assert bench.manager.epoch > 0


def test_sources_halt_at_once_when_a_drain_waits_for_the_store() -> None:
    bench = Bench((1, 1), executors=1)
    bench.unanswered = {(A, BeginEpoch)}
    bench.tick(10_000)  # An epoch ends, and cannot be stored.
    region = bench.manager.regions[0]
    assert region.attempt is not None

    drained = bench.obey(bench.manager.drain(bench.now_ms, timeout_ms=60_000))
    again = bench.tick(3_000)

    for done in (drained, again):
        assert sent(done, HaltSources) == [HaltSources(attempt=region.attempt, time_ms=MIN_MS)]
    assert not any(each.is_last for each in sent(drained, BeginEpoch))

    reported = bench.manager.reports[SOURCE]
    told = TaskClock(
        task_id=SOURCE,
        session=reported.session,
        clock_ms=reported.clock_ms,
        watermark_ms=reported.watermark_ms,
        halt=SourceHalt(time_ms=MIN_MS, state="reached"),
    )
    bench.obey(bench.manager.on_clocks([told], bench.now_ms))
    assert not sent(bench.tick(3_000), HaltSources)

    bench.fail_task(SOURCE, kind="lost")
    started = sent(bench.tick(10_000), StartAllTasks)
    assert [each.halt_ms for each in started] == [MIN_MS]


def test_a_drain_that_waits_too_long_names_the_store() -> None:
    bench = Bench((1, 1), executors=1)
    bench.unanswered = {(A, BeginEpoch)}
    bench.obey(bench.manager.drain(bench.now_ms, timeout_ms=60_000))
    bench.manager.store = "its store: No space left on device"

    done = bench.tick(61_000)

    (ended,) = only(done, Ended)
    assert ended.cause is not None
    assert "it waits for its store: No space left on device" in ended.cause.cause


def test_unstored_epochs_stop_nothing() -> None:
    bench = Bench((1, 1), executors=1)
    bench.unanswered = {(A, BeginEpoch)}
    bench.tick(10_000)
    region = bench.manager.regions[0]
    message = EpochUnstored(
        executor_id=A, attempt=region.attempt or 0, epoch=1, reason="no space", damaged=""
    )

    done = bench.obey(bench.manager.on_epoch_unstored(message, bench.now_ms))

    assert not only(done, Send)
    assert bench.states == ["running"]
