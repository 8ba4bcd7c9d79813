"""Folders of checkpoints and sinks are taken away from real processes, and given back."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Final

import pytest

from gearpy.errors import GearpyError
from gearpy.ids import AppId
from gearpy.messages.client import GetApplication
from tests.bench import numbered
from tests.bench.epoch_signs import EpochSigns
from tests.bench.process_cluster import ProcessCluster
from tests.eventually import eventually
from tests.small_disk import SmallDisk, small_disk
from tests.system.cluster_build import GEAR, gear

FAULTS: Final = 10
RATE: Final = 200.0
WITHIN_S: Final = 240.0
#: The budget for restarts is that of users: a store that is away spends nothing of it.
SETTINGS: Final = {
    "checkpoint.interval-ms": "300",
    "application.total-retries": "5",
    "application.retry-window-seconds": "3600",
    "application.backoff-base-ms": "10",
}
_KILLS_MAX: Final = 4


@contextmanager
def moved(folder: Path) -> Iterator[None]:
    """Rename it; nothing comes to be in its place."""
    away = folder.with_name(f"{folder.name}.away")
    folder.rename(away)
    try:
        yield
        assert not folder.exists(), [*folder.rglob("*")]
    finally:
        away.rename(folder)


@contextmanager
def emptied(folder: Path) -> Iterator[None]:
    """Rename it, and leave an empty folder, as an unmounted disk does."""
    away = folder.with_name(f"{folder.name}.away")
    folder.rename(away)
    folder.mkdir()
    try:
        yield
        assert not [*folder.rglob("*")], [*folder.rglob("*")]
    finally:
        shutil.rmtree(folder)
        away.rename(folder)


@contextmanager
def covered(folder: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], check=True)
    try:
        yield
        assert not [*folder.rglob("*")], [*folder.rglob("*")]
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def on_disk(folder: Path, act: Callable[[SmallDisk], None]) -> Iterator[None]:
    disk = SmallDisk(folder)
    act(disk)
    try:
        yield
    finally:
        disk.mend()


@contextmanager
def full(folder: Path) -> Iterator[None]:
    with on_disk(folder, SmallDisk.fill):
        yield


@contextmanager
def forbidden(folder: Path) -> Iterator[None]:
    with on_disk(folder, SmallDisk.forbid):
        yield


class Scene:
    """A cluster whose application goes on; its checkpoints and records are on small disks."""

    def __init__(self, folder: Path, stack: ExitStack, seed: int) -> None:
        self.rng = Random(seed)
        self.results = folder / "results"
        self.results.mkdir()
        for name in ("ckpt", "disk"):
            assert stack.enter_context(small_disk(folder / name, "30m")) is not None
        self.checkpoints = folder / "ckpt" / "checkpoints"
        (self.results / "records").symlink_to(folder / "disk" / "records")
        self.disks = {"checkpoints": folder / "ckpt", "records": folder / "disk"}
        self.folders = {"checkpoints": self.checkpoints, "records": folder / "disk" / "records"}
        settings = {**SETTINGS, "checkpoint.folder": str(self.checkpoints)}
        self.cluster = ProcessCluster(folder, workers=2, slots=16, settings=settings)
        self.signs = EpochSigns(self.checkpoints, self.results)
        self.kills = 0
        self.done: list[str] = []
        self.changes: list[subprocess.Popen[bytes]] = []

    def begin(self) -> AppId:
        (self.disks["records"] / "records").mkdir()
        program = Path(numbered.__file__)
        self.app_id = self.cluster.submit(program, str(self.results), str(RATE), executors=2)
        self.goes_on()
        return self.app_id

    def note(self, *lines: str) -> None:
        self.done += lines
        (self.cluster.folder / "done").write_text("\n".join(self.done), encoding="utf-8")

    def goes_on(self) -> None:
        shown = self.signs.newest_shown()
        eventually(lambda: self.signs.newest_shown() > shown + 2, within_s=WITHIN_S)

    def says(self, text: str, *args: str) -> None:
        eventually(
            lambda: text in gear(*args, settings=self.cluster.settings),
            f"{args} says {text!r}",
            within_s=WITHIN_S,
        )

    def strike(self) -> str:
        """Take a folder away, and do something else meanwhile; return what was done."""
        name = self.rng.choice([*self.folders])
        how = self.rng.choice([moved, emptied, covered, full, forbidden])
        at = self.disks if how is full else self.folders
        also = self.rng.choice(["nothing", "executor", "appmaster", "update"])
        time.sleep(self.rng.random())  # In the middle of anything.
        with how(at[name]):
            time.sleep(self.rng.random())
            self.do(also)
            time.sleep(self.rng.uniform(1, 8))
        return f"{name} {how.__name__}, {also}"

    def do(self, also: str) -> None:
        if also == "update":
            program, rate = str(numbered.__file__), RATE + self.rng.randrange(50)
            self.changes.append(
                subprocess.Popen(
                    [
                        *(*GEAR, "app", "update", *self.cluster.options()),
                        *(str(self.app_id), program, "--", str(self.results), str(rate)),
                    ],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
        elif also != "nothing" and self.kills < _KILLS_MAX:
            self.kills += 1
            with suppress(ProcessLookupError, IndexError):
                os.kill(
                    self.cluster.launched("executor" if also == "executor" else "appmaster")[0],
                    signal.SIGKILL,
                )


@pytest.fixture
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    with ExitStack() as stack:
        made = Scene(tmp_path, stack, getattr(request, "param", 0))
        with made.cluster:
            yield made


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")


@pytest.mark.long
@needs_root
@pytest.mark.parametrize("scene", range(6), indirect=True)
def test_folders_are_taken_away_and_given_back(scene: Scene) -> None:
    app_id = scene.begin()
    for _ in range(FAULTS):
        scene.note(scene.strike())
        scene.goes_on()

    for change in scene.changes:
        change.wait(WITHIN_S)
    end = numbered.end_after(scene.results, RATE)
    numbered.set_end(scene.results, end)
    summary = scene.cluster.client.wait(app_id, WITHIN_S)
    verdict = numbered.check(scene.results, end)
    scene.note(*verdict.report(), repr(summary))
    assert summary.status == "succeeded", scene.done
    assert verdict.is_exact, [*scene.done, *verdict.report()]
    assert summary.progress.restarts <= scene.kills, scene.done


@pytest.mark.long
@needs_root
def test_what_is_away_is_said_and_moved_checkpoints_are_gone_on_from(scene: Scene) -> None:
    app_id, client = scene.begin(), scene.cluster.client
    moved_to = scene.checkpoints.with_name("elsewhere")
    scene.checkpoints.rename(moved_to)
    os.kill(scene.cluster.launched("appmaster")[0], signal.SIGKILL)

    scene.says(f"its store: checkpoint folder {scene.checkpoints} has", "why", str(app_id))
    described = gear("app", "describe", str(app_id), settings=scene.cluster.settings)
    assert "records      0 in" not in described
    assert "epoch        none" not in described
    assert "from the beginning" not in described
    assert not scene.checkpoints.exists()

    said = gear(
        *("app", "restart", str(app_id), "--checkpoint-folder", str(moved_to)),
        settings=scene.cluster.settings,
    )
    assert "starts again as application 2" in said
    scene.goes_on()
    end = numbered.end_after(scene.results, RATE)
    numbered.set_end(scene.results, end)
    assert client.wait(AppId(2), WITHIN_S).status == "succeeded"
    verdict = numbered.check(scene.results, end)
    assert verdict.is_exact, [*verdict.report()]


@pytest.mark.long
@needs_root
def test_a_sink_that_finds_no_folder_costs_no_restart(scene: Scene) -> None:
    (scene.results / "records").unlink()
    (scene.results / "records").symlink_to(scene.results / "no" / "such")
    program = Path(numbered.__file__)
    app_id = scene.cluster.submit(program, str(scene.results), str(RATE), executors=2)

    with pytest.raises(GearpyError, match=r"folder .*/no does not exist: make it first"):
        scene.cluster.client.wait(app_id, WITHIN_S)

    assert scene.cluster.client.ask(GetApplication(app_id=app_id)).progress.restarts == 0
