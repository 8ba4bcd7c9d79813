"""Whole clusters in virtual time, each with faults of its own, one for each seed.

Master, workers, app master, executors and tasks are the real ones; processes are killed and
frozen, connections cut and reset, frames sent twice. The answer has a closed form. A seed that
fails gives the same failure again.
"""

import multiprocessing
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import gearpy as gp
from gearpy.dsl.stream import StreamApp
from gearpy.ids import MASTER_EXECUTOR
from gearpy.task.aggregate import WindowResult
from gearpy.testing.cluster import ClusterSimulation, Process

__all__ = ["FAULTS", "SeedResult", "run_seed", "run_seeds"]

_RECORDS: Final = 800
_WORDS: Final = 7
_WINDOW_MS: Final = 100
_FAULTS_MAX: Final = 12
_WITHIN_MS: Final = 300_000

_Results: TypeAlias = list[WindowResult[str, int]]


@dataclass(slots=True)
class SeedResult:
    """What one seed came to; ``problem`` is empty when all was right."""

    seed: int
    problem: str = ""
    faults: list[str] = field(default_factory=list)
    restarts: int = 0
    events: int = 0
    virtual_ms: int = 0


class _Reader(gp.SourceReader):
    """Every second number, a few at a time, with pauses, so that virtual time passes."""

    def __init__(self, part: int, at: int) -> None:
        self._part, self._at = part, at
        self._rests = False

    def read_batch(self, max_records: int) -> gp.Batch | None:
        self._rests = not self._rests
        if self._rests:
            return None
        end = min(self._at + 8, _RECORDS)
        numbers = [n for n in range(self._at, end) if n % 2 == self._part]
        self._at = end
        self.finished = end == _RECORDS
        return gp.Batch([f"w{n % _WORDS}" for n in numbers], numbers)

    def snapshot(self) -> int:
        return self._at

    @property
    def watermark_ms(self) -> int:
        return self._at


class _Source(gp.Source):
    replayable = True
    bounded = True

    def partitions(self) -> Sequence[str]:
        return ["0", "1"]

    def open(self, partition: str, resume: Any | None) -> _Reader:
        return _Reader(int(partition), resume or 0)


def _word_count(results: _Results) -> StreamApp:
    app = StreamApp("words", parallelism=2)
    (
        app.read(_Source())
        .map(str.upper)
        .key_by(lambda word: word)
        .window(gp.tumbling(_WINDOW_MS))
        .count()
        .write(gp.memory(results))
    )
    return app


def _expected() -> Counter[tuple[str, int]]:
    return Counter((f"W{n % _WORDS}", n // _WINDOW_MS * _WINDOW_MS) for n in range(_RECORDS))


class _Faults:
    """Does something bad to a cluster every now and then; which things is drawn once."""

    def __init__(self, cluster: ClusterSimulation, done: list[str]) -> None:
        self._cluster = cluster
        self._done = done
        self._rng = cluster.world.rng
        kinds = [kind for kind in FAULTS if self._rng.random() < 0.6]  # noqa: PLR2004
        self._kinds = kinds or list(FAULTS)
        self._left = self._rng.randrange(_FAULTS_MAX + 1)
        self._pause_ms = self._rng.choice([200, 900, 3000])
        cluster.world.later(self._rng.randrange(100, 2500), self._next)

    def _next(self) -> None:
        if self._left <= 0:
            return
        self._left -= 1
        kind = self._rng.choice(self._kinds)
        if FAULTS[kind](self, self._rng):
            self._done.append(f"{self._cluster.world.now_ms} {kind}")
        self._cluster.world.later(self._rng.randrange(50, self._pause_ms + 51), self._next)

    def kill_executor(self, rng: random.Random) -> bool:
        return self._kill_one_of(
            [
                each
                for each in self._cluster.launched()
                if each.launch is not None and each.launch.executor_id != MASTER_EXECUTOR
            ],
            rng,
        )

    def kill_app_master(self, rng: random.Random) -> bool:
        return self._kill_one_of(self._cluster.launched(MASTER_EXECUTOR), rng)

    def kill_worker(self, rng: random.Random) -> bool:
        number = rng.randrange(len(self._cluster.workers))
        if not self._cluster.workers[number].is_alive:
            return False
        self._cluster.kill(self._cluster.workers[number])

        def start() -> None:
            self._cluster.workers[number] = self._cluster.start_worker(number)

        self._cluster.world.later(rng.randrange(50, 1500), start)
        return True

    def kill_master(self, rng: random.Random) -> bool:
        if not self._cluster.master.is_alive:
            return False
        self._cluster.kill(self._cluster.master)
        self._cluster.world.later(rng.randrange(50, 1500), self._cluster.start_master)
        return True

    def freeze(self, rng: random.Random) -> bool:
        if self._cluster.processes:
            self._cluster.pause(rng.choice(self._cluster.processes), rng.randrange(100, 12_000))
        return bool(self._cluster.processes)

    def reset(self, rng: random.Random) -> bool:
        if len(self._cluster.processes) < 2:  # noqa: PLR2004
            return False
        one, other = rng.sample(self._cluster.processes, 2)
        self._cluster.network.reset_link(one.address, other.address)
        return True

    def cut(self, rng: random.Random) -> bool:
        if len(self._cluster.processes) < 2:  # noqa: PLR2004
            return False
        one, other = rng.sample(self._cluster.processes, 2)
        self._cluster.network.cut(one.nodes.node, other.nodes.node, rng.randrange(100, 12_000))
        return True

    def _kill_one_of(self, processes: list[Process], rng: random.Random) -> bool:
        if processes:
            self._cluster.kill(rng.choice(processes))
        return bool(processes)


#: What may happen, by name.
FAULTS: Final[dict[str, Callable[[_Faults, random.Random], bool]]] = {
    "executor killed": _Faults.kill_executor,
    "app master killed": _Faults.kill_app_master,
    "worker killed": _Faults.kill_worker,
    "master killed": _Faults.kill_master,
    "process frozen": _Faults.freeze,
    "connection reset": _Faults.reset,
    "network cut": _Faults.cut,
}


def run_seed(seed: int) -> SeedResult:
    """Run one cluster to the end of its application; compare the answer."""
    result, written = SeedResult(seed), _Results()
    try:
        cluster = ClusterSimulation(seed, duplicates=0.05 if seed % 3 == 0 else 0.0)
        running = cluster.submit(lambda: _word_count(written), executors=3)
        _Faults(cluster, result.faults)
        summary = cluster.run_to_end(running.app_id, within_ms=_WITHIN_MS)
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the seed
        result.problem = f"{type(error).__name__}: {error}"
        return result
    result.events, result.virtual_ms = cluster.world.events, cluster.world.elapsed_ms
    if summary is None:
        result.problem = f"not over after {_WITHIN_MS} virtual ms"
    elif summary.status != "succeeded":
        result.problem = f"{summary.status}: {summary.cause.cause if summary.cause else ''}"
    else:
        result.restarts = summary.progress.restarts
        result.problem = _difference(written)
    return result


def _difference(written: _Results) -> str:
    """Return what is wrong with the answer. What was written twice must be the same twice."""
    expected = _expected()
    wrong = {each for each in written if expected[each.key, each.start] != each.value}
    missing = expected.keys() - {(each.key, each.start) for each in written}
    if not wrong and not missing:
        return ""
    return f"wrong: {sorted(wrong)[:3]}, missing: {sorted(missing)[:3]}"


def run_seeds(first: int, count: int, *, processes: int) -> Iterator[SeedResult]:
    """Run many seeds in several processes; gives results as they come."""
    seeds = range(first, first + count)
    if processes == 1:
        yield from map(run_seed, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(run_seed, seeds, chunksize=20)
