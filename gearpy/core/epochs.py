"""The epochs of one region: when one begins to end, when it is complete, what a restart needs.

The coordinator's half of the protocol; tasks align and snapshot by themselves. Gearpump:
`CheckpointManager` and the checkpoint clock of `ClockService`, whose cut is an event time.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from gearpy.errors import ProtocolError
from gearpy.ids import MIN_MS, ExecutorId, TaskId
from gearpy.messages.app import EpochStored, SnapshotFile

__all__ = [
    "EpochCoordinator",
    "EpochHistory",
    "Manifest",
    "decode_manifest",
    "decode_snapshots",
    "encode_manifest",
    "encode_snapshots",
]

#: An epoch may take a tenth of the time: the pause is nine times as long as it took to store.
_PAUSE_FACTOR: Final = 9
#: An epoch that is not complete is announced again after so many intervals.
_REPEAT_FACTOR: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A complete epoch: all that a restart needs.

    ``clock_ms`` is how far the region was when the epoch began to end. No source that was not idle
    was behind it when it ended the epoch, so one that goes back to it misses nothing.
    """

    region: int
    epoch: int
    attempt: int
    clock_ms: int
    snapshots: tuple[SnapshotFile, ...]


_DECODER: Final = msgspec.msgpack.Decoder(Manifest)


def encode_manifest(manifest: Manifest) -> bytes:
    """Return a manifest as bytes to store."""
    return msgspec.msgpack.encode(manifest)


def decode_manifest(data: bytes) -> Manifest:
    """Return the manifest that `encode_manifest` made.

    Raises:
        ProtocolError: it is none.
    """
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, ValueError) as error:
        raise ProtocolError(f"malformed manifest of an epoch: {error}") from error


_SNAPSHOTS: Final = msgspec.msgpack.Decoder(tuple[int, dict[int, bytes]])
_SNAPSHOTS_VERSION: Final = 1


def encode_snapshots(snapshots: Mapping[TaskId, bytes]) -> bytes:
    """Return what one executor stores for an epoch: the snapshot of each of its tasks."""
    packed = {task.packed(): snapshots[task] for task in sorted(snapshots)}
    return msgspec.msgpack.encode((_SNAPSHOTS_VERSION, packed))


def decode_snapshots(data: bytes) -> dict[TaskId, bytes]:
    """Return what `encode_snapshots` was given.

    Raises:
        ProtocolError: it is something else, or of another version of gearpy.
    """
    try:
        version, packed = _SNAPSHOTS.decode(data)
    except (msgspec.DecodeError, ValueError) as error:
        raise ProtocolError(f"malformed snapshots: {error}") from error
    if version != _SNAPSHOTS_VERSION:
        raise ProtocolError(f"snapshots of version {version}, expected {_SNAPSHOTS_VERSION}")
    return {TaskId.unpack(task): snapshot for task, snapshot in packed.items()}


class EpochCoordinator:
    """Ends epochs of one attempt of a region, one after the other.

    The next one begins to end an interval after the one before, or later if that took long.

    Invariant: an epoch is complete only when every executor of the attempt has stored it, and
    complete epochs come in order.
    """

    def __init__(
        self,
        *,
        region: int,
        attempt: int,
        epoch: int,
        executors: Iterable[ExecutorId],
        interval_ms: int,
        now_ms: int,
    ) -> None:
        self._region = region
        self._attempt = attempt
        self._executors = frozenset(executors)
        self._interval_ms = interval_ms
        self._epoch = epoch
        self._stored: dict[ExecutorId, SnapshotFile] = {}
        self._is_ending = False
        self._due_ms = now_ms + interval_ms
        self._announced_ms = now_ms
        self._clock_ms = MIN_MS

    @property
    def epoch(self) -> int:
        """The epoch that is open, or is being ended."""
        return self._epoch

    @property
    def stored(self) -> list[SnapshotFile]:
        """What some executors have stored for the epoch that is being ended."""
        return list(self._stored.values())

    def is_due(self, now_ms: int) -> bool:
        """Tell whether all sources are to be told now to end the epoch; again if that is slow."""
        return now_ms >= self._due_ms

    def begin(self, now_ms: int, *, clock_ms: int) -> int:
        """Return the epoch that ends now; ``clock_ms`` is how far the region is."""
        if not self._is_ending:
            self._is_ending = True
            self._clock_ms = clock_ms
        self._announced_ms = now_ms
        self._due_ms = now_ms + self._interval_ms * _REPEAT_FACTOR
        return self._epoch

    def awaits(self, message: EpochStored) -> bool:
        """Tell whether this belongs to the epoch that is being ended."""
        return (
            self._is_ending
            and (message.attempt, message.epoch) == (self._attempt, self._epoch)
            and message.executor_id in self._executors
        )

    def on_stored(self, message: EpochStored, now_ms: int) -> Manifest | None:
        """Note what an executor has stored; return the manifest when it was the last one."""
        if not self.awaits(message):
            return None
        self._stored[message.executor_id] = message.snapshot
        if len(self._stored) < len(self._executors):
            return None
        manifest = Manifest(
            region=self._region,
            epoch=self._epoch,
            attempt=self._attempt,
            clock_ms=self._clock_ms,
            snapshots=tuple(self._stored[each] for each in sorted(self._stored)),
        )
        self._go_on(now_ms)
        return manifest

    def _go_on(self, now_ms: int) -> None:
        took_ms = now_ms - self._announced_ms
        next_ms = self._announced_ms + self._interval_ms
        self._due_ms = max(next_ms, now_ms + _PAUSE_FACTOR * took_ms)
        self._epoch += 1
        self._stored = {}
        self._is_ending = False


class EpochHistory:
    """The complete epochs of one region: which is the newest, and which may be deleted.

    What a restart of the app master would go back to is the newest *stored* one; it and those
    that are newer are never deleted.
    """

    def __init__(self, *, retained: int, newest: Manifest | None = None) -> None:
        assert retained >= 1, retained
        self._retained = retained
        self._manifests: deque[Manifest] = deque([] if newest is None else [newest])
        self._stored_epoch = 0 if newest is None else newest.epoch

    @property
    def newest(self) -> Manifest | None:
        """What a restart goes back to; None: to the beginning."""
        return self._manifests[-1] if self._manifests else None

    @property
    def clock_ms(self) -> int:
        """How far the region was at the newest one."""
        return self._manifests[-1].clock_ms if self._manifests else MIN_MS

    def needs(self, file: SnapshotFile) -> bool:
        """Tell whether a restart may go back to what is in a file."""
        return any(
            file.location == kept.location for each in self._manifests for kept in each.snapshots
        )

    def on_complete(self, manifest: Manifest) -> None:
        """Add a complete epoch, newer than all before."""
        assert self.newest is None or manifest.epoch > self.newest.epoch, manifest.epoch
        self._manifests.append(manifest)

    def on_stored(self, epoch: int) -> list[SnapshotFile]:
        """Note that a manifest is stored durably; return the files that nobody needs any more."""
        self._stored_epoch = max(self._stored_epoch, epoch)
        stored = [each for each in self._manifests if each.epoch <= self._stored_epoch]
        surplus = stored[: -self._retained]
        for manifest in surplus:
            self._manifests.remove(manifest)
        return [file for manifest in surplus for file in manifest.snapshots]
