"""The next batch of finished windows to hand over, and the notes that are written around that."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from gearpy.core.base.pauses import pause_after
from gearpy.errors import GearpyError

if TYPE_CHECKING:
    from random import Random

_Phase: TypeAlias = Literal["idle", "chosen", "intended", "delivered"]


class Admission(Protocol):
    """A readable log: a `gearpy.core.handover.window_log.LogView`."""

    def advance(self, start: Mapping[str, int], *, max_rows: int | None = None) -> dict[str, int]:
        """Return how far a batch reaches that begins behind ``start``."""
        ...

    def rows_between(self, start: Mapping[str, int], end: Mapping[str, int]) -> int: ...

    def start(self) -> dict[str, int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffLimits:
    """The size of one handover, and the time that troubles may last.

    Attributes:
        batch_rows: of one call, unless a single piece of the log has more.
        attempts: calls of the function with one batch, when it raises.
        outage_ms: Spark may be away, or end in the middle of calls, for so long.
    """

    batch_rows: int = 1_000_000
    attempts: int = 5
    pause_ms: int = 500
    pause_max_ms: int = 30_000
    outage_ms: int = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffBatch:
    """All that lies between two positions of a log, and the number it was given.

    ``start`` and ``end`` have the last number that was read, by lane; a lane that is missing
    was read up to 0.
    """

    batch_id: int
    start: Mapping[str, int]
    end: Mapping[str, int]
    rows: int


@dataclass(frozen=True, slots=True)
class Connect:
    """Get a session."""


@dataclass(frozen=True, slots=True)
class WriteIntent:
    """Make durable that this batch has this number; then `Handoff.on_intent_written`."""

    batch: HandoffBatch


@dataclass(frozen=True, slots=True)
class Call:
    """Call the function with the batch.

    ``attempt`` is 1 if nobody can have called it with this batch before.
    """

    batch: HandoffBatch
    attempt: int


@dataclass(frozen=True, slots=True)
class WriteDone:
    """Make durable that the batch was taken; then `Handoff.on_done_written`."""

    batch: HandoffBatch


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait until this time; with None, until a new batch is shown."""

    until_ms: int | None


@dataclass(frozen=True, slots=True)
class GiveUpBatch:
    """The function has raised too often, or Spark was away for too long."""

    because: Literal["function", "spark"]


Step: TypeAlias = Connect | WriteIntent | Call | WriteDone | Pause | GiveUpBatch


class Handoff:
    """Hands over one batch after the other: each is written down before the call, and after it.

    Whatever ends in the middle, the next one to begin calls with the same batch again. Each batch
    begins where the one before has ended. Ask `next`, do it, tell what came of it, and ask again.
    """

    def __init__(
        self,
        limits: HandoffLimits,
        *,
        done: HandoffBatch | None,
        intended: HandoffBatch | None,
        begin: Mapping[str, int] | None = None,
        rng: "Random",
    ) -> None:
        self._limits = limits
        self._rng = rng
        self.done_id = 0 if done is None else done.batch_id  #: The newest batch that was taken.
        #: Its end; None: of the first batch to come it is not settled where it begins.
        begin = begin if done is None else done.end
        self.position: dict[str, int] | None = None if begin is None else _known(begin)
        self._phase: _Phase = "idle"
        self._batch: HandoffBatch | None = None
        self._attempt = 0
        self._failures = 0  # The function has failed so often with this batch.
        self._losses = 0  # Spark was lost so often since a batch was taken.
        self._trouble_ms: int | None = None  # When Spark was there last.
        self._resume_ms: int | None = None
        self._is_connected = False
        self._gave_up: GiveUpBatch | None = None
        if intended is not None and intended.batch_id > self.done_id:
            start = _known(intended.start)
            if intended.batch_id != self.done_id + 1 or (self.position or start) != start:
                raise GearpyError(
                    f"batch {intended.batch_id} was begun at {start}, but batch "
                    f"{self.done_id}, the last one taken, ends at {self.position}: what was "
                    "written down about batches is damaged, or two sinks of one name write it"
                )
            self._batch, self._phase, self._attempt = intended, "intended", 1

    @property
    def is_idle(self) -> bool:
        return self._phase == "idle"

    @property
    def reached(self) -> Mapping[str, int]:
        """The last numbers that any batch has, taken or begun: so much there must be."""
        return (self.position or {}) if self._batch is None else self._batch.end

    @property
    def was_called(self) -> bool:
        return self._phase == "delivered"

    def next(self, log: Admission, now_ms: int) -> Step:
        if self._gave_up is not None:
            return self._gave_up
        if self._phase == "delivered":  # First of all, and without Spark.
            return WriteDone(self._begun)
        if self._phase == "idle":
            # Take everything that is there, as far as it may be one batch.
            start = _known(log.start()) if self.position is None else self.position
            end = _known(log.advance(start, max_rows=self._limits.batch_rows))
            if end != start:
                rows = log.rows_between(start, end)
                self._batch = HandoffBatch(
                    batch_id=self.done_id + 1, start=start, end=end, rows=rows
                )
                self._phase = "chosen"
                self._trouble_ms = None  # How long Spark was away before that is nobody's trouble.
        if self._resume_ms is not None and now_ms < self._resume_ms:
            return Pause(self._resume_ms)
        if not self._is_connected:
            return Connect()
        if self._phase == "chosen":
            return WriteIntent(self._begun)
        return Pause(None) if self._phase == "idle" else Call(self._begun, self._attempt + 1)

    def on_connected(self) -> None:
        self._is_connected, self._resume_ms = True, None
        if self._phase == "chosen":  # Choose anew: what has come meanwhile is part of it.
            self._batch, self._phase = None, "idle"
        if self._batch is None:  # A batch may end it again in the same call.
            self._forget_troubles()

    def on_spark_lost(self, now_ms: int) -> None:
        """Note that there is no session, or not any more; an open call may have happened."""
        if self._phase == "intended" and self._is_connected:
            self._attempt += 1
        self._is_connected = False
        self._losses += 1
        if self._trouble_ms is None:
            self._trouble_ms = now_ms
        is_long = now_ms - self._trouble_ms >= self._limits.outage_ms
        if is_long and self._batch is not None:  # Nobody misses it without a batch.
            self._gave_up = GiveUpBatch("spark")
        else:
            self._resume_ms = now_ms + self._pause_ms(self._losses)

    def on_intent_written(self) -> None:
        assert self._phase == "chosen", self._phase
        self._phase = "intended"

    def on_called(self) -> None:
        assert self._phase == "intended", self._phase
        self._phase = "delivered"
        self._forget_troubles()

    def on_call_failed(self, now_ms: int) -> None:
        assert self._phase == "intended", self._phase
        self._attempt += 1
        self._failures += 1
        if self._failures >= self._limits.attempts:
            self._gave_up = GiveUpBatch("function")
        else:
            self._resume_ms = now_ms + self._pause_ms(self._failures)

    def on_call_void(self) -> None:
        assert self._phase == "intended", self._phase
        self._attempt += 1

    def on_done_written(self) -> None:
        assert self._phase == "delivered", self._phase
        batch = self._begun
        self.done_id, self.position = batch.batch_id, _known(batch.end)
        self._batch, self._phase, self._attempt = None, "idle", 0

    @property
    def _begun(self) -> HandoffBatch:
        assert self._batch is not None, "no batch was chosen"
        return self._batch

    def _forget_troubles(self) -> None:
        self._failures = self._losses = 0
        self._trouble_ms = self._resume_ms = None

    def _pause_ms(self, failures: int) -> int:
        limits = self._limits
        return pause_after(failures, limits.pause_ms, limits.pause_max_ms, self._rng)


def _known(position: Mapping[str, int]) -> dict[str, int]:
    return {lane: last for lane, last in position.items() if last > 0}


@dataclass(slots=True)
class Pressure:
    """Whether the stream has to wait: too many rows were committed and not handed over.

    Once it waits, it does so until half of them are handed over.

    Invariant: it never waits while nothing is left to hand over.
    """

    rows_max: int
    waiting_rows: int = field(default=0, init=False)  #: Shown and not handed over.
    is_full: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        assert self.rows_max > 0, self.rows_max

    def on_waiting(self, rows: int) -> bool:
        """Take how many wait now; tell whether the stream may go on that had to wait before."""
        was_full, self.waiting_rows = self.is_full, rows
        limit = self.rows_max // 2 + 1 if was_full else self.rows_max
        self.is_full = rows >= limit
        return was_full and not self.is_full
