"""A replayable word count on a real cluster while its processes are killed and frozen.

The answer has a closed form, so that a single record that is lost, or counted where it must not
be, shows.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gearpy.core.master.registry import TERMINAL
from gearpy.errors import GearpyError
from gearpy.ids import AppId
from tests.bench.faults import ANY_KIND, Faults, chosen
from tests.bench.process_cluster import ProcessCluster

__all__ = ["PROGRAM", "ChaosReport", "Fault", "expected_counts", "run_chaos"]

PARTITIONS: Final = 4
WORDS: Final = 97
WINDOW_MS: Final = 1000

#: Unique numbered records of four partitions, counted by word in windows of a second.
PROGRAM: Final = """\
from itertools import count

import gearpy as gp

def numbers(partition):
    return ((n, int(partition)) for n in count())

def word(record):
    n, partition = record
    return f"word{(n * 7 + partition * 13) % 97}"

def main(args):
    path, rate, limit = args[0], float(args[1]), int(args[2])
    app = gp.StreamApp("chaos", parallelism=4)
    source = gp.generate(
        numbers, rate=rate, limit=limit, partitions=4, timestamp=lambda record: record[0]
    )
    (
        app.read(source)
        .map(word)
        .key_by(lambda text: text)
        .window(gp.tumbling("1s"))
        .count()
        .write(gp.jsonl_file(path))
    )
    return app
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that was done to the cluster."""

    at_s: float
    kind: str
    during_recovery: bool
    recovered_s: float | None = None


@dataclass(slots=True)
class ChaosReport:
    """What was done, and what came out."""

    faults: list[Fault] = field(default_factory=list)
    status: str = ""
    seconds: float = 0.0
    expected: int = 0
    lost: int = 0
    surplus: int = 0
    wrong: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the report for people."""
        out = [f"{'at s':>7}  {'fault':24} {'recovered in s':>14}"]
        for fault in self.faults:
            kind = f"{fault.kind}{' (in recovery)' if fault.during_recovery else ''}"
            took = "-" if fault.recovered_s is None else f"{fault.recovered_s:.2f}"
            out.append(f"{fault.at_s:7.2f}  {kind:34} {took:>14}")
        during = sum(fault.during_recovery for fault in self.faults)
        out.append(
            f"{len(self.faults)} faults, {during} during recovery, {self.seconds:.0f} s, "
            f"application {self.status}; {self.expected} records: "
            f"{self.lost} lost, {self.surplus} counted too often"
        )
        return out


def expected_counts(limit: int) -> Counter[tuple[int, str]]:
    """Return the count of each word in each window, by window start."""
    counts: Counter[tuple[int, str]] = Counter()
    for partition in range(PARTITIONS):
        mine = limit // PARTITIONS + (partition < limit % PARTITIONS)
        for n in range(mine):
            start = n // WINDOW_MS * WINDOW_MS
            counts[start, f"word{(n * 7 + partition * 13) % WORDS}"] += 1
    return counts


def run_chaos(
    folder: Path,
    *,
    seed: int,
    faults: int,
    seconds: float = 60.0,
    rate: float = 4000.0,
    say: Callable[[str], None] = lambda _: None,
) -> ChaosReport:
    """Run it all; the application reads ``rate * seconds`` records at that rate.

    Faults come while it runs, every third one before the one before is recovered from.
    """
    settings = {
        "checkpoint.interval-ms": "500",
        "application.total-retries": "100000",
        "application.backoff-max-ms": "500",
        "cluster.heartbeat-timeout-ms": "4000",
    }
    program = folder / "chaos.py"
    program.write_text(PROGRAM, encoding="utf-8")
    limit = int(rate * seconds)
    report = ChaosReport(expected=limit)
    with ProcessCluster(folder, workers=3, slots=16, settings=settings) as cluster:
        out = folder / "counts.jsonl"
        app_id = cluster.submit(program, str(out), str(rate), str(limit), executors=4)
        _Chaos(cluster, app_id, random.Random(seed), report, say).run(faults, seconds)
        _compare(folder, limit, report)
    return report


class _Chaos:
    """Injects the faults, one after the other."""

    def __init__(
        self,
        cluster: ProcessCluster,
        app_id: AppId,
        rng: random.Random,
        report: ChaosReport,
        say: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        # Frozen for longer than others wait for it, or a little shorter.
        self._faults = Faults(cluster, rng, frozen_s=(3, 8), away_s=(0.1, 1.5))
        self._app_id = app_id
        self._rng = rng
        self._report = report
        self._say = say
        self._began_s = time.monotonic()

    def run(self, faults: int, seconds: float) -> None:
        self._wait_healthy()
        pause_s = seconds / (2 * faults)  # As recoveries take the rest, the stream lasts longer.
        while len(self._report.faults) < faults:
            self._faults.pause(self._rng.uniform(0.3, 1.0) * pause_s)
            if self._is_over():
                break
            self._inject(during_recovery=False)
            if len(self._report.faults) % 3 == 0:
                self._faults.pause(self._rng.uniform(0.05, 0.6))
                self._inject(during_recovery=True)
            self._note_recovery(self._wait_healthy())
        self._wait_end(seconds * 3 + 60)

    def _inject(self, *, during_recovery: bool) -> None:
        kind = chosen(ANY_KIND, self._rng)
        if not self._faults.strike(kind):
            return
        at_s = time.monotonic() - self._began_s
        self._report.faults.append(Fault(at_s, kind, during_recovery))
        self._say(f"{at_s:7.2f} s: {kind}{' during recovery' if during_recovery else ''}")

    def _wait_healthy(self, timeout_s: float = 60.0) -> float | None:
        """Wait until a new epoch is complete; return how long it took, None if it never was."""
        began_s = time.monotonic()
        before: int | None = None
        while time.monotonic() - began_s < timeout_s:
            self._faults.mend_due()
            if self._is_over():
                return None
            detail = self._cluster.detail(self._app_id)
            if detail is not None and all(each.pid for each in detail.executors):
                before = detail.epoch if before is None else before
                if detail.epoch > before:
                    return time.monotonic() - began_s
            time.sleep(0.05)
        return None

    def _note_recovery(self, took_s: float | None) -> None:
        if not self._report.faults:
            return
        last = self._report.faults[-1]
        self._report.faults[-1] = Fault(last.at_s, last.kind, last.during_recovery, took_s)

    def _status(self) -> str:
        with suppress(GearpyError):
            return self._cluster.client.application(self._app_id).status
        return "unknown"

    def _is_over(self) -> bool:
        return self._status() in TERMINAL

    def _wait_end(self, timeout_s: float) -> None:
        until_s = time.monotonic() + timeout_s
        while not self._is_over() and time.monotonic() < until_s:
            self._faults.pause(0.2)
        self._report.status = self._status()
        self._report.seconds = time.monotonic() - self._began_s


def _compare(folder: Path, limit: int, report: ChaosReport) -> None:
    """Count what is missing and what is too much; later lines of a window and word win."""
    got: dict[tuple[int, str], int] = {}
    for path in folder.glob("counts*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            key = (record["start"], record["key"])
            if key in got and got[key] != record["value"]:
                report.wrong.append(f"{key}: {got[key]} and then {record['value']}")
            got[key] = record["value"]
    expected = expected_counts(limit)
    for key in expected.keys() | got.keys():
        difference = got.get(key, 0) - expected.get(key, 0)
        report.lost += max(0, -difference)
        report.surplus += max(0, difference)
        if difference:
            report.wrong.append(f"{key}: {got.get(key)} instead of {expected.get(key)}")
