"""Files that one task finds while it runs: those that are followed, and those not read so far."""

import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from gearpy.connectors.files.queue import FilesRead, Unread
from gearpy.connectors.locations import FoundFile
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

    #: It was not there at all, also under no other name.
    is_gone: bool = False


class FollowedFiles(Discovery[str]):
    """Finds the files that fit, at an interval, and opens each as a partition.

    A file that has been away for a minute while others were there was removed: it is read to its
    end, and is a new one if it comes back. Where a look finds no file at all, their folder may be
    away for a while.

    Args:
        wanted: the files that are meant, for people.
        look: returns the paths that are there now.
        open_file: opens one at a place; None is its beginning.
        up_to_now: it looks only once, and files finish at what is there.
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
        up_to_now: bool = False,
    ) -> None:
        self._wanted = wanted
        self._look = look
        self._open_file = open_file
        self._share = share
        self._poll_ms = poll_ms
        self._now_ms = now_ms
        self._up_to_now = up_to_now
        self._has_found = False  # Anything, at the last look.
        self._looked_ms: int | None = None
        self._files: dict[str, FollowedFile] = {}
        self._gone_ms: dict[str, int] = {}  # When files were first missing.

    def find(self) -> Mapping[str, Any]:
        now_ms = self._now_ms()
        # A clock that was set back must not stop the looks.
        if self._looked_ms is not None and 0 <= now_ms - self._looked_ms < self._poll_ms:
            self.pause_ms = self._poll_ms - (now_ms - self._looked_ms)
            return {}
        self._looked_ms, self.pause_ms = now_ms, self._poll_ms
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
        self.has_looked, self._has_found = True, bool(there)
        if self._up_to_now:
            self.finished, self.waits_for = True, ""
        return dict.fromkeys(self._share.new_of(there))

    def open(self, partition: str, place: Any) -> FollowedFile:
        self._files[partition] = self._open_file(partition, place)
        return self._files[partition]

    def keeps(self, partition: str) -> bool:
        return not (self._has_found and self._files[partition].is_gone)

    def snapshot(self) -> Mapping[str, Any]:
        return {}


class NewFiles(Discovery[Any]):
    """Finds the unread files that are there now; each is a partition, until it was read.

    A file that was changed just before the look is looked at once more, a little later: what has
    changed again by then is read by the next run.

    Args:
        look: returns the files of this task.
        place: returns where a reader begins.
        open_file: opens one at such a place, or that of a snapshot; calls back with the file when
            all of it was given.
    """

    forgets = True

    def __init__(
        self,
        read: FilesRead,
        look: Callable[[], Sequence[FoundFile]],
        place: Callable[[Unread], Any],
        open_file: Callable[[str, Any, Callable[[FoundFile, int], object]], SourceReader[Any]],
        *,
        settle_ms: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._read = read
        self._look = look
        self._place = place
        self._open_file = open_file
        self._settle_ms = settle_ms
        self._now_ms = now_ms
        self._open: set[str] = set()
        self._again_ms: int | None = None  # The second look.

    def find(self) -> Mapping[str, Any]:
        now_ms = self._now_ms()
        if self._again_ms is not None and now_ms < self._again_ms:
            return {}
        found, waited_for = self._look(), {each.name for each in self._read.unsettled}
        unread = self._read.unread(found, now_ms)
        unread = [each for each in unread if each.file.name not in self._open]
        if self._again_ms is not None:
            unread = [each for each in unread if each.file.name in waited_for]
        is_last = self._again_ms is not None or not self._read.unsettled
        if is_last:
            for each in self._read.unsettled:
                _LOG.info("%s is being written, and is read by the next run", each.name)
        self._again_ms = now_ms + self._settle_ms
        self.has_looked, self.finished = True, is_last
        return {each.file.name: self._place(each) for each in unread}

    def open(self, partition: str, place: Any) -> SourceReader[Any]:
        self._open.add(partition)
        return self._open_file(partition, place, self._read.done)

    def keeps(self, partition: str) -> bool:
        return False  # What was read of it is told.

    def snapshot(self) -> Mapping[str, Any]:
        return {"read": self._read.snapshot()}
