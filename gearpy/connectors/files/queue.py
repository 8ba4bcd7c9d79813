"""Decides which file of a partition is read next: each once, by name, also later ones."""

import logging
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

from gearpy.connectors.locations import FoundFile
from gearpy.core.base.stable_hash import stable_hash

_DIGEST_BYTES: Final = 8

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
        look: returns the files that are there, by name.
        seen: digests of those that were given before; see `snapshot`.
        follows: whether to look again.
        poll_ms: wait between two looks.
        settle_ms: a file that was changed less than this ago is not complete yet.
        now_ms: the wall clock.
    """

    def __init__(
        self,
        look: Callable[[], Sequence[FoundFile]],
        *,
        seen: bytes = b"",
        follows: bool = False,
        poll_ms: int = 1000,
        settle_ms: int = 0,
        now_ms: Callable[[], int],
    ) -> None:
        self._look = look
        self._seen = {seen[at : at + _DIGEST_BYTES] for at in range(0, len(seen), _DIGEST_BYTES)}
        self._follows = follows
        self._poll_ms = poll_ms
        self._settle_ms = settle_ms
        self._now_ms = now_ms
        self._looked_ms: int | None = None
        self._sizes: dict[bytes, int] = {}  # Of those that were given, since this one is there.
        self._waiting: list[FoundFile] = []  # The next one last.
        self.bytes_known = 0  #: Of all files that were there at the last look.
        self.bytes_done = 0  #: Of those that are done with, also before a restart.

    def next(self) -> FoundFile | None:
        if not self._waiting:
            self._look_again()
        return self._waiting[-1] if self._waiting else None

    def done(self, file: FoundFile) -> None:
        """Go on behind a file."""
        self._seen.add(_digest(file.name))
        if self._follows:
            self._sizes[_digest(file.name)] = file.size
        self.bytes_done += file.size
        self._waiting = [each for each in self._waiting if each.name != file.name]

    @property
    def ended(self) -> bool:
        return not self._follows and self._looked_ms is not None and not self._waiting

    def snapshot(self) -> bytes:
        return b"".join(sorted(self._seen))

    def _look_again(self) -> None:
        now_ms = self._now_ms()
        if self._looked_ms is not None:
            # A clock that was set back must not stop the looks.
            too_soon = 0 <= now_ms - self._looked_ms < self._poll_ms
            if not self._follows or too_soon:
                return
        self._looked_ms = now_ms
        found = self._look()
        self.bytes_known = sum(file.size for file in found)
        there = {_digest(file.name): file for file in found}
        if self._follows and there:
            self._seen &= there.keys()
            self._tell_grown(there)
        self.bytes_done = sum(file.size for digest, file in there.items() if digest in self._seen)
        new = [file for digest, file in there.items() if digest not in self._seen]
        self._waiting = sorted(filter(self._is_complete, new), key=_name, reverse=True)

    def _tell_grown(self, there: Mapping[bytes, FoundFile]) -> None:
        self._sizes = {each: size for each, size in self._sizes.items() if each in there}
        for digest, size in self._sizes.items():
            file = there[digest]
            if file.size > size:
                _log.warning(
                    "%s has grown by %s bytes since it was found, and they may be left out: write "
                    "a new file for each portion, or follow lines that are added with "
                    "gp.files(..., follow=True)",
                    file.name,
                    f"{file.size - size:,}",
                )
                self._sizes[digest] = file.size

    def _is_complete(self, file: FoundFile) -> bool:
        return not self._follows or not 0 <= self._now_ms() - file.changed_ms < self._settle_ms


def _digest(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "surrogateescape"), digest_size=_DIGEST_BYTES).digest()


def _name(file: FoundFile) -> str:
    return file.name
