"""The queries of `examples/nexmark` give what plain Python makes of the same events.

The right answers are computed here of a list of all events, with loops and dicts, by what the
queries mean and not by how they are written.
"""

import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from textwrap import indent
from typing import Any, Final

import pytest

import gearpy as gp
from gearpy.testing import EpochFaults, MemoryTransactions, Simulation
from tests.eventually import DEADLINE_S
from tests.examples.program_modules import modules_of

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "examples" / "nexmark"
PAGE: Final = ROOT / "docs" / "nexmark.md"
PROGRAM: Final = FOLDER / "run.py"
MODULES: Final = ("events", "columns", "winning_bids", "queries", "run")

#: Settings of `Nexmark`, beside how many events. Sessions and auctions end within each of them.
IN_ORDER: Final = {"out_of_order_ms": 0, "per_second": 60}
OUT_OF_ORDER: Final = {
    "out_of_order_ms": 3000,
    "partitions": 2,
    "seed": 7,
    "per_second": 60,
    "table_events": 50,
}


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, Any]]:
    """Import the modules of the program as Python does when it is run."""
    with modules_of(FOLDER, MODULES) as modules:
        yield modules


# -- the right answers -----------------------------------------------------------------------------


class Site:
    """All that has happened, as lists."""

    def __init__(self, events: Sequence[Any]) -> None:
        kinds: dict[str, list[Any]] = {"Person": [], "Auction": [], "Bid": []}
        for event in events:
            kinds[type(event).__name__].append(event)
        self.people, self.auctions, self.bids = (kinds[x] for x in ("Person", "Auction", "Bid"))


def passed_on(site: Site) -> Any:
    return Counter(map(row_of, site.bids))


def converted(site: Site) -> Any:
    return Counter(
        (bid.auction, bid.bidder, bid.price * 89 // 100, bid.channel, bid.time_ms)
        for bid in site.bids
    )


def selected(site: Site) -> Any:
    return Counter((bid.auction, bid.price) for bid in site.bids if bid.auction % 123 == 0)


def local_items(site: Site) -> Any:
    """Auctions of category 10 whose sellers are of three states, whenever they joined."""
    people = {person.id: person for person in site.people}
    return Counter(
        (seller.name, seller.city, seller.state, auction.id)
        for auction in site.auctions
        if auction.category == 10
        for seller in [people[auction.seller]]
        if seller.state in {"OR", "ID", "CA"}
    )


def sales(site: Site) -> list[tuple[int, int, int, int, int, int]]:
    """Return auction, category, seller, bidder, price and end of what was sold, oldest first."""
    found = []
    bids = gathered((bid.auction, bid) for bid in site.bids)
    for auction in site.auctions:
        valid = [
            bid
            for bid in bids[auction.id]
            if auction.time_ms <= bid.time_ms < auction.expires_ms and bid.price >= auction.reserve
        ]
        if valid:
            best = min(valid, key=lambda bid: (-bid.price, bid.time_ms, bid.bidder))
            about = (auction.id, auction.category, auction.seller)
            found.append((*about, best.bidder, best.price, auction.expires_ms))
    return sorted(found, key=lambda sale: (sale[5], sale[0]))


def winning_bids(site: Site) -> Any:
    return Counter(sales(site))


def category_prices(site: Site) -> Any:
    """Return the mean of all prices of a category, and how many there are."""
    return {
        category: (len(prices), fmean(prices))
        for category, prices in gathered((sale[1], sale[4]) for sale in sales(site)).items()
    }


def seller_prices(site: Site) -> Any:
    """Return the mean of the last ten prices of a seller, and how many there are in all."""
    return {
        seller: (len(prices), fmean(prices[-10:]))
        for seller, prices in gathered((sale[2], sale[4]) for sale in sales(site)).items()
    }


def hot_items(site: Site) -> Any:
    """Return the auction with most bids of each window that has any."""
    windows: dict[int, Counter[int]] = defaultdict(Counter)
    for bid in site.bids:
        newest = bid.time_ms // 2000 * 2000
        for start in range(newest - 8000, newest + 1, 2000):
            windows[start][bid.auction] += 1
    hottest = {
        start: min(counts.items(), key=lambda item: (-item[1], item[0]))
        for start, counts in windows.items()
    }
    return Counter((*hottest[start], start, start + 10_000) for start in hottest)


def highest_bids(site: Site) -> Any:
    prices = gathered((bid.time_ms // 10_000 * 10_000, bid.price) for bid in site.bids)
    return Counter((None, max(prices[start]), start, start + 10_000) for start in prices)


def new_sellers(site: Site) -> Any:
    """Return each auction by somebody who has joined in the same window."""
    people = {(person.id, person.time_ms // 10_000): person for person in site.people}
    return Counter(
        (auction.seller, people[place].name, auction.id)
        for auction in site.auctions
        if (place := (auction.seller, auction.time_ms // 10_000)) in people
    )


def sessions(site: Site) -> Any:
    """Return how many bids of a person have no gap of ten seconds between them."""
    found: Counter[tuple[Any, ...]] = Counter()
    for bidder, times in gathered((bid.bidder, bid.time_ms) for bid in site.bids).items():
        times.sort()
        starts = [at for at in range(len(times)) if not at or times[at] - times[at - 1] >= 10_000]
        for start, stop in zip(starts, [*starts[1:], len(times)], strict=True):
            found[bidder, stop - start, times[start], times[stop - 1] + 10_000] += 1
    return found


def bids_by_person(site: Site) -> Any:
    return Counter(bid.bidder for bid in site.bids)


def gathered(pairs: Iterator[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    lists: dict[Any, list[Any]] = defaultdict(list)
    for key, value in pairs:
        lists[key].append(value)
    return lists


# -- what is compared ------------------------------------------------------------------------------


def all_of(rows: list[tuple[Any, ...]]) -> Any:
    """Return how often each answer came; of a `WindowResult` the first four fields."""
    return Counter(row[:4] if row[5:6] == ("on-time",) else row for row in rows)


def last_of(rows: list[tuple[Any, ...]]) -> Any:
    """Return how many answers a key has, and the last one."""
    return {key: (len(values), values[-1]) for key, values in gathered(iter(rows)).items()}


def sums_of(rows: list[tuple[Any, ...]]) -> Any:
    """Return the sum of the values of a key, whatever their windows."""
    return Counter(
        {key: sum(values) for key, values in gathered((r[0], r[1]) for r in rows).items()}
    )


ANSWERS: Final[dict[str, tuple[Callable[[Site], Any], Callable[[list[Any]], Any]]]] = {
    "q0": (passed_on, all_of),
    "q1": (converted, all_of),
    "q2": (selected, all_of),
    "q3": (local_items, all_of),
    "q4": (category_prices, last_of),
    "q5": (hot_items, all_of),
    "q6": (seller_prices, last_of),
    "q7": (highest_bids, all_of),
    "q8": (new_sellers, all_of),
    "q9": (winning_bids, all_of),
    "q11": (sessions, all_of),
    "q12": (bids_by_person, sums_of),
}


def rows_of(answers: list[Any]) -> list[tuple[Any, ...]]:
    return [answer if isinstance(answer, tuple) else row_of(answer) for answer in answers]


def row_of(record: Any) -> tuple[Any, ...]:
    return attrgetter(*type(record).__dataclass_fields__)(record)


def site_of(nexmark: Any) -> Site:
    return Site([nexmark.event(number) for number in range(nexmark.events)])


def asked(modules: dict[str, Any], query: str, nexmark: Any, sink: gp.Sink) -> gp.StreamApp:
    app = gp.StreamApp(query, parallelism=nexmark.partitions)
    queries = modules["queries"]
    queries.QUERIES[query](queries.Streams(app, nexmark)).write(sink)
    return app


# -- queries ---------------------------------------------------------------------------------------


def test_every_query_is_checked(modules: dict[str, Any]) -> None:
    """Who adds a query writes down what is right."""
    assert list(modules["queries"].QUERIES) == list(ANSWERS)


@pytest.mark.parametrize(
    "settings", [IN_ORDER, OUT_OF_ORDER], ids=["one task", "two tasks out of order"]
)
@pytest.mark.parametrize("query", ANSWERS)
def test_answers_are_those_of_plain_python(
    query: str, settings: dict[str, Any], modules: dict[str, Any]
) -> None:
    """A query over streams and a loop over a list come to the same."""
    nexmark = modules["events"].Nexmark(events=3025, **settings)
    right, compared = ANSWERS[query]
    answers: list[Any] = []

    summary = gp.run(asked(modules, query, nexmark, gp.to_list(answers)))

    expected = right(site_of(nexmark))
    assert expected, "nothing would be compared"
    assert compared(rows_of(answers)) == expected
    assert summary.progress.late_records == 0


@pytest.mark.parametrize("query", ANSWERS)
def test_answers_survive_crashes(query: str, modules: dict[str, Any]) -> None:
    """Going back to the last epoch, whenever it is, neither loses nor doubles an answer."""
    nexmark = modules["events"].Nexmark(events=1000, **OUT_OF_ORDER | {"per_second": 20})
    right, compared = ANSWERS[query]
    sink = MemoryTransactions()
    app = asked(modules, query, nexmark, sink)
    faults = EpochFaults(store_ms=5, commit_ms=5, given_up=0.2, commits_lost=0.2)

    simulation = Simulation(
        app, seed=5, cut_every_ms=8, crash_at_ms=[15, 30, 50], faults=faults
    ).run()

    assert simulation.crashes == 3
    assert compared(rows_of(sink.values)) == right(site_of(nexmark))


# -- events ----------------------------------------------------------------------------------------


def test_of_fifty_events_one_is_a_person_and_three_are_auctions(modules: dict[str, Any]) -> None:
    """Proportions are those of Nexmark, in every group of fifty."""
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
    """Nobody sells before joining, and bids are on auctions that were opened, by number."""
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
    """Half of the bids are on a few auctions, three quarters by a few people."""
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
    """What was read once can be read again; another seed has other events."""
    make = modules["events"].Nexmark

    first, again, other = (
        [make(seed=seed).event(number) for number in range(200)] for seed in (1, 1, 2)
    )

    assert first == again
    assert sum(a == b for a, b in zip(first, other, strict=True)) < 3


def test_partitions_share_the_events(modules: dict[str, Any]) -> None:
    """Three partitions have together what one has."""
    make = modules["events"].Nexmark
    shared = make(events=100, partitions=3)

    parts = [
        [event for event, _ in zip(shared.part(part), range(part, 100, 3), strict=False)]
        for part in range(3)
    ]

    assert set(chain(*parts)) == {make().event(number) for number in range(100)}
    assert [len(part) for part in parts] == [34, 33, 33]


def test_a_rate_changes_no_answer(modules: dict[str, Any]) -> None:
    """It says when events are read, not what is in them."""
    nexmark = modules["events"].Nexmark(events=300, rate=3000)
    rows: list[Any] = []
    columns: list[Any] = []

    gp.run(asked(modules, "q12", nexmark, gp.to_list(rows)))
    gp.run(asked(modules, "q0", nexmark, gp.to_list(columns)))

    site = site_of(nexmark)
    assert sums_of(rows_of(rows)) == bids_by_person(site)
    assert all_of(rows_of(columns)) == passed_on(site)


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
    """The answers in the documentation are the first ones of the command above them."""
    text = PAGE.read_text(encoding="utf-8")
    shown = re.findall(
        r"^\$ bin/gear run \S+ --quiet -- (.+)\n((?:.+\n)*?)\.\.\.$", text, re.MULTILINE
    )
    assert shown

    for args, answers in shown:
        gp.run(modules["run"].main(args.split()))
        assert capsys.readouterr().out.startswith(answers)


def test_the_page_shows_the_query_as_it_is() -> None:
    """The program in the documentation is that of the example."""
    program = (FOLDER / "queries.py").read_text(encoding="utf-8")
    shown = re.findall(
        r"^```text\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )

    assert shown
    for lines in shown:
        assert indent(lines, " " * 4) in program


def test_the_program_writes_answers(modules: dict[str, Any], tmp_path: Path) -> None:
    """With --out they are rows of Parquet files, each once."""
    from pyarrow import dataset  # type: ignore[import-untyped]  # noqa: PLC0415 - takes its time

    args = ["q9", "--events", "2000", "--parallelism", "2", "--out", str(tmp_path)]

    gp.run(modules["run"].main(args))

    rows = dataset.dataset(sorted(map(str, tmp_path.glob("*.parquet")))).to_table().to_pylist()
    nexmark = modules["events"].Nexmark(events=2000)
    assert Counter(tuple(row.values()) for row in rows) == winning_bids(site_of(nexmark))


def test_the_program_lists_its_queries(
    modules: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its help says what each of them asks."""
    with pytest.raises(SystemExit):
        modules["run"].main(["--help"])

    printed = capsys.readouterr().out
    assert "  q5   Hot items: " in printed
    assert "  q12  Processing time windows: " in printed
