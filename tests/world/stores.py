"""A checkpoint store in virtual time: it fails at times, is slow, and has damaged files."""

from collections.abc import Callable, Iterable
from typing import BinaryIO, Final

from gearpy.storage.checkpoints import Checkpoints, MemoryCheckpoints, StoredFile
from gearpy.testing.world import World

#: The share of requests that fail while the store fails.
_FAILING: Final = 0.7
#: The share of failed requests that were done, where only the answer is lost.
_DONE_ALL_THE_SAME: Final = 0.3
_SLOW_MS_MAX: Final = 400


class FaultyCheckpoints:
    """`Checkpoints` in memory that outlive every process; sound until something is done to them.

    Implements `Checkpoints`.
    """

    def __init__(self, world: World, stored: Checkpoints | None = None) -> None:
        self._world = world
        self.stored: Checkpoints = MemoryCheckpoints() if stored is None else stored
        """The stored files, for a look from outside."""
        self._fails_until_ms = self._slow_until_ms = 0
        self._failing_part = ""
        self._elsewhere = MemoryCheckpoints()  # Seen in place of the store while it is away.
        self._away_until_ms = self._away_after = 0
        #: Told of each request; tells whether who made it is killed by now, and hears no answer.
        self.on_request: Callable[[str], bool] = lambda _: False
        self.failures = 0  #: How often something did not work.
        self.is_log_behind = False  #: The last entry of a coordinator log could not be stored.

    # -- faults ----------------------------------------------------------------------------

    def fail(self, duration_ms: int, *, part: str = "") -> None:
        """Fail most requests for a time; with a part, only those for names that have it."""
        self._failing_part = part
        self._fails_until_ms = self._world.now_ms + duration_ms

    def be_away(self, duration_ms: int, *, after: int = 0) -> None:
        """Be an empty folder for a time, which begins after some more requests."""
        self._away_until_ms, self._away_after = self._world.now_ms + duration_ms, after

    @property
    def misplaced(self) -> list[str]:
        return self._elsewhere.names("")

    @property
    def _seen(self) -> Checkpoints:
        if self._world.now_ms >= self._away_until_ms:
            return self.stored
        self._away_after -= 1
        return self.stored if self._away_after >= 0 else self._elsewhere

    def be_slow(self, duration_ms: int) -> None:
        """Take long to save and load, for a time; see `wait_ms`."""
        self._slow_until_ms = self._world.now_ms + duration_ms

    def damage(self, location: str, duration_ms: int) -> None:
        """Change a byte of a stored file; after a time it is as it was, if it is there still."""
        whole = self.stored.load(location)
        at = self._world.rng.randrange(len(whole))
        damaged = whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]
        self.stored.save(location, [damaged])

        def heal() -> None:
            is_there = location in self.stored.names("")
            if is_there and self.stored.load(location) == damaged:
                self.stored.save(location, [whole])

        self._world.later(duration_ms, heal)

    # -- the view of others ----------------------------------------------------------------

    def wait_ms(self) -> int:
        if self._world.now_ms >= self._slow_until_ms:
            return 0
        return self._world.rng.randrange(_SLOW_MS_MAX)

    @property
    def place(self) -> str:
        return self.stored.place

    def save(self, name: str, chunks: Iterable[bytes]) -> StoredFile:
        """See `Checkpoints`. A failed save may have stored the file, as on stores in a network."""
        data, is_failing = b"".join(chunks), self._is_failing(name)
        if "/coordinator/" in name:
            self.is_log_behind = is_failing
        if is_failing:
            if self._world.rng.random() < _DONE_ALL_THE_SAME:
                self._seen.save(name, [data])
            raise self._failure("save", name)
        return self._seen.save(name, [data])

    def open(self, location: str) -> BinaryIO:
        if self._is_failing(location):
            raise self._failure("open", location)
        return self._seen.open(location)

    def load(self, location: str, sha256: str = "") -> bytes:
        if self._is_failing(location):
            raise self._failure("load", location)
        return self._seen.load(location, sha256)

    def names(self, prefix: str) -> list[str]:
        if self._is_failing(prefix):
            # A log that cannot be listed takes nothing more, also where it has just done so.
            self.is_log_behind = self.is_log_behind or prefix.endswith("/coordinator")
            raise self._failure("list", prefix)
        return self._seen.names(prefix)

    def drop(self, location: str) -> None:
        if self._is_failing(location):
            raise self._failure("drop", location)
        self._seen.drop(location)

    def drop_all(self, prefix: str) -> None:
        if self._is_failing(prefix):
            raise self._failure("drop", prefix)
        self._seen.drop_all(prefix)

    def has(self, name: str) -> bool:
        if self._is_failing(name):
            raise self._failure("look for", name)
        return self._seen.has(name)

    def hold(self, prefix: str) -> None:
        self.stored.hold(prefix)

    def _is_failing(self, name: str) -> bool:
        if self.on_request(name):
            return True
        world = self._world
        is_meant = world.now_ms < self._fails_until_ms and self._failing_part in name
        return is_meant and world.rng.random() < _FAILING

    def _failure(self, what: str, name: str) -> OSError:
        self.failures += 1
        return OSError(f"the store fails: cannot {what} {name}")
