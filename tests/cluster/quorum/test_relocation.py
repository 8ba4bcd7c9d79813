"""The logs of masters that begin again at other addresses."""

import shutil
from pathlib import Path
from typing import Final

import pytest

from gearpy.cluster.quorum.disks import DiskBook
from gearpy.cluster.quorum.relocation import check_logs, move_logs
from gearpy.core.consensus.stored import DiskWrite, LogEntry, StoredLog
from gearpy.errors import ConfigError
from gearpy.storage.folder.local import LocalFolder
from gearpy.storage.log import FileLog
from gearpy.storage.replica_store import ReplicaStore

_MEMBERS: Final = ("a:1", "b:2", "c:3")
_OTHERS: Final = ("x:7", "y:8", "z:9")


def _stored(folder: Path, *entries: LogEntry, term: int = 0) -> StoredLog:
    place = LocalFolder(folder, private=True)
    log = FileLog(place)
    DiskBook(place, is_new=True)
    store = ReplicaStore(log, StoredLog.of_members(*_MEMBERS))
    if term:
        store.write(
            DiskWrite(term=term, vote="a:1", base_index=0, base_term=0, first=1, entries=entries)
        )
    log.close()
    return store.stored


def _folders(tmp_path: Path) -> list[Path]:
    return [tmp_path / str(number) / "members" for number in range(3)]


def _entry(term: int, command: bytes) -> LogEntry:
    return LogEntry(term=term, command=command)


def test_folders_that_are_new_stay_so(tmp_path: Path) -> None:
    move_logs(_folders(tmp_path), _OTHERS)

    assert not list(tmp_path.iterdir())


def test_all_go_on_from_the_log_that_had_to_be_elected(tmp_path: Path) -> None:
    """The newest term counts, then how much there is: a longer one of an older term may lack some.

    Nobody votes twice in a term: the new one is behind all that were.
    """
    one, two, three = _folders(tmp_path)
    _stored(one, _entry(2, b"x"), _entry(2, b"y"), _entry(2, b"z"), term=2)
    _stored(two, _entry(2, b"x"), _entry(3, b"agreed"), term=3)
    _stored(three, _entry(2, b"x"), term=5)

    move_logs([one, two, three], _OTHERS)

    for folder in (one, two, three):
        found = _stored(folder)
        assert [each.command for each in found.entries] == [b"x", b"agreed", b""]
        assert found.entries[-1] == LogEntry(term=6, members=_OTHERS)
        assert (found.term, found.vote) == (6, "")


def test_a_folder_that_was_lost_is_filled_again(tmp_path: Path) -> None:
    """Two of three have all that was agreed on; the third one is another disk from now on."""
    one, _, three = folders = _folders(tmp_path)
    for each in folders:
        _stored(each, _entry(1, b"x"), term=1)
    before = DiskBook(LocalFolder(three, private=True), is_new=False).own
    shutil.rmtree(three)

    move_logs(folders, _OTHERS)

    assert _stored(three).entries == _stored(one).entries
    assert DiskBook(LocalFolder(three, private=True), is_new=False).own != before


def test_too_few_folders_are_refused_with_their_names(tmp_path: Path) -> None:
    one, two, three = folders = _folders(tmp_path)
    _stored(one, _entry(1, b"x"), term=1)

    lost = rf"logs of most masters are lost, as {two}, {three} is"
    for refuses in (lambda: move_logs(folders, _OTHERS), lambda: check_logs(folders)):
        with pytest.raises(ConfigError, match=lost):
            refuses()
    assert not two.exists()


def test_a_log_in_use_is_refused(tmp_path: Path) -> None:
    folders = _folders(tmp_path)
    for each in folders:
        _stored(each, _entry(1, b"x"), term=1)
    runs = FileLog(folders[1])

    with pytest.raises(ConfigError, match="is in use by process"):
        move_logs(folders, _OTHERS)
    runs.close()
    move_logs(folders, _OTHERS)
