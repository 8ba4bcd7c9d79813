"""Which call holds the interpreter of a process: the operator, the line, for how long."""

import subprocess
import sys
from pathlib import Path

import pytest

from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.host.held import held_by
from gearpy.config.load import load
from gearpy.errors import ApplicationFailed
from gearpy.messages.client import Artifact

#: As a process writes it whose task is in a regular expression.
DUMP = r"""some line of the program
Timeout (0:00:04.200000)!
Thread 0x00007f0001 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 327 in wait
  File "/home/ada/flow.py", line 3 in idle

Thread 0x00007f0002 (most recent call first):
  File "/usr/lib/python3.11/re/__init__.py", line 166 in match
  File "/home/ada/flow.py", line 8 in check
  File "<gearpy fused loop>", line 5 in run
  File "/home/ada/gearpy/task/runtime/actor.py", line 240 in turn of nums > gr\xf6\xdfe(lambda)
  File "/home/ada/gearpy/actor/life.py", line 240 in take_turn
  File "/usr/lib/python3.11/threading.py", line 982 in run
"""


def test_the_task_that_works_is_named_with_its_line() -> None:
    told = held_by(DUMP)

    assert told.startswith(
        "operator 'nums > größe(lambda)': a call has held the interpreter for 4.2 s"
    )
    assert "at /home/ada/flow.py:8: let it do less" in told


def test_a_process_that_goes_on_is_not_held() -> None:
    """It was frozen, or starved; what it was in then is of no interest."""
    assert held_by("") == ""
    assert held_by("nothing of the kind\n") == ""
    assert held_by(f"{DUMP}the interpreter goes on\n") == ""
    assert held_by(f"{DUMP}the interpreter goes on\n{DUMP}")


def test_without_a_task_the_line_is_told() -> None:
    frames = DUMP.replace("turn of nums > gr\\xf6\\xdfe(lambda)", "load")

    assert held_by(frames).startswith("a call has held the interpreter for 4.2 s")
    assert "at /home/ada/flow.py:8" in held_by(frames)


HELD = """
import re, sys, threading, time
from gearpy.cluster.host.held import tell_if_held

tell_if_held(1000)
if sys.argv[1] == "held":
    re.match(r"(a+)+$", "a" * 50 + "b")
time.sleep(2)
"""


@pytest.mark.parametrize("how", ["held", "sleeping"])
def test_a_process_tells_where_it_is_held_and_not_where_it_waits(how: str, tmp_path: Path) -> None:
    """Nobody else in it could."""
    (tmp_path / "program.py").write_text(HELD)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py"), how], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        if how == "sleeping":
            assert process.communicate(timeout=60)[1] == ""
            return
        told = "".join(process.stderr.readline() for _ in range(12 if how == "held" else 0))
    finally:
        process.kill()
        process.stderr.close()
        process.wait()
    assert "has held the interpreter for 0.7 s" in held_by(told)
    assert f"at {tmp_path / 'program.py'}:7" in held_by(told)


PROGRAM = """
import re
import gearpy as gp

def check(n):
    return n if n != 7 else re.match(r"(a+)+$", "a" * 50 + "b")

def main(args):
    app = gp.StreamApp("held")
    numbers = app.read(gp.collection(range(10))).repartition(2)
    numbers.map(check, name="matches").write(gp.jsonl_folder(args[0]))
    return app
"""


def test_an_executor_that_is_held_is_lost_with_operator_and_line(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(PROGRAM)
    artifact = Artifact(
        kind="file", location=str(tmp_path / "flow.py"), attr="main", args=(str(tmp_path / "out"),)
    )
    with LocalCluster(load(env={}), executors="process") as cluster:
        running = cluster.client.submit(
            "held", artifact, executors=2, config={"application.total-retries": "0"}
        )
        with pytest.raises(ApplicationFailed) as raised:
            running.wait()

    assert "matches" in raised.value.cause
    assert "a call has held the interpreter" in raised.value.cause
    assert f"at {tmp_path / 'flow.py'}:6" in raised.value.cause
