"""Which column keeps which values, see `gearpy.columns.types`."""

import typing
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from gearpy.columns.types import field_of, fields_of
from gearpy.errors import ConfigError

UserId = NewType("UserId", int)
EAST = timezone(timedelta(hours=2))


class Place(TypedDict):
    lat: float
    name: NotRequired[str]


@dataclass
class Order:
    user: UserId
    price: float | None
    tags: list[str]
    place: Place


class Pair(NamedTuple):
    left: int
    right: str


@dataclass
class Sealed:
    total: int = field(init=False)


@dataclass
class Strange:
    what: object


@dataclass
class Lost:
    what: "Nowhere"  # type: ignore[name-defined] # noqa: F821 - that is the test


class Nothing:
    """No row."""


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (str, pa.string()),
        (int, pa.int64()),
        (float, pa.float64()),
        (bool, pa.bool_()),
        (bytes, pa.binary()),
        (datetime, pa.timestamp("us", tz="UTC")),
        (date, pa.date32()),
        (time, pa.time64("us")),
        (timedelta, pa.duration("us")),
        (UserId, pa.int64()),
        (Literal["a", "b"], pa.string()),
        (Annotated[int, pa.int32()], pa.int32()),
        (Annotated[int, "a note"], pa.int64()),
        (Annotated[Decimal, pa.decimal128(18, 2)], pa.decimal128(18, 2)),
        (pa.float32(), pa.float32()),
        (list[int], pa.list_(pa.field("item", pa.int64(), nullable=False))),
        (list[int | None], pa.list_(pa.int64())),
        (dict[str, float], pa.map_(pa.string(), pa.field("value", pa.float64(), nullable=False))),
        (
            Place,
            pa.struct(
                [pa.field("lat", pa.float64(), nullable=False), pa.field("name", pa.string())]
            ),
        ),
    ],
)
def test_type_has_a_column_that_keeps_its_values(kind: Any, column: pa.DataType) -> None:
    assert field_of("x", kind) == pa.field("x", column, nullable=False)


@pytest.mark.parametrize("kind", [int | None, typing.Optional[int], None | int])  # noqa: UP045
def test_none_makes_a_column_nullable(kind: Any) -> None:
    assert field_of("x", kind) == pa.field("x", pa.int64(), nullable=True)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Decimal, r"column 'x': .* values of Decimal: say how many digits: Annotated\[Decimal"),
        (int | str, "a column has values of one type, or None"),
        (int | str | None, "a column has values of one type, or None"),
        (object, "keeps values of object: use text"),
        (set, "keeps values of set"),
        (Any, r"keeps values of (typing\.)?Any"),
        (Literal["a", 1], "no column type that keeps"),
        (list[object], "column 'x': column 'item': there is no column type"),
        (tuple[int, ...], "no column type that keeps"),
        (Order, "keeps values of Order"),
    ],
)
def test_type_without_a_column_is_refused(kind: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        field_of("x", kind)


def test_classes_have_their_fields_in_order() -> None:
    assert [each.name for each in fields_of(Order)] == ["user", "price", "tags", "place"]
    assert [each.nullable for each in fields_of(Order)] == [False, True, False, False]
    assert [each.name for each in fields_of(Pair)] == ["left", "right"]
    assert [each.nullable for each in fields_of(Place)] == [False, True]


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (Nothing, "Nothing is no schema: it is neither a dataclass nor"),
        (Sealed, "Sealed: field 'total' cannot be given when a row is made"),
        (Strange, "Strange: column 'what': there is no column type"),
        (Lost, "Lost: its annotations name what is not there: name 'Nowhere'"),
    ],
)
def test_class_that_is_no_schema_is_refused(schema: type, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        fields_of(schema)
