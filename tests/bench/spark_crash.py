"""Windows that go to Spark in every way there is, while gearpy's processes and JVMs are killed.

Every window must be in every table once, with the right values, whatever was killed and when. A
table to which a function only appends must have some twice, or nothing was put to the test.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

# Ships no type information.
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from tests.bench import spark_program, spark_reader
from tests.bench.crash import Blow, CrashRun, Phase, Target
from tests.bench.spark_plan import CALL_PHASES, READER, SINK
from tests.bench.spark_program import EXACT, NAIVE, TableVerdict, check_table, expected_windows
from tests.bench.spark_signs import SparkSigns, jvm_of

_SETTINGS: Final = {
    "checkpoint.interval-ms": "200",
    "cluster.heartbeat-timeout-ms": "3000",
    "spark.pause-ms": "50",
    "spark.call-attempts": "100000",
}
_PHASE_S: Final = 5.0


def spark_target() -> Target:
    """Return the target of the blows.

    A JVM may start meanwhile, on a busy machine: nothing else takes so long.
    """
    return Target(
        program=spark_program.__file__,
        check=_check,
        settings=_SETTINGS,
        signs=SparkSigns,
        run=_SparkRun,
        healthy_s=300.0,
        end_s=600.0,
    )


# -- the answer ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TablesVerdict:
    tables: list[TableVerdict]

    @property
    def is_exact(self) -> bool:
        """Whether each exact table is exact, and the naive one shows that there was a test."""
        exact = {each.name for each in self.tables if each.is_exact}
        shown = any(each.name == NAIVE and each.is_only_repeated for each in self.tables)
        return exact >= {*EXACT} and shown

    def report(self) -> Iterator[str]:
        yield f"{'table':10}{'rows':>10}{'windows':>10}{'lost':>8}{'twice':>8}{'wrong':>8}"
        for each in self.tables:
            yield (
                f"{each.name:10}{each.rows:10}{each.expected:10}{each.lost:8}{each.twice:8}"
                f"{each.wrong:8}  {_said(each)}"
            )
        for each in self.tables:
            if each.name != NAIVE or not each.is_only_repeated:
                yield from each.samples


def _said(verdict: TableVerdict) -> str:
    if verdict.name == NAIVE:
        return "repeats, as it must" if verdict.is_only_repeated else "shows nothing: no test"
    return "exact" if verdict.is_exact else "WRONG"


def _check(results: Path, end: int) -> TablesVerdict:
    return TablesVerdict([*_verdicts(results, end)])


def _verdicts(results: Path, end: int) -> Iterator[TableVerdict]:
    expected = expected_windows(end)
    for name in (*EXACT, NAIVE):
        path = results / spark_reader.SEEN / f"{name}.parquet"
        if path.exists():
            yield check_table(name, pq.ParquetFile(path).read(), expected)
        else:
            yield TableVerdict(name, expected=len(expected), lost=len(expected))


# -- the job outside -----------------------------------------------------------------------------


class _Reader:
    def __init__(self, results: Path) -> None:
        self._args = [sys.executable, "-P", "-m", spark_reader.__name__, str(results)]
        self._said = results.parent / "reader.out"
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    @property
    def jvm(self) -> int | None:
        return None if self._process is None else jvm_of(self._process.pid)

    def mend(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self.starts += 1
        with self._said.open("ab") as said:
            self._process = subprocess.Popen(
                self._args, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
            )

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


# -- the run -------------------------------------------------------------------------------------


class _SparkRun(CrashRun):
    """Strikes JVMs, too, in the phases of calls and batches; tends the job outside."""

    signs: SparkSigns

    def __init__(self, target: Target, *args: Any, **options: Any) -> None:
        super().__init__(target, *args, **options)
        self._reader = _Reader(self.results)
        self._appended: frozenset[str] = frozenset()  # When the call began.
        self._jvms: set[int] = set()  #: That must end, as who has started them was killed.

    def __exit__(self, *args: object) -> None:
        self._reader.stop()
        super().__exit__(*args)

    def tend(self) -> None:
        """Start again what does not live, as whoever runs it would."""
        self._reader.mend()
        super().tend()

    def waits_for_health(self, blow: Blow) -> bool:
        return blow.phase not in CALL_PHASES and blow.kind != READER

    def strike(self, blow: Blow) -> bool:
        """Strike when the phase has come; False if it does not come any more."""
        if blow.kind == READER:
            return self._strike_reader(blow.phase)
        if blow.phase in CALL_PHASES or blow.kind == SINK:
            return self._strike_sink(blow)
        return super().strike(blow)

    def harm(self, kind: str) -> bool:
        """Strike now; remember the JVMs of executors, one of which may be killed."""
        pair = self._sink_processes()
        if pair is not None:
            self._jvms.add(pair[1])
        return super().harm(kind)

    def _strike_sink(self, blow: Blow) -> bool:
        """Strike the executor that calls the function, or its JVM, in a phase of a call."""
        healthy_s = self.target.healthy_s
        if not self.poll(lambda: self._sink_processes() is not None, healthy_s):
            return self.never("JVM of the sink")
        if blow.phase == "running":
            self.pause(self.rng.uniform(0, 2.0))
        elif not self._await_call(blow.phase):
            return self.never("call of the function")
        intended, appended = self.signs.intended(), self._appended
        pair = self._sink_processes()
        if pair is None:
            return True
        executor, jvm = pair
        self._jvms.add(jvm)
        if _killed(jvm if blow.kind == SINK else executor):
            self.note(blow.kind, self._call_phase(intended, appended))
        return True

    def _await_call(self, phase: Phase) -> bool:
        """Wait for a phase of the next call; False if there is no call any more."""
        signs, before, healthy_s = self.signs, self.signs.intended(), self.target.healthy_s
        if not self.poll(lambda: signs.intended() > max(before, signs.done()), healthy_s):
            return False
        called, self._appended = signs.intended(), signs.appended()
        if phase == "intent":
            time.sleep(self.rng.uniform(0, 0.1))
        elif phase == "written":
            self.poll(lambda: bool(signs.appended() - self._appended), healthy_s)
        else:
            self.poll(lambda: signs.done() >= called, healthy_s)
            self._appended = signs.appended()
        return True

    def _call_phase(self, intended: int, appended: frozenset[str]) -> Phase:
        signs = self.signs
        if signs.intended() <= signs.done():
            return "done"
        if signs.intended() != intended:
            return "intent"  # Of the next one.
        return "written" if signs.appended() - appended else "intent"

    def _strike_reader(self, phase: Phase) -> bool:
        """Strike the JVM of the job outside, in a phase of one of its batches."""
        signs, healthy_s = self.signs, self.target.healthy_s
        if not self.poll(lambda: self._reader.jvm is not None, healthy_s):
            return self.never("JVM of the job outside")
        if phase == "running":
            self.pause(self.rng.uniform(0, 5.0))
        elif not self.poll(lambda: signs.batch_begun() > signs.batch_committed(), healthy_s):
            return self.never("batch of the job outside")
        elif phase == "commit":
            self.poll(lambda: signs.batch_in_table() > signs.batch_committed(), healthy_s)
        jvm = self._reader.jvm
        if jvm is not None and _killed(jvm):
            self.note(READER, self._batch_phase())
        return True

    def _batch_phase(self) -> Phase:
        signs = self.signs
        committed = signs.batch_committed()
        if signs.batch_in_table() > committed:
            return "commit"
        return "intent" if signs.batch_begun() > committed else "running"

    def _sink_processes(self) -> tuple[int, int] | None:
        """Return an executor that has a JVM, and this; the one that was started last."""
        pairs = [
            (jvm, pid)
            for pid in self.cluster.launched("executor")
            if (jvm := jvm_of(pid)) is not None
        ]
        if not pairs:
            return None
        jvm, pid = max(pairs)
        return pid, jvm

    def finish(self, rate: float) -> None:
        """Let the stream end, and the job outside read what is left and tell what it sees."""
        super().finish(rate)
        batches = self.signs.done()
        (self.results / spark_reader.FINISH).touch()
        seen = self.results / spark_reader.SEEN / spark_reader.FINISH
        if not self.poll(seen.exists, self.target.end_s):
            self.report.problems.append("the job outside has not ended")
        self.report.notes.append(
            f"{batches} batches to the function, {self.signs.batch_committed() + 1} to the job "
            f"outside, which was started {self._reader.starts} times"
        )
        self.report.seconds = self.seconds
        if not self.poll(lambda: not any(map(_is_java, self._jvms)), _PHASE_S):
            self.report.problems.append(f"of the JVMs {sorted(self._jvms)} some still run")


def _killed(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def _is_java(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == "java"
    return False
