"""The programs in `examples` give what they promise, however they are started."""

import json
import os
import random
import re
import runpy
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pytest

import gearpy as gp
from gearpy.cluster.embedded.run import run
from gearpy.testing import Simulation
from tests.eventually import DEADLINE_S

ROOT: Final = Path(__file__).parents[2]
EXAMPLES: Final = ROOT / "examples"

#: How people start a program: by the command line, or by Python alone.
STARTS: Final = [
    pytest.param([sys.executable, "-m", "gearpy", "run"], ["--"], id="gear run"),
    pytest.param([sys.executable], [], id="python"),
]
#: The same, the second of them for those who have the time: it is one for all programs.
SOME_STARTS: Final = [
    STARTS[0],
    pytest.param([sys.executable], [], id="python", marks=pytest.mark.long),
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


@pytest.mark.parametrize(
    ("start", "dashes", "options"),
    [
        pytest.param(*STARTS[0].values, [], id="gear run, one task", marks=pytest.mark.smoke),
        pytest.param(*STARTS[1].values, ["--parallelism", "3"], id="python, three tasks"),
    ],
)
def test_wordcount_counts_what_counter_counts(
    start: list[str], dashes: list[str], options: list[str], texts: list[str]
) -> None:
    printed = _start(start, "wordcount", [*dashes, "--top", "0", *options, *texts])

    header, *rows = printed.splitlines()
    assert header.split() == ["word", "count"]
    assert sorted(row.split() for row in rows) == _rows_of(_words(texts))


def test_wordcount_runs_embedded(texts: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main = runpy.run_path(str(EXAMPLES / "wordcount.py"))["main"]

    summary = run(main(["--top", "0", *texts]))

    assert summary.status == "succeeded"
    rows = capsys.readouterr().out.splitlines()[1:]
    assert sorted(row.split() for row in rows) == _rows_of(_words(texts))


@pytest.mark.parametrize(("start", "dashes"), SOME_STARTS)
def test_wordcount_counts_by_the_hour(
    start: list[str], dashes: list[str], texts: list[str]
) -> None:
    older, newer = texts[:2]
    os.utime(older, (1800, 1800))
    os.utime(newer, (5400, 5400))

    printed = _start(start, "wordcount", [*dashes, "--top", "0", "--window", "1h", older, newer])

    rows = sorted(row.split() for row in printed.splitlines()[1:])
    times = [f"1970-01-01T0{hour}:00:00Z" for hour in range(3)]
    expected = [[*row, times[0], times[1]] for row in _rows_of(_words([older]))]
    expected += [[*row, times[1], times[2]] for row in _rows_of(_words([newer]))]
    assert rows == sorted(expected)


def test_wordcount_prints_the_words_that_occur_most(texts: list[str]) -> None:
    printed = _start([sys.executable], "wordcount", ["--parallelism", "3", *texts])

    counted = [(count, word) for word, count in _words(texts).items()]
    most = [[word, str(count)] for count, word in sorted(counted, reverse=True)[:20]]
    assert [row.split() for row in printed.splitlines()[1:]] == most


@pytest.mark.parametrize(("start", "dashes"), SOME_STARTS)
def test_sol_says_how_fast_it_is(start: list[str], dashes: list[str], texts: list[str]) -> None:
    printed = _start(start, "sol", [*dashes, "--seconds", "0.5"])

    match = re.fullmatch(r"task 1\.0: [\d,]+ messages in [\d.]+ s, ([\d,]+) msg/s\n", printed)
    assert match is not None, printed
    assert int(match[1].replace(",", "")) > 0


@pytest.mark.parametrize(("start", "dashes"), SOME_STARTS)
def test_low_level_counts_each_word_in_one_task(
    start: list[str], dashes: list[str], texts: list[str]
) -> None:
    text = runpy.run_path(str(EXAMPLES / "low_level.py"))["TEXT"]
    expected = {word: 1000 * count for word, count in Counter(text.split()).items()}

    printed = _start(start, "low_level", dashes)

    assert sorted(row.split() for row in printed.splitlines()) == _rows_of(expected)


def test_low_level_has_a_graph_of_two_processors() -> None:
    app = runpy.run_path(str(EXAMPLES / "low_level.py"))["app"]

    built: gp.StreamApplication = app.build()

    assert [len(built.processors), len(list(built.dag.tasks()))] == [2, 3]


@pytest.mark.parametrize("options", [[], ["--parallelism", "3"]], ids=["one task", "three tasks"])
@pytest.mark.parametrize(("start", "dashes"), SOME_STARTS)
def test_carts_are_bought_or_left(
    start: list[str], dashes: list[str], options: list[str], texts: list[str]
) -> None:
    actions = [
        (0, "ada", "tea"),
        (5, "bob", "jam"),
        (10, "ada", "tea"),
        (20, "ada", None),
        (34, "bob", "fig"),  # Bob's cart would have been left at 35.
        (40, "eve", "tea"),
        (41, "cy", None),  # Nothing is in this cart.
        (70, "eve", "rye"),  # Too late for the first cart, by nothing.
    ]
    _write_actions("actions.jsonl", actions)

    _start(start, "carts", [*dashes, *options, "--out", "ends", "actions.jsonl"])

    assert _ends("ends") == Counter(
        [
            ("ada", "bought", (("tea", 2),)),
            ("bob", "left", (("fig", 1), ("jam", 1))),
            ("eve", "left", (("tea", 1),)),
            ("eve", "left", (("rye", 1),)),
        ]
    )


# Who is killed closes nothing.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_carts_end_once_whatever_is_read_again(texts: list[str]) -> None:
    """All tasks go back to the newest epoch, again and again; the folder does not show it."""
    rng = random.Random(1)
    actions: list[tuple[int, str, str | None]] = [
        (minute, f"user{rng.randrange(300)}", rng.choice(["tea", "jam", None]))
        for minute in range(2000)
    ]
    _write_actions("actions.jsonl", actions)
    main = runpy.run_path(str(EXAMPLES / "carts.py"))["main"]
    args = ["--out", "ends", "--patience", "600", "--late", "0s", "--parallelism", "2"]
    app: gp.StreamApp = main([*args, "actions.jsonl"])

    simulation = Simulation(
        app, seed=1, cut_every_ms=10, read_records=20, crashes_after_epochs=4
    ).run()

    assert simulation.restored
    assert _ends("ends") == Counter(_ends_of(actions, patience=600))


def _write_actions(name: str, actions: list[tuple[int, str, str | None]]) -> None:
    """Write the lines of a file of actions: minute, user, what was added; None is buying."""
    with Path(name).open("w", encoding="utf-8") as file:
        for minute, user, item in actions:
            time = datetime.fromtimestamp(60 * minute, UTC).isoformat()
            what = {"action": "buy"} if item is None else {"action": "add", "item": item}
            file.write(json.dumps({"time": time, "user": user, **what}) + "\n")


def _ends(folder: str) -> Counter[Any]:
    texts = [path.read_text(encoding="utf-8") for path in Path(folder).glob("*.jsonl")]
    ends = [json.loads(line) for text in texts for line in text.splitlines()]
    return Counter((end["user"], end["cart"], tuple(sorted(end["items"].items()))) for end in ends)


def _ends_of(
    actions: list[tuple[int, str, str | None]], *, patience: int
) -> Iterator[tuple[str, str, tuple[tuple[str, int], ...]]]:
    carts: dict[str, Counter[str]] = {}
    touched: dict[str, int] = {}
    for minute, user, item in actions:
        if user in carts and minute >= touched[user] + patience:
            yield user, "left", tuple(sorted(carts.pop(user).items()))
        if item is not None:
            carts.setdefault(user, Counter())[item] += 1
            touched[user] = minute
        elif user in carts:
            yield user, "bought", tuple(sorted(carts.pop(user).items()))
    yield from ((user, "left", tuple(sorted(cart.items()))) for user, cart in carts.items())


def test_orders_adds_up_what_was_ordered(tmp_path: Path) -> None:
    program = runpy.run_path(str(EXAMPLES / "orders.py"))
    out = tmp_path / "out"
    options = ["--limit", "4000", "--rate", "1e6", "--out", str(out)]

    summary = run(program["main"](options))

    assert summary.status == "succeeded"
    revenue: Counter[str] = Counter()
    for path in (out / "revenue").glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            country, value = json.loads(line)
            revenue[country] += value
    expected: Counter[str] = Counter()
    for part in range(2):
        for line in islice(program["orders"](part, 0), 2000):
            country, _, quantity = program["parse"](line)
            expected[country] += quantity
    assert revenue == expected


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
        text = Path(name).read_text(encoding="utf-8").lower()
        counts.update("".join(c if c.isalpha() else " " for c in text).split())
    return counts


def _rows_of(counts: dict[str, int]) -> list[list[str]]:
    return sorted([word, str(count)] for word, count in counts.items())
