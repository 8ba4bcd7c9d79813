"""Checkpoints at event times: when they are taken, and what belongs to them.

A checkpoint at a time holds all records older than that, and no other. Every task must use the
same times, also one that has no records; so they are chosen in one place, and agreed upon before
any task has got there. Gearpump: `CheckpointManager`, where each task chooses by what it has seen.
"""

from bisect import bisect_right
from typing import Protocol

from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS

__all__ = ["CheckpointManager", "CheckpointStore", "CheckpointTimes", "InMemoryCheckpointStore"]


class CheckpointStore(Protocol):
    """Keeps the checkpoints of one task. Gearpump: `CheckpointStore`."""

    def persist(self, time_ms: int, data: bytes) -> None:
        """Keep a checkpoint; it is safe when this returns."""
        ...

    def recover(self, time_ms: int) -> bytes | None:
        """Return the checkpoint of exactly this time; None if there is none."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


class InMemoryCheckpointStore:
    """Keeps checkpoints for tests. Gearpump: `InMemoryCheckpointStore`."""

    def __init__(self) -> None:
        self._kept: dict[int, bytes] = {}

    def persist(self, time_ms: int, data: bytes) -> None:
        """Keep a checkpoint."""
        self._kept[time_ms] = data

    def recover(self, time_ms: int) -> bytes | None:
        """Return the checkpoint of exactly this time."""
        return self._kept.get(time_ms)

    def close(self) -> None:
        """Nothing to release."""


class CheckpointTimes:
    """Chooses the event times of checkpoints, one after the other.

    They are multiples of an interval. It grows where sources give records further ahead of their
    promises than it is long: before one cut is complete they would be past the next.

    Invariant: the times rise, each is a multiple of the interval that was given (or the end of
    time), and later than every record that was reported before it was chosen.

    Args:
        interval_ms: between two times, at least.

    Raises:
        ConfigError: it is no more than 0.
    """

    def __init__(self, interval_ms: int) -> None:
        if interval_ms <= 0:
            raise ConfigError(f"checkpoint interval is {interval_ms} ms, must be more than 0")
        self._least_ms = interval_ms
        self._last_ms = MIN_MS
        self.newest_ms = MIN_MS  #: Newest record that was reported.
        self.span_ms = 0  #: How far a source was ahead of its promise at most.

    @property
    def interval_ms(self) -> int:
        """Between two times, as things are: longer than the largest span."""
        return (self.span_ms // self._least_ms + 1) * self._least_ms

    def on_report(self, *, newest_ms: int, span_ms: int = 0) -> None:
        """Learn what a source or a task has come to; see `TaskClock`."""
        self.newest_ms = max(self.newest_ms, newest_ms)
        self.span_ms = max(self.span_ms, span_ms)

    def choose(self) -> int | None:
        """Return the next time; None as long as there is no later record than the last time."""
        if self.newest_ms == MIN_MS or self.newest_ms < self._last_ms:
            return None
        interval_ms = self.interval_ms
        next_ms = min((self.newest_ms // interval_ms + 1) * interval_ms, MAX_MS)
        self.pass_over(next_ms)
        return next_ms

    def pass_over(self, time_ms: int) -> None:
        """Choose later times only."""
        self._last_ms = max(self._last_ms, time_ms)


class CheckpointManager:
    """The checkpoints of one task by event time. Gearpump: `CheckpointManager`.

    It numbers the pieces of time between them, as epochs are numbered, for a `PersistentState`:
    with every record ``update``, then ``state.enter(epoch_of(time))``; and when a checkpoint is
    due, ``checkpoint(time, state.checkpoint())``.

    Invariant: a record has a number up to ``epoch`` only if it is older than the next checkpoint
    time, or there is none.

    Args:
        interval_ms: the manager chooses the times itself, by the records of its task; None: they
            are given to `agree`, the same to all tasks.
        store: where checkpoints go.
    """

    def __init__(self, interval_ms: int | None, store: CheckpointStore) -> None:
        self.epoch = 1  #: Number of the next checkpoint.
        self._times = None if interval_ms is None else CheckpointTimes(interval_ms)
        self._store = store
        self._next: list[int] = []  # Times of checkpoints to come, in order.
        self._newest_ms = MIN_MS
        self._last_ms = MIN_MS

    @property
    def checkpoint_time_ms(self) -> int | None:
        """When the next checkpoint is taken; None as long as it is not known."""
        return self._next[0] if self._next else None

    @property
    def newest_ms(self) -> int:
        """Event time of the newest record. Gearpump: `getMaxMessageTime`."""
        return self._newest_ms

    def recover(self, time_ms: int) -> bytes | None:
        """Return the checkpoint that was taken at a time, and go on from there."""
        self._pass(time_ms)
        return self._store.recover(time_ms)

    def update(self, timestamp_ms: int, *, span_ms: int = 0) -> int | None:
        """Take the event time of a record; return the time of the next checkpoint, if known.

        Args:
            timestamp_ms: of the record.
            span_ms: how far it is ahead of the watermark.
        """
        self._newest_ms = max(self._newest_ms, timestamp_ms)
        if self._times is not None:
            self._times.on_report(newest_ms=timestamp_ms, span_ms=span_ms)
            if not self._next:
                self._choose()
        return self.checkpoint_time_ms

    def agree(self, time_ms: int) -> bool:
        """Take the time of a checkpoint that all tasks take; may be told again.

        Returns:
            False if it comes too late: a record that is not older was counted as if it were, or
            there is a checkpoint at a later time. Then nothing has changed.
        """
        assert self._times is None, "the times of this manager are its own"
        if time_ms in self._next:
            return True
        if time_ms <= max(self._newest_ms, self._last_ms, *self._next):
            return False
        self._next.append(time_ms)
        return True

    def epoch_of(self, timestamp_ms: int) -> int:
        """Return the number of the checkpoint that a record belongs to."""
        return self.epoch + bisect_right(self._next, timestamp_ms)

    def should_checkpoint(self, watermark_ms: int) -> bool:
        """Tell whether all records of the next checkpoint have come."""
        return bool(self._next) and watermark_ms >= self._next[0]

    def checkpoint(self, time_ms: int, data: bytes) -> int | None:
        """Store a checkpoint that is due; return the time of the next one, if known."""
        assert time_ms == self.checkpoint_time_ms, (time_ms, self.checkpoint_time_ms)
        self._store.persist(time_ms, data)
        del self._next[0]
        self._pass(time_ms)
        self.epoch += 1
        if not self._next:
            self._choose()
        return self.checkpoint_time_ms

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def _choose(self) -> None:
        chosen = None if self._times is None else self._times.choose()
        if chosen is not None:
            self._next.append(chosen)

    def _pass(self, time_ms: int) -> None:
        self._last_ms = max(self._last_ms, time_ms)
        if self._times is not None:
            self._times.pass_over(time_ms)
