"""Whole batches, see `gearpy.wire.values.payload`."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gearpy.errors import ConfigError, ProtocolError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.late_time import LateTime, late_time
from gearpy.messages.table import Table, Times
from gearpy.wire.values.extensions import EncoderPool
from gearpy.wire.values.payload import (
    COLUMN_DEPTH_MAX,
    decode_batch,
    decode_value,
    encode_batch,
    encode_value,
)
from gearpy.wire.values.records import SEALED, RecordRegistry


@dataclass(slots=True)
class Trade:
    symbol: str
    price: float
    tags: Any


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Tick:
    """A registered record without fields."""


REGISTRY = RecordRegistry()
ENCODERS = EncoderPool(REGISTRY)
for _cls in (Trade, Pair, Tick):
    REGISTRY.register(_cls)

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.builds(Trade, st.text(max_size=3), st.floats(allow_nan=False), inner),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=8,
)
TIMES = st.one_of(
    st.integers(MIN_MS, MAX_MS),
    st.integers(0, 300),
    st.integers(1_700_000_000_000, 1_700_000_100_000),
)
HOMOGENEOUS = st.one_of(
    st.lists(st.tuples(st.text(), st.integers())),
    st.lists(st.builds(Trade, st.text(), st.floats(allow_nan=False), VALUES)),
    st.lists(st.builds(Pair, st.tuples(VALUES, VALUES), st.booleans())),
    st.lists(st.builds(Tick)),
    st.lists(st.just(())),
)
BATCHES = st.one_of(st.lists(VALUES), HOMOGENEOUS)


def body_of(values: list[Any], timestamps: list[int] | None = None) -> bytes:
    return b"".join(encode_batch(values, timestamps or [0] * len(values), ENCODERS))


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return (type(value), {key: shape(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return (type(value), [shape(item) for item in value])
    if isinstance(value, Trade):
        return (Trade, value.symbol, value.price, shape(value.tags))
    return (type(value), value)


@given(st.data(), BATCHES)
def test_a_batch_arrives_as_it_was_sent(data: st.DataObject, values: list[Any]) -> None:
    """The invariant: decoding undoes encoding, types and times kept exactly."""
    times = data.draw(st.lists(TIMES, min_size=len(values), max_size=len(values)))

    batch = decode_batch(body_of(values, times), len(values), REGISTRY)

    assert shape(batch.values) == shape(values)
    assert batch.timestamps == times


@given(st.lists(TIMES, min_size=1))
@example([MIN_MS, MAX_MS])
@example([5, 5, 5])
@example([MAX_MS - 1, MAX_MS])
def test_timestamps_arrive_whatever_their_span(times: list[int]) -> None:
    assert decode_batch(body_of([None] * len(times), times), len(times)).timestamps == times


@pytest.mark.parametrize("many", [1, 7, 8, 100])
@pytest.mark.parametrize("same", [1, True, None, "text", "", 1 << 80, 0.0, b"x", (1,), ("a", 2)])
@pytest.mark.parametrize("last", [..., 1.0, True, -0.0, (True,), "other"])
def test_columns_of_equal_values_arrive_as_they_were_sent(many: int, same: Any, last: Any) -> None:
    values = [Pair(at % 3, same) for at in range(many)]
    alone = [Pair(same, (same, same)) for _ in range(many)]
    for each in (values, alone):
        if last is not ...:
            each.insert(len(each) // 2, Pair(0, last))

        arrived = decode_batch(body_of(each), len(each), REGISTRY).values

        assert repr(arrived) == repr(each)


def test_column_of_one_value_is_stored_once() -> None:
    few, many = (len(body_of([Pair(at, "the same text") for at in range(n)])) for n in (10, 110))

    assert many - few == 100 + 2  # A list of more than 15 has a longer head.


def test_columns_of_one_value_cannot_claim_more_records_than_there_are() -> None:
    """Another column bounds the count: a few bytes must not become gigabytes."""
    column = b"\x04\xc0"
    columns = 2 * (len(column).to_bytes(4, "little") + column)
    values = b"\x01" + (2).to_bytes(4, "little") + columns
    bomb = len(values).to_bytes(4, "little") + values + bytes(9)

    with pytest.raises(ProtocolError, match="no column has the 4294967295 values of its own"):
        decode_batch(bomb, 2**32 - 1)
    with pytest.raises(ProtocolError, match="unknown column kind 4"):
        decode_batch(len(column).to_bytes(4, "little") + column + bytes(9), 2**32 - 1)


@given(st.binary(), st.integers(0, 2**32 - 1))
@example(b"\x01\x00\x00\x00\x00", 1)
@example(b"\x09\x00\x00\x00\x01\x00\x00\x00\x00" + bytes(9), 2**32 - 1)
def test_random_bytes_raise_nothing_but_protocol_errors(body: bytes, count: int) -> None:
    with suppress(ProtocolError):
        decode_batch(body, count, REGISTRY)


@given(st.data(), BATCHES.filter(bool))
def test_damaged_bytes_raise_nothing_but_protocol_errors(
    data: st.DataObject, values: list[Any]
) -> None:
    body = bytearray(body_of(values))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(body)))
    count = data.draw(st.sampled_from([len(values), len(values) + 1, 2**32 - 1]))

    for damaged in (body, body[:cut], body + b"\x00"):
        with suppress(ProtocolError):
            decode_batch(bytes(damaged), count, REGISTRY)


@pytest.mark.parametrize("count", [0, 2, 4])
def test_another_number_of_records_is_refused(count: int) -> None:
    """Flow control counts what the frame says; the body must agree."""
    with pytest.raises(ProtocolError):
        decode_batch(body_of([1, 2, 3], [1, 2, 3]), count)


def test_a_constant_timestamp_cannot_claim_more_records_than_there_are() -> None:
    """Values bound the count: a few bytes must not become gigabytes."""
    with pytest.raises(ProtocolError, match="does not hold 4294967295 values"):
        decode_batch(body_of([None]), 2**32 - 1)


def test_columns_deeper_than_the_limit_are_stored_one_by_one_and_refused_when_received() -> None:
    deep: Any = 1
    for _ in range(COLUMN_DEPTH_MAX + 3):
        deep = (deep,)
    column = b"\x00\x91\x01"
    for _ in range(COLUMN_DEPTH_MAX + 1):
        column = b"\x01\x01\x00\x00\x00" + len(column).to_bytes(4, "little") + column
    bomb = len(column).to_bytes(4, "little") + column + bytes(9)

    assert decode_batch(body_of([deep]), 1).values == [deep]
    with pytest.raises(ProtocolError, match="columns nested deeper than 8"):
        decode_batch(bomb, 1)


@pytest.mark.parametrize(
    "times", [b"\x00" + bytes(9), b"\x04" + bytes(8), b"\x08" + bytes(15), b""]
)
def test_timestamps_of_another_size_are_refused(times: bytes) -> None:
    values = body_of([0, 0])[:-9]

    with pytest.raises(ProtocolError, match=r"malformed batch|bytes of timestamps"):
        decode_batch(values + times, 2)


@given(HOMOGENEOUS.filter(bool), st.lists(VALUES))
def test_one_that_differs_ends_the_columns(values: list[Any], others: list[Any]) -> None:
    mixed = [*values, *others, *values]

    assert shape(decode_batch(body_of(mixed), len(mixed), REGISTRY).values) == shape(mixed)


@pytest.mark.parametrize("times", [[2**63], [0, 2**63], ["now"], [1.5, 2.5]])
def test_a_timestamp_that_is_no_int64_is_the_senders_mistake(times: list[Any]) -> None:
    with pytest.raises(ConfigError, match="int64 milliseconds"):
        body_of([None] * len(times), times)


def test_a_record_that_lacks_a_field_is_named() -> None:
    broken = object.__new__(Trade)

    with pytest.raises(ConfigError, match="Trade: it lacks a field"):
        body_of([broken])


def test_an_unregistered_class_in_a_batch_is_named() -> None:
    """Other processes would not find it; the error tells what to do."""

    @dataclass
    class Stranger:
        name: str

    with pytest.raises(
        ConfigError, match=r"Stranger: .*at the top of its module.*gearpy\.register_serializer"
    ):
        body_of([Stranger("a")])


@given(VALUES)
def test_a_single_value_arrives_as_it_was_sent(value: Any) -> None:
    assert shape(decode_value(encode_value(value, REGISTRY), REGISTRY)) == shape(value)


@given(st.binary())
def test_a_malformed_value_is_a_protocol_error(body: bytes) -> None:
    with suppress(ProtocolError):
        decode_value(body, REGISTRY)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_what_was_promised_before_late_records_arrives(times: list[tuple[int, int]]) -> None:
    """Beside the times; a batch says whether there may be any."""
    sent = [late_time(time_ms, promised_ms) for time_ms, promised_ms in times]
    values = list(range(len(sent)))

    batch = decode_batch(b"".join(encode_batch(values, sent)), len(sent))

    assert batch.timestamps == sent
    assert list(map(type, batch.timestamps)) == list(map(type, sent))
    assert [at.promised_ms for at in batch.timestamps if type(at) is LateTime] == [
        promised for time, promised in times if time < promised
    ]
    assert batch.has_late is any(time < promised for time, promised in times)


def test_what_was_promised_arrives_with_a_table() -> None:
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415 - for this test alone

    table = Table(pa.record_batch({"n": [1, 2, 3]}))
    sent = Times.of([7, late_time(2, 7), 9])

    batch = decode_batch(b"".join(encode_batch(table, sent)), 3)

    assert list(batch.values) == list(table)
    assert [type(time) for time in batch.timestamps] == [int, LateTime, int]
    assert (batch.timestamps[1], batch.has_late) == (2, True)


def test_late_time_among_values_is_a_number() -> None:
    assert type(decode_value(encode_value(late_time(3, 5)))) is int


@given(VALUES)
def test_who_only_passes_values_on_needs_no_class(value: Any) -> None:
    passed = encode_value(decode_value(encode_value(value, REGISTRY), SEALED), SEALED)

    assert decode_value(passed, REGISTRY) == value


def test_sealed_records_are_keys_and_members_too() -> None:
    value = {Pair(1, 2): {Pair(3, 4)}, "other": frozenset({Pair(5, (6,))})}

    passed = encode_value(decode_value(encode_value(value, REGISTRY), SEALED), SEALED)

    assert decode_value(passed, REGISTRY) == value
