"""Makes clicks of a shop as they are: visits, favourites, evenings, and things that break.

    python examples/spark_pipeline/generate.py --events 200000 --seed 7 --out clicks

writes ``events/collector-*.jsonl``, lines in the order in which they came in, and ``pages.csv``,
the table of what the shop offers. The same seed makes the same files.

- A visit is some clicks of a user, half a minute apart; more of them begin in the evening.
- Few pages get most of the clicks (Zipf), and few users come often.
- A click comes in up to 20 s after it was made; one of 300 was stuck in a phone for minutes.
- One line of 500 is broken: cut off, without a user, of an unknown kind, with a price below zero,
  or with a clock that is years ahead.
"""

import argparse
import csv
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple

__all__ = ["Made", "Shop", "Traffic", "make"]

START: Final = datetime(2026, 3, 2, tzinfo=UTC)  # A Monday.
CATEGORIES: Final = ("books", "garden", "kitchen", "music", "shoes", "toys")
#: Visits that begin in an hour, midnight first.
DAY_CURVE: Final = (
    *(3, 2, 1, 1, 1, 2, 4, 7, 9, 10, 11, 12),
    *(13, 12, 11, 11, 12, 14, 17, 20, 22, 20, 14, 8),
)
CLICKS_PER_VISIT: Final = 6
SECONDS_BETWEEN_CLICKS: Final = 35
BUYS: Final = 0.04
DISORDER_S: Final = 20
LATE: Final = 1 / 300
BAD: Final = 1 / 500
ZIPF_PAGES: Final = 1.1
ZIPF_USERS: Final = 0.6


class Arrival(NamedTuple):
    """A line, and when it comes in."""

    at: datetime
    line: str


class Made(NamedTuple):
    """What was written."""

    lines: int
    bad: int


class Shop:
    """What a shop offers and who comes: pages with a category and a price, and users.

    Args:
        rng: rolls the prices.
        pages: how many.
        users: how many.
    """

    def __init__(self, rng: random.Random, *, pages: int, users: int) -> None:
        self.pages = [f"p{number:03}" for number in range(pages)]
        self.users = [f"u{number:05}" for number in range(users)]
        self.cents = {page: 100 * rng.randrange(3, 90) - 1 for page in self.pages}
        self._page_weights = _zipf(pages, ZIPF_PAGES)
        self._user_weights = _zipf(users, ZIPF_USERS)

    def category(self, page: str) -> str:
        """Return what kind of thing a page offers."""
        return CATEGORIES[int(page[1:]) % len(CATEGORIES)]

    def some_pages(self, rng: random.Random, count: int) -> list[str]:
        """Return pages as they are looked at."""
        return rng.choices(self.pages, cum_weights=self._page_weights, k=count)

    def some_user(self, rng: random.Random) -> str:
        """Return somebody who comes."""
        return rng.choices(self.users, cum_weights=self._user_weights)[0]

    def write_pages(self, file: Path) -> None:
        """Write the table of all pages."""
        with file.open("w", encoding="utf-8", newline="") as opened:
            rows = csv.writer(opened)
            rows.writerow(["page", "title", "category"])
            for page in self.pages:
                category = self.category(page)
                rows.writerow([page, f"{category} {page[1:]}", category])


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """How many clicks are made, and over how long.

    Attributes:
        events: lines, bad ones included.
        seed: others have other clicks.
        days: over which they are spread.
        collectors: files; each has a part of the clicks, by chance.
    """

    events: int
    seed: int = 7
    days: int = 2
    collectors: int = 4


def make(traffic: Traffic, folder: Path) -> Made:
    """Write the files of events and the table of pages into a folder."""
    rng = random.Random(traffic.seed)
    shop = Shop(rng, pages=300, users=max(20, traffic.events // 30))
    arrivals = sorted(_arrivals(traffic, shop, rng))
    places = sorted(rng.sample(range(len(arrivals)), round(traffic.events * BAD)))
    for place in places:
        at, line = arrivals[place]
        arrivals[place] = Arrival(at, _broken(line, rng))
    shop.write_pages(folder / "pages.csv")
    _write(arrivals, traffic.collectors, folder / "events", rng)
    return Made(len(arrivals), len(places))


def _arrivals(traffic: Traffic, shop: Shop, rng: random.Random) -> Iterator[Arrival]:
    left = traffic.events
    while left:
        visit = list(_visit(traffic, shop, rng))[:left]
        left -= len(visit)
        for click in visit:
            made: datetime = click["at"]
            is_late = rng.random() < LATE
            delay_s = rng.uniform(300, 1800) if is_late else DISORDER_S * rng.random() ** 3
            line = json.dumps(click | {"at": _iso(made)})
            yield Arrival(made + timedelta(seconds=delay_s), line)


def _visit(traffic: Traffic, shop: Shop, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Yield what a user does until leaving: looks, and sometimes buys."""
    hour = rng.choices(range(len(DAY_CURVE)), DAY_CURVE)[0]
    hours = rng.randrange(traffic.days) * len(DAY_CURVE) + hour + rng.random()
    at = START + timedelta(hours=hours)
    user = shop.some_user(rng)
    clicks = 1 + int(rng.expovariate(1 / (CLICKS_PER_VISIT - 1)))
    for page in shop.some_pages(rng, clicks):
        yield {"at": at, "user": user, "page": page, "kind": "view"}
        at += timedelta(seconds=rng.expovariate(1 / SECONDS_BETWEEN_CLICKS))
        if rng.random() < BUYS:
            cents = shop.cents[page] * rng.choice((1, 1, 1, 2, 3))
            yield {"at": at, "user": user, "page": page, "kind": "purchase", "cents": cents}
            at += timedelta(seconds=rng.expovariate(1 / SECONDS_BETWEEN_CLICKS))


def _broken(line: str, rng: random.Random) -> str:
    """Return a line with something wrong."""
    fields = json.loads(line)
    match rng.randrange(5):
        case 0:
            return line[: rng.randrange(1, len(line) - 1)]
        case 1:
            del fields["user"]
        case 2:
            fields["kind"] = "hover"
        case 3:
            fields["cents"] = -1
        case _:
            fields["at"] = "2099" + fields["at"][4:]
    return json.dumps(fields)


def _write(arrivals: Sequence[Arrival], files: int, folder: Path, rng: random.Random) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        opened = [
            stack.enter_context((folder / f"collector-{number}.jsonl").open("w", encoding="utf-8"))
            for number in range(files)
        ]
        for arrival in arrivals:
            opened[rng.randrange(files)].write(arrival.line + "\n")


def _zipf(count: int, exponent: float) -> list[float]:
    """Return cumulative weights: the n-th thing comes as often as the first, by n^exponent."""
    return list(accumulate(1 / rank**exponent for rank in range(1, count + 1)))


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def main() -> None:
    """Read the command line, and make the files."""
    parser = argparse.ArgumentParser(prog="generate.py", description="Make clicks of a shop.")
    parser.add_argument("--events", type=int, default=200_000, metavar="N", help="how many")
    parser.add_argument("--seed", type=int, default=7, help="others have other clicks")
    parser.add_argument("--out", type=Path, default=Path("clicks"), metavar="FOLDER")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    made = make(Traffic(events=options.events, seed=options.seed), options.out)
    print(f"{made.lines} lines, {made.bad} of them bad, in {options.out}")


if __name__ == "__main__":
    main()
