"""Lists, sets and maps."""

from typing import NamedTuple

import pytest

from gearpy.errors import ConfigError
from gearpy.state.keyed import KeyedState
from gearpy.state.stores.heap import HeapStore
from gearpy.wire.values.records import register_record
from tests.state.build import a_state, after_a_restart, changes_of


class Point(NamedTuple):
    x: int
    y: int


register_record(Point, "tests.state.Point")


def test_a_list_keeps_its_order(state: KeyedState) -> None:
    seen = state.list("seen")
    seen.extend(range(500))
    seen.add([1])
    again = after_a_restart(state).list("seen")
    again.append("last")

    assert list(seen) == [*range(500), [1]]
    assert list(again) == [*range(500), [1], "last"]
    assert (len(seen), len(again)) == (501, 502)


def test_a_list_is_set(state: KeyedState) -> None:
    seen = state.list("seen")
    seen.extend([1, 2, 3])

    seen.set(value for value in seen if value != 2)

    assert list(seen) == [1, 3]


def test_appending_touches_two_cells_only() -> None:
    state = a_state(HeapStore())
    seen = state.list("seen")
    seen.extend(range(1000))
    changes_of(state)

    seen.add("one more")

    (section,) = changes_of(state)
    assert len(section.body) < 100


def test_lists_are_merged(state: KeyedState) -> None:
    seen = state.bag("seen")
    for namespace in ("one", "two", "three"):
        state.namespace = namespace
        seen.extend([namespace, namespace])

    seen.merge("two", "one")

    assert list(seen) == ["three", "three", "two", "two", "one", "one"]
    state.namespace = "one"
    assert seen.is_empty


def test_a_value_that_cannot_be_kept_is_refused_by_name(state: KeyedState) -> None:
    seen = state.list("seen", coder="str")

    with pytest.raises(ConfigError, match="state 'seen': coder 'str' keeps str only"):
        seen.add(1)

    assert seen.is_empty


def test_a_set_holds_each_value_once(state: KeyedState) -> None:
    pages = state.set("pages")

    assert [pages.add(page) for page in ("home", 1, 1.0, True, "home", None)] == [
        *(True, True, False, False, False, True)
    ]
    assert len(pages) == 3
    assert 1.0 in pages
    assert "cart" not in pages


def test_values_are_taken_out_of_a_set(state: KeyedState) -> None:
    pages = state.set("pages")
    pages.update(["home", "cart"])
    pages.discard("home")
    pages.discard("nowhere")

    assert list(pages) == ["cart"]
    assert pages
    pages.clear()
    assert not pages


def test_sets_are_merged(state: KeyedState) -> None:
    pages = state.set("pages")
    for namespace, values in (("one", "ab"), ("two", "bc")):
        state.namespace = namespace
        pages.update(values)

    pages.merge("one")

    assert list(pages) == ["a", "b", "c"]


def test_a_mutable_value_is_refused_by_a_set(state: KeyedState) -> None:
    with pytest.raises(ConfigError, match="make it a tuple"):
        state.set("pages").add(["home"])


def test_a_map_is_used_as_a_dict(state: KeyedState) -> None:
    cart = state.map("cart", coder="int")
    cart["tea"] = 1
    cart["jam"] = 2
    cart["tea"] += 4
    del cart["jam"]

    assert dict(cart.items()) == {"tea": 5}
    assert "tea" in cart
    assert "jam" not in cart
    assert (list(cart), list(cart.keys()), list(cart.values()), len(cart)) == (
        *(["tea"], ["tea"], [5], 1),
    )


def test_an_entry_that_is_not_there(state: KeyedState) -> None:
    cart = state.map("cart")

    assert cart.get("tea") is None
    assert cart.get("tea", 0) == 0
    assert cart.pop("tea", 7) == 7
    cart.remove("tea")
    with pytest.raises(KeyError, match="tea"):
        cart["tea"]
    with pytest.raises(KeyError, match="tea"):
        del cart["tea"]


def test_an_entry_is_put_if_absent(state: KeyedState) -> None:
    cart = state.map("cart")

    assert cart.put_if_absent("tea", 1) == 1
    assert cart.put_if_absent("tea", 2) == 1
    cart.update([("tea", 3), ("jam", 4)])
    assert cart.pop("tea") == 3
    assert list(cart.items()) == [("jam", 4)]


def test_entries_of_other_keys_are_not_seen(state: KeyedState) -> None:
    cart = state.map("cart")
    for key in ("", "a", "ab", ("a",), 97):
        state.key = key
        cart[f"of {key!r}"] = 1

    for key in ("", "a", "ab", ("a",), 97):
        state.key = key
        assert list(cart) == [f"of {key!r}"]


def test_what_the_user_changes_later_changes_nothing_kept(state: KeyedState) -> None:
    cart = state.map("cart")
    value = [1]
    cart["tea"] = value
    value.append(2)
    cart["tea"].append(3)
    next(cart.values()).append(4)

    assert cart["tea"] == [1]


def test_a_map_may_change_while_it_is_gone_through(state: KeyedState) -> None:
    cart = state.map("cart")
    cart.update((number, 1) for number in range(5))

    for key in cart:
        del cart[key]
        cart[key + 10] = 1

    assert list(cart) == [10, 11, 12, 13, 14]
