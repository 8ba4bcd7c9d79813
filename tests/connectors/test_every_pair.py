"""What every sink makes of odd values: independent programs and all sources read the same.

A value that a sink has no form for is refused with its column, the value and what helps; where
`application.on-error` says so, the run goes on without its record.
"""

import csv
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import duckdb
import fastavro
import psycopg

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as pa_dataset  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    timestamp_pb2,
)
from pyarrow import feather

import gearpy as gp
from gearpy.connectors.kafka.writing.values import RecordValues
from gearpy.testing import FlowDriver, ManualSource
from tests.connectors.kafka.topic_build import TopicBuild
from tests.connectors.kafka.writing.reading import read as read_topic
from tests.servers.kafka import KafkaAddress
from tests.servers.postgres import PostgresAddress

BERLIN: Final = ZoneInfo("Europe/Berlin")
_NUMBERS = count()


class Colour(Enum):
    RED = 1


@dataclass(frozen=True)
class Inner:
    x: int
    y: str | None


#: By name of its column.
KEPT: Final[dict[str, Any]] = {
    "none": None,
    "most": 2**63 - 1,
    "least": -(2**63),
    "beyond_fractions": 2**53 + 1,
    "flag": False,
    "one": 1,
    "large": 1e308,
    "tiny": 5e-324,
    "negative_zero": -0.0,
    "infinite": -math.inf,
    "nan": math.nan,
    "money": Decimal("1.10"),
    "thousand": Decimal("1E+3"),
    "fine": Decimal("0.000000000000000001"),
    "empty": "",
    "space": " ",
    "code": "007",
    "umlaut": "Jürgen \U0001f600",
    "ends": "a\rb\nc\r\nd\n",
    "line_separators": "\u2028\u2029\x85\x0b",
    "quotes": '"\'"",;\t\\N\\',
    "mark": "\ufeffa",
    "null": "NULL",
    "first_day": date(1, 1, 1),
    "last_day": date(9999, 12, 31),
    "first": datetime(1, 1, 1),  # noqa: DTZ001 - that is the test
    "last": datetime(9999, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001 - that is the test
    "first_of_utc": datetime(1, 1, 1, tzinfo=UTC),
    "hour": datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN),
    "hour_again": datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN),
    "clock": time(23, 59, 59, 999_999),
    "span": timedelta(-1, 1, 1),
    "bytes": b"\x00\xff\n",
    "no_bytes": b"",
    "nul": "a\0b",
    "list": [1, None, 2**53 + 1],
    "lists": [[], [None], ["a"]],
    "record": {"a": {"b": [{"c": None}, {"c": 1}]}},
    "class": Inner(2**53 + 1, None),
}
NESTED: Final = {"list", "lists", "record", "class"}
BYTES: Final = {"bytes", "no_bytes"}
DECIMALS: Final = {"money", "thousand", "fine"}
SPARK: Final = {"clock", "span"}  #: Has no such columns, and reads those tables.
ROWS: Final = 2


def rows_of(names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"n": 0, "day": "mon", **dict.fromkeys(names)},
        {"n": 1, "day": "mon", **{name: KEPT[name] for name in names}},
    ]


def written(sink: gp.Sink[Any], rows: Sequence[Any], on_error: str = "fail") -> None:
    app = gp.StreamApp("pairs")
    app.read(gp.collection(rows, timestamp=lambda _: 0)).write(sink)
    _ = gp.run(app, config=gp.load_config(overrides={"application.on-error": on_error}))


def refusal(sink: gp.Sink[Any], row: dict[str, Any]) -> str:
    app, source = gp.StreamApp("pairs"), ManualSource("rows")
    app.read(source).write(sink)
    flow = FlowDriver(app)
    steps: list[Callable[[], object]] = [partial(flow.send, source, row), flow.stop]
    causes = []
    for step in steps:
        try:
            step()
        except gp.OperatorError as error:
            causes.append(error.cause)
    return causes[0]


def read(source: gp.Source[Any]) -> list[Any]:
    app, found = gp.StreamApp("pairs"), list[Any]()
    app.read(source).write(gp.to_list(found))
    _ = gp.run(app)
    return found


def check(found: Sequence[Any], names: Sequence[str], change: Callable[[Any], Any]) -> None:
    first, second = sorted(found, key=lambda row: int(row["n"]))
    nothing = change(None)
    for name in names:
        assert alike(first[name], nothing) or first[name] is None, name
        assert alike(second[name], change(KEPT[name])), (name, second[name])


def alike(one: Any, other: Any) -> bool:
    """Tell whether values are the same, with the sign of zero, NaN, and instants of time."""
    if isinstance(one, float) and isinstance(other, float):
        return repr(one) == repr(other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, datetime) and isinstance(other, datetime):
        are_aware = [each.utcoffset() is not None for each in (one, other)]
        return are_aware[0] == are_aware[1] and one - other == timedelta()
    return type(one) is type(other) and bool(one == other)


def as_is(value: Any) -> Any:
    return vars(value) if isinstance(value, Inner) else value


def as_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date | time) else as_is(value)


def as_cell(value: Any) -> str:
    """Return a value as the csv module reads it; a number by its value."""
    return "" if value is None else value if isinstance(value, str) else repr(value)


def files(folder: Path, ending: str) -> list[Path]:
    return sorted(folder.rglob(f"*.{ending}"))


def of_parquet(folder: Path) -> list[Any]:
    """Return rows by pyarrow alone, with the checksums of pages; DuckDB sees as many."""
    parts = files(folder, "parquet")
    (rows,) = duckdb.execute(
        f"select count(*) from read_parquet('{folder}/**/*.parquet')"  # noqa: S608 - its own
    ).fetchone() or (0,)
    assert rows == ROWS
    for part in parts:
        metadata = pq.ParquetFile(part).metadata
        assert metadata.num_row_groups
    whole = [pq.ParquetFile(part, page_checksum_verification=True).read() for part in parts]
    return [row for table in whole for row in table.to_pylist()]


def of_arrow(folder: Path) -> list[Any]:
    return [row for part in files(folder, "arrow") for row in feather.read_table(part).to_pylist()]


def of_csv(folder: Path) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    for part in files(folder, "csv"):
        with part.open(newline="", encoding="utf-8") as lines:
            rows += csv.DictReader(lines)
    return rows


def of_json(folder: Path) -> list[Any]:
    lines = [line for part in files(folder, "jsonl") for line in part.read_bytes().split(b"\n")]
    return [json.loads(line) for line in lines if line]


def of_delta(folder: Path) -> list[Any]:
    rows: list[Any] = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
    return rows


def of_hive(folder: Path) -> list[Any]:
    found = pa_dataset.dataset(str(folder), format="parquet", partitioning="hive")
    rows: list[Any] = found.to_table().to_pylist()
    return rows


def parts_of(ending: str, **options: Any) -> Callable[[Path], list[Any]]:
    source = {"csv": gp.csv, "jsonl": gp.jsonl, "parquet": gp.parquet, "arrow": gp.arrow}[ending]
    return lambda folder: read(source(str(folder / "**" / f"*.{ending}"), **options))


@dataclass(frozen=True)
class Pair:
    sink: Callable[[Path], Any]
    readers: Sequence[Callable[[Path], list[Any]]]
    refused: frozenset[str] = frozenset()
    change: Callable[[Any], Any] = as_is


PAIRS: Final[dict[str, Pair]] = {
    "parquet": Pair(gp.parquet_folder, [of_parquet, parts_of("parquet")]),
    "arrow": Pair(gp.arrow_folder, [of_arrow, parts_of("arrow")]),
    "delta": Pair(gp.delta_table, [of_delta], frozenset(SPARK)),
    "hive": Pair(
        lambda path: gp.hive_folder(path, partition_by=["day"]),
        [of_hive, parts_of("parquet")],
        frozenset(SPARK),
    ),
    "window log": Pair(
        gp.window_log_folder,
        [lambda path: read(gp.window_log(path, follow=False))],
        frozenset(SPARK),
    ),
    "jsonl": Pair(
        gp.jsonl_folder,
        [of_json, parts_of("jsonl", rows=True)],
        frozenset({*DECIMALS, *BYTES, "span", "infinite", "nan"}),
        as_json,
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_odd_values_are_read_as_they_were(name: str, tmp_path: Path) -> None:
    pair = PAIRS[name]
    names = [each for each in KEPT if each not in pair.refused]
    written(pair.sink(tmp_path / "out"), rows_of(names))
    for reader in pair.readers:
        check(reader(tmp_path / "out"), names, pair.change)


def test_cells_of_csv_are_read_as_they_were(tmp_path: Path) -> None:
    names = [each for each in KEPT if each not in NESTED | BYTES]
    written(gp.csv_folder(tmp_path / "out"), rows_of(names))
    cells = of_csv(tmp_path / "out")
    assert [row["n"] for row in cells] == ["0", "1"]
    for name in names:
        value, cell = KEPT[name], cells[1][name]
        assert not cells[0][name]
        if isinstance(value, str) or value is None:
            assert cell == as_cell(value)
        elif isinstance(value, bool):
            assert cell == str(value).lower()
        elif isinstance(value, datetime):
            assert alike(datetime.fromisoformat(cell), value)
        elif isinstance(value, date | time):
            assert cell == value.isoformat()
        elif isinstance(value, timedelta):
            assert timedelta(microseconds=int(cell)) == value
        elif isinstance(value, float):
            assert alike(float(cell), value)
        else:
            assert Decimal(cell) == value
    kinds = {name: type_of(KEPT[name]) for name in names}
    schema = pa.schema({"n": pa.int64(), "day": pa.string(), **kinds})
    parts = str(tmp_path / "out" / "*.csv")
    check(read(gp.csv(parts, schema=schema, multiline=True)), names, as_is)
    untyped = read(gp.csv(parts, multiline=True))
    for name in names:
        if isinstance(KEPT[name], str | bool | int):
            assert alike(untyped[1][name], KEPT[name]), name


def type_of(value: Any) -> pa.DataType:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return pa.timestamp("us", "UTC")
    if isinstance(value, Decimal):
        return pa.decimal128(38, 18)
    return pa.string() if value is None else pa.array([value]).type


#: Values of one column, and what helps.
REFUSED: Final[dict[str, tuple[Any, str]]] = {
    "beyond 64 bits": (2**63, "map it to a text"),
    "below 64 bits": (-(2**63) - 1, "map it to a text"),
    "no number": (Decimal("NaN"), "map it to None"),
    "no end": (Decimal("-Infinity"), "map it to None"),
    "many digits": (Decimal("1e30"), "give a schema"),
    "fine digits": (Decimal("1e-30"), "give a schema"),
    "half a character": ("a\ud800b", "map it"),
    "half a character inside": ([{"x": "\ud800"}], "map it"),
    "ages": (timedelta.max, "map it"),
    "beyond the last year": (datetime.max.replace(tzinfo=ZoneInfo("America/Lima")), "map it"),
    "enum": (Colour.RED, "map it"),
    "complex": (1j, "map it"),
    "keys": ({1: "a", 2: "b"}, "map its keys to texts"),
    "mixed": ([1, "a"], "map it"),
    "fraction": ([2**53 + 1, 0.5], "map it"),
    "time with a zone": (time(1, tzinfo=UTC), "time zone"),
}
IN_JSON: Final = {  #: JSON has a form for them.
    "beyond 64 bits",
    "below 64 bits",
    "beyond the last year",
    "keys",
    "mixed",
    "fraction",
    "time with a zone",
}


@pytest.mark.parametrize("name", ["csv", *PAIRS])
def test_what_is_refused_is_told_and_may_be_left_out(name: str, tmp_path: Path) -> None:
    sink: Any = gp.csv_folder if name == "csv" else PAIRS[name].sink
    refused = {each: REFUSED[each] for each in REFUSED if name != "jsonl" or each not in IN_JSON}
    for number, (value, cure) in enumerate(refused.values()):
        told = refusal(sink(tmp_path / f"{number}"), {"n": 1, "day": "mon", "v": value})
        assert "'v'" in told, told
        assert cure in told or "map it" in told, told
    rows = [
        {"n": at, "day": "mon", f"v{at}": value} for at, (value, _) in enumerate(refused.values())
    ]
    good = [{"n": 100 + at, "day": "mon"} for at in range(ROWS)]
    place = tmp_path / "skipped"
    written(sink(place), [good[0], *rows, good[1]], on_error="skip")
    found = of_csv(place) if name == "csv" else PAIRS[name].readers[0](place)
    assert sorted(int(row["n"]) for row in found) == [100, 101]


# -- servers ---------------------------------------------------------------------------------


def test_postgresql_has_odd_values_as_they_were(postgres: PostgresAddress) -> None:
    table = f"pairs{next(_NUMBERS)}"
    names = [each for each in KEPT if each not in NESTED | SPARK | {"nul", "none"}]
    written(gp.postgres_sink(postgres.url, table, create=True), rows_of(names))
    with psycopg.connect(postgres.url) as connection:
        connection.execute("set time zone 'UTC'")
        cursor = connection.execute(f"select * from {table}")  # noqa: S608
        columns = [each.name for each in cursor.description or ()]
        found = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    check(found, names, as_is)
    check(read(gp.postgres(postgres.url, table, by="n")), names, as_is)
    for bad, cure in (("a\0b", "NUL"), (time(1), "map it"), ([1], "map the field"), (2**63, "map")):
        sink = gp.postgres_sink(postgres.url, f"pairs{next(_NUMBERS)}", create=True)
        assert re.search("'v'.*" + cure, refusal(sink, {"n": 1, "v": bad}))


AVRO: Final = {
    "type": "record",
    "name": "Odd",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "whole", "type": ["null", "long"]},
        {"name": "fraction", "type": ["null", "double"]},
        {"name": "short", "type": ["null", "float"]},
        {"name": "text", "type": ["null", "string"]},
        {"name": "bytes", "type": ["null", "bytes"]},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "at_ms", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "clock", "type": ["null", {"type": "long", "logicalType": "time-micros"}]},
        {
            "name": "money",
            "type": [
                "null",
                {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 4},
            ],
        },
        {"name": "list", "type": ["null", {"type": "array", "items": ["null", "double"]}]},
        {"name": "dict", "type": ["null", {"type": "map", "values": "long"}]},
    ],
}
AT: Final = datetime(2024, 10, 27, 1, 30, 0, 123_456, tzinfo=UTC)
AVRO_ROWS: Final[list[dict[str, Any]]] = [
    {"n": 0, **dict.fromkeys([field["name"] for field in AVRO["fields"][1:]])},  # type: ignore[index]
    {
        "n": 2**63 - 1,
        "whole": -(2**63),
        "fraction": -0.0,
        "short": 0.5,
        "text": "a\0\r\n\u2028Jürgen \U0001f600",
        "bytes": b"\x00\xff",
        "at": AT,
        "at_ms": AT.replace(microsecond=123_000),
        "day": date(9999, 12, 31),
        "clock": time(23, 59, 59, 999_999),
        "money": Decimal("12345678901234567890.1000"),
        "list": [1e308, None, -math.inf, 5e-324],
        "dict": {"": 2**53 + 1, "a b": -1},
    },
]
AVRO_REFUSED: Final[dict[str, Any]] = {
    "whole": 2**63,
    "fraction": 2**53 + 1,
    "short": 1e300,
    "text": "\ud800",
    "at": AT.replace(tzinfo=None),
    "at_ms": AT,
    "money": Decimal("0.00001"),
    "list": [0.5, 2**53 + 1],
    "dict": {"a": 0.5},
    "day": timedelta(1),
}


def topic_with(kafka: KafkaAddress, rows: Sequence[Any], form: Any, on_error: str = "fail") -> str:
    topic = TopicBuild(kafka.plain).make()
    written(gp.kafka_sink(topic, servers=kafka.plain, value=form), rows, on_error)
    return topic


def of_topic(kafka: KafkaAddress, topic: str, form: Any) -> list[Any]:
    return read(gp.kafka(topic, servers=kafka.plain, value=form, until="now"))


def check_refused(kafka: KafkaAddress, form: Any, refused: dict[str, Any]) -> None:
    """Write a field that its column does not keep: it is named, or left out."""
    values = RecordValues("kafka_sink", form).begun()
    for name, value in refused.items():
        with pytest.raises(gp.OperatorError) as failed:
            _ = values.of(["t"], [{"n": 1, name: value}])
        told = failed.value.cause
        assert "fit" in told or name in told, told
    rows = [{"n": 1}, *({"n": 2, name: value} for name, value in refused.items()), {"n": 3}]
    topic = topic_with(kafka, rows, form, on_error="skip")
    assert [row["n"] for row in of_topic(kafka, topic, form)] == [1, 3]


def test_topics_of_avro_have_odd_values_as_they_were(kafka: KafkaAddress) -> None:
    form = gp.avro(schema=AVRO)
    topic = topic_with(kafka, AVRO_ROWS, form)
    bodies = [message.value() or b"" for message in read_topic(kafka.plain, topic)]
    parsed = fastavro.parse_schema(AVRO)
    alone: list[Any] = [fastavro.schemaless_reader(BytesIO(body), parsed, None) for body in bodies]
    for found in (alone, of_topic(kafka, topic, form)):
        assert all(map(alike, found, AVRO_ROWS)), found
    check_refused(kafka, form, AVRO_REFUSED)


def odd_message() -> Any:
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="odd.proto",
        package="odd",
        syntax="proto3",
        dependency=["google/protobuf/timestamp.proto", "google/protobuf/duration.proto"],
    )
    message = file.message_type.add(name="Odd")
    kinds = {
        "n": field.TYPE_INT64,
        "whole": field.TYPE_SINT64,
        "unsigned": field.TYPE_UINT64,
        "fraction": field.TYPE_DOUBLE,
        "short": field.TYPE_FLOAT,
        "text": field.TYPE_STRING,
        "bytes": field.TYPE_BYTES,
        "flag": field.TYPE_BOOL,
        "at": ".google.protobuf.Timestamp",
        "span": ".google.protobuf.Duration",
    }
    for number, (name, kind) in enumerate(kinds.items(), 1):
        added = message.field.add(name=name, number=number, label=field.LABEL_OPTIONAL)
        if isinstance(kind, str):
            added.type, added.type_name = field.TYPE_MESSAGE, kind
        else:
            added.type, added.proto3_optional, added.oneof_index = kind, True, number - 1
            message.oneof_decl.add(name=f"_{name}")
    pool = descriptor_pool.DescriptorPool()
    for known in (timestamp_pb2, duration_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("odd.Odd"))


def test_topics_of_protobuf_have_odd_values_as_they_were(kafka: KafkaAddress) -> None:
    odd = odd_message()
    form = gp.protobuf(odd)
    full = {
        "n": 2**63 - 1,
        "whole": -(2**63),
        "unsigned": 2**64 - 1,
        "fraction": -0.0,
        "short": 0.5,
        "text": "a\0\r\n\u2028Jürgen \U0001f600",
        "bytes": b"\x00\xff",
        "flag": False,
        "at": AT,
        "span": timedelta(-1, 1, 1),
    }
    rows: list[Any] = [{"n": 0, **dict.fromkeys([*full][1:])}, full]
    topic = topic_with(kafka, rows, form)
    first, second = [
        odd.FromString(message.value() or b"") for message in read_topic(kafka.plain, topic)
    ]
    assert [each.name for each, _ in first.ListFields()] == ["n"]
    for name, value in full.items():
        found = getattr(second, name)
        if name in {"at", "span"}:
            found = found.ToDatetime(UTC) if name == "at" else found.ToTimedelta()
        assert alike(found, value), name
    assert all(map(alike, of_topic(kafka, topic, form), rows))
    refused = {
        "whole": 2**63,
        "unsigned": -1,
        "fraction": 2**53 + 1,
        "short": 1e300,
        "text": "\ud800",
        "flag": 1,
        "at": AT.replace(tzinfo=None),
        "span": 5,
    }
    check_refused(kafka, form, refused | {"n": True})


def test_topics_of_json_have_odd_values_as_they_were(kafka: KafkaAddress) -> None:
    refused = {*DECIMALS, *BYTES, "span", "infinite", "nan"}
    names = [each for each in KEPT if each not in refused]
    rows = rows_of(names)
    rows[1]["huge"] = rows[0]["huge"] = 10**30 + 1
    topic = topic_with(kafka, rows, "json")
    alone = [json.loads(message.value() or b"") for message in read_topic(kafka.plain, topic)]
    for found in (alone, of_topic(kafka, topic, "json")):
        check(found, names, as_json)
        assert [row["huge"] for row in found] == [10**30 + 1] * ROWS
    check_refused(kafka, "json", {name: KEPT[name] for name in refused} | {"text": "\ud800"})


def test_keys_of_json_are_kept_or_refused(kafka: KafkaAddress) -> None:
    """A key that became null would delete nothing, and be that of others."""
    topic = TopicBuild(kafka.plain).make()
    with pytest.raises(gp.OperatorError, match="JSON has no form for nan"):
        written(gp.kafka_sink(topic, servers=kafka.plain, key="v"), [{"n": 1, "v": math.nan}])
