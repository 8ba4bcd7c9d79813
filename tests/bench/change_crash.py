"""Changes of an application of processes, with a process killed in the middle of each.

Two pipelines count numbers by key; one of them is changed. Whatever is killed, and whenever: each
number is counted once, by a version that has read it, and beside the change nothing is different.
"""

import json
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.programs.upload import upload
from gearpy.errors import GearpyError
from gearpy.ids import AppId
from gearpy.messages.client import GetVersions, UpdateApplication, VersionSummary
from tests.bench.process_cluster import ProcessCluster
from tests.eventually import eventually

VICTIMS: Final = ("executor", "appmaster", "worker", "master")
SETTINGS: Final = {
    "checkpoint.interval-ms": "200",
    "application.trial-seconds": "1",
    # Failures are far apart in life: no budget of restarts is to be used up here.
    "application.total-retries": "100000",
    "application.retry-window-seconds": "1",
}
_AFTER_S: Final = 6.0  #: A process is killed within this time after a change was asked for.
_PROGRAM: Final = """\
import time
import gearpy as gp

class Numbers(gp.Source):
    replayable = True

    def partitions(self):
        return ["0", "1"]

    def open(self, partition, resume):
        return Reader(int(partition), resume or 0)

class Reader(gp.SourceReader):
    def __init__(self, part, at):
        self.part, self.at = part, at

    def read_batch(self, max_records):
        time.sleep(0.01)
        values = [2 * n + self.part for n in range(self.at, self.at + 5)]
        self.at += 5
        return gp.Batch(values, values)

    def snapshot(self):
        return self.at

    @property
    def watermark_ms(self):
        return 2 * self.at + self.part

def counting(made_by):
    def count(before, number):
        return before + 1, [number, before + 1, made_by()]
    return count

def main(args):
    app = gp.StreamApp("numbers", parallelism=2)
    makers = (lambda: MADE_BY), (lambda: "any")
    for folder, more, made_by in zip(args, ("", " beside"), makers):
        keyed = app.read(Numbers(), name="numbers" + more).key_by(lambda number: number % 5)
        counted = keyed.map_with_state(counting(made_by), initial=0, name="count" + more)
        counted.write(gp.jsonl_folder(folder), name="show" + more)
    return app
"""
_WITHIN_S: Final = 120.0


def _program(folder: Path, name: str, made_by: str) -> str:
    path = folder / name / "numbers.py"
    path.parent.mkdir()
    path.write_text(_PROGRAM.replace("MADE_BY", made_by))
    return str(path)


def _shown(results: Path) -> list[tuple[int, int, str]]:
    lines = [line for file in results.glob("*.jsonl") for line in file.read_text().splitlines()]
    return [tuple(json.loads(line)) for line in lines]


def _problem(results: Path) -> str:
    """Return what is wrong with the counts: of each key 1, 2, 3, ..., and no number twice."""
    rows, counts = _shown(results), defaultdict[int, list[int]](list)
    for number, count, _ in rows:
        counts[number % 5].append(count)
    wrong = [key for key, each in counts.items() if sorted(each) != [*range(1, len(each) + 1)]]
    twice = len(rows) - len({number for number, *_ in rows})
    return f"counts of {wrong} are wrong, {twice} numbers are twice" if wrong or twice else ""


class Scene:
    def __init__(self, cluster: ProcessCluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.results = folder / "results"
        self.beside = folder / "beside"  #: Of the pipeline that no change touches.
        self.app_id = AppId(0)

    @property
    def client(self) -> ClusterClient:
        return self.cluster.client

    def submit(self) -> None:
        path = Path(_program(self.folder, "first", "'first'"))
        self.app_id = self.cluster.submit(path, str(self.results), str(self.beside), executors=2)
        self.wait_for("first")

    def wait_for(self, made_by: str) -> None:
        eventually(
            lambda: made_by in {each[2] for each in _shown(self.results)}, within_s=_WITHIN_S
        )

    @property
    def newest(self) -> int:
        """The largest number that is shown; it is its event time, too."""
        return max(number for number, *_ in _shown(self.results))

    def shown_by(self, number: int) -> dict[bool, set[str]]:
        """Return who has shown the numbers before one, and who it and those behind it."""
        makers: dict[bool, set[str]] = {False: set(), True: set()}
        for each, _, made_by in _shown(self.results):
            makers[each >= number].add(made_by)
        return makers

    def update(self, name: str, made_by: str, *, at_event_ms: int | None = None) -> int:
        target = _program(self.folder, name, made_by)
        folders = [str(self.results), str(self.beside)]
        artifact = upload(self.client.send, target, self.cluster.config, args=folders)
        return self.change(
            UpdateApplication(app_id=self.app_id, artifact=artifact, at_event_ms=at_event_ms)
        )

    def change(self, message: UpdateApplication) -> int:
        """Ask until nothing is in the way, such as tasks that are being restarted."""
        planned = []

        def is_taken() -> bool:
            try:
                planned.append(self.client.change(message))
            except GearpyError:
                return False
            return True

        eventually(is_taken, within_s=_WITHIN_S)
        assert not planned[-1].refusal
        if message.artifact is not None:
            assert planned[-1].goes_on == ("numbers beside", "count beside", "show beside")
        return planned[-1].version

    def settled(self, version: int) -> str:
        """Return the state of a version when it is decided, whoever has died meanwhile."""
        found: list[str] = []

        def is_settled() -> bool:
            with suppress(GearpyError):
                versions = self.client.ask(GetVersions(app_id=self.app_id)).versions
                found[:] = [each.state for each in versions if each.number == version]
            return bool(found) and found[0] not in {"preparing", "trial"}

        eventually(is_settled, within_s=_WITHIN_S)
        return found[0]

    def wait_for_more(self) -> None:
        before = [len(_shown(each)) for each in (self.results, self.beside)]

        def is_more() -> bool:
            now = [len(_shown(each)) for each in (self.results, self.beside)]
            return all(one < other for one, other in zip(before, now, strict=True))

        eventually(is_more, within_s=_WITHIN_S)

    def drain(self) -> None:
        def is_asked() -> bool:
            try:
                self.client.drain(self.app_id)
            except GearpyError:
                return False
            return True

        eventually(is_asked, within_s=_WITHIN_S)
        assert self.client.wait(self.app_id, _WITHIN_S).status == "terminated"

    @property
    def problem(self) -> str:
        """What is wrong with what both pipelines show; empty if nothing is."""
        return _problem(self.results) or _problem(self.beside)

    def outcome(self, version: int) -> VersionSummary:
        return self.client.wait_for_version(self.app_id, version, _WITHIN_S)


def change_crash(
    folder: Path, *, kills: int, seed: int, victims: Sequence[str] = VICTIMS
) -> Iterator[str]:
    """Change an application so often, and kill a process in each change; tell what came out."""
    rng, states, killed = random.Random(seed), Counter[str](), Counter[str]()
    with ProcessCluster(folder, workers=3, slots=16, settings=SETTINGS) as cluster:
        scene = Scene(cluster, folder)
        scene.submit()
        for number in range(kills):
            victim = victims[number % len(victims)]
            if rng.random() < 0.3:
                scale = (("count", 1 + rng.randrange(4)),)
                version = scene.change(UpdateApplication(app_id=scene.app_id, scale=scale))
            else:
                version = scene.update(f"next{number}", f"'next{number}'")
            delay_s = rng.random() * _AFTER_S
            time.sleep(delay_s)
            _kill(cluster, victim, rng)
            state = scene.settled(version)
            scene.wait_for_more()
            killed[victim] += 1
            states[state] += 1
            yield f"{victim} killed {delay_s:.1f} s after version {version} was asked for: {state}"
        scene.drain()
    if scene.problem:
        raise RuntimeError(scene.problem)
    numbers = len(_shown(scene.results)) + len(_shown(scene.beside))
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    yield f"{sum(killed.values())} kills, versions {told}; {numbers} numbers, 0 lost, 0 twice"


def _kill(cluster: ProcessCluster, victim: str, rng: random.Random) -> None:
    """Kill a process of this kind with SIGKILL; daemons start again."""
    if victim in {"executor", "appmaster"}:
        if pids := cluster.launched("executor" if victim == "executor" else "appmaster"):
            os.kill(rng.choice(pids), signal.SIGKILL)
        return
    daemon = cluster.master if victim == "master" else rng.choice(cluster.workers)
    daemon.kill()
    daemon.start()
    daemon.wait_ready()
