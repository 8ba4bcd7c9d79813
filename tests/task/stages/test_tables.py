"""Steps between rows and columns, see `gearpy.task.stages.tables`."""

from collections.abc import Callable
from typing import Any, NamedTuple

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pytest

from gearpy.columns.row_schema import row_schema_of
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS
from gearpy.messages.data import Batch
from gearpy.messages.late_time import late_time, promise_of
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.rejects import Midway, OnError, Rejects
from gearpy.task.chain.stage import Stage
from gearpy.task.stages.tables import MapBatchesStage, RowsStage, TableStage
from gearpy.wire.values.payload import decode_value
from tests.task.build import a_context
from tests.task.stage_build import columns_of, results_of


class Pair(NamedTuple):
    a: int
    b: str | None


class Fussy(NamedTuple("Fussy", [("a", int)])):
    __slots__ = ()

    def __new__(cls, a: int) -> "Fussy":  # noqa: PYI034 - a NamedTuple's own
        if a > 1:
            raise ValueError("too much")
        return super().__new__(cls, a)


def context(on_error: OnError = "fail", batch: int = 4) -> TaskContext:
    made = a_context(batch=batch)
    made.rejects = Rejects(on_error, made.counters)
    return made


def a_table(*numbers: Any) -> tuple[Table, Times]:
    """Return rows of one number, which are timed by their place from 100 on."""
    column = pa.array(list(numbers), pa.int64())
    table = Table(pa.record_batch({"a": column}))
    return table, Times.of(range(100, 100 + len(numbers)))


def out(stage: Stage, values: list[Any], times: list[int]) -> list[Batch]:
    return [Batch(*columns) for columns in results_of(stage, values, times)]


def rows(batches: list[Batch]) -> list[tuple[Any, int]]:
    return [tuple(message) for batch in batches for message in batch.messages()]


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"a": pc.multiply(batch.column("a"), 2)})


def test_rows_pass_as_they_are() -> None:
    values, times = [1, 2], [3, 4]

    (batch,) = out(RowsStage(context(), "rows", None), values, times)

    assert batch.values is values


def test_dict_given_by_hand_becomes_a_row_of_the_class() -> None:
    stage = RowsStage(context(), "rows", row_schema_of(Pair))

    assert rows(out(stage, [{"a": 1}], [5])) == [(Pair(1, None), 5)]
    assert rows(out(stage, [Pair(2, "x")], [6])) == [(Pair(2, "x"), 6)]


def test_class_that_refuses_a_row_is_blamed() -> None:
    stage = RowsStage(context(), "to rows", row_schema_of(Fussy))

    with pytest.raises(OperatorError, match="operator 'to rows': ValueError: too much") as caught:
        out(stage, *a_table(1, 2))

    assert (caught.value.record, caught.value.event_time_ms) == ("{'a': 2}", 101)


def test_row_that_a_class_refuses_is_dropped() -> None:
    made = context("quarantine")

    batches = out(RowsStage(made, "rows", row_schema_of(Fussy)), *a_table(0, 2, 1, 3, 2))

    assert rows(batches) == [(Fussy(0), 100), (Fussy(1), 102)]
    assert [decode_value(each.value) for each in made.rejects.records] == [
        {"a": 2},
        {"a": 3},
        {"a": 2},
    ]


def test_missing_column_is_named() -> None:
    with pytest.raises(OperatorError, match="operator 'rows': there is no column 'b' for Pair"):
        out(RowsStage(context(), "rows", row_schema_of(Pair)), *a_table(1, 2))


# -- rows to columns --------------------------------------------------------------------------


def test_rows_become_a_table() -> None:
    stage = TableStage(context(), "table", row_schema_of(Pair))

    (batch,) = out(stage, [Pair(1, "x"), Pair(2, None)], [5, 6])

    assert type(batch.values) is Table
    assert batch.timestamps == Times.of([5, 6])
    assert list(batch.values) == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert out(stage, [], []) == []
    assert out(stage, batch.values, batch.timestamps) == [batch]


def test_schema_is_kept_as_long_as_rows_fit() -> None:
    stage = TableStage(context(), "table", None)

    batches = [
        *out(stage, [{"a": 1.5}], [1]),
        *out(stage, [{"a": None}], [2]),
        *out(stage, [{"a": 2}], [3]),
        *out(stage, [{"a": 3, "b": "x"}], [4]),
    ]

    kinds = [str(b.values.batch.schema.field("a").type) for b in batches if type(b.values) is Table]
    assert kinds == ["double", "double", "double", "int64"]


def test_bad_row_ends_the_task_where_that_is_the_policy() -> None:
    stage = TableStage(context(), "table", row_schema_of({"a": int}))

    with pytest.raises(OperatorError, match="operator 'table': column 'a' is int64") as caught:
        out(stage, [{"a": 1}, {"a": "x"}], [1, 2])

    assert caught.value.record == "{'a': 'x'}"


def test_bad_rows_are_dropped_and_the_others_go_on() -> None:
    """In their order; in quarantine they stand with the step that could not take them."""
    made = context("quarantine")
    stage = TableStage(made, "table", row_schema_of({"a": int}))
    stage.place = 2

    batches = out(stage, [{"a": n if n % 3 else "x"} for n in range(8)], list(range(8)))

    assert rows(batches) == [({"a": n}, n) for n in (1, 2, 4, 5, 7)]
    assert made.counters.quarantined_records == 3
    assert [decode_value(each.value) for each in made.rejects.records] == [
        Midway(2, {"a": "x"})
    ] * 3


# -- functions over columns -------------------------------------------------------------------


def mapped(
    function: Callable[[Any], Any], made: TaskContext | None = None, **kwargs: Any
) -> MapBatchesStage:
    return MapBatchesStage(made or context(), "double", function, **kwargs)


def test_function_gets_and_gives_columns() -> None:
    assert rows(out(mapped(doubled), *a_table(1, 2))) == [({"a": 2}, 100), ({"a": 4}, 101)]


def test_function_may_give_a_table_of_arrow() -> None:
    """Of several parts, too, since many functions of Arrow make one."""

    def function(batch: pa.RecordBatch) -> pa.Table:
        return pa.Table.from_batches([batch.slice(0, 1), batch.slice(1)])

    (batch,) = out(mapped(function), *a_table(1, 2, 3))

    assert type(batch.values) is Table
    assert rows([batch]) == [({"a": 1}, 100), ({"a": 2}, 101), ({"a": 3}, 102)]


@pytest.mark.parametrize(
    "function",
    [lambda _: None, lambda batch: batch.slice(0, 0), lambda batch: batch.schema.empty_table()],
    ids=["None", "no rows", "no parts"],
)
def test_function_may_give_nothing(function: Callable[[Any], Any]) -> None:
    assert out(mapped(function), *a_table(1)) == []


def test_other_number_of_rows_is_refused() -> None:
    """Nobody would know when they happened."""
    with pytest.raises(OperatorError, match="gave 1 rows for 2, so nobody knows their event times"):
        out(mapped(lambda batch: batch.slice(1)), *a_table(1, 2))


def test_function_that_lacks_a_column_of_its_schema_is_blamed() -> None:
    """Else the step behind it would be, which cannot help it; what is there in addition may be."""
    promised = row_schema_of({"a": int, "b": int})

    with pytest.raises(OperatorError, match=r"returned no column 'b'.*there are a\n") as raised:
        out(mapped(doubled, gives=promised), *a_table(1))

    assert raised.value.operator == "double"
    assert rows(out(mapped(doubled, gives=row_schema_of({})), *a_table(1))) == [({"a": 2}, 100)]


def test_function_with_times_leaves_rows_out() -> None:
    def odd(batch: pa.RecordBatch) -> pa.RecordBatch:
        assert batch.schema.names == ["a", "time"]
        return batch.filter(pc.equal(pc.bit_wise_and(batch.column("a"), 1), 1))

    batches = out(mapped(odd, times="time"), *a_table(1, 2, 3))

    assert rows(batches) == [({"a": 1}, 100), ({"a": 3}, 102)]


def test_late_rows_stay_late_behind_a_function_with_times() -> None:
    calls: list[list[int]] = []

    def twice_but_three(batch: pa.RecordBatch) -> pa.RecordBatch:
        calls.append(batch.column("a").to_pylist())
        some = batch.filter(pc.not_equal(batch.column("a"), 3))
        return some.take(pa.array([at for at in range(some.num_rows) for _ in range(2)]))

    table, _ = a_table(1, 2, 3, 4, 5)
    times = Times.of([100, 101, late_time(50, 90), late_time(60, 90), 102])
    batches = out(mapped(twice_but_three, times="time"), table, times)

    assert calls == [[1, 2], [3, 4], [5]]
    found = [(row["a"], time, promise_of(time)) for row, time in rows(batches)]
    assert found == [
        (a, *at)
        for a, at in [(1, (100, 100)), (2, (101, 101)), (4, (60, 90)), (5, (102, 102))]
        for _ in range(2)
    ]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda batch: batch.select(["a"]), "returned no column 'time'.*there are a"),
        (
            lambda batch: batch.set_column(1, "time", pa.array(["x"] * batch.num_rows)),
            "column 'time' has no event times in ms",
        ),
        (
            lambda batch: batch.set_column(1, "time", pa.nulls(batch.num_rows, pa.int64())),
            "event times are int64 with 2 nulls",
        ),
    ],
)
def test_function_that_loses_the_times_is_refused(
    function: Callable[[Any], Any], text: str
) -> None:
    with pytest.raises(OperatorError, match=text):
        out(mapped(function, times="time"), *a_table(1, 2))


def test_times_need_a_name_of_their_own() -> None:
    """Else a column would be lost."""
    with pytest.raises(OperatorError, match="there is a column 'a' already"):
        out(mapped(doubled, times="a"), *a_table(1))


def test_function_that_gives_something_else_is_refused() -> None:
    with pytest.raises(OperatorError, match=r"returned a int: give a pyarrow.RecordBatch or Table"):
        out(mapped(lambda _: 5), *a_table(1))


def touchy(batch: pa.RecordBatch) -> pa.RecordBatch:
    if 3 in batch.column("a").to_pylist():
        raise ValueError("three")
    return doubled(batch)


def test_bad_rows_are_found_and_dropped() -> None:
    made = context("quarantine")

    batches = out(mapped(touchy, made), *a_table(1, 3, 5, 3, 7))

    assert rows(batches) == [({"a": 2}, 100), ({"a": 10}, 102), ({"a": 14}, 104)]
    assert made.counters.quarantined_records == 2
    assert [decode_value(each.value) for each in made.rejects.records] == [{"a": 3}] * 2


def test_row_given_by_hand_becomes_a_table() -> None:
    stage, seen = mapped(doubled), []

    def noted(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append(str(batch.schema.field("a").type))
        return batch

    stage = mapped(noted)
    out(stage, [{"a": 1}], [5])
    out(stage, Table(pa.record_batch({"a": pa.array([1], pa.int8())})), Times.of([5]))
    batches = out(stage, [{"a": 2}], [6])

    assert seen == ["int64", "int8", "int8"]
    assert rows(batches) == [({"a": 2}, 6)]


@pytest.mark.parametrize(("form", "library"), [("pandas", "pandas"), ("polars", "polars")])
def test_data_frames_come_and_go(form: Any, library: str) -> None:
    try:
        __import__(library)
    except ImportError:
        with pytest.raises(
            ConfigError, match=f"needs {library}, not installed here: .*install {library}"
        ):
            mapped(doubled, form=form)
        return

    def function(frame: Any) -> Any:
        assert type(frame).__module__.startswith(library)
        return frame[["a"]] * 2

    assert rows(out(mapped(function, form=form), *a_table(1))) == [({"a": 2}, 100)]
    with pytest.raises(OperatorError, match=rf"returned a int: give a {library}.DataFrame"):
        out(mapped(lambda _: 5, form=form), *a_table(1))


def test_unknown_form_is_refused() -> None:
    with pytest.raises(ConfigError, match="form is 'dask', must be one of arrow, pandas, polars"):
        mapped(doubled, form="dask")


@pytest.mark.parametrize(
    "stage",
    [RowsStage(a_context(), "s", None), TableStage(a_context(), "s", None), mapped(doubled)],
)
def test_nothing_is_kept(stage: Stage) -> None:
    stage.restore(None)
    assert stage.snapshot() is None
    assert list(columns_of(stage.on_watermark(5))) == []
    assert stage.hold_ms == MAX_MS
    stage.close(completed=True)
