"""Programs in a folder that masters share: stored there before they count, found from elsewhere."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final
from uuid import uuid4

import pytest

from gearpy.config.schema import ArtifactConfig
from gearpy.errors import ConfigError
from gearpy.messages.client import ArtifactStored, HasArtifact, Refused, UploadArtifact
from gearpy.storage.artifacts import ArtifactDesk, ArtifactStore
from gearpy.storage.folder.api import Folder
from gearpy.storage.folder.local import LocalFolder
from gearpy.storage.folder.memory import MemoryFolder
from tests.storage.folder_build import REAL, real_folder, url_folder

DATA: Final = b"print('hello')\n" * 100
SHA: Final = hashlib.sha256(DATA).hexdigest()
LIMIT: Final = 1_000_000

FOLDERS: dict[str, Callable[[Path], Folder]] = {
    "local": lambda path: LocalFolder(path, private=True),
    "memory url": lambda _: url_folder(f"memory://{uuid4().hex}"),
}


@pytest.fixture(params=[*FOLDERS, *REAL])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    if request.param in FOLDERS:
        made = FOLDERS[request.param](tmp_path / "shared")
    else:
        made = real_folder(request.param, request)
    made.make()
    return made


def a_store(tmp_path: Path, name: str, shared: Folder) -> ArtifactStore:
    return ArtifactStore(tmp_path / name, LIMIT, shared)


def test_a_master_elsewhere_finds_a_program(tmp_path: Path, shared: Folder) -> None:
    """It copies it, and needs the shared folder no more; what is unknown is so."""
    one, other = a_store(tmp_path, "one", shared), a_store(tmp_path, "other", shared)
    assert not other.has(SHA)
    assert not one.write(SHA, offset=0, data=DATA[:700], last=False)
    assert shared.names() == []
    assert one.write(SHA, offset=700, data=DATA[700:], last=True)

    assert shared.names() == [SHA]
    assert other.has(SHA)
    assert other.size(SHA) == len(DATA)
    shared.remove(SHA)
    assert other.read(SHA, offset=0, count=10_000) == DATA


def test_programs_of_before_are_shared_when_they_are_asked_for(
    tmp_path: Path, shared: Folder
) -> None:
    ArtifactStore(tmp_path / "one", LIMIT).write(SHA, offset=0, data=DATA, last=True)
    assert a_store(tmp_path, "one", shared).has(SHA)
    assert shared.read(SHA) == DATA


def test_a_damaged_program_is_not_used_and_mended_by_the_next_upload(
    tmp_path: Path, shared: Folder
) -> None:
    shared.put(SHA, b"import evil")
    store = a_store(tmp_path, "one", shared)
    assert not store.has(SHA)
    assert store.write(SHA, offset=0, data=DATA, last=True)
    assert shared.read(SHA) == DATA


def test_what_was_dropped_is_gone_everywhere(tmp_path: Path, shared: Folder) -> None:
    store = a_store(tmp_path, "one", shared)
    store.write(SHA, offset=0, data=DATA, last=True)
    store.drop(SHA)
    assert shared.names() == []
    assert not a_store(tmp_path, "other", shared).has(SHA)


class _Away(MemoryFolder):
    """A folder that can be out of reach, and counts who looks into it."""

    is_away = False
    opened = 0

    def look(self, name: str) -> None:
        if self.is_away:
            raise OSError("the store is away")

    def open(self, name: str) -> BinaryIO:
        self.opened += 1
        if self.is_away:
            raise OSError("the store is away")
        raise FileNotFoundError(name)


def test_a_shared_folder_that_is_away_refuses_new_programs_only(tmp_path: Path) -> None:
    away = _Away()
    desk = ArtifactDesk(ArtifactStore(tmp_path / "one", LIMIT, away))
    other = hashlib.sha256(b"other").hexdigest()
    for at in range(0, len(DATA), 300):
        part = DATA[at : at + 300]
        answer = desk.answer(
            UploadArtifact(sha256=SHA, offset=at, data=part, last=at + 300 >= len(DATA))
        )
    assert isinstance(answer, ArtifactStored)
    assert away.opened == 1

    away.is_away = True
    store = ArtifactStore(tmp_path / "one", LIMIT, away)
    assert store.read(SHA, offset=0, count=5) == DATA[:5]
    answer = ArtifactDesk(store).answer(HasArtifact(sha256=other))
    assert isinstance(answer, Refused)
    assert answer.reason == "the master cannot store or read artifacts: the store is away"


def test_the_folder_is_configured(tmp_path: Path) -> None:
    url = f"memory://{uuid4().hex}/programs"
    for name in ("one", "other"):
        store = ArtifactStore.configured(tmp_path / name, ArtifactConfig(folder=url))
        assert store.has(SHA) == (name == "other")
        store.write(SHA, offset=0, data=DATA, last=True)
    (tmp_path / "file").touch()
    for folder in ("nonsense://programs", str(tmp_path / "file" / "x")):
        with pytest.raises(ConfigError, match=r"artifact\.folder"):
            ArtifactStore.configured(tmp_path / "no", ArtifactConfig(folder=folder))


def test_a_shared_folder_that_was_moved_away_is_not_made_anew(tmp_path: Path) -> None:
    config = ArtifactConfig(folder=str(tmp_path / "shared"))
    desk = ArtifactDesk(ArtifactStore.configured(tmp_path / "one", config))
    upload = UploadArtifact(sha256=SHA, offset=0, data=DATA, last=True)
    (tmp_path / "shared").rename(tmp_path / "away")

    refused = desk.answer(upload)

    assert isinstance(refused, Refused)
    assert "cannot store or read artifacts: " in refused.reason
    assert not (tmp_path / "shared").exists()
    (tmp_path / "away").rename(tmp_path / "shared")
    assert isinstance(desk.answer(upload), ArtifactStored)
    assert (tmp_path / "shared" / SHA).exists()
