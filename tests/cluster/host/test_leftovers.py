"""What code of users has started ends with its process, also in a session of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gearpy.cluster.host.leftovers import MARK, ProcessMark, end_marked, end_of_dead_workers
from gearpy.cluster.host.logs import LogFile
from gearpy.cluster.processes.child_process import ChildProcess
from tests.eventually import DEADLINE_S, eventually

#: Starts a process that has left its group; tells its number in a file, and waits.
LEAVE = """\
import os, signal, subprocess, sys
started = subprocess.Popen({command}, start_new_session=True{more})
with open("pid", "w") as file:
    print(started.pid, file=file)
signal.sigwait({{signal.SIGUSR1}})
"""
SLEEP = ["sleep", "1000"]
#: The process in between is gone at once: nobody is a child of its grandparent.
TWICE = ["sh", "-c", "sleep 1000 & echo $! > pid2"]


class Scene:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.child: ChildProcess | None = None

    def start(self, command: list[str], *, more: str = "") -> int:
        code = LEAVE.format(command=command, more=more)
        self.child = ChildProcess(
            [sys.executable, "-c", code],
            b"",
            folder=self.folder,
            log=LogFile(self.folder / "log", bytes_max=100_000, files=1),
            log_format="text",
            stop_timeout_s=1.0,
            on_end=lambda _: None,
        )
        return number_in(self.folder / "pid")


def number_in(path: Path) -> int:
    eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    if made.child is not None:
        made.child.stop(kill=True)
        made.child.join(DEADLINE_S)


@pytest.mark.parametrize("how", ["stopped", "killed by its worker", "killed by somebody"])
@pytest.mark.parametrize("more", ["", ", env={}", ", stdout=subprocess.DEVNULL, stderr=-3"])
def test_what_has_left_the_group_ends_with_the_process(scene: Scene, how: str, more: str) -> None:
    """However that ends; it is known by its environment, or by where it writes."""
    pid = scene.start(SLEEP, more=more)
    assert scene.child is not None
    assert (os.getsid(pid), is_alive(pid)) == (pid, True)

    if how == "killed by somebody":
        os.kill(scene.child.pid, signal.SIGKILL)
    else:
        scene.child.stop(kill=how == "killed by its worker")
    scene.child.join(DEADLINE_S)

    eventually(lambda: not is_alive(pid))


def test_what_has_no_parent_any_more_ends_as_well(scene: Scene) -> None:
    scene.start(TWICE)
    pid = number_in(scene.folder / "pid2")
    assert scene.child is not None
    assert is_alive(pid)

    scene.child.stop(kill=True)
    scene.child.join(DEADLINE_S)

    eventually(lambda: not is_alive(pid))


def test_others_are_left_alone() -> None:
    marks = [str(ProcessMark.new()), "nonsense", ""]
    others = [subprocess.Popen(SLEEP, env={MARK: each}) for each in marks]
    try:
        assert end_marked(ProcessMark.new()) == 0
        end_of_dead_workers()

        assert [each.poll() for each in others] == [None] * 3
    finally:
        for each in others:
            each.kill()
            each.wait()


def test_what_a_killed_worker_has_left_is_ended_by_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    code = (
        "import os, subprocess, signal\n"
        "from gearpy.cluster.host.leftovers import MARK, ProcessMark\n"
        f"env = {{MARK: str(ProcessMark.new())}}\n"
        f"left = subprocess.Popen({SLEEP}, env=env, start_new_session=True)\n"
        f"print(left.pid, file=open({str(path)!r}, 'w'), flush=True)\n"
        "signal.pause()\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", code])
    pid = number_in(path)
    end_of_dead_workers()
    assert is_alive(pid)

    worker.kill()
    worker.wait()
    end_of_dead_workers()  # A worker of another test that starts just now may have been first.

    eventually(lambda: not is_alive(pid))
