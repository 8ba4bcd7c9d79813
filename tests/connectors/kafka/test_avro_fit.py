"""The quick test of whether a value fits an Avro schema, against the slow one of fastavro."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from fastavro import parse_schema
from fastavro.validation import validate
from fastavro.write import LOGICAL_WRITERS
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.kafka.avro_fit import Fit, fit_of

INNER = {"type": "record", "name": "of.Inner", "fields": [{"name": "a", "type": "int"}]}
SCHEMAS: dict[str, Any] = {
    "null": "null",
    "boolean": "boolean",
    "int": "int",
    "long": {"type": "long"},
    "float": "float",
    "double": "double",
    "text": "string",
    "bytes": "bytes",
    "fixed": {"type": "fixed", "name": "Four", "size": 4},
    "enum": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]},
    "array": {"type": "array", "items": "int"},
    "map": {"type": "map", "values": ["null", "long"]},
    "union": ["null", "int", "string", INNER],
    "record": {
        "type": "record",
        "name": "Node",
        "fields": [
            {"name": "a", "type": "int", "default": 1},
            {"name": "next", "type": ["null", "Node"]},
            {"name": "inner", "type": ["null", INNER], "default": None},
            {"name": "inners", "type": {"type": "array", "items": "of.Inner"}, "default": []},
        ],
    },
    "time": {"type": "long", "logicalType": "timestamp-millis"},
    "day": {"type": "int", "logicalType": "date"},
    "price": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
    "uuid": {"type": "string", "logicalType": "uuid"},
    "unknown": {"type": "string", "logicalType": "of-somebody"},
}
EDGES = st.sampled_from([-(2**31) - 1, -(2**31), 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1])
NAMES = st.sampled_from(["a", "next", "inner", "inners", "-type", "x"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | EDGES
    | st.floats()
    | st.sampled_from(["A", "B", "C", b"1234", b"12345", bytearray(b"1234"), Decimal("1.5")])
    | st.sampled_from([datetime(2026, 1, 1, tzinfo=UTC), date(2026, 1, 1), UUID(int=1), object()]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES | st.integers(0, 1), inner, max_size=3)
        | st.tuples(st.sampled_from(["int", "of.Inner", "Node", "x"]), inner)
    ),
    max_leaves=6,
)


def fit(schema: Any) -> Fit:
    named: dict[str, Any] = {}
    return fit_of(parse_schema(schema, named), named, LOGICAL_WRITERS)


@pytest.mark.parametrize("name", SCHEMAS)
@given(data=st.data())
def test_what_surely_fits_fits(name: str, data: st.DataObject) -> None:
    schema, value = SCHEMAS[name], data.draw(VALUES)
    try:
        fits = fit(schema)(value)
    except Exception:  # noqa: BLE001 - it may raise on what does not fit
        return
    if fits:
        assert validate(value, parse_schema(schema))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("null", None),
        ("boolean", False),
        ("int", -(2**31)),
        ("long", 2**63 - 1),
        ("float", 1),
        ("double", 1.5),
        ("text", "a"),
        ("bytes", b"a"),
        ("fixed", b"1234"),
        ("enum", "B"),
        ("array", [1, 2]),
        ("map", {"x": None, "y": 2}),
        ("union", {"a": 1}),
        ("union", ("of.Inner", {"a": 1})),
        ("union", "a"),
        ("record", {"next": {"a": 2, "inner": {"a": 1}, "inners": [{"a": 3}]}}),
        ("time", datetime(2026, 1, 1, tzinfo=UTC)),
        ("time", 5),
        ("day", date(2026, 1, 1)),
        ("price", Decimal("1.50")),
        ("uuid", UUID(int=1)),
        ("unknown", "a"),
    ],
)
def test_usual_values_need_no_slow_test(name: str, value: Any) -> None:
    assert fit(SCHEMAS[name])(value)
