"""The connected parts of a dag."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec, regions_of, without_regions
from gearpy.core.dag.state_moves import untouched_regions
from gearpy.ids import ProcessorId


def a_dag(count: int, edges: set[tuple[int, int]]) -> Dag:
    return Dag.build(
        [ProcessorSpec(id=ProcessorId(pid), name=f"p{pid}") for pid in range(count)],
        [EdgeSpec(source=ProcessorId(one), target=ProcessorId(two)) for one, two in sorted(edges)],
    )


def test_what_only_shares_a_sink_or_a_source_restarts_together() -> None:
    assert len(regions_of(a_dag(3, {(0, 2), (1, 2)}))) == 1
    assert len(regions_of(a_dag(3, {(0, 1), (0, 2)}))) == 1


counts = st.integers(1, 8)


@given(
    counts.flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.sets(
                st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(
                    lambda e: e[0] < e[1]
                )
            ),
        )
    )
)
def test_regions_part_the_dag_along_its_edges(given_dag: tuple[int, set[tuple[int, int]]]) -> None:
    """The invariant: each processor is in one region, no edge leaves it, and it has no parts."""
    dag = a_dag(*given_dag)

    regions = regions_of(dag)

    place = {pid: number for number, region in enumerate(regions) for pid in region}
    assert sorted(pid for region in regions for pid in region) == sorted(dag.processors)
    assert all(place[edge.source] == place[edge.target] for edge in dag.edges)
    assert all(list(region) == [pid for pid in dag.order if pid in region] for region in regions)
    for region in regions:
        joined = {region[0]}
        for _ in region:
            ends = [edge.ends for edge in dag.edges if joined & set(edge.ends)]
            joined |= {pid for pair in ends for pid in pair}
        assert joined == set(region)


def pairs(*parallelisms: tuple[int, int]) -> Dag:
    specs, edges = [], []
    for number, pair in enumerate(parallelisms):
        ids = ProcessorId(2 * number), ProcessorId(2 * number + 1)
        specs += [
            ProcessorSpec(id=pid, name=f"p{pid}", parallelism=tasks)
            for pid, tasks in zip(ids, pair, strict=True)
        ]
        edges.append(EdgeSpec(source=ids[0], target=ids[1]))
    return Dag(0, {each.id: each for each in specs}, tuple(edges))


def untouched(old: Dag, new: Dag, *, other_code: tuple[int, ...] = ()) -> set[int]:
    return {*untouched_regions(old, new, lambda pid: pid not in other_code)}


def test_a_region_that_is_the_same_is_untouched() -> None:
    before = pairs((1, 1), (1, 2), (3, 1))

    assert untouched(before, pairs((1, 1), (2, 2), (3, 1))) == {0, 2}
    assert untouched(before, before, other_code=(5,)) == {0, 1}
    assert untouched(before, pairs((1, 1), (1, 2))) == set()
    assert untouched(before, pairs((1, 1), (1, 2), (3, 1), (1, 1))) == {0, 1, 2}


def test_a_change_touches_something() -> None:
    assert untouched(pairs((1, 1), (1, 1)), pairs((1, 1), (1, 1))) == set()


def test_a_dag_without_some_regions_keeps_its_numbers() -> None:
    """Else tasks would be other ones."""
    left = without_regions(pairs((1, 1), (1, 2), (3, 1)), {0, 2})

    assert left.tasks() == pairs((1, 1), (1, 2)).tasks()[2:]
    assert [each.ends for each in left.edges] == [(2, 3)]
