"""Columns that grow in place, beside a dict of rows."""

import math
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from gearpy.columns.growing import GrowingColumns
from tests.task.aggregates.test_columns import SCHEMA, VALUES

KINDS = {each.name: each.type for each in SCHEMA if each.name not in {"parts", "word"}} | {
    "odd": pa.binary(3)
}


def is_no_nan(value: Any) -> bool:
    return not isinstance(value, float) or not math.isnan(value)


CELLS = st.fixed_dictionaries(
    {
        name: st.one_of(st.none(), VALUES.get(name, st.just(b"abc")).filter(is_no_nan))
        for name in KINDS
    }
)
PUT = st.dictionaries(st.integers(0, 12), CELLS, max_size=5)


@given(st.lists(PUT, max_size=6), st.integers(0, 3))
def test_rows_are_those_that_were_put_last(puts: list[dict[int, Any]], skipped: int) -> None:
    """Property: of all types, with and without values, from tables that are parts of others."""
    columns, known = GrowingColumns(list(KINDS.values())), dict[int, Any]()
    for put in puts:
        new = [at for at in sorted(put) if at >= len(known)]
        place_of = {at: len(known) + new.index(at) if at in new else at for at in put}
        rows = {place_of[at]: row for at, row in put.items()}
        padded = [dict.fromkeys(KINDS)] * skipped + [*rows.values()]
        table = pa.RecordBatch.from_pylist(padded, pa.schema(KINDS)).slice(skipped)
        columns.put(np.array([*rows], np.int64), table.columns)
        known |= rows

        assert len(columns) == len(known)
        places = np.array([*known, *known], np.int64)
        taken = pa.RecordBatch.from_arrays(columns.take(places), schema=pa.schema(KINDS))
        taken.validate(full=True)
        assert taken.to_pylist() == [*known.values()] * 2
    assert (columns.nbytes > 0) is bool(known)
