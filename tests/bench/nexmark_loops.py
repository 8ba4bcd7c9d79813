"""The questions of Nexmark as loops of plain Python: what rows could cost at best.

They know nothing of gearpy, and give the rows that `answer_rows` makes of its answers. They emit
nothing on the way, recover from nothing, and have all events at once.
"""

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter, itemgetter
from typing import Any, Final, TypeAlias

Rows: TypeAlias = Iterable[tuple[Any, ...]]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_PAUSE_MS: Final = 10_000
_WINDOW_MS: Final = 10_000
_SLIDE_MS: Final = 2000
_DAY_MS: Final = 86_400_000
_PARTS: Final = ["night"] * 7 + ["other"] + ["day"] * 11 + ["other"] + ["night"] * 4
_NUMBERS: Final = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
_TIME: Final = attrgetter("time_ms")
_BID: Final = attrgetter("auction", "bidder", "price", "channel", "time_ms", "url")
#: Column of a price in the counts: all, cheap, between, dear.
_CHEAP: Final = 10_000
_DEAR: Final = 100_000


class Site:
    """The events of an auction site, in their order."""

    def __init__(self, events: Sequence[Any], bids: Sequence[Any], make: type[Any]) -> None:
        """Keep events.

        Args:
            events: all of them.
            bids: those that are bids.
            make: the class of bids.
        """
        self.events, self.bids, self.make = events, bids, make

    def of(self, kind: str) -> list[Any]:
        return [event for event in self.events if type(event).__name__ == kind]


def q0(site: Site) -> Rows:
    return map(_BID, list(site.bids))


def q1(site: Site) -> Rows:
    make = site.make
    made = [
        make(b.auction, b.bidder, b.price * 89 // 100, b.channel, b.time_ms, b.url)
        for b in site.bids
    ]
    return map(_BID, made)


def q2(site: Site) -> Rows:
    return [(b.auction, b.price) for b in site.bids if b.auction % 123 == 0]


def q3(site: Site) -> Rows:
    people = {each.id: each for each in site.of("Person") if each.state in {"OR", "ID", "CA"}}
    return [
        (seller.name, seller.city, seller.state, auction.id)
        for auction in site.of("Auction")
        if auction.category == 10 and (seller := people.get(auction.seller))
    ]


def _sales(site: Site) -> list[tuple[Any, Any]]:
    """Return auctions with the best bid in each, in the order in which they end."""
    auctions: dict[int, Any] = {}
    best: dict[int, Any] = {}
    waiting: dict[int, list[Any]] = defaultdict(list)

    def consider(bid: Any, auction: Any) -> None:
        if auction.time_ms <= bid.time_ms < auction.expires_ms and bid.price >= auction.reserve:
            kept = best.get(auction.id)
            if kept is None or (-bid.price, bid.time_ms, bid.bidder) < (
                -kept.price,
                kept.time_ms,
                kept.bidder,
            ):
                best[auction.id] = bid

    for event in site.events:
        kind = type(event).__name__
        if kind == "Bid":
            if auction := auctions.get(event.auction):
                consider(event, auction)
            else:
                waiting[event.auction].append(event)
        elif kind == "Auction":
            auctions[event.id] = event
            for bid in waiting.pop(event.id, ()):
                consider(bid, event)
    sold = [(auctions[number], bid) for number, bid in best.items()]
    return sorted(sold, key=lambda sale: (sale[0].expires_ms, sale[0].id))


def q4(site: Site) -> Rows:
    totals: dict[int, list[int]] = {}
    for auction, bid in _sales(site):
        total = totals.setdefault(auction.category, [0, 0])
        total[0] += bid.price
        total[1] += 1
    return [(category, total / count) for category, (total, count) in totals.items()]


def q5(site: Site) -> Rows:
    panes: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for bid in site.bids:
        panes[bid.time_ms // _SLIDE_MS][bid.auction] += 1
    parts, found = _WINDOW_MS // _SLIDE_MS, []
    for last in range(min(panes), max(panes) + parts):
        counts: Counter[int] = Counter()
        for pane in range(last - parts + 1, last + 1):
            counts.update(panes.get(pane, {}))
        auction, bids = max(counts.items(), key=lambda item: (item[1], -item[0]))
        end = (last + 1) * _SLIDE_MS
        found.append((auction, bids, end - _WINDOW_MS, end))
    return found


def q6(site: Site) -> Rows:
    prices: dict[int, list[int]] = defaultdict(list)
    for auction, bid in _sales(site):
        prices[auction.seller].append(bid.price)
    return [(seller, sum(each[-10:]) / len(each[-10:])) for seller, each in prices.items()]


def q7(site: Site) -> Rows:
    most: dict[int, int] = {}
    for bid in site.bids:
        window = bid.time_ms // _WINDOW_MS
        if bid.price > most.get(window, 0):
            most[window] = bid.price
    return [(price, at * _WINDOW_MS, (at + 1) * _WINDOW_MS) for at, price in most.items()]


def q8(site: Site) -> Rows:
    people = {(each.id, each.time_ms // _WINDOW_MS): each for each in site.of("Person")}
    return [
        (auction.seller, person.name, auction.id)
        for auction in site.of("Auction")
        if (person := people.get((auction.seller, auction.time_ms // _WINDOW_MS)))
    ]


def q9(site: Site) -> Rows:
    return [
        (auction.id, auction.category, auction.seller, bid.bidder, bid.price, auction.expires_ms)
        for auction, bid in _sales(site)
    ]


def q11(site: Site) -> Rows:
    open_: dict[int, list[int]] = {}
    found = []
    for bid in sorted(site.bids, key=_TIME):
        session = open_.get(bid.bidder)
        if session is None or bid.time_ms - session[3] >= _LONGEST_PAUSE_MS:
            open_[bid.bidder] = session = [bid.bidder, 0, bid.time_ms, bid.time_ms]
            found.append(session)
        session[1] += 1
        session[3] = bid.time_ms
    return [(who, count, start, end + _LONGEST_PAUSE_MS) for who, count, start, end in found]


def q13(site: Site) -> Rows:
    side = {place: f"value {place}" for place in range(1000)}
    return [(b.auction, b.bidder, b.price, b.time_ms, side[b.auction % 1000]) for b in site.bids]


def q14(site: Site) -> Rows:
    return [
        (b.auction, b.bidder, price, _PARTS[b.time_ms // 3_600_000 % 24], b.time_ms, letters)
        for b in site.bids
        if 10_000 < (price := b.price * 0.908) < 500_000
        for letters in (b.url.count("c"),)
    ]


def _counts(bids: Sequence[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    """Return, for each key, numbers of bids, different bidders and auctions, and the last time."""
    found: dict[Any, list[Any]] = {}
    for bid in bids:
        kept = found.get(of := key(bid))
        if kept is None:
            kept = found[of] = [0, 0, 0, 0, *(set() for _ in range(8)), 0]
        rank = 1 if bid.price < _CHEAP else 2 if bid.price < _DEAR else 3
        kept[0] += 1
        kept[rank] += 1
        kept[4].add(bid.bidder)
        kept[4 + rank].add(bid.bidder)
        kept[8].add(bid.auction)
        kept[8 + rank].add(bid.auction)
        kept[12] = max(kept[12], bid.time_ms)
    return found


def q15(site: Site) -> Rows:
    days = _counts(site.bids, lambda bid: bid.time_ms // _DAY_MS)
    return [(*kept[:4], *map(len, kept[4:12])) for kept in days.values()]


def q16(site: Site) -> Rows:
    channels = _counts(site.bids, lambda bid: (bid.channel, bid.time_ms // _DAY_MS))
    return [
        (name, *kept[:4], *map(len, kept[4:12]), kept[12]) for (name, _), kept in channels.items()
    ]


def q17(site: Site) -> Rows:
    found: dict[tuple[int, int], list[int]] = {}
    for bid in site.bids:
        key, price = (bid.auction, bid.time_ms // _DAY_MS), bid.price
        kept = found.get(key)
        if kept is None:
            found[key] = kept = [0, 0, 0, 0, price, price, 0]
        kept[0] += 1
        kept[1 if price < _CHEAP else 2 if price < _DEAR else 3] += 1
        kept[4] = min(price, kept[4])
        kept[5] = max(price, kept[5])
        kept[6] += price
    return [(key[0], *each[:6], each[6] / each[0], each[6]) for key, each in found.items()]


def q18(site: Site) -> Rows:
    last: dict[tuple[int, int], Any] = {}
    for bid in site.bids:
        kept = last.get(key := (bid.bidder, bid.auction))
        if kept is None or bid.time_ms > kept.time_ms:
            last[key] = bid
    return [(*key, bid.time_ms) for key, bid in last.items()]


def q19(site: Site) -> Rows:
    tops: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for bid in site.bids:
        top = tops[bid.auction]
        if len(top) < 10 or bid.price > top[0][0]:
            insort(top, (bid.price, bid.time_ms, bid.bidder))
            if len(top) > 10:
                del top[0]
    return [(auction, price) for auction, top in tops.items() for price, _, _ in top]


def q20(site: Site) -> Rows:
    auctions = {each.id: each for each in site.of("Auction") if each.category == 10}
    return [
        (b.auction, b.bidder, b.price, b.channel, b.time_ms, of.item, of.seller, of.category)
        for b in site.bids
        if (of := auctions.get(b.auction))
    ]


def q21(site: Site) -> Rows:
    return [
        (b.auction, b.bidder, b.price, b.channel, number)
        for b in site.bids
        for number in (
            _NUMBERS.get(b.channel.lower()) or b.url.partition("channel_id=")[2].partition("&")[0],
        )
    ]


def q22(site: Site) -> Rows:
    return [(b.auction, b.bidder, b.price, b.channel, *b.url.split("/")[3:]) for b in site.bids]


LOOPS: Final[dict[str, Callable[[Site], Rows]]] = {
    each.__name__: each
    for each in (
        *(q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q11, q13, q14),
        *(q15, q16, q17, q18, q19, q20, q21, q22),
    )
}


# -- answers ---------------------------------------------------------------------------------------


def answer_rows(query: str, answers: Sequence[Any]) -> Rows:
    """Return the answers of gearpy as the rows of the loops; of running answers the last ones.

    Columns at the end of a window come to the same as rows anew with each record.
    """
    if not answers:
        return []
    if query in {"q0", "q1"}:
        return map(_BID, answers)
    if query in {"q4", "q6"}:
        return [(key, value) for key, value in dict(answers).items()]
    if query == "q7":
        return [(each.value, each.start, each.end) for each in answers]
    if query == "q11":
        return [(each.key, each.value, each.start, each.end) for each in answers]
    if isinstance(answers[0], dict):
        names = ("auction", "bidder", "price", "time_ms", "value") if query == "q13" else answers[0]
        return [tuple(each[name] for name in names) for each in answers]
    if query in {"q15", "q16", "q17", "q18", "q19"}:
        return _of_keys(query, {(each[0], getattr(each, "start", 0)): each[1] for each in answers})
    return answers


def sql_rows(query: str, answers: Sequence[dict[str, Any]]) -> Rows:
    """Return the answers in SQL as the rows of the loops; of running answers the last ones."""
    if query == "q1":
        return map(itemgetter("auction", "bidder", "price", "channel", "time_ms", "url"), answers)
    rows = [
        tuple(
            (cell - _EPOCH) // timedelta(milliseconds=1) if isinstance(cell, datetime) else cell
            for cell in row.values()
        )
        for row in answers
    ]
    match query:
        case "q4" | "q9":
            return {row[0]: row for row in rows}.values()
        case "q18":
            return {row[:2]: row for row in rows}.values()
        case "q19":
            return [row[:2] for row in {(row[0], row[2]): row for row in rows}.values()]
    return rows


def _of_keys(query: str, last: dict[tuple[Any, int], Any]) -> Rows:
    """Return rows of what was last said of each key, of each day."""
    if query == "q15":
        return [tuple(value.values()) for value in last.values()]
    if query == "q18":
        return [
            (*key, each["last"] if isinstance(each, dict) else each.time_ms)
            for (key, _), each in last.items()
        ]
    if query == "q19":
        tops = ((k, v["top"] if isinstance(v, dict) else v) for (k, _), v in last.items())
        return [(key, getattr(each, "price", each)) for key, top in tops for each in top]
    firsts = ((key[0] if isinstance(key, tuple) else key, v) for (key, _), v in last.items())
    return [(first, *value.values()) for first, value in firsts]


def checksum(rows: Rows) -> dict[str, int]:
    """Return the number of rows, and a sum of their cells that does not depend on order."""
    count = total = 0
    for row in rows:
        count += 1
        for place, cell in enumerate(row, 1):
            if isinstance(cell, str):
                cell = len(cell)  # noqa: PLW2901 - a text counts as its length
            elif isinstance(cell, float):
                cell = int(cell * 1000 + 0.5)  # noqa: PLW2901 - to three places
            total += place * cell
    return {"rows": count, "sum": total}
