"""Three masters as processes: losing one costs nothing that was promised."""

import signal
from pathlib import Path

import pytest

from gearpy.ids import AppId
from gearpy.messages.masters import GetMasters
from tests.bench.masters import measure_masters
from tests.bench.process_cluster import Daemon, ProcessCluster
from tests.eventually import eventually

pytestmark = pytest.mark.long

_PATIENCE_S = 120.0
_PROGRAM = """\
from itertools import count
import gearpy as gp

def main(args):
    app = gp.StreamApp(args[0])
    words = app.read(gp.generate(count, rate=50)).map(lambda n: f"word{n % 7}")
    counts = words.key_by(lambda word: word).window(gp.tumbling("1s")).count()
    counts.map(str).write(gp.jsonl_folder(args[1]))
    return app
"""


class Scene:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "words.py"
        self.program.write_text(_PROGRAM, encoding="utf-8")
        settings = {"application.backoff-base-ms": "10"}
        self.cluster = ProcessCluster(folder, masters=3, workers=1, settings=settings)
        self.names: dict[AppId, str] = {}

    def submit(self, name: str) -> AppId:
        number = self.cluster.submit(self.program, name, str(self.folder / name), executors=1)
        self.names[number] = name
        return number

    def leader(self) -> Daemon:
        leader: Daemon = eventually(self.cluster.leader, within_s=_PATIENCE_S)
        return leader

    def has_all(self) -> bool:
        """Whether the masters know all that they have acknowledged, and all of it runs."""
        known = {each.app_id: each for each in self.cluster.client.applications()}
        assert {number: each.name for number, each in known.items()} == self.names
        return all(each.status == "active" for each in known.values())

    def results(self, number: AppId) -> int:
        return sum(
            len(each.read_text().splitlines())
            for each in (self.folder / self.names[number]).glob("*.jsonl")
        )


def test_losing_one_of_three_costs_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Killed, frozen or all at once; what runs is not touched, and a frozen leader is refused."""
    scene = Scene(tmp_path)
    with scene.cluster as cluster:
        first = scene.submit("first")
        eventually(scene.has_all, within_s=_PATIENCE_S)
        eventually(lambda: scene.results(first), within_s=_PATIENCE_S)
        processes = cluster.launched()

        killed = scene.leader()
        killed.kill()
        scene.submit("second")
        eventually(scene.has_all, within_s=_PATIENCE_S)
        killed.start()
        killed.wait_ready()

        frozen = scene.leader()
        frozen.signal(signal.SIGSTOP)
        scene.submit("third")
        frozen.signal(signal.SIGCONT)
        eventually(scene.has_all, within_s=_PATIENCE_S)
        eventually(lambda: scene.leader() is not frozen, within_s=_PATIENCE_S)
        assert frozen.pid is not None

        for each in cluster.masters:
            each.kill()
        before = scene.results(first)
        for each in cluster.masters:
            each.start()
        eventually(scene.has_all, within_s=_PATIENCE_S)
        eventually(lambda: scene.results(first) > before, within_s=_PATIENCE_S)

        running = cluster.launched()
        assert set(processes) <= set(running)


def test_masters_are_restarted_one_after_the_other_without_a_stop(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    with scene.cluster as cluster:
        first = scene.submit("first")
        eventually(scene.has_all, within_s=_PATIENCE_S)
        processes = cluster.launched()

        def are_all_there() -> bool:
            return all(each.role != "away" for each in cluster.client.ask(GetMasters()).masters)

        for number, each in enumerate(cluster.masters):
            assert each.stop() == 0
            scene.submit(f"during{number}")
            each.start()
            each.wait_ready()
            eventually(are_all_there, within_s=_PATIENCE_S)

        eventually(scene.has_all, within_s=_PATIENCE_S)
        before = scene.results(first)
        eventually(lambda: scene.results(first) > before, within_s=_PATIENCE_S)
        running = cluster.launched()
        assert set(processes) <= set(running)


def test_all_masters_are_exchanged_while_everything_runs(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    with scene.cluster as cluster:
        first = scene.submit("first")
        eventually(scene.has_all, within_s=_PATIENCE_S)
        processes = cluster.launched()
        old, client = dict(zip(cluster.addresses, cluster.masters, strict=True)), cluster.client

        new = {cluster.add_master(), cluster.add_master()}
        for address, daemon in old.items():
            client.change_masters("remove", address)
            daemon.stop()

        def have_taken_over() -> bool:
            found = client.ask(GetMasters()).masters
            return {each.address for each in found} == new and any(each.leads for each in found)

        eventually(have_taken_over, within_s=_PATIENCE_S)
        scene.submit("second")
        eventually(scene.has_all, within_s=_PATIENCE_S)
        before = scene.results(first)
        eventually(lambda: scene.results(first) > before, within_s=_PATIENCE_S)
        running = cluster.launched()
        assert set(processes) <= set(running)


def test_what_clients_have_seen_under_blows_fits_one_order(tmp_path: Path) -> None:
    result = measure_masters(tmp_path, rounds=8)

    assert len(result.blows) == 8
    assert result.problem == ""
