"""Fields of dicts, mappings, dataclasses and NamedTuples."""

import math
from collections import ChainMap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.fields import (
    NAN,
    FieldsGetter,
    field_getter,
    key_getter,
    keys_of,
    value_getter,
)
from gearpy.errors import ConfigError


@dataclass(frozen=True)
class Order:
    user: str
    price: int


class Pair(NamedTuple):
    user: str
    price: int


KINDS: list[Any] = [
    {"user": "ann", "price": 3},
    ChainMap({"user": "ann"}, {"price": 3}),
    Order("ann", 3),
    Pair("ann", 3),
]


@pytest.mark.parametrize("record", KINDS, ids=lambda record: type(record).__name__)
def test_missing_field_is_named_with_those_there_are(record: Any) -> None:
    with pytest.raises(LookupError, match=r"there is no field 'prise': .* has price, user$"):
        field_getter("prise")(record)
    with pytest.raises(LookupError, match="no field 'prise'"):
        key_getter("user", "prise")(record)


@pytest.mark.parametrize("record", [3, {}, "text", None])
def test_record_without_fields_is_told(record: Any) -> None:
    with pytest.raises(LookupError, match=r"a \w+ and has no fields"):
        field_getter("user")(record)


@given(st.dictionaries(st.text(min_size=1), st.integers(), min_size=1))
def test_getters_return_what_is_there(record: dict[str, int]) -> None:
    """Property: any name reads its item, alone and among others."""
    assert {name: field_getter(name)(record) for name in record} == record
    if len(record) > 1:
        assert key_getter(*record)(record) == tuple(record.values())


def test_every_nan_is_one_key() -> None:
    """A NaN equals nothing, so each would begin a key of its own."""
    assert field_getter("x")({"x": float("nan")}) is NAN
    assert key_getter("x", "y")({"x": float("nan"), "y": 1.0}) == (NAN, 1.0)


def test_value_is_a_field_what_a_function_gives_or_the_record() -> None:
    assert value_getter("x")({"x": 1}) == 1
    assert value_getter(len)("abc") == 3
    assert value_getter(None)(5) == 5
    assert math.isnan(value_getter(None)(math.nan))


@pytest.mark.parametrize("name", ["", 3, None, b"user"])
def test_what_is_no_name_is_refused(name: Any) -> None:
    with pytest.raises(ConfigError, match="is no name of a field"):
        field_getter(name)
    with pytest.raises(ConfigError, match="is no name of a field"):
        key_getter("user", name)


def test_key_without_fields_is_refused() -> None:
    """It would put all records into one."""
    with pytest.raises(ConfigError, match="name at least one"):
        key_getter()


def test_what_tells_nothing_about_a_record_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^3 tells nothing about a record"):
        value_getter(3)  # type: ignore[arg-type]


class Odd:
    def __init__(self, price: Any) -> None:
        self.price = price
        setattr(self, "a.b", price)

    @property
    def user(self) -> str:
        raise ValueError("no user")


RECORDS = st.one_of(
    st.fixed_dictionaries({"user": st.text(), "price": st.floats() | st.integers()}),
    st.fixed_dictionaries({"user": st.text()}),
    st.builds(Order, st.text(), st.floats() | st.integers()),
    st.builds(Pair, st.text(), st.integers()),
    st.builds(Odd, st.floats()),
    st.builds(lambda user: ChainMap({"user": user}, {"price": 1}), st.text()),
)
KEYS = [
    field_getter("user"),
    field_getter("price"),
    field_getter("a.b"),
    key_getter("user", "price"),
    FieldsGetter(("price",)),
    lambda record: record.price,
]


@given(st.one_of(*(st.lists(each, max_size=4) for each in (*RECORDS.branches, RECORDS))))
@pytest.mark.parametrize("key", KEYS)
def test_keys_of_many_are_those_of_each(key: Any, records: list[Any]) -> None:
    """Property: whatever the records are; None where one has no key."""
    try:
        expected = [key(record) for record in records]
    except Exception:  # noqa: BLE001 - whatever it is
        expected = None

    found, ask = keys_of(key, records)
    assert repr(found) == repr(expected)
    assert found is not None or repr(results(ask, records)) == repr(results(key, records))


def results(key: Callable[[Any], Any], records: list[Any]) -> list[Any]:
    found: list[Any] = []
    for record in records:
        try:
            found.append(key(record))
        except Exception as error:  # noqa: BLE001 - the same
            found.append(repr(error))
    return found


@given(st.lists(st.integers(0, 5)))
def test_a_key_function_is_called_once_for_a_record(records: list[int]) -> None:
    """Property: also if it raises, or what it gives can be no key."""
    calls: list[int] = []

    def key(record: int) -> int:
        calls.append(record)
        return 1 // record

    def no_ones(keys: list[Any]) -> list[Any]:
        if 1 in keys:
            raise ValueError(1)
        return keys

    found, ask = keys_of(key, records, no_ones)

    if found is None:
        assert results(ask, records) == results(lambda each: 1 // each, records)
    else:
        assert not {0, 1} & {*records}
    assert calls == records


def test_a_key_function_that_stops_is_no_end_of_the_records() -> None:
    """`map` would take it for that."""
    pending = iter([1])

    assert keys_of(lambda _: next(pending), [1, 2])[0] is None


class Stops:
    at = 1

    @property
    def user(self) -> str:
        raise StopIteration


def test_a_field_that_stops_is_no_end_of_the_records() -> None:
    key = field_getter("user")
    field_getter("at")(Stops())  # Its fields are attributes from here on.

    found, ask = keys_of(key, [Stops(), Stops()])

    assert found is None
    with pytest.raises(StopIteration):
        ask(Stops())
