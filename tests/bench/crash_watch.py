"""What benches share that strike a cluster at chosen moments: how they wait, note and report.

The moment of a blow, and whom it hits, each bench decides by itself.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from gearpy.core.master.registry import TERMINAL
from gearpy.errors import GearpyError
from gearpy.ids import AppId
from tests.bench import numbered
from tests.bench.faults import Faults
from tests.bench.process_cluster import ProcessCluster

__all__ = ["LOOK_S", "CrashReport", "CrashWatch", "EpochSigns", "Struck"]

#: What was struck and how, and when that was: each bench has words of its own.
KindT = TypeVar("KindT", bound=str)
PhaseT = TypeVar("PhaseT", bound=str)

LOOK_S: Final = 0.05
_POLL_S: Final = 0.001
_LONG_POLL_S: Final = 0.005
_LONG_S: Final = 5.0  # What takes longer than this is not over in a moment.


class Struck(NamedTuple, Generic[KindT, PhaseT]):
    """A blow: when, what, in which phase, and how long until an epoch was shown again.

    Files show the phase, also right after the blow. The time to recover is None for a blow whose
    recovery was interrupted, or not measured.
    """

    at_s: float
    kind: KindT
    phase: PhaseT
    recovered_s: float | None = None


@dataclass(slots=True)
class CrashReport(Generic[KindT, PhaseT]):
    """What was done, and what came out; each bench adds what it has found in the results."""

    struck: list[Struck[KindT, PhaseT]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    status: str = ""
    seconds: float = 0.0
    end: int = 0
    epochs: int = 0
    restarts: int = 0

    @property
    def has_ended_well(self) -> bool:
        """Whether the application has come to its end, and nothing else was amiss."""
        return self.status == "succeeded" and not self.problems

    def table(
        self,
        title: str,
        kinds: Sequence[KindT],
        phases: Sequence[PhaseT],
        *,
        title_chars: int,
        cell_chars: int,
    ) -> Iterator[str]:
        """Yield a table for people: how often each kind was struck in each phase."""
        counts = Counter((each.kind, each.phase) for each in self.struck)
        heads = "".join(f"{phase:>{cell_chars}}" for phase in phases)
        yield f"{title:{title_chars}}{heads}{'all':>6}"
        for kind in kinds:
            row = [counts[kind, phase] for phase in phases]
            cells = "".join(f"{n:{cell_chars}}" for n in row)
            yield f"{kind:{title_chars}}{cells}{sum(row):6}"


class EpochSigns(Protocol):
    """What of epochs can be seen from outside."""

    def stored(self) -> int:
        """Return the newest epoch that an executor has stored; 0 if there is none."""
        ...

    def newest_shown(self) -> int:
        """Return the newest epoch of which something is shown; 0 if there is none."""
        ...


class CrashWatch(Generic[KindT, PhaseT]):
    """Watches an application whose cluster is struck, and mends the cluster meanwhile.

    Args:
        cluster: it.
        app_id: of the application.
        results: its folder, where the end of its stream is set.
        signs: of its epochs.
        faults: mends what is due.
        report: learns what was done, and what is amiss.
        say: told of each blow.
        healthy_s: an application of which nothing comes for so long does not recover.
        began_s: when the run began.
        tend: called now and then, for what the cluster does not start again itself.
    """

    def __init__(
        self,
        cluster: ProcessCluster,
        app_id: AppId,
        results: Path,
        *,
        signs: EpochSigns,
        faults: Faults,
        report: CrashReport[KindT, PhaseT],
        say: Callable[[str], None],
        healthy_s: float,
        began_s: float,
        tend: Callable[[], None] = lambda: None,
    ) -> None:
        self.cluster = cluster
        self.results = results
        self.faults = faults
        self.report = report
        self.healthy_s = healthy_s
        self._app_id = app_id
        self._signs = signs
        self._say = say
        self._began_s = began_s
        self._tend = tend

    @property
    def seconds(self) -> float:
        """How long ago the run began."""
        return time.monotonic() - self._began_s

    def note(self, kind: KindT, phase: PhaseT) -> None:
        """Report a blow that was struck just now."""
        at_s = self.seconds
        self.report.struck.append(Struck(at_s, kind, phase))
        self._say(f"{len(self.report.struck):4} {at_s:7.2f} s: {kind} ({phase})")

    def never(self, what: str) -> bool:
        """Report that something has not come; False, for who waited for it."""
        self.report.problems.append(f"no {what} for {self.healthy_s:.0f} s")
        return False

    # -- waiting ---------------------------------------------------------------------------

    def pause(self, seconds: float) -> None:
        """Wait, and mend what is due meanwhile."""
        self._tend()
        self.faults.pause(seconds)

    def poll(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until it holds, looking often; False if it does not for so long."""
        until_s = time.monotonic() + seconds
        tended_s = 0.0
        while not holds():
            now_s = time.monotonic()
            if now_s > until_s:
                return False
            if now_s > tended_s + LOOK_S:
                tended_s = now_s
                self._tend()
            time.sleep(_POLL_S if seconds <= _LONG_S else _LONG_POLL_S)
        return True

    def wait_healthy(self) -> bool:
        """Wait until an epoch is shown that has not been stored yet; False if none ever is."""
        signs = self._signs
        before = max(signs.stored(), signs.newest_shown())
        until_s = time.monotonic() + self.healthy_s
        while signs.newest_shown() <= before:
            if time.monotonic() > until_s:
                return self.never(f"epoch after {before}")
            self.pause(LOOK_S)
        return True

    def end_stream(self, records: float, *, within_s: float) -> None:
        """Let the stream end after some records of a partition; wait until the application has."""
        self.report.end = end = numbered.end_after(self.results, records)
        numbered.set_end(self.results, end)
        until_s = time.monotonic() + within_s
        while self._status() not in TERMINAL and time.monotonic() < until_s:
            self.pause(LOOK_S)
        self.report.epochs = self._signs.newest_shown()
        if numbered.was_told_too_late(self.results):
            self.report.problems.append(f"the end of the stream, {end}, was told too late")

    def _status(self) -> str:
        with suppress(GearpyError):  # The master may be away.
            summary = self.cluster.client.application(self._app_id)
            self.report.status = summary.status
            self.report.restarts = summary.progress.restarts
        return self.report.status
