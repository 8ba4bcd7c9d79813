"""Columns of types with which Arrow cannot compute, see `gearpy.columns.workable`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.columns.workable import workable_batch, workable_schema
from gearpy.testing import Simulation

_RUNS = pc.run_end_encode(pa.array([1, 1, None]))
_TEXTS = ["a", None, "a text that is longer than a view holds"]
#: Three rows each, and what they become; None: a type that stays.
COLUMNS = {
    "texts": (pa.array(_TEXTS, pa.string_view()), pa.string()),
    "bytes": (pa.array([b"a", None, b"b"], pa.binary_view()), pa.binary()),
    "runs": (_RUNS, pa.int64()),
    "runs_of_views": (
        pa.RunEndEncodedArray.from_arrays(
            pa.array([2, 3], pa.int32()), pa.array(["a", "b"], pa.string_view())
        ),
        pa.string(),
    ),
    "words": (pa.array(["a", None, "a"]).dictionary_encode(), None),
    "words_of_views": (
        pa.DictionaryArray.from_arrays(
            pa.array([0, 1, None]), pa.array(["a", "b"], pa.string_view())
        ),
        pa.dictionary(pa.int64(), pa.string()),
    ),
    "list_view": (pa.array([[1], None, [2, None]], pa.list_view(pa.int64())), pa.list_(pa.int64())),
    "large_list_view": (
        pa.array([["a"], None, []], pa.large_list_view(pa.string_view())),
        pa.large_list(pa.string()),
    ),
    "list": (pa.array([["a"], None, [None]], pa.list_(pa.string_view())), pa.list_(pa.string())),
    "struct": (
        pa.StructArray.from_arrays([_RUNS, pa.array(_TEXTS, pa.string_view())], ["run", "text"]),
        pa.struct([("run", pa.int64()), ("text", pa.string())]),
    ),
    "map": (
        pa.array([[("k", "v")], None, []], pa.map_(pa.string(), pa.string_view())),
        pa.map_(pa.string(), pa.string()),
    ),
    "numbers": (pa.array([1, None, 2]), None),
}
_ARRAYS = [array for array, _ in COLUMNS.values()]
BATCH = pa.RecordBatch.from_arrays([*_ARRAYS, pa.array([1000, 2000, 3])], [*COLUMNS, "at"])


@pytest.mark.parametrize("name", COLUMNS)
def test_rows_of_each_type_can_be_picked(name: str) -> None:
    array, kind = COLUMNS[name]
    batch = workable_batch(pa.RecordBatch.from_arrays([array], ["c"]).slice(1))

    assert batch.column("c").type == (kind or array.type)
    batch.validate(full=True)
    assert batch.column("c").to_pylist() == array.to_pylist()[1:]
    assert batch.take(pa.array([1])).column("c").to_pylist() == array.to_pylist()[2:]


def test_a_schema_that_is_workable_stays_the_same() -> None:
    schema = pa.schema([("words", pa.dictionary(pa.int8(), pa.string())), ("at", pa.int64())])

    assert workable_schema(schema) is schema


def _table(_: Path) -> gp.Source:
    return gp.rows(BATCH, time="at")


def _made(_: Path) -> gp.Source:
    return gp.generate_tables(lambda: [BATCH], schema=BATCH.schema, time="at", limit=3)


def _file(folder: Path) -> gp.Source:
    with pa.ipc.new_file(str(folder / "rows.arrow"), BATCH.schema) as file:
        file.write_batch(BATCH)
    return gp.arrow(folder / "rows.arrow", time="at")


@pytest.mark.parametrize("source", [_table, _made, _file])
def test_columns_of_all_types_go_through_steps_that_pick_rows(
    source: Callable[[Path], gp.Source], tmp_path: Path
) -> None:
    """The third row is late, so it is left out; a table and a function see the same columns."""
    app = gp.StreamApp("views")
    results: list[Any] = []
    names = [name if name == "at" else f"its_{name}" for name in BATCH.schema.names]
    table = gp.rows(BATCH.rename_columns(names))
    found = app.read(source(tmp_path), late="drop").map_batches(lambda batch: batch)
    found.join_table(table, on="at", combine="merge").write(gp.to_list(results))

    Simulation(app).run()

    assert results == [
        dict(zip([*BATCH.schema.names, *names[:-1]], [*row, *row[:-1]], strict=True))
        for row in _rows()[:2]
    ]


def test_a_function_may_give_columns_of_all_types() -> None:
    app = gp.StreamApp("views")
    results: list[Any] = []
    made = app.read(gp.rows([{"at": 0}])).map_batches(lambda _: BATCH.slice(0, 1))
    table = gp.rows([{"texts": "a", "found": 1}])
    made.join_table(table, on="texts", combine="merge").write(gp.to_list(results))

    Simulation(app).run()

    (row,) = results
    assert row == {**dict(zip(BATCH.schema.names, _rows()[0], strict=True)), "found": 1}


def _rows() -> list[tuple[object, ...]]:
    columns = [array.to_pylist(maps_as_pydicts="strict") for array in BATCH.columns]
    return list(zip(*columns, strict=True))
