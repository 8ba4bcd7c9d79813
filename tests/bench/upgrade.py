"""A cluster whose processes are replaced by those of another gearpy, one after the other.

Meanwhile an application shows each result once, and clients submit and read.
"""

import os
import random
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gearpy.messages.client import ListWorkers
from gearpy.messages.masters import GetMasters
from tests.bench import numbered
from tests.bench.crash import EPOCHS_OFTEN, CrashReport, CrashRun, Target
from tests.bench.history import problem_of
from tests.bench.masters import Clients, MastersResult, until
from tests.bench.process_cluster import Daemon, ProcessCluster

_TARGET: Final = Target(
    program=numbered.__file__,
    check=numbered.check,
    settings={**EPOCHS_OFTEN, "checkpoint.interval-ms": "500"},
    healthy_s=240.0,
    end_s=480.0,
)
_STOP_S: Final = 120.0
_COMMAND_S: Final = 240.0
#: What a process says of another one whose messages it does not understand.
_REFUSED: Final = re.compile(
    r".*(?:protocol version|control message|speaks gearpy|frame of version|another graph).*"
)


@dataclass(frozen=True, slots=True)
class Gearpy:
    name: str
    python: str
    env: Mapping[str, str] = field(default_factory=dict)

    def gear(self, *args: str) -> str:
        command = [self.python, "-P", "-m", "gearpy", *args]
        env = {key: text for key, text in os.environ.items() if not key.startswith("GEARPY_")}
        done = subprocess.run(
            command,
            env={**env, **self.env},
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_S,
        )
        if done.returncode:
            raise RuntimeError(f"{self.name}: {done.stderr or done.stdout}")
        return done.stdout


@dataclass(frozen=True, slots=True)
class Replaced:
    """One process that was replaced, and how long until a submission was accepted after that."""

    what: str
    by: str
    accepted_s: float
    versions: tuple[str, ...]  #: What the workers say that they run.


@dataclass(slots=True)
class UpgradeResult:
    replaced: list[Replaced] = field(default_factory=list)
    clients: MastersResult = field(default_factory=MastersResult)
    report: CrashReport = field(default_factory=CrashReport)
    refused: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return self.report.is_good and not self.refused and not self.clients.problem

    def lines(self) -> Iterator[str]:
        for each in self.replaced:
            yield (
                f"{each.what} by {each.by}: next submission accepted after {each.accepted_s:.2f} "
                f"s, workers run {', '.join(repr(one) for one in each.versions)}"
            )
        accepted = sum(each.end_s != float("inf") for each in self.clients.added)
        yield (
            f"{accepted} of {len(self.clients.added)} submissions accepted at once, "
            f"{len(self.clients.seen)} lists: {self.clients.problem or 'all fits one order'}"
        )
        yield f"{self.report.restarts} restarts, application {self.report.status}"
        if self.report.outcome is not None:
            yield from self.report.outcome.report()
        yield from self.report.problems
        yield f"{len(self.refused)} messages refused"
        yield from self.refused[:10]


def measure_upgrade(
    folder: Path,
    gearpys: Sequence[Gearpy],
    *,
    rate: float = 1000,
    say: Callable[[str], None] = lambda _: None,
) -> UpgradeResult:
    """Replace three masters and two workers, one after the other, while everything runs.

    Args:
        gearpys: what all processes are at first, and what they are replaced by, in turns: masters
            first; on the way back to the first one, workers first.
    """
    results = folder / "results"
    results.mkdir()
    first, *others = gearpys
    cluster = ProcessCluster(folder, masters=3, workers=2, slots=32, settings=_TARGET.settings)
    for each in [*cluster.masters, *cluster.workers]:
        each.run_as(first.python, first.env)
    run = CrashRun(_TARGET, cluster, results, rng=random.Random(0))
    result = UpgradeResult(report=run.report)
    upgrade = _Upgrade(cluster, run, result, say)
    with cluster, run:
        run.start(rate)
        if run.wait_healthy():
            with Clients(cluster, result.clients) as clients:
                for gearpy in others:
                    upgrade.replace_all(gearpy, clients, is_back=gearpy is first)
            for gearpy in gearpys:
                gearpy.gear("worker", "list", *cluster.options())
            run.finish(rate)
        upgrade.note_refused()
    run.report.outcome = _TARGET.check(results, run.report.end)
    result.clients.problem = result.clients.problem or problem_of(
        result.clients.added, result.clients.seen
    )
    return result


class _Upgrade:
    def __init__(
        self,
        cluster: ProcessCluster,
        run: CrashRun,
        result: UpgradeResult,
        say: Callable[[str], None],
    ) -> None:
        self._cluster, self._run, self._result = cluster, run, result
        self._say = say
        self._said: list[str] = []  # By processes that are gone.

    def replace_all(self, gearpy: Gearpy, clients: Clients, *, is_back: bool) -> None:
        masters = [(f"master {n}", each) for n, each in enumerate(self._cluster.masters)]
        workers = [(f"worker {n}", each) for n, each in enumerate(self._cluster.workers)]
        for what, daemon in [*workers, *masters] if is_back else [*masters, *workers]:
            began_s = time.monotonic()
            self._replace(daemon, gearpy)
            accepted_s = clients.accepted_after(began_s) - began_s
            until(self._are_all_there)
            versions = tuple(
                each.version for each in self._cluster.client.ask(ListWorkers()).workers
            )
            replaced = Replaced(what, gearpy.name, accepted_s, versions)
            self._result.replaced.append(replaced)
            self._say(f"{what} is {gearpy.name}, workers run {versions}")
            if not self._run.wait_healthy():
                return

    def note_refused(self) -> None:
        cluster = self._cluster
        self._said += [each.said for each in [*cluster.masters, *cluster.workers]]
        logs = (each for each in (cluster.folder / "logs").rglob("*") if each.is_file())
        self._said += [each.read_text(encoding="utf-8", errors="replace") for each in logs]
        self._result.refused += [line for text in self._said for line in _REFUSED.findall(text)]

    def _replace(self, daemon: Daemon, gearpy: Gearpy) -> None:
        code = daemon.stop(_STOP_S)
        if code:
            self._run.report.problems.append(f"a process ended with {code}: {daemon.said[-500:]}")
        self._said.append(daemon.said)
        daemon.run_as(gearpy.python, gearpy.env)
        daemon.start()
        daemon.wait_ready()

    def _are_all_there(self) -> bool:
        masters = self._cluster.client.ask(GetMasters()).masters
        is_whole = all(each.role != "away" and not each.behind for each in masters)
        return is_whole and len(self._cluster.client.ask(ListWorkers()).workers) == len(
            self._cluster.workers
        )
