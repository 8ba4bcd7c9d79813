"""The logs of masters that are all away, for masters that begin over them at other addresses."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from gearpy.cluster.quorum.disks import DiskBook
from gearpy.core.consensus.stored import LogEntry, StoredLog
from gearpy.errors import ConfigError
from gearpy.storage.folder.local import LocalFolder
from gearpy.storage.log import FileLog
from gearpy.storage.replica_store import ReplicaStore


def check_logs(folders: Sequence[Path]) -> bool:
    """Find out whether masters have been over these folders of logs; one for each master."""
    known = [each for each in folders if each.exists()]
    if known and 2 * len(known) <= len(folders):
        missing = ", ".join(str(each) for each in folders if each not in known)
        raise ConfigError(
            f"the logs of most masters are lost, as {missing} is missing: what was agreed on may "
            "not be in the others; put the folders back, or begin with a new folder"
        )
    return bool(known)


def move_logs(folders: Sequence[Path], members: Sequence[str]) -> None:
    """Have the logs of all masters name these as the only ones. Nothing is done to new folders.

    All of them get the log that had to win an election, as it has all that was ever agreed on, if
    most of the folders are there. None of the masters may run.
    """
    if not check_logs(folders):
        return
    with ExitStack() as opened:
        logs = list[FileLog]()
        for folder in folders:
            place = LocalFolder(folder, private=True)
            logs.append(FileLog(place))
            opened.callback(logs[-1].close)
            DiskBook(place, is_new=True)  # A folder that was lost has a new name from now on.
        stores = [ReplicaStore(log, StoredLog()) for log in logs]
        newest = moved([each.stored for each in stores], members)
        for log in logs:
            log.snapshot(newest.to_bytes())


def moved(logs: Sequence[StoredLog], members: Sequence[str]) -> StoredLog:
    reaches = [
        (
            each.entries[-1].term if each.entries else each.base_term,
            each.base_index + len(each.entries),
        )
        for each in logs
    ]
    log, term = logs[reaches.index(max(reaches))], max(each.term for each in logs) + 1
    entries = [*log.entries, LogEntry(term=term, members=tuple(sorted(members)))]
    return StoredLog(
        term=term,
        snapshot=log.snapshot,
        base_index=log.base_index,
        base_term=log.base_term,
        entries=entries,
    )
