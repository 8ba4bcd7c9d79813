"""Rows of tables in pairs: those of records, whatever is at hand of the rows before."""

from typing import Any
from unittest.mock import patch

import pyarrow as pa  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from gearpy.columns.row_schema import RowSchema, as_table
from gearpy.core.base.fields import key_getter
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.state.stores.store import Section
from gearpy.task.chain.stage import Stage
from gearpy.task.stages import pairs
from gearpy.task.stages.pairs import PairSchema, PairTablesStage
from gearpy.task.stages.stateful import KeyedStage, StateFunction
from tests.task.build import a_context
from tests.task.chain.test_event_gate import snapshot_of

SCHEMA = RowSchema(pa.schema([("k", pa.float64()), ("m", pa.string()), ("id", pa.int64())]))
PAIRS = PairSchema.of_pairs(SCHEMA)
KEY = key_getter("k", "m")
PAIRWISE = StateFunction(
    function=lambda last, record: ((record,), [(last[0], record)] if last else []),
    is_flat=True,
    initial=(),
)
ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, -0.0, 1.0, 2.5]), st.sampled_from("ab")),
    min_size=1,
    max_size=12,
)


@given(st.lists(ROWS | st.just("epoch"), max_size=8), st.sampled_from([1, 1000]))
def test_pairs_are_those_of_rows(steps: list[Any], keys_max: int) -> None:
    """Also behind a restart in the other form, and where keys are forgotten and read again."""

    def stage_of(kept: list[Section], *, in_columns: bool) -> tuple[Stage, Any]:
        context = a_context()
        assert context.keyed is not None
        context.keyed.load(kept)
        stage: Stage = (
            PairTablesStage(context, "pairs", KEY, SCHEMA)
            if in_columns
            else KeyedStage(context, "pairs", KEY, PAIRWISE)
        )
        stage.restore(None)
        return stage, context

    forms, kept = [True, False], [list[Section](), list[Section]()]
    stages = [stage_of([], in_columns=form) for form in forms]
    number = 0
    with patch.object(pairs, "_KEYS_MAX", keys_max):
        for step in [*steps, "epoch"]:
            if step == "epoch":
                for at, (stage, context) in enumerate(stages):
                    stage.snapshot()
                    kept[at] += snapshot_of(context)
                forms.reverse()
                again = zip(kept, forms, strict=True)
                stages = [stage_of(of, in_columns=form) for of, form in again]
                continue
            rows = [{"k": k, "m": m, "id": number + at} for at, (k, m) in enumerate(step)]
            number += len(rows)
            times = list(range(number, number + len(rows)))
            found = []
            for form, (stage, _) in zip(forms, stages, strict=True):
                values = as_table(rows, SCHEMA) if form else rows
                results = list(stage.process(Batch(values, Times.of(times) if form else times)))
                found.append(
                    [
                        pair
                        for out in results
                        for pair in zip(_rows(out.values), out.timestamps, strict=True)
                    ]
                )
            assert found[0] == found[1]


def _rows(values: Any) -> list[Any]:
    if type(values) is not Table:
        return list(values)
    rows = PAIRS.rows(values.batch)
    assert PAIRS.rows(PAIRS.table(rows)) == rows
    return rows
