"""The right answers to the queries of `examples/nexmark`, by loops over a list of all events.

They are computed by what the queries mean, and not by how they are written; those from q13 on are
the loops that the benchmark runs, which are compared with the others here, too.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import fmean
from typing import Any, Final

from tests.bench import nexmark_loops as loops
from tests.bench.nexmark_loops import LOOPS


class Site:
    def __init__(self, events: Sequence[Any]) -> None:
        kinds: dict[str, list[Any]] = {"Person": [], "Auction": [], "Bid": []}
        for event in events:
            kinds[type(event).__name__].append(event)
        self.people, self.auctions, self.bids = (kinds[x] for x in ("Person", "Auction", "Bid"))
        self.for_loops = loops.Site(events, self.bids, type(self.bids[0]))


def passed_on(site: Site) -> Any:
    return Counter(site.bids)


def converted(site: Site) -> Any:
    return Counter(
        (bid.auction, bid.bidder, bid.price * 89 // 100, bid.channel, bid.time_ms, bid.url)
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


def seller_prices_by_bid(site: Site) -> Any:
    """Return the same, where a sale has the time of its last bid."""
    ends = {auction.id: auction.expires_ms for auction in site.auctions}
    reserves = {auction.id: auction.reserve for auction in site.auctions}
    bids = {
        bid.auction: bid.time_ms
        for bid in sorted(site.bids, key=lambda bid: bid.time_ms)
        if bid.time_ms < ends[bid.auction] and bid.price >= reserves[bid.auction]
    }
    by_bid = sorted(sales(site), key=lambda sale: bids[sale[0]])
    return {
        seller: (len(prices), fmean(prices[-10:]))
        for seller, prices in gathered((sale[2], sale[4]) for sale in by_bid).items()
    }


def hot_items(site: Site) -> Any:
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
    people = {(person.id, person.time_ms // 10_000): person for person in site.people}
    return Counter(
        (auction.seller, people[place].name, auction.id)
        for auction in site.auctions
        if (place := (auction.seller, auction.time_ms // 10_000)) in people
    )


def sessions(site: Site) -> Any:
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


def all_of(answers: list[Any]) -> Any:
    """Return how often each answer came; of a `WindowResult` the first four fields."""
    rows = (tuple(row.values()) if isinstance(row, dict) else row for row in answers)
    return Counter(row[:4] if row[5:6] == ("on-time",) else row for row in rows)


def last_of(answers: list[Any]) -> Any:
    return {key: (len(values), values[-1]) for key, values in gathered(iter(answers)).items()}


def sums_of(answers: list[Any]) -> Any:
    return Counter(
        {key: sum(values) for key, values in gathered((r[0], r[1]) for r in answers).items()}
    )


def looped(loop: Callable[[loops.Site], loops.Rows], site: Site) -> Any:
    """Return how often each row of an answer comes, as the loops of the benchmark find it."""
    return Counter(loop(site.for_loops))


def counted_rows(query: str, answers: list[Any]) -> Any:
    return Counter(loops.answer_rows(query, answers))


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
    **{
        query: (partial(looped, LOOPS[query]), partial(counted_rows, query))
        for query in ("q13", "q14", "q15", "q16", "q17", "q18", "q19", "q20", "q21", "q22")
    },
}


def site_of(nexmark: Any) -> Site:
    return Site([nexmark.event(number) for number in range(nexmark.events)])
