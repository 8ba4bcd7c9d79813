"""Tables on the wire, see `gearpy.wire.values.arrow_payload`."""

import struct
from contextlib import suppress
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import ConfigError, ProtocolError
from gearpy.ids import MAX_MS, MIN_MS, SessionId, TaskId
from gearpy.messages.data import Batch, DataMessage, EncodedBatch
from gearpy.messages.table import Table, Times
from gearpy.wire.connection.frames import FrameDecoder, FrameLimits
from gearpy.wire.link_codec import LinkCodec
from gearpy.wire.values.payload import decode_batch, encode_batch, holds_table

KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.string(), st.text(max_size=5)),
    (pa.bool_(), st.booleans()),
    (pa.binary(), st.binary(max_size=5)),
    (pa.list_(pa.int8()), st.lists(st.integers(-5, 5), max_size=3)),
    (pa.struct({"x": pa.int32()}), st.fixed_dictionaries({"x": st.integers(0, 9)})),
    (pa.map_(pa.string(), pa.int64()), st.dictionaries(st.text(max_size=2), st.integers(0, 9))),
    (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "b"])),
    (pa.string_view(), st.text(max_size=20)),
    (pa.null(), st.none()),
]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Draw a part of a table of some columns; two may have one name."""
    count = draw(st.integers(1, 8))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    lists = [
        pa.array(draw(st.lists(st.none() | of, min_size=count, max_size=count)), kind)
        for kind, of in kinds
    ]
    names = draw(
        st.lists(st.sampled_from(["", "a", "b"]), min_size=len(kinds), max_size=len(kinds))
    )
    start = draw(st.integers(0, count - 1))
    return Table(pa.RecordBatch.from_arrays(lists, names=names))[start:]


def body_of(table: Table, times: Times | None = None, lead: int = 0) -> bytes:
    """Return the body of a batch; times are the rows' places if none are given."""
    times = times or Times.of(range(len(table)))
    return b"".join(encode_batch(table, times, lead=lead))


def a_message(batch: Batch) -> DataMessage:
    return DataMessage(SessionId(1), TaskId(0, 0), TaskId(1, 0), 1, batch)


@given(tables(), st.data(), st.integers(0, 20))
def test_table_arrives_as_it_was(table: Table, data: st.DataObject, lead: int) -> None:
    """Every type, every part; names, types and times included."""
    size = len(table)
    times = Times.of(data.draw(st.lists(st.integers(MIN_MS, MAX_MS), min_size=size, max_size=size)))
    body = body_of(table, times, lead)

    batch = decode_batch(body, size)

    assert type(batch.values) is Table
    assert batch.values.batch.schema.equals(table.batch.schema, check_metadata=True)
    assert batch.values == table
    assert batch.timestamps == times
    assert holds_table(body)


@pytest.mark.parametrize("is_late", [False, True])
def test_schema_has_its_own_metadata(*, is_late: bool) -> None:
    """Also if another one, which is equal but for that, was sent before."""
    times = Times(pa.array([5]), pa.array([7])) if is_late else Times.of([5])
    for value in (b"1", b"2"):
        field = pa.field("a", pa.int64(), metadata={b"unit": value})
        schema = pa.schema([field], {b"made by": value})
        table = Table(pa.record_batch([pa.array([1])], schema=schema))
        found = decode_batch(body_of(table, times), 1).values

        assert type(found) is Table
        assert found.batch.schema.equals(schema, check_metadata=True)


def test_rows_without_columns_arrive() -> None:
    empty = pa.RecordBatch.from_struct_array(pa.array([{}] * 3, pa.struct([])))

    batch = decode_batch(body_of(Table(empty)), 3)

    assert list(batch.values) == [{}, {}, {}]


def test_times_that_are_none_are_refused() -> None:
    with pytest.raises(ConfigError, match="must be int64 milliseconds"):
        encode_batch(Table(pa.record_batch({"n": [1]})), [2**63])


@pytest.mark.parametrize("places", [0, 8, 16])
def test_columns_are_used_where_they_were_received(places: int) -> None:
    """Behind so many other bytes they begin at a multiple of 8, so that nothing is copied."""
    lead = 77
    body = body_of(Table(pa.record_batch({"n": list(range(9))})), lead=lead)
    received = memoryview(bytes(lead + places) + body)
    view = received[lead + places :]

    batch = decode_batch(view, 9)

    assert type(batch.values) is Table
    column = batch.values.batch.column(0).buffers()[1]
    whole = pa.py_buffer(received)
    assert whole.address <= column.address < whole.address + whole.size
    assert column.address % 8 == 0


def test_table_crosses_a_connection() -> None:
    table = Table(pa.record_batch({"n": list(range(1000)), "s": ["x"] * 1000}))
    message = a_message(Batch(table, Times.of(range(1000))))
    codec = LinkCodec()

    wire = b"".join(codec.encode(message))
    frames = []
    decoder = FrameDecoder(FrameLimits())
    for at in range(0, len(wire), 999):
        frames += decoder.feed(wire[at : at + 999])
    (frame,) = frames
    arrived = codec.decode(frame)

    assert isinstance(arrived, DataMessage)
    assert isinstance(arrived.batch, EncodedBatch)
    assert arrived.counted == message.counted == 16
    assert len(arrived.batch) == 1000
    batch = codec.decode_batch(arrived.batch)
    assert batch == message.batch
    assert arrived.counted == 16
    assert type(batch.values) is Table
    buffer = batch.values.batch.column(0).buffers()[1]
    assert pa.py_buffer(frame.body).address < buffer.address  # No copy was made.
    assert b"".join(codec.encode(arrived)) == wire


def test_other_number_of_rows_is_refused() -> None:
    """Counts would differ."""
    body = body_of(Table(pa.record_batch({"n": [1, 2]})))

    with pytest.raises(ProtocolError, match=r"a table of 2 rows .* came for 3 rows"):
        decode_batch(body, 3)


def stream_body(*batches: pa.RecordBatch, tail: bytes = b"") -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    inside = b"\x03\x00" + sink.getvalue().to_pybytes() + tail
    whole: bytes = len(inside).to_bytes(4, "little") + inside
    return whole


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (stream_body(pa.record_batch({"n": [1.5]})), "with double event times"),
        (stream_body(pa.record_batch({"n": pa.array([None], "int64")})), "1 of them missing"),
        (stream_body(pa.record_batch({"n": [1]}), pa.record_batch({"n": [1]})), "more than one"),
        (stream_body(pa.record_batch({"n": [1]}), tail=b"more"), "more than one"),
        (stream_body(pa.record_batch({"n": [1]})) + b"x", "a table of .* bytes in a body of"),
        (b"\x01\x00\x00\x00\x03", "malformed"),
        (b"\x02\x00\x00\x00\x03\x09", "malformed"),
        (b"\x06\x00\x00\x00\x03\x00" + b"\xff" * 4, "malformed"),
        (stream_body(pa.record_batch({"n": [1]}))[:60], "."),
    ],
)
def test_nonsense_is_a_protocol_error(body: bytes, text: str) -> None:
    with pytest.raises(ProtocolError, match=text):
        decode_batch(body, 1)


def test_stream_without_a_batch_is_a_protocol_error() -> None:
    """Reading on would end the loop of whoever reads."""
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, pa.schema([])).close()
    inside = b"\x03\x00" + sink.getvalue().to_pybytes()

    with pytest.raises(ProtocolError, match="malformed table of 1 rows"):
        decode_batch(len(inside).to_bytes(4, "little") + inside, 1)


def test_text_that_points_outside_of_the_body_is_refused() -> None:
    """Arrow trusts the places that a column gives, and would read foreign memory."""
    body = body_of(Table(pa.record_batch({"s": ["abc", "de"]})))
    places = struct.pack("<3i", 0, 3, 5)
    assert body.count(places) == 1

    with pytest.raises(ProtocolError, match="malformed table of 2 rows"):
        decode_batch(body.replace(places, struct.pack("<3i", 0, 9_000_000, 5)), 2)


@given(tables(), st.data())
def test_damaged_table_is_a_protocol_error_or_harmless(table: Table, data: st.DataObject) -> None:
    """Nothing else is raised, and what comes can be looked at."""
    body = bytearray(body_of(table))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))

    with suppress(ProtocolError):
        batch = decode_batch(bytes(body), len(table))
        assert len(batch) == len(list(batch.timestamps)) == len(table)
        assert type(batch.values) is Table
        str(batch.values.batch)
