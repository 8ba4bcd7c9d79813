"""Values, and what records are folded into."""

from typing import Any

import pytest

from gearpy.errors import ConfigError
from gearpy.state.encoding.coders import Coder
from gearpy.state.keyed import KeyedState
from tests.state.build import after_a_restart


def test_each_key_and_namespace_has_its_value(state: KeyedState) -> None:
    total = state.value("total")
    for key in ("ada", "bob"):
        for namespace in (None, "w1", (0, 10)):
            state.key, state.namespace = key, namespace
            total.set(f"{key} {namespace}")

    state.key, state.namespace = "ada", (0, 10)

    assert total.get() == "ada (0, 10)"


def test_a_cleared_value_is_gone(state: KeyedState) -> None:
    total = state.value("total", default=-1)
    seen = []
    for write in (total.set, None):
        write(1) if write else total.clear()
        seen.append((total.is_empty, total.get()))

    assert seen == [(False, 1), (True, -1)]
    assert after_a_restart(state).value("total").get() is None


def test_the_default_is_made_anew_each_time(state: KeyedState) -> None:
    names = state.value("names", default=list[str]())
    names.get().append("ada")

    assert names.get() == []


def test_a_value_comes_back_with_its_coder(state: KeyedState) -> None:
    values = {"msgpack": (1, {2}), "int": 10**30, "float": 0.5, "str": "é", "bytes": b"\0"}
    for coder, value in values.items():
        state.value(f"as {coder}", coder=coder).set(value)
    again = after_a_restart(state)

    for coder, value in values.items():
        assert state.value(f"as {coder}", coder=coder).get() == value
        assert again.value(f"as {coder}", coder=coder).get() == value


class _Tenths:
    name = "tenths"

    def encode(self, value: float) -> bytes:
        return b"%d" % round(value * 10)

    def decode(self, data: bytes) -> float:
        return int(data) / 10


def test_a_coder_of_the_users_own_is_used(state: KeyedState) -> None:
    coder: Coder = _Tenths()
    tenths = state.value("tenths", coder=coder, default=0.26)
    assert tenths.get() == 0.3

    tenths.set(1.23)

    assert tenths.get() == 1.2
    assert after_a_restart(state).value("tenths", coder=coder).get() == 1.2


def test_a_value_that_cannot_be_kept_is_refused_by_name(state: KeyedState) -> None:
    total = state.value("total", coder="int", default=0)
    total.set(1)

    with pytest.raises(ConfigError, match="state 'total': coder 'int' keeps int only"):
        total.set("2")  # type: ignore[arg-type]

    assert total.get() == 1


def test_a_state_shows_its_name(state: KeyedState) -> None:
    assert repr(state.scope("a").value("total")) == "<ValueState 'a/total'>"


def test_values_are_combined(state: KeyedState) -> None:
    """An accumulator may be changed by its function; what is kept is a copy."""

    def add(kept: list[int], value: int) -> list[int]:
        kept.append(value)
        return kept

    def declared(at: KeyedState) -> Any:
        return at.combining("median", create=list, add=add, result=lambda kept: sorted(kept)[-1:])

    median = declared(state)
    assert median.get() == []
    for value in (3, 9, 1):
        median.add(value)

    assert median.get() == [9]
    assert declared(after_a_restart(state)).get() == [9]


@pytest.mark.parametrize("kind", ["reducing", "combining"])
def test_namespaces_are_merged(state: KeyedState, kind: str) -> None:
    if kind == "reducing":
        total: Any = state.reducing("total", lambda kept, value: kept + value)
    else:
        total = state.combining(
            "total", create=int, add=lambda kept, value: kept + value, merge=lambda a, b: a + b
        )
    for namespace, value in (("one", 1), ("two", 2), ("three", 4)):
        state.namespace = namespace
        total.add(value)
    state.namespace = "two"

    total.merge("one", "none", "two")

    assert total.get() == 3
    assert state.namespace == "two"
    state.namespace = "one"
    assert total.is_empty
    state.namespace = "three"
    assert total.get() == 4


def test_merging_without_a_function_is_refused(state: KeyedState) -> None:
    total = state.combining("total", create=int, add=lambda kept, value: kept + value)

    with pytest.raises(ConfigError, match=r"state 'total' cannot merge .* declare it with merge="):
        total.merge("other")
