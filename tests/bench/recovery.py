"""How long records stop flowing when something fails, on a real cluster of processes."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gearpy.ids import AppId
from tests.bench.beats import BEATS, gaps_between
from tests.bench.masters import NOWHERE, WAITS, until
from tests.bench.process_cluster import Daemon, ProcessCluster, launched_by

PROGRAM: Final = (
    BEATS
    + """

def main(args):
    folder, flag = args[0], os.path.join(args[0], "raise")
    app = gp.StreamApp("recovery", parallelism=4)

    def check(record):
        if record % 50 == 0:
            try:
                os.unlink(flag)
            except FileNotFoundError:
                return record
            raise ValueError("asked to fail")
        return record

    source = gp.generate(count, rate=4000, partitions=4)
    (
        app.read(source)
        .map(check)
        .key_by(lambda n: n % 97)
        .reduce(lambda one, other: other)
        .write(Beats(folder, "beats"))
    )
    return app
"""
)
KINDS: Final = (
    "task exception",
    "executor SIGKILL",
    "executor SIGSTOP",
    "app master SIGKILL",
    "worker SIGKILL",
    "master SIGKILL",
)
_WATCH_S: Final = 15.0
_GAP_S: Final = 0.1  # Shorter ones are the normal rhythm.
#: Before and after the loss of a leader, in which pauses of records are compared.
_BESIDE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Recovery:
    """How long it took, each time, from a kind of failure until records flowed again."""

    kind: str
    seconds: tuple[float, ...]

    def quantile(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def measure_recovery(
    folder: Path, *, times: int, kinds: tuple[str, ...] = KINDS, seed: int = 1
) -> Iterator[Recovery]:
    """Run a cluster of one master and three workers; let each kind of failure happen."""
    # Failures are far apart in life; here each one shall find a whole budget, and no pause yet.
    settings = {"application.total-retries": "100000", "application.retry-window-seconds": "1"}
    program = folder / "recovery.py"
    program.write_text(PROGRAM, encoding="utf-8")
    with ProcessCluster(folder, workers=3, slots=16, settings=settings) as cluster:
        app_id = cluster.submit(program, str(folder), executors=4)
        trial = _Trial(cluster, app_id, folder, random.Random(seed))
        trial.wait_healthy()
        for kind in kinds:
            yield Recovery(kind, tuple(trial.run(kind) for _ in range(times)))


def measure_leader_losses(folder: Path, *, times: int) -> Iterator[Recovery]:
    """Kill the leader of three masters; measure the longest pause of records, and the next submit.

    The longest pause of as long a time before tells what is usual.
    """
    program = folder / "recovery.py"
    program.write_text(PROGRAM, encoding="utf-8")
    usual, paused, accepted = list[float](), list[float](), list[float]()
    with ProcessCluster(folder, masters=3, workers=3, slots=16) as cluster:
        app_id = cluster.submit(program, str(folder), executors=4)
        trial = _Trial(cluster, app_id, folder, random.Random(0))
        for number in range(times):
            trial.wait_healthy()
            time.sleep(_BESIDE_S)
            leader = until(cluster.leader)
            killed_s = time.time()
            leader.signal(signal.SIGKILL)
            cluster.client.submit(f"waits-{number}", NOWHERE, config=WAITS)
            accepted.append(time.time() - killed_s)
            time.sleep(max(0.0, _BESIDE_S - accepted[-1]))
            usual.append(trial.longest_gap(killed_s - _BESIDE_S, killed_s))
            paused.append(trial.longest_gap(killed_s, killed_s + _BESIDE_S))
            leader.kill()
            _restart(leader)
    yield Recovery("longest pause of records before", tuple(usual))
    yield Recovery("leader of three killed: pause of records", tuple(paused))
    yield Recovery("leader of three killed: next submit", tuple(accepted))


class _Trial:
    """Lets things fail and reads from the beats how long they were missing."""

    def __init__(
        self, cluster: ProcessCluster, app_id: AppId, folder: Path, rng: random.Random
    ) -> None:
        self._cluster = cluster
        self._app_id = app_id
        self._folder = folder
        self._rng = rng
        self._after: Callable[[], None] = lambda: None

    def run(self, kind: str) -> float:
        """Let one failure happen; return the seconds until records flowed again."""
        self._after = lambda: None
        failed_s = self._fail(kind)
        until_s = failed_s + _WATCH_S
        recovered_s = failed_s
        while time.time() < until_s:
            time.sleep(0.1)
            recovered_s = self._end_of_gap(failed_s)
            if recovered_s > failed_s and time.time() - recovered_s > 1.5:
                break
        self._after()
        self.wait_healthy()
        return recovered_s - failed_s

    def wait_healthy(self, timeout_s: float = 60.0) -> None:
        until_s = time.monotonic() + timeout_s
        first: int | None = None
        while time.monotonic() < until_s:
            detail = self._cluster.detail(self._app_id)
            if detail is not None and all(each.pid for each in detail.executors):
                first = detail.epoch if first is None else first
                if detail.epoch >= first + 2:
                    return
            time.sleep(0.05)
        raise TimeoutError("the application does not recover")

    def _fail(self, kind: str) -> float:
        if kind == "task exception":
            (self._folder / "raise").touch()
            return time.time()
        if kind.startswith(("executor", "app master")):
            pid = self._executor() if kind.startswith("executor") else self._app_master()
            number = signal.SIGSTOP if kind.endswith("SIGSTOP") else signal.SIGKILL
            failed_s = time.time()
            os.kill(pid, number)
            self._after = lambda: _resume(pid)
            return failed_s
        daemon = self._cluster.master if kind.startswith("master") else self._worker()
        failed_s = time.time()
        daemon.kill()
        self._after = lambda: _restart(daemon)
        return failed_s

    def _executor(self) -> int:
        detail = self._cluster.detail(self._app_id)
        assert detail is not None, "healthy"
        return self._rng.choice([each.pid for each in detail.executors])

    def _app_master(self) -> int:
        pid = self._cluster.app_master_pid(self._app_id)
        assert pid is not None, "healthy"
        return pid

    def _worker(self) -> Daemon:
        busy = [each for each in self._cluster.workers if each.pid and launched_by(each.pid)]
        return self._rng.choice(busy)

    def longest_gap(self, begin_s: float, end_s: float) -> float:
        gaps = gaps_between(self._folder, "beats", begin_s)
        return max(after - before for before, after in gaps if before <= end_s)

    def _end_of_gap(self, failed_s: float) -> float:
        """Return the end of the longest pause of all beats since a time; that time if none."""
        gaps = [
            (after - before, after)
            for before, after in gaps_between(self._folder, "beats", failed_s - 1)
            if after > failed_s and after - before > _GAP_S
        ]
        return max(gaps, default=(0.0, failed_s))[1]


def _resume(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def _restart(daemon: Daemon) -> None:
    daemon.start()
    daemon.wait_ready()
