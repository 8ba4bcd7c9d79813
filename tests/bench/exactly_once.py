"""Numbered records through state into folders, on a real cluster whose processes are killed.

Every result must be there once, and in its order, whatever was killed or frozen, and when: while
an epoch is stored, while sinks show what belongs to it, or while a failure before is recovered
from.
"""

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from os import scandir
from pathlib import Path
from typing import Final, Literal, TypeAlias

from gearpy.errors import GearpyError
from tests.bench import numbered, stream_language
from tests.bench.crash_watch import LOOK_S, CrashReport, CrashWatch
from tests.bench.faults import ANY_KIND, FaultKind, Faults, chosen
from tests.bench.numbered import PARTITIONS, Verdict
from tests.bench.process_cluster import ProcessCluster

__all__ = [
    "EPOCHS_OFTEN",
    "WORKLOADS",
    "ExactlyOnceReport",
    "Phase",
    "Signs",
    "Workload",
    "run_exactly_once",
]

#: When a fault comes. "snapshot": an executor has stored the epoch, and the application has not.
#: "commit": the application has, and not all sinks show it. "recovery": not mended since the last.
Phase: TypeAlias = Literal["running", "recovery", "snapshot", "commit"]

#: Epochs follow each other quickly, chains and logs are short: much happens to what is stored.
EPOCHS_OFTEN: Final[Mapping[str, str]] = {
    "checkpoint.interval-ms": "100",
    "checkpoint.pace": "fixed",
    "checkpoint.timeout-ms": "10000",
    "application.total-retries": "100000",
    "application.backoff-base-ms": "10",
    "application.backoff-max-ms": "200",
}
_QUICK: Final = {"cluster.heartbeat-interval-ms": "300", "cluster.heartbeat-timeout-ms": "2000"}
_EXECUTORS: Final = 3
_WORKERS: Final = 3
_PHASES: Final[tuple[Phase, ...]] = ("running", "recovery", "snapshot", "commit")
#: Those that harm what takes part in an epoch, at once.
_IN_EPOCH: Final[Mapping[FaultKind, int]] = {
    "executor SIGKILL": 6,
    "app master SIGKILL": 5,
    "executor SIGSTOP": 3,
    "app master SIGSTOP": 3,
    "worker SIGKILL": 1,
    "worker SIGSTOP": 1,
    "master SIGKILL": 1,
}
_FROZEN_S: Final = (0.2, 4.0)
_AWAY_S: Final = (0.1, 1.0)
_HEALTHY_S: Final = 60.0
_AFTER_S: Final = 5.0
_PHASE_S: Final = 3.0
_EPOCH: Final = re.compile(r"epoch(\d+)-")


@dataclass(frozen=True, slots=True)
class Workload:
    """A program whose records have numbers, and what there is to know about it.

    Attributes:
        program: its module.
        parallelism: tasks that write the folder of records.
        check: compares the results with the answer for a stream up to a number.
        settings: keys of the configuration that it needs.
    """

    program: Path
    parallelism: int
    check: Callable[[Path, int], Verdict]
    settings: Mapping[str, str] = field(default_factory=dict)


#: "language" has more folders, and more that goes on: epochs are not as close.
WORKLOADS: Final[Mapping[str, Workload]] = {
    "numbered": Workload(Path(numbered.__file__), numbered.PARTITIONS, numbered.check),
    "language": Workload(
        Path(stream_language.__file__),
        stream_language.PARALLELISM,
        stream_language.check,
        {"checkpoint.interval-ms": "300", "checkpoint.timeout-ms": "20000"},
    ),
}


@dataclass(slots=True)
class ExactlyOnceReport(CrashReport[FaultKind, Phase]):
    """What was done, and what came out."""

    verdict: Verdict = field(default_factory=Verdict)

    @property
    def is_good(self) -> bool:
        """Whether the application has ended well with the exact answer."""
        return self.has_ended_well and self.verdict.is_exact

    def in_phase(self, phase: Phase) -> int:
        """Return how many faults came then."""
        return sum(each.phase == phase for each in self.struck)

    def lines(self) -> Iterator[str]:
        """Yield the report for people: a table of faults, and what was found."""
        yield from self.table("fault", [*ANY_KIND], _PHASES, title_chars=20, cell_chars=10)
        row = [self.in_phase(phase) for phase in _PHASES]
        yield f"{'all':20}" + "".join(f"{n:10}" for n in row) + f"{sum(row):6}"
        took = sorted(each.recovered_s for each in self.struck if each.recovered_s is not None)
        if took:
            median_s = took[len(took) // 2]
            yield f"epochs were shown again after {median_s:.2f} s (median) to {took[-1]:.2f} s"
        yield (
            f"{self.end * PARTITIONS} records, {self.epochs} epochs, {self.restarts} restarts "
            f"since the last app master began, {self.seconds:.0f} s, application {self.status}"
        )
        yield str(self.verdict)
        yield from self.verdict.wrong
        yield from self.problems


class Signs:
    """What of epochs can be seen from outside: files that are stored, and that sinks show."""

    def __init__(self, checkpoints: Path, results: Path) -> None:
        self._checkpoints = checkpoints
        self._records = results / "records"

    def stored(self) -> int:
        """Return the newest epoch that an executor has stored; 0 if there is none."""
        return max(
            (
                int(found[1])
                for folder in self._checkpoints.glob("*/app*/epochs/*")
                for name in _names(folder)
                if (found := _EPOCH.match(name)) and not name.endswith(".tmp")
            ),
            default=0,
        )

    def log_files(self) -> frozenset[str]:
        """Return the names of the files of the coordinator log."""
        folders = self._checkpoints.glob("*/app*/coordinator")
        return frozenset(name for folder in folders for name in _names(folder))

    def shown(self) -> Counter[int]:
        """Return how many tasks show each epoch's records."""
        return Counter(
            int(name.split("-", 3)[2])  # part-<task>-<epoch>-...
            for name in _names(self._records)
            if name.endswith(".jsonl")
        )

    def newest_shown(self) -> int:
        """Return the newest epoch of which something is shown; 0 if there is none."""
        return max(self.shown(), default=0)


def _names(folder: Path) -> list[str]:
    with suppress(FileNotFoundError), scandir(folder) as entries:
        return [each.name for each in entries]
    return []


def run_exactly_once(
    folder: Path,
    *,
    seed: int,
    faults: int,
    pipeline: str = "numbered",
    rate: float = 2000.0,
    settings: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> ExactlyOnceReport:
    """Run it all: the stream goes on until so many faults were survived, and then ends.

    Args:
        folder: an empty one.
        seed: decides the faults.
        faults: how many.
        pipeline: one of `WORKLOADS`.
        rate: records per second.
        settings: keys of the configuration, besides those for many epochs.
        say: told of each fault.
    """
    results = folder / "results"
    results.mkdir()
    report = ExactlyOnceReport()
    workload = WORKLOADS[pipeline]
    chosen_settings = {**EPOCHS_OFTEN, **_QUICK, **workload.settings, **(settings or {})}
    cluster = ProcessCluster(folder, workers=_WORKERS, slots=16, settings=chosen_settings)
    with cluster:
        app_id = cluster.submit(workload.program, str(results), str(rate), executors=_EXECUTORS)
        rng = random.Random(seed)
        signs = Signs(cluster.folder / "checkpoints", results)
        watch = CrashWatch(
            cluster,
            app_id,
            results,
            signs=signs,
            faults=Faults(cluster, rng, frozen_s=_FROZEN_S, away_s=_AWAY_S),
            report=report,
            say=say,
            healthy_s=_HEALTHY_S,
            began_s=time.monotonic(),
        )
        run = _Run(watch, signs, parallelism=workload.parallelism, rng=rng)
        try:
            run.strike_all(faults)
        finally:
            watch.faults.mend_all()
        run.end_stream(rate)
    report.verdict = workload.check(results, report.end)
    return report


class _Run:
    """Chooses faults, waits for the moment of each, and for what follows."""

    def __init__(
        self,
        watch: CrashWatch[FaultKind, Phase],
        signs: Signs,
        *,
        parallelism: int,
        rng: random.Random,
    ) -> None:
        self._watch = watch
        self._signs = signs
        self._parallelism = parallelism
        self._rng = rng
        self._report = watch.report

    def strike_all(self, faults: int) -> None:
        """Strike so often; stop when there is no recovery."""
        healthy = self._watch.wait_healthy()
        phases: list[Phase] = ["running"]  # The first one interrupts no recovery.
        while len(self._report.struck) < faults and healthy:
            phases = phases or self._rng.sample(_PHASES * 5, 20)
            phase = phases.pop()
            if phase == "recovery":
                self._watch.pause(self._rng.uniform(0.02, 0.3))
            else:
                healthy = self._watch.wait_healthy()
                self._note_recovery()
            if healthy:
                self._strike(phase)
        self._watch.wait_healthy()
        self._note_recovery()

    def _strike(self, phase: Phase) -> None:
        """Strike in a phase, or a little later; note in which one it was."""
        kind = chosen(_IN_EPOCH if phase in {"snapshot", "commit"} else ANY_KIND, self._rng)
        if phase == "running":
            self._watch.pause(self._rng.uniform(0, 0.3))
        elif phase != "recovery":
            phase = self._strike_in_epoch(kind, phase)
            self._watch.note(kind, phase)
            return
        if self._watch.faults.strike(kind):
            self._watch.note(kind, phase)

    def _strike_in_epoch(self, kind: FaultKind, phase: Phase) -> Phase:
        """Strike when an epoch is at a phase; return at which it is right after that."""
        signs, before = self._signs, self._signs.stored()
        self._watch.poll(lambda: signs.stored() > before, _PHASE_S)
        epoch, log = signs.stored(), signs.log_files()
        if phase == "commit":
            self._watch.poll(lambda: signs.log_files() != log, _PHASE_S)
        self._watch.faults.strike(kind)
        if signs.log_files() == log:
            return "snapshot"
        return "commit" if signs.shown()[epoch] < self._parallelism else "running"

    def _note_recovery(self) -> None:
        if self._report.struck and self._report.struck[-1].recovered_s is None:
            last = self._report.struck[-1]
            took_s = self._watch.seconds - last.at_s
            self._report.struck[-1] = last._replace(recovered_s=took_s)

    def end_stream(self, rate: float) -> None:
        """Let the stream end some seconds from now; wait for the end of the application."""
        self._watch.end_stream(rate / PARTITIONS * _AFTER_S, within_s=_HEALTHY_S)
        self._report.seconds = self._watch.seconds
        self._check_slots()

    def _check_slots(self) -> None:
        """See that nothing of the cluster is taken any more: what leaks slots stalls it one day."""
        until_s = time.monotonic() + _PHASE_S
        taken: dict[int, int] = {}
        while time.monotonic() < until_s:
            with suppress(GearpyError):
                workers = self._watch.cluster.client.workers()
                taken = {each.worker_id: each.slots - each.free_slots for each in workers}
                if not any(taken.values()):
                    return
            self._watch.pause(LOOK_S)
        self._report.problems.append(f"slots that are still taken, by worker: {taken}")
