"""One suite for every folder of a log: on a disk, at a URL, in memory."""

from pathlib import Path
from uuid import uuid4

import pytest

from gearpy.errors import ConfigError
from gearpy.windowlog.store import PENDING, LocalStore, Store, UrlStore, store_at
from tests.windowlog.store_build import MemoryStore


@pytest.fixture(params=["local", "file url", "memory url", "in memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Return an empty folder that was made."""
    made: Store = MemoryStore()
    if request.param == "local":
        made = store_at(tmp_path / "log")
    elif request.param == "file url":
        made = UrlStore(f"file://{tmp_path}/log")
    elif request.param == "memory url":
        made = store_at(f"memory://{uuid4().hex}/log")
    made.make()
    return made


def write(store: Store, name: str, data: bytes) -> None:
    """Write a file as a writer of a log does."""
    with store.create(name) as file:
        file.write(data)
        store.sync(file)


def test_a_new_folder_is_empty(store: Store) -> None:
    """Its folders are no files; making it again changes nothing."""
    store.make()

    assert (store.names(), store.names(PENDING)) == ([], [])


def test_a_pending_file_is_seen_once_it_is_moved(store: Store) -> None:
    """In one step; the other name is gone."""
    write(store, f"{PENDING}a", b"123")
    before = store.names(), store.names(PENDING)

    assert store.move(f"{PENDING}a", to="b")
    store.sync_names()
    store.sync_names(PENDING)

    assert before == ([], ["a"])
    assert (store.names(), store.names(PENDING)) == (["b"], [])
    assert store.read("b") == b"123"
    found = store.look("b")
    assert found is not None
    assert found.size == 3
    with store.open("b") as file:
        assert file.read() == b"123"


def test_what_is_not_there_is_told(store: Store) -> None:
    """Another may have been quicker."""
    assert store.read("a") is None
    assert store.look("a") is None
    assert not store.move(f"{PENDING}a", to="a")
    store.remove("a")
    with pytest.raises(FileNotFoundError):
        store.open("a")


def test_a_small_file_is_replaced_as_a_whole(store: Store) -> None:
    """Readers see the one or the other; nothing else is left."""
    store.put("_owners/a.json", b"1")
    store.put("_owners/a.json", b"22")

    assert store.read("_owners/a.json") == b"22"
    assert store.names("_owners/") == ["a.json"]


def test_a_new_file_is_made_once(store: Store) -> None:
    """Of two tasks one is first."""
    assert store.put_new("_schema.json", b"1")
    assert not store.put_new("_schema.json", b"2")

    assert (store.read("_schema.json"), store.names()) == (b"1", ["_schema.json"])


def test_a_file_can_be_removed(store: Store) -> None:
    """Others stay."""
    write(store, "a", b"1")
    write(store, "b", b"2")

    store.remove("a")

    assert store.names() == ["b"]


def test_a_location_is_for_other_programs(tmp_path: Path) -> None:
    """A path here, a URL elsewhere."""
    assert store_at(tmp_path).location("a") == f"{tmp_path}/a"
    assert store_at("memory://bucket/log/").location("a") == "memory:///bucket/log/a"
    assert store_at("memory://bucket/log").place == "memory:///bucket/log"


def test_a_file_url_is_a_path(tmp_path: Path) -> None:
    """With renames that are one step."""
    assert isinstance(store_at(f"file://{tmp_path}"), LocalStore)


def test_a_url_that_nobody_knows_is_refused() -> None:
    """It says which."""
    with pytest.raises(ConfigError, match="window log at nowhere://x"):
        store_at("nowhere://x")


def test_a_local_file_is_made_once(tmp_path: Path) -> None:
    """Two incarnations never write the same one."""
    store = store_at(tmp_path)
    store.make()
    write(store, "a", b"1")

    with pytest.raises(FileExistsError):
        store.create("a")
