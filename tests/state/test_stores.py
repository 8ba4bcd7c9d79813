"""What every store does, whatever it keeps cells in."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgpack
import pytest

from gearpy.core.base.stable_hash import key_group
from gearpy.state.encoding.keys import encode_key
from gearpy.state.stores.store import CellStore, Section
from tests.state.build import MakeStore, a_table, stored

VALUES = a_table("values")
MAPS = a_table("maps", "map")
KEY = encode_key("k")
#: Longer than what a database takes as a key, and alike at the beginning.
LONG = [b"s" + b"x" * 600 + bytes((each,)) for each in range(3)]


def restored(make: MakeStore, *chain: list[Section]) -> CellStore:
    store = make()
    for sections in chain:
        for section in sections:
            store.load(section)
    return store


def content_of(store: CellStore) -> dict[Any, Any]:
    values: dict[Any, Any] = {key: store.get(VALUES, key) for key in store.keys(VALUES)}
    return values | {(key, "map"): store.entries(MAPS, key) for key in store.keys(MAPS)}


def test_a_delta_holds_what_has_changed_since_the_last_one(make: MakeStore) -> None:
    store = make()
    store.put(VALUES, encode_key("a"), b"1")
    store.put(VALUES, encode_key("b"), b"2")
    stored(store.snapshot())

    store.put(VALUES, encode_key("b"), b"3")
    (section,) = stored(store.snapshot())

    assert section.group == key_group("b")
    assert msgpack.unpackb(section.body) == {VALUES + encode_key("b"): b"3"}
    assert store.snapshot() is None


def test_what_was_deleted_is_told(make: MakeStore) -> None:
    """Else it would come back with the restart."""
    store = make()
    store.put(VALUES, b"", b"1")
    store.put_entry(MAPS, b"", b"e", b"2")
    store.put_entry(MAPS, b"", b"f", b"2")
    first = stored(store.snapshot())
    store.delete(VALUES, b"")
    store.delete_entry(MAPS, b"", b"e")
    store.clear_entries(MAPS, b"")
    second = stored(store.snapshot())

    assert content_of(restored(make, first)) == {
        b"": b"1",
        (b"", "map"): [(b"e", b"2"), (b"f", b"2")],
    }
    assert content_of(restored(make, first, second)) == {}
    assert restored(make, first, second).tables(b"") == []


def test_a_released_delta_is_not_asked_for_again(make: MakeStore) -> None:
    store = make()
    store.put(VALUES, b"", b"1")
    delta = store.snapshot()
    assert delta is not None
    delta.release()

    with pytest.raises(AssertionError):
        delta.sections()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_deltas_may_be_released_in_any_order(make: MakeStore, order: tuple[int, ...]) -> None:
    store = make()
    deltas = []
    for number in range(3):
        for key in (b"a", b"b", b"c"):
            store.put(VALUES, key, b"%d" % number)
        deltas.append(store.snapshot())
    for each in order:
        delta = deltas[each]
        assert delta is not None
        delta.release()
        for _ in range(8):
            store.put(VALUES, b"d", b"other")
            assert [store.get(VALUES, key) for key in (b"a", b"b", b"c")] == [b"2"] * 3

    assert content_of(store) == {b"a": b"2", b"b": b"2", b"c": b"2", b"d": b"other"}


def test_cells_longer_than_a_key_of_a_database_are_told_apart(make: MakeStore) -> None:
    store = make()
    for number, key in enumerate(LONG):
        store.put(VALUES, key, b"%d" % number)
        store.put_entry(MAPS, key, b"e", b"%d" % number)
        store.put_entry(MAPS, key, b"f", b"%d" % number)
        store.put_entry(MAPS, KEY, key, b"%d" % number)
    store.delete(VALUES, LONG[1])
    store.clear_entries(MAPS, LONG[1])
    again = restored(make, stored(store.snapshot()))

    for each in (store, again):
        assert [each.get(VALUES, key) for key in LONG] == [b"0", None, b"2"]
        assert [each.get_entry(MAPS, KEY, key) for key in LONG] == [b"0", b"1", b"2"]
        assert each.entries(MAPS, LONG[2]) == [(b"e", b"2"), (b"f", b"2")]
        assert [*map(len, each.entries(MAPS, KEY))] == [2, 2, 2]
        assert sorted(each.keys(VALUES)) == [LONG[0], LONG[2]]
        assert sorted(each.keys(MAPS)) == sorted([KEY, LONG[0], LONG[2]])
        each.clear_entries(MAPS, LONG[0])
        assert not each.has_entries(MAPS, LONG[0])


def test_a_delta_is_encoded_while_the_task_writes(make: MakeStore) -> None:
    store = make()
    for epoch in range(5):
        for number in range(2000):
            store.put(VALUES, encode_key(number), b"%d" % epoch)
            store.put_entry(MAPS, encode_key(number % 10), encode_key(number), b"%d" % epoch)
        delta = store.snapshot()
        with ThreadPoolExecutor(1) as pool:
            storing = pool.submit(stored, delta)
            for number in range(2000):
                key = encode_key(number)
                assert store.get(VALUES, key) == b"%d" % epoch
                store.put(VALUES, key, b"later")
                store.put_entry(MAPS, encode_key(number % 10), key, b"later")
            sections = storing.result()
        again = restored(make, sections)
        assert {again.get(VALUES, key) for key in again.keys(VALUES)} == {b"%d" % epoch}
        assert sum(len(again.entries(MAPS, key)) for key in again.keys(MAPS)) == 2000


def test_queues_give_cells_in_the_order_of_time(make: MakeStore) -> None:
    store = make()
    queue, other = store.time_queue("one"), store.time_queue("other")
    cells = [(5, b"b"), (-3, b"z"), (5, b"a"), (9, LONG[0]), (5, LONG[2]), (9, b"c"), (5, LONG[1])]
    for time_ms, cell in cells:
        queue.add(time_ms, cell)
    other.add(0, b"x")

    firsts = [queue.first_ms for _ in range(2)]
    popped = [queue.pop() for _ in cells]

    assert firsts == [-3, -3]
    assert [each[0] for each in popped] == [-3, 5, 5, 5, 5, 9, 9]
    assert sorted(popped) == sorted(cells)
    assert popped[1:3] == [(5, b"a"), (5, b"b")]
    assert queue.first_ms is None
    other.clear()
    assert other.first_ms is None
