"""Programs on their way from the leader to a majority of the masters."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Final

from gearpy.cluster.programs.upload import Uploadable, send
from gearpy.cluster.quorum.disks import AskMember
from gearpy.errors import GearpyError
from gearpy.messages.client import Artifact, ArtifactStored, HasArtifact
from gearpy.storage.artifacts import ArtifactStore

_log = logging.getLogger(__name__)

_REMEMBERED_MAX: Final = 1000
#: Then masters are asked again whether they have it: those that nobody needs go. See `GRACE_MS`.
_REMEMBERED_S: Final = 600.0


class ProgramSpread:
    """Stores a program at a majority of the masters before its application is acknowledged.

    Executors may then fetch it from any of them, whichever master is lost.

    Runs on: any thread; blocks until it is done.
    """

    def __init__(
        self,
        store: ArtifactStore,
        others: Callable[[], Sequence[str]],
        ask: AskMember,
        *,
        timeout_s: float,
    ) -> None:
        self._store, self._others, self._ask = store, others, ask
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="gearpy-spread")
        self._lock = threading.Lock()
        self._done: dict[tuple[str, tuple[str, ...]], float] = {}  # And when.

    def refusal_of(self, artifact: Artifact) -> str:
        """Have a majority store a program; return why that is not so, or an empty text."""
        if artifact.kind != "stored":
            return ""
        others = tuple(self._others())
        key = (artifact.location, others)
        with self._lock:
            if time.monotonic() - self._done.get(key, -_REMEMBERED_S) < _REMEMBERED_S:
                return ""
        missing = (len(others) + 1) // 2 + 1 - self._store.has(artifact.location)
        if missing > 0:
            missing -= self._sent(artifact, others, missing)
        if missing > 0:
            return (
                f"program {artifact.filename or artifact.location[:12]} could not be given to a "
                "majority of the masters: submit it again when they are there"
            )
        with self._lock:
            self._done.pop(key, None)
            self._done[key] = time.monotonic()
            while len(self._done) > _REMEMBERED_MAX:
                del self._done[next(iter(self._done))]
        return ""

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _sent(self, artifact: Artifact, others: Sequence[str], wanted: int) -> int:
        sending = [self._threads.submit(self._send, artifact, each) for each in others]
        count = 0
        try:
            for each in as_completed(sending, self._timeout_s):
                error = each.exception()
                if isinstance(error, GearpyError | OSError):
                    _log.warning("a master did not take a program: %s", error)
                else:
                    count += each.result()
                if count >= wanted:
                    break
        except TimeoutError:
            _log.warning("not all masters took program %s in time", artifact.location[:12])
        return count

    def _send(self, artifact: Artifact, to: str) -> bool:
        sha256 = artifact.location

        def ask(message: Any) -> Any:
            return self._ask(to, message)

        if not self._store.has(sha256):
            return isinstance(ask(HasArtifact(sha256=sha256)), ArtifactStored)
        path = self._store.path(sha256)
        size = self._store.size(sha256)
        send(ask, Uploadable(artifact=artifact, path=path, size=size, origin=path))
        return True
