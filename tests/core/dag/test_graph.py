"""The graph of an application: shape, tasks, mistakes, sameness."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.dag.graph import (
    IMMORTAL,
    Dag,
    EdgeSpec,
    Life,
    ProcessorSpec,
    StepSpec,
    birth_of_change,
)
from gearpy.errors import ConfigError, GraphError
from gearpy.ids import ProcessorId, TaskId


def a_processor(pid: int, *, parallelism: int = 1, name: str = "") -> ProcessorSpec:
    """Return a processor, named by its id unless told."""
    return ProcessorSpec(id=ProcessorId(pid), name=name or f"p{pid}", parallelism=parallelism)


def an_edge(source: int, target: int, *, partitioner: str = "hash") -> EdgeSpec:
    return EdgeSpec(source=ProcessorId(source), target=ProcessorId(target), partitioner=partitioner)


def a_dag(*edges: tuple[int, int], parallelism: int = 1) -> Dag:
    pids = list(dict.fromkeys(pid for edge in edges for pid in edge))
    processors = [a_processor(pid, parallelism=parallelism) for pid in pids]
    return Dag.build(processors, [an_edge(*edge) for edge in edges])


def test_tasks_upstream() -> None:
    dag = a_dag((0, 1), parallelism=2)

    assert dag.upstream_tasks(TaskId(1, 0)) == (TaskId(0, 0), TaskId(0, 1))
    assert dag.upstream_tasks(TaskId(0, 0)) == ()


def test_paths_of_one_source_that_meet_again() -> None:
    """A path may be slower than another: each edge at the place where they meet is told apart."""
    dag = a_dag((0, 1), (1, 2), (1, 3), (2, 3), (3, 4), (1, 5))

    meeting = {edge.ends: dag.meets(*edge.ends) for edge in dag.edges}

    assert {ends for ends, which in meeting.items() if which != "none"} == {(1, 3), (2, 3)}
    assert set(meeting.values()) == {"none", "any"}


def test_paths_of_one_source_that_meet_as_two_sides_of_a_join() -> None:
    """Records of one side come by one path; where two lead there, nobody can tell them apart."""

    def meetings(**kinds: str) -> list[str]:
        steps = {int(name[1]): (StepSpec(id=name, kind=kind),) for name, kind in kinds.items()}
        specs = [replace(a_processor(pid), steps=steps.get(pid, ())) for pid in range(5)]
        edges = [an_edge(*ends) for ends in ((0, 1), (0, 2), (0, 3), (1, 4), (2, 4))]
        dag = Dag(0, {spec.id: spec for spec in specs}, tuple(edges))
        return [dag.meets(ProcessorId(source), ProcessorId(4)) for source in (1, 2)]

    assert meetings(p1="left", p2="right") == ["other side"] * 2
    assert meetings(p1="left", p2="left") == meetings(p1="map", p2="right") == ["any"] * 2


def test_streams_of_two_sources_do_not_meet_again() -> None:
    dag = a_dag((0, 2), (1, 2), (2, 3))

    assert {dag.meets(*edge.ends) for edge in dag.edges} == {"none"}


def test_all_mistakes_are_told_at_once() -> None:
    processors = {ProcessorId(pid): a_processor(pid, parallelism=pid) for pid in (0, 1, 2)}
    edges = (an_edge(0, 1), an_edge(0, 1), an_edge(1, 2), an_edge(2, 1), an_edge(2, 9))

    with pytest.raises(GraphError) as refusal:
        Dag(0, processors, edges)

    assert list(refusal.value.mistakes) == [
        "processor 'p0' has parallelism 0: give it at least 1",
        "an edge names processor 9, which is not in the graph: add the processor first",
        "there is more than one edge p0 -> p1: keep one",
        "the graph has a cycle: p1 -> p2 -> p1: remove one of its edges",
    ]


def test_empty_graph_is_refused() -> None:
    with pytest.raises(GraphError, match="the graph is empty"):
        Dag.build([], [])


def test_two_processors_of_one_id_are_refused() -> None:
    """One would silently replace the other."""
    with pytest.raises(GraphError, match="id 1 is used by 'a' and 'b'"):
        Dag.build([a_processor(1, name="a"), a_processor(1, name="b")], [])


def test_misfiled_processor_is_refused() -> None:
    with pytest.raises(GraphError, match="has id 1 but is filed under 2"):
        Dag(0, {ProcessorId(2): a_processor(1)})


def test_equal_dags_are_equal_and_hash_alike() -> None:
    assert a_dag((0, 1)) == a_dag((0, 1))
    assert {a_dag((0, 1)): "x"}[a_dag((0, 1))] == "x"


@pytest.mark.parametrize(
    "changed",
    [
        a_processor(0, parallelism=2),
        a_processor(0, name="other"),
        replace(a_processor(0), kind="map"),
        replace(a_processor(0), life=Life(birth_ms=5)),
        replace(a_processor(0), partitions='["a"]'),
    ],
)
def test_hash_sees_every_change_of_a_processor(changed: ProcessorSpec) -> None:
    """An executor that built anything else must not run."""
    same = Dag(0, {ProcessorId(0): a_processor(0)})

    other = Dag(0, {ProcessorId(0): changed})

    assert same.structural_hash() != other.structural_hash()
    assert same.description != other.description


def test_hash_is_alike_in_every_process() -> None:
    dag = a_dag((0, 1))

    assert dag.structural_hash() == (
        "10606ad7e31bbe8e7d68a5ac391ff288589239db6e18ffe295e03bef65fcf39b"
    )


def test_description_has_a_line_for_each_processor_and_edge() -> None:
    """People read it when two processes built different graphs; the order of edges is fixed."""
    processors = {
        ProcessorId(0): replace(a_processor(0), name="read", partitions='["a", "b"]'),
        ProcessorId(1): replace(a_processor(1), name="count", parallelism=3, kind="jobs.Count"),
        ProcessorId(2): replace(a_processor(2), name="late", life=Life(birth_ms=5, death_ms=9)),
    }

    dag = Dag(0, processors, (an_edge(1, 2), an_edge(0, 1, partitioner="shuffle")))

    assert dag.description == (
        '0 read x1 reads ["a", "b"]',
        "1 count x3 (jobs.Count)",
        "2 late x1 life 5..9",
        "0 -> 1 shuffle",
        "1 -> 2 hash",
    )


def born(*births: int | None) -> Dag:
    """Return a graph of processors that are born at these times; None: they always were there."""
    processors = {
        ProcessorId(pid): replace(
            a_processor(pid), life=IMMORTAL if birth is None else Life(birth_ms=birth)
        )
        for pid, birth in enumerate(births)
    }
    return Dag(0, processors)


@pytest.mark.parametrize(
    ("old", "new", "birth"),
    [
        (born(None), born(None), None),
        (born(None), born(5), 5),
        (born(None, None), born(5, 5), 5),
        (born(5), born(5), None),
        (born(5), born(None), None),
        (born(5, None), born(5, 9), 9),
        (born(5, None), born(None, 5), None),
    ],
)
def test_a_birth_that_the_old_graph_has_not_is_the_time_of_the_change(
    old: Dag, new: Dag, birth: int | None
) -> None:
    """One that it has is over: the program was changed again, without that line being touched."""
    assert birth_of_change(old, new) == birth


def test_a_change_has_one_time() -> None:
    with pytest.raises(ConfigError, match=r"several event times \(5, 9 ms\)"):
        birth_of_change(born(None, None), born(9, 5))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12, unique=True))
def test_built_edges_always_go_up(pairs: list[tuple[int, int]]) -> None:
    """The invariant of built dags: an edge goes from a lower to a higher id and level."""
    edges = [an_edge(source, target) for source, target in pairs if source < target]
    shuffled = [a_processor(pid) for pid in (3, 0, 5, 1, 4, 2)]

    dag = Dag.build(shuffled, edges)

    levels = dag.levels
    assert list(dag.processors) == list(range(6))
    assert all(edge.source < edge.target for edge in dag.edges)
    assert all(levels[edge.source] < levels[edge.target] for edge in dag.edges)
