"""How values become bytes."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import ConfigError
from gearpy.state.encoding.coders import (
    BYTES,
    FLOAT,
    INT,
    JSON,
    MSGPACK,
    STR,
    Coder,
    atoms_of,
    coder_named,
    pack_atom,
)
from gearpy.wire.values.records import register_record


@dataclass
class Trade:
    price: float


register_record(Trade, "tests.state.Trade")


class Reversed:
    name = "reversed"

    def encode(self, value: str) -> bytes:
        return value[::-1].encode()

    def decode(self, data: bytes) -> str:
        return data.decode()[::-1]


@pytest.mark.parametrize(
    ("coder", "value"),
    [
        (MSGPACK, None),
        (MSGPACK, {"a": [1, (2, {3})]}),
        (MSGPACK, Trade(1.5)),
        (INT, -(10**40)),
        (FLOAT, 0.1),
        (STR, "a\udc80"),
        (BYTES, b"\0"),
        (JSON, {"a": [1, None, "é"]}),
    ],
)
def test_a_value_comes_back(coder: Coder, value: Any) -> None:
    back = coder.decode(coder.encode(value))

    assert (back, type(back)) == (value, type(value))


@given(st.integers() | st.floats(allow_nan=False) | st.text() | st.booleans())
def test_atoms_are_packed_as_they_are_encoded(value: Any) -> None:
    """They are kept as objects until they are stored; nobody can tell."""
    assert type(value) in atoms_of(MSGPACK)
    assert pack_atom(value) == MSGPACK.encode(value)


def test_a_float_may_be_given_as_an_int() -> None:
    assert FLOAT.decode(FLOAT.encode(3)) == 3.0
    assert type(FLOAT.decode(FLOAT.encode(3))) is float


@pytest.mark.parametrize(
    ("coder", "value", "fault"),
    [
        (INT, "3", "keeps int only, not '3'"),
        (INT, True, "keeps int only"),
        (FLOAT, "3", "keeps float only"),
        (STR, b"3", "keeps str only"),
        (BYTES, "3", "keeps bytes only"),
        (JSON, {1, 2}, "cannot keep"),
        (MSGPACK, object(), r"gearpy\.register_serializer\(object, "),
    ],
)
def test_a_value_of_another_kind_is_refused(coder: Coder, value: Any, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        coder.encode(value)


def test_coders_have_names() -> None:
    names = ["msgpack", "int", "float", "str", "bytes", "json"]

    assert [coder_named(name) for name in names] == [MSGPACK, INT, FLOAT, STR, BYTES, JSON]
    assert coder_named(INT) is INT


class _Nameless(Reversed):
    name = ""


class _Impostor(Reversed):
    name = "int"


@pytest.mark.parametrize(
    ("coder", "fault"),
    [
        ("pickled", "no coder is named 'pickled': choose one of msgpack, int"),
        (object(), "is no coder: it needs a name, encode and decode"),
        (_Nameless(), "cannot have the name ''"),
        (_Impostor(), "cannot have the name 'int'"),
    ],
)
def test_what_is_no_coder_is_refused(coder: Any, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        coder_named(coder)
