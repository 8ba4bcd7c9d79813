"""What names of files tell of a window log: what to read next, what is hidden, what may go."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.handover.window_log import (
    LogPiece,
    LogSegment,
    LogView,
    groups_to_compact,
    is_tiny,
    lane_name,
    newest_to_compact,
    segment_name,
    segments_of,
)
from gearpy.errors import WindowLogGap

A = "windows-00000"
B = "windows-00001"


def a_segment(first: int, last: int | None = None, **changes: Any) -> LogSegment:
    """Return a file of a lane; ten rows a batch."""
    last = first if last is None else last
    known: dict[str, Any] = {"lane": A, "rows": 10 * (last - first + 1), "epoch": last, "run": "r"}
    known |= {"incarnation": 1, **changes}
    name = segment_name(first=first, last=last, **known)
    return LogSegment(name=name, first=first, last=last, **known)


def a_view(*segments: LogSegment) -> LogView:
    return LogView(segments)


def singles(first: int, last: int, **changes: Any) -> list[LogSegment]:
    return [a_segment(seq, **changes) for seq in range(first, last + 1)]


def numbers(pieces: list[LogPiece]) -> list[tuple[str, int]]:
    """Return the batches that would be read, in order."""
    return [
        (piece.segment.lane, seq) for piece in pieces for seq in range(piece.first, piece.last + 1)
    ]


# -- names -----------------------------------------------------------------------------------


def test_a_name_tells_all_of_a_file() -> None:
    name = segment_name(
        "windows-00003",
        first=7,
        last=9,
        rows=120,
        epoch=41,
        run="k3f9-app~2f3",
        incarnation=255,
        body="arrow",
    )

    assert name == (
        "windows-00003-000000000007-000000000009-120-0000000041-k3f9-app~2f3-00000000000000ff.arrow"
    )
    assert segments_of([name]) == [
        LogSegment(name, "windows-00003", 7, 9, 120, 41, "k3f9-app~2f3", 255)
    ]


@pytest.mark.parametrize(
    "name",
    [
        "_schema.json",
        "part-00000-0000000001-r-0000000000000001.parquet",
        f"{a_segment(1).name}.crc",
        f"x{a_segment(1).name}".replace("windows", "-"),
        a_segment(1).name.replace(".parquet", ".tmp"),
        a_segment(1)._replace(first=0).name.replace("000000000001", "000000000000", 2),
        segment_name(A, first=3, last=2, rows=1, epoch=1, run="r", incarnation=1),
    ],
)
def test_names_of_others_are_passed_over(name: str) -> None:
    assert segments_of([name]) == []


@given(
    st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,20}", fullmatch=True),
    st.tuples(*[st.integers(0, 10**13)] * 6),
    st.from_regex(r"[A-Za-z0-9_~-]{1,60}", fullmatch=True),
    st.sampled_from(["parquet", "arrow"]),
)
def test_a_name_is_read_as_it_was_made(
    writer: str, counts: tuple[int, ...], run: str, body: str
) -> None:
    task, first, batches, rows, epoch, incarnation = counts
    known: dict[str, Any] = {"lane": lane_name(writer, task), "rows": rows, "epoch": epoch}
    known |= {"first": first + 1, "last": first + 1 + batches, "run": run}
    known["incarnation"] = incarnation

    name = segment_name(**known, body=body)

    assert segments_of([name]) == [LogSegment(name=name, **known)]


@pytest.mark.parametrize(
    ("rows", "since_ms", "tiny"), [(4096, 1000, True), (4097, 1000, False), (4096, 1001, False)]
)
def test_files_are_tiny_that_are_small_and_come_fast(
    rows: int,
    since_ms: int,
    tiny: bool,  # noqa: FBT001
) -> None:
    assert is_tiny(rows, since_ms=since_ms) == tiny


# -- what there is ---------------------------------------------------------------------------


def test_an_empty_log_has_nothing_to_read() -> None:
    view = a_view()

    assert (view.lanes, view.ends(), view.begins(), view.advance({})) == ((), {}, {}, {})
    assert (view.between({}, {}), view.rows_between({}, {}), view.holes) == ([], 0, [])


def test_lanes_have_a_beginning_and_an_end() -> None:
    view = a_view(*singles(3, 5), *singles(1, 2, lane=B))

    assert view.lanes == (A, B)
    assert (view.begins(), view.ends(), view.start()) == ({A: 3, B: 1}, {A: 5, B: 2}, {A: 2, B: 0})


def test_what_is_purged_is_missed() -> None:
    """A reader that slept for too long must not go on as if nothing were missing."""
    view = a_view(*singles(4, 6))

    with pytest.raises(WindowLogGap, match="no batch 2 any more, the next one kept is 4") as caught:
        view.between({A: 1}, {A: 5})
    assert (caught.value.lane, caught.value.wanted, caught.value.kept) == (A, 2, 4)
    assert numbers(view.between({A: 1}, {A: 5}, skip_gaps=True)) == [(A, 4), (A, 5)]


def test_a_hole_is_missed() -> None:
    view = a_view(*singles(1, 2), *singles(5, 6))

    with pytest.raises(WindowLogGap, match="no batch 3 any more, the next one kept is 5"):
        view.between({}, view.ends())
    assert view.holes == [(A, 3, 4)]
    assert len(view.between({}, view.ends(), skip_gaps=True)) == 4


@pytest.mark.parametrize("end", [{A: 9}, {B: 1}])
def test_an_end_that_is_not_there_is_missed(end: dict[str, int]) -> None:
    with pytest.raises(WindowLogGap):
        a_view(*singles(1, 2)).between({A: 2}, end)


# -- how much to read ------------------------------------------------------------------------


def test_a_position_never_goes_back() -> None:
    view = a_view(*singles(1, 3))

    assert view.advance({A: 7, B: 4}) == {A: 7, B: 4}


# -- compaction ------------------------------------------------------------------------------


def pieces_of(*segments: LogSegment) -> list[LogPiece]:
    return list(a_view(*segments).pieces(A))


def test_a_larger_file_is_copied_only_with_as_many_new_rows() -> None:
    few = pieces_of(a_segment(1, 8), *singles(9, 12))
    enough = pieces_of(a_segment(1, 4), *singles(5, 8))

    assert newest_to_compact(few, files_min=4, rows_max=999) == few[1:]
    assert newest_to_compact(enough, files_min=4, rows_max=999) == enough


def test_neighbours_are_joined_as_far_as_they_may() -> None:
    """`gear window-log compact` goes through the whole log."""
    pieces = pieces_of(*singles(1, 5), a_segment(6, rows=99))

    assert groups_to_compact(pieces, rows_max=20) == [pieces[:2], pieces[2:4]]
    assert groups_to_compact([], rows_max=20) == []


# -- properties ------------------------------------------------------------------------------


@st.composite
def logs(draw: st.DrawFn) -> LogView:
    """Return lanes without a hole, some files of which are compacted, some left over."""
    segments: list[LogSegment] = []
    for lane in draw(st.lists(st.sampled_from([A, B, "x-00000"]), unique=True)):
        seq = draw(st.integers(1, 5))
        for batches in draw(st.lists(st.integers(1, 6), min_size=1, max_size=8)):
            last = seq + batches - 1
            rows, epoch = draw(st.integers(0, 50)), draw(st.integers(1, 9))
            segments.append(a_segment(seq, last, lane=lane, rows=rows, epoch=epoch))
            segments += [
                a_segment(each, lane=lane)
                for each in draw(st.sets(st.integers(seq, last), max_size=3))
                if batches > 1
            ]
            seq = last + 1
    return LogView(draw(st.permutations(segments)))


limits = st.none() | st.integers(0, 60)


@given(logs(), limits, limits)
def test_steps_read_each_batch_once_and_in_order(
    view: LogView, max_rows: int | None, max_batches: int | None
) -> None:
    position, read = view.start(), []
    while position != view.ends():
        step = view.advance(position, max_rows=max_rows, max_batches=max_batches)
        assert step != position
        read += numbers(view.between(position, step))
        if max_batches is not None:
            assert view.batches_between(position, step) <= max(max_batches, 1)
        position = step

    for lane, first in view.begins().items():
        found = [seq for each, seq in read if each == lane]
        assert found == list(range(first, view.ends()[lane] + 1))


@given(logs(), st.data())
def test_what_is_left_after_a_purge_is_all_that_was_not_read(
    view: LogView, data: st.DataObject
) -> None:
    position = {
        lane: data.draw(st.integers(view.start()[lane], end)) for lane, end in view.ends().items()
    }
    everything = {piece.segment for lane in view.lanes for piece in view.pieces(lane)}
    everything |= set(view.hidden)

    left = LogView(everything - set(view.removable(position)))

    assert left.ends() == view.ends()
    assert numbers(left.between(position, left.ends())) == numbers(
        view.between(position, view.ends())
    )


@given(logs(), st.integers(2, 6), st.integers(1, 200), st.booleans())
def test_compaction_changes_no_batch(
    view: LogView,
    files_min: int,
    rows_max: int,
    newest: bool,  # noqa: FBT001
) -> None:
    everything = {piece.segment for lane in view.lanes for piece in view.pieces(lane)}
    compacted = set()
    for lane in view.lanes:
        pieces = view.pieces(lane)
        group = newest_to_compact(pieces, files_min=files_min, rows_max=rows_max)
        groups = [group] if newest else groups_to_compact(pieces, rows_max=rows_max)
        for each in filter(None, groups):
            assert sum(piece.segment.rows for piece in each) <= rows_max
            rows = sum(piece.segment.rows for piece in each)
            compacted.add(a_segment(each[0].first, each[-1].last, lane=lane, rows=rows))

    after = LogView(everything | compacted)

    assert (after.begins(), after.ends()) == (view.begins(), view.ends())
    assert numbers(after.between(view.start(), view.ends())) == numbers(
        view.between(view.start(), view.ends())
    )
