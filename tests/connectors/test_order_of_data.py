"""Columns and types of sinks do not depend on which records come first; nobody gave a schema.

Files are read by pyarrow, DuckDB or the csv module alone.
"""

import csv
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.feather  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.task.api.interfaces import Sink, SinkContext
from gearpy.testing import Simulation
from gearpy.windowlog.log import WindowLog
from tests.connectors.folders.test_tables import opened, write

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
#: Values of one field, of which each order has to give the same.
CELLS: dict[str, list[Any]] = {
    "fractions": [1, 2.5, None],
    "money": [Decimal("1.10"), Decimal("1234567.10"), Decimal("0.00001")],
    "money and numbers": [Decimal("1.5"), 7, None],
    "texts": [None, "", "a"],
    "times": [None, AT],
    "flags": [None, False, True],
    "records": [{}, {"x": 1}, {"x": 1.5, "y": "a"}],
    "lists": [[], [1], [None, 2.5]],
    "records in lists": [[{}], [{"x": Decimal("1.5")}], None],
}
NESTED = {"records", "lists", "records in lists"}
MISSING = object()


def _filled(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        return {name: value.get(name) for name in names}
    if isinstance(value, list):
        return [_filled(each, names) for each in value]
    return value


def _right(values: list[Any]) -> list[Any]:
    flat = [each for value in values for each in (value if isinstance(value, list) else [value])]
    names = {name for value in flat if isinstance(value, dict) for name in value}
    return sorted((_filled(value, names) for value in values), key=repr)


def _plain(value: Any) -> Any:
    """Return numbers as one type, so that 1 and 1.0 and Decimal('1.00') are shown alike."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in sorted(value.items())}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return (
        value.normalize()
        if isinstance(value, Decimal)
        else Decimal(value).normalize()
        if is_number
        else value
    )


def _alike(found: list[Any], right: list[Any]) -> bool:
    return sorted(map(repr, map(_plain, found))) == sorted(map(repr, map(_plain, right)))


def _orders(values: list[Any]) -> Iterator[list[Any]]:
    yield values
    yield values[::-1]


@pytest.mark.parametrize("name", CELLS)
def test_parquet_and_arrow_files_of_all_epochs_are_one_table(tmp_path: Path, name: str) -> None:
    """A file for each record, or one for all; for pyarrow, and for DuckDB."""
    right = _right(CELLS[name])
    for number, values in enumerate(_orders(CELLS[name])):
        for way in ("epochs", "batches"):
            for kind, sink in (("parquet", gp.parquet_folder), ("arrow", gp.arrow_folder)):
                folder = tmp_path / f"{number}{way}.{kind}"
                writer = opened(sink(folder))
                batches = [[{"n": at, "v": value}] for at, value in enumerate(values)]
                if way == "batches":
                    write(writer, 1, *batches)
                for at, batch in enumerate(batches if way == "epochs" else []):
                    if kind == "parquet" and batch[0]["v"] in ({}, [{}]):  # No file has it alone.
                        batch[0]["v"] = None
                    write(writer, at + 1, batch)
                found = _read_arrow(folder, kind)
                wanted = (
                    right
                    if way == "batches" or kind == "arrow"
                    else _right([None if value in ({}, [{}]) else value for value in values])
                )
                assert _alike(found, wanted), (values, way, kind)


def _read_arrow(folder: Path, kind: str) -> list[Any]:
    files = sorted(folder.glob(f"*.{kind}"))
    read = pq.read_table if kind == "parquet" else pyarrow.feather.read_table
    tables = [read(str(file)) for file in files]
    table = pa.concat_tables(tables, promote_options="permissive")
    if kind == "parquet":
        query = f"select n from read_parquet('{folder}/*.parquet', union_by_name=true)"  # noqa: S608 - its own
        assert sorted(duckdb.execute(query).fetchall()) == sorted(
            (n,) for n in table["n"].to_pylist()
        )
    found: list[Any] = table["v"].to_pylist()
    return found


@pytest.mark.parametrize("name", [name for name in CELLS if name not in NESTED])
def test_cells_of_csv_are_alike(tmp_path: Path, name: str) -> None:
    for number, values in enumerate(_orders(CELLS[name])):
        folder = tmp_path / str(number)
        writer = opened(gp.csv_folder(folder))
        for at, value in enumerate(values):
            write(writer, at + 1, [{"n": at, "v": value}])
        cells = []
        for file in sorted(folder.glob("*.csv")):
            with file.open(newline="") as lines:
                cells += [row["v"] for row in csv.DictReader(lines)]
        assert len(cells) == len(values)
        for value, cell in zip(values, cells, strict=True):
            if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
                assert Decimal(cell) == Decimal(str(value))
            elif value is None:
                assert not cell


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("key", [[None, "NA"], [None, 7], [None, ("a", 1)]], ids=str)
def test_a_log_has_what_all_records_of_its_first_epoch_need(
    tmp_path: Path, name: str, key: list[Any]
) -> None:
    """One by one; the key, too, though its first one is None."""
    for number, values in enumerate(_orders(CELLS[name])):
        keys = [*key, *[key[-1]] * (len(values) - 2)]
        place = tmp_path / str(number)
        writer: Any = gp.window_log_folder(place).open(0, 1)
        names = {"key_1": None, "key_2": None} if isinstance(key[-1], tuple) else {"key": None}
        _begin(writer, names)
        results = [
            gp.WindowResult(each, {"v": value}, at, at + 1)
            for at, (each, value) in enumerate(zip(keys, values, strict=True))
        ]
        for result in results:
            writer.write_batch(gp.Batch([result], [result.start]))
        writer.commit(1, writer.prepare(1))
        writer.close(completed=True)

        log = WindowLog(str(place))
        table = log.read_between({}, log.view().ends())
        assert _alike(table["v"].to_pylist(), _right(values))
        found = [tuple(row.values()) for row in table.select(list(names)).to_pylist()]
        wanted = [(each if isinstance(each, tuple) else (each,) * len(names)) for each in keys]
        assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def _begin(writer: Any, keys: dict[str, Any]) -> None:
    context = object.__new__(SinkContext)
    for name, value in {"app_name": "a", "app_id": 1, "keys": keys, "fields": {}}.items():
        object.__setattr__(context, name, value)
    writer.begin(context)
    writer.restore(None)
    writer.recover({}, epoch=0, run="r", incarnation=1)


SOURCE = [gp.Message({"k": None, "j": 1, "v": 1}, 0), gp.Message({"k": "NA", "j": 2, "v": 5}, 2000)]


@pytest.mark.parametrize("sink", [gp.parquet_folder, gp.arrow_folder, gp.csv_folder])
@pytest.mark.parametrize(
    ("keys", "names"), [(("k",), ["key"]), (("k", "j"), ["key_1", "key_2"])], ids=str
)
def test_the_plan_tells_that_there_is_a_key(
    tmp_path: Path, sink: Any, keys: tuple[str, ...], names: list[str]
) -> None:
    kinds = {"k": pa.string(), "j": pa.int64(), "v": pa.int64()}
    made: Sink = sink(tmp_path / "out")
    app = gp.StreamApp("keys")
    rows = app.read(gp.rows([message.value for message in SOURCE[:1]], schema=pa.schema(kinds)))
    rows.key_by(*keys).window(gp.tumbling("1s")).count().write(made)
    Simulation(app).run()

    (file,) = (tmp_path / "out").glob("part-*")
    if sink is gp.csv_folder:
        assert file.read_text().splitlines()[0].split(",")[2:3] == [f'"{names[0]}"']
        return
    read = pq.read_schema if sink is gp.parquet_folder else _feather_schema
    schema = read(str(file))
    assert [str(schema.field(name).type) for name in names] == [str(kinds[key]) for key in keys]


def _feather_schema(file: str) -> pa.Schema:
    return pyarrow.feather.read_table(file).schema


def test_a_text_among_numbers_is_refused_whichever_is_first(tmp_path: Path) -> None:
    """There is no column for both: it is no question of order."""
    for number, values in enumerate(([1, "a"], ["a", 1])):
        writer = opened(gp.parquet_folder(tmp_path / str(number)))
        write(writer, 1, [{"v": values[0]}])
        with pytest.raises(gp.OperatorError, match="field 'v' is"):
            write(writer, 2, [{"v": values[1]}])
        writer.close(completed=False)
