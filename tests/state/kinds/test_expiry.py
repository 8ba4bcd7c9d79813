"""State that expires."""

from typing import Any

from gearpy.ids import MAX_MS
from gearpy.state.keyed import KeyedState
from gearpy.state.kinds.expiry import cells_of
from gearpy.state.stores.heap import HeapStore
from tests.state.build import MakeStore, WallClock, a_state, changes_of


def cells_in(state: KeyedState) -> int:
    store = state._declared.store  # noqa: SLF001 -- what takes memory is not to be seen outside
    return len(list(cells_of(store, b"")))


def test_by_event_time_a_value_lives_from_its_record_to_the_watermark(make: MakeStore) -> None:
    state = a_state(make())
    seen = state.value("seen", ttl="10s", default="nothing")
    state.time_ms = 1000
    seen.set("it")

    state.advance(10_999)
    assert seen.get() == "it"
    state.advance(11_000)
    assert seen.get() == "nothing"
    assert seen.is_empty


def test_by_wall_time_a_value_lives_from_when_it_was_written(make: MakeStore) -> None:
    clock = WallClock(1000)
    state = a_state(make(), clock=clock)
    seen = state.value("seen", ttl="10s", clock="processing")
    seen.set("it")
    state.advance(10**12)

    clock.now_ms = 10_999
    assert seen.get() == "it"
    clock.now_ms = 11_000
    assert seen.get() is None


def test_each_entry_expires_by_itself(make: MakeStore) -> None:
    state = a_state(make())
    words, pages = state.list("words", ttl="10ms"), state.set("pages", ttl="10ms")
    cart = state.map("cart", ttl="10ms")
    for time_ms, name in ((0, "a"), (5, "b"), (9, "a")):
        state.time_ms = time_ms
        words.add(name)
        pages.add(name)
        cart[name] = time_ms
    state.advance(12)

    assert (list(words), len(words), bool(words)) == (["b", "a"], 2, True)
    assert (list(pages), "a" in pages, len(pages)) == (["a", "b"], True, 2)
    assert (dict(cart.items()), list(cart), len(cart)) == ({"a": 9, "b": 5}, ["a", "b"], 2)
    state.advance(15)
    assert list(words) == list(pages) == ["a"]
    assert (dict(cart.items()), "b" in cart, cart.get("b", 1)) == ({"a": 9}, False, 1)
    state.advance(19)
    assert words.is_empty
    assert pages.is_empty
    assert not cart
    assert [list(state.keys(tag)) for tag in ("words", "pages", "cart")] == [[], [], []]


def test_a_set_says_that_an_expired_value_is_new(make: MakeStore) -> None:
    state = a_state(make())
    seen = state.set("seen", ttl="10ms")
    answers = []
    for time_ms in (0, 5, 14, 25):
        state.advance(time_ms)
        state.time_ms = time_ms
        answers.append(seen.add("it"))

    assert answers == [True, False, False, True]


def test_what_records_were_folded_into_expires(make: MakeStore) -> None:
    state = a_state(make(), watermark_ms=0)
    total = state.reducing("total", lambda kept, value: kept + value, ttl="10ms")
    mean = state.combining("mean", create=list, add=lambda kept, value: [*kept, value], ttl="10ms")
    total.add(1)
    mean.add(1)
    state.advance(10)

    assert (total.get(), mean.get()) == (None, [])
    assert total.add(5) == 5


def test_what_has_expired_is_freed(make: MakeStore) -> None:
    """And deleted from the checkpoint; otherwise both would grow for ever."""
    state = a_state(make())
    states: list[Any] = [
        state.value("value", ttl="10ms"),
        state.list("list", ttl="10ms"),
        state.map("map", ttl="10ms"),
    ]
    for number in range(50):
        state.key = number
        state.time_ms = number
        states[0].set(number)
        states[1].extend([number, number])
        states[2].update([(1, 1), (2, 2)])
    before = cells_in(state)
    first = changes_of(state)

    state.advance(59)

    assert (before, cells_in(state)) == (50 * (1 + 3 + 2), 0)
    again = a_state(sections=[*first, *changes_of(state)])
    assert cells_in(again) == 0


def test_freeing_takes_a_little_time_at_once() -> None:
    state = a_state(HeapStore())
    cart = state.map("cart", ttl="10ms")
    state.time_ms = 0
    cart.update((number, 1) for number in range(5000))

    state.advance(10)

    assert list(cart) == []
    assert 0 < cells_in(state) < 5000
    left = cells_in(state)
    state.time_ms = 10
    for number in range(100):
        cart[-number - 1] = 1
    assert cells_in(state) == left - 100
    for _ in range(5):
        state.advance(10)
    assert cells_in(state) == 100


def test_a_time_to_live_may_be_added_after_a_restart(make: MakeStore) -> None:
    before = a_state(make())
    before.key, before.namespace = "ada", "w"
    before.value("value").set(1)
    before.list("list").extend([1, 2])
    before.map("map")["a"] = 1
    first = changes_of(before)
    after = a_state(make(), sections=first, watermark_ms=100)
    after.key, after.namespace = "ada", "w"
    states: list[Any] = [
        after.value("value", ttl="10ms"),
        after.list("list", ttl="10ms"),
        after.map("map", ttl="10ms"),
    ]
    states[1].add(3)

    def kept() -> list[Any]:
        return [states[0].get(), list(states[1]), dict(states[2].items())]

    assert kept() == [1, [1, 2, 3], {"a": 1}]
    later = a_state(sections=[*first, *changes_of(after)], watermark_ms=100)
    after.advance(110)
    assert kept() == [None, [], {}]
    later.key, later.namespace = "ada", "w"
    assert list(later.list("list", ttl="10ms")) == [1, 2, 3]


def test_a_time_to_live_may_be_changed_after_a_restart(make: MakeStore) -> None:
    before = a_state(make(), watermark_ms=0)
    before.map("map", ttl="10ms")["old"] = 1
    after = a_state(make(), sections=changes_of(before), watermark_ms=0)
    kept = after.map("map", ttl="100ms")
    kept["new"] = 1

    after.advance(10)

    assert list(kept) == ["new"]


def test_the_end_of_the_stream_is_no_time_at_which_state_expires() -> None:
    state = a_state(HeapStore())
    seen = state.value("seen", ttl="10ms")
    state.time_ms = 5
    seen.set("it")

    state.advance(MAX_MS)

    assert seen.get() == "it"


def test_a_very_long_time_is_for_ever() -> None:
    state = a_state(HeapStore(), watermark_ms=MAX_MS - 5)
    seen = state.value("seen", ttl=f"{MAX_MS}ms")
    seen.set("it")

    (section,) = changes_of(state)

    assert a_state(sections=[section]).value("seen", ttl="1ms").get() == "it"
