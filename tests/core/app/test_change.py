"""A change of a running application: the switch to the next version, and the trial of that one."""

from collections import Counter
from typing import Final

import pytest

from gearpy.core.app.application import ApplicationCore
from gearpy.core.app.decisions import (
    ChangeGivenUp,
    Command,
    DropSnapshots,
    Ended,
    GoBack,
    PutInPlace,
    StoreManifest,
    Survived,
    TrialPassed,
)
from gearpy.core.app.deployment import Send
from gearpy.core.app.executors import Launch, RequestSlots, Stop
from gearpy.core.dag.graph import Dag
from gearpy.ids import ExecutorId, TaskId, WorkerId
from gearpy.messages.app import (
    BeginEpoch,
    CommitEpoch,
    ExecutorFailed,
    LaunchTasks,
    StartAllTasks,
    TaskClock,
)
from gearpy.messages.summaries import ErrorCard
from tests.core.manager_bench import LOST, A, B, Bench, a_dag, kinds, only, sent

_NEXT = (ExecutorId(2), ExecutorId(3))


def next_dag(*regions: tuple[int, int]) -> Dag:
    dag = a_dag(*regions or [(2, 2)])
    return Dag(1, dag.processors, dag.edges)


def change(bench: Bench) -> list[Command]:
    return bench.obey(bench.manager.change(next_dag(), bench.now_ms))


def follow(bench: Bench, *, is_trial: bool = True) -> ApplicationCore:
    """Put the next version in place; return the core before."""
    before = bench.manager
    manifests = before.last_manifests()
    bench.manager = bench.another(after=before, manifests=manifests, is_trial=is_trial)
    bench.begin()
    return before


def on_trial(*, trial_ms: int = 0, interval_ms: int = 300) -> tuple[Bench, ApplicationCore]:
    bench = Bench(trial_ms=trial_ms, interval_ms=interval_ms)
    change(bench)
    return bench, follow(bench)


# -- the switch --------------------------------------------------------------------------------


def test_the_next_version_is_put_in_place_when_it_is_there_and_the_last_epoch_is_shown() -> None:
    """Its processes start while the old version runs; the sinks of that know of its last epoch."""
    bench = Bench()

    done = change(bench)

    launches = [each.executor_id for each in only(done, Launch)]
    begins = [each for each in only(done, Send) if isinstance(each.message, BeginEpoch)]
    commits = [each for each in only(done, Send) if isinstance(each.message, CommitEpoch)]
    assert launches == [*_NEXT]
    assert done.index(only(done, Launch)[-1]) < done.index(begins[0])
    assert all(each.message.is_last for each in begins if isinstance(each.message, BeginEpoch))
    assert commits
    assert done[-1] == PutInPlace()
    assert not bench.manager.is_ended


def test_the_next_core_takes_over_executors_and_numbers() -> None:
    bench, before = on_trial()
    after = bench.manager

    launched = [e.message for e in only(bench.done, Send) if isinstance(e.message, LaunchTasks)]
    stopped = {each.executor_id for each in only(bench.done, Stop)}
    epochs = {attempt: message.epoch for message in launched for attempt in [message.attempt]}
    first, second = sorted(epochs)
    assert set(after.regions.tasks_of_executors) == {*_NEXT}
    assert stopped == {A, B}
    assert epochs[second] > epochs[first] + 1
    assert min(after.regions[0].sessions.values()) > max(before.regions[0].sessions.values())
    assert bench.states == ["running"]


def test_a_change_waits_for_slots_only_so_long() -> None:
    """Maybe the old processes have them; then those end first."""
    bench = Bench()
    bench.grants = False

    early = change(bench) + bench.tick(9_000) + bench.end_epoch()
    done = bench.tick(2_000) + bench.end_epoch() + bench.tick(1_000)

    assert not only(early, PutInPlace)
    assert only(done, PutInPlace)


def test_slots_of_a_change_that_is_given_up_are_not_waited_for_any_more() -> None:
    """The master would say for minutes that the application waits, and have workers added."""
    bench = Bench()
    bench.grants = False
    bench.obey(bench.manager.change(next_dag((8, 8)), bench.now_ms))

    done = bench.obey(bench.manager.keep("no", bench.now_ms))

    assert only(done, RequestSlots) == [RequestSlots(slots=0, executors=0)]
    assert not only(bench.tick(60_000), RequestSlots)


def test_slots_that_a_process_was_lost_with_are_still_waited_for_when_a_change_is_given_up() -> (
    None
):
    bench = Bench()
    bench.grants = False
    bench.obey(bench.manager.change(next_dag((8, 8)), bench.now_ms))
    bench.lose(B)
    bench.tick(1_000)

    done = bench.obey(bench.manager.keep("no", bench.now_ms))

    assert only(done, RequestSlots) == [RequestSlots(slots=2, executors=1)]


#: The slots that nobody has, by worker; what is missing then.
_FREE: Final[dict[str, tuple[dict[int, int] | None, str]]] = {
    "too few": (
        {7: 5, 8: 6},
        "it needs 16 more slots, and 11 are free, 4 with the version before: add",
    ),
    "enough": ({7: 4, 8: 8}, ""),
    "in pieces": (
        {7: 4, **dict.fromkeys(range(8, 20), 1)},
        "it needs 8 slots on one worker for each of 2 executors, and there are 1 such places, with",
    ),
    "enough with those that leave": ({7: 12}, ""),
    "workers are added": (None, ""),
}


@pytest.mark.parametrize(("free", "text"), _FREE.values(), ids=_FREE)
def test_a_change_is_given_up_if_the_slots_of_the_old_version_would_not_do(
    free: dict[int, int] | None, text: str
) -> None:
    """The old version goes on without a pause; it would have waited for its way back else."""
    bench = Bench()
    bench.grants = False
    bench.obey(bench.manager.change(next_dag((8, 8)), bench.now_ms, executors=2))
    bench.tick(6_000)
    early = bench.manager.asks_for_slots(bench.now_ms)

    bench.tick(2_000)
    asks = bench.manager.asks_for_slots(bench.now_ms)
    bench.manager.on_free_slots(
        None if free is None else {WorkerId(at): slots for at, slots in free.items()}
    )
    done = bench.tick(4_000) + bench.end_epoch() + bench.tick(1_000)

    goes_on = bool(text)
    assert (early, asks) == (False, True)
    assert [each.reason.startswith(text) for each in only(done, ChangeGivenUp)] == [True] * goes_on
    assert any(each.is_last for each in sent(done, BeginEpoch)) != goes_on


def test_an_update_of_one_region_may_take_the_slots_of_a_process_that_stays() -> None:
    bench = Bench((2, 2), (2, 2))
    bench.grants = False
    bench.obey(bench.manager.change(next_dag((2, 2), (2, 2)), bench.now_ms, kept=frozenset({0})))
    bench.tick(8_000)
    bench.manager.on_free_slots({WorkerId(7): 0})

    done = bench.tick(4_000) + bench.end_epoch(1) + bench.tick(1_000)

    assert not only(done, ChangeGivenUp)
    assert any(each.is_last for each in sent(done, BeginEpoch))


def test_the_old_version_does_not_end_for_slots_while_the_master_is_away() -> None:
    """Nobody could give them to the new one; it goes on when the master is back."""
    bench = Bench()
    bench.grants = False
    bench.obey(bench.manager.change(next_dag((8, 8)), bench.now_ms))
    bench.manager.on_free_slots({WorkerId(7): 0})
    bench.manager.on_master(is_there=False, now_ms=bench.now_ms)

    away = bench.tick(60_000)
    bench.obey(bench.manager.on_master(is_there=True, now_ms=bench.now_ms))
    early = bench.tick(8_000)
    bench.manager.on_free_slots({WorkerId(7): 12})
    late = bench.tick(4_000) + bench.end_epoch() + bench.tick(1_000)

    assert not only([*away, *early, *late], ChangeGivenUp)
    assert not any(each.is_last for each in sent([*away, *early], BeginEpoch))
    assert any(each.is_last for each in sent(late, BeginEpoch))


def test_a_change_gives_way_to_a_lost_process_that_it_has_taken_the_slots_of() -> None:
    """Both would wait without end: the old version for slots, the change for that one's epoch."""
    bench = Bench()
    bench.unanswered = {(A, BeginEpoch), (B, BeginEpoch)}
    change(bench)
    bench.grants = False
    bench.lose(B)

    early = bench.tick(4_000)
    done = bench.tick(3_000)
    bench.grants = True
    bench.tick(1_000)

    assert not only(early, ChangeGivenUp)
    (given_up,) = only(done, ChangeGivenUp)
    assert "slots that a lost process of the version that runs needs" in given_up.reason
    assert {each.executor_id for each in only(done, Stop)} >= {*_NEXT}


def test_processes_that_have_slots_are_waited_for_as_long_as_they_may_take() -> None:
    bench = Bench()
    bench.silent = {_NEXT[1]}

    done = change(bench) + bench.tick(15_000) + bench.end_epoch() + bench.tick(1_000)

    begins = sent(done, BeginEpoch)
    assert not any(each.is_last for each in begins)
    assert not only(done, PutInPlace)


def test_a_process_of_the_next_version_that_ends_gives_the_change_up() -> None:
    bench = Bench()
    bench.silent = {_NEXT[1]}
    change(bench)

    done = bench.lose(_NEXT[1], "ImportError: no module named shop")

    (given_up,) = only(done, ChangeGivenUp)
    assert "ImportError" in given_up.reason
    assert {each.executor_id for each in only(done, Stop) if each.kill} >= {_NEXT[0]}
    assert bench.states == ["running"]
    assert bench.manager.restarts == 0
    assert bench.manager.why_unchangeable() == ""


def test_a_process_of_the_next_version_that_cannot_go_on_is_no_failure_of_this_one() -> None:
    bench = Bench()
    bench.silent = {_NEXT[1]}
    change(bench)

    message = ExecutorFailed(
        executor_id=_NEXT[1],
        launch=bench.launches[_NEXT[1]],
        error=ErrorCard(cause="wrong"),
        is_replaceable=False,
    )
    done = bench.obey(bench.manager.on_executor_failed(message, bench.now_ms))

    assert only(done, ChangeGivenUp)
    assert not only(done, Ended)
    assert bench.states == ["running"]


def test_a_next_version_with_another_graph_than_planned_is_given_up() -> None:
    bench = Bench()
    bench.silent = {*_NEXT}
    done = change(bench)

    done = bench.obey(bench.register(only(done, Launch)[0], graph_hash="another"))

    assert only(done, ChangeGivenUp)
    assert bench.states == ["running"]


def test_a_last_epoch_that_takes_too_long_gives_the_change_up() -> None:
    bench = Bench()
    bench.unanswered = {(A, BeginEpoch), (B, BeginEpoch)}
    change(bench)

    done = bench.tick(301_000)
    bench.unanswered = set()
    bench.tick(2000)

    assert only(done, ChangeGivenUp)
    assert not only(done, PutInPlace)
    assert bench.states == ["running"]
    assert bench.manager.restarts == 0


def test_a_version_that_cannot_be_put_in_place_leaves_the_old_one_running() -> None:
    """Its state cannot be shared, say; everything had ended by then, and begins again."""
    bench = Bench((1, 1), (1, 1))
    bench.obey(bench.manager.change(next_dag((1, 1), (1, 1)), bench.now_ms))
    assert bench.states == ["done", "done"]

    done = bench.obey(bench.manager.keep("no", bench.now_ms))

    assert only(done, ChangeGivenUp) == [ChangeGivenUp(reason="no")]
    assert bench.states == ["running", "running"]
    done = bench.tick(1000)
    assert any(isinstance(each.message, BeginEpoch) for each in only(done, Send))


def test_only_one_change_at_a_time() -> None:
    bench = Bench()
    bench.silent = {*_NEXT}
    change(bench)

    assert "another change" in bench.manager.why_unchangeable()
    bench.obey(bench.manager.drain(bench.now_ms, timeout_ms=60_000))
    assert "about to end" in bench.manager.why_unchangeable()
    assert "not all" in Bench(is_begun=False).manager.why_unchangeable()


# -- the trial ---------------------------------------------------------------------------------


def test_a_trial_passes_with_its_first_epoch_before_sinks_show_it() -> None:
    """From then on going back would show results twice."""
    bench, _ = on_trial()
    assert "on trial" in bench.manager.why_unchangeable()

    bench.tick(1000)
    done = bench.end_epoch()

    (passed,) = only(done, TrialPassed)
    commits = [each for each in only(done, Send) if isinstance(each.message, CommitEpoch)]
    assert done.index(passed) < done.index(commits[0])
    assert bench.manager.why_unchangeable() == ""


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ((), "its trial saw no records: if one fails later, it does not go back"),
        (
            (TaskId(0, 1),),
            "its trial saw no records of p1: if one fails later, it does not go back",
        ),
        ((TaskId(0, 1), TaskId(1, 0)), ""),
    ],
)
def test_a_trial_says_which_steps_have_had_no_record(seen: tuple[TaskId, ...], said: str) -> None:
    """With nothing to read a version passes its trial, whatever it would do with records."""
    bench, _ = on_trial()
    (region,) = bench.manager.regions
    clocks = [
        TaskClock(
            task_id=each,
            session=session,
            clock_ms=1,
            watermark_ms=1,
            records_in=5,
            untried=each not in seen,
        )
        for each, session in region.sessions.items()
    ]
    bench.obey(bench.manager.on_clocks(clocks, bench.now_ms))

    bench.tick(1000)
    (stored,) = only(bench.end_epoch(), StoreManifest)

    assert (stored.ends_trial, stored.untried) == (True, said)


def test_a_task_that_raises_in_the_trial_ends_it_at_once() -> None:
    bench, _ = on_trial()
    bench.tick(1000)

    done = bench.fail_task(TaskId(0, 0), "KeyError: 'price'")
    late = bench.end_epoch() + bench.tick(1000)

    assert done[-1] == GoBack(cause=ErrorCard(cause="KeyError: 'price'", operator="map"))
    assert {each.executor_id for each in only(done, Stop) if each.kill} == {*_NEXT}
    assert not only(late, TrialPassed)
    assert not sent(late, CommitEpoch)


def test_an_epoch_that_is_in_the_log_after_the_decision_is_told_to_nobody() -> None:
    bench, _ = on_trial()
    bench.stores = False
    bench.tick(1000)
    (unstored,) = only(bench.end_epoch(), StoreManifest)

    bench.fail_task(TaskId(0, 0), "broken")
    late = bench.manager.on_manifest_stored(0, unstored.manifest.epoch, bench.now_ms)

    assert late == []


def test_a_process_that_is_lost_in_the_trial_is_replaced() -> None:
    bench, _ = on_trial()

    done = bench.lose(_NEXT[0]) + bench.tick(2000)

    assert only(done, Survived)
    assert not only(done, GoBack)
    assert bench.states == ["running"]


def test_a_trial_lasts_anew_when_its_tasks_are_started_again() -> None:
    bench, _ = on_trial(trial_ms=2000)
    bench.tick(1900)
    bench.lose(_NEXT[0])

    early = bench.tick(1500)
    assert bench.states == ["running"]
    bench.tick(1000)
    passed = bench.end_epoch()

    assert not sent(early, BeginEpoch)
    assert only(passed, TrialPassed)


def test_a_trial_begins_when_each_of_its_tasks_has_reported() -> None:
    bench = Bench(trial_ms=2000)
    bench.frozen = {_NEXT[1]}
    change(bench)
    follow(bench)
    (region,) = bench.manager.regions

    early = bench.tick(10_000)
    bench.obey(bench.report(region.attempt or 0, _NEXT[1]))
    trial = bench.tick(1900)
    bench.tick(300)
    passed = bench.end_epoch()

    assert not sent(early + trial, BeginEpoch)
    assert only(passed, TrialPassed)


def test_a_trial_lasts_longer_by_the_time_for_which_a_process_is_silent() -> None:
    bench, _ = on_trial(trial_ms=2000)
    bench.unanswered.add((_NEXT[1], StartAllTasks))

    frozen = bench.tick(30_000)
    bench.unanswered.clear()
    awake = bench.tick(1200)
    bench.tick(800)
    passed = bench.end_epoch()

    assert sent(frozen, StartAllTasks)
    assert not sent(frozen + awake, BeginEpoch)
    assert only(passed, TrialPassed)


def two_on_trial() -> Bench:
    """Return two regions that a change has touched; one has ended an epoch since."""
    bench = Bench((1, 1), (1, 1), executors=1)
    bench.obey(bench.manager.change(next_dag((1, 1), (1, 1)), bench.now_ms))
    follow(bench)
    bench.tick(1000)
    bench.end_epoch(0)
    return bench


def test_a_trial_is_over_when_each_region_that_it_is_about_has_stored_an_epoch() -> None:
    bench = two_on_trial()
    early = bench.done[:]

    done = bench.end_epoch(1)

    tried = {each.attempt for each in bench.manager.regions}
    assert not only(early, TrialPassed)
    assert tried.isdisjoint(each.attempt for each in sent(early, CommitEpoch))
    (store,) = only(done, StoreManifest)
    assert [each.region for each in (store.manifest, *store.also)] == [0, 1]
    assert store.ends_trial
    assert kinds(done).index("TrialPassed") < kinds(done).index("CommitEpoch")
    assert {each.attempt for each in sent(done, CommitEpoch)} == tried


def test_a_region_that_fails_in_the_trial_fails_it_for_one_that_has_ended_an_epoch() -> None:
    bench = two_on_trial()

    done = bench.fail_task(TaskId(2, 0), "KeyError: 'price'")
    late = bench.tick(3000)

    assert only(done, GoBack)
    assert not only(done + late, StoreManifest)
    assert not sent(done + late, CommitEpoch)


def test_an_epoch_that_waits_for_the_trial_is_lost_with_the_tasks_that_have_ended_it() -> None:
    """In the log it would be shown by their restart; they end another one."""
    bench = two_on_trial()
    region = bench.manager.regions[0]
    held = region.history.unstored
    assert held is not None

    lost = bench.fail_task(TaskId(0, 0), LOST, kind="lost")
    bench.tick(2000)
    dropped = {file.location for each in only(lost, DropSnapshots) for file in each.files}
    passed = bench.end_epoch(0) + bench.end_epoch(1)

    assert bench.states == ["running", "running"]
    assert dropped == {file.location for file in held.snapshots}
    (store,) = only(passed, StoreManifest)
    assert store.manifest.epoch > held.epoch
    assert only(passed, TrialPassed)


def test_epochs_of_a_trial_that_may_be_in_the_log_stay_though_tasks_are_lost() -> None:
    bench = two_on_trial()
    bench.stores = False
    (store,) = only(bench.end_epoch(1), StoreManifest)

    bench.fail_task(TaskId(0, 0), LOST, kind="lost")
    bench.stores = True
    done = bench.tick(5000)

    assert {each.manifest for each in only(done, StoreManifest)} >= {store.manifest, *store.also}
    assert only(done, TrialPassed)
    assert bench.states == ["running", "running"]


def test_a_trial_waits_for_no_interval_between_epochs() -> None:
    """It would end before a long one does."""
    bench, _ = on_trial(trial_ms=2000, interval_ms=900_000)

    bench.tick(2100)
    done = bench.end_epoch()

    assert only(done, TrialPassed)


def test_a_trial_without_an_epoch_fails_some_time() -> None:
    bench, _ = on_trial()

    done = bench.tick(301_000)

    (back,) = only(done, GoBack)
    assert "no epoch within 300 s" in back.cause.cause


def test_the_version_before_follows_a_failed_one() -> None:
    bench, _ = on_trial()
    manifests = bench.manager.last_manifests()
    bench.fail_task(TaskId(0, 0), "broken")
    failed = bench.manager

    bench.manager = bench.another(after=failed, manifests=manifests)
    bench.begin()

    assert bench.states == ["running"]
    assert set(bench.manager.regions.tasks_of_executors).isdisjoint({A, B, *_NEXT})
    assert bench.manager.why_unchangeable() == ""


# -- what a change does not touch --------------------------------------------------------------


def beside(*, is_trial: bool = True) -> Bench:
    """Return two regions, of which a change has just touched the second one."""
    bench = Bench((1, 1), (1, 1), executors=1)
    dag = next_dag((1, 1), (1, 1))
    bench.obey(bench.manager.change(dag, bench.now_ms, kept=frozenset({0})))
    follow(bench, is_trial=is_trial)
    return bench


def test_a_region_that_a_change_does_not_touch_goes_on() -> None:
    """It ends no epoch for the change, and begins nothing anew; only the other one's tasks move."""
    bench = beside()
    launched = [e.message for e in only(bench.done, Send) if isinstance(e.message, LaunchTasks)]
    ended = [e.message for e in only(bench.done, Send) if isinstance(e.message, BeginEpoch)]

    untouched, touched = bench.manager.regions
    assert [each.region for each in launched].count(0) == len(untouched.executors)
    assert untouched.attempt not in {each.attempt for each in ended}
    assert untouched.executors == {A}
    assert touched.executors == {B}
    assert not only(bench.done, Stop)
    assert bench.states == ["running", "running"]


def test_epochs_of_an_untouched_region_say_nothing_of_a_trial() -> None:
    bench = beside()
    untouched, touched = bench.manager.regions

    bench.tick(1000)
    early = bench.end_epoch(untouched.number)
    late = bench.end_epoch(touched.number)

    assert not only(early, TrialPassed)
    assert only(late, TrialPassed)


def test_a_failure_of_an_untouched_region_in_the_trial_is_one_like_others() -> None:
    bench = beside()

    done = bench.fail_task(TaskId(0, 0), "KeyError: 'price'") + bench.tick(2000)

    assert only(done, Survived)
    assert not only(done, GoBack)
    assert bench.states == ["running", "running"]


def test_an_untouched_region_is_not_on_trial_under_another_app_master() -> None:
    bench = Bench((1, 1), (1, 1), executors=1)
    bench.manager = bench.another(launch=2, is_trial=True, untried=(0,))
    bench.begin()
    bench.tick(1000)

    early = bench.end_epoch(0) + bench.fail_task(TaskId(0, 0), "broken") + bench.tick(2000)
    late = bench.end_epoch(1)

    (stored,) = only(early, StoreManifest)
    assert (stored.manifest.region, stored.ends_trial) == (0, False)
    assert only(early, Survived)
    assert not only(early, TrialPassed)
    assert only(late, TrialPassed)


def test_an_untouched_region_goes_on_also_when_the_trial_fails() -> None:
    bench = beside()
    sessions = bench.manager.regions[0].sessions
    bench.tick(1000)

    done = bench.fail_task(TaskId(2, 0), "broken") + bench.end_epoch(0)
    commits = sent(done, CommitEpoch)
    bench.manager = bench.another(after=bench.manager)
    bench.begin()

    assert only(done, GoBack)
    assert commits
    assert {each.executor_id for each in only(done, Stop)} == {B}
    assert bench.manager.regions[0].sessions == sessions
    assert bench.states == ["running", "running"]


def test_a_process_that_starts_as_the_version_changes_may_have_the_program_of_the_other() -> None:
    bench = Bench((1, 1), (1, 1), executors=1)
    old, new = bench.dag, next_dag((1, 1), (2, 2))
    bench.dag = new
    bench.obey(bench.manager.change(new, bench.now_ms, kept=frozenset({0})))
    follow(bench)
    bench.silent = {A}
    bench.lose(A)
    bench.tick(1_000)
    launch = bench.last_launch
    bench.dag = old
    bench.fail_task(TaskId(2, 0), "broken")
    bench.manager = bench.another(after=bench.manager)
    bench.begin()
    bench.silent = set()

    done = bench.obey(bench.register(launch, graph_hash=new.structural_hash()))

    assert launch.executor_id == A
    assert not only(done, Ended)
    assert bench.states == ["running", "running"]


def test_what_a_change_touches_is_in_as_many_processes_as_before() -> None:
    bench = Bench((2, 2), (2, 2), executors=2)
    touched = bench.manager.regions[1]
    before = len(touched.executors)
    dag = next_dag((2, 2), (2, 2))

    bench.obey(bench.manager.change(dag, bench.now_ms, kept=frozenset({0})))
    wanted = bench.manager.succession.wanted
    follow(bench)
    after = bench.manager.regions[1]

    assert before == len(wanted) == 2
    assert after.executors == wanted
    assert {*Counter(after.placement.values()).values()} == {2}


def test_an_untouched_region_begins_again_elsewhere_if_its_slots_are_needed() -> None:
    bench = Bench((1, 1), (1, 1), executors=1)
    bench.grants = False
    dag = next_dag((1, 1), (1, 1))
    bench.obey(bench.manager.change(dag, bench.now_ms, kept=frozenset({0})))
    bench.tick(11_000)
    follow(bench)

    early = bench.tick(8_000)
    bench.grants = True
    late = bench.tick(3_000)

    assert not only(early, Stop)
    assert {each.executor_id for each in only(late, Stop) if each.kill} == {A}
    assert bench.states == ["running", "running"]
    assert bench.manager.restarts == 0
    assert bench.manager.regions[0].executors.isdisjoint({A})


# -- what is told of it ------------------------------------------------------------------------


def told_of(bench: Bench) -> tuple[str, bool]:
    succession = bench.manager.succession
    return succession.doing, succession.may_be_called_off


def test_the_part_of_a_change_that_is_under_way_is_told() -> None:
    bench = Bench()
    before = told_of(bench)

    bench.silent = {*_NEXT}
    change(bench)
    starting = told_of(bench)
    bench.obey(bench.manager.keep("no", bench.now_ms))
    after = told_of(bench)
    follow_on = Bench()
    change(follow_on)
    put_in_place = told_of(follow_on)
    follow(follow_on)

    assert before == after == ("", False)
    assert starting == ("its processes are being started", True)
    assert put_in_place == ("it is put in place", False)
    assert told_of(follow_on) == ("it is on trial", False)


def test_a_change_says_that_it_waits_for_its_event_time() -> None:
    bench = Bench()

    bench.obey(bench.manager.change(next_dag(), bench.now_ms, at_ms=9_000_000))

    assert told_of(bench) == ("it waits for its event time", True)
