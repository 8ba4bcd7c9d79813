"""One suite for every folder: on a disk, at a URL, in memory."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest

from gearpy.errors import ConfigError
from gearpy.storage.folder.api import Folder
from gearpy.storage.folder.at import folder_at
from gearpy.storage.folder.local import LocalFolder
from gearpy.storage.folder.memory import MemoryFolder
from tests.storage.folder_build import REAL, real_folder, url_folder

PENDING = "_pending/"
FOLDERS: dict[str, Callable[[Path], Folder]] = {
    "local": LocalFolder,
    "private": lambda path: LocalFolder(path, private=True),
    "memory": lambda _: MemoryFolder(),
    "file url": lambda path: url_folder(f"file://{path}"),
    "memory url": lambda _: folder_at(f"memory://{uuid4().hex}/log", key="log"),
    "put": lambda _: url_folder(f"memory://{uuid4().hex}", puts_whole=True),
}


@pytest.fixture(params=[*FOLDERS, *REAL])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    if request.param in FOLDERS:
        made = FOLDERS[request.param](tmp_path / "parent" / "folder")
    else:
        made = real_folder(request.param, request)
    made.make(PENDING)
    return made


def write(folder: Folder, name: str, data: bytes) -> None:
    with folder.create(name) as file:
        file.write(data)
        folder.sync(file)


def test_a_new_folder_is_empty(folder: Folder) -> None:
    """Its folders are no files; making it again changes nothing."""
    write(folder, f"{PENDING}a", b"")
    folder.make(PENDING)

    assert (folder.names(), folder.names(PENDING), folder.names("other")) == ([], ["a"], [])


def test_a_pending_file_is_seen_once_it_is_moved(folder: Folder) -> None:
    write(folder, "b", b"old")
    write(folder, f"{PENDING}a", b"123")
    before = folder.names(), folder.names(PENDING)

    assert folder.move(f"{PENDING}a", to="b")
    folder.sync_names()
    folder.sync_names(PENDING)

    assert before == (["b"], ["a"])
    assert (folder.names(), folder.names(PENDING)) == (["b"], [])
    found = folder.look("b")
    assert found is not None
    assert (found.size, folder.read("b")) == (3, b"123")


def test_what_is_not_there_is_told(folder: Folder) -> None:
    """Another may have been quicker; removing again is no error."""
    assert folder.read("a") is None
    assert folder.look("a") is None
    assert not folder.move(f"{PENDING}a", to="a")
    folder.remove("a")
    folder.remove_tree("a")
    with pytest.raises(FileNotFoundError):
        folder.open("a")


def test_a_file_is_read_in_any_order(folder: Folder) -> None:
    """Who needs a part of it does not read the rest; readers do not disturb each other."""
    write(folder, "a", b"0123456789")

    with folder.open("a") as file, folder.open("a") as other:
        assert file.seek(7) == 7
        assert other.read(2) == b"01"
        assert file.read(2) == b"78"
        assert file.seek(0, os.SEEK_END) == 10
        assert file.read(1) == b""
        assert file.seek(-3, os.SEEK_CUR) == 7
        assert other.read() == b"23456789"


def test_a_file_is_replaced_as_a_whole(folder: Folder) -> None:
    """Readers see the one or the other; nothing else is left. Folders are made for it."""
    folder.put("owners/a.json", b"1")
    folder.write("owners/a.json", iter([b"2", b"", b"2"]))

    assert folder.read("owners/a.json") == b"22"
    assert folder.walk() == ["owners/a.json"]


def test_a_new_file_is_made_once(folder: Folder) -> None:
    assert folder.put_new("schema.json", b"1")
    assert not folder.put_new("schema.json", b"2")

    assert (folder.read("schema.json"), folder.names()) == (b"1", ["schema.json"])


def test_files_and_folders_can_be_removed(folder: Folder) -> None:
    for name in ("a", "b", "c/d", "c/e/f", "cc/g"):
        folder.put(name, b"")

    folder.remove("a")
    folder.remove_tree("c")
    folder.remove_tree("b")
    folder.prune("c")

    assert folder.walk() == ["cc/g"]


def test_two_files_cannot_have_one_name(tmp_path: Path) -> None:
    for folder in (LocalFolder(tmp_path), MemoryFolder()):
        write(folder, "a", b"1")

        with pytest.raises(FileExistsError):
            folder.create("a")


def test_files_and_names_reach_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a power cut takes back what was promised."""
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(_path_of(handle)))
    folder, out = LocalFolder(tmp_path / "out"), f"{tmp_path}/out"

    folder.make(PENDING)
    write(folder, f"{PENDING}a", b"1")
    folder.sync_names(PENDING)
    folder.make("k=1/d=2")
    folder.move(f"{PENDING}a", to="k=1/d=2/b")
    folder.sync_names("k=1/d=2")

    assert synced == [
        *(str(tmp_path), out, f"{out}/_pending/a", f"{out}/_pending"),
        *(str(tmp_path), out, f"{out}/k=1", f"{out}/k=1/d=2"),
    ]


def test_what_is_appended_to_a_file_that_was_removed_is_not_promised(tmp_path: Path) -> None:
    """The system takes it, and nobody would find it again."""
    folder = LocalFolder(tmp_path / "out")
    folder.make("")
    folder.append("log", b"1")
    (tmp_path / "out" / "log").unlink()

    with pytest.raises(FileNotFoundError, match="was removed while it was in use"):
        folder.append("log", b"2")


def _path_of(handle: int) -> str:
    return str(Path(f"/dev/fd/{handle}").readlink())


def test_a_private_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    """Who can write to it decides what the cluster runs; links in it lead nowhere."""
    folder = LocalFolder(tmp_path / "a" / "b", private=True)
    folder.make("c")
    folder.put("c/d", b"1")
    folder.append("log", b"1")
    (tmp_path / "a" / "b" / "link").symlink_to(tmp_path / "target")

    made = [each for each in (tmp_path / "a").rglob("*") if not each.is_symlink()]
    assert [each for each in made if each.stat().st_mode & 0o077] == []
    with pytest.raises(OSError, match="link"):
        folder.append("link", b"1")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(NotADirectoryError, match="file"):
        LocalFolder(tmp_path / "file").make()


def _open_files(folder: Path) -> list[int]:
    """Return the open files of this process below a folder."""
    found = list[int]()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # That of the listing itself.
            if str(each.readlink()).startswith(str(folder)):
                found.append(int(each.name))
    return found


def test_one_has_the_folder(tmp_path: Path) -> None:
    one, other = LocalFolder(tmp_path), LocalFolder(tmp_path)
    one.lock()

    with pytest.raises(ConfigError, match=f"in use by process {os.getpid()}"):
        other.lock()
    of_a_fork = [os.dup(each) for each in _open_files(tmp_path)]
    one.unlock()
    other.lock()

    assert other.names() == []
    for each in of_a_fork:
        os.close(each)
    memory = MemoryFolder()
    memory.lock()
    with pytest.raises(ConfigError, match="in use by this process"):
        memory.lock()


@pytest.mark.parametrize("seed", range(20))
def test_a_power_cut_keeps_what_was_synced(seed: int) -> None:
    folder = MemoryFolder()
    write(folder, f"{PENDING}a", b"1")
    write(folder, f"{PENDING}b", b"2")
    folder.sync_names(PENDING)
    folder.move(f"{PENDING}a", to="a")
    folder.sync_names()
    folder.move(f"{PENDING}b", to="b")
    folder.append("a", b"11")
    with folder.create("c") as file:
        file.write(b"3")

    folder.crash(Random(seed) if seed else None)

    assert folder.read("a") == b"111"
    assert (folder.read("b") is None) == (folder.names(PENDING) == ["b"])
    assert folder.read("c") in {None, b"", b"3", b"\0"}


@pytest.mark.parametrize("form", ["{}", "file://{}", "local://{}"])
def test_a_folder_is_named_by_path_or_url(tmp_path: Path, form: str) -> None:
    found = folder_at(form.format(tmp_path), key="k")

    assert isinstance(found, LocalFolder)
    assert (found.place, found.location("a")) == (str(tmp_path), f"{tmp_path}/a")


def test_a_location_is_for_other_programs() -> None:
    found = folder_at("memory://bucket/log/", key="k")

    assert (found.place, found.location("a")) == ("memory:///bucket/log", "memory:///bucket/log/a")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("file://relative/path", "three slashes"),
        ("nonsense://bucket", "Protocol not known: nonsense"),
        ("gdrive://folder", "install"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused(url: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        folder_at(url, key="checkpoint.folder")
    assert url in str(refused.value)
    assert "checkpoint.folder" in str(refused.value)
