"""The connected parts of a dag."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec, regions_of
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
