"""What an app master decides about starts, failures and the end; epochs are in `test_decisions`."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import pytest

from gearpy.core.app.decisions import Activated, Ended, HeldUp, Survived
from gearpy.core.app.deployment import Send
from gearpy.core.app.executors import Launch, Release, RequestSlots, Stop
from gearpy.core.dag.graph import Dag
from gearpy.ids import ExecutorId, ProcessorId, TaskId, WorkerId
from gearpy.messages.app import (
    BeginEpoch,
    ExecutorFailed,
    LaunchTasks,
    LongTurn,
    SettleTasks,
    StopAllTasks,
)
from gearpy.messages.summaries import ErrorCard
from tests.core.manager_bench import (
    A,
    B,
    Bench,
    a_dag,
    a_worker,
    allocation,
    kinds,
    only,
    some_limits,
    stopped,
)

# -- the start and the good end ------------------------------------------------------------


def test_an_application_starts_step_by_step() -> None:
    """Slots, processes, tasks; active when all tasks of all regions run."""
    bench = Bench((1, 1), (1, 1))

    assert bench.states == ["running", "running"]
    assert kinds(bench.done)[:3] == ["RequestSlots", "Launch", "Launch"]
    assert kinds(bench.done).count("Activated") == 1


def test_it_succeeds_when_all_regions_have_come_to_their_end() -> None:
    """Each is stopped well as soon as it has; then all processes are."""
    bench = Bench((1, 1), (1, 1))

    first = bench.finish(0)
    second = bench.finish(1)

    for commands in (first, second):
        stops = [each.message for each in only(commands, Send)][-1:]
        assert all(isinstance(each, StopAllTasks) and each.completed for each in stops)
    assert not only(first, Ended)
    assert kinds(second)[-3:] == ["Stop", "Stop", "Ended"]
    assert second[-1] == Ended(status="succeeded", cause=None)


def test_another_graph_ends_it() -> None:
    bench = Bench(is_begun=False)
    bench.silent = {A, B}
    bench.begin()

    commands = bench.obey(bench.register(bench.last_launch, graph_hash="beef"))

    ended = commands[-1]
    assert isinstance(ended, Ended)
    assert ended.cause is not None
    assert ended.cause.cause.startswith("executor 1 built another graph than the app master")
    assert kinds(commands).count("Stop") == 2


def test_without_slots_it_fails_after_a_time() -> None:
    """The text says what to do; while the master is away nobody is to blame."""
    manager = Bench().another()
    timeout_ms = some_limits().allocation_timeout_ms
    manager.on_start(0)
    manager.on_master(is_there=False, now_ms=10)
    assert manager.on_tick(2 * timeout_ms) == []

    back = manager.on_master(is_there=True, now_ms=2 * timeout_ms)

    assert back == [RequestSlots(slots=4, executors=2)]
    assert manager.on_tick(3 * timeout_ms - 1) == []
    [ended] = manager.on_tick(3 * timeout_ms)
    assert isinstance(ended, Ended)
    assert ended.cause is not None
    assert ended.cause.cause.startswith("got 0 of 4 slots within 60 s: add workers")


def test_a_process_in_which_all_is_done_gives_its_slots_to_one_that_waits_for_some() -> None:
    bench = Bench((1, 1), (1, 1))
    bench.finish(1)
    (needed,) = bench.manager.regions[0].executors
    (done,) = {A, B} - {needed}
    bench.grants = False

    bench.lose(needed)
    early = bench.tick(900)
    late = bench.tick(500)
    bench.grants = True
    bench.obey(bench.manager.on_master(is_there=True, now_ms=bench.now_ms))

    assert not only(early, Stop)
    assert [(each.executor_id, each.kill) for each in only(late, Stop)] == [(done, True)]
    assert bench.states == ["running", "done"]
    assert bench.manager.restarts == 1
    assert [*bench.manager.executors.running] == [needed]


def test_what_lost_tasks_left_open_is_settled_by_an_executor_that_is_left() -> None:
    plain = a_dag((2, 2), (1, 1))
    sink = replace(plain.processors[ProcessorId(1)], leaves_open=True)
    dag = Dag(plain.version, {**plain.processors, sink.id: sink}, plain.edges)
    bench = Bench(dag=dag)
    bench.grants = False
    placed = {each for each in sink.tasks() if bench.manager.regions[0].placement[each] == A}

    (told,) = [each for each in only(bench.lose(A), Send) if isinstance(each.message, SettleTasks)]
    second = [each for each in only(bench.lose(B), Send) if isinstance(each.message, SettleTasks)]

    assert told == Send(executor_id=B, message=SettleTasks(tasks=tuple(sorted(placed))))
    assert second == []


def test_one_that_has_run_waits_for_its_slots_however_long() -> None:
    """It is pending meanwhile, and active again afterwards; only failures have a budget."""
    bench = Bench((1, 1))
    bench.grants = False
    lost = bench.lose(A)
    assert only(lost, RequestSlots) == [RequestSlots(slots=1, executors=1)]

    waited = bench.tick(20 * some_limits().allocation_timeout_ms)

    assert only(waited, HeldUp) == [HeldUp()]
    assert not only(waited, Ended)
    bench.grants = True
    bench.obey(bench.manager.on_master(is_there=True, now_ms=bench.now_ms))
    assert bench.states == ["running"]
    assert len(only(bench.done, Activated)) == 2


def test_one_that_has_run_waits_also_under_another_app_master() -> None:
    manager = Bench().another(launch=2, has_run=True)
    manager.on_start(0)

    assert manager.on_tick(20 * some_limits().allocation_timeout_ms) == []


def test_without_a_number_of_executors_the_application_is_cut_as_there_was_room() -> None:
    bench = Bench((2, 2), (1, 1), executors=0, is_begun=False)
    bench.grants = False
    asked = bench.obey(bench.manager.on_start(0))
    assert asked == [RequestSlots(slots=6, executors=0)]

    bench.obey(bench.manager.on_allocated([allocation(4), allocation(1), allocation(1)], 0))

    assert bench.states == ["running", "running"]
    assert bench.manager.executors.slots == {0: 4, 1: 1, 2: 1}
    assert {len(tasks) for tasks in bench.manager.regions.tasks_of_executors.values()} == {4, 1}
    bench.lose(ExecutorId(0))
    assert only(bench.lose(ExecutorId(1)), RequestSlots) == [
        RequestSlots(slots=5, executors=2, sizes=(4, 1))
    ]


def test_an_allocation_that_is_not_the_whole_is_no_cut() -> None:
    """It is given back, as is what a lost worker had to give; the whole is asked for again."""
    bench = Bench((2, 2), executors=0, is_begun=False)
    bench.grants = False
    bench.begin()
    bench.manager.on_worker_lost(a_worker(8), bench.now_ms)

    part = bench.obey(bench.manager.on_allocated([allocation(1)], bench.now_ms))
    assert kinds(part) == ["Release"]
    assert only(bench.tick(500), RequestSlots) == [RequestSlots(slots=4, executors=0)]
    lost = [allocation(2), allocation(2, 8)]
    assert kinds(bench.obey(bench.manager.on_allocated(lost, bench.now_ms))) == ["Release"] * 2

    assert only(bench.tick(500), RequestSlots) == [RequestSlots(slots=4, executors=0)]
    bench.obey(bench.manager.on_allocated([allocation(2), allocation(2)], bench.now_ms))
    assert bench.states == ["running"]


# -- one failure, one restart ---------------------------------------------------------------


def test_a_failed_task_restarts_its_region_and_no_other() -> None:
    bench = Bench((1, 1), (1, 1))
    sessions = dict(bench.manager.regions[0].sessions)
    attempt = bench.manager.regions[1].attempt

    commands = bench.fail_task(TaskId(0, 0))

    assert isinstance(commands[0], Survived)
    assert bench.states == ["waiting", "running"]
    bench.tick(500)
    assert bench.states == ["running", "running"]
    assert bench.manager.regions[1].attempt == attempt
    assert min(bench.manager.regions[0].sessions.values()) > max(sessions.values())
    assert not only(bench.done[-len(commands) :], Launch)


def test_when_a_restart_in_place_does_not_help_the_process_is_replaced() -> None:
    """It may have used up what only a new one has; that costs no restart of its own."""
    bench = Bench((1, 1), (1, 1), executors=4)
    region = bench.manager.regions[0]
    task = next(iter(region.placement))
    executor = region.placement[task]
    launch = bench.launches[executor]
    bench.fail_task(task)
    bench.tick(500)

    commands = bench.fail_task(task)

    assert [(each.executor_id, each.kill) for each in only(commands, Stop)] == [(executor, True)]
    bench.tick(1000)
    assert bench.launches[executor] > launch
    assert bench.states == ["running", "running"]
    assert bench.manager.restarts == 2


def test_a_process_that_lost_messages_again_is_not_replaced() -> None:
    bench = Bench((1, 1), (1, 1), executors=4)
    task = next(iter(bench.manager.regions[0].placement))
    bench.fail_task(task, kind="lost")
    bench.tick(500)

    assert only(bench.fail_task(task, kind="lost"), Stop) == []


def test_a_process_that_cannot_read_snapshots_that_are_whole_is_replaced() -> None:
    bench = Bench((1, 1))
    bench.unanswered = {(A, LaunchTasks)}
    bench.fail_task(TaskId(0, 0))
    bench.tick(1000)

    commands = bench.damage(A, "")

    assert [each.executor_id for each in only(commands, Stop)] == [A]
    bench.tick(1000)
    assert bench.states == ["running"]


def test_an_executor_that_says_it_cannot_go_on_is_replaced_and_its_card_is_kept() -> None:
    """One restart; a process that was replaced already is not listened to."""
    bench = Bench((1, 1))
    card = ErrorCard(cause="the turn does not end", operator="map", traceback="line 3")
    message = ExecutorFailed(executor_id=A, launch=bench.launches[A], error=card)

    commands = bench.obey(bench.manager.on_executor_failed(message, bench.now_ms))

    assert [each.error for each in only(commands, Survived)] == [card]
    assert [(each.executor_id, each.kill) for each in only(commands, Stop)] == [(A, True)]
    bench.tick(1000)
    assert bench.states == ["running"]
    assert bench.manager.restarts == 1
    assert bench.manager.on_executor_failed(message, bench.now_ms) == []


def test_threads_that_cannot_go_on_end_their_application() -> None:
    """They cannot be killed, and others in their place would meet the same."""
    bench = Bench((1, 1), (1, 1), executors=2)
    card = ErrorCard(cause="the turn does not end", operator="map")
    launch = bench.launches[A]
    message = ExecutorFailed(executor_id=A, launch=launch, error=card, is_replaceable=False)
    bench.silent = {A}

    commands = bench.obey(bench.manager.on_executor_failed(message, bench.now_ms))
    commands += bench.tick(10)

    assert (A, True) in [(each.executor_id, each.kill) for each in only(commands, Stop)]
    assert commands[-1] == Ended(status="failed", cause=card)


def test_long_turns_are_known_until_their_executor_tells_others_or_is_gone() -> None:
    bench = Bench((1, 1), (1, 1), executors=2)
    of_a, of_b = (LongTurn(task_id=TaskId(n, 0), lasts_ms=5000, step="map") for n in (0, 1))

    bench.manager.on_long_turns(A, (of_a,))
    bench.manager.on_long_turns(B, (of_b,))
    both = dict(bench.manager.long_turns)
    bench.manager.on_long_turns(B, ())
    bench.lose(A)

    assert both == {A: (of_a,), B: (of_b,)}
    assert bench.manager.long_turns == {B: ()}


@pytest.mark.parametrize("order", [*permutations(["told", "link", "other link", "tasks"])], ids=str)
def test_a_lost_executor_with_all_that_follows_costs_one_restart(order: Sequence[str]) -> None:
    """Its worker reports it, peers complain about links, tasks miss messages; in any order."""
    bench, gone = Bench((2, 2), (1, 1), (2, 1), executors=3), ExecutorId(1)
    launch = bench.launches[gone]
    sessions = {task: each for r in bench.manager.regions for task, each in r.sessions.items()}
    bench.silent = {gone}

    for sign in order:
        if sign == "told":
            bench.silent = set()
            bench.lose(gone)
        elif sign == "tasks":
            for region in bench.manager.regions:
                for task in [each for each, at in region.placement.items() if at != gone]:
                    bench.fail_task(task, session=sessions[task])
        else:
            bench.break_link(A if sign == "link" else ExecutorId(2), gone, launch)
        bench.tick(100)
    bench.tick(5000)

    assert bench.manager.restarts == 1
    assert bench.states == ["running"] * 3


def test_a_lost_worker_costs_one_restart() -> None:
    """However many of its executors ran, or were starting."""
    bench = Bench((2, 2), (1, 1), executors=4)
    assert bench.states == ["running", "running"]

    bench.obey(bench.manager.on_worker_lost(a_worker(), bench.now_ms))
    bench.tick(3000)

    assert bench.manager.restarts == 1
    assert bench.states == ["running", "running"]


def test_a_worker_that_is_lost_later_than_its_executors_costs_one_restart() -> None:
    bench = Bench()
    bench.silent.add(A)
    bench.lose(A, "its process does not answer")
    bench.tick(2500)
    assert bench.launches == {A: 3, B: 2}
    bench.silent.clear()

    bench.obey(bench.manager.on_worker_lost(a_worker(), bench.now_ms))
    bench.tick(3000)

    assert bench.states == ["running"]
    assert bench.manager.restarts == 1


def test_a_broken_link_alone_restarts_what_may_have_used_it() -> None:
    """After a moment in which nobody was reported gone; both ends complain, one restart."""
    bench = Bench((2, 2), (1, 0 + 1))
    bench.break_link(A, B)
    bench.break_link(B, A)

    assert not only(bench.tick(400), Survived)
    commands = bench.tick(100)

    [survived] = only(commands, Survived)
    assert "the link from executor 0 to data:1-2 broke: reset" in survived.error.cause
    bench.tick(3000)
    assert bench.manager.restarts == 1


def test_the_other_ends_complaint_about_a_link_costs_nothing() -> None:
    bench = Bench((1, 1), (1, 1), (1, 1), executors=2, backoff_ms=0)
    using = next(each for each in bench.manager.regions if len(each.executors) > 1)
    bench.break_link(A, B)
    bench.fail_task(next(iter(using.placement)))
    bench.break_link(B, A)

    bench.tick(3000)

    assert bench.manager.restarts == 1
    assert bench.states == ["running"] * 3


def test_a_broken_link_of_tasks_that_do_not_exist_yet_is_no_failure() -> None:
    bench = Bench()
    [region] = bench.manager.regions
    bench.manager.replay(bench.now_ms)
    bench.manager.on_answer(stopped(region, A), bench.now_ms)
    launches = bench.manager.on_answer(stopped(region, B), bench.now_ms)
    bench.break_link(A, B)

    bench.obey(launches)
    bench.tick(1000)

    assert bench.states == ["running"]
    assert bench.manager.restarts == 0


def test_a_failed_task_of_an_old_session_is_nothing() -> None:
    """Its region has been restarted since."""
    bench = Bench(backoff_ms=0)
    old = bench.manager.regions[0].sessions[TaskId(0, 0)]
    bench.fail_task(TaskId(0, 0))

    assert bench.fail_task(TaskId(0, 0), session=old) == []
    assert bench.fail_task(TaskId(0, 1), session=0) == []


def test_the_budget_ends_it_with_the_last_cause() -> None:
    bench = Bench((1, 1), (1, 1), restarts=1)
    bench.fail_task(TaskId(0, 0))
    bench.tick(3000)

    commands = bench.fail_task(TaskId(0, 0), "boom")

    assert commands[-1] == Ended(status="failed", cause=ErrorCard(cause="boom", operator="map"))
    wanted = sum(len(region.executors) for region in bench.manager.regions)
    assert kinds(commands).count("StopAllTasks") == wanted
    assert bench.tick(5000) == []


def test_a_record_that_fails_too_often_ends_it_before_the_budget_does() -> None:
    bench = Bench(backoff_ms=0)

    bench.fail_task(TaskId(1, 0), "boom", record="'y'")
    bench.fail_task(TaskId(1, 0), "boom", record="'x'")
    bench.fail_task(TaskId(1, 1), "boom", record="'x'")
    commands = bench.fail_task(TaskId(1, 0), "boom", record="'x'")

    assert isinstance(commands[-1], Ended)
    assert commands[-1].status == "failed"


# -- executors -----------------------------------------------------------------------------


def test_an_executor_that_does_not_register_is_killed_and_replaced() -> None:
    bench = Bench()
    bench.silent = {B}
    bench.lose(B)

    commands = bench.tick(3200)

    stop = next(each for each in commands if isinstance(each, Stop))
    assert (stop.executor_id, stop.launch, stop.kill) == (B, 3, True)
    assert stop.reason == "it has not registered within 3 s"
    bench.tick(1000)
    assert bench.launches[B] == 4


def test_an_executor_that_does_not_answer_a_step_is_killed_and_replaced() -> None:
    bench = Bench()
    bench.silent = {B}
    bench.obey(bench.manager.replay(bench.now_ms))
    bench.tick(2000)
    bench.silent = set()

    bench.obey(bench.register(bench.last_launch))
    bench.tick(1000)

    stops = [each for each in bench.done if isinstance(each, Stop)]
    assert [(each.executor_id, each.kill) for each in stops] == [(B, True)]
    assert bench.manager.restarts == 1
    assert bench.states == ["running"]


def test_a_silent_executor_is_killed_unless_its_worker_tells_more() -> None:
    bench = Bench()
    bench.manager.on_executor_silent(A, 1, bench.now_ms)
    bench.lose(A, "out of memory")
    told = bench.tick(1000)
    assert not [each for each in told if isinstance(each, Stop)]

    bench.manager.on_executor_silent(B, 2, bench.now_ms)
    [stop] = [each for each in bench.tick(1000) if isinstance(each, Stop)]

    assert (stop.executor_id, stop.launch, stop.kill) == (B, 2, True)


def test_slots_that_come_too_late_are_given_back() -> None:
    bench = Bench()
    bench.finish(0)

    assert bench.manager.on_allocated([allocation(3)], 0) == [
        Release(worker_id=WorkerId(7), slots=3)
    ]


# -- the end that is not good --------------------------------------------------------------


def test_an_end_that_fails_is_a_failure() -> None:
    """A sink that could not close has not written all; its region starts again, for one restart."""
    bench = Bench()
    bench.unanswered = {(A, StopAllTasks), (B, StopAllTasks)}
    bench.finish(0)
    [region] = bench.manager.regions
    card = ErrorCard(cause="disk full")
    for each, errors in ((A, (card,)), (B, ())):
        bench.obey(bench.manager.on_answer(stopped(region, each, *errors), bench.now_ms))
    bench.unanswered = set()

    bench.tick(1000)

    assert bench.states == ["running"]
    assert bench.manager.restarts == 1
    assert isinstance(bench.finish(0)[-1], Ended)


def test_an_executor_that_is_lost_after_its_part_of_the_good_end_costs_nothing() -> None:
    """Unless the others' part fails; then it is replaced."""
    bench = Bench()
    bench.unanswered = {(A, StopAllTasks)}
    bench.finish(0)
    assert not only(bench.lose(B), RequestSlots)
    assert bench.manager.restarts == 0
    bench.unanswered = set()

    bench.fail_task(TaskId(0, 0), "boom")
    [region] = bench.manager.regions
    bench.obey(bench.manager.on_answer(stopped(region, A), bench.now_ms))
    bench.tick(2000)

    assert bench.states == ["running"]
    assert bench.manager.restarts == 1


def test_it_ends_though_executors_are_lost_meanwhile() -> None:
    bench = Bench()
    bench.silent = {A, B}
    bench.obey(bench.manager.fail(ErrorCard(cause="too many"), bench.now_ms))

    commands = [*bench.lose(A), *bench.lose(B)]

    assert not only(commands, RequestSlots)
    assert commands[-1] == Ended(status="failed", cause=ErrorCard(cause="too many"))
    assert bench.manager.fail(ErrorCard(cause="more"), 0) == []


def test_it_ends_though_nobody_answers() -> None:
    """After the time of the step; whoever was silent is killed before the end is told."""
    bench = Bench()
    bench.silent = {A, B}
    bench.obey(bench.manager.fail(ErrorCard(cause="too many"), bench.now_ms))

    commands = bench.tick(2100)

    assert [each.kill for each in commands if isinstance(each, Stop)] == [True, True]
    assert isinstance(commands[-1], Ended)


# -- replay --------------------------------------------------------------------------------


def test_a_replay_leaves_what_restarts_or_is_done_alone() -> None:
    bench = Bench((1, 1), (1, 1))
    bench.finish(0)
    bench.fail_task(TaskId(2, 0))

    assert bench.manager.replay(bench.now_ms) == []
    bench.finish(1)
    assert bench.states == ["done", "waiting"]


def test_slots_of_a_worker_that_is_lost_are_given_back_for_a_moment() -> None:
    bench = Bench(is_begun=False)
    bench.silent = {A, B}
    bench.begin()
    before = len(only(bench.done, Launch))

    lost = bench.obey(bench.manager.on_worker_lost(a_worker(), bench.now_ms))
    early = [command for _ in range(3) for command in bench.tick(500)]
    bench.silent = set()
    late = bench.tick(1500)

    assert before == 2
    assert len(only(lost, Release)) == 2  # Of those that had not registered.
    assert not only(early, Launch)
    assert len(only(early, Release)) == 2 * len(only(early, RequestSlots))
    assert len(only(late, Launch)) == 2
    assert bench.states == ["running"]
    assert bench.manager.restarts == 1


def test_a_task_takes_no_record_by_hand_at_the_end() -> None:
    """Its last epoch may have ended: the record would be written and never shown."""
    bench = Bench((1, 1), (1, 1))
    bench.unanswered = {(each, BeginEpoch) for each in (A, B)}
    tasks = [TaskId(0, 0), TaskId(2, 0), TaskId(99, 0)]
    before = [*map(bench.manager.takes_records, tasks)]

    bench.finish(0)

    assert before == [True, True, False]
    assert [*map(bench.manager.takes_records, tasks)] == [False, True, False]


def test_an_epoch_ends_before_its_time_if_it_is_asked_for() -> None:
    bench = Bench((1, 1), (1, 1))
    bench.done.clear()

    regions = bench.manager.end_epochs()
    wanted = [each.epochs.next_to_end for each in regions]
    bench.tick(1)

    assert [bench.announced(each).epoch for each in regions] == wanted
    assert [each.epochs.next_to_end for each in regions] == [each + 1 for each in wanted]

    assert [each.number for each in regions] == [0, 1]
    assert len({bench.announced(each).attempt for each in regions}) == 2


@pytest.mark.parametrize("is_stored", [False, True], ids=["ends", "is stored"])
def test_no_other_epoch_ends_for_who_asks_again(*, is_stored: bool) -> None:
    """The one that is waited for ends already: a look at the state of now costs one epoch."""
    bench = Bench((1, 1))
    (region,) = bench.manager.end_epochs()
    wanted = {region.number: region.epochs.next_to_end}
    bench.tick(1)
    if is_stored:
        bench.end_epoch()

    bench.manager.end_epochs(wanted)
    bench.tick(1)

    assert bench.announced(region).epoch == wanted[region.number]
    if not is_stored:
        bench.end_epoch()
    bench.manager.end_epochs()
    bench.tick(1)
    assert bench.announced(region).epoch == wanted[region.number] + 1


def test_who_asks_while_another_epoch_ends_gets_the_next_one_at_once() -> None:
    bench = Bench((1, 1))
    bench.manager.end_epochs()
    bench.tick(1)
    (region,) = bench.manager.end_epochs()
    wanted = {region.number: region.epochs.next_to_end}
    bench.end_epoch()

    bench.manager.end_epochs(wanted)
    bench.tick(1)

    assert bench.announced(region).epoch == wanted[region.number]


def test_no_epoch_of_a_region_that_does_not_run_can_be_asked_for() -> None:
    assert not Bench(is_begun=False).manager.end_epochs()


def test_a_worker_that_is_told_to_end_costs_no_restart() -> None:
    bench = Bench((2, 2), executors=2, restarts=1)

    for _ in range(4):
        bench.lose(A, cause="")
        bench.tick(5000)
        assert bench.states == ["running"]
    assert bench.manager.restarts == 0

    bench.lose(A)
    bench.tick(5000)
    assert bench.manager.restarts == 1
    bench.lose(A)
    assert bench.manager.is_ended or only(bench.done, Ended)
