"""The search for an input that ends the processes that work on it.

A record that makes a library crash is read again after each restart, and kills again. When two
processes have died while the sources stood at the same places, they read a few records at a time:
then an epoch ends, and more is read only when that is complete. So the epoch to go back to says
how far the input is harmless, also where the process that dies is not the one that reads. Fewer are
read after each death, one at last; where several partitions have a next record, half of them are
read at a time. What kills alone is left out.
"""

from collections.abc import Collection, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from gearpy.ids import TaskId
from gearpy.messages.app import LeftOut, SourceProbe

#: A partition of a source, and the task that reads it.
Part: TypeAlias = tuple[TaskId, str]
#: The choice after a death: restart as always; restart to search, at no cost; give up.
Verdict: TypeAlias = Literal["restart", "search", "stop"]

#: Records that a source reads in an epoch, from the first search on.
_SIZES: Final = (1024, 128, 16, 1)
#: Epochs of that size, enough to pass what an epoch of the size before had; then it doubles with
#: every second one, until the place is surely passed.
_EPOCHS: Final = 20
_SIZE_MAX: Final = 1 << 20
#: Epochs, and the time, in which a partition that has a next record surely has given it.
_GIVEN_EPOCHS: Final = 3
_GIVEN_MS: Final = 10_000
#: So soon after a start, and behind one epoch at most, a second death is of the same cause.
_SOON_MS: Final = 10_000
#: Deaths until it is left: where they do not depend on what is read, no search ends.
_DEATHS_MAX: Final = 60


def quota(size: int, epochs: int) -> int | None:
    if epochs == 0:
        return 0  # Tasks that die of their state do so before anything is read.
    grown = size << max(0, epochs - _EPOCHS + 1) // 2
    return grown if grown <= _SIZE_MAX else None


class _Search(Struct, frozen=True, kw_only=True):
    """The way in which sources read.

    ``candidates``: one of them has the record; ``allowed`` are read. ``leaves_out`` of the one.
    """

    size: int = 1
    candidates: tuple[Part, ...] = ()
    allowed: tuple[Part, ...] = ()
    leaves_out: LeftOut = ""


class Probing:
    """Finds the record, and says what sources are to read.

    Invariant: only that is left out which was the only one read when a process died, twice, and
    before it was read the tasks had lived long enough to store an epoch.
    """

    def __init__(self, *, steps_over: bool) -> None:
        self._steps_over = steps_over
        self._search: _Search | None = None
        self._place: Mapping[Part, bytes] | None = None  # The last death, or the search, was there.
        self._deaths = 0
        self._begun_ms = 0
        self.cause = ""  #: It tells of the last death.
        self.why_stopped = ""  #: Why no search helps; empty if none was to be made.

    @property
    def is_searching(self) -> bool:
        return self._search is not None

    def is_slow(self, epochs: int) -> bool:
        return self._search is not None and epochs < _EPOCHS

    @property
    def text(self) -> str:
        search = self._search
        if search is None:
            return ""
        if search.leaves_out:
            ((_, name),) = search.allowed
            what = {"record": "the next record", "block": "the next block", "file": "the rest"}
            return f"{what[search.leaves_out]} of {name} is left out"
        if search.allowed:
            return f"to find the record, {len(search.allowed)} of the partitions are read"
        return f"to find the record, sources read {search.size} at a time"

    def on_death(
        self, place: Mapping[Part, bytes], epochs: int, cause: str, now_ms: int, lived_ms: int
    ) -> Verdict:
        """Decide what follows when a process has died by itself."""
        self.cause = cause
        search, self._begun_ms = self._search, now_ms
        if search is None:
            # Sources begin with a few records, so that an epoch may come before the same record.
            is_same = place == self._place or (epochs <= 1 and lived_ms <= _SOON_MS)
            self._deaths = self._deaths + 1 if is_same and self._deaths else 1
            self._place = place
            if self._deaths == 1:
                return "restart"
            self._search = _Search(size=_SIZES[0]) if self._steps_over else None
        else:
            self._deaths += 1
            self._search = self._narrowed(search, place, epochs)
            self._place = place
            if self._deaths > _DEATHS_MAX:
                self._search = None
                self.why_stopped = "when it dies does not depend on what is read"
        return "stop" if self._search is None else "search"

    def goes_on(self) -> bool:
        self._deaths += self.is_searching
        return self.is_searching and self._deaths <= _DEATHS_MAX

    def on_epoch(self, place: Mapping[Part, bytes], epochs: int, now_ms: int) -> bool:
        """Note a complete epoch; tell whether the tasks are to begin again, to read otherwise."""
        search = self._search
        if search is None:
            return False
        before = self._place or {}
        are_given = all(place.get(each) != before.get(each) for each in search.allowed)
        if search.leaves_out:
            if are_given:
                self._search, self._deaths = _Search(), 0
            return are_given
        if not search.allowed:
            if quota(search.size, epochs) is None:
                self._search, self._place, self._deaths = None, None, 0
            return False
        is_long = epochs >= _GIVEN_EPOCHS and now_ms - self._begun_ms >= _GIVEN_MS
        if epochs < 2 or not (are_given or is_long):  # noqa: PLR2004 - the first one is empty
            return False
        left = [each for each in search.candidates if each not in search.allowed and each in place]
        self._search, self._place, self._begun_ms = _Search(), place, now_ms
        if left:
            self._search = _Search(
                candidates=tuple(left), allowed=tuple(left[: (len(left) + 1) // 2])
            )
        return True

    def orders(self, sources: Collection[TaskId]) -> tuple[SourceProbe, ...]:
        search = self._search
        if search is None:
            return ()
        probes = []
        for task in sorted(sources):
            mine = tuple(name for of, name in search.allowed if of == task)
            probes.append(
                SourceProbe(
                    task_id=task,
                    records=search.size,
                    partitions=mine if search.allowed else None,
                    leaves_out=search.leaves_out if mine else "",
                    cause=self.cause,
                )
            )
        return tuple(probes)

    def _narrowed(
        self, search: _Search, place: Mapping[Part, bytes], epochs: int
    ) -> _Search | None:
        """Return how to go on behind one more death; None: that does not help."""
        size = quota(search.size, epochs)
        if search.leaves_out:  # The process dies although it only reads it.
            wider: dict[LeftOut, LeftOut] = {"record": "block", "block": "file"}
            if search.leaves_out in wider:
                return replace(search, leaves_out=wider[search.leaves_out])
            self.why_stopped = f"it dies also when the rest of {search.allowed[0][1]} is left out"
        elif size == 0:
            self.why_stopped = "it dies before anything more is read, of what was read before"
        elif len(search.allowed) == 1:
            return replace(search, leaves_out="record")
        elif not search.allowed and size != 1:
            return _Search(size=next(each for each in _SIZES if size is None or each < size))
        else:
            candidates = [each for each in search.allowed or sorted(place) if each in place]
            return _Search(
                candidates=tuple(candidates),
                allowed=tuple(candidates[: (len(candidates) + 1) // 2]),
            )
        return None
