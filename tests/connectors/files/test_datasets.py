"""Files of rows as sources: every format alike, from real files."""

import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import fsspec  # type: ignore[import-untyped]

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.ipc as pa_ipc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gearpy as gp
from gearpy.connectors.files import line_tables
from gearpy.connectors.files.datasets import arrow, csv, jsonl, parquet
from gearpy.connectors.files.line_formats import CsvFormat, JsonLinesFormat
from gearpy.connectors.files.partitions import FilesReader, ReadOptions, RowFiles
from gearpy.core.base.times import event_time_ms
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Message
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import Source, SourceReader
from gearpy.task.api.snapshots import decode_state, encode_state
from gearpy.testing import Simulation

ROWS: list[dict[str, Any]] = [
    {"t": number * 7 % 23, "name": f"n{number}", "n": number} for number in range(40)
]
SCHEMA = {"t": int, "name": str, "n": int}


class Row(NamedTuple):
    t: int
    name: str
    n: int


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    lines = [f"{row['t']},{row['name']},{row['n']}" for row in ROWS]
    text = "\n".join(["t,name,n", *lines]) + "\n"
    (folder / "rows.csv").write_text(text)
    (folder / "windows.csv").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    (folder / "packed.csv.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "packed.csv.zst").write_bytes(pa.compress(text.encode(), "zstd", asbytes=True))
    objects = [f'{{"name": "{row["name"]}", "n": {row["n"]}, "t": {row["t"]}}}' for row in ROWS]
    (folder / "rows.jsonl").write_text("\n".join(objects))
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table, folder / "rows.parquet", row_group_size=15)
    with pa_ipc.new_file(folder / "rows.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=15)
    with pa_ipc.new_stream(folder / "stream.arrow", table.schema) as stream:
        stream.write_table(table, max_chunksize=15)
    return folder


@pytest.fixture(autouse=True, scope="module")
def close_readers() -> Iterator[None]:
    opened: list[SourceReader] = []
    open_one = RowFiles.open

    def remember(source: RowFiles, partition: str, resume: Any) -> FilesReader:
        reader = open_one(source, partition, resume)
        opened.append(reader)
        return reader

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RowFiles, "open", remember)
        yield
    for reader in opened:
        reader.close()


FORMATS: dict[str, Callable[..., Source]] = {
    "rows.csv": csv,
    "windows.csv": csv,
    "packed.csv.gz": csv,
    "packed.csv.zst": csv,
    "rows.jsonl": jsonl,
    "rows.parquet": parquet,
    "rows.arrow": arrow,
    "stream.arrow": arrow,
}


def read(reader: SourceReader, size: int = 7, reads: int = 1000) -> list[Message]:
    found: list[Message] = []
    for _ in range(reads):
        if reader.finished or (batch := reader.read_batch(size)) is None:
            break
        assert len(batch) <= size
        found += batch.messages()
    return found


def all_of(source: Source) -> list[Message]:
    return [record for name in source.partitions() for record in read(source.open(name, None))]


def values_of(source: Source) -> list[Any]:
    return [record.value for record in all_of(source)]


@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize("name", FORMATS)
def test_what_was_read_before_a_restart_counts_as_read(
    folder: Path, name: str, files: int, tmp_path: Path
) -> None:
    """Else an application that has read all would say that it has not."""
    (original,) = FORMATS[name](folder / name).partitions()
    copies = tmp_path / "copies"
    copies.mkdir()
    for at in range(files):
        shutil.copy(original, copies / f"{at}{Path(original).suffix}")
    size = sum(each.stat().st_size for each in copies.iterdir())
    source = FORMATS[name](copies, partitions=1)
    (partition,) = source.partitions()
    reader, places = source.open(partition, None), list[Any]()

    while not reader.finished:
        reader.read_batch(1)
        places.append(reader.snapshot())

    assert reader.progress == (size, size)
    for place in places:
        again = source.open(partition, place)
        read(again)
        assert again.progress == (size, size)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_tables(folder: Path, name: str) -> None:
    source = FORMATS[name](folder / name, time="t", time_unit="s", out_of_order="2s")
    (partition,) = source.partitions()

    reader = source.open(partition, None)
    batch = reader.read_batch(100)

    assert batch is not None
    assert isinstance(batch.values, Table)
    assert isinstance(batch.timestamps, Times)
    assert source.schema is not None
    assert batch.values.batch.schema == source.schema.arrow
    rows = [*batch.messages(), *read(reader)]
    assert [dict(record.value) for record in rows] == ROWS
    assert [record.timestamp for record in rows] == [row["t"] * 1000 for row in ROWS]
    assert reader.watermark_ms == 20_000
    assert reader.out_of_order_ms == 2000
    assert reader.finished
    assert reader.progress[0] == reader.progress[1] > 0
    assert source.replayable
    assert source.bounded
    reader.close()


@settings(max_examples=15)
@given(
    before=st.lists(st.integers(1, 20), max_size=5), size=st.integers(1, 20), block=st.booleans()
)
@pytest.mark.parametrize("name", FORMATS)
def test_goes_on_at_any_place(
    folder: Path, name: str, before: list[int], size: int, *, block: bool
) -> None:
    """Property: what follows a snapshot is the same again; also with small blocks."""
    with pytest.MonkeyPatch.context() as patch:
        if block:
            patch.setattr(line_tables.block_at, "__kwdefaults__", {"multiline": False, "size": 64})
        source = FORMATS[name](folder / name, time="t", out_of_order="5ms")
        (partition,) = source.partitions()
        reader = source.open(partition, None)
        for each in before:
            reader.read_batch(each)

        state = decode_state(encode_state(name, reader.snapshot()))
        again = source.open(partition, state)

        assert again.watermark_ms == reader.watermark_ms
        assert again.snapshot() == reader.snapshot()
        assert read(again, size) == ([] if reader.finished else read(reader, size))
        assert again.watermark_ms == reader.watermark_ms


@pytest.mark.parametrize("name", FORMATS)
def test_only_some_columns(folder: Path, name: str) -> None:
    source = FORMATS[name](folder / name, time="t", columns=["n", "name"])

    assert source.schema is not None
    assert source.schema.arrow.names == ["n", "name"]
    assert all_of(source)[1] == Message({"n": 1, "name": "n1"}, 7)


@pytest.mark.parametrize("name", FORMATS)
def test_time_by_a_function_of_the_row(folder: Path, name: str) -> None:
    source = FORMATS[name](folder / name, time=lambda row: row["t"] + 100, columns=["n"])

    assert all_of(source)[1] == Message({"n": 1}, 107)


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_rows_of_any_kind(folder: Path, name: str) -> None:
    source = FORMATS[name](folder / name, rows=True, time="n" if "json" in name else None)
    reader = source.open(source.partitions()[0], None)
    batch = reader.read_batch(3)

    assert source.schema is None
    assert batch is not None
    assert type(batch.values) is list
    assert type(batch.timestamps) is list
    assert [str(row["n"]) for row in batch.values] == ["0", "1", "2"]
    reader.close()


def test_texts_of_json_that_look_like_times_stay_texts(tmp_path: Path) -> None:
    """Arrow makes times without a zone of them, whatever zone they had; event times are right."""
    rows: list[dict[str, Any]] = [
        {"at": "2026-03-01T00:00:00+02:00", "in": {"at": "2026-03-01"}, "all": ["2026-03-01"]},
        {"at": "2026-03-01T00:00:00.5Z", "in": {"at": "soon"}, "all": []},
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))

    messages = all_of(jsonl(file, time="at"))

    assert [each.value for each in messages] == rows
    assert [each.timestamp for each in messages] == [
        event_time_ms(datetime.fromisoformat(row["at"])) for row in rows
    ]


def test_times_without_a_zone_are_of_utc_where_a_schema_has_times_of_utc(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(
        "n,at\n1,2026-03-01T10:00:00\n2,2026-03-01T10:00:00.5+02:00\n3,\n4,soon\n5,2026-03-01\n"
    )

    rows = values_of(csv(file, schema={"n": int, "at": datetime | None}, on_bad="skip"))

    assert [(row["n"], row["at"] and row["at"].isoformat()) for row in rows] == [
        (1, "2026-03-01T10:00:00+00:00"),
        (2, "2026-03-01T08:00:00.500000+00:00"),
        (3, None),
        (5, "2026-03-01T00:00:00+00:00"),
    ]


def test_a_late_row_with_parts_of_a_second_travels(tmp_path: Path) -> None:
    """Such times have nanoseconds in Arrow, which would make objects of pandas of them."""
    seconds = (1.5, 70.25, 2.125)
    moments = [datetime.fromtimestamp(at, UTC) for at in seconds]
    file = tmp_path / "clicks.csv"
    file.write_text("at,user\n" + "".join(f"{at.isoformat()},ada\n" for at in moments))
    app, results, late = gp.StreamApp("clicks"), list[Any](), list[Any]()
    clicks = app.read(csv(file, time="at")).key_by("user")
    windows = clicks.window(gp.tumbling("1m"), late="side")
    windows.aggregate(first=gp.agg.min("at"), all=gp.agg.collect("at")).write(gp.to_list(results))
    windows.count().late.write(gp.to_list(late))
    Simulation(app).run()

    first, second, _ = moments
    assert [each.value for each in results] == [
        {"first": first, "all": [first]},
        {"first": second, "all": [second]},
    ]
    assert late == [{"at": moments[2], "user": "ada"}]
    found = [*(each.value["first"] for each in results), late[0]["at"]]
    assert {type(each) for each in found} == {datetime}


def test_a_row_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("n,s\n1,a\n\nx,b\n")

    with pytest.raises(OperatorError, match=r"bad.csv, line 4: column 'n': .*'x'.*on_bad") as error:
        all_of(csv(file, schema={"n": int, "s": str}))

    assert error.value.record == "'x,b'"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("n,s\n1,a\n2\n", "line 3: .*[Ee]xpected 2 columns, got 1"),
        ("n,s\n,a\n", "line 2: column 'n' is missing"),
        ("n,s\n1.5,a\n", "line 2: column 'n'"),
    ],
)
def test_bad_cells(tmp_path: Path, text: str, cause: str) -> None:
    (tmp_path / "bad.csv").write_text(text)

    with pytest.raises(OperatorError, match=cause):
        all_of(csv(tmp_path / "bad.csv", schema={"n": int, "s": str}))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('{"n": 1}\n{"n": \n', "line 2"),
        ('{"n": 1}\n\n{"n": 1.5}\n', "line 3"),
        ('{"n": 1}\n{"m": 1}\n', "line 2: column 'n' is missing"),
        ("[1]\n", "line 1"),
    ],
)
def test_bad_objects(tmp_path: Path, text: str, cause: str) -> None:
    (tmp_path / "bad.jsonl").write_text(text)

    with pytest.raises(OperatorError, match=cause):
        all_of(jsonl(tmp_path / "bad.jsonl", schema={"n": int}))


def test_bad_rows_are_skipped_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    file.write_text('{"n": 1}\n{"n": "x"}\n{"n": 2}\n{}\n{"n": 3}\n')
    source = jsonl(file, schema={"n": int}, time="n", on_bad="skip")
    reader = source.open(str(file), None)

    first = read(reader, 1, reads=2)
    again = source.open(str(file), reader.snapshot())

    assert [record.value["n"] for record in (*first, *read(again))] == [1, 2, 3]
    assert reader.skipped_records == 2
    assert again.skipped_records == 0


def test_bad_rows_of_columns_are_skipped(tmp_path: Path) -> None:
    """A null where none may be; the place in the file is named."""
    pq.write_table(pa.table({"n": [1, None, 3]}), tmp_path / "n.parquet", row_group_size=3)
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False)])

    skipping = parquet(tmp_path / "n.parquet", schema=schema, on_bad="skip")
    assert values_of(skipping) == [{"n": 1}, {"n": 3}]

    with pytest.raises(OperatorError, match="row 1 of group 0: column 'n' is missing"):
        all_of(parquet(tmp_path / "n.parquet", schema=schema))


def test_bad_files_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"no such file")
    pq.write_table(pa.table({"n": [1]}), tmp_path / "b.parquet")
    source = parquet(tmp_path, schema={"n": int | None}, on_bad="skip", partitions=1)
    reader = source.open("00000", None)

    assert [record.value for record in read(reader)] == [{"n": 1}]
    assert reader.skipped_records == 1
    with pytest.raises(ConfigError, match=r"a.parquet is not a Parquet file"):
        all_of(parquet(tmp_path, schema={"n": int | None}))


def test_a_bad_time_is_a_bad_row(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("t,n\n2026-01-01,1\nsoon,2\n")

    with pytest.raises(OperatorError, match=r"line 3: column 't': .*soon"):
        all_of(csv(tmp_path / "t.csv", schema={"t": str, "n": int}, time="t"))
    with pytest.raises(OperatorError, match="line 2: the time function raised KeyError: 'x'"):
        all_of(csv(tmp_path / "t.csv", time=lambda row: row["x"]))


def test_lines_between_quotes(tmp_path: Path) -> None:
    cells = [f"a\n{'b' * number}\n" for number in range(30)]
    text = "s,n\n" + "".join(f'"{cell}",{at}\n' for at, cell in enumerate(cells))
    (tmp_path / "m.csv").write_text(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_tables.block_at, "__kwdefaults__", {"multiline": False, "size": 50})
        found = values_of(csv(tmp_path / "m.csv", multiline=True, schema={"s": str, "n": int}))

    assert [row["s"] for row in found] == cells


@pytest.mark.parametrize("size", [50, 1_000])
@pytest.mark.parametrize("cell", ["a\nb", "a\n\n", "a\nb,c", "\n", 'a\r\n""b'])
def test_cells_of_many_lines_have_to_be_expected(tmp_path: Path, cell: str, size: int) -> None:
    """Else a block could end in one, and its second half be taken for a row."""
    good = '"x",1\n\n"y ""q"" ",2\r\nz" z,3\n"""",4\n'
    (tmp_path / "m.csv").write_bytes(f's,n\n{good}"{cell}",5\n{good}'.encode())
    source = csv(tmp_path / "m.csv", schema={"s": str, "n": str})
    last = csv(tmp_path / "m.csv", schema={"s": str, "n": str}, on_bad="skip")
    (tmp_path / "end.csv").write_bytes(f's,n\n{good}6,"{cell}'.encode())
    end = csv(tmp_path / "end.csv", schema={"s": str, "n": str})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_tables.block_at, "__kwdefaults__", {"multiline": False, "size": size})
        for each in (source, end):
            with pytest.raises(
                OperatorError, match=r"line 7: quotes are not .* give multiline=True"
            ):
                values_of(each)
        assert [row["s"] for row in values_of(last)][:4] == ["x", 'y "q" ', 'z" z', '"']


@pytest.mark.parametrize("bad", ['{"a":\n 4}', '{"a": 4}{"a": 5}'])
def test_an_object_of_json_lines_is_a_line(tmp_path: Path, bad: str) -> None:
    """Another one is refused in a small file, too, where Arrow would read it."""
    (tmp_path / "m.jsonl").write_text(f'{{"a": 1}}\r\n\n \n{{"a": 2}}\n{bad}\n{{"a": 6}}')

    with pytest.raises(OperatorError, match="line 5: "):
        values_of(jsonl(tmp_path / "m.jsonl"))
    found = values_of(jsonl(tmp_path / "m.jsonl", schema={"a": int}, on_bad="skip"))

    assert [row["a"] for row in found] == [1, 2, 6]


def test_a_bad_row_beside_a_cell_with_very_many_lines(tmp_path: Path) -> None:
    """To put its lines together one by one would take half a minute."""
    cell = "x\n" * 1_000_000
    (tmp_path / "m.csv").write_text(f's,n\n"{cell}",1\nb,no\nc,3\n')

    begun_s = process_time()
    found = values_of(
        csv(tmp_path / "m.csv", multiline=True, schema={"s": str, "n": int}, on_bad="skip")
    )

    assert process_time() - begun_s < 15  # It takes 2.
    assert [row["n"] for row in found] == [1, 3]
    assert found[0]["s"] == cell


def test_other_headers_encodings_and_delimiters(tmp_path: Path) -> None:
    """Columns are found by name in each file; one that is not there is null."""
    (tmp_path / "a.csv").write_text("n;s\n1;é\n", "latin-1")
    (tmp_path / "b.csv").write_text("s;x;n\nb;9;2\n", "latin-1")
    schema = {"s": str | None, "n": int, "more": int | None}

    found = values_of(csv(tmp_path / "*.csv", schema=schema, delimiter=";", encoding="latin-1"))

    expected = [{"s": "é", "n": 1, "more": None}, {"s": "b", "n": 2, "more": None}]
    assert found == expected
    (tmp_path / "plain.txt").write_text("1,a\n2,b\n")
    plain = csv(tmp_path / "plain.txt", schema={"n": int, "s": str}, header=False)
    assert values_of(plain) == [{"n": 1, "s": "a"}, {"n": 2, "s": "b"}]


def test_files_of_other_types_become_those_of_the_schema(tmp_path: Path) -> None:
    """If every value fits; the first file says what the schema is."""
    pq.write_table(pa.table({"n": [1], "s": ["a"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": pa.array([2], pa.int8())}), tmp_path / "b.parquet")

    assert values_of(parquet(tmp_path)) == [{"n": 1, "s": "a"}, {"n": 2, "s": None}]


def test_urls(tmp_path: Path) -> None:
    files = fsspec.filesystem("memory")
    files.makedirs("/data", exist_ok=True)
    table = pa.table({"n": [1, 2, 3]})
    for name in ("a", "b"):
        with files.open(f"/data/{name}.parquet", "wb") as file:
            pq.write_table(table, file)
    source = parquet("memory://data/*.parquet", time="n")
    first, second = source.partitions()
    reader = source.open(first, None)
    read(reader, 2, reads=1)

    assert second == "memory:///data/b.parquet"
    assert values_of(source) == [{"n": 1}, {"n": 2}, {"n": 3}] * 2
    assert [record.value for record in read(source.open(first, reader.snapshot()))] == [{"n": 3}]
    assert len(parquet("memory://data").partitions()) == 2
    with pytest.raises(ConfigError, match=r"memory://none/\*.parquet' matches no file$"):
        parquet("memory://none/*.parquet").partitions()
    with pytest.raises(ConfigError, match="nosuch://x"):
        parquet("nosuch://x").partitions()


def test_several_files_share_partitions(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"{number}.jsonl").write_text(f'{{"n": {number}}}\n')
    source = jsonl(tmp_path / "*.jsonl", time="n", partitions=3, out_of_order="1s")

    parts = [read(source.open(name, None)) for name in source.partitions()]

    assert len(parts) == 3
    assert sorted(record.value["n"] for part in parts for record in part) == list(range(9))
    assert all(part == sorted(part, key=lambda record: record.timestamp) for part in parts)


class Clock:
    def __init__(self) -> None:
        self.ms = 10_000

    def __call__(self) -> int:
        return self.ms


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_windows_close_as_far_as_a_followed_folder_was_read(
    tmp_path: Path, partitions: int, parallelism: int, seed: int
) -> None:
    """Nothing in it is older, whichever files and tasks it is in; nothing new has to come."""
    for name, time in (("a.jsonl", 1000), ("b.jsonl", 5000)):
        (tmp_path / name).write_text(f'{{"user": "a", "t": {time}}}\n')
    source = jsonl(
        tmp_path / "*.jsonl",
        schema={"user": str, "t": int},
        time="t",
        follow=True,
        settle="0s",
        partitions=partitions,
    )
    app = gp.StreamApp("followed", parallelism=parallelism)
    counts: list[Any] = []
    by_user = app.read(source).key_by("user")
    by_user.window(gp.tumbling("1s")).count().write(gp.to_list(counts))

    Simulation(app, seed=seed).advance(2000)

    assert counts == [gp.WindowResult("a", 1, 1000, 2000)]


def test_a_folder_is_followed(tmp_path: Path) -> None:
    """New files are read as they come, each once; unfinished and fresh ones wait."""
    clock = Clock()
    options = ReadOptions(schema={"n": int}, follow=True, partitions=1, time="n")
    source = RowFiles(CsvFormat(), [tmp_path], options, now_ms=clock)
    reader = source.open("00000", None)

    def put(name: str, number: int, changed_s: int = 1) -> None:
        (tmp_path / name).write_text(f"n\n{number}\n")
        os.utime(tmp_path / name, (changed_s, changed_s))

    def later() -> list[int]:
        clock.ms += 1000
        return [record.value["n"] for record in read(reader)]

    assert not source.bounded
    assert later() == []
    assert reader.idle
    assert reader.watermark_ms == MIN_MS
    put("b.csv", 2)
    put("c.csv.tmp", 9)
    put("_d.csv", 9)
    put("fresh.csv", 3, changed_s=12)
    assert later() == [2]
    put("a.csv", 1)
    assert read(reader) == []  # Too soon for another look.
    assert later() == [1, 3]
    state = reader.snapshot()
    (tmp_path / "b.csv").unlink()
    put("e.csv", 5)
    reader = source.open("00000", decode_state(encode_state("test", state)))
    assert reader.watermark_ms == 3
    assert later() == [5]
    assert not reader.finished
    put("b.csv", 7)  # It was gone at a look.
    assert later() == [7]
    tmp_path.rename(tmp_path.with_name("away"))
    assert later() == []
    tmp_path.with_name("away").rename(tmp_path)  # A disk that was away for a while.
    assert later() == []


def test_a_file_that_grows_when_it_was_read_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once for each time; nothing is left out in silence."""
    clock, file = Clock(), tmp_path / "a.jsonl"
    options = ReadOptions(schema={"n": int}, follow=True, partitions=1, settle="0s")
    reader = RowFiles(JsonLinesFormat(), [tmp_path], options, now_ms=clock).open("00000", None)

    def later() -> list[int]:
        clock.ms += 1000
        return [record.value["n"] for record in read(reader)]

    file.write_text('{"n": 1}\n')
    assert (later(), later(), caplog.messages) == ([1], [], [])
    with file.open("a") as lines:
        lines.write('{"n": 2}\n')
    assert (later(), later()) == ([], [])
    (told,) = caplog.messages
    assert told.startswith(
        f"{file} has grown by 9 bytes since it was found, and they may be left out"
    )
    assert "gp.files(..., follow=True)" in told


def test_a_file_that_was_changed_is_not_gone_on_with(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("n\n1\n2\n")
    source = csv(file, schema={"n": int})
    reader = source.open(str(file), None)
    reader.read_batch(1)
    file.write_text("n\n1\n2\n3\n")

    with pytest.raises(GearpyError, match=r"8 bytes now, and had 6 when it was read"):
        source.open(str(file), reader.snapshot()).read_batch(1)
    file.write_text("n\n7\n2\n")
    with pytest.raises(GearpyError, match=r"is another file of 6 bytes than the one"):
        source.open(str(file), reader.snapshot()).read_batch(1)
    file.unlink()
    with pytest.raises(ConfigError, match="is not there"):
        source.open(str(file), None)


def test_a_copy_of_a_file_is_gone_on_with(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("n\n1\n2\n")
    source = csv(file, schema={"n": int})
    reader = source.open(str(file), None)
    reader.read_batch(1)
    (tmp_path / "b").write_text(file.read_text())
    os.utime(tmp_path / "b", (1, 1))
    (tmp_path / "b").replace(file)

    batch = source.open(str(file), reader.snapshot()).read_batch(9)

    assert batch is not None
    assert list(batch.values) == [{"n": 2}]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: csv(), r"csv\(\) needs at least one path"),
        (lambda _: csv(["a"]), r"write csv\(\*paths\) for a list"),  # type: ignore[arg-type]
        (lambda _: csv("none.csv").partitions(), "'none.csv' matches no file in /"),
        (lambda _: csv("/none.csv").partitions(), "'/none.csv' matches no file$"),
        (lambda f: csv(f / "rows.csv", time="when").schema, "no column: there are t, name, n"),
        (lambda f: csv(f / "rows.csv", columns=["x"]).schema, "columns has 'x'"),
        (
            lambda f: csv(f / "rows.csv", schema=Row, columns=["n"]),
            "csv: columns are those of Row: leave out columns=, or give a class",
        ),
        (lambda f: csv(f / "rows.csv", columns="n"), "need a list of names"),
        (lambda f: csv(f / "rows.csv", columns=[]), r"columns is \[\]"),
        (lambda f: csv(f / "rows.csv", time=5), "time is 5"),  # type: ignore[arg-type]
        (lambda f: csv(f / "rows.csv", time_unit="m"), "must be one of s, ms, us, ns"),  # type: ignore[arg-type]
        (lambda f: csv(f / "rows.csv", on_bad="stop"), "skip, quarantine, side"),  # type: ignore[arg-type]
        (lambda f: csv(f / "rows.csv", partitions=0), "must be 1 or more"),
        (lambda f: csv(f / "rows.csv", rows=True, schema=SCHEMA), "leave out schema="),
        (lambda f: csv(f / "rows.csv", quote="::"), "must be one ASCII character"),
        (lambda f: csv(f / "rows.csv", header=False).schema, "header=False needs the names"),
        (lambda f: csv(f / "rows.csv", encoding="utf-16"), "utf-16"),
        (lambda f: csv(f / "rows.csv", schema={"n": list[int]}).schema, "no cell can hold"),
        (lambda f: all_of(csv(f / "rows.csv", schema={"x": int})), "has no column 'x': it has t"),
        (lambda f: all_of(parquet(f / "rows.parquet", schema={"x": int})), "has no column 'x'"),
        (lambda f: all_of(parquet(f / "rows.parquet", schema={"n": list[int]})), "does not become"),
        (lambda f: parquet(f / "rows.csv").schema, "is not a Parquet file"),
        (lambda f: arrow(f / "rows.csv").schema, "is not an Arrow file"),
        (lambda f: jsonl(f / "rows.csv").schema, "rows.csv, line 1: is no JSON from character 1"),
        (lambda f: parquet(f / "x*", follow=True).schema, "to tell the columns: give schema="),
    ],
)
def test_mistakes_are_told(folder: Path, make: Callable[[Path], Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(folder)


def test_empty_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("")
    (tmp_path / "b.csv").write_text("n\n1\n")

    assert values_of(csv(tmp_path / "*.csv")) == [{"n": 1}]
    with pytest.raises(ConfigError, match="are empty"):
        _ = csv(tmp_path / "a.csv").schema


def test_from_parquet_to_a_window(folder: Path, tmp_path: Path) -> None:
    """A whole application: columns all the way, out as columns, in again."""
    app = gp.StreamApp("columns")
    app.read(gp.parquet(folder / "rows.parquet")).write(gp.arrow_folder(tmp_path / "out"))
    Simulation(app).run()
    app, results = gp.StreamApp("again"), list[Any]()
    read_back = app.read(gp.arrow(tmp_path / "out"))
    read_back.window(gp.global_window()).aggregate(n=gp.agg.sum("n")).write(gp.to_list(results))
    Simulation(app).run()

    assert [result.value for result in results] == [{"n": sum(range(40))}]
