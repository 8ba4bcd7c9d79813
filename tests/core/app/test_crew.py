"""The executors of an application of actors: which are asked for, started, replaced, dropped."""

import random

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.app.crew import Crew, CrewCommand, Lost
from gearpy.core.app.executors import Launch, Release, RequestSlots, Stop
from gearpy.core.base.restart import RestartPolicy
from gearpy.ids import ActorPath, ExecutorId, WorkerId
from gearpy.messages.app import RegisterExecutor
from gearpy.messages.cluster import Allocation

A, B = ExecutorId(0), ExecutorId(1)


def a_crew(restarts: int = 2) -> Crew:
    policy = RestartPolicy(max_restarts=restarts, backoff_ms=0, backoff_max_ms=0)
    return Crew(restarts=policy, start_timeout_ms=1000, rng=random.Random(0), first_launch=1)


def path(worker: int) -> ActorPath:
    return ActorPath(f"host:{worker}#0000000000000001", "worker")


def slots(worker: int, number: int = 1) -> Allocation:
    return Allocation(worker_id=WorkerId(worker), worker=path(worker), slots=number)


def up(crew: Crew, launch: Launch) -> bool:
    return crew.on_registered(
        RegisterExecutor(
            executor_id=launch.executor_id,
            launch=launch.launch,
            executor=ActorPath("", f"executor-{launch.launch}"),
            data_address="",
            slots=1,
            graph_hash="",
        )
    )


def launches(commands: list[CrewCommand]) -> list[Launch]:
    return [each for each in commands if isinstance(each, Launch)]


def test_executors_are_asked_for_started_and_replaced_under_their_number() -> None:
    crew = a_crew()
    added, asked = crew.add(2, slots=1, now_ms=0)
    assert added == [A, B]
    assert asked == [RequestSlots(slots=2, executors=2)]

    first, second = launches(crew.on_allocated([slots(7), slots(8)], 0))
    assert up(crew, first)
    assert up(crew, second)

    assert crew.on_gone(A, first.launch, "killed", 10) == [Lost(A, "killed", is_final=False)]
    assert crew.on_tick(11) == [RequestSlots(slots=1, executors=1)]
    (again,) = launches(crew.on_allocated([slots(8)], 12))
    assert again.executor_id == A
    assert again.launch > second.launch
    assert crew.on_gone(A, first.launch, "told twice", 13) == []


def test_one_that_is_lost_too_often_is_given_up_and_asked_for_no_more() -> None:
    crew = a_crew(restarts=1)
    crew.add(2, slots=1, now_ms=0)
    first, _ = launches(crew.on_allocated([slots(7), slots(7)], 0))
    assert crew.on_gone(A, first.launch, "", 1) == [Lost(A, "it ended unasked", is_final=False)]
    crew.on_tick(2)
    (again,) = launches(crew.on_allocated([slots(7)], 2))
    assert crew.on_gone(A, again.launch, "raised", 3) == [Lost(A, "raised", is_final=True)]
    assert crew.on_tick(4) == []
    assert list(crew.executors.slots) == [B]


def test_one_that_does_not_start_in_time_is_killed() -> None:
    crew = a_crew()
    crew.add(1, slots=1, now_ms=0)
    (launch,) = launches(crew.on_allocated([slots(7)], 0))
    assert crew.on_tick(999) == []
    (stop,) = crew.on_tick(1000)
    assert isinstance(stop, Stop)
    assert (stop.launch, stop.kill) == (launch.launch, True)
    assert "executor.start-timeout-seconds" in stop.reason


def test_each_worker_has_one_also_one_that_comes_later() -> None:
    """Each request names its worker; that of a worker that has left is dropped."""
    crew = a_crew()
    assert crew.on_workers([WorkerId(0)], 0) == []
    crew.add_on_each_worker(1)
    first, second = crew.on_workers([WorkerId(0), WorkerId(3)], 1)
    assert first == RequestSlots(slots=1, executors=1, worker_id=WorkerId(0))
    assert second == RequestSlots(slots=1, executors=1, worker_id=WorkerId(3), adds=True)

    commands = crew.on_allocated([slots(3), slots(0)], 2)
    assert [each.executor_id for each in launches(commands)] == [B, A]
    assert crew.on_workers([WorkerId(0), WorkerId(3)], 3) == []
    stop, more = crew.on_workers([WorkerId(0), WorkerId(9)], 4)
    assert isinstance(stop, Stop)
    assert stop.executor_id == B
    assert more == RequestSlots(slots=1, executors=1, worker_id=WorkerId(9))


def test_slots_on_the_wrong_worker_are_given_back() -> None:
    crew = a_crew()
    crew.add_on_each_worker(1)
    crew.on_workers([WorkerId(0)], 0)
    assert crew.on_allocated([slots(4)], 1) == [Release(worker_id=WorkerId(4), slots=1)]


def test_one_that_waits_is_dropped_without_a_stop() -> None:
    crew = a_crew()
    crew.add(1, slots=1, now_ms=0)
    assert crew.drop(A, "enough") == []
    assert crew.drop(A, "enough") == []
    assert crew.on_allocated([slots(7)], 1) == [Release(worker_id=WorkerId(7), slots=1)]


def test_one_that_was_dropped_is_not_replaced() -> None:
    crew = a_crew()
    crew.add(1, slots=1, now_ms=0)
    (launch,) = launches(crew.on_allocated([slots(7)], 0))
    (stop,) = crew.drop(A, "enough")
    assert isinstance(stop, Stop)
    assert not stop.kill
    assert crew.on_gone(A, launch.launch, "", 1) == []
    assert crew.on_tick(2) == []
    assert not crew.executors.slots


def test_a_lost_worker_takes_its_executors_along() -> None:
    crew = a_crew()
    crew.add(2, slots=1, now_ms=0)
    crew.on_allocated([slots(7), slots(8)], 0)
    release, lost = crew.on_worker_lost(path(7), 1)
    assert release == Release(worker_id=WorkerId(7), slots=1)
    assert lost == Lost(A, "its worker is lost", is_final=False)


def test_a_master_that_is_back_is_asked_once_more() -> None:
    crew = a_crew()
    crew.add(2, slots=1, now_ms=0)
    crew.on_allocated([slots(7)], 0)
    assert crew.on_master_back(5) == [RequestSlots(slots=1, executors=1)]


@given(st.lists(st.sampled_from(["add", "grant", "die", "drop", "tick", "worker"]), max_size=60))
def test_every_executor_has_a_process_or_waits_or_was_given_up(steps: list[str]) -> None:
    crew, now_ms = a_crew(restarts=-1), 0
    alive: dict[ExecutorId, Launch] = {}
    wanted: set[ExecutorId] = set()
    for step in steps:
        now_ms += 1
        commands: list[CrewCommand] = []
        if step == "add":
            added, commands = crew.add(1, slots=1, now_ms=now_ms)
            wanted.update(added)
        elif step == "grant":
            commands = crew.on_allocated([slots(now_ms % 3)], now_ms)
        elif step == "die" and alive:
            executor_id, launch = alive.popitem()
            commands = crew.on_gone(executor_id, launch.launch, "", now_ms)
        elif step == "drop" and wanted:
            commands = crew.drop(wanted.pop(), "enough")
        elif step == "worker":
            commands = crew.on_worker_lost(path(now_ms % 3), now_ms)
            gone = [each.executor_id for each in commands if isinstance(each, Lost)]
            alive = {key: each for key, each in alive.items() if key not in gone}
        else:
            commands = crew.on_tick(now_ms)
        for each in launches(commands):
            assert each.executor_id not in alive
            alive[each.executor_id] = each
    crew.on_tick(now_ms + 1)
    launched = {each for each in crew.executors.slots if crew.executors.worker_of(each) is not None}
    waiting = crew.executors.waiting_slots
    assert wanted <= set(crew.executors.slots)
    assert len(wanted - launched) == waiting
