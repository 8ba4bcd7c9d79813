"""Folders of daemons: for this user only, and each used by one daemon at a time.

So are temporary folders of processes that run everything themselves.
"""

import fcntl
import json
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from gearpy.connectors.folders.part_names import drop_pending_of
from gearpy.errors import ConfigError
from gearpy.storage.folder.local import LocalFolder
from gearpy.transport.security.secret import make_private_folders

_FAILED_KEPT: Final = 10  # Working folders of processes that failed.
_PREFIX: Final = "gearpy-local-"
_LOCK: Final = "lock"  # Made by `LocalFolder.lock`.
_PENDING_NOTE: Final = "pending.json"
#: A temporary folder without a lock is one that is just being made, if it is as young as that.
_YOUNG_S: Final = 60.0


def private_folder(path: Path, key: str) -> Path:
    folder = path.expanduser().absolute()
    try:
        make_private_folders(folder)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"{key} {folder} cannot be made: {reason.lower()}") from error
    return folder


class Claim:
    """The first number that no living daemon on this machine has; it is free again at its end.

    The lock belongs to an open file, so that it goes with the process, however that ends.
    """

    def __init__(self, folder: Path, name: str) -> None:
        for number in count():
            handle = os.open(folder / f".{name}-{number}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                continue
            self.number, self._handle = number, handle
            return

    def release(self) -> None:
        """Let another have the number; once."""
        os.close(self._handle)


class WorkFolders:
    """Working folders of the processes of one worker.

    Who ended well and wrote no file there leaves nothing; of the others the last few are kept, to
    be looked at.

    Runs on: any thread.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()  # It guards `_used`.
        self._used: set[Path] = set()
        make_private_folders(folder)
        self._sweep()

    def make(self, name: str) -> Path:
        with self._lock:
            folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._folder))
            self._used.add(folder)
        return folder

    def release(self, folder: Path, *, failed: bool) -> None:
        """Remove or keep a folder whose process has ended.

        Files are kept for a while also of who ended well: somebody may look for them who gave
        them no absolute path.
        """
        is_kept = failed or bool(files_in(folder))
        if not is_kept:
            shutil.rmtree(folder, ignore_errors=True)
        with self._lock:
            self._used.discard(folder)
        if is_kept:
            self._sweep()

    def _sweep(self) -> None:
        with self._lock:
            found = [each for each in self._folder.iterdir() if each.is_dir()]
            unused = sorted((each for each in found if each not in self._used), key=_changed_s)
        for folder in unused[:-_FAILED_KEPT]:
            shutil.rmtree(folder, ignore_errors=True)


def files_in(folder: Path) -> list[str]:
    try:
        return sorted(each.name for each in folder.iterdir())
    except OSError:
        return []


def _changed_s(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


class TemporaryFolder:
    """A folder that is locked as long as its process lives.

    A process that can lock such a folder knows that its owner is dead: the system lets go of a lock
    with the process, however that ends. So each process first removes what dead ones have left:
    their folders, and what they have noted there.
    """

    def __init__(self) -> None:
        for leftover in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            with suppress(OSError):
                status = leftover.lstat()
                if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                    _remove_if_dead(leftover)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            self._disk = LocalFolder(self.path, private=True)
            with suppress(ConfigError, FileNotFoundError):
                self._disk.lock()
                if (self.path / _LOCK).exists():
                    break
            self._disk.unlock()  # Another process took it for a leftover, just before the lock.

    def note_pending(self, run: str, folders: Iterable[Path]) -> None:
        note = json.dumps({"run": run, "folders": [str(each) for each in folders]})
        self._disk.put(_PENDING_NOTE, note.encode())

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._disk.unlock()


def _remove_if_dead(path: Path) -> None:
    with suppress(OSError, ConfigError):  # It lives, or another process removes it just now.
        if not (path / _LOCK).exists():
            if time.time() - path.stat().st_mtime > _YOUNG_S:
                shutil.rmtree(path, ignore_errors=True)
            return
        disk = LocalFolder(path, private=True)
        disk.lock()
        with suppress(OSError, ValueError):  # It cannot be read, or the place is not ours any more.
            if _PENDING_NOTE in disk.names():
                note = json.loads(disk.read(_PENDING_NOTE) or b"")
                for folder in note["folders"]:
                    drop_pending_of(note["run"], Path(folder))
        shutil.rmtree(path, ignore_errors=True)
        disk.unlock()
