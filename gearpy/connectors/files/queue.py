"""Decides which file of a partition is read next: each once, by name, also later ones."""

import logging
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from hashlib import blake2b
from struct import Struct
from typing import Final, NamedTuple

from gearpy.connectors.locations import FoundFile
from gearpy.core.base.stable_hash import stable_hash

DIGEST_BYTES: Final = 8

_ENTRY: Final = Struct(f">{DIGEST_BYTES}sQQ")

_log = logging.getLogger(__name__)


def part_of(name: str, parts: int) -> int:
    return stable_hash(name) % parts


class FileQueue:
    """Gives the files of one partition, one after the other.

    Of those that are there at a look it gives the first by name; each is given once, as long as
    it stays in the folder. One that is gone at a look is forgotten, and given again if it comes
    back; but where a look finds nothing at all the folder itself may be gone for a while, and
    nothing is forgotten. One that grows after it was given is told of: what was added is not read.

    Args:
        seen: digests of those that were given before; see `snapshot`.
        settle_ms: a file that was changed less than this ago is not complete yet.
        up_to_now: it ends with what is there at the first look; one that is not complete yet is
            looked at once more.
    """

    def __init__(
        self,
        look: Callable[[], Sequence[FoundFile]],
        *,
        seen: bytes = b"",
        follows: bool = False,
        poll_ms: int = 1000,
        settle_ms: int = 0,
        up_to_now: bool = False,
        now_ms: Callable[[], int],
    ) -> None:
        self._look = look
        self._seen = {seen[at : at + DIGEST_BYTES] for at in range(0, len(seen), DIGEST_BYTES)}
        self._follows = follows
        self._poll_ms = poll_ms
        self._settle_ms = settle_ms
        self._now_ms = now_ms
        self._up_to_now = up_to_now
        self._unsettled: set[str] | None = None  # Found at the first of two looks.
        self._looked_ms: int | None = None
        self._done: dict[bytes, FoundFile] = {}  # Done since this object was made.
        self._waiting: list[FoundFile] = []  # The next one last.
        self.bytes_known = 0  #: The bytes of all files that were there at the last look.
        self.bytes_done = 0  #: The bytes of those that are done, also before a restart.

    def next(self) -> FoundFile | None:
        if not self._waiting:
            self._look_again()
        return self._waiting[-1] if self._waiting else None

    def done(self, file: FoundFile) -> None:
        self._seen.add(digest_of(file.name))
        if self._follows:
            self._done[digest_of(file.name)] = file
        self.bytes_done += file.size
        self._waiting = [each for each in self._waiting if each.name != file.name]

    def gone(self, file: FoundFile) -> None:
        """Forget a file that is not there any more; if it comes back, it is given."""
        _log.warning("%s is gone, and was not read yet", file.name)
        self._waiting = [each for each in self._waiting if each.name != file.name]

    @property
    def ended(self) -> bool:
        is_over = self._up_to_now and not self._unsettled
        may_end = not self._follows or is_over
        return may_end and self._looked_ms is not None and not self._waiting

    def snapshot(self) -> bytes:
        return b"".join(sorted(self._seen))

    def _look_again(self) -> None:
        now_ms = self._now_ms()
        if self._looked_ms is not None:
            # A clock that was set back must not stop the looks.
            pause_ms = self._settle_ms if self._up_to_now else self._poll_ms
            too_soon = 0 <= now_ms - self._looked_ms < pause_ms
            if not self._follows or too_soon or self.ended:
                return
        self._looked_ms = now_ms
        found = self._look()
        self.bytes_known = sum(file.size for file in found)
        there = {digest_of(file.name): file for file in found}
        if self._follows and there:
            for file in found:
                if (other := read_by_other_name(file, self._seen)) is not None:
                    _log.warning(*other)
                    self._seen.add(digest_of(file.name))
            self._seen &= there.keys()
            self._done = {each: file for each, file in self._done.items() if each in there}
            for digest, before in self._done.items():
                file = there[digest]
                if file.size > before.size:
                    _log.warning(
                        "%s has grown by %s bytes since it was found, and they may be left out: "
                        "write a new file for each portion, or follow lines that are added with "
                        "gp.files(..., follow=True)",
                        file.name,
                        f"{file.size - before.size:,}",
                    )
                elif file != before:
                    _log.warning(
                        "%s was changed or replaced since it was read, and what it has now is left "
                        "out: write a new file for each portion",
                        file.name,
                    )
                self._done[digest] = file
        self.bytes_done = sum(file.size for digest, file in there.items() if digest in self._seen)
        new = [file for digest, file in there.items() if digest not in self._seen]
        if self._follows:  # One that was just changed is not complete yet.
            settle_ms, now_ms = self._settle_ms, self._now_ms()  # The look may have taken long.
            fresh = [each for each in new if 0 <= now_ms - each.changed_ms < settle_ms]
            new = [each for each in new if each not in fresh]
            if self._up_to_now:
                was_fresh, self._unsettled = self._unsettled, {each.name for each in fresh}
                if was_fresh is not None:  # What came since is read by the next run.
                    new, self._unsettled = [each for each in new if each.name in was_fresh], set()
        self._waiting = sorted(new, key=lambda file: file.name, reverse=True)


class Unread(NamedTuple):
    """A file, of as many bytes as can be read now, and the byte and line where to begin."""

    file: FoundFile
    begin: int = 0
    line: int = 0


class FilesRead:
    """The files that were read so far, by digests of their names, and how far.

    A file is given when it is new, or has grown where it may; where it was replaced it is told of,
    and left out. One that is not there any more is forgotten, unless nothing at all is there, as
    the folder itself may be away for a while.

    Invariant: no byte of a file is given twice, and none is passed over, as long as it only grows.

    Args:
        kept: of `snapshot`.
        whole: returns how many bytes of a file are whole rows, where files may grow; None: a file
            is complete when nothing was added to it for ``settle_ms``.
    """

    def __init__(
        self,
        kept: bytes = b"",
        *,
        whole: Callable[[FoundFile], int] | None = None,
        settle_ms: int = 0,
    ) -> None:
        #: The size of each, and the number of the line behind it.
        self._ends = {each: (size, line) for each, size, line in _ENTRY.iter_unpack(kept)}
        self._whole = whole
        self._settle_ms = settle_ms
        self.unsettled: list[FoundFile] = []  #: They were changed just before the last look.

    def unread(self, found: Sequence[FoundFile], now_ms: int) -> list[Unread]:
        """Return the unread parts of the files that are there, by name."""
        if found:
            there = {digest_of(file.name) for file in found}
            self._ends = {each: end for each, end in self._ends.items() if each in there}
        self.unsettled = []
        unread: list[Unread] = []
        for file in found:
            before, line = self._ends.get(digest_of(file.name), (None, 0))
            if before is None and (other := read_by_other_name(file, self._ends)) is not None:
                before = file.size
                self.done(file, 0)
                _log.warning(*other)
            if self._whole is not None and file.is_local and not file.is_packed:
                file = replace(file, size=self._whole(file))  # noqa: PLW2901 - what counts of it
                if file.size > (before or 0):
                    unread.append(Unread(file, before or 0, line))
                    continue
            elif before is None:
                if 0 <= now_ms - file.changed_ms < self._settle_ms:
                    self.unsettled.append(file)
                else:
                    unread.append(Unread(file))
                continue
            if before is not None and file.size != before:
                _log.warning(
                    "%s was changed or replaced since it was read, and what it has now is left "
                    "out: write a new file for each portion",
                    file.name,
                )
                self.done(file, line)
        return unread

    def rest_of(self, file: FoundFile) -> Unread | None:
        """Return the readable part that was added to a file that was read."""
        if self._whole is None or not file.is_local or file.is_packed:
            return None
        before, line = self._ends.get(digest_of(file.name), (file.size, 0))
        file = replace(file, size=self._whole(file))
        return Unread(file, before, line) if file.size > before else None

    def done(self, file: FoundFile, line: int) -> None:
        self._ends[digest_of(file.name)] = (file.size, line)

    def snapshot(self) -> bytes:
        return b"".join(sorted(_ENTRY.pack(each, *end) for each, end in self._ends.items()))


def read_by_other_name(file: FoundFile, read: Container[bytes]) -> tuple[str, str, str] | None:
    """Return a warning of a file that was packed since it was read, or unpacked; else None."""
    others = () if digest_of(file.name) in read else file.other_names
    for name in others:
        if digest_of(name) in read:
            told = "%s is not read, as %s was, and it should have the same rows: give it another "
            return f"{told}name if it has others", file.name, name
    return None


def digest_of(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "surrogateescape"), digest_size=DIGEST_BYTES).digest()
