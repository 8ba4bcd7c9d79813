"""What a user does with checkpoints from the command line, on a cluster of processes.

One application after the other goes on from what the one before has stored, and all write into one
folder: in the end each number is there once, with the count that its key had come to.
"""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from gearpy.cli.terminal.exits import FAILED, WRONG_USE
from tests.eventually import DEADLINE_S, eventually
from tests.system.cluster_build import GEAR, Scene, environment

_PROGRAM: Final = """\
import itertools, os
import gearpy as gp

def numbered(seen, n):
    return seen + 1, {"n": n, "seen": seen + 1}

def main(args):
    (out,) = args

    def numbers():
        for n in itertools.count():
            if os.path.exists(out + ".stop"):
                return
            yield n

    app = gp.StreamApp("numbered")
    (app.read(gp.generate(numbers, rate=400))
        .key_by(lambda n: n % 5)
        .map_with_state(numbered, initial=0)
        .write(gp.jsonl_folder(out)))
    return app
"""
_SOURCE: Final = "0.0"
_PARTITION: Final = "00000"
_SKIPPED: Final = 5_000


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    scene = Scene(tmp_path_factory.mktemp("tools"), workers=1)
    (scene.folder / "numbered.py").write_text(_PROGRAM, encoding="utf-8")
    with scene.cluster:
        yield scene


class Job:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.out = scene.folder / "results"

    def submit(self, *options: str) -> int:
        options = ("--executors", "2", "--set", "streaming.batch-max-records=50", *options)
        return self.scene.submit("numbered.py", *options, "--", str(self.out))

    def stores_epochs(self, app_id: int) -> None:
        """Wait until readers see more, and then until some more epochs are complete."""
        shown = len(self.records())
        eventually(lambda: len(self.records()) > shown)
        first = self.scene.summary(app_id)["progress"]["epoch"]
        eventually(lambda: self.scene.summary(app_id)["progress"]["epoch"] >= first + 3)

    def kill(self, app_id: int) -> int:
        """Kill it; return how many numbers have been read in complete epochs."""
        self.scene.gear("app", "kill", str(app_id))
        assert self.scene.ends(app_id)["status"] == "terminated"
        return self.place(app_id)

    def place(self, app_id: int) -> int:
        (epoch,) = self.scene.ask("checkpoint", "show", str(app_id))["epochs"]
        place = epoch["offsets"][_SOURCE][_PARTITION]
        position: int = place["position"]
        return position

    def records(self) -> list[dict[str, int]]:
        files = sorted(self.out.glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def check(records: list[dict[str, int]], numbers: list[int]) -> None:
    """Each number is there once; the keys were counted without a gap."""
    assert sorted(each["n"] for each in records) == numbers
    counts = Counter(n % 5 for n in numbers)
    for key, count in counts.items():
        seen = [
            each["seen"]
            for each in sorted(records, key=lambda each: each["n"])
            if each["n"] % 5 == key
        ]
        assert seen == list(range(1, count + 1))


@pytest.mark.long  # Each command: `tests/cli/stored/test_checkpoint_commands`.
def test_a_user_goes_on_from_checkpoints(scene: Scene) -> None:
    job = Job(scene)

    first = job.submit()
    job.stores_epochs(first)
    _look_at_what_runs(scene, first)
    job.kill(first)
    second = job.submit("--from-checkpoint", str(first))
    job.stores_epochs(second)
    place = job.kill(second)
    _skip(scene, second, place)
    third = job.submit("--from-checkpoint", str(second))
    job.stores_epochs(third)
    (job.out.parent / "results.stop").touch()
    assert scene.ends(third)["status"] == "succeeded"

    last = max(each["n"] for each in job.records())
    check(job.records(), [*range(place), *range(place + _SKIPPED, last + 1)])
    assert last > place + _SKIPPED
    _find_damage(scene, second)
    _drop(scene, first, second)


def _look_at_what_runs(scene: Scene, app_id: int) -> None:
    """List, show and verify, without disturbing; the log has what the app master stores."""
    ref = str(app_id)
    (cluster, _, name) = scene.ask("checkpoint", "list", ref)["prefix"].partition("/")
    assert (cluster, name) == (scene.ask("info")["cluster_id"], f"app{app_id}")
    assert "newest" in scene.gear("checkpoint", "list", ref)
    shown = scene.gear("checkpoint", "show", ref)
    assert all(part in shown for part in ("generate(numbers)", '"position": ', "keyed state"))
    _verify_what_runs(scene, ref)
    log = scene.gear("log", ref)
    for part in ("set-config", "batch-max-records", "dag", "set-checkpoint", "epoch"):
        assert part in log
    described = scene.gear("app", "describe", ref)
    assert f"generate(numbers) -> jsonl_folder({scene.folder / 'results'}): exactly-once" in (
        described
    )
    (epochs,) = scene.ask("app", "describe", ref)["detail"]["epochs"]
    assert epochs["epoch"] > 0
    assert epochs["stored_ms"] > 0
    assert epochs["size_bytes"] > 0
    assert (epochs["aborted"], epochs["fallbacks"]) == (0, 0)
    for command in (("clean", ref), ("drop", ref)):
        told = scene.gear("checkpoint", *command, "--apply", code=WRONG_USE)
        assert f"application {ref} is active: stop it first" in told
        assert "--force" not in told


def _verify_what_runs(scene: Scene, ref: str) -> None:
    """Nothing is damaged; that files of old epochs go meanwhile is no damage."""
    verdicts: list[Any] = scene.ask("checkpoint", "verify", ref)["epochs"]
    assert verdicts
    assert not any(each["damage"] for each in verdicts)


def _skip(scene: Scene, app_id: int, place: int) -> None:
    ref, settings = str(app_id), ("checkpoint", "set", str(app_id), _SOURCE)
    (epoch,) = scene.ask("checkpoint", "show", ref)["epochs"]
    there = epoch["offsets"][_SOURCE][_PARTITION]
    assert there["position"] == place
    wanted = f"{_PARTITION}={json.dumps({**there, 'position': place + _SKIPPED})}"

    assert "1 place would be set; --apply" in scene.gear(*settings, wanted)
    assert scene.ask("checkpoint", "show", ref)["epochs"][0]["overrides"] == {}
    assert "1 place set" in scene.gear(*settings, wanted, "--apply")

    (epoch,) = scene.ask("checkpoint", "show", ref)["epochs"]
    assert epoch["overrides"][_SOURCE][_PARTITION]["position"] == place + _SKIPPED
    assert "(override)" in scene.gear("log", ref, "--type", "set-checkpoint")


def _find_damage(scene: Scene, app_id: int) -> None:
    ref = str(app_id)
    older, newest = (
        scene.ask("checkpoint", "show", ref, str(each["epoch"]))["epochs"][0]
        for each in scene.ask("checkpoint", "list", ref)["epochs"][-2:]
    )
    kept = {each["location"] for each in older["files"]}
    name = next(each["location"] for each in newest["files"] if each["location"] not in kept)
    _flip_a_byte(_store_of(scene) / name)

    said = _said_by_failing(scene, "checkpoint", "verify", ref)

    assert f"epoch {newest['epoch']} of region 0: damaged" in said
    assert f"error: snapshot {name}" in said
    assert f"epoch {older['epoch']} of region 0: whole" in said
    assert f"region 0 would go back to epoch {older['epoch']}" in said


def _said_by_failing(scene: Scene, *args: str) -> str:
    """Run a command as a shell does; return what it prints although it fails."""
    done = subprocess.run(
        [*GEAR, *args],
        env=environment(scene.settings),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == FAILED, done.stderr
    return done.stdout


def _flip_a_byte(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def _store_of(scene: Scene) -> Path:
    return Path(scene.settings["checkpoint.folder"])


def _drop(scene: Scene, *app_ids: int) -> None:
    """Remove all that is stored of them, the last one first: it may need files of those before."""
    for app_id in reversed(app_ids):
        assert "would be removed; --apply" in scene.gear("checkpoint", "drop", str(app_id))
        assert "removed" in scene.gear("checkpoint", "drop", str(app_id), "--apply")
        told = scene.gear("checkpoint", "list", str(app_id), code=WRONG_USE)
        assert f"nothing of application {app_id} in the checkpoint store" in told
