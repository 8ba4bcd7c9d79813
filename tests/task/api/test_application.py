"""The low-level graph and the application made of it."""

import random
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.dag.graph import Life
from gearpy.core.flow.partition import (
    BroadcastPartitioner,
    CoLocationPartitioner,
    ShufflePartitioner,
)
from gearpy.errors import ConfigError, GraphError
from gearpy.ids import MIN_MS, ProcessorId, SessionId, TaskId
from gearpy.messages.data import InitialAckRequest
from gearpy.task.api.application import Graph, Processor, ReplaceProcessor, StreamApplication
from gearpy.task.api.interfaces import Source, SourceReader, Task, TaskContext, TaskLimits
from gearpy.task.runtime.wiring import RunnerFactory
from tests.task.build import some_limits


class Read(Task):
    """The first of a graph."""


class Work(Task):
    """The middle of a graph."""


class Write(Task):
    """The last of a graph."""


class Partitioned(Source):
    """A source of so many partitions; a negative number is a mistake of the user."""

    def __init__(self, count: int) -> None:
        self.count = count

    def partitions(self) -> Sequence[str]:
        if self.count < 0:
            raise ConfigError("no file matches '*.txt'")
        return [str(number) for number in range(self.count)]

    def open(self, partition: str, resume: Any | None) -> SourceReader:
        raise NotImplementedError


def a_graph(*, parallelism: int = 1) -> Graph:
    read, work, write = (Processor(kind, parallelism) for kind in (Read, Work, Write))
    return Graph().connect(read, work).connect(work, write, BroadcastPartitioner())


def test_a_processor_takes_the_place_of_another_one() -> None:
    read, work, write, new = (Processor(kind) for kind in (Read, Work, Write, Work))
    broadcast = BroadcastPartitioner()
    graph = Graph().connect(read, work).connect(work, write, broadcast)

    graph.replace(ReplaceProcessor(work, new, life=Life(birth_ms=5)))
    application = StreamApplication("app", graph)

    assert application.processors == {0: read, 1: new, 2: write}
    assert application.partitioners[ProcessorId(1), ProcessorId(2)] is broadcast
    assert [each.life.birth_ms for each in application.dag.processors.values()] == [
        MIN_MS,
        5,
        MIN_MS,
    ]
    assert application.scaled({"Work": 3}).dag.processors[ProcessorId(1)].life.birth_ms == 5


def test_only_a_processor_of_the_graph_can_be_replaced() -> None:
    with pytest.raises(ConfigError, match="'Work' is not in the graph, which has Read, Work, Wri"):
        a_graph().replace(ReplaceProcessor(Processor(Work), Processor(Work)))


def test_a_processor_has_no_death_of_its_own() -> None:
    with pytest.raises(ConfigError, match="'Work' has a death: it ends when another one takes"):
        ReplaceProcessor(Processor(Work), Processor(Work), life=Life(birth_ms=5, death_ms=9))
    with pytest.raises(ConfigError, match="'Work' has a death"):
        Processor(Work, life=Life(death_ms=9))


@pytest.mark.parametrize("given", ["soon", 1.5e12, True, None, 2**63])
def test_a_birth_is_whole_milliseconds(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"birth_ms is .*: give an event time as whole millisec"):
        Life(birth_ms=given)


def test_a_new_processor_may_bring_its_life() -> None:
    work, new = Processor(Work), Processor(Work, life=Life(birth_ms=5))

    Graph().add(work).replace(ReplaceProcessor(work, new))

    assert new.life.birth_ms == 5


def test_what_is_no_replacement_is_refused() -> None:
    graph, work, wrong = a_graph(), Processor(Work), cast("Any", "Work")
    read, write = graph.processors[0], graph.processors[-1]
    with pytest.raises(ConfigError, match="'Work' is no Processor: give two"):
        ReplaceProcessor(work, wrong)
    with pytest.raises(ConfigError, match=r"is no change: give gp.ReplaceProcessor\(old, new\)"):
        graph.replace(cast("Any", work))
    with pytest.raises(ConfigError, match="'Work' has 5 as life: give gp"):
        ReplaceProcessor(work, work, life=cast("Any", 5))
    with pytest.raises(ConfigError, match="'Write' is in the graph already, and cannot be in"):
        graph.replace(ReplaceProcessor(read, write))


def mistakes_of(name: str, graph: Graph) -> Sequence[str]:
    with pytest.raises(ConfigError) as raised:
        StreamApplication(name, graph)
    return raised.value.mistakes


def test_processors_are_numbered_in_topological_order() -> None:
    write, work, read = Processor(Write), Processor(Work), Processor(Read)
    graph = Graph().add(write).connect(work, write).connect(read, work)

    application = StreamApplication("app", graph)

    assert application.processors == {0: read, 1: work, 2: write}
    assert [application.dag.processors[pid].name for pid in application.dag.order] == [
        "Read",
        "Work",
        "Write",
    ]
    assert application.dag.processors[ProcessorId(0)].kind == f"{__name__}.Read"


@pytest.mark.parametrize("name", ["", "1st", "a b", "a/b", "ä"])
def test_name_of_an_application_is_restricted(name: str) -> None:
    (mistake,) = mistakes_of(name, a_graph())

    assert mistake.startswith(f"application name {name!r}: start with a letter or underscore")


def test_cycle_is_a_mistake() -> None:
    a, b = Processor(Read, name="a"), Processor(Work, name="b")

    (mistake,) = mistakes_of("app", Graph().connect(a, b).connect(b, a))

    assert mistake == "the graph has a cycle: a -> b -> a: remove one of its edges"


def test_more_tasks_than_partitions_is_a_mistake() -> None:
    """Some would read nothing."""
    graph = Graph().add(Processor(Read, 3, "read", source=Partitioned(2)))

    (mistake,) = mistakes_of("app", graph)

    assert mistake == (
        "processor 'read' has parallelism 3 but its source has 2 partitions: lower the parallelism"
    )


def test_partitioner_is_asked_whether_it_fits() -> None:
    graph = Graph().connect(
        Processor(Read, 2, "a"), Processor(Work, 3, "b"), CoLocationPartitioner()
    )

    (mistake,) = mistakes_of("app", graph)

    assert mistake.startswith("edge a -> b: a co-location edge joins tasks of equal index")


def test_all_mistakes_are_told_at_once() -> None:
    """Name, sources, edges and graph: nobody likes to be told one a time."""
    read = Processor(Read, 0, "read", source=Partitioned(-1))
    work = Processor(Work, 2, "work")
    graph = Graph().connect(read, work, CoLocationPartitioner()).connect(read, work)

    with pytest.raises(GraphError) as raised:
        StreamApplication("a b", graph)

    mistakes = raised.value.mistakes
    assert [mistake.split(":")[0] for mistake in mistakes] == [
        "application name 'a b'",
        "no file matches '*.txt'",
        "edge read -> work",
        "processor 'read' has parallelism 0",
        "there is more than one edge read -> work",
    ]
    assert str(raised.value) == "\n".join(mistakes)


@pytest.mark.parametrize("parallelism", [-1, 0, "2", 1.5, True, None])
def test_parallelism_is_a_whole_number_from_one(parallelism: Any) -> None:
    (mistake,) = mistakes_of("app", Graph().add(Processor(Read, parallelism, "read")))

    assert mistake.startswith(f"processor 'read' has parallelism {parallelism!r}")


def test_application_stands_for_itself_where_one_is_built() -> None:
    application = StreamApplication("app", a_graph())

    assert application.build() is application


@given(st.integers(1, 4))
def test_two_builds_have_the_same_hash(parallelism: int) -> None:
    """Invariant: every process builds the same graph and can prove it."""
    one = StreamApplication("app", a_graph(parallelism=parallelism)).dag
    other = StreamApplication("app", a_graph(parallelism=parallelism)).dag
    larger = StreamApplication("app", a_graph(parallelism=parallelism + 1)).dag

    assert one.structural_hash() == other.structural_hash() != larger.structural_hash()


def reading(source: Source) -> StreamApplication:
    return StreamApplication("app", Graph().add(Processor(Read, name="read", source=source)))


def test_many_partitions_are_described_in_short() -> None:
    """The description travels; the last of a thousand still makes a difference."""
    (line,) = reading(Partitioned(1000)).dag.description
    (other,) = reading(Partitioned(999)).dag.description

    assert 'reads 1000 partitions, "0" to "999", SHA-256 ' in line
    assert len(line) < 300
    assert line != other


def test_runner_is_wired_as_the_graph_says() -> None:
    graph = Graph()
    read = Processor(Read, 2, config={"rate": 5})
    graph.connect(read, Processor(Work, 3), ShufflePartitioner()).connect(read, Processor(Write))
    factory = RunnerFactory(
        application=StreamApplication("app", graph),
        output=some_limits(),
        limits=TaskLimits(),
        turn_ms=2,
        clock_ms=lambda: 0,
        wall_ms=lambda: 77,
        rng=random.Random(1),
    )

    first = factory.make(TaskId(0, 1), SessionId(1))
    second = factory.make(TaskId(1, 2), SessionId(2))

    context: TaskContext = first.context
    assert (context.task_id, context.parallelism, context.operator) == (TaskId(0, 1), 2, "Read")
    assert (context.app_name, context.config, context.now_ms()) == ("app", {"rate": 5}, 77)
    first.open(MIN_MS)
    assert {message.target for message in first.outbox} == {
        *(TaskId(1, index) for index in range(3)),
        TaskId(2, 0),
    }
    assert {type(message) for message in first.outbox} == {InitialAckRequest}
    assert list(second.info.upstream) == [TaskId(0, 0), TaskId(0, 1)]
    assert second.info.edges == []


def test_a_graph_by_hand_is_scaled() -> None:
    """A processor is a step there; it is found by its name."""
    graph = Graph()
    graph.connect(Processor(Read, name="one"), Processor(Write, 2, name="two"))

    scaled = StreamApplication("by-hand", graph).scaled({"two": 3})

    assert [each.parallelism for each in scaled.dag.processors.values()] == [1, 3]
