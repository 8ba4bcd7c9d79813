"""The one way in which benches strike a cluster: a program, a plan of blows, a check of results.

A plan says whom to strike, and when; files tell the moment, and whether it was that also right
after the blow. The stream goes on until the plan is done, and then ends; its answer has a closed
form.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final, Literal, NamedTuple, Protocol, Self, TypeAlias, get_args

from gearpy.core.master.registry import TERMINAL
from gearpy.errors import GearpyError
from gearpy.ids import AppId
from gearpy.messages.client import GetApplication, ListWorkers
from tests.bench import numbered
from tests.bench.epoch_signs import EpochSigns
from tests.bench.faults import Faults
from tests.bench.process_cluster import ProcessCluster

#: When it is struck. "running": at any time. "recovery": not mended since the blow before.
#: "prepare": a sink has prepared a file, and no executor has stored the epoch. "snapshot": one
#: has, and the application has not. "commit": the application has, and not all sinks show it.
#: Of a call of a function on Spark, or a batch of Spark: "intent": it has begun, and nothing is
#: written. "written": something is, and this is not noted. "done": it is, and no other has begun.
Phase: TypeAlias = Literal[
    "running", "recovery", "prepare", "snapshot", "commit", "intent", "written", "done"
]
#: Epochs follow each other quickly, chains and logs are short: much happens to what is stored.
EPOCHS_OFTEN: Final[Mapping[str, str]] = {
    "checkpoint.interval-ms": "100",
    "checkpoint.max-overhead-percent": "100",
    "checkpoint.timeout-ms": "10000",
    "application.total-retries": "100000",
    "application.backoff-base-ms": "10",
}
_EPOCH_PHASES: Final = ("prepare", "snapshot", "commit")
_EXECUTORS: Final = 3
_WORKERS: Final = 3
_AFTER_S: Final = 5.0
_PHASE_S: Final = 5.0
_LOOK_S: Final = 0.05
_REST_S: Final = 0.01
_POLL_S: Final = 0.001
_LONG_POLL_S: Final = 0.005
_LONG_S: Final = 5.0  # What takes longer than this is not over in a moment.
#: On a machine that does many times what it can, records flow on: it is waited for so much longer.
_LONGER: Final = 10


class Blow(NamedTuple):
    """Whom to strike and how, such as ``executor SIGKILL``, and when."""

    kind: str
    phase: Phase


class Struck(NamedTuple):
    """A blow: when, what, in which phase, and how long until an epoch was shown again.

    The time to recover is None for a blow whose recovery was interrupted, or not measured.
    """

    at_s: float
    kind: str
    phase: Phase
    recovered_s: float | None = None


class Outcome(Protocol):
    @property
    def is_exact(self) -> bool: ...

    def report(self) -> Iterator[str]: ...


@dataclass(slots=True)
class CrashReport:
    struck: list[Struck] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    status: str = ""
    seconds: float = 0.0
    end: int = 0
    epochs: int = 0
    restarts: int = 0
    outcome: Outcome | None = None

    @property
    def is_good(self) -> bool:
        """Whether the application has come to its end with the right answer, and all else well."""
        is_exact = self.outcome is not None and self.outcome.is_exact
        return self.status == "succeeded" and not self.problems and is_exact

    def lines(self) -> Iterator[str]:
        """Yield the report for people: a table of blows, and what was found."""
        yield from self._table()
        took = sorted(each.recovered_s for each in self.struck if each.recovered_s is not None)
        if took:
            yield f"epochs were shown again after {median(took):.2f} s (median) to {took[-1]:.2f} s"
        yield (
            f"{self.end * numbered.PARTITIONS} records, {self.epochs} epochs, {self.restarts} "
            f"restarts since the last app master began, {self.seconds:.0f} s, application "
            f"{self.status}"
        )
        yield from self.notes
        if self.outcome is not None:
            yield from self.outcome.report()
        yield from self.problems

    def _table(self) -> Iterator[str]:
        counts = Counter((each.kind, each.phase) for each in self.struck)
        phases = [each for each in get_args(Phase) if any(each == phase for _, phase in counts)]
        kinds = sorted({kind for kind, _ in counts})
        yield f"{'':20}" + "".join(f"{phase:>10}" for phase in (*phases, "all"))
        for kind in kinds:
            row = [counts[kind, phase] for phase in phases]
            yield f"{kind:20}" + "".join(f"{n:10}" for n in (*row, sum(row)))
        row = [sum(counts[kind, phase] for kind in kinds) for phase in phases]
        yield f"{'all':20}" + "".join(f"{n:10}" for n in (*row, sum(row)))


class CrashRun:
    """Strikes one cluster: waits for the moment of each blow, and mends what does not mend itself.

    Args:
        results: its folder, where the end of its stream is set.
    """

    def __init__(
        self,
        target: "Target",
        cluster: ProcessCluster,
        results: Path,
        *,
        rng: random.Random,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.cluster = cluster
        self.results = results
        self.rng = rng
        self.report = CrashReport()
        self.signs = target.signs(cluster.folder / "checkpoints", results)
        self.target = target
        self.app_id = AppId(0)
        self._faults = Faults(cluster, rng, frozen_s=target.frozen_s, away_s=target.away_s)
        self._say = say
        self._began_s = time.monotonic()

    def start(self, rate: float, *more: str) -> None:
        """Submit the program; its arguments are the folder, the records per second, and others."""
        program = Path(self.target.program)
        args = (str(self.results), str(rate), *self.target.args, *more)
        self.app_id = self.cluster.submit(program, *args, executors=_EXECUTORS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._faults.mend_all()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began_s

    # -- striking --------------------------------------------------------------------------

    def strike_all(self, plan: Iterable[Blow], times: int | None = None) -> None:
        """Strike as planned, or so often; stop when there is no recovery."""
        healthy = self.wait_healthy()
        for blow in plan:
            if not healthy or len(self.report.struck) == times:
                break
            if blow.phase == "recovery" and self.report.struck:
                self.pause(self.rng.uniform(0.02, 0.3))
            elif self.waits_for_health(blow):
                healthy = self._has_recovered()
            healthy = healthy and self.strike(blow)
        if healthy:
            self._has_recovered()
        self._faults.mend_all()

    def waits_for_health(self, blow: Blow) -> bool:
        return True

    def strike(self, blow: Blow) -> bool:
        """Strike when the phase has come; False if it does not come any more."""
        phase = blow.phase
        if phase in _EPOCH_PHASES:
            struck, phase = self._strike_in_epoch(blow)
        else:
            if phase == "running":
                self.pause(self.rng.uniform(0, 0.3))
            struck = self.harm(blow.kind)
        if struck:
            self.note(blow.kind, phase)
        return True

    def harm(self, kind: str) -> bool:
        """Strike now; False if there is nobody at present to be struck."""
        return self._faults.strike(kind)

    def _strike_in_epoch(self, blow: Blow) -> tuple[bool, Phase]:
        signs = self.signs
        stored, pending = signs.stored(), signs.pending()
        if blow.phase == "prepare":
            self.poll(lambda: bool(signs.pending() - pending), _PHASE_S)
        else:
            self.poll(lambda: signs.stored() > stored, _PHASE_S)
        log = signs.log_files()
        if blow.phase == "commit":
            self.poll(lambda: signs.log_files() != log, _PHASE_S)
        new = signs.pending() - pending
        struck = self.harm(blow.kind)
        if not new & signs.pending():
            return struck, "running"
        if signs.log_files() != log:
            return struck, "commit"
        return struck, "snapshot" if signs.stored() > stored else "prepare"

    def note(self, kind: str, phase: Phase) -> None:
        at_s = self.seconds
        self.report.struck.append(Struck(at_s, kind, phase))
        self._say(f"{len(self.report.struck):4} {at_s:7.2f} s: {kind} ({phase})")

    # -- waiting ---------------------------------------------------------------------------

    def tend(self) -> None:
        """Start again what is due; called now and then."""
        self._faults.mend_due()

    def pause(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        self.tend()
        while time.monotonic() < until_s:
            time.sleep(_REST_S)
            self.tend()

    def poll(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until it holds, looking often; False if it does not for so long."""
        until_s = time.monotonic() + seconds
        tended_s = 0.0
        while not holds():
            now_s = time.monotonic()
            if now_s > tended_s + _LOOK_S:
                tended_s = now_s
                self.tend()
            if now_s > until_s:
                return False
            time.sleep(_POLL_S if seconds <= _LONG_S else _LONG_POLL_S)
        return True

    def wait_healthy(self) -> bool:
        """Wait until an epoch is shown that has not been stored yet; False if none ever is."""
        signs = self.signs
        before = max(signs.stored(), signs.newest_shown())
        is_shown = self._comes(lambda: signs.newest_shown() > before, self.target.healthy_s)
        return is_shown or self.never(f"epoch after {before}")

    def never(self, what: str) -> bool:
        """Report that something has not come; False, for who waited for it."""
        self.report.problems.append(f"no {what} for {self.target.healthy_s:.0f} s")
        return False

    def _comes(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait for something; False if so long nothing is heard of, or no record has moved."""
        began_s = looked_s = time.monotonic()
        moved: object = None
        while not holds():
            now_s = time.monotonic()
            if now_s - looked_s > seconds:
                before, moved, looked_s = moved, self._moved(), now_s
                if moved in {before, None} or now_s - began_s > seconds * _LONGER:
                    return False
            self.pause(_LOOK_S)
        return True

    def _moved(self) -> tuple[int, int] | None:
        """Return the records that the application has taken and given; None: nobody tells."""
        with suppress(GearpyError):
            done = self.cluster.client.ask(GetApplication(app_id=self.app_id)).progress
            return done.records_in, done.records_out
        return None

    def _has_recovered(self) -> bool:
        healthy, struck = self.wait_healthy(), self.report.struck
        if healthy and struck and struck[-1].recovered_s is None:
            struck[-1] = struck[-1]._replace(recovered_s=self.seconds - struck[-1].at_s)
        return healthy

    # -- the end ---------------------------------------------------------------------------

    def finish(self, rate: float) -> None:
        """Let the stream end some seconds from now; wait for the end of the application."""
        self.end_stream(rate / numbered.PARTITIONS * _AFTER_S)
        self.report.seconds = self.seconds
        self._check_slots()

    def end_stream(self, records: float) -> None:
        """Let the stream end after some records of a partition; wait until the application has."""
        self.report.end = end = numbered.end_after(self.results, records)
        numbered.set_end(self.results, end)
        self.await_end()
        if numbered.was_told_too_late(self.results):
            self.report.problems.append(f"the end of the stream, {end}, was told too late")

    def await_end(self) -> None:
        self._comes(lambda: self._status() in TERMINAL, self.target.end_s)
        self.report.epochs = self.signs.newest_shown()

    def _check_slots(self) -> None:
        """See that nothing of the cluster is taken any more: what leaks slots stalls it one day."""
        until_s = time.monotonic() + _PHASE_S
        taken: dict[int, int] = {}
        while time.monotonic() < until_s:
            with suppress(GearpyError):
                workers = self.cluster.client.ask(ListWorkers()).workers
                taken = {each.worker_id: each.slots - each.free_slots for each in workers}
                if not any(taken.values()):
                    return
            self.pause(_LOOK_S)
        self.report.problems.append(f"slots that are still taken, by worker: {taken}")

    def _status(self) -> str:
        with suppress(GearpyError):  # The master may be away.
            summary = self.cluster.client.ask(GetApplication(app_id=self.app_id))
            self.report.status = summary.status
            self.report.restarts = summary.progress.restarts
        return self.report.status


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A program to strike, and what there is to know about it.

    Attributes:
        check: compares the results with the answer for a stream up to a number.
        args: of the program, behind the folder of results and the rate.
        settings: keys of the configuration, besides those for many epochs.
        slots: of each worker.
        frozen_s: how long a frozen process is, at least and at most.
        healthy_s: an application of which nothing comes for so long does not recover, unless its
            records still flow.
    """

    program: str
    check: Callable[[Path, int], Outcome]
    args: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    signs: Callable[[Path, Path], EpochSigns] = EpochSigns
    run: type[CrashRun] = CrashRun
    slots: int = 16
    frozen_s: tuple[float, float] = (0.2, 4.0)
    away_s: tuple[float, float] = (0.1, 1.0)
    healthy_s: float = 60.0
    end_s: float = 60.0


def crash(
    folder: Path,
    target: Target,
    plan: Iterable[Blow],
    *,
    seed: int,
    rate: float,
    times: int | None = None,
    settings: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> CrashReport:
    """Run it all: the stream goes on until the plan is done, and then ends.

    Args:
        times: stop after so many blows; else when the plan is over.
        settings: keys of the configuration, besides those of the target.
    """
    results = folder / "results"
    results.mkdir()
    chosen = {**EPOCHS_OFTEN, **target.settings, **(settings or {})}
    with ProcessCluster(folder, workers=_WORKERS, slots=target.slots, settings=chosen) as cluster:
        run = target.run(target, cluster, results, rng=random.Random(seed), say=say)
        with run:
            run.start(rate)
            run.strike_all(plan, times)
            run.finish(rate)
    if run.report.status in TERMINAL:
        run.report.outcome = target.check(results, run.report.end)
    else:  # What is not shown yet is neither lost nor wrong.
        run.report.problems.append("results are not compared, as the application has not ended")
    return run.report
