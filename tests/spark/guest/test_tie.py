"""The process of a worker ends with its task of Spark, whichever way that ends."""

import os
import select
import socket
import subprocess
import sys
from pathlib import Path

import pytest

_TASK = """
import os, sys, threading
from pathlib import Path
from gearpy.spark.guest.task import TaskTie

with TaskTie(lambda: Path(sys.argv[1]).write_text("before")):
    print("tied", flush=True)
    if sys.argv[2] == "end":
        sys.exit(7)
    threading.Event().wait()
"""
#: Starts the task, says who that is, and waits to be killed.
_PARENT = """
import subprocess, sys
task = subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], stdout=subprocess.PIPE, text=True)
print(task.stdout.readline().strip(), task.pid, flush=True)
task.wait()
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="connections are found in /proc")


def test_a_connection_that_is_closed_ends_the_process(tmp_path: Path) -> None:
    note = tmp_path / "note"
    ours, theirs = socket.socketpair()
    with subprocess.Popen(
        [sys.executable, "-c", _TASK, str(note), "wait"],
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=[theirs.fileno()],
    ) as task:
        assert task.stdout is not None
        theirs.close()
        assert task.stdout.readline() == "tied\n"
        assert task.poll() is None
        ours.close()
        assert task.wait(60) == 1

    assert note.read_text() == "before"


def test_a_parent_that_is_killed_ends_the_process(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, _TASK, str(tmp_path / "note"), "wait"],
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        said, pid = parent.stdout.readline().split()
        end = os.pidfd_open(int(pid))
        parent.kill()
        parent.wait()
        try:
            assert said == "tied"
            assert select.select([end], [], [], 60)[0]
        finally:
            os.close(end)


def test_a_task_that_ends_by_itself_is_let_go(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _TASK, str(tmp_path / "note"), "end"], check=False, timeout=60
    )

    assert done.returncode == 7
    assert not (tmp_path / "note").exists()
