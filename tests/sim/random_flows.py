"""Programs made at random, of steps whose results are a function of what comes in."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final, NamedTuple

import gearpy as gp
from gearpy.core.flow.link import FlowLimits
from gearpy.core.window.windows import Windows
from gearpy.state.kinds.values import ValueState
from gearpy.task.runtime.outlet import OutputLimits
from gearpy.testing import MemoryTransactions

SECOND: Final = 1000
#: So small that flow control holds senders up all the time.
TINY_LIMITS: Final = OutputLimits(
    flow=FlowLimits(
        window_records=3,
        window_bytes=10_000,
        ack_interval_records=2,
        ack_interval_ms=25,
        quiet_ack_ms=4,
        repeat_ack_ms=60,
    ),
    batch_records=2,
    batch_bytes=1000,
    watermark_interval_ms=3,
)


class Event(NamedTuple):
    user: str
    amount: int
    at: int


gp.register_record(Event, "tests.random_flows.Event")


class Watch(gp.Task[Event, Any]):
    """Tells what it has of a user whenever one was quiet, or is there for the third time."""

    QUIET = 2 * SECOND

    def on_start(self, start_time_ms: int) -> None:
        self.seen: ValueState[list[int]] = self.context.state.value("seen", default=[])

    def on_next(self, message: gp.Message[Event]) -> Iterator[gp.Message[Any]]:
        seen = [*self.seen.get(), message.value.amount]
        if len(seen) == 3:
            yield gp.Message((message.value.user, "third", seen), message.timestamp)
        self.seen.set(seen)
        self.context.state.timers.event_time(message.timestamp + self.QUIET)

    def on_key_timer(self, timer: gp.KeyTimer) -> Iterator[gp.Message[Any]]:
        yield gp.Message((str(timer.key), "quiet", self.seen.get()), timer.at_ms)
        self.context.state.clear()


class Later(gp.Task[Event, Event]):
    def on_next(self, message: gp.Message[Event]) -> Iterator[gp.Message[Event]]:
        yield gp.Message(message.value, message.timestamp + message.value.amount * 7)


def numbered(kept: int | None, event: Event) -> tuple[int, Any]:
    """Give each record a number that tells all that came before it, and in which order."""
    number = (kept or 0) * 31 % 1009 + event.amount
    return number, (event.user, number, event.at)


def _windows(rng: Random, *, sees_order: bool = False) -> Windows:
    """Draw windows; those that see the order of records may fire early."""
    kinds: list[Windows] = [
        gp.tumbling("2s"),
        gp.sliding("3s", every="1s"),
        gp.session("400ms"),
        gp.count_window(4),
    ]
    windows = rng.choice(kinds)
    if isinstance(windows, type(kinds[-1])):
        return windows
    if sees_order and rng.random() < 0.6:
        windows = windows.triggering(rng.choice(_EARLY))
    elif rng.random() < 0.3:
        windows = windows.triggering(gp.after_watermark(late=gp.every(count=2)))
    if rng.random() < 0.6:
        windows = windows.allowed_lateness(f"{rng.randrange(1, 8)}s")
    ways: list[Callable[[], Windows]] = [
        windows.accumulating,
        windows.discarding,
        windows.retracting,
    ]
    return rng.choice(ways)()


_EARLY: Final = (
    gp.every(event="300ms"),
    gp.after_watermark(early=gp.every(event="700ms"), late=gp.every(event="400ms")),
    gp.after_watermark(early=gp.every(count=2), late=gp.every(count=3)),
    gp.any_of(gp.every(count=3), gp.every(event="500ms")),
)


#: What there may be for each key; results begin with the key.
_KEYED: Final[dict[str, Callable[[Any, Random], Any]]] = {
    "process": lambda users, _: users.process(Watch),
    "state": lambda users, _: users.map_with_state(numbered),
    "forgetful state": lambda users, _: users.map_with_state(numbered, ttl="1s"),
    "distinct": lambda users, _: users.distinct(within="1s"),
    "pairwise": lambda users, _: users.pairwise().map(
        lambda pair: (pair[0].user, pair[0].at, pair[1].at, pair[1].amount)
    ),
    "top": lambda users, _: users.top_n(2, "amount", when="changed"),
    "top of windows": lambda users, rng: (
        users.window(rng.choice([gp.tumbling("4s"), gp.sliding("3s", every="2s")]))
        .top_n(2, "amount")
        .map(_of_result)
    ),
    "running": lambda users, rng: users.sum("amount") if rng.random() < 0.5 else users.count(),
    "count": lambda users, rng: users.window(_windows(rng)).count(),
    "fold": lambda users, rng: (
        users.window(_windows(rng, sees_order=True)).reduce(_joined).map(_of_result)
    ),
    "collect": lambda users, rng: users.window(_windows(rng, sees_order=True)).aggregate(
        all=gp.agg.collect("amount"), total=gp.agg.sum("amount")
    ),
}
_JOINS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "asof": lambda left, right: left.join_asof(right, tolerance="1s"),
    "asof, nearest": lambda left, right: left.join_asof(
        right, tolerance="700ms", direction="nearest"
    ),
    "latest": lambda left, right: left.join_latest(right),
    "interval": lambda left, right: left.join_interval(right, before="300ms", after="200ms"),
    "interval, outer": lambda left, right: left.join_interval(
        right, before="300ms", after="200ms", how="outer"
    ),
    "window": lambda left, right: left.join(right, gp.tumbling("1s")),
}
#: Their results come as soon as both records are there, in no order.
UNORDERED: Final = frozenset({"interval", "interval, outer"})


def _joined(one: Event, other: Event) -> Event:
    return Event(one.user, (one.amount * 7 + other.amount) % 1009, one.at)


def _of_result(result: Any) -> Any:
    return (result.key, result.value, result.start, result.timing, result.retracts)


class RandomFlow:
    """A program and its records, both by a seed, to be built as often as one likes.

    Args:
        form: "rows" or "columns", if the source can give these.
        kind: of the step by key; by the seed, too, if it is not given. Then nothing is done with
            records before, so that columns stay columns.
    """

    def __init__(self, seed: int, form: str = "rows", kind: str = "") -> None:
        rng = Random(seed)
        self.partitions = rng.choice([1, 1, 2, 3])
        self.records = [self._records(rng, rng.randrange(40, 160)) for _ in range(2)]
        self._is_direct = bool(kind)
        self.kind = kind or rng.choice([*_KEYED, *_JOINS])
        self.is_twice = rng.random() < 0.3
        self._seed = rng.random()
        # Columns are collected as they come.
        self._is_columns = form == "columns" and self.kind != "collect"
        self.sink = MemoryTransactions()

    def __repr__(self) -> str:
        twice = ", grouped twice" if self.is_twice else ""
        return f"{self.kind}{twice}, {self.partitions} partitions"

    def build(self, parallelism: int) -> gp.StreamApp:
        """Return the program; what it shows is in ``sink``, which is empty."""
        self.sink = MemoryTransactions()
        app = gp.StreamApp("random", parallelism=parallelism)
        rng = Random(self._seed)
        events = self._events(app, 0, rng)
        users = events.key_by("user")
        if self.kind in _JOINS:
            others = self._others(app, events, rng).key_by("user")
            results = _JOINS[self.kind](users, others)
        else:
            results = _KEYED[self.kind](users, rng)
        if self.is_twice:
            by_all = results.map(repr).key_by(lambda text: text[-2:] < "5")
            results = by_all.map_with_state(lambda n, text: ((n or 0) + 1, (n, text)))
        results.write(self.sink)
        return app

    def shown(self) -> list[Any]:
        shown = [repr(value) for value in self.sink.values]
        if self.kind in UNORDERED and not self.is_twice:
            return sorted(shown)
        if self.is_twice:
            return sorted(shown)
        by_key: dict[str, list[str]] = {}
        for value in self.sink.values:
            by_key.setdefault(repr(value[0]), []).append(repr(value))
        return sorted(by_key.items())

    def _others(self, app: gp.StreamApp, events: Any, rng: Random) -> Any:
        """Return what is joined with the events: of another source, or of the same."""
        if rng.random() < 0.7:
            return self._events(app, 1, rng)
        return events.map(lambda event: event._replace(amount=event.amount * 3))

    def _events(self, app: gp.StreamApp, number: int, rng: Random) -> Any:
        source = gp.collection(
            self.records[number],
            timestamp=lambda event: event.at,
            partitions=self.partitions,
            out_of_order="300ms",
            schema=Event if self._is_columns else None,
        )
        events: Any = app.read(source)
        if rng.random() < 0.4:
            events = events.repartition(app.parallelism)
        step = rng.choice(["nothing", "map", "filter", "flat_map", "apart", "twice", "later"])
        if self._is_direct:
            return events
        if step == "map":
            events = events.map(lambda event: event._replace(amount=event.amount + 1))
        elif step == "filter":
            events = events.filter(lambda event: event.amount % 5 > 0)
        elif step == "flat_map":
            events = events.flat_map(lambda event: [event] * (event.amount % 3))
        elif step == "apart":  # Two paths, one of them longer, meet again.
            large, small = events.split(lambda event: event.amount % 3 > 0)
            events = large.map(lambda event: event).merge(small)
        elif step == "later":
            events = events.process(Later)
        elif step == "twice":
            events = events.merge(events.map(lambda event: event._replace(amount=event.amount * 2)))
        return events

    def _records(self, rng: Random, count: int) -> list[Event]:
        """Return records of which some have equal times, some are out of order, some are late."""
        now, records = 0, list[Event]()
        for _ in range(count):
            now += rng.choice([0, 0, 20, 100, 400])
            delay = rng.choice([0, 0, 0, 100, 250, rng.randrange(300, 6000)])
            user = rng.choice(["ada", "bob", "cid"])
            records.append(Event(user, rng.randrange(50), max(0, now - delay)))
        return records
