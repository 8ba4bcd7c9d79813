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
    """What is put into a name is found in it, whatever runs are called."""
    run = run_in_names(run)
    shown = NAMES.shown(task=task, epoch=epoch, run=run, incarnation=incarnation)
    pending = NAMES.pending(task=task, run=run, incarnation=incarnation, number=number)

    assert NAMES.shown_parts([shown, pending]) == [FilePart(shown, task, run, incarnation, epoch)]
    assert NAMES.pending_parts([shown, pending]) == [FilePart(pending, task, run, incarnation)]
    assert max(map(len, (shown, pending))) < 255


@given(runs=st.sets(RUNS, min_size=2, max_size=2))
def test_two_runs_have_two_names(runs: set[str]) -> None:
    """Also where one is the beginning of the other, or looks like it in a name."""
    one, other = map(run_in_names, runs)

    assert one != other


@pytest.mark.parametrize(
    ("run", "name"),
    [("k3f9/app3", "k3f9~2fapp3"), ("a-b_c", "a-b_c"), ("~é.", "~7e~c3~a9~2e"), ("", "~")],
)
def test_a_run_has_a_name_without_strange_characters(run: str, name: str) -> None:
    """No slash, no dot, nothing that a shell or a pattern knows."""
    assert run_in_names(run) == name


def test_files_of_a_task_sort_by_epoch() -> None:
    """A reader that goes by names reads them in order."""
    names = [
        NAMES.shown(task=task, epoch=epoch, run="r", incarnation=9)
        for task in (2, 10)
        for epoch in (9, 10, 123456789)
    ]

    assert sorted(names) == names


def test_a_file_in_a_folder_below_keeps_its_path() -> None:
    """Its name tells whose it is, its path where it is."""
    name = NAMES.shown(task=3, epoch=7, run="r", incarnation=9)

    found = NAMES.shown_parts([f"p=2/{name}", f"{name}/notes.txt", f"p=1/q=5/{name}"])

    assert found == [FilePart(f"p={path}/{name}", 3, "r", 9, 7) for path in ("1/q=5", "2")]


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
    """Whatever else people keep there is not for a sink to remove."""
    read: list[Callable[[list[str]], list[FilePart]]] = [NAMES.shown_parts, NAMES.pending_parts]

    assert [each([name, f"{name}.pending"]) for each in read] == [[], []]
