"""The checkpoints of an application whose folder is moved, emptied and brought back."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gearpy.errors import SnapshotDamaged, StoreAway, trouble_of
from gearpy.storage.checkpoints import FolderCheckpoints, checkpoints_at
from gearpy.storage.held import HeldCheckpoints

PREFIX = "k3f9/app1"
NAME = f"{PREFIX}/epochs/region0/one"


@pytest.fixture
def store(tmp_path: Path) -> FolderCheckpoints:
    return checkpoints_at(tmp_path / "store")


@pytest.fixture
def held(store: FolderCheckpoints) -> HeldCheckpoints:
    made = HeldCheckpoints(store, PREFIX)
    made.begin(is_known=False)
    return made


def everything(held: HeldCheckpoints) -> list[Callable[[], object]]:
    return [
        lambda: held.save(NAME, [b"x"]),
        lambda: held.load(NAME),
        lambda: held.open(NAME),
        lambda: held.names(PREFIX),
        lambda: held.names("k3f9/app2"),
        lambda: held.has(NAME),
    ]


@pytest.mark.parametrize("leaves", ["nothing", "an empty folder", "a folder of others"])
@pytest.mark.parametrize("part", ["", "k3f9", PREFIX])
def test_what_is_away_is_not_empty(
    held: HeldCheckpoints, tmp_path: Path, part: str, leaves: str
) -> None:
    """The root, the cluster or the application; nothing is made anew, and all is there later."""
    held.save(NAME, [b"whole"])
    folder, away = tmp_path / "store" / part, tmp_path / "away"
    folder.rename(away)
    if leaves != "nothing":
        folder.mkdir()
    if leaves == "a folder of others":
        (folder / "other").write_text("")
    before = [*(tmp_path / "store").rglob("*")]

    for step in everything(held):
        with pytest.raises(StoreAway, match=f"has nothing of {PREFIX} on .*: mount it, or bring"):
            step()
    with pytest.raises(StoreAway):
        held.begin(is_known=True)

    assert [*(tmp_path / "store").rglob("*")] == before
    shutil.rmtree(folder, ignore_errors=True)
    away.rename(folder)
    assert held.load(NAME) == b"whole"
    held.save(f"{NAME}2", [b"more"])
    assert f"{NAME}2" in held.names(PREFIX)


@pytest.mark.parametrize("part", ["", "k3f9", PREFIX])
def test_a_folder_that_goes_in_the_middle_of_a_write_is_not_made_anew(
    held: HeldCheckpoints, tmp_path: Path, part: str
) -> None:
    folder, away = tmp_path / "store" / part, tmp_path / "away"

    def chunks() -> Iterator[bytes]:
        folder.rename(away)
        yield b"x"

    held.save(NAME, [b"whole"])
    for name in (NAME, f"{PREFIX}/new/folder/file"):
        with pytest.raises(OSError, match="nothing of"):
            held.save(name, chunks())
        assert not folder.exists()
        away.rename(folder)

    assert held.load(NAME) == b"whole"


def test_a_folder_that_goes_before_the_file_is_begun_is_not_made_anew(
    held: HeldCheckpoints, store: FolderCheckpoints, tmp_path: Path
) -> None:
    (tmp_path / "store").rename(tmp_path / "away")

    with pytest.raises(FileNotFoundError):
        store.save(NAME, [b"x"])

    assert not (tmp_path / "store").exists()


def test_a_missing_file_is_damage_while_the_store_is_there(held: HeldCheckpoints) -> None:
    with pytest.raises(SnapshotDamaged):
        held.load(NAME)


def test_a_store_of_former_times_gets_its_mark(store: FolderCheckpoints) -> None:
    """It has a log, and so is there; also for an executor, whose app master is of that time."""
    store.save(f"{PREFIX}/coordinator/base", [b"x"])
    held = HeldCheckpoints(store, PREFIX)
    held.save(NAME, [b"x"])

    held.begin(is_known=True)

    assert store.has(f"{PREFIX}/coordinator/mark")


def test_who_goes_on_from_another_one_begins_where_that_is(
    held: HeldCheckpoints, store: FolderCheckpoints, tmp_path: Path
) -> None:
    again = HeldCheckpoints(store, "k3f9/app2")
    (tmp_path / "store").rename(tmp_path / "away")
    with pytest.raises(StoreAway, match=f"nothing of {PREFIX} "):
        again.begin(is_known=False, after=PREFIX)
    (tmp_path / "away").rename(tmp_path / "store")

    again.begin(is_known=False, after=PREFIX)

    assert store.has("k3f9/app2/coordinator/mark")


def test_who_begins_after_another_leaves_the_mark_alone(
    held: HeldCheckpoints, store: FolderCheckpoints
) -> None:
    held.save(NAME, [b"x"])

    HeldCheckpoints(store, PREFIX).begin(is_known=False)

    assert held.load(NAME) == b"x"


def test_an_application_that_ends_leaves_the_folder_of_its_cluster(
    held: HeldCheckpoints, tmp_path: Path
) -> None:
    held.save(NAME, [b"x"])

    held.drop_all(PREFIX)

    assert [*(tmp_path / "store").rglob("*")] == [tmp_path / "store" / "k3f9"]


def test_who_removes_a_file_that_is_away_prunes_nothing(
    held: HeldCheckpoints, tmp_path: Path
) -> None:
    """Else the folder that it is to be brought back to would be gone."""
    held.save(NAME, [b"x"])
    (tmp_path / "store" / PREFIX).rename(tmp_path / "away")

    held.drop(NAME)

    (tmp_path / "away").rename(tmp_path / "store" / PREFIX)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(28, "full (make room in /a/b)", "/a/b/.x.tmp"), "full (make room in /a/b)"),
        (OSError(30, "Read-only file system", "/a/b/.x.tmp"), "Read-only file system: /a/b"),
        (OSError("the store fails"), "the store fails"),
        (ValueError("wrong"), "wrong"),
    ],
)
def test_a_trouble_names_the_folder_and_no_temporary_file(error: Exception, text: str) -> None:
    assert trouble_of(error) == text


def test_a_prefix_of_objects_that_is_empty_is_away() -> None:
    """A store at a URL has no folders: what was stored is missing."""
    store = checkpoints_at("memory://held-store")
    held = HeldCheckpoints(store, PREFIX)
    held.begin(is_known=False)
    held.save(NAME, [b"whole"])
    away = {name: store.load(name) for name in store.names("")}
    store.drop_all("k3f9")

    for step in everything(held):
        with pytest.raises(StoreAway):
            step()

    assert store.names("") == []
    for name, data in away.items():
        store.save(name, [data])
    assert held.load(NAME) == b"whole"
