"""Runs that are killed at any moment, and resumed: each number once."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.eventually import DEADLINE_S, eventually

PROGRAM: Final = """\
import itertools
import os

import gearpy as gp


def added(total, number):
    return total + number, [number, total + number]


def main(args):
    app = gp.StreamApp("numbers")
    numbers = app.read(gp.generate(itertools.count, rate=200))
    if os.environ.get("EXTRA"):
        numbers = numbers.filter(lambda number: number >= 0)
    sums = numbers.key_by(lambda _: "all").map_with_state(added, initial=0)
    sums.write(gp.jsonl_folder("out"))
    return app
"""
RUN: Final = (sys.executable, "-m", "gearpy", "run", "--quiet", "--resume", "./run")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "numbers_app.py").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("rounds", "seed"), [(2, 1), pytest.param(20, 2, marks=pytest.mark.long, id="many")]
)
def test_each_number_is_shown_once_over_runs_that_are_killed(
    folder: Path, rounds: int, seed: int
) -> None:
    rng = Random(seed)
    for _ in range(rounds):
        before = len(_shown(folder))
        with subprocess.Popen([*RUN, "numbers_app.py"], stderr=subprocess.PIPE) as killed:
            _wait_for_more(folder, before)
            time.sleep(rng.uniform(0, 1.5))
            assert killed.poll() is None, killed.communicate()[1]
            killed.kill()
    with subprocess.Popen([*RUN, "numbers_app.py"], stderr=subprocess.PIPE) as last:
        _wait_for_more(folder, len(_shown(folder)))
        last.send_signal(signal.SIGTERM)
        said = last.communicate(timeout=DEADLINE_S)[1]

    found = _shown(folder)
    assert (last.returncode, said) == (0, b"")
    assert found == [[number, number * (number + 1) // 2] for number in range(len(found))]
    assert not [*(folder / "out" / "_pending").iterdir()]
    assert not [*(folder / "temporary").glob("gearpy-local-*")]


@pytest.mark.parametrize(
    ("rounds", "seed"), [(2, 3), pytest.param(20, 4, marks=pytest.mark.long, id="many")]
)
def test_another_program_goes_on_from_the_state_of_one_that_was_killed(
    folder: Path, rounds: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one more step, and without it again, each number is shown once."""
    rng = Random(seed)
    for number in range(rounds):
        monkeypatch.setenv("EXTRA", "1" if number % 2 else "")
        before = len(_shown(folder))
        with subprocess.Popen([*RUN, "numbers_app.py"], stderr=subprocess.PIPE) as killed:
            if rng.random() < 0.7:
                _wait_for_more(folder, before)
                time.sleep(rng.uniform(0, 1.5))
            else:
                time.sleep(rng.uniform(0, 3))
            assert killed.poll() is None, killed.communicate()[1]
            killed.kill()
    with subprocess.Popen([*RUN, "numbers_app.py"], stderr=subprocess.PIPE) as last:
        _wait_for_more(folder, len(_shown(folder)))
        checkpoints = folder / "run" / "checkpoints"
        eventually(
            lambda: len([*checkpoints.iterdir()]) == 1,
            "what earlier programs have stored is removed",
            within_s=DEADLINE_S,
        )
        last.send_signal(signal.SIGTERM)
        said = last.communicate(timeout=DEADLINE_S)[1]

    found = _shown(folder)
    assert (last.returncode, said) == (0, b"")
    assert found == [[number, number * (number + 1) // 2] for number in range(len(found))]


def test_the_next_run_clears_away_what_a_killed_one_had_prepared(folder: Path) -> None:
    """It cannot be resumed, so nobody else would."""
    run = (sys.executable, "-m", "gearpy", "run", "--quiet")
    with subprocess.Popen([*run, "numbers_app.py"], stderr=subprocess.PIPE) as killed:
        _wait_for_more(folder, 0)
        time.sleep(0.5)
        killed.kill()
    shown = _shown(folder)
    assert [*(folder / "out" / "_pending").iterdir()]

    (folder / "other.py").write_text(
        "import gearpy as gp\n"
        "app = gp.StreamApp('other')\n"
        "app.read(gp.collection([1])).write(gp.to_list([]))\n"
    )
    subprocess.run([*run, "other.py"], check=True)

    assert not [*(folder / "out" / "_pending").iterdir()]
    assert _shown(folder) == shown
    assert not [*(folder / "temporary").glob("gearpy-local-*")]


def _shown(folder: Path) -> list[list[int]]:
    lines = (line for file in (folder / "out").glob("*.jsonl") for line in _lines(file))
    return sorted(json.loads(line) for line in lines)


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:  # It was shown for an epoch that is gone back before.
        return []


def _wait_for_more(folder: Path, before: int) -> None:
    eventually(lambda: len(_shown(folder)) > before, "it shows more", within_s=DEADLINE_S)
