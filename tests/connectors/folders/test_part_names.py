"""Names of the files of a sink in a folder."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.folders.part_names import FilePart, PartNames, run_in_names

RUNS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=150)
NAMES = PartNames("part", ".jsonl")


@given(
    task=st.integers(0, 10**6),
    epoch=st.integers(1, 10**12),
    run=RUNS,
    incarnation=st.integers(0, 2**70),
    number=st.integers(1, 10**7),
)
def test_a_name_tells_whose_a_file_is(
    task: int, epoch: int, run: str, incarnation: int, number: int
) -> None:
    run = run_in_names(run)
    shown = NAMES.shown(task=task, epoch=epoch, run=run, incarnation=incarnation)
    pending = NAMES.pending(task=task, run=run, incarnation=incarnation, number=number)

    assert NAMES.shown_parts([shown, pending]) == [FilePart(shown, task, run, incarnation, epoch)]
    assert NAMES.pending_parts([shown, pending]) == [FilePart(pending, task, run, incarnation)]
    assert max(map(len, (shown, pending))) < 255


@given(runs=st.sets(RUNS, min_size=2, max_size=2))
def test_two_runs_have_two_names(runs: set[str]) -> None:
    one, other = map(run_in_names, runs)

    assert one != other


def test_files_of_a_task_sort_by_epoch() -> None:
    names = [
        NAMES.shown(task=task, epoch=epoch, run="r", incarnation=9)
        for task in (2, 10)
        for epoch in (9, 10, 123456789)
    ]

    assert sorted(names) == names


@pytest.mark.parametrize(
    "name",
    [
        "part-00000.jsonl",
        "part-00000-0000000001-r-18a3f0c2d4e5f6a7.parquet",
        "other-00000-0000000001-r-18a3f0c2d4e5f6a7.jsonl",
        "part-00000-0000000001-r-18a3f0c2d4e5f6a7.jsonl.gz",
        "part-\u0660\u0660\u0660\u0660\u0660-0000000001-r-18a3f0c2d4e5f6a7.jsonl",
        "_SUCCESS",
        "notes.txt",
    ],
)
def test_files_of_others_are_passed_over(name: str) -> None:
    read: list[Callable[[list[str]], list[FilePart]]] = [NAMES.shown_parts, NAMES.pending_parts]

    assert [each([name, f"{name}.pending"]) for each in read] == [[], []]
