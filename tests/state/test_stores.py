"""What every store does, whatever it keeps cells in."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import msgpack
import pytest

from gearpy.core.base.stable_hash import key_group
from gearpy.errors import ProtocolError
from gearpy.state.encoding.keys import encode_key
from gearpy.state.stores.store import CellStore, Section
from tests.state.build import BACKENDS, a_store, a_table, stored

MakeStore: TypeAlias = Callable[[], CellStore]

VALUES = a_table("values")
MAPS = a_table("maps", "map")
KEY = encode_key("k")
#: Longer than what a database takes as a key, and alike at the beginning.
LONG = [b"s" + b"x" * 600 + bytes((each,)) for each in range(3)]


@pytest.fixture(params=BACKENDS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeStore]:
    """Give empty stores of one backend."""
    made: list[CellStore] = []

    def make_store() -> CellStore:
        made.append(a_store(request.param, tmp_path))
        return made[-1]

    yield make_store
    for store in made:
        store.close()


def restored(make: MakeStore, *chain: list[Section]) -> CellStore:
    """Return a new store with what a checkpoint holds."""
    store = make()
    for sections in chain:
        for section in sections:
            store.load(section)
    return store


def content_of(store: CellStore) -> dict[Any, Any]:
    """Return all that is in the two tables, packed."""
    values: dict[Any, Any] = {key: store.get(VALUES, key) for key in store.keys(VALUES)}
    return values | {(key, "map"): store.entries(MAPS, key) for key in store.keys(MAPS)}


def test_nothing_has_changed_in_a_new_store(make: MakeStore) -> None:
    """Such a task adds nothing to a checkpoint."""
    assert make().snapshot() is None


def test_what_was_loaded_has_not_changed(make: MakeStore) -> None:
    """It is in the checkpoint already."""
    store = make()
    store.put(VALUES, KEY, b"1")

    assert restored(make, stored(store.snapshot())).snapshot() is None


def test_a_delta_holds_what_has_changed_since_the_last_one(make: MakeStore) -> None:
    """And nothing else: an epoch costs what it has changed."""
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


def test_deleting_what_is_not_there_changes_nothing(make: MakeStore) -> None:
    """A checkpoint holds no deletions of what it does not hold."""
    store = make()

    store.delete(VALUES, KEY)
    store.delete_entry(MAPS, KEY, b"e")
    store.clear_entries(MAPS, KEY)

    assert store.snapshot() is None


def test_a_delta_does_not_change_with_its_store(make: MakeStore) -> None:
    """It is stored while the task goes on, and perhaps again after a failure."""
    store = make()
    store.put(VALUES, b"", b"1")
    store.put_entry(MAPS, b"", b"e", b"1")
    delta = store.snapshot()
    assert delta is not None

    before = list(delta.sections())
    store.put(VALUES, b"", b"2")
    store.put_entry(MAPS, b"", b"e", b"2")
    store.put_entry(MAPS, b"", b"f", b"2")
    store.clear_entries(MAPS, b"")
    later = store.snapshot()

    assert list(delta.sections()) == before
    assert later is not None


def test_a_released_delta_is_not_asked_for_again(make: MakeStore) -> None:
    """Its memory is gone."""
    store = make()
    store.put(VALUES, b"", b"1")
    delta = store.snapshot()
    assert delta is not None
    delta.release()

    with pytest.raises(AssertionError):
        delta.sections()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_deltas_may_be_released_in_any_order(make: MakeStore, order: tuple[int, ...]) -> None:
    """One that could not be stored is stored with a later one."""
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


def test_a_delta_that_is_not_released_is_whole_while_later_ones_are(make: MakeStore) -> None:
    """It is stored with a later one."""
    store = make()
    store.put(VALUES, KEY, b"1")
    first = store.snapshot()
    store.put(VALUES, KEY, b"2")
    stored(store.snapshot())
    for number in range(10):
        store.put(VALUES, encode_key(number), b"")
    store.snapshot()

    assert first is not None
    (section,) = first.sections()
    assert msgpack.unpackb(section.body) == {VALUES + KEY: b"1"}


def test_state_of_the_task_is_in_a_section_of_its_own(make: MakeStore) -> None:
    """It belongs to no key group."""
    store = make()
    store.put(VALUES, b"", b"1")

    assert [section.group for section in stored(store.snapshot())] == [1024]


def test_cells_longer_than_a_key_of_a_database_are_told_apart(make: MakeStore) -> None:
    """Addresses of pages, for example, which begin alike."""
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


def test_keys_may_change_while_they_are_gone_through(make: MakeStore) -> None:
    """A timer often clears the key it is about."""
    store = make()
    keys = [encode_key(number) for number in range(20)]
    for key in keys:
        store.put(VALUES, key, b"1")
    again = restored(make, stored(store.snapshot()))

    for each in (store, again):
        seen = []
        for key in each.keys(VALUES):
            seen.append(key)
            each.delete(VALUES, key)
        assert seen == keys
        assert list(each.keys(VALUES)) == []


def test_tables_are_those_in_which_something_is(make: MakeStore) -> None:
    """By their tag; a namespace that was cleared is gone."""
    store = make()
    windows = [a_table("count", namespace=name) for name in (b"1", b"2", b"3")]
    for table in [*windows, a_table("counter"), a_table("cou")]:
        store.put(table, KEY, b"1")
    store.delete(windows[1], KEY)
    again = restored(make, stored(store.snapshot()))
    again.put(windows[1], KEY, b"1")
    again.delete(windows[1], KEY)

    for each in (store, again):
        assert each.tables(windows[0][: 1 + windows[0][0]]) == [windows[0], windows[2]]
        assert len(each.tables(b"")) == 4


def test_whether_there_is_another_entry(make: MakeStore) -> None:
    """A list whose last element has expired gives up its counter."""
    store = make()
    store.put_entry(MAPS, KEY, b"", b"1")
    again = restored(make, stored(store.snapshot()))

    for each in (store, again):
        assert each.has_entries(MAPS, KEY)
        assert not each.has_entries(MAPS, KEY, but=b"")
        each.put_entry(MAPS, KEY, b"e", b"1")
        assert each.has_entries(MAPS, KEY, but=b"")
        each.delete_entry(MAPS, KEY, b"e")
        assert not each.has_entries(MAPS, KEY, but=b"")
        each.delete_entry(MAPS, KEY, b"")
        assert not each.has_entries(MAPS, KEY)


def test_later_sections_count_more(make: MakeStore) -> None:
    """A chain is loaded from its oldest file on."""
    one, other = make(), make()
    one.put(VALUES, b"", b"1")
    one.put_entry(MAPS, b"", b"e", b"1")
    other.put(VALUES, b"", b"2")
    other.put_entry(MAPS, b"", b"f", b"2")

    both = restored(make, stored(one.snapshot()), stored(other.snapshot()))

    assert content_of(both) == {b"": b"2", (b"", "map"): [(b"e", b"1"), (b"f", b"2")]}


def test_a_damaged_section_is_refused(make: MakeStore) -> None:
    """The owner goes back to an older epoch then."""
    with pytest.raises(ProtocolError):
        make().load(Section(0, b"\xc1"))


def test_closing_twice_is_no_mistake(make: MakeStore) -> None:
    """A task that fails while it stops closes again."""
    store = make()
    store.put(VALUES, KEY, b"1")
    store.close()
    store.close()

    assert store.get(VALUES, KEY) is None


def test_a_delta_is_encoded_while_the_task_writes(make: MakeStore) -> None:
    """On another thread, with the same result."""
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
    """And cells of one time in theirs; queues do not mix."""
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
