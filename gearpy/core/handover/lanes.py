"""Lanes of a window log: several read as one stream, and the one task that owns each.

Within a lane the times of batches only grow, but lanes are written by different tasks, and what
one has shown another may be about to show. So a lane that has nothing more holds the others back
until it has been silent for a while.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final, NamedTuple, Self

from gearpy.core.handover.ledger import given_up
from gearpy.core.handover.window_log import Position
from gearpy.errors import GearpyError, WindowLogDamaged
from gearpy.ids import MIN_MS


class LanePlace(NamedTuple):
    """The place of a reader in a lane.

    Attributes:
        seq: last batch that was read to its end.
        row: how many rows of the one behind it were read.
        watermark_ms: no later row of the lane is older.
    """

    seq: int = 0
    row: int = 0
    watermark_ms: int = MIN_MS


_BEGIN: Final = LanePlace()


class Lanes:
    """The progress of reading some lanes; the one that is furthest behind is read next.

    Invariant: `watermark_ms` never falls, and is above that of no lane that has something to give,
    but for one that was silent before.

    Args:
        until: nothing behind this is read; None: there is no end.
        idle_ms: a lane that has had nothing for so long holds no other back.
        up_to_now: more will follow behind the end, so a lane that has given something holds others
            back there, too.
    """

    def __init__(
        self,
        places: Mapping[str, LanePlace],
        *,
        watermark_ms: int = MIN_MS,
        until: Position | None = None,
        idle_ms: int = 0,
        up_to_now: bool = False,
    ) -> None:
        self.places = dict(places)
        self.watermark_ms = watermark_ms
        self._until = until
        self._idle_ms = idle_ms
        self._up_to_now = up_to_now
        self._given: set[str] = set()
        self._ends: dict[str, int] = {}
        self._silent_since_ms: dict[str, int] = {}

    @property
    def names(self) -> Iterable[str]:
        return self.places.keys() | self._ends.keys()

    @property
    def is_finished(self) -> bool:
        until = self._until
        return until is not None and all(self.of(name).seq >= until[name] for name in until)

    def of(self, lane: str) -> LanePlace:
        return self.places.get(lane, _BEGIN)

    def on_listing(self, starts: Position, ends: Position, *, now_ms: int) -> None:
        """Learn which batches there are."""
        for lane, end in ends.items():
            if self._until is not None and lane not in self._until:
                continue  # It has begun behind the end.
            if lane not in self.places:
                self.places[lane] = LanePlace(seq=starts.get(lane, 0))
            until = end if self._until is None else min(end, self._until[lane])
            self._ends[lane] = max(until, self._ends.get(lane, 0))
            self._note_silence(lane, now_ms)
        self._promise(now_ms)

    def next(self) -> str | None:
        waiting = [(self.of(lane), lane) for lane in self._ends if self._has_more(lane)]
        if not waiting:
            return None
        return min(waiting, key=lambda each: (not each[0].row, each[0].watermark_ms, each[1]))[1]

    def on_rows(self, lane: str, count: int) -> None:
        place = self.of(lane)
        self.places[lane] = place._replace(row=place.row + count)

    def on_batch(self, lane: str, watermark_ms: int, *, now_ms: int) -> None:
        place = self.of(lane)
        self._given.add(lane)
        self.places[lane] = LanePlace(place.seq + 1, 0, max(place.watermark_ms, watermark_ms))
        self._note_silence(lane, now_ms)
        self._promise(now_ms)

    def is_idle(self, now_ms: int) -> bool:
        return not any(self._holds(lane, now_ms) for lane in self._ends)

    def _has_more(self, lane: str) -> bool:
        return self._ends.get(lane, 0) > self.of(lane).seq

    def _note_silence(self, lane: str, now_ms: int) -> None:
        if self._has_more(lane):
            self._silent_since_ms.pop(lane, None)
        else:
            self._silent_since_ms.setdefault(lane, now_ms)

    def _holds(self, lane: str, now_ms: int) -> bool:
        if self._has_more(lane):
            return True
        if self._until is not None:  # It has ended.
            return self._up_to_now and lane in self._given
        return now_ms - self._silent_since_ms.get(lane, now_ms) < self._idle_ms

    def _promise(self, now_ms: int) -> None:
        holding = [self.of(lane).watermark_ms for lane in self._ends if self._holds(lane, now_ms)]
        everything = [place.watermark_ms for place in self.places.values()]
        promised_ms = min(holding) if holding else max(everything, default=MIN_MS)
        self.watermark_ms = max(self.watermark_ms, promised_ms)


_FORMER_MAX: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneOwner:
    """The owner of a lane, the content of its file: one start of one task of one run at a time.

    In a run the later start counts. Between runs the one that came last counts, and one that had to
    give the lane away never gets it back: its windows may be in the log, written by its successor.

    Attributes:
        former: runs that had the lane before, the last ones.
        since: the first batch that the run may have written; 0 as long as nobody knows.
        id: of the lane, which is another when its folder was made anew.
    """

    run: str
    incarnation: int
    former: tuple[str, ...] = ()
    since: int = 0
    id: str = ""

    @classmethod
    def parse(cls, text: bytes | None, *, file: str) -> Self | None:
        """Return the owner that a file names; None if there is none."""
        if text is None:
            return None
        try:
            found = json.loads(text)
            return cls(
                run=str(found["run"]),
                incarnation=int(found["incarnation"]),
                former=tuple(found["former"]),
                since=int(found["since"]),
                id=str(found["id"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise WindowLogDamaged(
                file=file, reason=f"it names no owner: {error!r:.200}"
            ) from error

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def succeeds(self, before: "LaneOwner | None", *, lane: str) -> "LaneOwner":
        """Return the owner to write down when this one begins."""
        if before is None:
            return self
        if before.run == self.run:
            if before.incarnation >= self.incarnation:
                raise given_up(f"lane {lane}", owner=before.incarnation, mine=self.incarnation)
            return replace(before, incarnation=self.incarnation)
        if self.run in before.former:
            raise GearpyError(
                f"lane {lane} was taken over by run {before.run}: run {self.run} may not write it "
                "any more; begin a new run, or give it another writer name"
            )
        return replace(self, id=before.id, former=(*before.former, before.run)[-_FORMER_MAX:])

    def still_owns(self, found: "LaneOwner", *, writer: str) -> bool:
        """Tell whether the file names this owner; False: an earlier start of its run by mistake."""
        if found == self:
            return True
        if found.run == self.run and found.incarnation < self.incarnation:
            return False
        mine = self.incarnation
        raise given_up(writer, owner=found.incarnation, mine=mine, run=self.run, by=found.run)
