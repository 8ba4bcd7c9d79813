"""Runs that write into SQLite, are killed at any moment and resumed: each row once."""

import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.eventually import DEADLINE_S, eventually

PROGRAM: Final = """\
import itertools

import gearpy as gp


def main(args):
    app = gp.StreamApp("numbers")
    numbers = app.read(gp.generate(itertools.count, rate=800))
    numbers.map(lambda n: {"n": n}).write(gp.sql_sink("sqlite:///out.db", "numbers", create=True))
    return app
"""
RUN: Final = (sys.executable, "-m", "gearpy", "run", "--quiet", "--resume", "./run")
FILE: Final = "into_sqlite.py"


@pytest.mark.parametrize("rounds", [3, pytest.param(20, marks=pytest.mark.long)])
def test_each_row_is_there_once_over_runs_that_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    (tmp_path / FILE).write_text(PROGRAM, encoding="utf-8")
    rng = Random(rounds)
    for last in [*[False] * rounds, True]:
        before = len(_rows())
        more = partial(_has_more, before)
        with subprocess.Popen([*RUN, FILE], stderr=subprocess.PIPE) as run:
            eventually(more, within_s=DEADLINE_S)
            time.sleep(rng.uniform(0, 1.5))
            assert run.poll() is None, run.communicate()[1]
            run.send_signal(signal.SIGTERM if last else signal.SIGKILL)
            said = run.communicate(timeout=DEADLINE_S)[1]

    found = _rows()
    assert (run.returncode, said) == (0, b"")
    assert found == list(range(len(found)))


def _has_more(before: int) -> bool:
    return len(_rows()) > before


def _rows() -> list[int]:
    try:
        with closing(sqlite3.connect("file:out.db?mode=ro", uri=True, timeout=10)) as database:
            return [n for (n,) in database.execute("select n from numbers order by n")]
    except sqlite3.OperationalError:  # There is no file, or no table, yet.
        return []
