"""Recordings of what tasks took, by name: which of them lead from a stored epoch to another."""

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from gearpy.core.epoch.kept import BeforeFailure
from gearpy.errors import ConfigError
from gearpy.ids import TaskId

#: Below the name of an application in the checkpoint store.
RECORDED: Final = "recorded"
_NAME: Final = re.compile(
    r"task(\d+)\.(\d+)-epochs(\d+)-(\d+)-attempt(\d+)(-starts)?(-cut)?(-failed)?", re.ASCII
)


class RecordedName(Struct, frozen=True, kw_only=True):
    """The name of a recording: all that a task took from the first to the last of some epochs.

    Attributes:
        first, epoch: the epochs; more than one where others were given up.
        starts: the attempt begins with it.
        is_cut: the last messages are missing.
        has_failed: the task has failed at its end.
    """

    task: TaskId
    first: int
    epoch: int
    attempt: int
    starts: bool = False
    is_cut: bool = False
    has_failed: bool = False

    def __str__(self) -> str:
        flags = {"-starts": self.starts, "-cut": self.is_cut, "-failed": self.has_failed}
        return (
            f"task{self.task}-epochs{self.first}-{self.epoch}-attempt{self.attempt}"
            f"{''.join(flag for flag, is_set in flags.items() if is_set)}"
        )

    @classmethod
    def parse(cls, text: str) -> "RecordedName | None":
        found = _NAME.fullmatch(text.rpartition("/")[2])
        if found is None:
            return None
        processor, index, first, epoch, attempt = map(int, found.groups()[:5])
        return cls(
            task=TaskId(processor, index),
            first=first,
            epoch=epoch,
            attempt=attempt,
            starts=found[6] is not None,
            is_cut=found[7] is not None,
            has_failed=found[8] is not None,
        )


class RerunPath(Struct, frozen=True, kw_only=True):
    """The recordings to repeat: those that follow a stored epoch; 0: the beginning.

    None: those that follow what was repeated before.
    """

    after: int | None
    recorded: tuple[RecordedName, ...]


def rerun_path(
    recorded: Iterable[RecordedName],
    complete: Sequence[int],
    *,
    after: int | None = None,
    until: int | None = None,
) -> RerunPath:
    """Find recordings of a task that lead from a stored epoch up to a later one.

    Only recordings of one attempt go together. They begin with the newest stored epoch up to
    ``after``, and end in ``until``, or where the task failed last, or with the last. Raises
    `ConfigError` if there are none.
    """
    known = sorted(recorded, key=lambda each: (each.has_failed, each.epoch), reverse=True)
    starts = [0, *sorted(complete)]
    wanted = None if after is None else max(each for each in starts if each <= after)
    for end in known:
        if until is not None and not end.first <= until <= end.epoch:
            continue
        for start in [wanted] if wanted is not None else reversed(starts):
            of_attempt = sorted(
                (e for e in known if e.attempt == end.attempt and start < e.first <= end.first),
                key=lambda each: each.first,
            )
            if not of_attempt:
                continue
            head = of_attempt[0]
            base = max(each for each in starts if each < head.first)
            is_joined = head.first == start + 1 or (head.starts and base == start)
            pairs = itertools.pairwise(of_attempt)
            if is_joined and all(b.first == a.epoch + 1 for a, b in pairs):
                return RerunPath(after=start, recorded=tuple(of_attempt))
    if not known:
        raise ConfigError(
            "nothing of the input of this task is recorded: application.record-input-bytes says "
            "how much is kept of each epoch, from the next start on; where it is set, only some "
            "epochs are, unless application.record-input-epochs is 1: ask again in a moment"
        )
    stored = ", ".join(map(str, sorted(complete))) or "none"
    epochs = ", ".join(map(str, sorted(each.epoch for each in known)))
    behind = "" if after is None else f" behind epoch {after}"
    up_to = "" if until is None else f" up to epoch {until}"
    raise ConfigError(
        f"no recording leads{behind}{up_to} from a stored epoch: stored are {stored}; recorded is "
        f"the input of {epochs}; with application.record-input-epochs=1 it is that of all"
    )


def following(
    recorded: Iterable[RecordedName], complete: Sequence[int], at: RecordedName | None
) -> RerunPath | None:
    """Find the recordings behind one, or a new start where none leads on from it.

    Recordings that end with a failure are left out. Those that follow have no ``after``. None if
    there is nothing new; raises `ConfigError` if nothing is known and nothing is recorded.
    """
    known = [each for each in recorded if not each.has_failed]
    if at is None:
        return rerun_path(known, complete)
    newer = {
        each.first: each for each in known if each.attempt == at.attempt and each.first > at.epoch
    }
    chain: list[RecordedName] = []
    end = at.epoch
    while (each := newer.get(end + 1)) is not None:
        chain.append(each)
        end = each.epoch
    if chain:
        return RerunPath(after=None, recorded=tuple(chain))
    if not newer and all(each.attempt <= at.attempt for each in known):
        return None
    later = [each for each in known if (each.attempt, each.first) > (at.attempt, at.epoch)]
    try:
        return rerun_path(later, complete)
    except ConfigError:
        return None  # Its epoch is not stored yet.


def superfluous(
    names: Iterable[str], kept: Sequence[int], failure: BeforeFailure | None = None
) -> list[str]:
    """Return the names of recordings that lead from no epoch to another."""
    if not kept:
        return []
    parsed = ((name, RecordedName.parse(name)) for name in names)
    return [
        name
        for name, each in parsed
        if each is not None
        and each.epoch <= min(kept)
        and (failure is None or not failure.after < each.epoch <= failure.epoch)
    ]
