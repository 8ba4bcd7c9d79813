"""The places of processors in a drawing."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.views.layout import HEIGHT, WIDTH, Point, layout_of


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]]]:
    """Return a graph without cycles: edges go from lower to higher numbers."""
    count = draw(st.integers(1, 12))
    pairs = [(low, high) for high in range(count) for low in range(high)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return list(range(count)), edges


@given(graphs())
def test_boxes_do_not_overlap_and_edges_go_to_the_right(
    graph: tuple[list[int], list[tuple[int, int]]],
) -> None:
    processors, edges = graph

    layout = layout_of(processors, edges)

    assert set(layout.boxes) == set(processors)
    assert not any(
        _overlap(layout.boxes[one], layout.boxes[other])
        for one in processors
        for other in processors
        if one < other
    )
    for (source, target), points in layout.lines.items():
        assert points[0][0] == layout.boxes[source][0] + WIDTH
        assert points[-1][0] == layout.boxes[target][0]
        assert [x for x, _ in points] == sorted(x for x, _ in points)
    corners = layout.boxes.values()
    assert all(0 <= x <= layout.width - WIDTH and y >= 0 for x, y in corners)
    assert all(y + HEIGHT <= layout.height for _, y in corners)


@given(graphs())
def test_an_edge_over_a_column_goes_around_its_boxes(
    graph: tuple[list[int], list[tuple[int, int]]],
) -> None:
    layout = layout_of(*graph)

    for points in layout.lines.values():
        for x, y in points[1:-1]:
            assert not any(
                left < x < left + WIDTH and top < y < top + HEIGHT
                for left, top in layout.boxes.values()
            )


def test_branches_that_cross_are_put_right() -> None:
    layout = layout_of([0, 1, 2, 3], [(0, 3), (1, 2)])

    tops = {each: top for each, (_, top) in layout.boxes.items()}
    assert (tops[0] < tops[1]) == (tops[3] < tops[2])


def test_an_empty_graph_has_no_places() -> None:
    assert layout_of([], []).boxes == {}


def _overlap(one: Point, other: Point) -> bool:
    return abs(one[0] - other[0]) < WIDTH and abs(one[1] - other[1]) < HEIGHT
