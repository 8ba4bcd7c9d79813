"""Every kind of step of the stream language, made so that any may follow any other.

A record is a key and a set of numbers, as bits of one integer. Steps keep keys and numbers: what
gathers records gathers their numbers. So whatever a program does, the numbers that come out are
those that went in, less those of the key that `filter` drops; most steps let each come out once.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]
from msgspec.structs import replace

import gearpy as gp
from gearpy.ids import MAX_MS
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import PacedWriter, Sink, SinkContext
from gearpy.testing import EpochFaults, MemoryTransactions, Simulation
from gearpy.testing.simulation import SMALL_LIMITS

KEYS: Final = 5
DROPPED_KEY: Final = 4
PACE_MS: Final = 10  #: Event time between two records.
CALLS: Final = 3  #: Coroutines at the same time.

#: Steps in a simulation before it counts as one that never ends.
_STEPS_MAX: Final = 1_000_000


@gp.register_record
class Rec(NamedTuple):
    key: int
    bits: int


_Stream: TypeAlias = Any  # Of `Rec`; the language has a type for each, but these are put together.
_Step: TypeAlias = Callable[["Context", _Stream], _Stream]


class Context(NamedTuple):
    app: gp.StreamApp
    records: int
    tasks: int

    def keyed(self, stream: _Stream) -> Any:
        return stream.key_by(lambda record: record.key, parallelism=self.tasks)

    def others(self) -> Any:
        """Return a second stream, of records without numbers: each key each 20 records."""
        end_ms = self.records * PACE_MS
        records = [
            gp.Message(Rec(key, 0), at_ms)
            for at_ms in range(0, end_ms, 20 * PACE_MS)
            for key in range(KEYS)
        ]
        return self.keyed(self.app.read(gp.collection(records)))


def _merged(key: int, records: Sequence[Rec]) -> Rec:
    return Rec(key, reduce(or_, (record.bits for record in records), 0))


def _of_values(key: int, counts: list[dict[str, int]]) -> Rec:
    return Rec(key, reduce(or_, (each["value"] for each in counts), 0))


def _both(left: Rec, right: Rec | None) -> Rec:
    return left if right is None else Rec(left.key, left.bits | right.bits)


def _either(left: Rec, right: Rec) -> Rec:
    return Rec(left.key, left.bits | right.bits)


def _of_result(result: Any) -> Rec:
    record: Rec = result.value
    return record


async def _slow(record: Rec) -> Rec:
    await asyncio.sleep(record.bits.bit_length() * 7 % 5 / 1000)
    return record


async def _found(key: int) -> int:
    await asyncio.sleep(0.002)
    return key


class _Later(gp.Task):
    """Keeps the records of a key until a timer fires, 50 ms after the first of them."""

    def on_next(self, message: gp.Message) -> None:
        kept = self.context.state.list("kept")
        if not list(kept):
            self.context.state.timers.event_time(min(message.timestamp + 50, MAX_MS - 1))
        kept.append((message.value.bits, message.timestamp))

    def on_key_timer(self, timer: gp.KeyTimer) -> Iterator[gp.Message]:
        kept = self.context.state.list("kept")
        records = list(kept)
        kept.clear()
        for bits, time_ms in records:
            yield gp.Message(Rec(timer.key, bits), max(time_ms, timer.at_ms))


# -- the steps ---------------------------------------------------------------------------------


def _windowed(windows: Any, *, is_keyed: bool = True) -> _Step:
    def step(context: Context, stream: _Stream) -> _Stream:
        grouped = context.keyed(stream) if is_keyed else stream
        reduced = grouped.window(windows).reduce(_either)
        return reduced.map(_of_result)

    return step


def _of_all_keys(context: Context, stream: _Stream) -> _Stream:
    windows = stream.window(gp.tumbling("100ms")).reduce(_either)
    return windows.map(lambda result: Rec(0, result.value.bits))


def _top_of_windows(context: Context, stream: _Stream) -> _Stream:
    best = context.keyed(stream).window(gp.tumbling("200ms")).top_n(10_000)
    return best.map(lambda result: _merged(result.key, result.value))


def _joined(join: Callable[[Any, Any], Any], *, is_diamond: bool = False) -> _Step:
    def step(context: Context, stream: _Stream) -> _Stream:
        if not is_diamond:
            return join(context.keyed(stream), context.others())
        left, right = stream.split(lambda record: record.bits % 3 > 0)
        return join(context.keyed(left), context.keyed(right))

    return step


def _outer(left: Rec | None, right: Rec | None) -> Rec:
    if left is None or right is None:
        return left or right or Rec(0, 0)
    return _either(left, right)


def _cogrouped(context: Context, stream: _Stream) -> _Stream:
    groups = context.keyed(stream).cogroup(context.others(), gp.tumbling("200ms"))
    return groups.map(lambda group: _merged(group.key, group.left))


def _merged_back(context: Context, stream: _Stream) -> _Stream:
    yes, no = stream.split(lambda record: record.bits % 3 > 0)
    return yes.merge(no.map(lambda record: record))


def _branched(context: Context, stream: _Stream) -> _Stream:
    of = stream.branch(even=lambda record: record.key % 2 == 0)
    return of.even.map_async(_slow, concurrency=CALLS).merge(of.default)


def _twice(context: Context, stream: _Stream) -> _Stream:
    slow = stream.map_async(_slow, concurrency=1)
    return stream.map(lambda record: record).merge(slow)


def _with_columns(context: Context, stream: _Stream) -> _Stream:
    rows = stream.map(lambda record: {"key": record.key, "bits": f"{record.bits:x}"})
    same = rows.map_batches(lambda batch: batch)
    return same.map(lambda row: Rec(row["key"], int(row["bits"], 16)))


def _distinct(context: Context, stream: _Stream) -> _Stream:
    return stream.distinct(within="10m", parallelism=context.tasks)


def _distinct_columns(context: Context, stream: _Stream) -> _Stream:
    rows = stream.map(lambda record: {"key": record.key, "bits": f"{record.bits:x}"})
    columns = rows.map_batches(lambda batch: batch, schema={"key": int, "bits": str})
    keyed = columns.key_by("key", "bits", parallelism=context.tasks)
    return keyed.distinct(within="10m").map(lambda row: Rec(row["key"], int(row["bits"], 16)))


def _small_steps(context: Context, stream: _Stream) -> _Stream:
    flat = stream.map(lambda record: [record]).flatten().tap(repr)
    return context.keyed(flat).enumerate().map(lambda numbered: numbered[1])


def _paired(context: Context, stream: _Stream) -> _Stream:
    """Let each record be the second of a pair: without numbers, others come before the first."""
    others = stream.flat_map(lambda record: [Rec(record.key, 0), record])
    return context.keyed(others).pairwise().map(lambda pair: pair[1])


_EARLY: Final = gp.after_watermark(early=gp.every(count=3))

STEPS: Final[dict[str, _Step]] = {
    "map": lambda _, stream: stream.map(lambda record: record),
    "filter": lambda _, stream: stream.filter(lambda record: record.key != DROPPED_KEY),
    "condition": lambda _, stream: stream.filter(gp.col("key") != DROPPED_KEY),
    "flat_map": lambda _, stream: stream.flat_map(lambda record: [record, Rec(record.key, 0)]),
    "map_batches": _with_columns,
    "async": lambda _, stream: stream.map_async(_slow, concurrency=CALLS),
    "unordered": lambda _, stream: stream.map_async(_slow, concurrency=CALLS, ordered=False),
    "lookup": lambda _, stream: stream.lookup(
        _found, key=lambda record: record.key, concurrency=CALLS, combine=lambda record, _: record
    ),
    "reduce": lambda context, stream: (
        context.keyed(stream).reduce(_either).map(lambda pair: pair[1])
    ),
    "aggregate": lambda context, stream: (
        context.keyed(stream)
        .aggregate(n=gp.agg.count(), of=gp.agg.collect())
        .map(lambda pair: _merged(pair[0], pair[1]["of"]))
    ),
    "with_state": lambda context, stream: context.keyed(stream).map_with_state(
        lambda n, record: (n + 1, record), initial=0
    ),
    "timers": lambda context, stream: context.keyed(stream).process(_Later),
    "process": lambda _, stream: stream.process(_Passing),
    "top_n": lambda context, stream: (
        context.keyed(stream)
        .top_n(10_000, by=lambda record: record.bits)
        .map(lambda pair: _merged(*pair))
    ),
    "distinct": _distinct,
    "distinct columns": _distinct_columns,
    "tumbling": _windowed(gp.tumbling("200ms")),
    "sliding": _windowed(gp.sliding("200ms", "100ms")),
    "local": _windowed(gp.sliding("200ms", "100ms", zone="Europe/Berlin")),
    "session": _windowed(gp.session("55ms")),
    "global": _windowed(gp.global_window()),
    "count": _windowed(gp.count_window(3)),
    "unkeyed": _of_all_keys,
    "wall": _windowed(gp.tumbling("7ms", clock="processing")),
    "early": _windowed(gp.tumbling("300ms").triggering(_EARLY).accumulating()),
    "retracting": _windowed(
        gp.session("70ms").triggering(_EARLY).retracting().allowed_lateness("1s")
    ),
    "each wall": _windowed(gp.global_window().triggering(gp.every("5ms"))),
    "each event": _windowed(gp.global_window().triggering(gp.every(event="100ms"))),
    "window top": _top_of_windows,
    "small steps": _small_steps,
    "take": lambda _, stream: stream.take(10_000_000),
    "skip": lambda _, stream: stream.skip(0),
    "pairwise": _paired,
    "rolling": lambda context, stream: context.keyed(stream).rolling(3).map(lambda last: last[-1]),
    "rolling time": lambda context, stream: (
        context.keyed(stream).rolling("50ms").map(lambda last: last[-1])
    ),
    "rolling aggregates": lambda context, stream: (
        context.keyed(stream)
        .rolling("50ms", last=gp.agg.last(), p95=gp.agg.quantile(0.95, lambda r: r.key))
        .map(lambda pair: pair[1]["last"])
    ),
    "heavy hitters": lambda context, stream: (
        context.keyed(stream)
        .window(gp.session("70ms"))
        .aggregate(of=gp.agg.heavy_hitters(10_000, lambda record: record.bits))
        .map(lambda result: _of_values(result.key, result.value["of"]))
    ),
    # Each record has a key of its own: those of one key that come close together make one.
    "debounce": lambda _, stream: stream.key_by(tuple).debounce("20ms"),
    "repartition": lambda _, stream: stream.repartition(3),
    "merge back": _merged_back,
    "branch": _branched,
    "twice": _twice,
    "join": _joined(
        lambda one, two: one.join(two, gp.tumbling("200ms"), how="left", combine=_both)
    ),
    "join sliding": _joined(
        lambda one, two: one.join(two, gp.sliding("200ms", "100ms"), how="left", combine=_both)
    ),
    "join session": _joined(
        lambda one, two: one.join(two, gp.session("70ms"), how="left", combine=_both)
    ),
    "join table": lambda _, stream: stream.join_table(
        gp.collection([Rec(key, 0) for key in range(KEYS)]),
        on=lambda record: record.key,
        how="left",
        combine=_both,
    ),
    "cogroup": _cogrouped,
    "interval": _joined(
        lambda one, two: one.join_interval(
            two, before="100ms", after="50ms", how="left", combine=_both
        )
    ),
    "asof": _joined(lambda one, two: one.join_asof(two, combine=_both)),
    "latest": _joined(lambda one, two: one.join_latest(two, combine=_both)),
    "diamond": _joined(
        lambda one, two: one.join(two, gp.tumbling("200ms"), how="outer", combine=_outer),
        is_diamond=True,
    ),
    "diamond interval": _joined(
        lambda one, two: one.join_interval(two, before="40ms", how="outer", combine=_outer),
        is_diamond=True,
    ),
}


class _Passing(gp.Task):
    def on_next(self, message: gp.Message) -> None:
        self.context.output(message)


#: How often a step lets each number come out, where that is not once; None: it depends.
_COPIES: Final[dict[str, int | None]] = {
    **dict.fromkeys(["sliding", "local", "twice", "join sliding"], 2),
    **dict.fromkeys(["reduce", "aggregate", "top_n", "early", "retracting"]),
    **dict.fromkeys(["join session", "diamond", "diamond interval"]),
}
#: Steps that may make one of several records with the same number.
_GATHERING: Final = frozenset(
    {
        "distinct",
        "distinct columns",
        "tumbling",
        "sliding",
        "local",
        "session",
        "global",
        "count",
        "unkeyed",
        "wall",
    }
    | {"each wall", "each event", "window top", "cogroup", "debounce"}
    | {"heavy hitters"}
)
#: Their results come when wall time has passed, but have the time of their newest record: a window
#: of event time behind them may have closed.
_OF_WALL_TIME: Final = frozenset(["wall", "each wall"])

#: More records than fit anywhere come soon.
_LIMITS: Final = replace(
    SMALL_LIMITS,
    batch_records=5,
    flow=replace(SMALL_LIMITS.flow, window_records=20, ack_interval_records=4),
)


# -- where records come from, and where they go ------------------------------------------------


def _rows(context: Context) -> _Stream:
    records = [gp.Message(Rec(n % KEYS, 1 << n), n * PACE_MS) for n in range(context.records)]
    source = gp.collection(records, partitions=context.tasks)
    return context.app.read(source, parallelism=context.tasks)


def _columns(context: Context) -> _Stream:
    numbers = list(range(context.records))
    table = pa.table(
        {"n": numbers, "key": [n % KEYS for n in numbers], "at": [n * PACE_MS for n in numbers]}
    )
    rows = context.app.read(gp.rows(table, time="at"))
    doubled = rows.map_batches(lambda batch: batch.slice(0))
    return doubled.map(lambda row: Rec(row["key"], 1 << row["n"]))


def _windows_of_columns(context: Context) -> _Stream:
    numbers = list(range(context.records))
    table = pa.table(
        {"n": numbers, "key": [n % KEYS for n in numbers], "at": [n * PACE_MS for n in numbers]}
    )
    windows = (
        context.app.read(gp.rows(table, time="at"))
        .key_by("key", parallelism=context.tasks)
        .window(gp.tumbling("200ms"))
    )
    spans = windows.aggregate(first=gp.agg.min("n"), last=gp.agg.max("n"))
    return spans.map(
        lambda result: Rec(
            result.key,
            sum(1 << n for n in range(result.value["first"], result.value["last"] + 1, KEYS)),
        )
    )


SOURCES: Final[dict[str, Callable[[Context], _Stream]]] = {
    "rows": _rows,
    "columns": _columns,
    "windows of columns": _windows_of_columns,
}


class _Desk(Sink):
    """A sink that hands on what it has shown one epoch at a time, and lets the stream wait."""

    transactional = True
    paced = True

    def __init__(self) -> None:
        self.values: list[Any] = []

    def open(self, task_index: int, parallelism: int) -> "_DeskWriter":
        return _DeskWriter(self.values)


class _DeskWriter(PacedWriter):
    """Has no room while it has shown something that was not handed over, which takes a while."""

    failure = None

    def __init__(self, values: list[Any]) -> None:
        self._values = values
        self._open: list[Any] = []
        self._waiting: list[Any] = []
        self._looks = 0
        self._context: SinkContext | None = None

    def begin(self, context: SinkContext) -> None:
        self._context = context

    def recover(self, prepared: Any, *, epoch: int, run: str, incarnation: int) -> None:
        """Nothing is recovered: no run here is restarted."""
        assert not prepared

    def write_batch(self, batch: Batch) -> None:
        self._open += batch.values

    def prepare(self, epoch: int) -> list[Any] | None:
        records, self._open = self._open, []
        return records or None

    def commit(self, epoch: int, prepared: list[Any]) -> None:
        """Show them; somebody takes them after a while."""
        self._waiting += prepared
        assert self._context is not None
        self._context.wake()

    @property
    def has_room(self) -> bool:
        """Whether all was taken; it is after it was asked some times."""
        if self._waiting:
            self._looks += 1
            assert self._context is not None
            self._context.wake()
            if self._looks % 5 == 0:
                self._values += self._waiting
                self._waiting = []
        return not self._waiting

    @property
    def is_delivered(self) -> bool:
        return self.has_room


def _memory(stream: _Stream) -> list[Any]:
    values: list[Any] = []
    stream.write(gp.to_list(values))
    return values


def _transactions(stream: _Stream) -> Any:
    sink = MemoryTransactions()
    stream.write(sink)
    return sink


def _desk(stream: _Stream) -> Any:
    sink = _Desk()
    stream.write(sink)
    return sink


SINKS: Final[dict[str, Callable[[_Stream], Any]]] = {
    "memory": _memory,
    "transactions": _transactions,
    "desk": _desk,
}


# -- programs ----------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """How often each number has come out, and how many records were late for a window."""

    found: Counter[int]
    late: int

    def mistakes(self, names: Sequence[str], records: int) -> list[str]:
        wanted = _expected(names, records)
        # What comes too late for the first of its sliding windows alone is not counted as late.
        is_late = self.late > 0 or any("sliding" in name for name in names)
        may_be_late = is_late and any(name in _OF_WALL_TIME for name in names)
        return [
            f"{n}: {found} times, not {'some' if times is None else times}"
            for n in sorted({*self.found, *wanted})
            if (found := self.found[n]) != (times := wanted.get(n, 0))
            and not (times is None and found)
            and not (may_be_late and (times is None or found < times))
        ]


def _expected(names: Sequence[str], records: int) -> dict[int, int | None]:
    """Return how often each number comes out of a program with these steps; None: once at least."""
    copies: int | None = 1
    drops = is_of_all_keys = False
    for name in names:
        factor = _COPIES.get(name, 1)
        is_known = copies == 1 or name not in _GATHERING
        copies = copies * factor if is_known and copies and factor else None
        drops |= name in {"filter", "condition"} and not is_of_all_keys
        is_of_all_keys |= name == "unkeyed"
    return {n: copies for n in range(records) if not (drops and n % KEYS == DROPPED_KEY)}


def outcome(
    names: Sequence[str],
    *,
    records: int,
    tasks: int,
    seed: int,
    source: str = "rows",
    sink: str = "memory",
    crash_at_ms: Sequence[int] = (),
) -> Outcome:
    """Run a program of some steps in virtual time; return what has come out.

    Every other one is planned as for several processes, where a list has tasks of its own.
    """
    app = gp.StreamApp("every_step")
    context = Context(app, records, tasks)
    stream = SOURCES[source](context)
    for name in names:
        stream = STEPS[name](context, stream)
    written = SINKS[sink](stream)
    simulation = Simulation(
        app.build().spread(1 + seed % 2),
        seed=seed,
        limits=_LIMITS,
        cut_every_ms=None if sink == "memory" else 60,
        crash_at_ms=crash_at_ms,
        may_miss=True,
        faults=EpochFaults(told_again=0.3),
    ).run(steps_max=_STEPS_MAX)
    values = written if isinstance(written, list) else written.values
    return Outcome(
        Counter(n for record in values for n in _numbers(record.bits)),
        sum(clock.late_records for clock in simulation.clocks()),
    )


def _numbers(bits: int) -> Iterator[int]:
    while bits:
        least = bits & -bits
        yield least.bit_length() - 1
        bits ^= least
