"""What one record costs in single steps: CPU time in ns, without the fixed cost of a run.

It needs nothing but `gearpy`, so that `compare` can also run it on versions that do not have it.
Records are made beforehand. Each case runs with few records and with many; the difference counts.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, TypeAlias

import gearpy as gp
from gearpy.columns.row_schema import row_schema_of
from gearpy.messages.table import Table, Times

_KEYS: Final = 1000
_FEW: Final = 5_000
_START_MS: Final = 1_767_225_600_000
_LATE_MS: Final = 200


@dataclass(frozen=True, slots=True)
class Trade:
    """A record: three whole numbers; ``at`` is its event time in ms."""

    key: int
    price: int
    at: int


def _trades(count: int, first: int = 0) -> list[Trade]:
    # Keys and prices look like chance, and are the same in each run.
    return [
        Trade(each * 7919 % _KEYS, each * 104_729 % 9973, _START_MS + each - first)
        for each in range(first, first + count)
    ]


def _late(trades: Sequence[Trade]) -> list[Trade]:
    return [Trade(each.key, each.price, each.at - each.price % _LATE_MS) for each in trades]


class Prepared(gp.Source):
    """Records that are there before the clock starts."""

    bounded = replayable = True

    def __init__(self, records: Sequence[Any], times: list[int], late_ms: int = 0) -> None:
        self.records, self.times, self.late_ms = records, times, late_ms
        self.passed_ms = list(accumulate((each - late_ms for each in times), max))

    @property
    def schema(self) -> Any:
        return None if isinstance(self.records, list) else row_schema_of(Trade)

    def partitions(self) -> list[str]:
        return ["all"]

    def open(self, partition: str, resume: Any) -> "_Reader":
        return _Reader(self, resume or 0)


class _Reader(gp.SourceReader):
    def __init__(self, source: Prepared, at: int) -> None:
        self._source = source
        self._at = at
        self.out_of_order_ms = source.late_ms

    def read_batch(self, max_records: int) -> gp.Batch | None:
        values: Any = self._source.records[self._at : self._at + max_records]
        times = self._source.times[self._at : self._at + max_records]
        self._at += len(values)
        self.finished = self._at >= len(self._source.records)
        return gp.Batch(values, times) if len(values) else None

    def snapshot(self) -> int:
        return self._at

    @property
    def watermark_ms(self) -> int:
        return self._source.passed_ms[self._at - 1] if self._at else gp.MIN_MS


class _Nowhere(gp.Sink, gp.SinkWriter):
    idempotent = columnar = True

    def open(self, task_index: int, parallelism: int) -> "_Nowhere":
        return self

    def write_batch(self, batch: Any) -> None:
        pass


class _Best(gp.Task):
    def on_start(self, start_time_ms: int) -> None:
        self.best = self.context.state.value("best")

    def on_next(self, message: gp.Message) -> None:
        best = self.best.get()
        if best is None or message.value.price >= best.price:
            self.best.set(message.value)


def _of_four() -> dict[str, Any]:
    price = "price"
    return {
        "n": gp.agg.count(),
        "total": gp.agg.sum(price),
        "least": gp.agg.min(price),
        "most": gp.agg.max(price),
    }


class _Counts(gp.Task):
    """Counts the records of each key, and sets a timer for each, as a session would."""

    def on_start(self, start_time_ms: int) -> None:
        self.state = self.context.state
        self.count = self.state.value("n", coder="int", default=0)

    def on_next(self, message: gp.Message) -> None:
        self.count.set(self.count.get() + 1)
        self.state.timers.event_time(message.timestamp + 10_000)

    def on_key_timer(self, timer: gp.KeyTimer) -> Iterator[gp.Message]:
        yield gp.Message((timer.key, self.count.get()), timer.at_ms)
        self.state.clear()


def _last(before: Trade | None, trade: Trade) -> tuple[Trade, int]:
    return trade, trade.price - (before.price if before else 0)


_Steps: TypeAlias = Callable[..., Any]
_TEN_S: Final = gp.tumbling("10s")

#: Name of a case to its steps and the records that it takes, half of them from each input.
CASES: Final[dict[str, tuple[_Steps, int]]] = {
    "nothing": (lambda s: s, 1_000_000),
    "map": (lambda s: s.map(lambda t: t.price), 1_000_000),
    "map to a record": (lambda s: s.map(lambda t: Trade(t.key, 1, t.at)), 500_000),
    "filter": (lambda s: s.filter(lambda t: t.price > 0), 1_000_000),
    "tumbling count": (lambda s: s.key_by("key").window(_TEN_S).count(), 500_000),
    "tumbling count, in a zone": (
        lambda s: s.key_by("key").window(gp.tumbling("10s", zone="Europe/Berlin")).count(),
        500_000,
    ),
    "tumbling aggregate of 4": (
        lambda s: s.key_by("key").window(_TEN_S).aggregate(**_of_four()),
        300_000,
    ),
    "sliding sum, 10s/2s": (
        lambda s: s.key_by("key").window(gp.sliding("10s", "2s")).sum("price"),
        200_000,
    ),
    "session count, 2s": (
        lambda s: s.key_by("key").window(gp.session("2s")).count(),
        200_000,
    ),
    "tumbling quantile": (
        lambda s: s.key_by("key").window(_TEN_S).aggregate(p95=gp.agg.quantile(0.95, "price")),
        300_000,
    ),
    "quantile of all": (
        lambda s: s.window(_TEN_S).aggregate(p95=gp.agg.quantile(0.95, "price")),
        300_000,
    ),
    "approx_distinct of all": (
        lambda s: s.window(_TEN_S).aggregate(prices=gp.agg.approx_distinct("price")),
        300_000,
    ),
    "rolling sum, 1m": (
        lambda s: s.key_by("key").rolling("1m", total=gp.agg.sum("price")),
        100_000,
    ),
    "rolling quantile, 1m": (
        lambda s: s.key_by("key").rolling("1m", p95=gp.agg.quantile(0.95, "price")),
        100_000,
    ),
    "running count": (lambda s: s.key_by("key").count(), 300_000),
    "running aggregate of 4": (lambda s: s.key_by("key").aggregate(**_of_four()), 200_000),
    "running top_n(10)": (lambda s: s.key_by("key").top_n(10, "price"), 100_000),
    "distinct": (lambda s: s.key_by("key").distinct(), 300_000),
    "map_with_state, an int": (
        lambda s: s.key_by("key").map_with_state(lambda n, _: (n + 1, n), initial=0),
        200_000,
    ),
    "map_with_state, a record": (lambda s: s.key_by("key").map_with_state(_last), 200_000),
    "pairwise": (lambda s: s.key_by("key").pairwise(), 200_000),
    "process, a record": (lambda s: s.key_by("key").process(_Best), 100_000),
    "process, an int and a timer": (lambda s: s.key_by("key").process(_Counts), 100_000),
    "running top_n(10), changed": (
        lambda s: s.key_by("key").top_n(10, "price", when="changed"),
        100_000,
    ),
    "running count, late": (lambda s: s.key_by("key").count(), 200_000),
    "distinct within 10s": (lambda s: s.distinct("at", within="10s"), 200_000),
    "interval join": (
        lambda s, t: s.key_by("key").join_interval(t.key_by("key"), before="1s"),
        100_000,
    ),
    "as-of join": (lambda s, t: s.key_by("key").join_asof(t.key_by("key")), 100_000),
    "latest join": (lambda s, t: s.key_by("key").join_latest(t.key_by("key")), 100_000),
    "window join": (
        lambda s, t: s.key_by("key").join(t.key_by("key"), gp.tumbling("1s")),
        100_000,
    ),
    "columns: distinct": (lambda s: s.key_by("key").distinct(), 1_000_000),
    "columns: distinct, late": (lambda s: s.key_by("key").distinct(), 1_000_000),
    "columns: sliding sum, 10s/2s": (
        lambda s: s.key_by("key").window(gp.sliding("10s", "2s")).sum("price"),
        1_000_000,
    ),
    "columns: interval join": (
        lambda s, t: (
            s.key_by("key")
            .join_interval(t.key_by("key"), before="1s")
            .map_batches(lambda batch: batch)
        ),
        1_000_000,
    ),
}


def measure_micro(names: Sequence[str] = (), *, scale: float = 1.0) -> Iterator[tuple[str, float]]:
    """Yield each case with the CPU time of a record, ns.

    Args:
        names: of cases; all of them if there are none.
        scale: how many records, as a share of those of the case.
    """
    for name in names or CASES:
        steps, count = CASES[name]
        few, many = _inputs(name, _FEW), _inputs(name, _FEW + int(count * scale))
        try:
            _cpu_s(few, steps)  # Modules are imported, and code is compiled.
        except (TypeError, AttributeError):  # A version before this one does not have it.
            continue
        fixed_s = min(_cpu_s(few, steps) for _ in range(2))
        more = sum(len(each.records) for each in many) - sum(len(each.records) for each in few)
        yield name, 1e9 * (_cpu_s(many, steps) - fixed_s) / more


def _inputs(name: str, count: int) -> list[Prepared]:
    if name.endswith("join"):
        inputs = [_trades(count // 2), _trades(count // 2, first=500)]
    else:
        inputs = [_late(_trades(count)) if name.endswith("late") else _trades(count)]
    return [_prepared(each, in_columns=name.startswith("columns")) for each in inputs]


def _prepared(trades: list[Trade], *, in_columns: bool) -> Prepared:
    records: Any = trades
    times: Any = [trade.at for trade in trades]
    if in_columns:
        records, times = Table(row_schema_of(Trade).table(trades)), Times.of(times)
    return Prepared(records, times, _LATE_MS)


def _cpu_s(sources: Sequence[Prepared], steps: _Steps) -> float:
    app = gp.StreamApp("micro")
    steps(*map(app.read, sources)).write(_Nowhere())
    begin_s = time.process_time()
    gp.run(app)
    return time.process_time() - begin_s
