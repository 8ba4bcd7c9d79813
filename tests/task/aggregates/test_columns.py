"""Aggregates in columns, beside the same aggregates over rows."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.fields import key_getter
from gearpy.core.window import aggregates as agg
from gearpy.core.window.accumulators import Aggregate
from gearpy.core.window.windows import (
    GlobalWindows,
    SlidingWindows,
    TumblingWindows,
    count_window,
    session,
)
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.table import Table, Times, rows_of
from gearpy.state.stores.store import Section
from gearpy.task.aggregates import columns
from gearpy.task.aggregates.columns import (
    ColumnGroups,
    MergeAggregateStage,
    PartialAggregateStage,
    columnar_mistakes,
)
from gearpy.task.aggregates.fold import WindowFold
from gearpy.task.aggregates.merge_tables import MergeTablesStage, mergeable
from gearpy.task.aggregates.rows import fold_of
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.snapshots import decode_state, encode_state
from gearpy.task.api.window_result import WindowResult
from gearpy.task.chain.stage import Stage
from tests.task.build import a_context
from tests.task.stage_build import columns_of, results_of

AnyWindows: TypeAlias = TumblingWindows | SlidingWindows | GlobalWindows

SCHEMA = pa.schema(
    {
        "user": pa.string(),
        "shop": pa.int32(),
        "n": pa.int64(),
        "u": pa.uint64(),
        "small": pa.int8(),
        "x": pa.float64(),
        "single": pa.float32(),
        "text": pa.string(),
        "raw": pa.binary(),
        "price": pa.decimal128(12, 2),
        "wide": pa.decimal128(38, 3),
        "day": pa.date32(),
        "at": pa.timestamp("us", tz="UTC"),
        "took": pa.duration("ms"),
        "ok": pa.bool_(),
        "word": pa.dictionary(pa.int32(), pa.string()),
        "parts": pa.list_(pa.int64()),
        "empty": pa.null(),
    }
)

FLOATS = st.one_of(
    st.floats(-1e6, 1e6, width=32), st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf])
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "user": st.sampled_from(["ann", "bob", "", "é"]),
    "shop": st.integers(0, 2),
    "n": st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)),
    "u": st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1)),
    "small": st.integers(-128, 127),
    "x": FLOATS,
    "single": FLOATS,
    "text": st.text("ab☃", max_size=3),
    "raw": st.binary(max_size=2),
    "price": st.decimals(-(10**9), 10**9, places=2),
    "wide": st.decimals(-(10**34), 10**34, places=3),
    "day": st.dates(date(1960, 1, 1), date(2060, 1, 1)),
    "at": st.datetimes(datetime(1960, 1, 1), datetime(2060, 1, 1)).map(  # noqa: DTZ001
        lambda time: time.replace(tzinfo=UTC)
    ),
    "took": st.integers(-(10**12), 10**12).map(lambda ms: timedelta(milliseconds=ms)),
    "ok": st.booleans(),
    "word": st.sampled_from(["left", "right"]),
    "parts": st.lists(st.integers(0, 3), max_size=2),
    "empty": st.none(),
}
NUMBERS = ["n", "u", "small", "x", "single", "price", "wide", "ok", "empty"]
ADDED = [*NUMBERS, "took"]
COMPARED = [*ADDED, "text", "raw", "day", "at", "word"]
ALL = [*COMPARED, "parts"]
TRUTHS = [*ADDED, "text", "raw", "word"]

AGGREGATES: list[Aggregate] = [
    agg.count(),
    *map(agg.sum, ADDED),
    *map(agg.mean, ADDED),
    *(make(name) for make in (agg.min, agg.max, agg.distinct) for name in COMPARED),
    *(agg.top(2, name) for name in COMPARED),
    *(make(name) for make in (agg.first, agg.last, agg.collect) for name in ALL),
    *(make(name) for make in (agg.variance, agg.stddev) for name in NUMBERS),
    *(agg.variance(name, ddof=0) for name in NUMBERS),
    *(make(name) for make in (agg.any, agg.all, agg.count_if) for name in TRUTHS),
    *(agg.quantile([0.0, 0.5, 1.0], name) for name in NUMBERS),
    *(agg.ewma(name, half_life="20ms") for name in ("small", "x", "price", "ok", "empty")),
    *(make(name) for make in (agg.approx_distinct, agg.mode) for name in COMPARED),
    *(agg.arg_min("parts", by=name) for name in COMPARED),
    *(agg.arg_max("x", by=name) for name in COMPARED),
    *(make(of, where=name) for make in (agg.sum, agg.collect) for of in "nx" for name in TRUTHS),
    agg.arg_max("n", by="price", where="ok"),
    agg.count(where="text"),
]
WINDOWS: list[AnyWindows] = [
    TumblingWindows(10),
    TumblingWindows(7, 3),
    SlidingWindows(10, 5),
    SlidingWindows(9, 4, 1),
    GlobalWindows(),
]
KEYS: list[tuple[str, ...]] = [
    (), ("user",), ("shop",), ("user", "shop"), ("day",), ("price",), ("word",), ("x",), ("empty",)
]  # fmt: skip


@st.composite
def programs(
    draw: st.DrawFn, aggregates: Sequence[Aggregate] = AGGREGATES
) -> tuple[AnyWindows, tuple[str, ...], list[Aggregate], list[Any]]:
    """Return windows, key, aggregates and steps, whose rows have the columns that are needed."""
    windows, key = draw(st.sampled_from(WINDOWS)), draw(st.sampled_from(KEYS))
    drawn = draw(st.lists(st.sampled_from(aggregates), min_size=1, max_size=5))
    chosen = [each for each in drawn if not columnar_mistakes(windows, key, each, SCHEMA)]
    chosen = chosen or [agg.count()]
    fields = [str(field) for each in chosen for field in each.fields]
    names = sorted({*key, *fields} or {"n"})
    rows = st.fixed_dictionaries(
        {name: st.one_of(VALUES[name], VALUES[name], st.none()) for name in names}
    )
    step = st.one_of(
        st.lists(st.tuples(rows, st.integers(-30, 60)), min_size=1, max_size=8),
        st.integers(-40, 80),  # A watermark.
        st.sampled_from(["epoch", "restart"]),
    )
    return windows, key, chosen, draw(st.lists(step, max_size=10))


class Life:
    def __init__(self, make: Callable[[TaskContext], Stage]) -> None:
        self.make = make
        self.head: Any = None
        self.late = 0
        self.sections: list[Section] = []
        self.start()

    def start(self) -> None:
        self.context = a_context()
        assert self.context.keyed is not None
        self.context.keyed.load(self.sections)
        self.stage = self.make(self.context)
        self.stage.restore(self.head)

    def end_epoch(self) -> None:
        assert self.context.keyed is not None
        self.head = decode_state(encode_state("fold", self.stage.snapshot()))
        delta = self.context.keyed.snapshot()
        if delta is not None:
            self.sections += delta.sections()
            delta.release()


def end_epochs(lives: list[Life], *, restart: bool) -> None:
    """End an epoch of each; behind a restart each goes on in the form of the other."""
    for life in lives:
        life.end_epoch()
    if restart:
        makes = [life.make for life in lives]
        lives.reverse()
        for life, make in zip(lives, makes, strict=True):
            life.make = make
            life.start()


class BothPaths:
    """The same aggregates over rows and in columns, given the same records."""

    def __init__(
        self,
        windows: AnyWindows,
        key: tuple[str, ...],
        aggregates: Mapping[str, Aggregate] | Aggregate,
    ) -> None:
        def rows(context: TaskContext) -> Stage:
            fold = fold_of(aggregates)
            return WindowFold(
                context, "rows", windows, key_getter(*key) if key else None, fold, limit=3
            )

        self.rows = Life(rows)
        self.columns = Life(
            lambda c: MergeAggregateStage(c, "columns", ColumnGroups(windows, key, aggregates))
        )
        if mergeable(aggregates, SCHEMA):
            self.columns.make = lambda c: MergeTablesStage(
                c, "columns", ColumnGroups(windows, key, aggregates), schema=SCHEMA
            )
            self.columns.start()
        self.partial = PartialAggregateStage(
            a_context(), "partial", ColumnGroups(windows, key, aggregates)
        )

    def take(self, table: pa.RecordBatch, times: list[int]) -> None:
        list(results_of(self.rows.stage, rows_of(table), times))
        for values, stamps in results_of(self.partial, Table(table), Times.of(times)):
            assert len(values) <= len(times)
            list(results_of(self.columns.stage, values, stamps))

    def end_epoch(self) -> None:
        self.rows.end_epoch()
        self.columns.end_epoch()

    def restart(self) -> None:
        self.end_epoch()
        lates = [life.context.counters.late_records for life in (self.rows, self.columns)]
        self.rows.start()
        self.columns.start()
        self.rows.context.counters.late_records = lates[0]
        self.columns.context.counters.late_records = lates[1]

    def results(self, watermark_ms: int) -> list[list[Any]]:
        """Return what a watermark brings on both: windows in order, keys of each in any."""
        return [in_order(life.stage, watermark_ms) for life in (self.rows, self.columns)]

    @property
    def late(self) -> list[int]:
        return [life.context.counters.late_records for life in (self.rows, self.columns)]


def in_order(stage: Stage, watermark_ms: int) -> list[Any]:
    """Return what a watermark brings, in the order of windows and then of keys."""
    results = [
        (list(value), time)
        for values, times in columns_of(stage.on_watermark(watermark_ms))
        for value, time in zip(values, times, strict=True)
    ]
    assert [time for _, time in results] == sorted(time for _, time in results)
    return sorted(results, key=lambda result: (result[1], text_of_key(result[0][0])))


def text_of_key(key: Any) -> str:
    """Return a text by which keys are sorted; that of equal ones is the same."""
    return repr(key + 0 if isinstance(key, float) else key)


def a_table(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    schema = pa.schema([SCHEMA.field(name) for name in rows[0]])
    return pa.RecordBatch.from_pylist([rows[0], *rows], schema=schema).slice(1)


def assert_alike(left: Any, right: Any) -> None:
    """Compare two results: floats nearly, all else, and its type, exactly."""
    assert type(left) is type(right), (left, right)
    if isinstance(left, float):
        assert (math.isnan(left) and math.isnan(right)) or left == pytest.approx(
            right, rel=1e-6, abs=1e-3
        )
    elif isinstance(left, list | tuple):
        assert len(left) == len(right), (left, right)
        for one, other in zip(left, right, strict=True):
            assert_alike(one, other)
    elif isinstance(left, dict):
        assert list(left) == list(right)
        assert_alike(list(left.values()), list(right.values()))
    else:
        assert left == right


@given(programs())
def test_columns_give_what_rows_give(
    program: tuple[AnyWindows, tuple[str, ...], list[Aggregate], list[Any]],
) -> None:
    """Property: same results in the same order, late records and holds; floats nearly.

    Wherever batches and epochs end, and tasks restart; out of order and late, with and without
    values, with sums beyond 64 bits.
    """
    windows, key, chosen, steps = program
    both = BothPaths(windows, key, {f"a{at}": each for at, each in enumerate(chosen)})
    watermark_ms = MIN_MS

    for step in [*steps, MAX_MS]:
        if isinstance(step, list):
            both.take(a_table([row for row, _ in step]), [time for _, time in step])
        elif step == "epoch":
            both.end_epoch()
        elif step == "restart":
            both.restart()
        elif step > watermark_ms:
            watermark_ms = step
            rows, columns = both.results(watermark_ms)
            assert_alike(rows, columns)
        assert both.rows.stage.hold_ms == both.columns.stage.hold_ms
        assert both.late[0] == both.late[1]


WIDE = st.one_of(st.integers(0, 3), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**40), 2**40))


@given(
    st.lists(st.tuples(WIDE, WIDE), min_size=1, max_size=20),
    st.integers(1, 2),
    st.sampled_from([0, 2]),
)
def test_rows_have_one_code_if_they_are_equal(
    rows: list[tuple[int, int]], width: int, many: int
) -> None:
    """Property: whether codes are looked up or sorted, and where a sort has no room for them."""
    parts = [row[:width] for row in rows]
    by = [pa.array(each, pa.int64()) for each in zip(*parts, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"_SPAN_MIN": 2, "_SPAN_OF_ROWS": 0, "_MANY": many}.items():
            patch.setattr(columns, name, value)
        codes, span = columns.codes_of(by, len(rows))

    assert len(set(codes.tolist())) == len(set(parts)) <= span
    assert len(set(zip(codes.tolist(), parts, strict=True))) == len(set(parts))
    assert 0 <= min(codes) <= max(codes) < span


# -- one by one ------------------------------------------------------------------------------


def totals_of(
    aggregates: Mapping[str, Aggregate] | Aggregate,
    table: pa.RecordBatch,
    *,
    key: tuple[str, ...] = (),
    times: list[int] | None = None,
) -> list[Any]:
    windows = GlobalWindows()
    partial = PartialAggregateStage(a_context(), "partial", ColumnGroups(windows, key, aggregates))
    merge = MergeAggregateStage(a_context(), "merge", ColumnGroups(windows, key, aggregates))
    stamps = Times.of(times or [0] * table.num_rows)
    for values, oldest in results_of(partial, Table(table), stamps):
        list(results_of(merge, values, oldest))
    return [value for values, _ in columns_of(merge.on_watermark(MAX_MS)) for value in values]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [2**63 - 1] * 5),
        (pa.int64(), [-(2**63)] * 5),
        (pa.uint64(), [2**64 - 1] * 5),
        (pa.int8(), [127] * 300),
        (pa.uint32(), [2**32 - 1] * 9),
    ],
)
def test_sums_of_whole_numbers_never_wrap_round(kind: pa.DataType, values: list[int]) -> None:
    table = pa.RecordBatch.from_arrays([pa.array(values, kind)], ["n"])

    (result,) = totals_of({"total": agg.sum("n"), "mean": agg.mean("n")}, table)

    assert result.value == {"total": sum(values), "mean": sum(values) / len(values)}


UNFIT: list[tuple[Aggregate, Any, str]] = [
    (agg.sum("c"), pa.string(), r"sum\(c\): column 'c' of type string cannot be added up"),
    (agg.mean("c"), pa.date32(), r"mean\(c\): column 'c' of type date32\[day\] cannot be added"),
    (agg.sum("c"), pa.decimal256(70, 2), "column 'c' .* has more than 66 digits"),
    (agg.sum("c"), pa.duration("ns"), r"column 'c' of type duration\[ns\] cannot be added up"),
    (agg.min("c"), pa.list_(pa.int8()), "column 'c' of type list<item: int8> has no order here"),
    (agg.top(2, "c"), pa.struct({"a": pa.int8()}), "column 'c' .* has no order here"),
    (agg.distinct("c"), pa.list_(pa.int8()), "column 'c' .* cannot be told apart here"),
    (agg.variance("c"), pa.string(), "column 'c' of type string has no variance"),
    (agg.any("c"), pa.date32(), "column 'c' .* is neither true nor false"),
]


@pytest.mark.parametrize(("aggregate", "kind", "cause"), UNFIT)
def test_unfit_column_is_named(aggregate: Aggregate, kind: pa.DataType, cause: str) -> None:
    table = pa.RecordBatch.from_arrays([pa.nulls(1, kind)], ["c"])

    with pytest.raises(OperatorError, match=cause) as raised:
        totals_of({"a": aggregate}, table)
    assert raised.value.operator == "partial"

    (mistake,) = columnar_mistakes(GlobalWindows(), (), aggregate, table.schema)
    assert mistake in raised.value.cause


def test_missing_column_is_named_with_those_there_are() -> None:
    table = pa.RecordBatch.from_arrays([pa.array([1])], ["n"])

    with pytest.raises(OperatorError, match="there is no column 'm': there are n"):
        totals_of({"a": agg.sum("m")}, table)
    with pytest.raises(OperatorError, match="there is no column 'user': there are n"):
        totals_of({"a": agg.sum("n")}, table, key=("user",))


def test_column_that_is_no_key_is_named() -> None:
    table = pa.RecordBatch.from_arrays([pa.array([[1]])], ["parts"])

    with pytest.raises(OperatorError, match="column 'parts' of type list<item: int64> is no key"):
        totals_of({"n": agg.count()}, table, key=("parts",))


def test_schema_may_change_between_tables() -> None:
    stage = PartialAggregateStage(
        a_context(), "partial", ColumnGroups(GlobalWindows(), (), {"total": agg.sum("n")})
    )
    good = pa.RecordBatch.from_arrays([pa.array([1])], ["n"])
    other = pa.RecordBatch.from_arrays([pa.array(["x"])], ["n"])

    assert len(list(results_of(stage, Table(good), Times.of([0])))) == 1
    with pytest.raises(OperatorError, match="cannot be added up"):
        list(results_of(stage, Table(other), Times.of([0])))


@pytest.mark.parametrize(
    ("windows", "key", "aggregate", "cause"),
    [
        (count_window(5), (), agg.count(), "the order in which they come"),
        (session("5s"), (), agg.collect("n"), "needs the order of the records"),
        (TumblingWindows(10).accumulating().allowed_lateness("5ms"), (), agg.collect("n"), "order"),
        (TumblingWindows(10), ("#n",), agg.count(), "key column is named '#n'"),
        (TumblingWindows(10), (), agg.sum(abs), "takes a function or whole records"),
        (TumblingWindows(10), (), agg.sum(), "takes a function or whole records"),
        (TumblingWindows(10), (), agg.custom(int, max, of="n"), "one value after the other"),
        (SlidingWindows(10, 5), (), agg.collect("n"), "needs the order of the records"),
    ],
)
def test_what_cannot_be_done_in_columns_is_told(
    windows: Any, key: tuple[str, ...], aggregate: Aggregate, cause: str
) -> None:
    (mistake,) = columnar_mistakes(windows, key, aggregate)
    assert cause in mistake

    with pytest.raises(ConfigError, match="partial: ") as raised:
        PartialAggregateStage(a_context(), "partial", ColumnGroups(windows, key, aggregate))
    assert cause in str(raised.value)


def test_every_nan_is_one_key() -> None:
    keys = pa.array([math.nan, 0.0, math.nan, -0.0])
    table = pa.RecordBatch.from_arrays([keys], ["x"])

    results = totals_of(agg.count(), table, key=("x",))

    assert [each.value for each in results] == [2, 2]


def test_zeros_of_either_sign_are_one_mode() -> None:
    table = pa.RecordBatch.from_arrays([pa.array([0.0, -3.0, -0.0, -3.0, 0.0])], ["x"])

    (result,) = totals_of(agg.mode("x"), table, key=())

    assert result.value == 0


@pytest.mark.parametrize("windows", [TumblingWindows(10), SlidingWindows(10, 3)])
def test_windows_at_the_ends_of_time(windows: AnyWindows) -> None:
    both = BothPaths(windows, (), {"n": agg.count()})
    table = pa.RecordBatch.from_arrays([pa.array([1, 2, 3, 4])], ["n"])

    both.take(table, [MIN_MS, -1, 2**62, MIN_MS + 1])

    rows, columns = both.results(MAX_MS)
    assert rows == columns
    assert len(rows) >= 3


def test_partials_have_the_time_of_their_oldest_record() -> None:
    """It holds event time back until the window closes, as the record itself would."""
    partial = PartialAggregateStage(
        a_context(), "partial", ColumnGroups(TumblingWindows(10), ("user",), {"n": agg.count()})
    )
    table = pa.RecordBatch.from_arrays([pa.array(["a", "b", "a", "a"])], ["user"])

    ((values, times),) = results_of(partial, Table(table), Times.of([7, 5, 3, 12]))

    assert [row["user"] for row in values] == ["a", "b", "a"]
    assert list(times) == [3, 5, 12]
    assert partial.hold_ms == MAX_MS
    assert partial.snapshot() is None


def test_nothing_comes_of_nothing() -> None:
    partial = PartialAggregateStage(
        a_context(), "p", ColumnGroups(TumblingWindows(10), (), agg.count())
    )
    merge = MergeAggregateStage(
        a_context(), "m", ColumnGroups(TumblingWindows(10), (), agg.count())
    )
    empty = pa.RecordBatch.from_arrays([pa.array([], pa.int64())], ["n"])

    assert list(results_of(partial, Table(empty), Times.of([]))) == []
    assert list(columns_of(partial.on_watermark(5))) == []
    assert list(results_of(merge, [], [])) == []
    assert list(columns_of(merge.on_watermark(MAX_MS))) == []
    partial.restore(None)
    partial.close(completed=True)
    merge.close(completed=True)


def test_rows_that_come_by_hand_become_a_table() -> None:
    partial = PartialAggregateStage(
        a_context(), "p", ColumnGroups(GlobalWindows(), (), agg.sum("n"))
    )
    merge = MergeAggregateStage(a_context(), "m", ColumnGroups(GlobalWindows(), (), agg.sum("n")))

    for values, times in results_of(partial, [{"n": 4}], [7]):
        list(results_of(merge, values, times))

    ((values, _),) = columns_of(merge.on_watermark(MAX_MS))
    assert values[0].value == 4


def test_merged_windows_go_on_where_rows_were() -> None:
    aggregates = {"total": agg.sum("n"), "n": agg.count()}
    rows = Life(
        lambda c: WindowFold(
            c, "w", TumblingWindows(10), key_getter("user"), fold_of(aggregates), limit=3
        )
    )
    list(results_of(rows.stage, [{"user": "a", "n": 5}], [3]))
    rows.end_epoch()
    rows.make = lambda c: MergeAggregateStage(
        c, "w", ColumnGroups(TumblingWindows(10), ("user",), aggregates)
    )
    rows.start()
    partial = PartialAggregateStage(
        a_context(), "p", ColumnGroups(TumblingWindows(10), ("user",), aggregates)
    )
    table = pa.RecordBatch.from_pylist([{"user": "a", "n": 6}])
    for values, times in results_of(partial, Table(table), Times.of([4])):
        list(results_of(rows.stage, values, times))

    ((values, _),) = columns_of(rows.stage.on_watermark(10))

    assert values == [WindowResult("a", {"total": 11, "n": 2}, 0, 10)]


def some_value(rng: Random, name: str) -> Any:
    plain: dict[str, Any] = {
        "user": rng.choice("ab"),
        "n": rng.choice([rng.randrange(-5, 5), 2**63 - 1, -(2**63)]),
        "u": rng.choice([rng.randrange(5), 2**64 - 1]),
        "small": rng.randrange(-128, 128),
        "x": rng.choice([rng.uniform(-9, 9), 0.0]),
        "single": float(rng.randrange(-9, 9)),
        "text": rng.choice(["", "a", "☃"]),
        "raw": rng.choice([b"", b"a", b"b"]),
        "price": Decimal(rng.randrange(-999, 999)).scaleb(-2),
        "wide": Decimal(rng.randrange(-(10**37), 10**37)).scaleb(-3),
        "day": date(2020, 1, rng.randrange(1, 20)),
        "at": datetime(2020, 1, rng.randrange(1, 20), tzinfo=UTC),
        "took": timedelta(milliseconds=rng.randrange(-9, 9)),
        "ok": rng.random() < 0.5,
        "word": rng.choice(["left", "right"]),
        "parts": [rng.randrange(3)],
        "empty": None,
    }
    return None if rng.random() < 0.2 and name != "user" else plain[name]


@pytest.mark.parametrize("kind", sorted({each.kind for each in AGGREGATES}))
@pytest.mark.parametrize("windows", WINDOWS[1:4:2], ids=["tumbling", "sliding"])
def test_every_aggregate_of_every_column(kind: str, windows: AnyWindows) -> None:
    chosen = {
        f"{at} {each}": each
        for at, each in enumerate(AGGREGATES)
        if each.kind == kind and not columnar_mistakes(windows, ("user",), each, SCHEMA)
    }
    names = [name for name in SCHEMA.names if name != "shop"]
    if not chosen:
        assert (kind, type(windows)) == ("collect", SlidingWindows)
        return
    rng = Random(0)
    both = BothPaths(windows, ("user",), chosen)
    for _ in range(3):
        rows = [{name: some_value(rng, name) for name in names} for _ in range(12)]
        both.take(a_table(rows), [rng.randrange(15) for _ in rows])

    rows, columns = both.results(MAX_MS)

    assert_alike(rows, columns)
    assert len(rows) > 2
