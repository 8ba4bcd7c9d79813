"""Which task gets which record."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import cycle, islice
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.stable_hash import key_group, task_of_group
from gearpy.core.flow.partition import (
    DROP,
    BroadcastPartitioner,
    CoLocationPartitioner,
    GroupByPartitioner,
    HashPartitioner,
    MulticastPartitioner,
    Part,
    Partitioner,
    ShuffleGroupingPartitioner,
    ShufflePartitioner,
    UnicastPartitioner,
)
from gearpy.errors import ConfigError, OperatorError


def test_the_memory_of_keys_does_not_take_two_hours_for_one() -> None:
    first = datetime(2023, 10, 28, 22, tzinfo=UTC).astimezone(ZoneInfo("Europe/Berlin"))
    hours = [datetime.fromtimestamp(first.timestamp() + 900 * n, first.tzinfo) for n in range(24)]
    values = [each for hour in hours for each in (hour, ("a", hour))]
    partitioner = GroupByPartitioner(lambda value: value).fork(Random(0))

    for batch in (values, values[::-1]):
        found: dict[str, int] = {}
        for target, part, _ in partitioner.partition(
            batch, [0] * len(batch), parallelism=7, sender=0
        ):
            found |= {repr(value): target for value in part}
        assert found == {
            repr(value): task_of_group(key_group(value), parallelism=7) for value in values
        }


class Fixed(UnicastPartitioner):
    def __init__(self, target: Any) -> None:
        self.target = target

    def get_partition(self, value: Any, parallelism: int, sender: int) -> int:
        target: int = self.target
        return target


class Alternating(UnicastPartitioner):
    """Keeps a state of its own: the tasks in turn."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def get_partition(self, value: Any, parallelism: int, sender: int) -> int:
        self.seen.append(value)
        return len(self.seen) % parallelism


class EvenTwice(MulticastPartitioner):
    """Sends even numbers to tasks 0 and 1, drops 3, and others to task 0."""

    def get_partitions(self, value: Any, parallelism: int, sender: int) -> Sequence[int]:
        if value == 3:
            return [DROP]
        return [0, 1] if value % 2 == 0 else [0]


def split(
    partitioner: Partitioner, values: list[Any], *, parallelism: int, sender: int = 0
) -> list[Part]:
    return partitioner.partition(
        values, list(range(len(values))), parallelism=parallelism, sender=sender
    )


def a_fork(partitioner: Partitioner, *, seed: int = 1) -> Partitioner:
    return partitioner.fork(Random(seed))


LOSSLESS: dict[str, Callable[[], Partitioner]] = {
    "hash": HashPartitioner,
    "group-by": lambda: GroupByPartitioner(lambda value: value % 5),
    "shuffle": ShufflePartitioner,
    "shuffle-grouping": ShuffleGroupingPartitioner,
    "co-location": CoLocationPartitioner,
    "Alternating": Alternating,
}
ALL = {**LOSSLESS, "broadcast": BroadcastPartitioner, "EvenTwice": EvenTwice}


@pytest.mark.parametrize(("name", "make"), ALL.items(), ids=list(ALL))
def test_name_is_what_the_plan_shows(name: str, make: Callable[[], Partitioner]) -> None:
    assert make().name == name
    assert a_fork(make()).name == name


def test_hash_goes_by_key_group() -> None:
    words = ["a", "b", "c", "a"]

    parts = split(a_fork(HashPartitioner()), words, parallelism=7)

    for target, values, _ in parts:
        assert {task_of_group(key_group(word), parallelism=7) for word in values} == {target}


def test_unhashable_key_is_refused_with_advice() -> None:
    with pytest.raises(ConfigError, match="make it a tuple"):
        split(a_fork(HashPartitioner()), ["a", [1]], parallelism=2)


def test_type_error_of_the_key_function_is_its_own() -> None:
    """A mistake in user code is not reported as a bad key; the card names it and the record."""
    partitioner = GroupByPartitioner(lambda value: value + 1)

    with pytest.raises(OperatorError, match="concatenate") as raised:
        split(a_fork(partitioner), [1, "a", 2], parallelism=2)

    assert raised.value.operator == "key_by(lambda)"
    assert raised.value.record == "'a'"
    assert isinstance(raised.value.__cause__, TypeError)


def test_stop_iteration_of_the_key_function_loses_no_record() -> None:
    """`next` without a default raises it; taken for the end of the batch, records would vanish."""
    partitioner = GroupByPartitioner(lambda value: next(letter for letter in value))

    with pytest.raises(OperatorError, match="StopIteration") as raised:
        split(a_fork(partitioner), ["ab", "", "c"], parallelism=2)

    assert raised.value.record == "''"


def test_memory_of_keys_is_bounded() -> None:
    partitioner = a_fork(HashPartitioner())
    values = list(range(40_000))

    first = split(partitioner, values, parallelism=3)
    again = split(partitioner, values, parallelism=3)

    memory = vars(partitioner)["_target_of"]
    assert first == again
    assert len(memory) <= 16_384
    assert sys.getsizeof(memory) < 2_000_000


def test_long_values_are_not_kept() -> None:
    """Ten thousand remembered documents would take gigabytes."""
    partitioner = a_fork(HashPartitioner())

    split(partitioner, ["x" * 1000, "short"], parallelism=3)

    assert list(vars(partitioner)["_target_of"]) == ["short"]


def test_more_tasks_than_key_groups_is_a_mistake() -> None:
    """Some tasks would never get a record."""
    partitioner = HashPartitioner(key_groups=4)

    assert partitioner.check(source_parallelism=1, target_parallelism=4) is None
    told = partitioner.check(source_parallelism=1, target_parallelism=5)
    assert "5 is more than the 4 key groups" in str(told)
    assert "4 tasks are the most that can share records by key" in str(told)


def test_shuffle_goes_on_where_it_ended() -> None:
    partitioner = a_fork(ShufflePartitioner())

    dealt = [split(partitioner, [n], parallelism=3)[0][0] for n in range(7)]

    assert dealt == list(islice(cycle([dealt[0], dealt[1], dealt[2]]), 7))
    assert sorted(dealt[:3]) == [0, 1, 2]


def test_co_location_needs_equal_parallelism() -> None:
    partitioner = CoLocationPartitioner()

    assert partitioner.check(source_parallelism=3, target_parallelism=3) is None
    assert "3 on one side and 2 on the other" in str(
        partitioner.check(source_parallelism=3, target_parallelism=2)
    )


def test_co_location_keeps_the_index() -> None:
    assert split(CoLocationPartitioner(), ["x"], parallelism=4, sender=2) == [(2, ["x"], [0])]


def test_dropped_records_go_nowhere() -> None:
    assert split(a_fork(Fixed(DROP)), [1, 2], parallelism=2) == []


def test_records_go_to_all_tasks_named() -> None:
    parts = split(a_fork(EvenTwice()), [1, 2, 3, 4], parallelism=2)

    assert parts == [(0, [1, 2, 4], [0, 1, 3]), (1, [2, 4], [1, 3])]


@pytest.mark.parametrize("target", [2, -2, None, 0.5, "0"])
def test_target_out_of_range_names_partitioner_value_and_range(target: Any) -> None:
    with pytest.raises(OperatorError) as error:
        split(a_fork(Fixed(target)), ["word"], parallelism=2)

    assert error.value.operator == "Fixed"
    assert f"{target!r} for 'word' is not a whole number from -1 (drop) to 1" in str(error.value)


def test_forks_of_a_users_partitioner_share_nothing() -> None:
    """Two senders are two threads. Gearpump: `PartitionerObject` clones."""
    original = Alternating()

    one, other = a_fork(original), a_fork(original)
    split(one, [1, 2, 3], parallelism=2)

    assert vars(original)["seen"] == vars(other)["seen"] == []


@given(
    name=st.sampled_from(sorted(LOSSLESS)),
    batches=st.lists(st.lists(st.integers(0, 30), max_size=40), max_size=6),
    parallelism=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_nothing_is_lost_doubled_or_overtaken(
    name: str, batches: list[list[int]], parallelism: int, seed: int
) -> None:
    """The invariant: parts are the batch, and within a part order is kept."""
    partitioner = a_fork(LOSSLESS[name](), seed=seed)

    for values in batches:
        parts = split(partitioner, values, parallelism=parallelism)
        records = [pair for _, part, times in parts for pair in zip(times, part, strict=True)]
        assert sorted(records) == list(enumerate(values))
        assert all(times == sorted(times) and times for _, _, times in parts)
        assert len({target for target, _, _ in parts}) == len(parts)
        assert all(0 <= target < parallelism for target, _, _ in parts)


@given(
    make=st.sampled_from([ShufflePartitioner, ShuffleGroupingPartitioner]),
    sizes=st.lists(st.integers(0, 25), max_size=12),
    parallelism=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_shuffles_are_fair_over_all_batches(
    make: Callable[[], Partitioner], sizes: list[int], parallelism: int, seed: int
) -> None:
    """The invariant of both shuffles: counts differ by at most one."""
    partitioner = a_fork(make(), seed=seed)
    counts = Counter(dict.fromkeys(range(parallelism), 0))

    for size in sizes:
        for target, values, _ in split(partitioner, [None] * size, parallelism=parallelism):
            counts[target] += len(values)

    assert max(counts.values()) - min(counts.values()) <= 1


@given(
    keys=st.lists(st.one_of(st.integers(), st.text(), st.booleans(), st.floats()), max_size=30),
    parallelism=st.integers(2, 9),
)
def test_task_of_a_key_depends_on_nothing_else(keys: list[Any], parallelism: int) -> None:
    """The invariant of hash and group-by: one key, one task, for every sender and history."""
    warm, cold = a_fork(HashPartitioner()), a_fork(HashPartitioner(), seed=2)
    split(warm, keys, parallelism=parallelism)

    backwards = split(cold, keys[::-1], parallelism=parallelism)

    forwards = split(warm, keys, parallelism=parallelism)
    assert {target: len(values) for target, values, _ in forwards} == {
        target: len(values) for target, values, _ in backwards
    }


@pytest.mark.parametrize(
    "make",
    [
        lambda: GroupByPartitioner(lambda value: value["none"]),
        HashPartitioner,
        ShufflePartitioner,
        ShuffleGroupingPartitioner,
    ],
)
def test_a_single_task_gets_the_batch_as_it_is(make: Callable[[], Partitioner]) -> None:
    partitioner = make().fork(Random(1))
    values, times = [{"a": 1}, {"b": [2]}], [3, 4]

    assert partitioner.is_whole_for_one
    assert partitioner.partition(values, times, parallelism=1, sender=0) == [(0, values, times)]
