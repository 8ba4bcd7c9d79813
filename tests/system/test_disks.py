"""Disks of daemons that are full, or may not be written: refused in words, and gone on from."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from gearpy.errors import GearpyError
from gearpy.messages.client import Artifact
from gearpy.messages.masters import GetMasters
from tests.bench import numbered
from tests.bench.crash import EPOCHS_OFTEN
from tests.bench.epoch_signs import EpochSigns
from tests.bench.process_cluster import ProcessCluster
from tests.eventually import eventually
from tests.small_disk import SmallDisk, small_disk
from tests.system.cluster_build import gear
from tests.system.tampered_process import environment, tamper

RATE: Final = 400.0
WITHIN_S: Final = 60.0
FOLDERS: Final = ("master", "worker", "checkpoints", "logs")
#: Such an application costs masters their log, and nobody else anything.
_WAITS: Final = {"application.hosts": "nowhere"}
_NOWHERE: Final = Artifact(kind="file", location="/nowhere.py")
SAYS: Final = {"fill": "No space left on device", "forbid": "Read-only file system"}


class Scene:
    """A cluster with a small disk for each kind of folder, and an application that goes on."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.results = folder / "results"
        self.results.mkdir()
        self.disks: dict[str, SmallDisk] = {}
        for name in FOLDERS:
            disk = stack.enter_context(small_disk(folder / name, "2m"))
            assert disk is not None
            self.disks[name] = disk
        self.cluster = ProcessCluster(folder, workers=1, slots=32, settings=EPOCHS_OFTEN)
        self.signs = EpochSigns(folder / "checkpoints", self.results)

    def goes_on(self) -> None:
        shown = self.signs.newest_shown()
        eventually(lambda: self.signs.newest_shown() > shown + 2, within_s=WITHIN_S)

    def gear(self, *args: str, code: int = 0) -> str:
        return gear(*args, settings=self.cluster.settings, code=code)

    def says(self, text: str, *args: str) -> None:
        eventually(lambda: text in self.gear(*args), f"{args} says {text!r}", within_s=WITHIN_S)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        made = Scene(tmp_path, stack)
        with made.cluster:
            yield made


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
@pytest.mark.parametrize("fault", ["fill", "forbid"])
def test_each_daemon_says_what_it_cannot_write_and_goes_on_later(scene: Scene, fault: str) -> None:
    """One folder after the other; the results of the application are right in the end."""
    cluster, disks, says = scene.cluster, scene.disks, SAYS[fault]
    program = Path(numbered.__file__)
    app_id = cluster.submit(program, str(scene.results), str(RATE), executors=2)
    scene.goes_on()

    getattr(disks["logs"], fault)()  # Nobody ends because of a log.
    scene.goes_on()
    disks["logs"].mend()

    getattr(disks["checkpoints"], fault)()
    scene.says(says, "why", str(app_id))
    disks["checkpoints"].mend()
    scene.goes_on()

    getattr(disks["worker"], fault)()
    os.kill(cluster.launched("executor")[0], signal.SIGKILL)
    if fault == "forbid":  # An executor needs a folder, and no room.
        scene.says(says, "app", "describe", str(app_id))
        disks["worker"].mend()
    scene.goes_on()
    disks["worker"].mend()

    getattr(disks["master"], fault)()
    master: Any = cluster.master
    if fault == "fill":
        with pytest.raises(GearpyError):  # More than the last block of a file has room for.
            cluster.client.submit("large", _NOWHERE, config={"application.hosts": "x" * 10_000})
    else:
        master.kill()
        master.start()
    eventually(lambda: master.pid is None, within_s=WITHIN_S)
    said = (cluster.folder / "master.out").read_text()
    assert says in said
    assert "Traceback" not in said
    disks["master"].mend()
    master.start()
    master.wait_ready()
    scene.goes_on()

    end = numbered.end_after(scene.results, RATE / 4)
    numbered.set_end(scene.results, end)
    assert cluster.client.wait(app_id, WITHIN_S).status == "succeeded"
    verdict = numbered.check(scene.results, end)
    assert verdict.is_exact, [*verdict.report()]


@pytest.mark.long
def test_a_master_whose_disk_is_slow_lets_another_one_lead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowness, masters = tmp_path / "slowness", ("master", "master1", "master2")
    with monkeypatch.context() as patch:
        for name, value in environment(slowness).items():
            patch.setenv(name, value)
        cluster = ProcessCluster(tmp_path, masters=3, workers=0)

    accepted, numbers = set[str](), count()

    def another_leads() -> bool:
        name = f"app{next(numbers)}"
        with suppress(GearpyError):  # It may have been done.
            cluster.client.submit(name, _NOWHERE, config=_WAITS)
            accepted.add(name)
        return cluster.leader() not in {None, leader}

    with cluster:
        leader = eventually(cluster.leader, within_s=WITHIN_S)
        slow = masters[cluster.masters.index(leader)]
        tamper(slowness, slow, sync_s=3.0)
        eventually(another_leads, within_s=WITHIN_S)
        tamper(slowness, slow)

        eventually(lambda: all_are_there(cluster), within_s=WITHIN_S)
        assert leader.pid is not None
        assert accepted <= {each.name for each in cluster.client.applications()}


def all_are_there(cluster: ProcessCluster) -> bool:
    with suppress(GearpyError):
        return all(each.role != "away" for each in cluster.client.ask(GetMasters()).masters)
    return False
