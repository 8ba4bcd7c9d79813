"""An application of processes that is changed under flow, with a process killed in the middle."""

import json
import os
import random
import signal
import threading
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.programs.upload import upload
from gearpy.errors import GearpyError
from gearpy.ids import AppId
from gearpy.messages.client import UpdateApplication, VersionSummary
from tests.bench.process_cluster import ProcessCluster
from tests.eventually import eventually

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


def program(folder: Path, name: str, made_by: str) -> str:
    path = folder / name / "numbers.py"
    path.parent.mkdir()
    path.write_text(_PROGRAM.replace("MADE_BY", made_by))
    return str(path)


def shown(results: Path) -> list[tuple[int, int, str]]:
    lines = [line for file in results.glob("*.jsonl") for line in file.read_text().splitlines()]
    return [tuple(json.loads(line)) for line in lines]


def problem(results: Path) -> str:
    """Return what is wrong with the counts: of each key 1, 2, 3, ..., and no number twice."""
    rows, counts = shown(results), defaultdict[int, list[int]](list)
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
        path = Path(program(self.folder, "first", "'first'"))
        self.app_id = self.cluster.submit(path, str(self.results), str(self.beside), executors=2)
        self.wait_for("first")

    def wait_for(self, made_by: str) -> None:
        eventually(lambda: made_by in {each[2] for each in shown(self.results)}, within_s=_WITHIN_S)

    def update(self, name: str, made_by: str) -> int:
        target = program(self.folder, name, made_by)
        control = self.client.ask
        folders = [str(self.results), str(self.beside)]
        artifact = upload(control, target, self.cluster.config, args=folders)
        return self.change(UpdateApplication(app_id=self.app_id, artifact=artifact))

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
        assert planned[-1].goes_on == ("numbers beside", "count beside", "show beside")
        return planned[-1].version

    def settled(self, version: int) -> str:
        """Return the state of a version when it is decided, whoever has died meanwhile."""
        found: list[str] = []

        def is_settled() -> bool:
            with suppress(GearpyError):
                versions = self.client.versions(self.app_id)
                found[:] = [each.state for each in versions if each.number == version]
            return bool(found) and found[0] not in {"preparing", "trial"}

        eventually(is_settled, within_s=_WITHIN_S)
        return found[0]

    def wait_for_more(self) -> None:
        """Wait until both pipelines show more than now."""
        before = [len(shown(each)) for each in (self.results, self.beside)]

        def is_more() -> bool:
            now = [len(shown(each)) for each in (self.results, self.beside)]
            return all(one < other for one, other in zip(before, now, strict=True))

        eventually(is_more, within_s=_WITHIN_S)

    def drain(self) -> None:
        """Have it end, as soon as somebody listens."""

        def is_asked() -> bool:
            try:
                self.client.drain(self.app_id)
            except GearpyError:
                return False
            return True

        eventually(is_asked, within_s=_WITHIN_S)
        assert self.client.wait(self.app_id, _WITHIN_S).status == "terminated"

    def outcome(self, version: int) -> VersionSummary:
        return self.client.wait_for_version(self.app_id, version, _WITHIN_S)


@pytest.mark.long
def test_update_and_scale_under_flow_with_an_executor_killed(tmp_path: Path) -> None:
    """Each number is counted once, by the version that read it."""
    settings = {"checkpoint.interval-ms": "200", "application.trial-seconds": "1"}
    with ProcessCluster(tmp_path, workers=2, slots=8, settings=settings) as cluster:
        scene = Scene(cluster, tmp_path)
        scene.submit()

        version = scene.update("second", "'second'")
        killer = threading.Thread(target=kill_an_executor, args=(cluster,))
        killer.start()
        second = scene.outcome(version)
        killer.join()
        if second.state == "running":
            scene.wait_for("second")
        scaled = scene.outcome(
            scene.change(UpdateApplication(app_id=scene.app_id, scale=(("count", 3),)))
        )
        broken = scene.outcome(scene.update("broken", "1 // 0"))
        history = scene.client.versions(scene.app_id)
        scene.client.drain(scene.app_id)
        summary = scene.client.wait(scene.app_id, _WITHIN_S)

    assert summary.status == "terminated"
    assert scaled.state == "running"
    assert (broken.state, "ZeroDivisionError" in broken.reason) == ("failed", True)
    assert history[-1].change == f"back to version {scaled.number}"
    assert second.state in {"running", "failed"}  # It is given up if its own process was killed.
    assert problem(scene.results) == ""
    assert problem(scene.beside) == ""


def kill_an_executor(cluster: ProcessCluster) -> None:
    pids = cluster.launched("executor")
    if pids:
        os.kill(pids[0], signal.SIGKILL)


_VICTIMS: Final = ("executor", "appmaster", "worker", "master")


@pytest.mark.long
@pytest.mark.parametrize("victim", _VICTIMS)
def test_a_change_with_a_process_killed_in_the_middle(tmp_path: Path, victim: str) -> None:
    """Whatever is killed, and whenever: each number is counted once, also beside the change."""
    settings = {"checkpoint.interval-ms": "200", "application.trial-seconds": "1"}
    rng, states = random.Random(victim), []
    with ProcessCluster(tmp_path, workers=3, slots=16, settings=settings) as cluster:
        scene = Scene(cluster, tmp_path)
        scene.submit()
        for number in range(4):
            if number % 2:
                scale = (("count", 1 + rng.randrange(4)),)
                version = scene.change(UpdateApplication(app_id=scene.app_id, scale=scale))
            else:
                version = scene.update(f"next{number}", f"'next{number}'")
            time.sleep(rng.random() * 4)
            kill(cluster, victim, rng)
            states.append(scene.settled(version))
            scene.wait_for_more()
        scene.drain()

    assert {*states} <= {"running", "failed", "replaced"}
    assert problem(scene.results) == ""
    assert problem(scene.beside) == ""


def kill(cluster: ProcessCluster, victim: str, rng: random.Random) -> None:
    """Kill a process of this kind with SIGKILL; daemons start again."""
    if victim in {"executor", "appmaster"}:
        if pids := cluster.launched("executor" if victim == "executor" else "appmaster"):
            os.kill(rng.choice(pids), signal.SIGKILL)
        return
    daemon = cluster.master if victim == "master" else rng.choice(cluster.workers)
    daemon.kill()
    daemon.start()
    daemon.wait_ready()
