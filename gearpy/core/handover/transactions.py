"""The transactions by which a task commits its epochs, and the marker that each one leaves.

The marker is the task's entry of the ledger. The store fences by a name and takes nothing back, so
beside what `ledger` decides there are two more reasons to refuse: see `Refuse`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from gearpy.core.base.pauses import pause_after
from gearpy.core.handover.handoff import Pause
from gearpy.core.handover.ledger import LATEST, LedgerClaim, LedgerEntry

if TYPE_CHECKING:
    from random import Random

_PAUSE_MS: Final = 100
_PAUSE_MAX_MS: Final = 5_000

_Phase: TypeAlias = Literal["closed", "open", "ready"]


class EpochMarker(NamedTuple):
    """The entry of the ledger that a transaction leaves, and a random word of the start that wrote.

    By the word a run is told from a copy of its checkpoint, which counts incarnations alike.
    """

    owner: int
    committed: int
    start: str = ""


@dataclass(frozen=True, slots=True)
class Open:
    """Fence earlier owners of the name, and settle their open transactions; then `on_opened`."""


@dataclass(frozen=True, slots=True)
class ReadMarker:
    """Read the newest marker; then `EpochTransactions.on_marker`."""


@dataclass(frozen=True, slots=True)
class Write:
    """Write the records of an epoch and the marker in one transaction; None: the marker alone."""

    epoch: int | None
    marker: EpochMarker


@dataclass(frozen=True, slots=True)
class Refuse:
    """Writing on would be wrong.

    "given-up": a later start has the name, or another run that goes on from the same checkpoint.
    "ahead": later epochs were committed. "forgotten": the marker is gone, so that nobody can tell
    which were.
    """

    because: Literal["given-up", "ahead", "forgotten"]
    marker: EpochMarker


Step: TypeAlias = Open | ReadMarker | Write | Pause | Refuse


class EpochTransactions:
    """Decides the steps of a task to commit each complete epoch once, one transaction for each.

    Opening a name fences all tasks that had it before and settles their transactions. Any failure
    is answered alike: open, read the marker, write the epochs that it lacks. A start that was
    fenced by an earlier one opens again; one that finds a greater incarnation, or another start of
    its own, gives up.

    Ask `next` what to do, do it, tell what came of it, and ask again. ``is_over``: the name is of
    an earlier run, of which nothing new comes; it may have gone on. ``waiting`` are epochs that may
    not be committed.

    Invariant: an epoch is written only when a marker, read since the name was opened, is older.
    """

    def __init__(
        self,
        *,
        incarnation: int,
        epoch: int,
        written: int = 0,
        waiting: Iterable[int] = (),
        start: str = "",
        is_over: bool = False,
        rng: "Random",
    ) -> None:
        self._claim = LedgerClaim(incarnation, LATEST)  # Nothing that was committed vanishes.
        self._since = epoch
        self._found = LedgerEntry()
        self._start = start
        self._newest = epoch
        self._is_over = is_over
        self._rng = rng
        self.waiting = sorted(waiting)
        self.written = written  #: The newest epoch that is known to be shown.
        self._phase: _Phase = "closed"
        self._has_claimed = False
        self._refused: Refuse | None = None
        self._failures = 0
        self._resume_ms: int | None = None

    @property
    def is_settled(self) -> bool:
        return self._found.owner == self._claim.owner and not self.waiting

    def next(self, now_ms: int) -> Step:
        if self._refused is not None:
            return self._refused
        if self._resume_ms is not None and now_ms < self._resume_ms:
            return Pause(self._resume_ms)
        if self._phase != "ready":
            return Open() if self._phase == "closed" else ReadMarker()
        epoch = self.waiting[0] if self.waiting else None
        step = self._claim.step(self._found, epoch=epoch)
        return Pause(None) if step is None else Write(epoch, EpochMarker(*step.entry, self._start))

    def on_complete(self, epoch: int) -> None:
        assert epoch > self._newest, (epoch, self._newest)
        self._newest = epoch
        self.waiting.append(epoch)

    def on_opened(self) -> None:
        assert self._phase == "closed", self._phase
        self._phase = "open"

    def on_marker(self, marker: EpochMarker | None) -> None:
        """Take the newest marker; None if there was none ever."""
        assert self._phase == "open", self._phase
        found = marker or EpochMarker(0, 0)
        is_alike = found.owner == self._claim.owner
        is_mine = is_alike and found.start == self._start
        is_other = is_alike and not (is_mine or self._is_over)
        was_claimed, self._has_claimed = self._has_claimed, self._has_claimed or is_mine
        # No marker can be newer, before and after this start has written its own.
        newest = self._newest if self._has_claimed else self._since
        if found.owner > self._claim.owner or (is_other and was_claimed):
            self._refused = Refuse("given-up", found)
        elif found.committed > newest and not self._is_over:
            self._refused = Refuse("ahead", found)
        elif found.committed < self.written and self.waiting:
            self._refused = Refuse("forgotten", found)
        self.written = max(self.written, found.committed)
        self.waiting = [epoch for epoch in self.waiting if epoch > self.written]
        self._found = LedgerEntry(self._claim.owner if is_mine else 0, self.written)
        self._phase = "ready"

    def on_written(self, done: Write) -> None:
        assert self._phase == "ready", self._phase
        if done.epoch is not None:
            self.written = self.waiting.pop(0)
            assert self.written == done.epoch, (self.written, done)
        self._has_claimed = True
        self._found = LedgerEntry(done.marker.owner, done.marker.committed)
        self._failures, self._resume_ms = 0, None

    def on_failed(self, now_ms: int) -> None:
        """Note that a step has failed; a transaction may be committed, aborted, or open."""
        self._phase = "closed"
        self._failures += 1
        pause_ms = pause_after(self._failures, _PAUSE_MS, _PAUSE_MAX_MS, self._rng)
        self._resume_ms = now_ms + pause_ms
