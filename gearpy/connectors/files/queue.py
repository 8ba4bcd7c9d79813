"""Decides which file of a partition is read next: each once, by name, also later ones."""

import logging
from collections.abc import Callable, Sequence
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
        seen: digests of those that were given before; see `snapshot`.
        settle_ms: a file that was changed less than this ago is not complete yet.
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
        self._done: dict[bytes, FoundFile] = {}  # Since this one is there.
        self._waiting: list[FoundFile] = []  # The next one last.
        self.bytes_known = 0  #: The bytes of all files that were there at the last look.
        self.bytes_done = 0  #: The bytes of those that are done, also before a restart.

    def next(self) -> FoundFile | None:
        if not self._waiting:
            self._look_again()
        return self._waiting[-1] if self._waiting else None

    def done(self, file: FoundFile) -> None:
        self._seen.add(_digest(file.name))
        if self._follows:
            self._done[_digest(file.name)] = file
        self.bytes_done += file.size
        self._waiting = [each for each in self._waiting if each.name != file.name]

    def gone(self, file: FoundFile) -> None:
        """Forget a file that is not there any more; if it comes back, it is given."""
        _log.warning("%s is gone, and was not read yet", file.name)
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
            for file in found:  # One that was given may have been packed since, or unpacked.
                others = () if _digest(file.name) in self._seen else file.other_names
                read = next((name for name in others if _digest(name) in self._seen), None)
                if read is not None:
                    _log.warning(
                        "%s is not read, as %s was, and it should have the same rows: give it "
                        "another name if it has others",
                        file.name,
                        read,
                    )
                    self._seen.add(_digest(file.name))
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
            new = [each for each in new if not 0 <= now_ms - each.changed_ms < settle_ms]
        self._waiting = sorted(new, key=lambda file: file.name, reverse=True)


def _digest(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "surrogateescape"), digest_size=_DIGEST_BYTES).digest()
