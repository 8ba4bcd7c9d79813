"""Runs on several processes: the answers of one, also when executors are killed; no orphans."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Final

import pytest

from gearpy.core.coordinator.versions import Versions
from gearpy.storage.checkpoints import checkpoints_at
from gearpy.storage.coordinator_log import read_log
from tests.eventually import DEADLINE_S, eventually, take_time

WORDS: Final = """\
import gearpy as gp

app = gp.StreamApp("words")
lines = app.read(gp.files("lines/*.txt"))
counts = lines.flat_map(str.split).key_by(lambda word: word).count()
counts.write(gp.stdout(form="jsonl"))
"""
SUMS: Final = """\
import itertools
import gearpy as gp


def added(total, number):
    return total + number, [number % 4, number, total + number]


def main(args):
    app = gp.StreamApp("sums")
    numbers = app.read(gp.generate(lambda part: itertools.count(part, 2), partitions=2, rate=300))
    keyed = numbers.map(lambda n: n, name="same").key_by(lambda number: number % 4)
    keyed.map_with_state(added, initial=0).write(gp.jsonl_folder("out"))
    return app
"""
FAILS: Final = """\
import gearpy as gp


def divide(number):
    return 1 // (number - 5)


app = gp.StreamApp("fails")
app.read(gp.collection(range(10))).map(divide).write(gp.jsonl_folder("failed"))
"""
#: It has no file, no guard, functions in functions, a list that it looks at; a timer, as pytest
#: may have, and no wish to hear of children.
NAMELESS: Final = """\
import faulthandler
import os
import signal
import gearpy as gp

faulthandler.dump_traceback_later(600)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("once")


def squares(results):
    app, parent = gp.StreamApp("squares"), os.getpid()

    def square(number):
        if number == 3:
            print("a line of an executor")
        return number * number, os.getpid() == parent

    app.read(gp.collection(range(10), partitions=2)).map(square).write(gp.to_list(results))
    return app


results = []
summary = gp.run(squares(results), processes=2)
print(sorted(results) == [(n * n, False) for n in range(10)], summary.progress.records_out)
"""
GEAR: Final = (sys.executable, "-m", "gearpy")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    for name, program in {"words": WORDS, "sums": SUMS, "fails": FAILS}.items():
        (tmp_path / f"{name}_app.py").write_text(program, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_answers_are_those_of_plain_python(folder: Path, processes: str) -> None:
    rng, words = Random(3), list[str]()
    (folder / "lines").mkdir()
    for part in range(3):
        text = rng.choices("abcde", k=200)
        words += text
        (folder / "lines" / f"{part}.txt").write_text("\n".join(text), encoding="utf-8")

    run = (*GEAR, "run", "--quiet", "--processes", processes, "words_app.py")
    printed = subprocess.run(run, check=True, capture_output=True, text=True).stdout

    counts = dict[str, list[int]]()
    for word, count in map(json.loads, printed.splitlines()):
        counts.setdefault(word, []).append(count)
    assert counts == {word: [*range(1, words.count(word) + 1)] for word in "abcde"}


def test_a_program_without_a_file_has_its_list_filled() -> None:
    run = [sys.executable, "-c", NAMELESS]
    printed = subprocess.run(run, check=True, capture_output=True, text=True)

    assert sorted(printed.stdout.splitlines()) == ["True 10", "a line of an executor", "once"]
    assert printed.stderr == ""


def test_an_error_of_the_program_says_the_same_at_once() -> None:
    said = []
    for processes in ("1", "2"):
        run = (*GEAR, "run", "--processes", processes, "fails_app.py")
        failed = subprocess.run(run, check=False, capture_output=True, text=True)
        assert failed.returncode == 1
        said.append(re.sub(r"(?s).*?(?=error: )|^of 2 processes.*?\n", "", failed.stderr, count=1))

    assert "ZeroDivisionError" in said[0]
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("kills", "seed"), [(2, 1), pytest.param(20, 2, marks=pytest.mark.long, id="many")]
)
def test_each_number_is_shown_once_while_executors_are_killed(
    folder: Path, kills: int, seed: int
) -> None:
    take_time(DEADLINE_S * kills)
    rng = Random(seed)
    options = ("--set", "application.total-retries=100", "--set", "checkpoint.interval-ms=200")
    with _running("--processes", "2", *options, "sums_app.py") as run:
        for _ in range(kills):
            _wait_for_more(folder)
            time.sleep(rng.uniform(0, 0.5))
            executors = eventually(lambda: _executors(run.pid), "there are executors")
            with suppress(ProcessLookupError):
                os.kill(rng.choice(executors), signal.SIGKILL)
        _wait_for_more(folder)
        run.send_signal(signal.SIGTERM)
        said = run.communicate(timeout=DEADLINE_S)[1]

    assert (run.returncode, said) == (0, b"")
    _check_shown(folder)


def test_a_run_goes_on_with_another_number_of_processes(folder: Path) -> None:
    """Killed and drained; its tasks follow the number once it goes on."""
    ends = {"1": signal.SIGKILL, "3": signal.SIGTERM, "2": signal.SIGTERM}
    for processes, end in ends.items():
        options = ("--resume", "./run", "--processes", processes)
        trial = ("--set", "application.trial-seconds=1")
        with _running(*options, *trial, "sums_app.py") as run:
            _wait_for_more(folder)
            if processes != "1":
                _wait_for_change(folder, f"processes {processes}")
                _wait_for_more(folder)
            run.send_signal(end)
            said = run.communicate(timeout=DEADLINE_S)[1]
        assert (run.returncode, said) == (-end if end == signal.SIGKILL else 0, b"")

    _check_shown(folder)


def _wait_for_change(folder: Path, change: str) -> None:
    """Wait until a version with this change stays."""
    prefix = json.loads((folder / "run" / "run.json").read_text(encoding="utf-8"))["prefix"]
    store = checkpoints_at(folder / "run" / "checkpoints")

    def is_there() -> bool:
        version = Versions(read_log(store, prefix).state).current
        return version is not None and (version.change, version.state) == (change, "running")

    eventually(is_there, change)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_run(folder: Path, number: signal.Signals) -> None:
    """Executors of one that is killed are killed by the kernel."""
    with _running("--processes", "2", "sums_app.py") as run:
        _wait_for_more(folder)
        executors = _executors(run.pid)
        servers = _children(run.pid)
        run.send_signal(number)
        run.communicate(timeout=DEADLINE_S)

    assert len(executors) == 2
    if number == signal.SIGINT:
        assert run.returncode == 128 + signal.SIGINT
        _check_shown(folder)
        assert not [*(folder / "temporary").glob("gearpy-local-*")]
    eventually(lambda: not any(map(_lives, [*executors, *servers])), "all have ended")


def _check_shown(folder: Path) -> None:
    """Compare what is shown with the sums of each key; of each part it is what came first."""
    found = _shown(folder)
    numbers = sorted(number for _, number, _ in found)
    for part in (0, 1):
        own = [number for number in numbers if number % 2 == part]
        assert own == [*range(part, 2 * len(own) + part, 2)]
    for key in range(4):
        own = [number for number in numbers if number % 4 == key]
        assert [total for k, _, total in found if k == key] == [*itertools.accumulate(own)]
    assert not [*(folder / "out" / "_pending").iterdir()]


def _shown(folder: Path) -> list[list[int]]:
    lines = list[str]()
    for file in (folder / "out").glob("*.jsonl"):
        with suppress(FileNotFoundError):  # It was shown for an epoch that is gone back before.
            lines += file.read_text(encoding="utf-8").splitlines()
    return sorted(json.loads(line) for line in lines)


def _wait_for_more(folder: Path) -> None:
    before = len(_shown(folder))
    eventually(lambda: len(_shown(folder)) > before, "it shows more", within_s=DEADLINE_S)


@contextmanager
def _running(*options: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([*GEAR, "run", "--quiet", *options], stderr=subprocess.PIPE) as run:
        try:
            yield run
        finally:
            run.kill()


def _executors(run: int) -> Sequence[int]:
    return [child for server in _children(run) for child in _children(server)]


def _children(pid: int) -> Sequence[int]:
    with suppress(FileNotFoundError):
        tasks = Path(f"/proc/{pid}/task").iterdir()
        texts = (each.joinpath("children").read_text(encoding="ascii") for each in tasks)
        return [int(child) for text in texts for child in text.split()]
    return []


def _lives(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2][1] != "Z"
    return False
