"""Nightly runs that are killed at any moment and started again: each row once, in time."""

import json
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from tests.eventually import DEADLINE_S

PROGRAM: Final = """\
import gearpy as gp

app = gp.StreamApp("nightly")
rows = app.read(gp.jsonl("in/*.jsonl", schema={"user": str, "at": int}, time="at"), name="rows")
rows.map_batches(lambda batch: batch).write(gp.jsonl_folder("rows"))
sessions = rows.key_by("user").window(gp.session("10s")).count()
sessions.map(lambda r: [r.key, r.start, r.end, r.value]).write(gp.jsonl_folder("sessions"))
lines = app.read(gp.files("app.log", timestamp=lambda line: int(line.split()[0])), name="lines")
lines.write(gp.jsonl_folder("lines"))
"""
RUN: Final = (
    *(sys.executable, "-m", "gearpy", "run", "--quiet", "--resume", "./run"),
    *("--until", "caught-up", "--set", "checkpoint.interval-ms=50"),
    *("--set", "source.read-batch-size=64", "nightly.py"),
)
GAP_MS: Final = 10_000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    (tmp_path / "nightly.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "in").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("rounds", "seed"), [(2, 1), pytest.param(20, 2, marks=pytest.mark.long, id="many")]
)
def test_each_row_comes_once_over_nights_that_are_killed(rounds: int, seed: int) -> None:
    rng, rows, lines, at = Random(seed), list[dict[str, Any]](), list[str](), 1_000_000
    for number in range(rounds + 1):
        with Path(f"in/day{number // 2}.jsonl").open("a", encoding="utf-8") as file:
            for _ in range(3_000):
                at += rng.randrange(4_000)
                rows.append({"user": rng.choice("abcdef"), "at": at})
                file.write(json.dumps(rows[-1]) + "\n")
        with Path("app.log").open("a", encoding="utf-8") as file:
            for _ in range(1_000):
                lines.append(f"{at} {len(lines)}")
                file.write(f"{lines[-1]}\n")
        if number == rounds:
            break
        with subprocess.Popen(RUN, stderr=subprocess.PIPE) as night:
            time.sleep(rng.uniform(0.5, 3))
            night.kill()
            said = night.communicate(timeout=DEADLINE_S)[1]
        assert said == b""
    last = subprocess.run(RUN, capture_output=True, timeout=DEADLINE_S, check=False)
    assert (last.returncode, last.stderr) == (0, b"")

    by_time = sorted(_shown("rows"), key=lambda row: int(row["at"]))
    assert by_time == rows
    assert sorted(_shown("lines")) == sorted(lines)
    closed = [each for each in _sessions_of(rows) if each[2] <= at]
    assert sorted(_shown("sessions")) == sorted(closed)


def _shown(folder: str) -> list[Any]:
    texts = [file.read_text(encoding="utf-8") for file in Path(folder).glob("*.jsonl")]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def _sessions_of(rows: list[dict[str, Any]]) -> list[list[Any]]:
    found: list[list[Any]] = []
    for user in "abcdef":
        times = [row["at"] for row in rows if row["user"] == user]
        first = 0
        for place, time_ms in enumerate(times):
            if place + 1 == len(times) or times[place + 1] - time_ms >= GAP_MS:
                found.append([user, times[first], time_ms + GAP_MS, place + 1 - first])
                first = place + 1
    return found
