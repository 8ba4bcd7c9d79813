"""Answers those questions of Nexmark by Bytewax that it can say in a few lines; see `nexmark`.

Run as a script by a Python that has Bytewax, without gearpy. Keys are texts, as it wants them.
"""

import json
import sys
import time
from bisect import insort
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

# Is not there where gearpy is checked.
import bytewax.operators as op  # type: ignore[import-not-found]
import bytewax.operators.windowing as windows  # type: ignore[import-not-found]
from bytewax.dataflow import Dataflow  # type: ignore[import-not-found]
from bytewax.testing import TestingSink, TestingSource, run_main  # type: ignore[import-not-found]

_ROOT = Path(__file__).parents[2]
sys.path += [str(_ROOT / "examples" / "nexmark"), str(_ROOT)]
# Of gearpy, the events need a mark on their classes and a name.
sys.modules["gearpy"] = cast(
    "Any", SimpleNamespace(register_record=lambda each: each, Source=object)
)
import events as site_events  # type: ignore[import-not-found]  # noqa: E402 - a module of the example

from tests.bench.nexmark_loops import checksum  # noqa: E402 - its folder is known now

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_TEN = timedelta(seconds=10)
_CLOCK = windows.EventClock(
    lambda bid: datetime.fromtimestamp(bid.time_ms / 1000, UTC), timedelta(seconds=60)
)
_WINDOWS = windows.TumblingWindower(_TEN, _BEGIN - _TEN)


def _one_by_one(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda bids: op.map("map", bids, function)


def _kept(key: Callable[[Any], str], step: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Keep a value for each key, made by a function of the one before and the bid; give it."""

    def both(kept: Any, bid: Any) -> tuple[Any, Any]:
        made = step(kept, bid)
        return made, made

    return lambda bids: op.stateful_map("keep", op.key_on("key", bids, key), both)


def _q2(bids: Any) -> Any:
    some = op.filter("some", bids, lambda bid: bid.auction % 123 == 0)
    return op.map("map", some, lambda bid: (bid.auction, bid.price))


def _q7(bids: Any) -> Any:
    prices = op.key_on("key", bids, lambda _: "all")
    return windows.max_window("most", prices, _CLOCK, _WINDOWS, lambda bid: bid.price).down


def _q11(bids: Any) -> Any:
    sessions = windows.SessionWindower(_TEN)
    return windows.count_window("n", bids, _CLOCK, sessions, lambda bid: str(bid.bidder)).down


def _statistics(kept: Any, bid: Any) -> tuple[Any, ...]:
    n, ranks, least, most, total = kept or (0, (0, 0, 0), bid.price, bid.price, 0)
    rank = 0 if bid.price < 10_000 else 1 if bid.price < 100_000 else 2
    ranks = tuple(count + (place == rank) for place, count in enumerate(ranks))
    return n + 1, ranks, min(least, bid.price), max(most, bid.price), total + bid.price


def _top(kept: Any, bid: Any) -> list[int]:
    top = list(kept or ())
    insort(top, bid.price)
    return top[-10:]


_DAY_MS = 86_400_000
_FLOWS: dict[str, Callable[[Any], Any]] = {
    "q0": lambda bids: bids,
    "q1": _one_by_one(
        lambda b: site_events.Bid(
            b.auction, b.bidder, b.price * 89 // 100, b.channel, b.time_ms, b.url
        )
    ),
    "q2": _q2,
    "q7": _q7,
    "q11": _q11,
    "q17": _kept(lambda bid: f"{bid.auction} {bid.time_ms // _DAY_MS}", _statistics),
    "q18": _kept(
        lambda bid: f"{bid.bidder} {bid.auction}",
        lambda kept, bid: bid if kept is None or bid.time_ms >= kept.time_ms else kept,
    ),
    "q19": _kept(lambda bid: str(bid.auction), _top),
    "q22": _one_by_one(lambda b: (b.auction, b.bidder, b.price, b.channel, *b.url.split("/")[3:])),
}


def _window_of(number: int) -> tuple[int, int]:
    start = site_events.START_MS + (number - 1) * 10_000
    return start, start + 10_000


#: Answers as rows of the loops; of running answers the last ones.
_ROWS: dict[str, Callable[[list[Any]], Any]] = {
    "q0": lambda kept: [(b.auction, b.bidder, b.price, b.channel, b.time_ms, b.url) for b in kept],
    "q7": lambda kept: [(bid.price, *_window_of(number)) for _, (number, bid) in kept],
    "q17": lambda kept: [
        (int(key.split()[0]), n, *ranks, least, most, total / n, total)
        for key, (n, ranks, least, most, total) in dict(kept).items()
    ],
    "q18": lambda kept: [(*map(int, key.split()), bid.time_ms) for key, bid in dict(kept).items()],
    "q19": lambda kept: [(int(key), price) for key, top in dict(kept).items() for price in top],
}
_ROWS["q1"] = _ROWS["q0"]


def _ask(query: str, bids: list[Any], *, checks: bool) -> dict[str, Any]:
    if query not in _FLOWS:
        return {"error": "not written for Bytewax"}
    flow: Any = Dataflow("nexmark")
    answers: list[Any] = []
    read = op.input("bids", flow, TestingSource(bids, batch_size=1024))
    op.output("answers", _FLOWS[query](read), TestingSink(answers))
    begin_s = time.process_time()
    run_main(flow)
    cpu_s = time.process_time() - begin_s
    if query == "q11" or not checks:  # Its results do not say when a session was.
        return {"cpu": cpu_s}
    return {"cpu": cpu_s, **checksum(_ROWS.get(query, list)(answers))}


def main() -> None:
    most = int(sys.argv[1])
    nexmark = site_events.Nexmark(events=most, per_second=1000, out_of_order_ms=200)
    every = list(map(nexmark.event, range(most)))
    for line in sys.stdin:
        query, _, count, what = line.split()
        bids = [each for each in every[: int(count)] if type(each) is site_events.Bid]
        sys.stdout.write(json.dumps(_ask(query, bids, checks=what == "check")) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
