"""The owner of a lane of a window log: one start of one task of one run at a time.

In a run the later start counts. Between runs the one that came last counts, and one that had to
give the lane away never gets it back: its windows may be in the log, written by its successor.
"""

import json
from dataclasses import asdict, dataclass, replace
from typing import Final, Literal, Self, TypeAlias

from gearpy.errors import GearpyError, WindowLogDamaged

#: ``overwritten``: an earlier start of the same run has put its name over ours, and must go.
Standing: TypeAlias = Literal["owner", "overwritten", "given up"]

_FORMER_MAX: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneOwner:
    """The content of the file of a lane.

    Attributes:
        run: as in names of files.
        incarnation: of the task.
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
        """Return the owner that a file names; None if there is none.

        Raises:
            WindowLogDamaged: it is nothing of that kind.
        """
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
        """Return the text that `parse` reads."""
        return json.dumps(asdict(self)).encode()

    def succeeds(self, before: "LaneOwner | None", *, lane: str) -> "LaneOwner":
        """Return the owner to write down when this one begins.

        Raises:
            GearpyError: it was given up before it began.
        """
        if before is None:
            return self
        if before.run == self.run:
            if before.incarnation >= self.incarnation:
                raise GearpyError(
                    f"lane {lane} is written by start {before.incarnation} of this task: this is "
                    f"start {self.incarnation}, which was given up"
                )
            return replace(before, incarnation=self.incarnation)
        if self.run in before.former:
            raise GearpyError(
                f"lane {lane} was taken over by run {before.run}: run {self.run} may not write it "
                "any more; begin a new run, or give it another writer name"
            )
        return replace(self, id=before.id, former=(*before.former, before.run)[-_FORMER_MAX:])

    def standing(self, found: "LaneOwner | None") -> Standing:
        """Return whether this owner may go on, given the owner in the file."""
        if found == self:
            return "owner"
        is_earlier = (
            found is not None and found.run == self.run and found.incarnation < self.incarnation
        )
        return "overwritten" if is_earlier else "given up"
