"""Types that Spark takes as they are, and the file of a schema."""

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.columns.spark_types import exact_schema, spark_schema
from gearpy.errors import ConfigError, WindowLogDamaged
from gearpy.windowlog.log import LogSchema, parsed_schema, schema_difference, schema_text

EXACT: list[tuple[Any, Any, Any]] = [
    (pa.uint8(), pa.int16(), "short"),
    (pa.uint16(), pa.int32(), "integer"),
    (pa.uint32(), pa.int64(), "long"),
    (pa.int8(), pa.int8(), "byte"),
    (pa.float16(), pa.float32(), "float"),
    (pa.float64(), pa.float64(), "double"),
    (pa.bool_(), pa.bool_(), "boolean"),
    (pa.large_string(), pa.string(), "string"),
    (pa.string_view(), pa.string(), "string"),
    (pa.dictionary(pa.int8(), pa.large_string()), pa.string(), "string"),
    (pa.binary(4), pa.binary(), "binary"),
    (pa.large_binary(), pa.binary(), "binary"),
    (pa.date64(), pa.date32(), "date"),
    (pa.timestamp("ms", "Europe/Berlin"), pa.timestamp("us", "UTC"), "timestamp"),
    (pa.timestamp("ns"), pa.timestamp("us"), "timestamp_ntz"),
    (pa.decimal256(20, 2), pa.decimal128(20, 2), "decimal(20,2)"),
    (
        pa.large_list(pa.uint8()),
        pa.list_(pa.field("element", pa.int16())),
        {"type": "array", "elementType": "short", "containsNull": True},
    ),
    (
        pa.map_(pa.large_string(), pa.uint8()),
        pa.map_(pa.string(), pa.int16()),
        {"type": "map", "keyType": "string", "valueType": "short", "valueContainsNull": True},
    ),
    (
        pa.struct([pa.field("a", pa.uint8(), nullable=False)]),
        pa.struct([pa.field("a", pa.int16())]),
        {
            "type": "struct",
            "fields": [{"name": "a", "type": "short", "nullable": True, "metadata": {}}],
        },
    ),
]


@pytest.mark.parametrize(("kind", "exact", "spark"), EXACT, ids=[str(each[0]) for each in EXACT])
def test_a_type_becomes_what_spark_has(kind: Any, exact: Any, spark: Any) -> None:
    schema = exact_schema(pa.schema([pa.field("x", kind, nullable=False)]))

    assert schema == pa.schema([("x", exact)])
    assert spark_schema(schema)["fields"][0]["type"] == spark
    assert exact_schema(schema) == schema


@pytest.mark.parametrize(
    ("kind", "fix"),
    [
        (pa.uint64(), "map it to int64, or to decimal"),
        (pa.time64("us"), "map it to a text, or to its milliseconds"),
        (pa.duration("s"), "map it to its milliseconds"),
        (pa.month_day_nano_interval(), "map it to its milliseconds"),
        (pa.null(), "give a schema"),
        (pa.decimal256(50, 2), "38 digits at most"),
        (pa.decimal128(5, -1), "38 digits at most"),
        (pa.list_(pa.uint64()), "map it to int64"),
        (pa.struct([]), "it has no fields, which no file of Parquet takes: give a schema"),
        (pa.list_(pa.struct([])), "it has no fields"),
        (pa.dense_union([pa.field("a", pa.int8())]), "Spark has nothing like it"),
    ],
)
def test_what_spark_has_nothing_like_is_refused_with_the_fix(kind: Any, fix: str) -> None:
    schema = pa.schema([("a", kind), ("b", kind), ("c", pa.int8())])

    with pytest.raises(ConfigError, match=fix) as caught:
        exact_schema(schema, name="sink")
    assert [each[:16] for each in caught.value.mistakes] == ["sink: column 'a'", "sink: column 'b'"]


def test_names_that_spark_takes_for_one_are_refused() -> None:
    with pytest.raises(ConfigError, match="two columns 'User'"):
        exact_schema(pa.schema([("user", pa.int8()), ("User", pa.int8())]))


@given(st.text(), st.integers(0), st.lists(st.sampled_from([each[1] for each in EXACT])))
def test_a_schema_is_read_as_it_was_written(log: str, created_ms: int, kinds: list[Any]) -> None:
    arrow = pa.schema([(f"c{place}", kind) for place, kind in enumerate(kinds)])
    schema = LogSchema(arrow, spark_schema(arrow), log, created_ms, tuple(arrow.names))

    assert parsed_schema(schema_text(schema), file="f") == schema


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b'{"format": 1, "arrow": "xx"}'])
def test_what_is_no_schema_is_damage(text: bytes) -> None:
    with pytest.raises(WindowLogDamaged, match="f: it is no schema"):
        parsed_schema(text, file="f")


def test_a_later_format_is_refused() -> None:
    with pytest.raises(WindowLogDamaged, match="its format is 2, this gearpy knows 1"):
        parsed_schema(b'{"format": 2}', file="f")


KEPT = pa.schema([("a", pa.int64()), ("b", pa.string())])


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        ([("a", pa.int64()), ("b", pa.string())], ""),
        ([("a", pa.int64()), ("c", pa.string())], "there is no column 'c', only a, b"),
        ([("a", pa.string()), ("b", pa.string())], "column 'a' is int64, not string"),
        ([("a", pa.int64())], "there is a column 'b', too"),
        ([("b", pa.string()), ("a", pa.int64())], "the order of columns is a, b"),
    ],
)
def test_a_difference_names_the_column(other: list[Any], difference: str) -> None:
    assert schema_difference(KEPT, pa.schema(other)) == difference


def test_a_part_of_a_schema_need_not_have_all_columns() -> None:
    assert schema_difference(KEPT, pa.schema([("b", pa.string())]), partly=True) == ""
