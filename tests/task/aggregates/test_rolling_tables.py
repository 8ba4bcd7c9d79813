"""The last records of a key, of rows and of columns."""

from random import Random
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.columns.results import RunningSchema, running_schema
from gearpy.columns.row_schema import RowSchema
from gearpy.core.base.fields import key_getter
from gearpy.core.window import aggregates as agg
from gearpy.dsl.plan.physical import physical
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.aggregates import rolling_tables
from gearpy.task.aggregates.rolling import RollingSpan, RollingStage
from gearpy.task.aggregates.rolling_tables import RollingTables
from gearpy.task.aggregates.rows import fold_of
from gearpy.task.api.window_result import rows_in
from gearpy.testing import MemoryTransactions, Simulation
from tests.task.aggregates.test_columns import Life, end_epochs
from tests.task.aggregates.test_running_tables import AGGREGATES, ROW, SCHEMA

CHOSEN = {name: each for name, each in AGGREGATES.items() if each[0].kind != "distinct"}
SPAN = st.one_of(
    st.builds(RollingSpan, records=st.integers(1, 90)),
    st.builds(RollingSpan, time_ms=st.integers(1, 40)),
)
#: Many rows of few keys, so that windows have whole parts; or what time it is by then.
STEP = st.one_of(
    st.tuples(st.lists(ROW, min_size=1, max_size=5), st.integers(1, 40)),
    st.sampled_from(["epoch", "restart"]),
    st.integers(0, 200),
)


@given(
    st.sampled_from([("user",), ("user", "x")]),
    st.lists(st.sampled_from(sorted(CHOSEN)), min_size=1, max_size=5, unique=True),
    SPAN,
    st.lists(STEP, max_size=8),
    st.sampled_from([(2, 2), (2, 9_999), (9_999, 2)]),
)
def test_columns_give_what_rows_give(
    key: tuple[str, ...],
    chosen: list[str],
    span: RollingSpan,
    steps: list[Any],
    limits: tuple[int, int],
) -> None:
    """Property: the same result after each record, to the digit, and each goes on as the other.

    Also where tables change to rows and back, as few rows come, or many keys.
    """
    named = {name: CHOSEN[name][0] for name in chosen}
    types = {name: CHOSEN[name][1] for name in chosen}
    results = running_schema([SCHEMA.field(each).type for each in key], types, is_single=False)
    assert isinstance(results, RunningSchema)

    def of_rows(context: Any) -> Any:
        return RollingStage(context, "rolling", key_getter(*key), span, fold_of(named))

    def of_columns(context: Any) -> Any:
        given = context, "rolling", key_getter(*key), span, fold_of(named)
        schemas = {"schema": RowSchema(SCHEMA), "results": results.arrow}
        return RollingTables(*given, aggregates=named, **schemas)

    lives = [Life(of_rows), Life(of_columns)]
    now_ms = 0
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_KEYS_MAX", "_UNWRITTEN_MAX"):
            patch.setattr(rolling_tables, name, limits[0])
        patch.setattr(rolling_tables, "_KEPT_MAX", limits[1])
        patch.setattr(rolling_tables, "_OF_TABLE", 0)
        for step in steps:
            if isinstance(step, int):
                now_ms = max(step, now_ms)
            elif isinstance(step, str):
                end_epochs(lives, restart=step == "restart")
            for life in lives:
                life.context.state.advance(now_ms)
            if not isinstance(step, tuple):
                continue
            few, times = step
            some = [
                (user, x, n and min(n, 2**53), text, time + at // 3)  # Sums are of 64 bits.
                for at, (user, x, n, text, time) in enumerate(few * times)
            ]
            rows = [dict(zip(SCHEMA.names, row, strict=False)) for row in some]
            at_ms = [time for *_, time in some]
            table = Batch(Table(pa.RecordBatch.from_pylist(rows, SCHEMA)), Times.of(at_ms))
            found = [
                [pair for each in life.stage.process(batch) for pair in rows_in(each.values)]
                for life, batch in zip(lives, (Batch(rows, at_ms), table), strict=True)
            ]
            assert repr(found[0]) == repr(found[1])


RECORDS = [
    gp.Message({"key": n % 3, "x": Random(n).random() * 10 ** (n % 9)}, n * n % 7 + n)
    for n in range(900)
]


@pytest.mark.parametrize(
    ("span", "tasks"),
    [(40, 3), ("90ms", 1), pytest.param("90ms", 3, marks=pytest.mark.long)],
)
def test_crashes_tasks_and_the_form_change_no_digit(
    span: Any, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of several partitions, out of order; sums of floats that depend on their order."""
    monkeypatch.setattr(rolling_tables, "_OF_TABLE", 0)
    found = list[Any]()
    for in_columns, crashes in [(False, 0), (True, 0), (True, 3)]:
        app, sink = gp.StreamApp("rolling", parallelism=tasks), MemoryTransactions()
        schema = {"key": int, "x": float} if in_columns else None
        source = gp.collection(RECORDS, schema=schema, partitions=tasks, out_of_order="20ms")
        totals = app.read(source).key_by("key").rolling(span, n=agg.count(), total=agg.sum("x"))
        totals.write(sink)
        runs = {getattr(each, "run_schema", None) is not None for each in physical(app.plan)}
        assert (True in runs) == in_columns
        Simulation(
            app, seed=tasks, delay_ms=2, read_records=9, cut_every_ms=2,
            crashes_after_epochs=crashes, may_miss=True,
        ).run()  # fmt: skip
        found.append(sorted(sink.values, key=repr))
    assert len(found[0]) == len(RECORDS)
    assert found[0] == found[1] == found[2]
