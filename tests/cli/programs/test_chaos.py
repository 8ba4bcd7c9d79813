"""``gear chaos``: what it prints, and with which exit code it ends."""

import json
import os
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gearpy.cli.main import app

PROGRAM = """
import gearpy as gp

kept = []

class Changes(gp.Task):
    last = None

    def on_next(self, message):
        if message.value != self.last:
            self.last = message.value
            self.context.output(message)

def program(process):
    print("loaded")
    app = gp.StreamApp("lights")
    lights = app.read(gp.collection([n // 7 for n in range(100)]))
    process(lights).write(gp.jsonl_folder("lights"))
    return app

def forgets(args):
    return program(lambda s: s.process(Changes))

def module(args):
    return program(lambda s: s.map(lambda n: kept.append(n) or len(kept), name="number"))

def right(args):
    return program(lambda s: s.key_by(lambda n: n % 2).count())

def endless(args):
    app = gp.StreamApp("endless")
    app.read(gp.generate(lambda: iter(range(10**9)))).write(gp.console())
    return app
"""


def gear(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a user would, beside the program."""
    (folder / "lights.py").write_text(PROGRAM, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "gearpy", "chaos", *args],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def test_a_step_that_forgets_is_named_with_its_seed(tmp_path: Path) -> None:
    answer = gear(tmp_path, "lights.py:forgets", "--seeds", "5")

    first, differs, *_, advice, again = answer.stdout.splitlines()
    assert answer.returncode == 1, answer.stderr
    assert first == "lights: records 100 of collection(100 values); results 15"
    assert differs == "seed 1 differs: step 'Changes' gives other records after a crash"
    assert advice.startswith("Changes has no snapshot(): what it keeps in itself is gone")
    assert again == "again: gear chaos lights.py:forgets --seed 1"
    assert [each.name for each in tmp_path.iterdir()] == ["lights.py"]
    assert gear(tmp_path, *again.split()[3:]).stdout == answer.stdout


def test_modules_begin_anew_after_a_crash(tmp_path: Path) -> None:
    answer = gear(tmp_path, "lights.py:module", "--seeds", "1", "--json")

    found = json.loads(answer.stdout)
    assert answer.returncode == 1, answer.stderr
    assert (found["reason"], found["seed"]) == ("crash", 1)
    assert "'number'" in found["step"]
    assert found["restored"] > 0


def test_a_right_program_is_alike(tmp_path: Path) -> None:
    answer = gear(tmp_path, "lights.py:right", "--seeds", "2")

    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines()[1].startswith("alike: ")
    assert "in 2 seeds" in answer.stdout


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("lights.py:endless",), "has no end: say how many records to take, as with --records"),
        (("nothing.py",), "no such file: nothing.py"),
        (("lights.py:right", "--seeds", "0"), "--seeds"),
    ],
    ids=["no limit", "no program", "no seeds"],
)
def test_wrong_use_is_told(args: tuple[str, ...], text: str, tmp_path: Path) -> None:
    (tmp_path / "lights.py").write_text(PROGRAM, encoding="utf-8")
    with chdir(tmp_path):
        answer = CliRunner().invoke(app, ["chaos", *args])

    assert answer.exit_code == 2
    assert text in answer.stderr
