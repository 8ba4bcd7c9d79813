"""Instances of frozen dataclasses that are made from columns, quicker than by a call."""

import copy
import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from gearpy.columns.row_schema import RowSchema, maker_of, row_schema_of


@dataclass(frozen=True, slots=True)
class Slotted:
    n: int
    name: str = "none"


@dataclass(frozen=True)
class Plain:
    n: int
    name: str
    kind: ClassVar[str] = "plain"


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Weak:
    n: int
    name: str


@dataclass(frozen=True)
class Own:
    n: int
    name: str
    __slots__ = ("n", "name")


@dataclass
class Open:
    n: int
    name: str


@dataclass(frozen=True, kw_only=True)
class Named:
    n: int
    name: str


@dataclass(frozen=True, slots=True)
class Checked:
    n: int
    name: str

    def __post_init__(self) -> None:
        if self.n > 1:
            raise ValueError("too large")


@dataclass(frozen=True, init=False)
class Other:
    n: int
    name: str

    def __init__(self, n: int, name: str) -> None:
        object.__setattr__(self, "n", n + 100)
        object.__setattr__(self, "name", name)


@dataclass(frozen=True)
class Computed:
    n: int
    name: str
    twice: int = field(init=False, default=0)


class Derived(Plain):
    """Its base is laid out as the twin would be, itself perhaps not."""


@pytest.mark.parametrize("kind", [Slotted, Plain, Own])
def test_rows_are_as_if_their_class_had_been_called(kind: Any) -> None:
    schema = row_schema_of(kind)
    assert maker_of(kind) is not None

    rows = schema.rows(pa.record_batch({"n": [1, 2], "name": ["a", "b"]}))

    made = [kind(1, "a"), kind(2, "b")]
    assert rows == made
    assert list(map(type, rows)) == [kind, kind]
    assert list(map(hash, rows)) == list(map(hash, made))
    assert list(map(repr, rows)) == list(map(repr, made))
    assert copy.copy(rows) == made
    with pytest.raises(dataclasses.FrozenInstanceError):
        rows[0].n = 3


@pytest.mark.parametrize("kind", [Open, Weak, Named, Checked, Other, Computed, Derived, dict])
def test_a_class_whose_init_does_more_is_called(kind: Any) -> None:
    assert maker_of(kind) is None


def test_code_of_the_class_still_runs() -> None:
    batch = pa.record_batch({"n": [1, 2], "name": ["a", "b"]})
    with pytest.raises(ValueError, match="too large"):
        RowSchema(batch.schema, Checked).rows(batch)

    assert [row.n for row in RowSchema(batch.schema, Other).rows(batch)] == [101, 102]
