"""The programs in `examples` give what they promise, however they are started."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

import gearpy as gp
from gearpy.cluster.local import run

ROOT: Final = Path(__file__).parents[2]
EXAMPLES: Final = ROOT / "examples"
DEADLINE_S: Final = 60

#: How people start a program: by the command line, or by Python alone.
STARTS: Final = [
    pytest.param([sys.executable, "-m", "gearpy", "run"], ["--"], id="gear run"),
    pytest.param([sys.executable], [], id="python"),
]


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Copy the pages of the project into the working directory; return their names."""
    for name in [name for name in os.environ if name.startswith("GEARPY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for page in pages:
        shutil.copy(page, tmp_path / page.name)
    return [page.name for page in pages]


@pytest.mark.parametrize("options", [[], ["--parallelism", "3"]], ids=["one task", "three tasks"])
@pytest.mark.parametrize(("start", "dashes"), STARTS)
def test_wordcount_counts_what_counter_counts(
    start: list[str], dashes: list[str], options: list[str], texts: list[str]
) -> None:
    """The table has each word once, with the count that the standard library finds."""
    printed = _start(start, "wordcount", [*dashes, *options, *texts])

    header, *rows = printed.splitlines()
    assert header.split() == ["word", "count"]
    assert sorted(row.split() for row in rows) == _rows_of(_words(texts))


def test_wordcount_runs_embedded(texts: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The function of the program makes an application that a test can run."""
    main = runpy.run_path(str(EXAMPLES / "wordcount.py"))["main"]

    summary = run(main(texts))

    assert summary.status == "succeeded"
    rows = capsys.readouterr().out.splitlines()[1:]
    assert sorted(row.split() for row in rows) == _rows_of(_words(texts))


@pytest.mark.parametrize(("start", "dashes"), STARTS)
def test_wordcount_counts_by_the_hour(
    start: list[str], dashes: list[str], texts: list[str]
) -> None:
    """With --window, words of files that were changed in different hours are counted apart."""
    older, newer = texts[:2]
    os.utime(older, (1800, 1800))
    os.utime(newer, (5400, 5400))

    printed = _start(start, "wordcount", [*dashes, "--window", "1h", older, newer])

    rows = sorted(row.split() for row in printed.splitlines()[1:])
    times = [f"1970-01-01T0{hour}:00:00Z" for hour in range(3)]
    expected = [[*row, times[0], times[1]] for row in _rows_of(_words([older]))]
    expected += [[*row, times[1], times[2]] for row in _rows_of(_words([newer]))]
    assert rows == sorted(expected)


@pytest.mark.parametrize(("start", "dashes"), STARTS)
def test_sol_says_how_fast_it_is(start: list[str], dashes: list[str], texts: list[str]) -> None:
    """Its last line has the messages per second."""
    printed = _start(start, "sol", [*dashes, "--seconds", "0.5"])

    match = re.fullmatch(r"task 1\.0: [\d,]+ messages in [\d.]+ s, ([\d,]+) msg/s\n", printed)
    assert match is not None, printed
    assert int(match[1].replace(",", "")) > 0


@pytest.mark.parametrize(("start", "dashes"), STARTS)
def test_low_level_counts_each_word_in_one_task(
    start: list[str], dashes: list[str], texts: list[str]
) -> None:
    """What its two tasks print together is every word once, with its count."""
    text = runpy.run_path(str(EXAMPLES / "low_level.py"))["TEXT"]
    expected = {word: 1000 * count for word, count in Counter(text.split()).items()}

    printed = _start(start, "low_level", dashes)

    assert sorted(row.split() for row in printed.splitlines()) == _rows_of(expected)


def test_low_level_has_a_graph_of_two_processors() -> None:
    """The application can be looked at before it runs."""
    app = runpy.run_path(str(EXAMPLES / "low_level.py"))["app"]

    built: gp.StreamApplication = app.build()

    assert [len(built.processors), len(list(built.dag.tasks()))] == [2, 3]


def _start(start: list[str], example: str, args: list[str]) -> str:
    """Run an example to its end; return what it printed, which must have gone well."""
    done = subprocess.run(
        [*start, str(EXAMPLES / f"{example}.py"), *args],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _words(names: list[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for name in names:
        counts.update(Path(name).read_text(encoding="utf-8").split())
    return counts


def _rows_of(counts: dict[str, int]) -> list[list[str]]:
    return sorted([word, str(count)] for word, count in counts.items())
