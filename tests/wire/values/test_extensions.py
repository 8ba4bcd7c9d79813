"""Single values of every kind, see `gearpy.wire.values.extensions`."""

import datetime as dt
import sys
import threading
import zoneinfo
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gearpy.errors import CannotTravel, ConfigError, ProtocolError
from gearpy.wire.values.extensions import (
    MALFORMED,
    NESTING_MAX,
    EncoderPool,
    ValueDecoder,
    ValueEncoder,
    located,
)
from gearpy.wire.values.records import RecordRegistry


@dataclass
class Leaf:
    value: Any


class Box:
    def __init__(self, content: Any) -> None:
        self.content = content


def a_registry() -> RecordRegistry:
    registry = RecordRegistry()
    registry.register(Leaf)
    return registry


def over_the_wire(value: Any) -> Any:
    registry = a_registry()
    return ValueDecoder(registry).unpack(ValueEncoder(registry).pack(value))


def typed(value: Any) -> Any:
    """Return a value with its type and those of all its parts, to compare exactly."""
    if isinstance(value, dict):
        parts: Any = [(typed(k), typed(v)) for k, v in value.items()]
    elif isinstance(value, list | tuple):
        parts = [typed(item) for item in value]
    elif isinstance(value, set | frozenset):
        parts = sorted(repr(typed(item)) for item in value)
    elif isinstance(value, Leaf):
        parts = typed(value.value)
    else:
        parts = repr(value)
    return (type(value).__qualname__, parts)


ZONES = st.sampled_from(
    [
        None,
        dt.UTC,
        dt.timezone(dt.timedelta(hours=-3, minutes=-30)),
        zoneinfo.ZoneInfo("UTC"),
        zoneinfo.ZoneInfo("Europe/Zurich"),
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(2**70), max_value=2**70),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.text(st.characters()),
    st.binary(),
    st.decimals(allow_nan=False),
    st.uuids(),
    st.dates(),
    st.timedeltas(),
    st.datetimes(timezones=ZONES),
    st.times(timezones=ZONES),
    st.fractions(),
    st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 9)),
    st.text(st.characters(exclude_characters="\0")).map(Path),
    st.text(st.characters(exclude_characters="\0")).map(PurePosixPath),
    st.text(st.characters(exclude_characters="\0")).map(PureWindowsPath),
)
KEYS = st.one_of(SCALARS, st.tuples(SCALARS, SCALARS), st.frozensets(SCALARS, max_size=3))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(KEYS, inner, max_size=3),
        st.sets(KEYS, max_size=3),
        st.frozensets(KEYS, max_size=3),
        st.builds(Leaf, inner),
    ),
    max_leaves=12,
)


@given(VALUES)
@example(dt.datetime(2024, 10, 27, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Zurich"), fold=1))
@example(-(2**63) - 1)
@example(2**64)
@example([True, 1, 1.0, "1", b"1"])
@example("lone surrogate \udc80")
@example({("a", 1): {frozenset({1}): ()}})
@example(deque([1, 2], maxlen=3))
@example(OrderedDict(b=1, a=2))
@example(Counter("abca"))
@example([Fraction(1, 3), range(2, 9, 3)])
@example(Decimal("1.50"))
def test_a_value_arrives_as_it_was_sent_with_its_exact_type(value: Any) -> None:
    """The invariant: decoding undoes encoding, down to the type of every part."""
    assert typed(over_the_wire(value)) == typed(value)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (object(), "no plain data"),
        (threading.Lock(), "no plain data"),
        (type("Count", (int,), {})(5), "a kind of int"),
        (type("Local", (), {})(), "at the top of its module"),
        (int, "no plain data"),
        (over_the_wire, "no plain data"),
        (ValueError("no"), "no plain data"),
        (defaultdict(list), "no plain data"),
        (np.array([object()]), "type object"),
        (np.ma.masked_array([1], [True]), "numpy.asarray"),
    ],
)
def test_what_cannot_travel_is_named_with_the_remedy(value: Any, why: str) -> None:
    with pytest.raises(CannotTravel, match=f"cannot be sent to another process or stored: .*{why}"):
        over_the_wire({"deep": [value]})


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (object(), "a record"),
        ({"a": [1, object()]}, "record['a'][1]"),
        ((1, Leaf(object())), "record[1].value"),
        ({object(): 1}, "record, in the key <object "),
        ({(1, object())}, "record, in the member (1, <object "),
        ([Box({"x": (object(),)})], "record[0].content['x'][0]"),
    ],
)
def test_the_place_of_what_cannot_travel_is_told(value: Any, where: str) -> None:
    """A record may be large; one would have to search it."""
    found = located(CannotTravel("it is odd"), value, a_registry(), "a record")

    assert found.where.startswith(where)
    assert found.reason == "it is odd" or "register_serializer(object, " in found.reason


def test_what_is_part_of_itself_is_refused_with_a_short_place() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(CannotTravel, match="nested too deep, or is part of itself") as refused:
        ValueEncoder(a_registry()).pack(value)

    found = located(refused.value, value, a_registry(), "a record")

    assert found.where == "record" + "[0]" * 16 + "..."


def test_an_exotic_time_zone_is_named_with_the_remedy() -> None:
    """Turning it into a fixed offset would change what the value means."""

    class Nowhere(dt.tzinfo):
        def utcoffset(self, _: dt.datetime | None) -> dt.timedelta:
            return dt.timedelta(0)

        dst = utcoffset

        def tzname(self, _: dt.datetime | None) -> str:
            return "nowhere"

    with pytest.raises(ConfigError, match=r"time zone .*Nowhere.*use datetime.timezone"):
        over_the_wire(dt.datetime(2024, 1, 1, tzinfo=Nowhere()))


def test_bytearrays_arrive_as_bytes() -> None:
    assert over_the_wire(bytearray(b"ab")) == b"ab"


def test_numpy_scalars_arrive_as_numpy_scalars() -> None:
    values = [np.float32(1.5), np.int64(-3), np.bool_(1), np.datetime64("2024-01-02", "ms")]

    arrived = over_the_wire(values)

    assert [(type(v), v) for v in arrived] == [(type(v), v) for v in values]


def test_a_numpy_value_where_there_is_no_numpy_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    data = msgpack.packb(msgpack.ExtType(12, b"\x03<i8" + bytes(8)))

    with pytest.raises(ProtocolError, match="pip install numpy"):
        ValueDecoder(a_registry()).unpack(data)


def test_nesting_is_limited_both_ways() -> None:
    deep: Any = ()
    for _ in range(NESTING_MAX):
        deep = (deep,)
    bomb = msgpack.packb([])
    for _ in range(NESTING_MAX):
        bomb = msgpack.packb(msgpack.ExtType(1, b"\x91" + bomb))

    with pytest.raises(ConfigError, match="nested deeper than 64"):
        over_the_wire(deep)
    with pytest.raises(ProtocolError, match="nested deeper than 64"):
        ValueDecoder(a_registry()).unpack(bomb)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)

    with pytest.raises(ConfigError, match="recursion limit"):
        over_the_wire(loop)


@pytest.mark.parametrize(
    ("code", "data"),
    [
        (1, b"\x01"),  # A tuple that is no list.
        (4, b"\xe8\x07\x0d\x01\x00\x00\x00\x00\x00\x00\x00\x00"),  # Month 13.
        (4, b"\xe8\x07\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00zEurope"),  # A folder.
        (4, b"\xe8\x07\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00z../../etc/passwd"),
        (5, b"\x00"),
        (8, b"many"),
        (9, b"short"),
        (11, b"\x93\xa4Leaf\x00\x91\x01"),  # Wrong fingerprint.
        (12, b"\x03|O8" + bytes(8)),  # A numpy object pointer.
        (12, b""),
        (14, b"\x93\xa2|O\x91\x01\xc4\x08" + bytes(8)),  # An array of pointers.
        (14, b"\x93\xa3<i8\x91\x02\xc4\x08" + bytes(8)),  # Two numbers in eight bytes.
        (14, b"\x93\xa3<i8\x91\xff\xc4\x00"),  # A size below zero.
        (15, b"\x92\xa4what\x01"),
        (15, b"\x92\xa8fraction\x92\x01\x00"),
        (99, b""),
    ],
)
def test_a_malformed_extension_raises_a_known_error(code: int, data: bytes) -> None:
    with pytest.raises((ProtocolError, *MALFORMED)):
        ValueDecoder(a_registry()).unpack(msgpack.packb(msgpack.ExtType(code, data)))


@given(st.lists(st.integers(0, 5), max_size=30))
def test_a_pool_packs_as_a_new_encoder_does(picks: list[int]) -> None:
    pool = EncoderPool(a_registry())
    values = [1, ("a", {2}), [Leaf((Leaf(1),))], "\udcff", (1, (2, object())), b"x" * 100_000]
    for value in map(values.__getitem__, picks):
        if type(value) is tuple and value[0] == 1:
            with pytest.raises(CannotTravel, match="cannot be sent"):
                pool.pack(value)
        else:
            assert pool.pack(value) == ValueEncoder(a_registry()).pack(value)
