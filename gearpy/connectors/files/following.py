"""Files that are followed: those of one task, also those that come later."""

import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from gearpy.task.api.interfaces import Discovery, SourceReader
from gearpy.task.sources.share import Share

_LOG: Final = logging.getLogger(__name__)
#: Loggers move a file before they make the next one, and may still write to it.
_GONE_MS: Final = 60_000


class FollowedFile(SourceReader[str]):
    """Reader of a file that may grow, until it is told that there is no such file any more."""

    @abstractmethod
    def let_end(self) -> None:
        """Finish when all that is there was read."""


class FollowedFiles(Discovery[str]):
    """Finds the files that fit, at an interval, and opens each as a partition.

    A file that has been away for a minute while others were there was removed: it is read to its
    end, and is a new one if it comes back. Where a look finds no file at all, their folder may be
    away for a while.

    Args:
        wanted: the files that are meant, for people.
        look: returns the paths that are there now.
        open_file: opens one at a place; None is its beginning.
    """

    forgets = True

    def __init__(
        self,
        wanted: str,
        look: Callable[[], Sequence[str]],
        open_file: Callable[[str, Any], FollowedFile],
        share: Share,
        *,
        poll_ms: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._wanted = wanted
        self._look = look
        self._open_file = open_file
        self._share = share
        self._poll_ms = poll_ms
        self._now_ms = now_ms
        self._looked_ms: int | None = None
        self._files: dict[str, FollowedFile] = {}
        self._gone_ms: dict[str, int] = {}  # Since when files are not there.

    def find(self) -> Mapping[str, Any]:
        now_ms = self._now_ms()
        # A clock that was set back must not stop the looks.
        if self._looked_ms is not None and 0 <= now_ms - self._looked_ms < self._poll_ms:
            return {}
        self._looked_ms = now_ms
        there = self._look()
        self._files = {name: file for name, file in self._files.items() if not file.finished}
        gone = self._files.keys() - set(there) if there else set()
        self._gone_ms = {
            name: min(now_ms, since_ms) for name, since_ms in self._gone_ms.items() if name in gone
        }
        for name in gone:
            if now_ms - self._gone_ms.setdefault(name, now_ms) >= _GONE_MS:
                self._files[name].let_end()
        has_files = bool(there or self._files)
        lacks = "" if has_files else f"a file that fits {self._wanted}"
        if lacks and not self.waits_for:
            _LOG.warning("files: waits for %s", lacks)
        self.waits_for = lacks
        self._share.known = set(self._files)
        self.has_looked = True
        return dict.fromkeys(self._share.new_of(there))

    def open(self, partition: str, place: Any) -> FollowedFile:
        self._files[partition] = self._open_file(partition, place)
        return self._files[partition]

    def snapshot(self) -> Mapping[str, Any]:
        return {}
