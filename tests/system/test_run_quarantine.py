"""Runs with records in quarantine that are killed at any moment: each record once."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from time import sleep
from typing import Final

import pytest

from gearpy.cluster.embedded.run_quarantine import StoredQuarantine
from gearpy.wire.values.payload import decode_value
from tests.eventually import DEADLINE_S, eventually

#: Each tenth number is refused, unless it is below the one in a file.
PROGRAM: Final = """\
import itertools
import pathlib

import gearpy as gp

limit = int(pathlib.Path("limit").read_text())


def check(number):
    if number % 10 == 7 and number >= limit:
        raise ValueError(number)
    return number


app = gp.StreamApp("numbers")
numbers = app.read(gp.generate(itertools.count, rate=400))
numbers.map(check).write(gp.jsonl_folder("out"))
"""
GEAR: Final = (sys.executable, "-m", "gearpy")
RUN: Final = (
    *(*GEAR, "run", "--resume", "./run", "--set", "application.on-error=quarantine"),
    *("--set", "checkpoint.interval-ms=200", "numbers_app.py"),
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("GEARPY_CHECKPOINT_RUNS_FOLDER", str(tmp_path / "runs"))
    (tmp_path / "numbers_app.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "limit").write_text("0")
    return tmp_path


@pytest.mark.parametrize(
    ("rounds", "seed"), [(2, 1), pytest.param(24, 2, marks=pytest.mark.long, id="many")]
)
def test_each_record_is_shown_or_in_quarantine_once(folder: Path, rounds: int, seed: int) -> None:
    """Whenever the run is killed, and though records are given back by its next start."""
    rng = Random(seed)
    given_back = 0
    for _ in range(rounds):
        with subprocess.Popen(RUN, stderr=subprocess.PIPE) as killed:
            _wait_for_more(folder)
            sleep(rng.uniform(0, 0.5))
            assert killed.poll() is None, killed.communicate()[1]
            killed.kill()
        kept = _kept(folder)
        assert len({*kept}) == len(kept)
        assert not {*kept} & {*_shown(folder)}
        if kept and rng.random() < 0.7:
            (folder / "limit").write_text(str(max(kept) + 1))
            given_back += len(StoredQuarantine(folder / "run", "./run").want([]))

    (folder / "limit").write_text(str(10**9))
    if _kept(folder):
        given_back += len(StoredQuarantine(folder / "run", "./run").want([]))
    with subprocess.Popen(RUN, stderr=subprocess.PIPE, text=True) as last:
        _wait_for_more(folder)
        last.send_signal(signal.SIGTERM)
        said = last.communicate(timeout=DEADLINE_S)[1]

    assert last.returncode == 0, said
    assert given_back > 0
    assert _kept(folder) == []
    found = _shown(folder)
    assert found == list(range(len(found)))


def test_a_run_without_a_name_leaves_its_records_in_a_folder_that_it_names(folder: Path) -> None:
    run = (*GEAR, "run", "--set", "application.on-error=quarantine", "numbers_app.py")
    with subprocess.Popen(run, stderr=subprocess.PIPE, text=True) as running:
        eventually(lambda: len(_shown(folder)) > 20, within_s=DEADLINE_S)
        running.send_signal(signal.SIGTERM)
        said = running.communicate(timeout=DEADLINE_S)[1]

    (own,) = (folder / "runs").iterdir()
    records = StoredQuarantine(own, str(own)).records()
    bad = [n for n in range(len(_shown(folder)) + len(records)) if n % 10 == 7]
    assert [decode_value(each.record.value) for each in records] == bad
    count = f"{len(bad)} record{'s' if len(bad) > 1 else ''}"
    assert f"{count} in quarantine: 'gear quarantine list --run {own}' shows why" in said


def _shown(folder: Path) -> list[int]:
    found: list[int] = []
    for file in (folder / "out").glob("*.jsonl"):
        try:
            found += map(json.loads, file.read_text(encoding="utf-8").splitlines())
        except FileNotFoundError:  # It was shown for an epoch that is gone back before.
            continue
    return sorted(found)


def _wait_for_more(folder: Path) -> None:
    before = len(_shown(folder))
    eventually(lambda: len(_shown(folder)) > before, within_s=DEADLINE_S)


def _kept(folder: Path) -> list[int]:
    kept = StoredQuarantine(folder / "run", "./run").records()
    return [decode_value(each.record.value) for each in kept]
