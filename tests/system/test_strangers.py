"""Connections that say nothing: a thousand of them keep no process of an application out."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from tests.eventually import eventually
from tests.system.cluster_build import Scene, is_gone

PROGRAM: Final = """\
import itertools, os
import gearpy as gp

def main(args):
    out, = args

    def numbers():
        return itertools.takewhile(lambda _: not os.path.exists(out + ".stop"), itertools.count())

    app = gp.StreamApp("numbers", parallelism=2)
    keyed = app.read(gp.generate(numbers, rate=200)).key_by(lambda n: n % 10)
    keyed.map_with_state(lambda _, n: (n, n)).write(gp.jsonl_folder(out))
    return app
"""


@pytest.mark.long
def test_a_thousand_connections_keep_nobody_out(own: Scene) -> None:
    out = own.folder / "numbers"
    (own.folder / "numbers.py").write_text(PROGRAM, encoding="utf-8")
    app = own.submit("--executors", "2", "numbers.py", "--", str(out))
    kept, lost = eventually(lambda: running(own, app))
    places = [worker["address"] for worker in own.ask("worker", "list")["workers"]]

    with ExitStack() as strangers:
        for place in (*places, kept["data_address"]):
            for _ in range(1000):
                strangers.enter_context(silent(place))
        os.kill(lost["pid"], signal.SIGKILL)
        eventually(lambda: is_gone(lost["pid"]))
        eventually(lambda: (now := pids(own, app)) and lost["pid"] not in now)
        shown = len(numbers_in(out))
        eventually(lambda: len(numbers_in(out)) > shown + 200)
    out.with_name("numbers.stop").touch()

    assert own.ends(app)["status"] == "succeeded"
    numbers = sorted(numbers_in(out))
    assert numbers == list(range(len(numbers)))


def running(scene: Scene, app: int) -> list[dict[str, Any]]:
    """Return both executors once their tasks run and an epoch is stored, else nothing."""
    told = (scene.detail(app) or {"executors": ()})["executors"]
    executors = [each for each in told if each["status"] == "running" and each["tasks"]]
    is_safe = len(executors) == 2 and scene.summary(app)["progress"]["epoch"]
    return executors if is_safe else []


def pids(scene: Scene, app: int) -> set[int]:
    return {each["pid"] for each in running(scene, app)}


def silent(place: str) -> socket.socket:
    """Connect, and say nothing; a place that is full may refuse or close."""
    host, _, port = place.rpartition(":")
    stranger = socket.socket()
    stranger.settimeout(60)
    with suppress(OSError):
        stranger.connect((host, int(port)))
    return stranger


def numbers_in(folder: Path) -> list[int]:
    return [int(line) for line in lines_in(folder)]


def lines_in(folder: Path) -> Iterator[str]:
    for file in folder.glob("*.jsonl"):
        yield from map(str, map(json.loads, file.read_text(encoding="utf-8").splitlines()))
