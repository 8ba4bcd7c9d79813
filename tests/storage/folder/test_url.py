"""Folders at URLs: what file systems and object stores do that folders of a disk do not."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import uuid4

import pytest
from fsspec import register_implementation  # type: ignore[import-untyped]
from fsspec.implementations.memory import MemoryFileSystem  # type: ignore[import-untyped]

from gearpy.errors import SnapshotDamaged
from gearpy.storage.checkpoints import FolderCheckpoints
from tests.storage.folder_build import url_folder

NAME = "app3/epochs/epoch7-executor1"


class LibraryError(Exception):
    """What a library of an object store raises; no `OSError`."""


class _Store(MemoryFileSystem):  # type: ignore[misc]
    cachable = False
    behaviour = ""
    calls: ClassVar[list[str]]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        type(self).calls = []

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        plain = path.replace("behaving://", "memory://")
        return super()._strip_protocol(plain)  # type: ignore[no-any-return]

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        self.calls.append("mv")
        if self.behaviour == "fails in silence":
            return
        if self.behaviour == "never replaces" and self.exists(path2):
            raise FileExistsError(path2)
        super().mv(path1, path2, **options)

    def put_file(self, lpath: str, rpath: str, **options: Any) -> None:
        self.calls.append("put")
        super().put_file(lpath, rpath, **options)

    def info(self, path: str, **options: Any) -> Any:
        if self.behaviour == "is out of reach":
            raise LibraryError("connection refused")
        return super().info(path, **options)

    def modified(self, path: str) -> datetime:
        if self.behaviour == "knows no times":
            raise NotImplementedError
        return super().modified(path)  # type: ignore[no-any-return]


@pytest.fixture
def behaving() -> type[_Store]:
    class Behaving(_Store):
        store: ClassVar[dict[str, Any]] = {}
        pseudo_dirs: ClassVar[list[str]] = [""]

    register_implementation("behaving", Behaving, clobber=True)
    return Behaving


def a_store(url: str = "behaving://x", **options: Any) -> FolderCheckpoints:
    return FolderCheckpoints(url_folder(url, **options))


def test_a_file_system_moves_what_is_complete(behaving: type[_Store]) -> None:
    store = a_store()

    store.save(NAME, seen_while_saved(store))

    assert behaving.calls == ["mv"]
    assert store.names("") == [NAME]


def test_an_object_store_is_given_what_is_complete(behaving: type[_Store]) -> None:
    """There, moving would copy; and nothing else is put."""
    store = a_store(puts_whole=True)

    store.save(NAME, seen_while_saved(store))

    assert behaving.calls == ["put"]
    assert [*behaving.store] == [f"/x/{NAME}"]


def seen_while_saved(store: FolderCheckpoints) -> Iterator[bytes]:
    """Yield chunks; between them, nothing is there."""
    yield b"first"
    assert store.names("") == []
    with pytest.raises(SnapshotDamaged):
        store.open(NAME)
    yield b"second"


def test_a_file_system_that_never_replaces_is_made_to(behaving: type[_Store]) -> None:
    behaving.behaviour = "never replaces"
    store = a_store()

    for data in (b"one", b"two"):
        assert store.load(*store.save(NAME, [data])[:2]) == data
    assert store.names("") == [NAME]


def test_a_move_that_fails_in_silence_is_found(behaving: type[_Store]) -> None:
    store = a_store()
    behaving.behaviour = "fails in silence"

    with pytest.raises(OSError, match="epoch7"):
        store.save(NAME, [b"state"])


@pytest.mark.parametrize("puts_whole", [True, False])
def test_what_was_cut_short_is_found(
    behaving: type[_Store], monkeypatch: pytest.MonkeyPatch, *, puts_whole: bool
) -> None:
    def info(store: _Store, path: str, **_: Any) -> Any:
        return {**MemoryFileSystem.info(store, path), "size": 2}

    store = a_store(puts_whole=puts_whole)
    monkeypatch.setattr(behaving, "info", info)

    with pytest.raises(OSError, match="stored with 5 bytes"):
        store.save(NAME, [b"state"])


def test_a_store_out_of_reach_is_no_damage(behaving: type[_Store]) -> None:
    """Else a restart would go back to an older epoch, or to the beginning."""
    store = a_store()
    store.save(NAME, [b"state"])
    behaving.behaviour = "is out of reach"

    for call in (store.open, store.load):
        with pytest.raises(OSError, match="LibraryError: connection refused"):
            call(NAME)


def test_a_read_that_fails_half_way_is_no_damage(
    behaving: type[_Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_: Any, **__: Any) -> bytes:
        raise LibraryError("connection lost")

    store = a_store()
    store.save(NAME, [b"state"])
    monkeypatch.setattr(behaving, "cat_file", lose)

    with store.open(NAME) as file, pytest.raises(OSError, match="LibraryError: connection lost"):
        file.read(1)


def test_our_own_bugs_keep_their_name(behaving: type[_Store]) -> None:
    def failing() -> Iterator[bytes]:
        yield b"x"
        raise KeyError("a bug")

    for puts_whole in (True, False):
        with pytest.raises(KeyError, match="a bug"):
            a_store(puts_whole=puts_whole).save(NAME, failing())
    assert not behaving.store


def test_leftovers_of_unknown_age_stay(behaving: type[_Store]) -> None:
    leftover = f"/x/app3/.{uuid4().hex}.tmp"
    MemoryFileSystem.pipe_file(behaving(), leftover, b"half")
    behaving.behaviour = "knows no times"

    assert a_store().names("") == []
    assert leftover in behaving.store


def test_old_leftovers_are_removed(behaving: type[_Store]) -> None:
    old, young = (f"/x/app3/.{each}.tmp" for each in ("old", "young"))
    for path in (old, young):
        MemoryFileSystem.pipe_file(behaving(), path, b"half")
    behaving.store[old].modified = datetime(2000, 1, 1, tzinfo=UTC)

    a_store()

    assert [*behaving.store] == [young]


def test_a_large_file_is_read_in_few_requests(
    behaving: type[_Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = []

    def cat_file(store: _Store, path: str, **wanted: int) -> Any:
        requests.append(wanted)
        return MemoryFileSystem.cat_file(store, path, **wanted)

    data = bytes(range(256)) * (40 << 10)
    store = a_store()
    store.save(NAME, [data])
    monkeypatch.setattr(behaving, "cat_file", cat_file)

    with store.open(NAME) as file:
        read = b"".join(iter(lambda: file.read(1000), b""))

    assert read == data
    assert len(requests) == 3


def test_a_whole_file_is_read_with_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = url_folder(f"memory://{uuid4().hex}")
    folder.put("a", bytes(3_000_000))
    ranges: list[tuple[int, int]] = []
    read = MemoryFileSystem.cat_file

    def counted(self: Any, path: str, start: int, end: int) -> Any:
        ranges.append((start, end))
        return read(self, path, start, end)

    monkeypatch.setattr(MemoryFileSystem, "cat_file", counted)

    with folder.open("a") as file:
        assert len(file.read()) == 3_000_000
        assert file.read() == b""
    with folder.open("a") as file:
        file.seek(2_999_990)
        assert len(file.read()) == 10

    assert ranges == [(0, 3_000_000), (2_999_990, 3_000_000)]
