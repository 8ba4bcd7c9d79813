"""Runs that write into a store, are killed at any moment and resumed: each record once."""

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

from tests.connectors.http_receiver import receiver
from tests.eventually import DEADLINE_S, eventually

PROGRAM: Final = """\
import itertools

import gearpy as gp


def main(args):
    app = gp.StreamApp("numbers")
    numbers = app.read(gp.generate(itertools.count, rate=200))
    numbers.map(lambda n: {"n": n}).write(SINK)
    return app
"""
RUN: Final = (sys.executable, "-m", "gearpy", "run", "--quiet", "--resume", "./run")
FILE: Final = "into_store.py"

#: Makes a store; returns the sink of a program, and how to ask for the numbers that are there.
Store = Callable[[ExitStack], tuple[str, Callable[[], list[int]]]]


def _sqlite(_: ExitStack) -> tuple[str, Callable[[], list[int]]]:
    def numbers() -> list[int]:
        try:
            with closing(sqlite3.connect("file:out.db?mode=ro", uri=True, timeout=10)) as database:
                return [n for (n,) in database.execute("select n from numbers")]
        except sqlite3.OperationalError:  # There is no file, or no table, yet.
            return []

    return 'gp.sql_sink("sqlite:///out.db", "numbers", create=True)', numbers


def _http(stack: ExitStack) -> tuple[str, Callable[[], list[int]]]:
    """Who leaves out keys that were seen has each record once."""
    there = stack.enter_context(receiver())
    sink = f"gp.http_sink({there.url!r}, batch=7)"
    return sink, lambda: [each["n"] for each in there.taken()]


def _iceberg(stack: ExitStack) -> tuple[str, Callable[[], list[int]]]:
    catalog = {"type": "sql", "uri": "sqlite:///catalog.db", "warehouse": f"file://{Path.cwd()}"}
    there = stack.enter_context(closing(load_catalog(**catalog)))

    def numbers() -> list[int]:
        try:
            found = there.load_table("shop.numbers").scan(selected_fields=("n",)).to_arrow()
        except NoSuchTableError:
            return []
        there_are: list[int] = found.column("n").to_pylist()
        return there_are

    return f'gp.iceberg_table("shop.numbers", catalog={catalog!r})', numbers


STORES: Final[dict[str, Store]] = {"http": _http, "iceberg": _iceberg, "sqlite": _sqlite}


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize(
    ("store", "rounds"),
    [
        ("sqlite", 1),  # Contracts of all sinks have kills at any line, in one process.
        *(pytest.param(store, 20, marks=pytest.mark.long) for store in STORES),
    ],
)
def test_each_record_is_there_once_over_runs_that_are_killed(
    store: str, rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    sink, numbers = STORES[store](stack)
    (tmp_path / FILE).write_text(PROGRAM.replace("SINK", sink), encoding="utf-8")
    rng = Random(rounds)
    for last in [*[False] * rounds, True]:
        before = len(numbers())
        with subprocess.Popen([*RUN, FILE], stderr=subprocess.PIPE) as run:
            # To ask costs as much as the run does meanwhile.
            eventually(partial(_has_more, numbers, before), within_s=DEADLINE_S, every_s=0.3)
            time.sleep(rng.uniform(0, 1.5))
            assert run.poll() is None, run.communicate()[1]
            run.send_signal(signal.SIGTERM if last else signal.SIGKILL)
            said = run.communicate(timeout=DEADLINE_S)[1]

    found = sorted(numbers())
    assert (run.returncode, said) == (0, b"")
    assert found == list(range(len(found)))


def _has_more(numbers: Callable[[], list[int]], before: int) -> bool:
    return len(numbers()) > before
