"""``gear run --watch``: a program that is saved runs again, from what its steps have kept."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.eventually import DEADLINE_S, eventually

PROGRAM: Final = """\
import itertools

import gearpy as gp

app = gp.StreamApp("numbers")
numbers = app.read(gp.generate(itertools.count, rate=50)).key_by(lambda _: "all")
numbers.count().map(lambda pair: f"before {pair[1]}").write(gp.jsonl_folder("out"))
"""
CHILD: Final = """\
import os, pathlib, time

pathlib.Path("pid.new").write_text(str(os.getpid()))
os.rename("pid.new", "pid")
time.sleep(600)
"""
ENDS: Final = """\
import gearpy as gp

app = gp.StreamApp("numbers")
app.read(gp.collection([1])).map(lambda _: "ended").write(gp.jsonl_folder("out"))
"""


def test_a_saved_program_goes_on_from_the_state_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    program, out = tmp_path / "numbers_app.py", tmp_path / "out"
    program.write_text(PROGRAM, encoding="utf-8")

    def shown() -> list[str]:
        files = sorted(out.glob("*.jsonl")) if out.is_dir() else []
        return "".join(each.read_text("utf-8") for each in files).replace('"', "").splitlines()

    command = [sys.executable, "-m", "gearpy", "run", "--watch", "numbers_app.py"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        eventually(shown)
        program.write_text(PROGRAM.replace("before", "after"), encoding="utf-8")
        eventually(lambda: [line for line in shown() if "after" in line])
        program.write_text(ENDS, encoding="utf-8")
        eventually(lambda: "ended" in shown())
        run.send_signal(signal.SIGTERM)
        said = run.communicate(timeout=DEADLINE_S)[1]

    counted = [int(line.split()[1]) for line in shown() if line != "ended"]
    assert counted == [*range(1, len(counted) + 1)], said
    assert "saved: numbers_app.py" in said
    assert run.returncode == 0, said


def test_the_program_ends_with_a_watch_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    (tmp_path / "child.py").write_text(CHILD, encoding="utf-8")
    told = tmp_path / "pid"
    command = [sys.executable, "-m", "gearpy", "run", "--watch", "child.py"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as run:
        child = int(eventually(lambda: told.is_file() and told.read_text("utf-8")))
        run.kill()

    def has_ended() -> bool:
        try:
            stat = Path(f"/proc/{child}/stat").read_text("utf-8")
        except OSError:
            return True
        return stat.rpartition(")")[2].split()[0] == "Z"

    eventually(has_ended)
