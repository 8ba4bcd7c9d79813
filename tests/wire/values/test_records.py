"""Registration of record classes, see `gearpy.wire.values.records`."""

from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import ConfigError, ProtocolError
from gearpy.wire.values.forms import RecordType
from gearpy.wire.values.records import RecordRegistry, register_record


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Order:
    item: str
    amount: int = 1
    doubled: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "doubled", self.amount * 2)


def record_of(cls: type) -> RecordType:
    registry = RecordRegistry()
    registry.register(cls)
    record = registry.of_class(cls)
    assert record is not None
    return record


def test_register_record_works_as_a_decorator() -> None:
    registry = RecordRegistry()

    returned = register_record(Point, registry=registry)

    assert returned is Point
    assert registry.of_class(Point) is not None


def test_a_name_cannot_mean_two_classes() -> None:
    """Else a receiver would build the wrong class without a word."""
    registry = RecordRegistry()
    registry.register(Point, "shape")

    with pytest.raises(ConfigError, match=r"'shape' is taken by .*Point.*another name"):
        registry.register(Order, "shape")


def test_a_class_defined_again_replaces_the_old_definition() -> None:
    """A module that runs twice, as ``__main__`` or after a resubmission, must not be refused."""
    registry = RecordRegistry()
    registry.register(Point)
    again = type("Point", (Point,), {})
    again.__module__, again.__qualname__ = "__main__", "Point"

    registry.register(again)

    assert registry.find("Point", record_of(Point).fingerprint).cls is again
    assert registry.of_class(Point) is not None


@pytest.mark.parametrize("cls", [int, type("Pairs", (tuple,), {}), type("Bag", (dict,), {})])
def test_what_is_more_than_its_values_cannot_be_registered(cls: type) -> None:
    with pytest.raises(ConfigError, match=r"cannot be registered .*gearpy.register_serializer"):
        RecordRegistry().register(cls)


def test_a_dataclass_that_is_also_a_dict_is_refused() -> None:
    """Its content beside the fields would be lost."""

    @dataclass
    class Bag(dict):  # type: ignore[type-arg]
        label: str

    with pytest.raises(ConfigError, match="a kind of dict"):
        RecordRegistry().register(Bag)


def test_other_fields_under_the_same_name_are_refused() -> None:
    registry = RecordRegistry()
    registry.register(Point)

    with pytest.raises(ProtocolError, match="other fields"):
        registry.find("Point", 12345)


def test_values_are_rebuilt_without_running_their_constructor() -> None:
    order = Order("book", 3)
    object.__setattr__(order, "doubled", 7)
    record = record_of(Order)

    rebuilt = record.build(record.columns([order]), 1)

    assert rebuilt == [order]
    assert rebuilt[0].doubled == 7


@given(st.lists(st.builds(Order, st.text(), st.integers()), min_size=1))
def test_taking_apart_and_rebuilding_changes_nothing(orders: list[Order]) -> None:
    """The invariant: build is the inverse of columns."""
    record = record_of(Order)

    assert record.build(record.columns(orders), len(orders)) == orders


def test_the_classes_of_a_program_that_has_ended_are_forgotten() -> None:
    registry = RecordRegistry()
    mine = type("Point", (Point,), {"__module__": "gearpy_app_1.shop"})
    registry.register(mine, "shape")
    registry.register(Order, "other")

    registry.forget("gearpy_app_1")

    registry.register(Order, "shape")
    assert registry.find("shape", record_of(Order).fingerprint).cls is Order
    assert registry.find("other", record_of(Order).fingerprint).cls is Order


def test_a_class_typed_at_a_prompt_is_known_in_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some prompts keep their names where no module has them, such as that of Python's `code`."""
    source = "from dataclasses import dataclass\n@dataclass\nclass Typed:\n    {}: int\n"
    names: dict[str, type] = {"__name__": "__console__"}  # type: ignore[dict-item]
    exec(source.format("n"), names)  # noqa: S102 - as a prompt does
    registry = RecordRegistry()
    assert registry.of_class(names["Typed"]) is None
    monkeypatch.setattr("sys.ps1", ">>> ", raising=False)

    for field_name in ("n", "m"):  # The second time it is typed with other fields.
        exec(source.format(field_name), names)  # noqa: S102
        record = registry.of_class(names["Typed"])
        assert record is not None
        found = registry.find("__console__:Typed", record.fingerprint)
        assert found.cls is names["Typed"]
