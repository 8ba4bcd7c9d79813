"""Names of files in a folder, and the folder itself, on disk and in memory."""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.folders.files import Folder, OsFolder, Part, PartNames, run_in_names
from tests.connectors.folder_build import MemoryFolder

RUNS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=150)
NAMES = PartNames("part", ".jsonl")


@pytest.fixture(params=["disk", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    """Return an empty folder of each kind."""
    made: Folder = OsFolder(tmp_path / "out") if request.param == "disk" else MemoryFolder()
    made.make()
    return made


def put(folder: Folder, name: str, data: bytes) -> None:
    """Write a pending file."""
    with folder.create(name) as file:
        file.write(data)
        folder.sync(file)
    folder.sync_pending()


# -- the folder ------------------------------------------------------------------------------


def test_a_pending_file_is_not_among_those_readers_see(folder: Folder) -> None:
    """It has another place and the size of what was written."""
    put(folder, "a", b"12345")

    assert (folder.pending(), folder.shown()) == (["a"], [])
    assert (folder.pending_size("a"), folder.pending_size("b")) == (5, None)


def test_showing_moves_a_file(folder: Folder) -> None:
    """It is gone from one place when it is in the other."""
    put(folder, "a", b"12345")

    is_shown = folder.show("a", name="b")
    folder.sync_shown()

    assert (is_shown, folder.pending(), folder.shown()) == (True, [], ["b"])
    assert (folder.has_shown("b"), folder.has_shown("a")) == (True, False)


def test_what_is_not_pending_cannot_be_shown(folder: Folder) -> None:
    """Somebody was quicker; that is an answer."""
    assert folder.show("a", name="b") is False
    assert folder.shown() == []


def test_two_pending_files_cannot_have_one_name(folder: Folder) -> None:
    """Nobody writes into the file of another."""
    put(folder, "a", b"")

    with pytest.raises(FileExistsError):
        folder.create("a")


def test_removing_twice_is_removing(folder: Folder) -> None:
    """Somebody was quicker; that is no error."""
    put(folder, "a", b"")
    put(folder, "b", b"")
    folder.show("b", name="b")

    for _ in range(2):
        folder.drop_pending("a")
        folder.drop_shown("b")

    assert (folder.pending(), folder.shown()) == ([], [])


def test_making_a_folder_twice_leaves_what_is_in_it(tmp_path: Path) -> None:
    """Each task makes it; nothing is there before the first."""
    folder = OsFolder(tmp_path / "out")
    assert (folder.pending(), folder.shown()) == ([], [])

    folder.make()
    put(folder, "a", b"")
    folder.make()

    assert folder.pending() == ["a"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["_pending"]


def test_files_and_names_reach_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a power cut takes back what was promised."""
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(_path_of(handle)))
    folder = OsFolder(tmp_path / "out")

    folder.make()
    put(folder, "a", b"1")
    folder.show("a", name="b")
    folder.sync_shown()

    out = f"{tmp_path}/out"
    assert synced == [str(tmp_path), out, f"{out}/_pending/a", f"{out}/_pending", out]


def _path_of(handle: int) -> str:
    return str(Path(f"/dev/fd/{handle}").readlink())


@pytest.mark.parametrize("seed", range(20))
def test_a_power_cut_in_memory_keeps_what_was_synced(seed: int) -> None:
    """What was not may be there or not; that is what the tests of writers rely on."""
    folder = MemoryFolder()
    put(folder, "a", b"1")
    put(folder, "b", b"2")
    folder.show("a", name="a")
    folder.sync_shown()
    folder.show("b", name="b")

    folder.crash(Random(seed))

    assert folder.has_shown("a")
    assert folder.has_shown("b") != (folder.pending() == ["b"])


# -- names -----------------------------------------------------------------------------------


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

    assert NAMES.shown_parts([shown, pending]) == [Part(shown, task, run, incarnation, epoch)]
    assert NAMES.pending_parts([shown, pending]) == [Part(pending, task, run, incarnation)]
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

    assert found == [Part(f"p={path}/{name}", 3, "r", 9, 7) for path in ("1/q=5", "2")]


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
    read: list[Callable[[list[str]], list[Part]]] = [NAMES.shown_parts, NAMES.pending_parts]

    assert [each([name, f"{name}.pending"]) for each in read] == [[], []]
