"""The queries of `examples/nexmark` give what plain Python makes of the same events.

The right answers are those of `nexmark_answers`.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain, groupby
from pathlib import Path
from textwrap import indent
from typing import Any, Final

import pytest

import gearpy as gp
from gearpy.testing import EpochFaults, MemoryTransactions, Simulation
from tests.bench.nexmark_loops import LOOPS
from tests.eventually import DEADLINE_S
from tests.examples.nexmark_answers import (
    ANSWERS,
    all_of,
    bids_by_person,
    counted_rows,
    last_of,
    looped,
    passed_on,
    site_of,
    sums_of,
    winning_bids,
)
from tests.examples.program_modules import modules_of

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "examples" / "nexmark"
PAGE: Final = ROOT / "docs" / "nexmark.md"
PROGRAM: Final = FOLDER / "run.py"
MODULES: Final = ("events", "columns", "winning_bids", "queries", "run")

#: Settings of `Nexmark`, beside how many events. Sessions and auctions end within each of them.
IN_ORDER: Final = {"out_of_order_ms": 0, "per_second": 20}
OUT_OF_ORDER: Final = {
    "out_of_order_ms": 3000,
    "partitions": 2,
    "seed": 7,
    "per_second": 20,
    "table_events": 50,
}


#: How answers are compared where they are not those of the loops themselves.
COMPARED: Final = (all_of, last_of)


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, Any]]:
    with modules_of(FOLDER, MODULES) as modules:
        yield modules


def asked(
    modules: dict[str, Any], query: str, nexmark: Any, sink: gp.Sink, form: str | None = None
) -> gp.StreamApp:
    app = gp.StreamApp(query, parallelism=nexmark.partitions)
    modules["queries"].answers_of(query, app, nexmark, form).write(sink)
    return app


# -- queries ---------------------------------------------------------------------------------------


def test_every_query_is_checked(modules: dict[str, Any]) -> None:
    assert list(modules["queries"].QUERIES) == list(ANSWERS)


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize("query", ANSWERS)
def test_answers_are_those_of_plain_python(query: str, form: str, modules: dict[str, Any]) -> None:
    nexmark = modules["events"].Nexmark(events=3025 if query == "q2" else 1025, **IN_ORDER)
    right, compared = ANSWERS[query]
    answers: list[Any] = []

    simulation = Simulation(asked(modules, query, nexmark, gp.to_list(answers), form)).run()

    expected = right(site_of(nexmark))
    assert expected, "nothing would be compared"
    assert compared(answers) == expected
    assert sum(clock.late_records for clock in simulation.clocks()) == 0


@pytest.mark.parametrize("query", ANSWERS)
def test_answers_survive_crashes(query: str, modules: dict[str, Any]) -> None:
    nexmark = modules["events"].Nexmark(events=1000, **OUT_OF_ORDER)
    right, compared = ANSWERS[query]
    sink = MemoryTransactions()
    app = asked(modules, query, nexmark, sink)
    faults = EpochFaults(store_ms=5, commit_ms=5, given_up=0.2, commits_lost=0.2)

    simulation = Simulation(
        app, seed=5, cut_every_ms=8, crash_at_ms=[15, 30, 50], faults=faults, may_miss=True
    ).run()

    assert simulation.crashes == 3
    assert compared(sink.values) == right(site_of(nexmark))
    assert sum(clock.late_records for clock in simulation.clocks()) == 0


@pytest.mark.parametrize("query", [query for query in LOOPS if ANSWERS[query][1] in COMPARED])
def test_loops_of_the_benchmark_give_the_same(query: str, modules: dict[str, Any]) -> None:
    nexmark = modules["events"].Nexmark(events=3000, out_of_order_ms=3000, per_second=20)
    answers: list[Any] = []

    Simulation(asked(modules, query, nexmark, gp.to_list(answers))).run()

    assert counted_rows(query, answers) == looped(LOOPS[query], site_of(nexmark))


# -- events ----------------------------------------------------------------------------------------


def test_of_fifty_events_one_is_a_person_and_three_are_auctions(modules: dict[str, Any]) -> None:
    nexmark = modules["events"].Nexmark(events=500)

    site = site_of(nexmark)

    assert [len(site.people), len(site.auctions), len(site.bids)] == [10, 30, 460]
    kinds = [type(nexmark.event(number)).__name__ for number in range(100)]
    assert [(kind, len(list(same))) for kind, same in groupby(kinds)] == 2 * [
        ("Person", 1),
        ("Auction", 3),
        ("Bid", 46),
    ]


def test_events_are_about_people_and_auctions_that_are_there(modules: dict[str, Any]) -> None:
    nexmark = modules["events"].Nexmark(events=20_000)
    people, auctions = set(), set()

    for number in range(nexmark.events):
        match type(event := nexmark.event(number)).__name__:
            case "Person":
                people.add(event.id)
            case "Auction":
                assert event.seller in people
                auctions.add(event.id)
            case _:
                assert event.bidder in people
                assert event.auction in auctions

    assert len(people) == 400
    assert len(auctions) == 1200


def test_some_are_hot(modules: dict[str, Any]) -> None:
    site = site_of(modules["events"].Nexmark(events=20_000))

    on_hot = sum(bid.auction % 100 == 0 for bid in site.bids) / len(site.bids)
    by_hot = sum(bid.bidder % 100 == 1 for bid in site.bids) / len(site.bids)
    of_hot = sum(auction.seller % 100 == 0 for auction in site.auctions) / len(site.auctions)

    assert [on_hot, by_hot, of_hot] == pytest.approx([0.505, 0.7525, 0.7525], abs=0.03)


@pytest.mark.parametrize("late_ms", [0, 1, 5000])
def test_events_are_no_later_than_they_may_be(late_ms: int, modules: dict[str, Any]) -> None:
    """No event is older than the newest before it by more than the bound; some nearly are."""
    nexmark = modules["events"].Nexmark(events=5000, out_of_order_ms=late_ms, per_second=9999)
    newest, most = 0, 0

    for number in range(nexmark.events):
        time_ms = nexmark.event(number).time_ms
        newest = max(newest, time_ms)
        most = max(most, newest - time_ms)

    assert late_ms * 0.9 <= most <= late_ms


def test_a_seed_gives_the_same_events_again(modules: dict[str, Any]) -> None:
    make = modules["events"].Nexmark

    first, again, other = (
        [make(seed=seed).event(number) for number in range(200)] for seed in (1, 1, 2)
    )

    assert first == again
    assert sum(a == b for a, b in zip(first, other, strict=True)) < 3


def test_partitions_share_the_events(modules: dict[str, Any]) -> None:
    make = modules["events"].Nexmark
    shared = make(events=100, partitions=3)

    parts = [
        [event for event, _ in zip(shared.part(part), range(part, 100, 3), strict=False)]
        for part in range(3)
    ]

    assert set(chain(*parts)) == {make().event(number) for number in range(100)}
    assert [len(part) for part in parts] == [34, 33, 33]


def test_a_rate_changes_no_answer(modules: dict[str, Any]) -> None:
    nexmark = modules["events"].Nexmark(events=300, rate=3000)
    rows: list[Any] = []
    columns: list[Any] = []

    gp.run(asked(modules, "q12", nexmark, gp.to_list(rows)))
    gp.run(asked(modules, "q0", nexmark, gp.to_list(columns)))

    site = site_of(nexmark)
    assert sums_of(rows) == bids_by_person(site)
    assert all_of(columns) == passed_on(site)


# -- the program -----------------------------------------------------------------------------------


def test_the_program_prints_answers() -> None:
    """One line for each answer, and nothing else on standard output."""
    done = subprocess.run(
        [sys.executable, "-m", "gearpy", "run", str(PROGRAM), "--", "q7", "--events", "3000"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("WindowResult(key=None, value=")


def test_the_page_shows_what_the_program_prints(
    modules: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = re.findall(
        r"^\$ bin/gear run \S+ --quiet -- (.+)\n((?:.+\n)*?)\.\.\.$", text, re.MULTILINE
    )
    assert shown

    for args, answers in shown:
        gp.run(modules["run"].main(args.split()))
        assert capsys.readouterr().out.startswith(answers)


def test_the_page_shows_the_query_as_it_is() -> None:
    program = "".join((FOLDER / name).read_text("utf-8") for name in ("queries.py", "sql.py"))
    shown = re.findall(
        r"^```text\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )

    assert shown
    for lines in shown:
        assert any(indent(lines, " " * depth) in program for depth in (4, 8))


def test_the_program_writes_answers(modules: dict[str, Any], tmp_path: Path) -> None:
    from pyarrow import dataset  # type: ignore[import-untyped]  # noqa: PLC0415 - takes its time

    args = ["q9", "--events", "2000", "--parallelism", "2", "--out", str(tmp_path)]

    gp.run(modules["run"].main(args))

    rows = dataset.dataset(sorted(map(str, tmp_path.glob("*.parquet")))).to_table().to_pylist()
    nexmark = modules["events"].Nexmark(events=2000)
    assert Counter(tuple(row.values()) for row in rows) == winning_bids(site_of(nexmark))


def test_the_program_lists_its_queries(
    modules: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        modules["run"].main(["--help"])

    printed = capsys.readouterr().out
    assert "  q5   Hot items: " in printed
    assert "  q12  Processing time windows: " in printed
