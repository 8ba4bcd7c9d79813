"""The epochs of one attempt: when one is complete, given up or committed, and its files.

The coordinator's half of the protocol; tasks align and snapshot by themselves. Gearpump: the
checkpoint clock of `ClockService`, for which all tasks must report the same time.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gearpy.core.epoch.pace import EpochPace
from gearpy.errors import ProtocolError
from gearpy.ids import MIN_MS, ExecutorId, TaskId
from gearpy.messages.app import EpochStored, SnapshotFile, TaskOffsets

#: A message without an answer is repeated after so long.
REPEAT_MS: Final = 2_000
#: After so many epochs in a row that were given up, each next one has twice the time of the one
#: before, up to 2 ** 4 times as much.
_GIVEN_UP: Final = 3
_DOUBLED_MAX: Final = 4


class Manifest(Struct, frozen=True, kw_only=True):
    """A complete epoch: all that a restart needs.

    ``clock_ms`` is how far the region was when the epoch began to end. No source that was not idle
    was behind it when it ended the epoch, so one that goes back to it misses nothing.
    ``snapshots`` are in the order in which they are read; a file counts for those tasks that it is
    listed with, though it may hold others. ``offsets`` are where sources were. All records of the
    epoch are older than ``cut_time_ms``, and all later ones are not; None if it ended by position.
    """

    region: int
    epoch: int
    attempt: int
    clock_ms: int
    snapshots: tuple[SnapshotFile, ...]
    offsets: tuple[TaskOffsets, ...] = ()
    cut_time_ms: int | None = None

    @property
    def chain(self) -> tuple[SnapshotFile, ...]:
        return tuple(file for file in self.snapshots if file.partition is None)

    @property
    def changelog(self) -> tuple[SnapshotFile, ...]:
        return tuple(file for file in self.snapshots if file.partition is not None)

    @property
    def total_bytes(self) -> int:
        return sum(file.size_bytes for file in self.chain)


_DECODER: Final = msgspec.msgpack.Decoder(Manifest)


def encode_manifest(manifest: Manifest) -> bytes:
    return msgspec.msgpack.encode(manifest)


def decode_manifest(data: bytes) -> Manifest:
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, ValueError) as error:
        raise ProtocolError(f"malformed manifest of an epoch: {error}") from error


class Cut(NamedTuple):
    """The end of an epoch; without an event time it is wherever each source is."""

    epoch: int
    cut_time_ms: int | None


class EpochCoordinator:
    """Ends epochs of one attempt of a region, one after the other.

    Epochs have more time behind some that were given up: else none might ever be complete.

    Invariant: an epoch is complete only when every executor of the attempt has stored it; complete
    epochs come in order; one that was given up never is, and no number comes twice.
    """

    def __init__(
        self,
        *,
        region: int,
        attempt: int,
        epoch: int,
        placement: Mapping[TaskId, ExecutorId],
        base: Sequence[SnapshotFile],
        pace: EpochPace,
        timeout_ms: int,
        now_ms: int,
    ) -> None:
        self._region = region
        self._attempt = attempt
        self.epoch = epoch
        self._placement = placement
        self._executors = frozenset(placement.values())
        self._base = tuple(base)
        self._pace = pace
        self._timeout_ms = timeout_ms
        self._given_up = 0  # None was complete in the usual time since.
        self.is_ending = False
        self._due_ms = pace.first_ms(now_ms)
        self._began_ms = self._announce_ms = now_ms
        self._clock_ms = MIN_MS
        self.cut_time_ms: int | None = None
        self._stored: dict[ExecutorId, EpochStored] = {}

    @property
    def missing(self) -> list[ExecutorId]:
        return sorted(self._executors - self._stored.keys())

    @property
    def timeout_ms(self) -> int:
        return self._timeout_ms << min(_DOUBLED_MAX, max(0, self._given_up - _GIVEN_UP + 1))

    def is_due(self, now_ms: int) -> bool:
        return not self.is_ending and now_ms >= self._due_ms

    def is_late(self, now_ms: int) -> bool:
        return self.is_ending and now_ms - self._began_ms >= self.timeout_ms

    def awaits(self, message: EpochStored) -> bool:
        return (
            self.is_ending
            and (message.attempt, message.epoch) == (self._attempt, self.epoch)
            and message.executor_id in self._executors
            and message.executor_id not in self._stored
        )

    def begin(self, now_ms: int, *, clock_ms: int, cut_time_ms: int | None) -> None:
        assert not self.is_ending, self.epoch
        self.is_ending = True
        self._began_ms = self._announce_ms = now_ms
        self._clock_ms, self.cut_time_ms = clock_ms, cut_time_ms

    def to_announce(self, now_ms: int) -> Cut | None:
        """Return the message for every executor now; the same again when that takes long."""
        if not self.is_ending or now_ms < self._announce_ms:
            return None
        self._announce_ms = now_ms + REPEAT_MS
        return Cut(self.epoch, self.cut_time_ms)

    def on_stored(self, message: EpochStored, now_ms: int) -> Manifest | None:
        if not self.awaits(message):
            return None
        self._stored[message.executor_id] = message
        if len(self._stored) < len(self._executors):
            return None
        stored = [self._stored[each] for each in sorted(self._stored)]
        has_missed_cut = any(each.has_missed_cut for each in stored)
        manifest = Manifest(
            region=self._region,
            epoch=self.epoch,
            attempt=self._attempt,
            clock_ms=self._clock_ms,
            snapshots=merged(
                self._base, {each.executor_id: each.snapshots for each in stored}, self._placement
            ),
            offsets=tuple(offsets for each in stored for offsets in each.offsets),
            cut_time_ms=None if has_missed_cut else self.cut_time_ms,
        )
        self._base = manifest.snapshots
        if now_ms - self._began_ms < self._timeout_ms:
            self._given_up = 0
        took_ms = now_ms - self._began_ms
        storing_ms = max(took_ms if each.storing_ms is None else each.storing_ms for each in stored)
        self._go_on(
            self._pace.on_complete(began_ms=self._began_ms, now_ms=now_ms, storing_ms=storing_ms)
        )
        return manifest

    def abort(self, now_ms: int) -> None:
        """Give the epoch up; the next one may begin to end at once."""
        assert self.is_ending, self.epoch
        self._given_up += 1
        self._go_on(now_ms)

    def _go_on(self, due_ms: int) -> None:
        self.epoch += 1
        self._stored = {}
        self.is_ending, self.cut_time_ms = False, None
        self._due_ms = due_ms


def merged(
    base: Iterable[SnapshotFile],
    chains: Mapping[ExecutorId, Iterable[SnapshotFile]],
    placement: Mapping[TaskId, ExecutorId],
) -> tuple[SnapshotFile, ...]:
    """Return the files of several executors as one chain, each once.

    An executor speaks for its own tasks only, or what was deleted since would be there again. Files
    of ``base`` keep their order; those made since have tasks of one executor only.
    """
    tasks: dict[str, set[TaskId]] = {file.location: set() for file in base}
    files: dict[str, SnapshotFile] = {}
    for executor_id in sorted(chains):
        for file in chains[executor_id]:
            own = {task for task in file.tasks if placement.get(task) == executor_id}
            tasks.setdefault(file.location, set()).update(own)
            files.setdefault(file.location, file)
    return tuple(
        replace(files[location], tasks=tuple(sorted(counting)))
        for location, counting in tasks.items()
        if counting
    )


class CommitRound:
    """Tells all executors that an epoch is stored for good, until all have said that they know."""

    def __init__(self, epoch: int, executors: Iterable[ExecutorId], now_ms: int) -> None:
        self.epoch = epoch
        self._waiting_for = set(executors)
        self._due_ms = now_ms

    @property
    def is_done(self) -> bool:
        return not self._waiting_for

    def to_tell(self, now_ms: int) -> list[ExecutorId]:
        if now_ms < self._due_ms:
            return []
        self._due_ms = now_ms + REPEAT_MS
        return sorted(self._waiting_for)

    def on_committed(self, executor_id: ExecutorId, epoch: int) -> None:
        if epoch >= self.epoch:
            self._waiting_for.discard(executor_id)
