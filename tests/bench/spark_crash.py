"""Windows that go to Spark in every way there is, while gearpy's processes and JVMs are killed.

Every window must be in every table once, with the right values, whatever was killed and when. A
table to which a function only appends must have some twice, or nothing was put to the test.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

# Ships no type information.
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from tests.bench import spark_program, spark_reader
from tests.bench.crash_watch import CrashWatch
from tests.bench.exactly_once import EPOCHS_OFTEN
from tests.bench.faults import FaultKind, Faults
from tests.bench.numbered import PARTITIONS
from tests.bench.process_cluster import ProcessCluster
from tests.bench.spark_plan import CALL_PHASES, Blow, Phase, SparkCrashReport, Victim
from tests.bench.spark_program import EXACT, NAIVE, TableVerdict, check_table, expected_windows
from tests.bench.spark_signs import SparkSigns, jvm_of

__all__ = ["run_spark_crash"]

_SETTINGS: Final[Mapping[str, str]] = {
    **EPOCHS_OFTEN,
    "checkpoint.interval-ms": "200",
    "cluster.heartbeat-interval-ms": "300",
    "cluster.heartbeat-timeout-ms": "3000",
    "spark.pause-ms": "50",
    "spark.call-attempts": "100000",
}
_EXECUTORS: Final = 3
_WORKERS: Final = 3
_AWAY_S: Final = (0.1, 1.0)
_HEALTHY_S: Final = 300.0  # A JVM may start meanwhile, on a busy machine.
_END_S: Final = 600.0
_AFTER_S: Final = 5.0
_PHASE_S: Final = 5.0


# -- the job outside -----------------------------------------------------------------------------


class _Reader:
    """The job outside, which is started again whenever it has ended."""

    def __init__(self, folder: Path, results: Path, *, start: str) -> None:
        self._args = [sys.executable, "-P", "-m", spark_reader.__name__, str(results), start]
        self._said = folder / "reader.out"
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    @property
    def jvm(self) -> int | None:
        """Its JVM, if it has one."""
        return None if self._process is None else jvm_of(self._process.pid)

    def mend(self) -> None:
        """Start it if it does not live."""
        if self._process is not None and self._process.poll() is None:
            return
        self.starts += 1
        with self._said.open("ab") as said:
            self._process = subprocess.Popen(
                self._args, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
            )

    def __enter__(self) -> Self:
        self.mend()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


# -- the run -------------------------------------------------------------------------------------


def run_spark_crash(
    folder: Path,
    plan: Sequence[Blow],
    *,
    seed: int,
    minutes: float = 0.0,
    archive: bool = False,
    rate: float = 2000.0,
    settings: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> SparkCrashReport:
    """Run it all: the stream goes on until the plan is done, and then ends.

    Args:
        folder: an empty one.
        plan: whom to kill, and when.
        seed: decides the rest.
        minutes: begin the plan again and again, in another order, for so long.
        archive: let Spark start from the archive of classes, which must be there.
        rate: records per second.
        settings: keys of the configuration, besides those for many epochs.
        say: told of each blow.
    """
    results = folder / "results"
    results.mkdir()
    report = SparkCrashReport()
    start = "archive" if archive else "plain"
    cluster = ProcessCluster(
        folder, workers=_WORKERS, slots=16, settings={**_SETTINGS, **(settings or {})}
    )
    with cluster, _Reader(folder, results, start=start) as reader:
        began_s = time.monotonic()
        program = Path(spark_program.__file__)
        app_id = cluster.submit(program, str(results), str(rate), start, executors=_EXECUTORS)
        rng = random.Random(seed)
        signs = SparkSigns(cluster.folder / "checkpoints", results)
        harm = Faults(cluster, rng, frozen_s=_AWAY_S, away_s=_AWAY_S)
        watch = CrashWatch(
            cluster,
            app_id,
            results,
            signs=signs,
            faults=harm,
            report=report,
            say=say,
            healthy_s=_HEALTHY_S,
            began_s=began_s,
            tend=lambda: _tend(reader, harm),
        )
        run = _Run(watch, signs, reader, rng=rng, report=report)
        try:
            run.strike_all(plan, until_s=time.monotonic() + minutes * 60)
        finally:
            harm.mend_all()
        run.end_stream(rate)
        run.end_reader()
    report.verdicts = list(_verdicts(results, report.end))
    return report


def _tend(reader: _Reader, harm: Faults) -> None:
    """Start again what does not live, as whoever runs it would."""
    reader.mend()
    harm.mend_due()


def _verdicts(results: Path, end: int) -> Iterator[TableVerdict]:
    expected = expected_windows(end)
    for name in (*EXACT, NAIVE):
        path = results / spark_reader.SEEN / f"{name}.parquet"
        if path.exists():
            yield check_table(name, pq.ParquetFile(path).read(), expected)
        else:
            yield TableVerdict(name, expected=len(expected), lost=len(expected))


class _Run:
    """Waits for the moment of each blow, and for what follows."""

    def __init__(
        self,
        watch: CrashWatch[Victim, Phase],
        signs: SparkSigns,
        reader: _Reader,
        *,
        rng: random.Random,
        report: SparkCrashReport,
    ) -> None:
        self._watch = watch
        self._signs = signs
        self._reader = reader
        self._rng = rng
        self._report = report
        self._appended: frozenset[str] = frozenset()  # When the call began.
        self._jvms: set[int] = set()  #: That must end, as who has started them was killed.

    def strike_all(self, plan: Sequence[Blow], *, until_s: float) -> None:
        """Strike as planned, over again until it is time; stop when there is no recovery."""
        blows = [*plan]
        healthy = self._watch.wait_healthy()
        while blows and healthy:
            blow = blows.pop(0)
            if blow.phase == "recovery" and self._report.struck:
                self._watch.pause(self._rng.uniform(0.02, 0.3))
            elif blow.phase not in CALL_PHASES and blow.victim != "reader JVM":
                healthy = self._watch.wait_healthy()
            healthy = healthy and self._strike(blow)
            if not blows and time.monotonic() < until_s:
                blows = self._rng.sample([*plan], len(plan))
        self._watch.wait_healthy()

    def _strike(self, blow: Blow) -> bool:
        """Strike when the phase has come; False if it does not come any more."""
        if blow.victim == "reader JVM":
            return self._strike_reader(blow.phase)
        if blow.phase in CALL_PHASES or blow.victim == "sink JVM":
            return self._strike_sink(blow)
        kind: FaultKind = f"{blow.victim} SIGKILL"  # type: ignore[assignment]
        phase = blow.phase
        if phase == "running":
            self._watch.pause(self._rng.uniform(0, 0.3))
            self._note_jvms()
            struck = self._watch.faults.strike(kind)
        elif phase == "recovery":
            self._note_jvms()
            struck = self._watch.faults.strike(kind)
        else:
            struck, phase = self._strike_in_epoch(kind, phase)
        if struck:
            self._watch.note(blow.victim, phase)
        return True

    def _strike_in_epoch(self, kind: FaultKind, phase: Phase) -> tuple[bool, Phase]:
        """Strike when an epoch is at a phase; return at which it is right after that."""
        signs = self._signs
        self._note_jvms()
        stored, log, pending = signs.stored(), signs.log_files(), signs.pending()
        self._watch.poll(lambda: bool(signs.pending() - pending), _PHASE_S)
        if phase != "prepare":
            self._watch.poll(lambda: signs.stored() > stored, _PHASE_S)
        if phase == "commit":
            log = signs.log_files()
            self._watch.poll(lambda: signs.log_files() != log, _PHASE_S)
        new, log_now, stored_now = signs.pending() - pending, signs.log_files(), signs.stored()
        struck = self._watch.faults.strike(kind)
        if not new & signs.pending():
            return struck, "running"
        if phase == "commit" and log_now != log:
            return struck, "commit"
        if signs.log_files() != log_now:
            return struck, "running"
        return struck, "snapshot" if stored_now > stored else "prepare"

    def _strike_sink(self, blow: Blow) -> bool:
        """Strike the executor that calls the function, or its JVM, in a phase of a call."""
        if not self._watch.poll(lambda: self._sink_processes() is not None, _HEALTHY_S):
            return self._watch.never("JVM of the sink")
        if blow.phase == "running":
            self._watch.pause(self._rng.uniform(0, 2.0))
        elif not self._await_call(blow.phase):
            return self._watch.never("call of the function")
        intended, appended = self._signs.intended(), self._appended
        pair = self._sink_processes()
        if pair is None:
            return True
        executor, jvm = pair
        self._jvms.add(jvm)
        if _killed(jvm if blow.victim == "sink JVM" else executor):
            self._watch.note(blow.victim, self._call_phase(intended, appended))
        return True

    def _await_call(self, phase: Phase) -> bool:
        """Wait for a phase of the next call; False if there is no call any more."""
        signs, before = self._signs, self._signs.intended()
        if not self._watch.poll(lambda: signs.intended() > max(before, signs.done()), _HEALTHY_S):
            return False
        called, self._appended = signs.intended(), signs.appended()
        if phase == "intent":
            time.sleep(self._rng.uniform(0, 0.1))
        elif phase == "written":
            self._watch.poll(lambda: bool(signs.appended() - self._appended), _HEALTHY_S)
        else:
            self._watch.poll(lambda: signs.done() >= called, _HEALTHY_S)
            self._appended = signs.appended()
        return True

    def _call_phase(self, intended: int, appended: frozenset[str]) -> Phase:
        """Return at which phase of a call the files are, after the blow."""
        signs = self._signs
        if signs.intended() <= signs.done():
            return "done"
        if signs.intended() != intended:
            return "intent"  # Of the next one.
        return "written" if signs.appended() - appended else "intent"

    def _strike_reader(self, phase: Phase) -> bool:
        """Strike the JVM of the job outside, in a phase of one of its batches."""
        signs = self._signs
        if not self._watch.poll(lambda: self._reader.jvm is not None, _HEALTHY_S):
            return self._watch.never("JVM of the job outside")
        if phase == "running":
            self._watch.pause(self._rng.uniform(0, 5.0))
        elif not self._watch.poll(
            lambda: signs.batch_begun() > signs.batch_committed(), _HEALTHY_S
        ):
            return self._watch.never("batch of the job outside")
        elif phase == "commit":
            self._watch.poll(lambda: signs.batch_in_table() > signs.batch_committed(), _HEALTHY_S)
        jvm = self._reader.jvm
        if jvm is not None and _killed(jvm):
            self._watch.note("reader JVM", self._batch_phase())
        return True

    def _batch_phase(self) -> Phase:
        signs = self._signs
        begun, in_table, committed = (
            signs.batch_begun(),
            signs.batch_in_table(),
            signs.batch_committed(),
        )
        if in_table > committed:
            return "commit"
        return "intent" if begun > committed else "running"

    # -- processes -------------------------------------------------------------------------

    def _sink_processes(self) -> tuple[int, int] | None:
        """Return an executor that has a JVM, and this; the one that was started last."""
        pairs = [
            (jvm, pid)
            for pid in self._watch.cluster.launched("executor")
            if (jvm := jvm_of(pid)) is not None
        ]
        if not pairs:
            return None
        jvm, pid = max(pairs)
        return pid, jvm

    def _note_jvms(self) -> None:
        """Remember the JVMs of executors, one of which may be killed."""
        pair = self._sink_processes()
        if pair is not None:
            self._jvms.add(pair[1])

    # -- the end ---------------------------------------------------------------------------

    def end_stream(self, rate: float) -> None:
        """Let the stream end some seconds from now; wait for the end of the application."""
        self._watch.end_stream(rate / PARTITIONS * _AFTER_S, within_s=_END_S)
        self._report.batches = self._signs.done()

    def end_reader(self) -> None:
        """Let the job outside read what is left, and write down what it sees in all tables."""
        (self._watch.results / spark_reader.FINISH).touch()
        seen = self._watch.results / spark_reader.SEEN / spark_reader.FINISH
        if not self._watch.poll(seen.exists, _END_S):
            self._report.problems.append("the job outside has not ended")
        report = self._report
        report.outside_batches = self._signs.batch_committed() + 1
        report.reader_starts = self._reader.starts
        report.seconds = self._watch.seconds
        if not self._watch.poll(lambda: not any(map(_is_java, self._jvms)), _PHASE_S):
            report.problems.append(f"of the JVMs {sorted(self._jvms)} some still run")


def _killed(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def _is_java(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == "java"
    return False
