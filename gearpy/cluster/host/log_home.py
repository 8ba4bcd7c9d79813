"""The folder in which processes of applications log, apart from those of other clusters."""

import fcntl
import os
import threading
from typing import Final

from msgspec.structs import replace

from gearpy.cluster.host.log_reader import LogReader
from gearpy.cluster.host.logs import LogSettings
from gearpy.messages.client import LogText, ReadLog, Refused

_OWNER: Final = ".cluster"
_ID_BYTES_MAX: Final = 200


class LogHome:
    """Finds the folder for logs of the applications of a worker.

    Clusters number their applications alike. While workers of one use a folder, those of another
    use a folder in it that is called like their cluster. Whether they do, a lock tells, which goes
    with the process, however that ends.

    Runs on: any thread.
    """

    def __init__(self, settings: LogSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()  # It guards the rest.
        self._owner: int | None = None
        self._cluster_id = ""

    def of(self, cluster_id: str) -> LogSettings:
        with self._lock:
            if cluster_id and not self._cluster_id:
                if not self._is_ours(cluster_id):
                    folder = self._settings.folder / cluster_id
                    self._settings = replace(self._settings, folder=folder)
                self._cluster_id = cluster_id
            return self._settings

    def answer(self, question: ReadLog) -> LogText | Refused:
        with self._lock:
            folder = self._settings.folder
        return LogReader(folder).answer(question)

    def close(self) -> None:
        with self._lock:
            if self._owner is not None:
                os.close(self._owner)
                self._owner = None

    def _is_ours(self, cluster_id: str) -> bool:
        """Take the folder for a cluster, or share it with the same one; False: another has it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._owner = os.open(self._settings.folder / _OWNER, flags, 0o600)
        name = cluster_id.encode()
        try:
            fcntl.flock(self._owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # Somebody uses it, or is about to say who does.
            fcntl.flock(self._owner, fcntl.LOCK_SH)
        else:
            os.ftruncate(self._owner, 0)
            os.pwrite(self._owner, name, 0)
            fcntl.flock(self._owner, fcntl.LOCK_SH)
        if os.pread(self._owner, _ID_BYTES_MAX, 0) == name:
            return True
        os.close(self._owner)
        self._owner = None
        return False
