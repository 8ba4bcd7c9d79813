"""Tasks that are bound to machines: their executors, and what is asked of the master for them."""

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from gearpy.core.app.application import ApplicationCore
from gearpy.core.app.executors import ExecutorManager, Launch, Release, RequestSlots
from gearpy.core.app.hosts import BoundSlots, bound_slots, localities_in, slot_wishes, with_hosts
from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec, StepSpec, place
from gearpy.errors import ConfigError
from gearpy.ids import ExecutorId, ProcessorId, TaskId
from gearpy.messages.cluster import Allocation, SlotWishes
from tests.core.manager_bench import allocation, only, some_limits

READ, PARSE = ProcessorId(0), ProcessorId(1)


def a_dag(*hosts: str) -> Dag:
    """Return a dag that reads in 2 tasks, and parses in 3 that may be bound to machines."""
    parse = ProcessorSpec(
        id=PARSE,
        name="parse > count",
        parallelism=3,
        steps=(StepSpec(id="parse-1", name="parse"), StepSpec(id="count", name="count")),
        hosts=hosts,
    )
    read = ProcessorSpec(id=READ, name="read", parallelism=2)
    return Dag.build([read, parse], [EdgeSpec(source=READ, target=PARSE)])


def there(slots: int, *hosts: str) -> Allocation:
    return replace(allocation(slots), hosts=hosts)


def a_core(dag: Dag, executors: int) -> ApplicationCore:
    return ApplicationCore(
        dag, executors=executors, limits=some_limits(), launch=1, rng=Random(1), now_ms=0
    )


def test_bound_tasks_have_executors_of_their_own_one_a_machine_at_most() -> None:
    assert bound_slots(a_dag()) == []
    assert bound_slots(a_dag("m1")) == [BoundSlots(3, ("m1",))]
    two = ("m1", "m2")
    assert bound_slots(a_dag(*two)) == [BoundSlots(2, two), BoundSlots(1, two)]


def test_tasks_are_placed_in_the_executors_of_their_machines() -> None:
    executors = {ExecutorId(0): 3, ExecutorId(1): 2}

    placed = place(a_dag("m1"), executors, {ExecutorId(0): ("m1",)})

    assert {task for task, each in placed.items() if each == 0} == {
        TaskId(PARSE, index) for index in range(3)
    }
    with pytest.raises(ConfigError, match="none of 0 executors"):
        place(a_dag("m1"), executors)


def test_each_set_of_machines_is_asked_for_by_itself() -> None:
    core = a_core(a_dag("m1", "m2"), executors=1)

    assert core.on_start(0) == [
        RequestSlots(slots=2, executors=1),
        RequestSlots(slots=3, executors=2, hosts=("m1", "m2"), adds=True),
    ]


def test_an_allocation_goes_to_who_asked_for_its_machines() -> None:
    """The sizes alone do not tell: two slots anywhere are not two slots on the machine."""
    bound = [BoundSlots(2, ("m1",))]
    manager = ExecutorManager(slots=2, executors=1, bound=bound)
    manager.request({ExecutorId(0), ExecutorId(1)}, 0)

    (first,) = only(manager.on_allocated([there(2)], 0), Launch)
    (second,) = only(manager.on_allocated([there(2, "m1")], 0), Launch)

    assert (first.executor_id, second.executor_id) == (1, 0)
    (back,) = manager.on_allocated([there(2, "m1")], 0)
    assert isinstance(back, Release)


def test_the_rest_is_divided_as_there_is_room_whether_bound_executors_came_before_or_not() -> None:
    core = a_core(a_dag("m1"), executors=0)
    asked = core.on_start(0)
    assert asked == [
        RequestSlots(slots=2, executors=0),
        RequestSlots(slots=3, executors=1, hosts=("m1",), adds=True),
    ]

    early = core.on_allocated([there(3, "m1")], 1)
    late = core.on_allocated([there(1), there(1)], 2)

    assert [each.executor_id for each in only(early, Launch)] == [0]
    assert [each.executor_id for each in only(late, Launch)] == [1, 2]
    assert core.executors.slots == {0: 3, 1: 1, 2: 1}
    assert core.placed_in(TaskId(PARSE, 2)) == 0
    assert core.placed_in(TaskId(READ, 1)) == 2


def test_an_executor_that_is_added_takes_the_place_of_none_that_share_the_slots() -> None:
    manager = ExecutorManager(slots=4, executors=0)
    manager.divide([2, 2], 0)

    added = manager.add(3)

    assert added == 2
    assert manager.slots == {0: 2, 1: 2, 2: 3}


def test_an_executor_that_is_lost_is_asked_for_on_its_machines_again() -> None:
    manager = ExecutorManager(slots=0, executors=0, bound=[BoundSlots(2, ("m1",))])
    asked = manager.request({ExecutorId(0)}, 0)
    (launch,) = only(manager.on_allocated([there(2, "m1")], 0), Launch)

    assert manager.on_gone(ExecutorId(0), launch.launch)

    assert manager.request({ExecutorId(0)}, 1) == asked
    assert asked == [RequestSlots(slots=2, executors=1, hosts=("m1",))]


@pytest.mark.parametrize("name", ["parse > count", "parse", "parse-1", "count"])
def test_a_processor_is_found_by_each_of_its_names(name: str) -> None:
    dag = with_hosts(a_dag(), localities_in([f"{name}=m1|m2"]))

    assert dag.processors[PARSE].hosts == ("m1", "m2")
    assert dag.processors[READ].hosts == ()
    assert dag.structural_hash() == a_dag().structural_hash()


def test_names_that_nobody_has_are_told_and_so_are_two_minds() -> None:
    with pytest.raises(ConfigError) as caught:
        with_hosts(a_dag(), localities_in(["pars=m1", "parse=m1", "count=m2"]))

    text = str(caught.value)
    assert "no step is called 'pars'" in text
    assert "'parse' and 'count' run in the same tasks" in text


def test_wishes_of_a_program_are_checked() -> None:
    """All mistakes at once; what is empty is as it is configured."""
    anything: Any = "often"
    with pytest.raises(ConfigError) as caught:
        slot_wishes(hosts="m1", priority=anything, relaxation=anything)

    assert caught.value.mistakes == (
        "priority is 'often', must be one of low, normal, high",
        "relaxation is 'often', must be one of any, one-worker",
        "hosts is the text 'm1': give a list, ['m1']",
    )
    assert slot_wishes(hosts=["m1"], priority="", relaxation="") == SlotWishes(hosts=("m1",))
