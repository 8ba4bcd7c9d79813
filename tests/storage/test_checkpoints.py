"""Checkpoint stores: found whole, or not at all."""

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from gearpy.errors import ConfigError, SnapshotDamaged
from gearpy.storage.checkpoints import Checkpoints, CheckpointStore, MemoryCheckpoints

NAME = "app3/attempt2/epoch7-executor1"


@pytest.fixture(params=[CheckpointStore, MemoryCheckpoints])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Checkpoints:
    """Return an empty store of each kind."""
    make: Callable[..., Checkpoints] = request.param
    return make() if make is MemoryCheckpoints else make(tmp_path / "checkpoints")


def test_what_was_saved_is_loaded(store: Checkpoints) -> None:
    """By location and checksum, also when it is empty."""
    for data in (b"state", b""):
        location, checksum = store.save(NAME, data)

        assert checksum == sha256(data).hexdigest()
        assert store.load(location, checksum) == data


def test_the_last_of_a_name_counts(store: Checkpoints) -> None:
    """An attempt that is made again; who wants the first hears that it is gone."""
    location, first = store.save(NAME, b"first")
    again, second = store.save(NAME, b"second")

    assert store.load(again, second) == b"second"
    with pytest.raises(SnapshotDamaged, match="the 6 bytes found have SHA-256"):
        store.load(location, first)


def test_a_missing_one_is_damage(store: Checkpoints) -> None:
    """The restart goes back to an older epoch."""
    with pytest.raises(SnapshotDamaged, match=NAME) as damage:
        store.load(NAME, sha256(b"").hexdigest())
    assert damage.value.location == NAME


def test_dropping_is_repeatable(store: Checkpoints) -> None:
    """After a crash nobody knows whether it was done."""
    location, checksum = store.save(NAME, b"state")

    store.drop(location)
    store.drop(location)

    with pytest.raises(SnapshotDamaged):
        store.load(location, checksum)


def test_drop_all_takes_what_is_below_and_nothing_beside(store: Checkpoints) -> None:
    """Application 3 is not application 30."""
    kept = [store.save(name, b"x") for name in ("app30/attempt1/a", "app3/attempt10/a", "b")]
    gone = [store.save(name, b"x") for name in ("app3/attempt1/a", "app3/attempt1/b/c")]

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


@pytest.mark.parametrize(
    "name",
    [
        *("", "/", "..", ".", "a/../b", "../a", "/etc/passwd", "a//b", "a/", "~/a", ".hidden"),
        *("a\\b", "a\0b", "a\nb", "grün", "x" * 129, "/".join("a" * 9), "a.tmp", "a b", "-a"),
    ],
)
def test_no_name_leads_out(store: Checkpoints, name: str) -> None:
    """Locations come from other processes."""
    with pytest.raises(ConfigError, match="is not allowed"):
        store.save(name, b"x")
    with pytest.raises(SnapshotDamaged):
        store.load(name, "")
    with pytest.raises(ConfigError, match="is not allowed"):
        store.drop(name)
    with pytest.raises(ConfigError, match="is not allowed"):
        store.drop_all(name)


# -- the folder ------------------------------------------------------------------------------


def test_a_truncated_or_changed_file_is_never_loaded(tmp_path: Path) -> None:
    """At every byte."""
    store = CheckpointStore(tmp_path)
    location, checksum = store.save(NAME, b"state of a task")
    path = tmp_path / NAME

    for size in range(len(b"state of a task")):
        path.write_bytes(b"state of a task"[:size])
        with pytest.raises(SnapshotDamaged):
            store.load(location, checksum)
        path.write_bytes(b"state of a task"[:size] + b"?" + b"state of a task"[size + 1 :])
        with pytest.raises(SnapshotDamaged):
            store.load(location, checksum)


def test_a_store_opened_elsewhere_finds_it(tmp_path: Path) -> None:
    """Machines may mount the folder in different places."""
    location, checksum = CheckpointStore(tmp_path / "here").save(NAME, b"state")
    (tmp_path / "here").rename(tmp_path / "there")

    assert CheckpointStore(tmp_path / "there").load(location, checksum) == b"state"


def test_leftovers_of_crashed_processes_are_removed(tmp_path: Path) -> None:
    """Those of living ones are young, and stay."""
    store = CheckpointStore(tmp_path)
    store.save(NAME, b"state")
    old, young = (tmp_path / "app3" / f".{each}.1-1.tmp" for each in ("old", "young"))
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))

    CheckpointStore(tmp_path)

    assert not old.exists()
    assert young.exists()
    assert (tmp_path / NAME).exists()


def test_a_save_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    """And no leftover."""
    store = CheckpointStore(tmp_path)
    (tmp_path / NAME).mkdir(parents=True)

    with pytest.raises(OSError, match="epoch7"):
        store.save(NAME, b"state")

    assert [path.name for path in (tmp_path / NAME).parent.iterdir()] == ["epoch7-executor1"]


def test_links_do_not_lead_out(tmp_path: Path) -> None:
    """What a link points to is not removed with it."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    store = CheckpointStore(tmp_path / "store")
    (tmp_path / "store" / "app3").symlink_to(tmp_path / "precious")

    store.drop_all("app3")

    assert (tmp_path / "precious" / "file").exists()
    assert not (tmp_path / "store" / "app3").is_symlink()


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    """State of users' data."""
    CheckpointStore(tmp_path / "store").save(NAME, b"state")

    everything = [tmp_path / "store", *(tmp_path / "store").rglob("*")]
    assert all(path.stat().st_mode & 0o077 == 0 for path in everything)
