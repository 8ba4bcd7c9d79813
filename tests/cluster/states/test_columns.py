"""Cells of keyed state as columns: exactly what a task would read, key by key."""

import datetime as dt
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.cluster.states.columns import ShownClasses, StateColumns, tables_of
from gearpy.core.base.stable_hash import key_group
from gearpy.errors import ProtocolError
from gearpy.state.keyed import KeyedState
from gearpy.state.open import heap_state
from gearpy.state.stores.cells import Tag, runs_of
from gearpy.state.stores.store import Section
from gearpy.wire.values.records import DEFAULT_REGISTRY, NO_CLASSES
from tests.state.build import put


@dataclass(frozen=True)
class Visit:
    page: str
    at: int


class Place(NamedTuple):
    town: str
    street: int


class Colour(Enum):
    RED = 1


NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


def columns_of(sections: Iterable[Section], *, known: bool = True) -> dict[str, StateColumns]:
    parts = ((each.group, run) for each in sections for run in runs_of(each))
    classes = ShownClasses(DEFAULT_REGISTRY if known else NO_CLASSES)
    return {each.tag.path[-1]: each for each in tables_of(parts, classes)}


def table_of(state: KeyedState, name: str, *, known: bool = True) -> pa.Table:
    delta = state.snapshot()
    sections = [] if delta is None else list(delta.sections())
    return columns_of(sections, known=known)[name].table()


def values(*each: Any, coder: Any = "msgpack") -> KeyedState:
    state = heap_state()
    kept = state.value("kept", coder=coder)
    for state.key, value in enumerate(each):
        kept.set(value)
    return state


def by_key(table: pa.Table, column: str = "value") -> dict[Any, Any]:
    return dict(zip(table["key"].to_pylist(), table[column].to_pylist(), strict=True))


# -- keys and values -------------------------------------------------------------------------

_KEYS = st.one_of(
    st.text(max_size=5), st.integers(), st.binary(max_size=4), st.tuples(st.text(max_size=2))
)
_VALUES = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1),
    st.lists(st.booleans(), min_size=1),
    st.lists(st.floats(allow_nan=False), min_size=1),
    st.lists(st.one_of(st.none(), st.binary()), min_size=1),
    st.lists(st.lists(st.one_of(st.none(), st.integers(0, 9)))),
    st.lists(st.one_of(st.none(), st.fixed_dictionaries({"a": st.text(), "b": st.integers(0, 9)}))),
)


@given(found=_VALUES)
def test_values_of_one_type_come_back_as_they_were(found: list[Any]) -> None:
    if not found:
        return
    # A text may hold what no UTF-8 does; then the column is JSON, see below.
    state = values(*found)
    table = table_of(state, "kept")
    if "value" in table.column_names:
        assert by_key(table) == dict(enumerate(found))


@given(keys=st.sets(_KEYS, min_size=1), is_bulk=st.booleans())
def test_each_key_has_its_value_and_its_group(*, keys: set[Any], is_bulk: bool) -> None:
    state, kept = heap_state(), {key: at for at, key in enumerate(keys)}
    if is_bulk:
        put(state.bulk("kept", operator="count"), dict(kept))
    else:
        value = state.value("kept", coder="int")
        for state.key, at in kept.items():
            value.set(at)

    table = table_of(state, "kept")

    groups = {at: key_group(key) for key, at in kept.items()}
    found = zip(table["value"].to_pylist(), table["key_group"].to_pylist(), strict=True)
    assert dict(found) == groups
    if len(set(map(type, keys))) > 1:
        assert table.column_names[0] == "key_json"


@pytest.mark.parametrize(
    ("value", "shown", "kind"),
    [
        ((1, "a"), {"f0": 1, "f1": "a"}, "struct<f0: int64, f1: string>"),
        (Visit("home", 3), {"page": "home", "at": 3}, "struct<page: string, at: int64>"),
        (Place("Bern", 3), {"town": "Bern", "street": 3}, "struct<town: string, street: int64>"),
        ([(1, 2)], [{"f0": 1, "f1": 2}], "list<item: struct<f0: int64, f1: int64>>"),
        ({3, 1}, [1, 3], "list<item: int64>"),
        (NOON, NOON, "timestamp[us, tz=UTC]"),
        (dt.date(2026, 1, 1), dt.date(2026, 1, 1), "date32[day]"),
        (Decimal("1.50"), Decimal("1.50"), "decimal128(3, 2)"),
    ],
)
def test_records_are_structs_and_times_are_times(value: Any, shown: Any, kind: str) -> None:
    table = table_of(values(value, value), "kept")

    assert by_key(table) == {0: shown, 1: shown}
    assert str(table.schema.field("value").type) == kind


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        ([1, "a"], ["1", '"a"']),
        ([1, 1.5], ["1", "1.5"]),
        ([2**70], [str(2**70)]),
        ([(1,), (1, 2)], ["[1]", "[1, 2]"]),
        ([{"a": 1}, {"b": 1}], ['{"a": 1}', '{"b": 1}']),
        ([{1: 2}], ['{"1": 2}']),
        ([Colour.RED], ['"<Colour.RED: 1>"']),
        ([(), None], ["[]", None]),
    ],
)
def test_what_no_column_keeps_is_json_and_its_name_says_so(
    found: list[Any], shown: list[str | None]
) -> None:
    table = table_of(values(*found), "kept")

    assert by_key(table, "value_json") == dict(enumerate(shown))


def test_classes_that_are_not_here_are_their_fields() -> None:
    state = values(Visit("home", 3))
    put(state.bulk("of", operator="count"), {Place("Bern", 3): 1})
    delta = state.snapshot()
    assert delta is not None
    found = columns_of(delta.sections(), known=False)

    assert found["kept"].table()["value"].to_pylist() == [{"f0": "home", "f1": 3}]
    assert found["of"].table()["key"].to_pylist() == [{"f0": "Bern", "f1": 3}]
    assert table_of(values(Colour.RED), "kept", known=False)["value"].to_pylist() == ["RED"]


@pytest.mark.parametrize("coder", ["json", "bytes", "str"])
def test_a_coder_of_gearpy_is_read(coder: str) -> None:
    kept: Any = {"json": {"a": [1]}, "bytes": b"\0", "str": "x"}[coder]

    assert by_key(table_of(values(kept, coder=coder), "kept")) == {0: kept}


def test_a_coder_of_the_user_is_not_known_here() -> None:
    class Upper:
        name = "upper"

        def encode(self, value: str) -> bytes:
            return value.upper().encode()

        def decode(self, data: bytes) -> str:
            return data.decode()

    assert by_key(table_of(values("ada", coder=Upper()), "kept"), "value_bytes") == {0: b"ADA"}


# -- kinds of state --------------------------------------------------------------------------


def _list(state: KeyedState) -> None:
    state.list("kept").extend(["x", "y"])


def _set(state: KeyedState) -> None:
    state.set("kept").update(["y", "x"])


def _map(state: KeyedState) -> None:
    state.map("kept")["page"] = 3


def _timer(state: KeyedState) -> None:
    state.timers.event_time(7000, "logout")


def _reducing(state: KeyedState) -> None:
    state.reducing("kept", max).add(3)


@pytest.mark.parametrize(
    ("declare", "name", "rows"),
    [
        (_list, "kept", [{"position": 0, "value": "x"}, {"position": 1, "value": "y"}]),
        (_set, "kept", [{"value": "x"}, {"value": "y"}]),
        (_map, "kept", [{"entry": "page", "value": 3}]),
        (_timer, "#event", [{"tag": "logout", "at_ms": 7000}]),
        (_reducing, "kept", [{"value": 3}]),
    ],
)
def test_each_kind_of_state_has_its_columns(
    declare: Callable[[KeyedState], None], name: str, rows: list[dict[str, Any]]
) -> None:
    state = heap_state()
    state.key = "ada"
    declare(state)
    table = table_of(state, name)

    found = sorted(table.to_pylist(), key=repr)

    assert found == [{"key": "ada", **row, "key_group": key_group("ada")} for row in rows]


def test_what_expires_says_when() -> None:
    state = heap_state()
    state.key, state.time_ms = "ada", 1000
    state.value("kept", ttl="1s").set(5)

    assert table_of(state, "kept").to_pylist() == [
        {"key": "ada", "value": 5, "expires_ms": 2000, "key_group": key_group("ada")}
    ]


def test_namespaces_are_a_column_where_there_are_any() -> None:
    state = heap_state()
    kept = state.value("kept")
    state.key = "ada"
    kept.set(1)
    state.namespace = ("s", 3)
    kept.set(2)
    table = table_of(state, "kept")

    assert dict(zip(table["value"].to_pylist(), table["namespace"].to_pylist(), strict=True)) == {
        1: None,
        2: {"f0": "s", "f1": 3},
    }


def test_windows_have_their_starts() -> None:
    state = heap_state()
    bulk = state.scope("sum-1").bulk("windows", operator="sum")
    put(bulk, {"ada": 3}, 60_000)
    put(bulk, {"ada": 4}, 0)

    table = table_of(state, "windows")
    starts = zip(table["window_start_ms"].to_pylist(), table["value"].to_pylist(), strict=True)

    assert dict(starts) == {0: 4, 60_000: 3}


def test_state_of_a_task_as_a_whole_has_no_key_and_no_group() -> None:
    state = heap_state()
    state.value("kept").set(1)

    assert table_of(state, "kept").to_pylist() == [{"key": None, "value": 1, "key_group": None}]


def test_keys_of_a_step_come_back_as_they_were() -> None:
    state = heap_state()
    put(state.bulk("kept", operator="count"), {1.0: 1, math.inf: 2})

    assert by_key(table_of(state, "kept")) == {1.0: 1, math.inf: 2}


def test_damaged_cells_are_told() -> None:
    columns = StateColumns(Tag(("kept",), "value", "int"), NO_CLASSES)
    state = values(1, coder="int")
    delta = state.snapshot()
    assert delta is not None
    [run] = [run for each in delta.sections() for run in runs_of(each)]

    columns.add(0, run._replace(values=[b"\xc1"]))

    with pytest.raises(ProtocolError, match="state 'kept' is malformed"):
        columns.table()
