"""The examples of applications of actors, on daemons, with processes killed."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from gearpy.cli.terminal.connect import connected
from gearpy.cli.terminal.exits import WRONG_USE
from gearpy.messages.client import ListWorkers
from tests.eventually import DEADLINE_S, eventually
from tests.system.cluster_build import Scene, is_gone

EXAMPLES: Final = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    made = Scene(tmp_path_factory.mktemp("scene"))
    with made.cluster:
        yield made


def ask(scene: Scene, app_id: int, question: str) -> Any:
    return scene.ask("app", "ask", str(app_id), question)


def pids(scene: Scene, app_id: int, number: int) -> dict[int, int]:
    """Wait for so many executors that are up; return their processes."""

    def up() -> dict[int, int] | None:
        detail = scene.detail(app_id) or {"executors": []}
        running = [each for each in detail["executors"] if each["status"] == "running"]
        found = {each["executor_id"]: each["pid"] for each in running}
        return found if len(found) == number else None

    found: dict[int, int] = eventually(up)
    return found


def test_a_command_runs_on_every_machine(scene: Scene) -> None:
    app_id = scene.submit(str(EXAMPLES / "distributed_shell.py"))
    before = pids(scene, app_id, 2)
    outputs = ask(scene, app_id, "echo hello")
    assert sorted(outputs) == ["executor 0", "executor 1"]
    assert {each["out"] for each in outputs.values()} == {"hello\n"}

    os.kill(before[1], signal.SIGKILL)
    eventually(lambda: pids(scene, app_id, 2)[1] != before[1])
    answers = ask(scene, app_id, "no-such-command")
    assert all("No such file" in each["failed"] for each in answers.values())
    refused = scene.gear("app", "ask", str(app_id), "3", code=WRONG_USE)
    assert "a command is a text, this is 3" in refused
    scene.gear("app", "kill", str(app_id))
    eventually(lambda: all(is_gone(each) for each in before.values()))


def test_a_service_is_kept_running_on_every_machine(scene: Scene) -> None:
    app_id = scene.submit(str(EXAMPLES / "distribute_service"))
    pids(scene, app_id, 2)
    first = eventually(lambda: len(found := ask(scene, app_id, "where")) == 2 and found)
    assert all(f"process {each['pid']}" in greeting(each["port"]) for each in first.values())

    killed = first["executor 0"]["pid"]
    os.kill(killed, signal.SIGKILL)
    again = eventually(
        lambda: (now := ask(scene, app_id, "where"))["executor 0"]["pid"] != killed and now
    )
    assert again["executor 0"]["starts"] == 2

    executor = pids(scene, app_id, 2)[1]
    os.kill(executor, signal.SIGKILL)
    eventually(lambda: is_gone(again["executor 1"]["pid"]))
    moved = eventually(
        lambda: (
            (now := ask(scene, app_id, "where").get("executor 1"))
            and now["pid"] != again["executor 1"]["pid"]
            and now
        )
    )
    assert "hello" in greeting(moved["port"])
    scene.gear("app", "kill", str(app_id))
    eventually(lambda: is_gone(moved["pid"]))


def test_a_sweep_ends_with_all_trials_also_when_the_app_master_is_killed(scene: Scene) -> None:
    app_id = scene.submit(str(EXAMPLES / "sweep.py"), "--", "--executors", "2", "--trials", "300")
    eventually(lambda: ask(scene, app_id, "progress")["done"] > 3)
    os.kill(app_master_pid(scene, app_id), signal.SIGKILL)
    assert scene.ends(app_id)["status"] == "succeeded"
    with connected(scene.cluster.config) as client:
        eventually(
            lambda: all(each.free_slots == each.slots for each in client.ask(ListWorkers()).workers)
        )


def app_master_pid(scene: Scene, app_id: int) -> int:
    text = scene.gear("app", "logs", str(app_id), "--appmaster")
    return int(text.split("runs as process ")[1].split(",")[0])


def greeting(port: int) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as connection:
        return connection.makefile().readline()
