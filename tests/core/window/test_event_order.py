"""Records in the order of event time, see `gearpy.core.window.event_order`."""

import weakref
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.window.event_order import Due, EventOrder
from gearpy.ids import MAX_MS

#: Partition, and its records: places in event time.
PARTITIONS = st.lists(st.lists(st.integers(0, 6), max_size=6), min_size=1, max_size=3)


def order() -> EventOrder:
    return EventOrder(lambda value: str(value).encode())


def values_of(due: Due) -> list[Any]:
    return due.values


def test_records_come_when_event_time_has_passed_them() -> None:
    waiting = order()
    waiting.hold(["c", "a", "b"], [30, 10, 20], [30, 10, 20], rank=(0, 0, 0))

    assert (waiting.first_ms, len(waiting)) == (10, 3)
    assert values_of(waiting.due(20)) == ["a"]
    assert values_of(waiting.due(20, is_inclusive=True)) == ["b"]
    assert values_of(waiting.due(MAX_MS)) == ["c"]
    assert (waiting.first_ms, len(waiting)) == (MAX_MS, 0)


def test_when_event_time_ends_what_waits_in_order_comes_and_then_nothing() -> None:
    waiting = order()
    waiting.hold(["a", "b"], [1, 5], [1, 5], rank=(0, 0, 0))

    assert values_of(waiting.due(2)) == ["a"]
    assert values_of(waiting.due(MAX_MS)) == ["b"]
    assert waiting.due(MAX_MS) == ([], [], [])


def test_at_one_place_sides_count_then_partitions_then_the_order_of_reading() -> None:
    waiting = order()
    waiting.hold(["p1 left", "p1 right"], [5, 5], [5, 5], rank=(0, 1, 0), sides=[1, 0])
    waiting.hold(["p0 a", "p0 b"], [5, 5], [5, 5], rank=(0, 0, 7), sides=[1, 1])
    waiting.hold(["p0 before"], [5], [5], rank=(0, 0, 3), sides=[1])

    assert values_of(waiting.due(6)) == ["p1 right", "p0 before", "p0 a", "p0 b", "p1 left"]


def test_a_record_of_the_far_future_does_not_keep_those_it_came_with() -> None:
    class Record:
        pass

    waiting, records = order(), [Record() for _ in range(4)]
    waiting.hold([*records], [1, 2, 3, 900], [1, 2, 3, 900], rank=(0, 0, 0))
    seen = [weakref.ref(each) for each in records]
    del records

    waiting.due(5)

    assert [each() is None for each in seen] == [True, True, True, False]
    assert len(waiting.due(MAX_MS).values) == 1


def test_without_a_partition_what_records_are_decides() -> None:
    one, other = order(), order()
    for waiting, values in ((one, ["b", "a"]), (other, ["a", "b"])):
        for value in values:
            waiting.hold([value], [1], [1])

    assert values_of(one.due(2)) == values_of(other.due(2)) == ["a", "b"]


@given(PARTITIONS, st.randoms(use_true_random=False), st.data())
def test_what_comes_is_a_function_of_each_partition(
    partitions: list[list[int]], random: Any, data: st.DataObject
) -> None:
    named = [
        [(place, f"{number}.{at}") for at, place in enumerate(places)]
        for number, places in enumerate(partitions)
    ]
    right = [
        name
        for _, _, _, name in sorted(
            (place, number, at, name)
            for number, records in enumerate(named)
            for at, (place, name) in enumerate(records)
        )
    ]
    waiting, found = order(), list[Any]()
    left = [list(records) for records in named]
    read = [0] * len(left)
    while any(left):
        at = random.choice([number for number, records in enumerate(left) if records])
        size = data.draw(st.integers(1, len(left[at])))
        some, left[at] = left[at][:size], left[at][size:]
        places = [place for place, _ in some]
        waiting.hold([name for _, name in some], places, places, rank=(0, at, read[at]))
        read[at] += size
        if data.draw(st.booleans()):  # A restart.
            waiting.load([])
        least = min((place for records in left for place, _ in records), default=MAX_MS)
        found += values_of(waiting.due(data.draw(st.integers(0, least))))
    found += values_of(waiting.due(MAX_MS))

    assert found == right


def test_content_counts_only_where_keys_are_the_same() -> None:
    described: list[tuple[str, int]] = []

    def content_of(value: tuple[str, int]) -> bytes:
        described.append(value)
        return str(value).encode()

    order = EventOrder(content_of, lambda values: [value[0] for value in values])
    pairs = [("b", 1), ("a", 2), ("c", 4), ("a", 1)]
    order.hold(pairs, [5] * 4, [5] * 4)

    due = order.due(6).values

    assert due == [("a", 1), ("a", 2), ("b", 1), ("c", 4)]
    assert sorted(described) == [("a", 1), ("a", 2)]
