"""The parsers of sources, and odd inputs of their kinds; see `tests.bench.fuzz`."""

import bz2
import gzip
import io
import lzma
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.ipc as pa_ipc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

import gearpy as gp
from gearpy.columns.row_schema import row_schema_of
from gearpy.connectors.database.table_reader import TableQuery
from gearpy.connectors.files.column_times import PLAIN_TIMES
from gearpy.connectors.files.tables import Fit
from gearpy.connectors.kafka.reading.decoding import Reading, RecordDecoder
from gearpy.connectors.kafka.reading.raw import Raw, _joined
from gearpy.connectors.kafka.values import form_of
from gearpy.connectors.streams.live_lines import LineBuffer
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table
from gearpy.task.api.interfaces import Source
from gearpy.windowlog.bodies import SegmentInfo, read_body, write_body
from tests.bench.fuzz import Parser

_READ: Final = 17
_LINES: Final = 40
_FIELDS: Final = ("a", "b", "c")
_SCHEMA: Final = {"a": int, "b": str | None, "c": float | None}
_NESTED: Final = pa.schema(
    [
        ("a", pa.list_(pa.int64())),
        ("b", pa.struct([("x", pa.string()), ("y", pa.list_(pa.struct([("z", pa.int32())])))])),
        ("c", pa.timestamp("us", "UTC")),
    ]
)
_CURES: Final = ("on_bad=", "schema=", "encoding=", "errors=")


# -- odd bytes -------------------------------------------------------------------------------


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with a few changes: flipped, cut, doubled, removed, put in."""
    made = bytearray(data)
    for _ in range(chance.choice((0, 1, 1, 2, 4, 20))):
        at = chance.randrange(len(made) + 1)
        span = chance.choice((1, 1, 2, 4, 8, 64, len(made) // 3 + 1))
        match chance.randrange(6):
            case 0:
                made[at : at + 1] = bytes([chance.randrange(256)])
            case 1 if len(made) > at:
                made[at] ^= 1 << chance.randrange(8)
            case 2:
                del made[at : at + span]
            case 3:
                made[at:at] = made[at : at + span]
            case 4:
                made[at:at] = chance.choice(_ODD_BYTES)
            case 5:
                made[at : at + 4] = chance.randrange(1 << 32).to_bytes(4, "little")
    return bytes(made[: chance.randrange(len(made) + 1)] if chance.random() < 0.1 else made)


_ODD_BYTES: Final = (
    *(b"\x00", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\r", b"\n", b"\r\n"),
    *(b'"', b"'", b",", b"{", b"}", b"[", b"]", b":", b"\\", b"\\ud800", b"\\u0000", b"null"),
    *(
        b"NaN",
        b"-0",
        b"1e999",
        b"9" * 5000,
        b"[" * 3000,
        b'{"a":' * 3000,
        b"\xff" * 9,
        b"\x80" * 40,
    ),
)


def _scalar(chance: random.Random) -> bytes:
    return chance.choice(
        (
            *(b"1", b"0", b"-1", b"null", b"true", b'""', b'"x"', b"1.5", b"1e308", b"1e400"),
            *(b"9" * 19, b"9" * 400, b"1" * 5000, b"NaN", b"-Infinity", b'"\\ud83d"', b"00012"),
            *(b'"\\u0000"', b'"\xff"', b'"2024-02-30"', b'"2024-01-01T00:00:00Z"', b'"null"'),
        )
    )


def _json_value(chance: random.Random, level: int = 0) -> bytes:
    match chance.randrange(8 if level < 4 else 5):
        case 5:
            return b"[" + b",".join(_json_value(chance, level + 1) for _ in range(3)) + b"]"
        case 6:
            return _json_object(chance, level + 1)
        case 7 if chance.random() < 0.05:
            depth = chance.choice((50, 70, 300, 500, 1100, 5000, 100_000))
            begin, end = chance.choice(((b"[", b"]"), (b'{"x":', b"}")))
            return begin * depth + b"1" + end * chance.choice((depth, depth, depth - 1, 0))
        case _:
            return _scalar(chance)


def _json_object(chance: random.Random, level: int = 0) -> bytes:
    names = chance.choices((*_FIELDS, "x", "", "\\u0000", "é"), k=chance.randrange(5))
    blank = chance.choice((b"", b" ", b"\t"))
    pairs = (b'"%s":%s' % (name.encode(), blank + _json_value(chance, level)) for name in names)
    return b"{" + b",".join(pairs) + b"}"


def _json_line(chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.5:
        return b'{"a": %d, "b": "t", "c": 1.5}' % chance.randrange(100)
    if kind < 0.6:
        return chance.choice(
            (b"null", b" null ", b"{}", b"", b"[]", b"\x00", b"null null", b"{}{}")
        )
    line = _json_object(chance) if kind < 0.95 else _json_value(chance)
    return damaged(line, chance) if kind > 0.75 else line


def _csv_line(chance: random.Random) -> bytes:
    cells = (b"1", b"", b'""', b'"x"', b'"a""b"', b'"a\nb"', b'"', b"null", b" ", b"\x00", b"1.5")
    odd = (b"9" * 5000, b"\xff", b"\xc3\xa9", b"2024-02-30", b"-", b"0x1", b"\r", b"'", b"1e400")
    kind = chance.random()
    if kind < 0.7:
        return b'%d,"t",1.5' % chance.randrange(100)
    columns = chance.choice((3, 3, 3, 3, 1, 2, 4, 30))
    line = b",".join(chance.choices((*cells, *odd), k=columns))
    return damaged(line, chance) if kind > 0.85 else line


# -- reading ---------------------------------------------------------------------------------


def _read_source(source: Source[Any], must_name: Sequence[str]) -> None:
    """Read a source to its end, as rows; a refusal has to name its place and a cure."""
    try:
        for partition in source.partitions():
            reader = source.open(partition, None)
            try:
                while not reader.finished:
                    batch = reader.read_batch(_READ)
                    reader.snapshot()
                    if batch is not None:
                        _as_rows(batch)
            finally:
                reader.close()
    except GearpyError as error:
        _check_told(error, must_name)


def _as_rows(batch: Batch) -> None:
    try:
        batch.messages()
    except ValueError as error:  # Such as a date of the year 300,000, which columns can hold.
        if "has what Python has no value for" not in str(error):
            raise


def _check_told(error: GearpyError, must_name: Sequence[str]) -> None:
    text = str(error)
    if not all(name in text for name in must_name):
        raise AssertionError(f"names no place: {text:.200}") from error


def _lines_file(
    name: str, head: bytes, make: Callable[..., Source[Any]], options: Sequence[dict[str, Any]]
) -> Callable[[list[bytes], Path, random.Random], None]:
    def read(lines: list[bytes], folder: Path, chance: random.Random) -> None:
        file, pack = folder / name, chance.choice(_PACKS)
        data = head + b"\n".join(lines) + chance.choice((b"", b"\n", b"\r\n"))
        if pack:
            file = folder / (name + pack)
            data = _PACKERS[pack](data)
            if chance.random() < 0.5:
                data = damaged(data, chance)
        file.write_bytes(data)
        given = {**chance.choice(options), "on_bad": chance.choice(("fail", "skip", "side"))}
        try:
            source = make(file, **given)
            source.schema  # noqa: B018 - it is looked for
        except ConfigError as error:
            _check_told(error, [name])
            return
        _read_source(source, [name])

    return read


_PACKERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    ".gz": partial(gzip.compress, compresslevel=1),
    ".bz2": bz2.compress,
    ".xz": partial(lzma.compress, preset=0),
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}
_PACKS: Final = (*(None,) * 60, *_PACKERS)


def _lines(make: Callable[[random.Random], bytes]) -> Callable[[random.Random], list[bytes]]:
    return lambda chance: [make(chance) for _ in range(_LINES)]


# -- files of columns ------------------------------------------------------------------------


@cache
def _tables() -> list[pa.Table]:
    count = 24
    texts = [chr(65 + at % 50) * (at % 7) + "é" for at in range(count)]
    return [
        pa.table({"a": list(range(count)), "b": texts, "c": [at / 3 for at in range(count)]}),
        pa.table(
            {
                "a": [[at] * (at % 3) for at in range(count)],
                "b": [{"x": str(at), "y": None if at % 2 else [{"z": at}]} for at in range(count)],
                "c": [datetime(2024, 1, 1, at % 24, tzinfo=UTC) for at in range(count)],
            }
        ),
        pa.table(
            {
                "a": pa.array(texts).dictionary_encode(),
                "b": pa.array([Decimal(at) / 8 for at in range(count)], pa.decimal128(20, 3)),
                "c": pa.array([b"\xff" * (at % 4) if at % 5 else None for at in range(count)]),
                "d": pa.array(
                    [[(str(at), at)] for at in range(count)], pa.map_(pa.string(), pa.int16())
                ),
            }
        ),
    ]


@cache
def _parquet_files() -> list[bytes]:
    files = []
    for table in _tables():
        for options in (
            {"compression": "none", "use_dictionary": False},
            {"compression": "snappy", "row_group_size": 8, "write_page_checksum": True},
            {"compression": "zstd", "data_page_version": "2.0", "data_page_size": 200},
        ):
            file = io.BytesIO()
            pq.write_table(table, file, **options)
            files.append(file.getvalue())
    return files


@cache
def _arrow_files() -> list[bytes]:
    files = []
    for table in _tables():
        for make in (pa_ipc.new_file, pa_ipc.new_stream):
            for codec in (None, "lz4"):
                file = io.BytesIO()
                with make(
                    file, table.schema, options=pa_ipc.IpcWriteOptions(compression=codec)
                ) as w:
                    w.write_table(table, max_chunksize=8)
                files.append(file.getvalue())
    return files


@cache
def _log_files() -> list[tuple[str, bytes]]:
    files = []
    for table in _tables():
        for body, name in (("arrow", "x.arrow"), ("parquet", "x.parquet")):
            file = io.BytesIO()
            write_body(file, table, SegmentInfo(app="a"), body=body)  # type: ignore[arg-type]
            files.append((name, file.getvalue()))
    return files


def _one_of(files: Callable[[], list[bytes]]) -> Callable[[random.Random], list[bytes]]:
    return lambda chance: [damaged(chance.choice(files()), chance)]


def _read_log_file(files: list[bytes], _: Path, __: random.Random) -> None:
    for body in ("arrow", "parquet"):
        try:
            table, _info = read_body(io.BytesIO(files[0]), body=body, name="x")
            for batch in table.to_batches():
                _as_rows(Batch(Table(batch), [0] * batch.num_rows))
        except (GearpyError, OSError):
            pass  # `WindowLog.read_file` names the file of both.


# -- records of Kafka ------------------------------------------------------------------------


def _records(
    form: Any, schemas: Sequence[Any] = (None,)
) -> Callable[[list[bytes], Path, random.Random], None]:
    def read(bodies: list[bytes], _: Path, chance: random.Random) -> None:
        given = chance.choice(schemas)
        schema = None if given is None else row_schema_of(given)
        reading = Reading(
            operator="kafka(t)",
            form=form_of("kafka(t)", "value", form),
            key_form=form_of("kafka(t)", "key", "json"),
            schema=schema,
            fit=Fit(None if schema is None else schema.arrow, None, None),
            has_time=False,
            records=chance.random() < 0.2 and schema is None,
            on_bad=chance.choice(("fail", "skip", "side")),
            bound_ms=0,
            starts_ms=MIN_MS,
        )
        reading.begin()
        count = len(bodies)
        raw = Raw(
            bodies=_joined(list(bodies)) if reading.joins else bodies,
            offsets=range(10, 10 + count),
            times=[5] * count,
            keys=[chance.choice((None, b"1", b"\xff")) for _ in range(count)],
            headers=[()] * count,
        )
        try:
            batch = RecordDecoder(reading, "topic", 3).batch(raw)
        except OperatorError as error:
            _check_told(error, ["topic/3, offset ", "on_bad="])
            return
        if batch is not None:
            _as_rows(batch)

    return read


_AVRO: Final = {
    "type": "record",
    "name": "L",
    "fields": [
        {"name": "a", "type": "long"},
        {"name": "b", "type": ["null", "string"]},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9}},
        {"name": "m", "type": {"type": "map", "values": {"type": "array", "items": "double"}}},
        {"name": "next", "type": ["null", "L"]},
    ],
}


def _avro_body(chance: random.Random) -> bytes:
    form = _avro()
    value: Any = None
    for at in range(chance.choice((1, 1, 2, 5))):
        value = {
            "a": at,
            "b": chance.choice((None, "x")),
            "t": datetime(2024, 1, 1, tzinfo=UTC),
            "d": Decimal(5),
            "m": {"k": [1.5]},
            "next": value,
        }
    (body,) = form.encode("t", [value])
    if chance.random() < 0.03:  # Levels without end: a, b, t, d, m are short, and one more follows.
        return b"\x02\x00\x02\x02\x05\x00\x02" * chance.choice((100, 2000, 50_000))
    return damaged(body, chance) if chance.random() < 0.7 else body


@cache
def _avro() -> Any:
    form = gp.avro(schema=_AVRO)
    form.begin("kafka(t)")
    return form


def _struct_body(chance: random.Random) -> bytes:
    struct = Struct()
    struct.update({"a": chance.randrange(99), "b": [1, "x", None, {"c": True}]})
    body = struct.SerializeToString()
    if chance.random() < 0.03:
        for _ in range(chance.choice((50, 99, 101, 3000))):
            body = b"\x0a" + _varint(len(body) + 3) + b"\x12" + _varint(len(body)) + body
    return damaged(body, chance) if chance.random() < 0.7 else body


def _time_body(chance: random.Random) -> bytes:
    seconds = chance.choice((0, 2**31, -(2**40), 2**62, 253402300800))
    body = Timestamp(
        seconds=seconds, nanos=chance.choice((0, 5, -1, 2**31 - 1))
    ).SerializeToString()
    return damaged(body, chance) if chance.random() < 0.5 else body


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _packed_value(chance: random.Random) -> bytes:
    import msgpack  # noqa: PLC0415 - of one parser

    if chance.random() < 0.05:
        return chance.choice((b"\x91", b"\x81\xa1a")) * chance.choice((100, 600, 5000)) + b"\x01"
    body: bytes = msgpack.packb({"a": 1, "b": ["x", None, 1.5, b"\xff"], "c": {"d": 2**63}})
    return damaged(body, chance)


# -- others ----------------------------------------------------------------------------------


def _read_text(lines: list[bytes], folder: Path, chance: random.Random) -> None:
    pack = chance.choice((None, None, *_PACKERS))
    file = folder / f"text.log{pack or ''}"
    data = b"\n".join(lines)
    if pack:
        data = _PACKERS[pack](data)
        if chance.random() < 0.5:
            data = damaged(data, chance)
    file.write_bytes(data)
    options: dict[str, Any] = {
        "encoding": chance.choice(
            ("utf-8", "ascii", "cp1252", "utf-8-sig", "shift_jis", "gb18030")
        ),
        "errors": chance.choice(("strict", "replace", "ignore")),
        "on_bad": chance.choice(("fail", "skip", "side")),
    }
    _read_source(gp.files(file, **options), ["text.log"])


def _read_live(lines: list[bytes], _: Path, chance: random.Random) -> None:
    buffer = LineBuffer(
        chance.choice(("utf-8", "ascii", "cp1252", "shift_jis")),
        chance.choice(("strict", "replace", "ignore")),
        line_chars_max=chance.choice((1000, 1 << 26)),
    )
    data = b"\n".join(lines)
    try:
        while data:
            size = chance.choice((1, 7, 100, 65536))
            buffer.feed(data[:size])
            data = data[size:]
        buffer.end()
    except GearpyError as error:
        _check_told(error, ["line "])


# -- rows of PostgreSQL ----------------------------------------------------------------------

#: Types, and values as the server writes them for `copy to`, odd ones among them.
_CELLS: Final[dict[str, tuple[tuple[Any, ...], tuple[str, ...]]]] = {
    "int2": (("int2", -1), ("0", "-32768", "32767", "")),
    "int8": (("int8", -1), ("9223372036854775807", "-9223372036854775808", "")),
    "money": (("numeric", (12 << 16 | 2) + 4), ("1.50", "-9999999999.99", "NaN", "")),
    "any": (
        ("numeric", -1),
        ("1", "NaN", "Infinity", "-Infinity", "0." + "3" * 40, "1" + "0" * 131071, "1e5", ""),
    ),
    "real": (("float4", -1), ("1e-45", "3.4028235e+38", "NaN", "-Infinity", "-0", "")),
    "float": (("float8", -1), ("5e-324", "1.7976931348623157e+308", "NaN", "Infinity", "")),
    "text": (
        ("text", -1),
        ('"a,b"', '"a""b"', '"a\nb\r\nc"', '""', "\u00e9\U0001f600", "x" * 3000, "\\N", ""),
    ),
    "json": (("jsonb", -1), ('"{""a"": ""\\\\u0000""}"', "null", "[" * 400 + "]" * 400, '""', "")),
    "bytes": (("bytea", -1), ("\\x", "\\x00ff", "\\x" + "ab" * 2000, "")),
    "day": (
        ("date", -1),
        ("2024-02-29", "0044-03-15 BC", "infinity", "-infinity", "5874897-12-31", "0001-01-01", ""),
    ),
    "at": (
        ("timestamp", -1),
        (
            *("2024-01-01 00:00:00", "2024-01-01 00:00:00.123456", "infinity"),
            *("294276-12-31 23:59:59.999999", "4714-11-24 00:00:00 BC", "10000-01-01 00:00:00", ""),
        ),
    ),
    "zoned": (
        ("timestamptz", -1),
        ("2024-01-01 00:00:00+00", "0044-03-15 00:00:00+00 BC", "-infinity", "2024-01-01 01:00+00"),
    ),
    "flag": (("bool", -1), ("t", "f", "")),
}


def _table_row(chance: random.Random) -> bytes:
    plain = chance.choice((1, 1, 1, 1, 1, 1, 0.95, 0.9, 0.5))
    cells = [
        values[0] if chance.random() < plain else chance.choice(values)
        for _, values in _CELLS.values()
    ]
    if chance.random() < 0.001:
        cells[list(_CELLS).index("text")] = "y" * (1 << 20)
    return ",".join(cells).encode()


@cache
def _table_reader() -> Any:
    from gearpy.connectors.postgres import columns, source  # noqa: PLC0415 - of one parser

    class Copied(source.PostgresReader):
        data = b""

        def newest(self) -> list[Any]:
            return [None]  # No row has it: the end is where there is nothing more.

        def rows_between(self, at: Any, end: Any, limit: int) -> list[Any]:
            data, self.data = self.data, b""
            return self._parsed(data) if data else []

    found = [columns._column(("id", "int8", -1, True, False))]  # noqa: SLF001
    for name, (kind, _) in _CELLS.items():
        found.append(columns._column((name, *kind, False, False)))  # noqa: SLF001

    def reader(data: bytes, time: str | None, on_bad: Any) -> Any:
        query = TableQuery(
            table="t", by=("id",), columns=None, time=time, form=PLAIN_TIMES, follows=False,
            interval_ms=1, bound_ms=0, on_bad=on_bad,
        )  # fmt: skip
        address: Any = None  # It does not connect.
        made = Copied("postgres(t)", address, query, columns=found, span=(None, None), resume=None)
        made.data = data
        return made

    return reader


def _read_table(rows: list[bytes], _: Path, chance: random.Random) -> None:
    data = b"".join(b"%d,%s\n" % pair for pair in enumerate(rows))
    on_bad = chance.choice(("fail", "skip", "side"))
    reader = _table_reader()(data, chance.choice((None, None, "at")), on_bad)
    seen: list[int] = []
    try:
        while not reader.finished:
            batch = reader.read_batch(_READ)
            seen += [] if batch is None else [message.value["id"] for message in batch.messages()]
            seen += [int(bad.record.partition(",")[0]) for bad in reader.take_bad()]
    except OperatorError as error:
        _check_told(error, ["t, row id=", "column '", "on_bad="])
        return
    if on_bad == "side" and seen != list(range(len(rows))):
        raise AssertionError(f"rows are lost or moved: {seen}")
    if len(seen) + (on_bad == "skip") * reader.skipped_records != len(rows):
        raise AssertionError("rows are lost")


# -- services --------------------------------------------------------------------------------


def _services() -> Any:
    from tests.bench import fuzz_services  # noqa: PLC0415 - takes a second to load

    return fuzz_services


def _requests(chance: random.Random) -> list[bytes]:
    return [_services().request(chance, damaged) for _ in range(_LINES)]


PARSERS: Final[dict[str, Parser]] = {
    "jsonl": Parser(
        _LINES,
        _lines(_json_line),
        _lines_file(
            "rows.jsonl",
            b"",
            gp.jsonl,
            ({}, {"rows": True}, {"schema": _SCHEMA}, {"schema": _NESTED}, {"schema": {"b": str}}),
        ),
    ),
    "csv": Parser(
        _LINES,
        _lines(_csv_line),
        _lines_file(
            "rows.csv",
            b"a,b,c\n",
            gp.csv,
            (
                *({}, {"rows": True}, {"schema": _SCHEMA}, {"multiline": True}),
                *({"rows": True, "multiline": True}, {"schema": _SCHEMA, "multiline": True}),
                {"encoding": "cp1252"},
                {"schema": {"a": datetime, "b": str, "c": pa.decimal128(20, 3)}},
            ),
        ),
    ),
    "parquet": Parser(
        1,
        _one_of(_parquet_files),
        _lines_file("x.parquet", b"", gp.parquet, ({}, {"columns": ["a"]})),
    ),
    "arrow": Parser(1, _one_of(_arrow_files), _lines_file("x.arrow", b"", gp.arrow, ({},))),
    "window_log": Parser(
        1, lambda chance: [damaged(chance.choice(_log_files())[1], chance)], _read_log_file
    ),
    "files": Parser(_LINES, _lines(_csv_line), _read_text),
    "live_lines": Parser(_LINES, _lines(_csv_line), _read_live),
    "kafka_json": Parser(
        _LINES, _lines(_json_line), _records("json", (None, _SCHEMA, _NESTED, {"b": str}))
    ),
    "kafka_msgpack": Parser(_LINES, _lines(_packed_value), _records("msgpack")),
    "kafka_avro": Parser(_LINES, _lines(_avro_body), _records(_avro(), (None, {"a": int}))),
    "kafka_protobuf": Parser(_LINES, _lines(_struct_body), _records(gp.protobuf(Struct))),
    "services": Parser(
        _LINES,
        _requests,
        lambda requests, folder, chance: _services().read(requests, folder, chance),
    ),
    "postgres": Parser(_LINES, _lines(_table_row), _read_table),
    "kafka_protobuf_time": Parser(_LINES, _lines(_time_body), _records(gp.protobuf(Timestamp))),
}
