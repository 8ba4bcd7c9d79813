"""Checkpoint stores: found whole, or not at all. See also `folder/test_url`."""

import os
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest

from gearpy.errors import ConfigError, SnapshotDamaged
from gearpy.storage.checkpoints import (
    Checkpoints,
    FolderCheckpoints,
    MemoryCheckpoints,
    checkpoints_at,
    orphans,
)
from tests.storage.folder_build import REAL_CHECKPOINTS, real_folder, url_folder

NAME = "app3/attempt2/epoch7-executor1"
#: Each store in a folder that is made for it.
STORES: dict[str, Callable[[Path], Checkpoints]] = {
    "folder": checkpoints_at,
    "memory": lambda _: MemoryCheckpoints(),
    "file-url": lambda folder: FolderCheckpoints(url_folder(f"file://{folder}")),
    "memory-url": lambda _: checkpoints_at(f"memory://{uuid4().hex}/x"),
    "put": lambda _: FolderCheckpoints(url_folder(f"memory://{uuid4().hex}", puts_whole=True)),
}


@pytest.fixture(params=[*STORES, *REAL_CHECKPOINTS])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Checkpoints:
    if request.param in STORES:
        return STORES[request.param](tmp_path / "checkpoints")
    return FolderCheckpoints(real_folder(request.param, request))


def test_the_last_of_a_name_counts(store: Checkpoints) -> None:
    """An attempt that is made again; who wants the first hears that it is gone."""
    first = store.save(NAME, [b"first"])
    second = store.save(NAME, [b"second"])

    assert store.load(second.location, second.sha256) == b"second"
    with pytest.raises(SnapshotDamaged, match="the 6 bytes found have SHA-256"):
        store.load(first.location, first.sha256)


def test_a_missing_one_is_damage(store: Checkpoints) -> None:
    store.save("app3/attempt2", [b"a file where a folder is looked for"])
    for missing in (NAME, "app4"):
        with pytest.raises(SnapshotDamaged, match=missing) as damage:
            store.load(missing)
        assert damage.value.location == missing
        with pytest.raises(SnapshotDamaged, match=missing):
            store.open(missing)


def test_a_save_that_breaks_off_changes_nothing(store: Checkpoints) -> None:
    stored = store.save(NAME, [b"before"])

    for name in (NAME, "new/one"):
        with pytest.raises(SnapshotDamaged, match="broken"):
            store.save(name, breaking_off(b"half"))

    assert store.load(*stored[:2]) == b"before"
    assert store.names("") == [NAME]


def breaking_off(data: bytes) -> Iterator[bytes]:
    yield data
    raise SnapshotDamaged(location="elsewhere", reason="broken")


def test_dropping_is_repeatable(store: Checkpoints) -> None:
    stored = store.save(NAME, [b"state"])

    store.drop(stored.location)
    store.drop(stored.location)

    with pytest.raises(SnapshotDamaged):
        store.load(stored.location)


def test_drop_all_takes_what_is_below_and_nothing_beside(store: Checkpoints) -> None:
    kept = [store.save(name, [b"x"])[:2] for name in ("app30/attempt1/a", "app3/attempt10/a", "b")]
    gone = [store.save(name, [b"x"])[:2] for name in ("app3/attempt1/a", "app3/attempt1/b/c")]

    store.drop_all("app3/attempt1")
    store.drop_all("app3/attempt1")

    assert all(store.load(*each) == b"x" for each in kept)
    for each in gone:
        with pytest.raises(SnapshotDamaged):
            store.load(*each)
    store.drop_all("app3")
    store.drop_all("b")
    assert store.load(*kept[0]) == b"x"
    for each in kept[1:]:
        with pytest.raises(SnapshotDamaged):
            store.load(*each)


def test_what_nobody_needs_is_an_orphan(store: Checkpoints) -> None:
    for name in ("app3/a", "app3/b", "app4/c"):
        store.save(name, [b"x"])

    assert orphans(store, "app3", {"app3/b", "app3/gone"}) == ["app3/a"]
    assert orphans(store, "app3", {"app3/a", "app3/b"}) == []


@pytest.mark.parametrize(
    "name",
    [
        *("", "/", "..", ".", "a/../b", "../a", "/etc/passwd", "a//b", "a/", "~/a", ".hidden"),
        *("a\\b", "a\0b", "a\nb", "grün", "x" * 129, "/".join("a" * 9), "a.tmp", "a b", "-a"),
    ],
)
@pytest.mark.parametrize("store", ["folder", "memory", "memory-url", "put"], indirect=True)
def test_no_name_leads_out(store: Checkpoints, name: str) -> None:
    with pytest.raises(ConfigError, match="is not allowed"):
        store.save(name, [b"x"])
    with pytest.raises(SnapshotDamaged):
        store.load(name)
    with pytest.raises(ConfigError, match="is not allowed"):
        store.drop(name)
    with pytest.raises(ConfigError, match="is not allowed"):
        store.drop_all(name)
    if name:
        with pytest.raises(ConfigError, match="is not allowed"):
            store.names(name)


# -- the folder ------------------------------------------------------------------------------


def test_a_truncated_or_changed_file_is_never_loaded(tmp_path: Path) -> None:
    store = checkpoints_at(tmp_path)
    location, checksum, _ = store.save(NAME, [b"state of a task"])
    path = tmp_path / NAME

    for size in range(len(b"state of a task")):
        path.write_bytes(b"state of a task"[:size])
        with pytest.raises(SnapshotDamaged):
            store.load(location, checksum)
        path.write_bytes(b"state of a task"[:size] + b"?" + b"state of a task"[size + 1 :])
        with pytest.raises(SnapshotDamaged):
            store.load(location, checksum)


@pytest.mark.parametrize("open_store", [checkpoints_at, STORES["file-url"]])
def test_leftovers_of_crashed_processes_are_removed(
    tmp_path: Path, open_store: Callable[[Path], Checkpoints]
) -> None:
    """Those of living ones are young, and stay; neither has a name."""
    open_store(tmp_path).save(NAME, [b"state"])
    old, young = (tmp_path / "app3" / f".{each}.1-1.tmp" for each in ("old", "young"))
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))

    store = open_store(tmp_path)

    assert not old.exists()
    assert young.exists()
    assert store.names("") == [NAME]


def test_a_save_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    store = checkpoints_at(tmp_path)
    (tmp_path / NAME).mkdir(parents=True)

    with pytest.raises(OSError, match="epoch7"):
        store.save(NAME, [b"state"])

    assert [path.name for path in (tmp_path / NAME).parent.iterdir()] == ["epoch7-executor1"]
    assert store.names("") == []
    with pytest.raises(SnapshotDamaged):
        store.open(NAME)


def test_what_cannot_be_told_is_no_damage(tmp_path: Path) -> None:
    """Nobody goes back to an older epoch because a disk cannot be read for a while."""
    store = checkpoints_at(tmp_path)
    (tmp_path / "loop").symlink_to("loop")

    with pytest.raises(OSError, match="symbolic links"):
        store.load("loop")


def test_empty_folders_go_with_their_last_file(tmp_path: Path) -> None:
    store = checkpoints_at(tmp_path)
    for name in ("a/b/c", "a/d", "e/f/g"):
        store.save(name, [b"x"])

    store.drop("a/b/c")
    store.drop_all("e/f")

    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "d"]
    store.drop("a/d")
    assert list(tmp_path.iterdir()) == []


def test_saving_beside_a_drop_never_fails(tmp_path: Path) -> None:
    """One process removes a folder because it is empty while another one begins to use it."""
    store, is_over = checkpoints_at(tmp_path), threading.Event()

    def drop() -> None:
        for number in count():
            if is_over.is_set():
                return
            store.drop(store.save(f"a/b/dropped{number % 2}", [b"x"]).location)

    dropper = threading.Thread(target=drop)
    dropper.start()
    try:
        for number in range(300):
            stored = store.save(f"a/b/{number}", [b"y"])
            assert store.load(stored.location) == b"y"
            store.drop(stored.location)
    finally:
        is_over.set()
        dropper.join()


def test_links_do_not_lead_out(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    (tmp_path / "store").mkdir()
    store = checkpoints_at(tmp_path / "store")
    (tmp_path / "store" / "app3").symlink_to(tmp_path / "precious")

    store.drop_all("app3")

    assert (tmp_path / "precious" / "file").exists()
    assert not (tmp_path / "store" / "app3").is_symlink()


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    checkpoints_at(tmp_path / "store").save(NAME, [b"state"])

    everything = [tmp_path / "store", *(tmp_path / "store").rglob("*")]
    assert all(path.stat().st_mode & 0o077 == 0 for path in everything)


def test_a_folder_that_cannot_be_listed_is_not_taken_for_empty(tmp_path: Path) -> None:
    """A log of which a part was left out would be another log."""
    store = checkpoints_at(tmp_path)
    (tmp_path / "loop").symlink_to("loop")

    with pytest.raises(OSError, match="symbolic links"):
        store.names("loop/x")


def test_a_large_file_comes_back_as_it_was(store: Checkpoints) -> None:
    large = bytes(range(256)) * 10_000
    store.save(NAME, [b"before"])
    for data in (large, large[::-1], b"small"):
        stored = store.save(NAME, [data])
        assert store.load(stored.location, stored.sha256) == data
    assert store.names("app3") == [NAME]
