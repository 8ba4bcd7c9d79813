"""A good end before that of the streams: its time limits, and what a core does for it."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.app.causes import Drain
from gearpy.core.app.decisions import Ended
from gearpy.core.app.deployment import Send
from gearpy.core.app.executors import Launch, Stop
from gearpy.ids import ProcessorId, TaskId
from gearpy.messages.app import BeginEpoch, LongTurn, StopAllTasks, TaskClock
from tests.core.manager_bench import A, B, Bench, only


@given(
    now_ms=st.integers(0, 10**6), timeout_ms=st.integers(1, 10**6), later_ms=st.integers(0, 10**7)
)
def test_what_is_to_be_killed_was_late_before(now_ms: int, timeout_ms: int, later_ms: int) -> None:
    drain = Drain(now_ms=now_ms, timeout_ms=timeout_ms)

    assert drain.is_late(now_ms + later_ms) == (later_ms >= timeout_ms)
    assert drain.is_late(now_ms + later_ms) or not drain.has_had_grace(now_ms + later_ms)


def test_a_drain_ends_each_region_with_one_last_epoch() -> None:
    """Sources are told that it is the last; then it is over, as somebody wanted it to be."""
    bench = Bench((1, 1), (1, 1))

    done = bench.obey(bench.manager.drain(bench.now_ms, timeout_ms=60_000))

    begun = [each.message for each in only(done, Send) if isinstance(each.message, BeginEpoch)]
    stops = [each.message for each in only(done, Send) if isinstance(each.message, StopAllTasks)]
    assert begun
    assert all(each.is_last for each in begun)
    assert all(each.completed for each in stops)
    assert done[-1] == Ended(status="terminated", cause=None)
    assert bench.manager.is_drained


def test_a_drain_before_anything_runs_is_over_at_once() -> None:
    bench = Bench(is_begun=False)

    done = bench.obey(bench.manager.drain(bench.now_ms, timeout_ms=60_000))

    assert not only(done, Launch)
    assert done[-1] == Ended(status="terminated", cause=None)


def test_a_drain_of_streams_that_have_ended_is_a_success() -> None:
    bench = Bench((1, 1), executors=1)
    bench.unanswered = {(A, BeginEpoch)}
    bench.finish(0)

    bench.obey(bench.manager.drain(bench.now_ms, timeout_ms=60_000))
    bench.unanswered = set()
    done = bench.end_epoch()

    assert done[-1] == Ended(status="succeeded", cause=None)
    assert not bench.manager.is_drained


def test_streams_that_end_behind_the_last_epoch_of_a_drain_have_not_ended_with_it() -> None:
    bench = Bench((1, 1), executors=1)
    bench.unanswered = {(A, BeginEpoch)}
    bench.obey(bench.manager.drain(bench.now_ms, timeout_ms=60_000))

    done = bench.finish(0)

    assert done[-1] == Ended(status="terminated", cause=None)
    assert bench.manager.is_drained


def test_a_drain_that_a_failure_interrupts_goes_on_after_the_restart() -> None:
    bench = Bench((1, 1))
    bench.unanswered = {(A, BeginEpoch), (B, BeginEpoch)}
    bench.obey(bench.manager.drain(bench.now_ms, timeout_ms=60_000))

    bench.fail_task(TaskId(0, 0))
    bench.unanswered = set()
    done = bench.tick(1000)

    assert bench.manager.restarts == 1
    assert done[-1] == Ended(status="terminated", cause=None)


def test_a_drain_lets_what_is_in_flight_land() -> None:
    """Its results belong to the epoch after the last one, so that one is not the last."""
    bench = Bench((1, 1), executors=1)
    bench.unanswered = {(A, BeginEpoch)}
    bench.obey(bench.manager.drain(bench.now_ms, timeout_ms=60_000))
    first = bench.announced(bench.manager.regions[0])

    bench.obey(bench.store(bench.manager.regions[0], A, has_more=True))
    assert not only(bench.done, Ended)
    assert bench.announced(bench.manager.regions[0]) == first
    bench.tick(200)
    second = bench.announced(bench.manager.regions[0])
    done = bench.end_epoch()

    assert (second.epoch, second.is_last) == (first.epoch + 1, True)
    assert done[-1] == Ended(status="terminated", cause=None)


def test_a_drain_that_waits_stores_what_waits_less_and_less_often() -> None:
    bench = Bench((1, 1), executors=1)
    bench.unanswered = {(A, BeginEpoch)}
    bench.obey(bench.manager.drain(bench.now_ms, timeout_ms=60_000))
    region, began_ms = bench.manager.regions[0], list[int]()
    for _ in range(7):
        last = bench.announced(region)
        bench.obey(bench.store(region, A, has_more=True))
        stored_ms = bench.now_ms
        while bench.announced(region) == last:
            bench.tick(100)
        began_ms.append(bench.now_ms - stored_ms)

    assert began_ms == [100, 200, 400, 800, 1600, 1600, 1600]


def test_a_drain_that_takes_too_long_fails_and_says_what_it_waits_for() -> None:
    """Who does not even stop then is killed soon, since somebody waits."""
    bench = Bench((1, 1), executors=1)
    bench.unanswered = {(A, BeginEpoch), (A, StopAllTasks)}
    bench.obey(bench.manager.drain(bench.now_ms, timeout_ms=5000))

    bench.tick(4900)
    assert not only(bench.done, Ended)
    done = bench.tick(2200)

    [ended] = only(done, Ended)
    assert ended.status == "failed"
    assert ended.cause is not None
    assert "the drain did not end within 5 s: it waits for " in ended.cause.cause
    assert "application.drain-timeout-seconds" in ended.cause.cause
    assert "'gear run --resume' or 'gear app submit --from-checkpoint'" in ended.cause.cause
    assert any(stop.kill for stop in only(done, Stop))


def test_a_drain_that_waits_for_a_server_fails_with_its_name() -> None:
    """The step that waits is the right one; what holds the clock may be another."""
    bench = Bench((1, 1), executors=1)
    task = TaskId(1, 0)
    session = bench.manager.regions[0].sessions[task]
    waits = TaskClock(
        task_id=task, session=session, clock_ms=0, watermark_ms=0, waits_for="kafka a:9092"
    )
    bench.obey(bench.manager.on_clocks([waits], bench.now_ms))
    bench.unanswered = {(A, BeginEpoch), (A, StopAllTasks)}
    bench.obey(bench.manager.drain(bench.now_ms, timeout_ms=5000))

    [ended] = only(bench.tick(8000), Ended)

    assert ended.cause is not None
    name = bench.manager.dag.processors[ProcessorId(1)].name
    assert f"within 5 s: it waits for kafka a:9092 (step {name}); what" in ended.cause.cause


def test_a_drain_behind_a_call_that_does_not_end_fails_with_its_line() -> None:
    bench = Bench((1, 1), executors=1)
    turn = LongTurn(
        task_id=TaskId(0, 0), lasts_ms=9300, step="src", source="a.py:9", source_line="ask()"
    )
    bench.manager.on_long_turns(A, (turn,))
    bench.unanswered = {(A, BeginEpoch), (A, StopAllTasks)}
    before = bench.manager.call_of_drain()
    bench.obey(bench.manager.drain(bench.now_ms, timeout_ms=5000))
    meanwhile = bench.manager.call_of_drain()

    [ended] = only(bench.tick(8000), Ended)

    call = "src (task 0.0), which has been in one call for 9 s at a.py:9: ask()"
    assert (before, meanwhile) == ("", call)
    assert ended.cause is not None
    assert f"it waits for {call}; what" in ended.cause.cause
