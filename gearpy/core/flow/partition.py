"""Partitioners: each decides which task of the next processor gets a record of a batch.

Only batches travel, so a partitioner takes one apart. Start with `Partitioner`; users
subclass `UnicastPartitioner` or `MulticastPartitioner`. Gearpump: `Partitioner`.

All split tables, too: a row goes where the same record would go by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from copy import deepcopy
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from numbers import Integral
from operator import length_hint
from reprlib import repr as short_repr
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

from gearpy.core.base.fields import FieldGetter, FieldsGetter, keys_of
from gearpy.core.base.one_key import is_one_key
from gearpy.core.base.stable_hash import KEY_GROUPS, key_group, task_of_group
from gearpy.core.flow.table_partition import deal_table, pick_rows, split_table, tasks_of_keys
from gearpy.errors import OperatorError
from gearpy.messages.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random
    from typing import Self

#: A user's partitioner returns it to send a record to nobody. Gearpump: -1.
DROP: Final = -1

#: Index of the task, values, timestamps.
Part: TypeAlias = tuple[int, list[Any], list[int]]

#: Keys whose task is remembered. A full memory is emptied: a run of keys fills it again.
_REMEMBERED_MAX: Final = 16_384


class Partitioner(ABC):
    """Splits batches by target task; one own instance for each source task and edge.

    Invariant: records for one target keep their order. Parts are never empty; a part may
    share its lists with the batch and with other parts. Parts of a table are tables.
    """

    #: Each record goes to one task at most. Where this is false, records that can change are
    #: looked for among the parts, and copied.
    is_unicast: bool = False
    #: A single task gets all records, and no key is asked for.
    is_whole_for_one: bool = False
    #: All records of a sender go to one task.
    keeps_whole: bool = False
    #: It does so with these numbers of tasks on both sides only.
    by_chance: bool = False

    @property
    def name(self) -> str:
        """Text of the edge in the plan; part of the graph hash."""
        return type(self).__name__

    def check(self, *, source_parallelism: int, target_parallelism: int) -> str | None:
        """Return why the edge cannot use this partitioner, or None if it can."""
        return None

    @abstractmethod
    def fork(self, rng: Random) -> Partitioner:
        """Return an own instance for one sender. Gearpump: `PartitionerObject` clones."""

    @abstractmethod
    def partition(
        self, values: list[Any], timestamps: list[int], *, parallelism: int, sender: int
    ) -> list[Part]:
        """Split a batch of the sender with this index over that many tasks."""


class GroupByPartitioner(Partitioner):
    """Sends records of equal keys to one task, by the key group of ``key_fn(value)``.

    Invariant: the task depends on key, parallelism and number of key groups, nothing else.
    Gearpump: `GroupByPartitioner`.
    """

    name = "group-by"
    is_unicast = True
    is_whole_for_one = True

    def __init__(self, key_fn: Callable[[Any], Any], *, key_groups: int = KEY_GROUPS) -> None:
        self._key_fn = key_fn
        self._fields = key_fn if isinstance(key_fn, FieldGetter | FieldsGetter) else None
        self._key_groups = key_groups
        self._target_of = _TargetOfKey(parallelism=1, key_groups=key_groups)

    def check(self, *, source_parallelism: int, target_parallelism: int) -> str | None:
        """Refuse more tasks than key groups: some would never get a record."""
        if target_parallelism <= self._key_groups:
            return None
        return (
            f"parallelism {target_parallelism} is more than the {self._key_groups} key groups, and "
            f"each key belongs to one: {self._key_groups} tasks are the most that can share "
            "records by key; lower the parallelism, or let steps without a key have more tasks"
        )

    def fork(self, rng: Random) -> GroupByPartitioner:
        """Return an instance with its own memory of keys."""
        return GroupByPartitioner(self._key_fn, key_groups=self._key_groups)

    def partition(
        self, values: list[Any], timestamps: list[int], *, parallelism: int, sender: int
    ) -> list[Part]:
        """Split a batch by key."""
        if parallelism == 1:
            return [(0, values, timestamps)] if values else []
        if self._target_of.parallelism != parallelism:
            self._target_of = _TargetOfKey(parallelism=parallelism, key_groups=self._key_groups)
        if type(values) is Table and self._fields is not None:
            of_rows = tasks_of_keys(
                values,
                self._fields,
                self._targets,
                parallelism=parallelism,
                key_groups=self._key_groups,
            )
            if of_rows is not None:
                return list(split_table(of_rows, values, timestamps))
        targets = self._targets(self._keys(values, timestamps))
        return _split(targets, values, timestamps)

    def _keys(self, values: list[Any], timestamps: list[int]) -> list[Any]:
        key_fn, pending = self._key_fn, iter(values)
        if self._fields is not None and type(values) is list:
            keys, _ = keys_of(key_fn, values)
            if keys is not None:
                return keys
        try:
            # No `map`, which takes a `StopIteration` of the key function for its own end.
            return [key_fn(value) for value in pending]
        except Exception as error:
            at = len(values) - length_hint(pending) - 1
            if isinstance(key_fn, FieldGetter | FieldsGetter):
                name = ", ".join(map(repr, key_fn.names))
            else:
                qualified: str = getattr(key_fn, "__qualname__", type(key_fn).__name__)
                name = qualified.rpartition("<locals>.")[2].strip("<>")
            raise OperatorError(
                operator=f"key_by({name})",
                cause=f"{type(error).__name__}: {error}",
                record=short_repr(values[at]),
                event_time_ms=timestamps[at],
            ) from error

    def _targets(self, keys: list[Any]) -> list[int]:
        try:
            return list(map(self._target_of.__getitem__, keys))
        except TypeError:
            # Some key is no dictionary key; either it still has a stable hash, or this
            # time the error says which one it is and what to do.
            return list(map(self._target_of.without_memory, keys))


class HashPartitioner(GroupByPartitioner):
    """Sends equal values to one task. The default partitioner of an edge.

    Gearpump: `HashPartitioner`, which uses the object's hash.
    """

    name = "hash"

    def __init__(self, *, key_groups: int = KEY_GROUPS) -> None:
        super().__init__(_itself, key_groups=key_groups)

    def fork(self, rng: Random) -> HashPartitioner:
        """Return an instance with its own memory of values."""
        return HashPartitioner(key_groups=self._key_groups)

    def _keys(self, values: list[Any], timestamps: list[int]) -> list[Any]:
        return values


@lru_cache(maxsize=64)
def _tasks_of_groups(parallelism: int, key_groups: int) -> Sequence[int]:
    """Return the task of each key group; all edges of a width share the table."""
    return tuple(
        task_of_group(group, parallelism=parallelism, key_groups=key_groups)
        for group in range(key_groups)
    )


class _TargetOfKey(dict[Any, int]):
    """Task index by key, found out once and then a dictionary lookup; bounded."""

    def __init__(self, *, parallelism: int, key_groups: int) -> None:
        super().__init__()
        self.parallelism = parallelism
        self._key_groups = key_groups
        self._task_of_group = _tasks_of_groups(parallelism, key_groups)

    def without_memory(self, key: Any) -> int:
        return self._task_of_group[key_group(key, self._key_groups)]

    def __missing__(self, key: Any) -> int:
        target = self._task_of_group[key_group(key, self._key_groups)]
        is_small = type(key) in _REMEMBERED or (type(key) in _SIZED and len(key) <= _SIZE_MAX)
        if is_small and is_one_key(key):  # An equal one may be another key.
            if len(self) >= _REMEMBERED_MAX:
                self.clear()
            self[key] = target
        return target


# Values of a user's type may equal each other without being alike to `stable_hash`, and then
# the task of one would depend on which was seen first. Long ones would take much memory.
_SIZED: Final = frozenset({str, bytes, tuple})
_SIZE_MAX: Final = 256
_REMEMBERED: Final = frozenset({int, float, bool, type(None), datetime, date, Decimal, UUID})


class ShufflePartitioner(Partitioner):
    """Deals records round robin from a random start. Gearpump: `ShufflePartitioner`.

    Invariant: over all batches of one sender the targets' counts differ by at most one.
    """

    name = "shuffle"
    is_unicast = True
    is_whole_for_one = True

    def __init__(self, start: float = 0.0) -> None:
        self._start = start  # 0 <= start < 1: where in the circle of tasks to begin.
        self._next: int | None = None

    def fork(self, rng: Random) -> ShufflePartitioner:
        """Return an instance that begins at a random task."""
        return ShufflePartitioner(rng.random())

    def partition(
        self, values: list[Any], timestamps: list[int], *, parallelism: int, sender: int
    ) -> list[Part]:
        """Deal a batch, going on where the last one ended."""
        if parallelism == 1:
            return [(0, values, timestamps)] if values else []
        first = int(self._start * parallelism) if self._next is None else self._next % parallelism
        self._next = (first + len(values)) % parallelism
        dealt = range(min(parallelism, len(values)))
        if type(values) is Table:
            counts = {
                (first + k) % parallelism: len(range(k, len(values), parallelism)) for k in dealt
            }
            return list(deal_table(counts, values, timestamps))
        return [
            ((first + k) % parallelism, values[k::parallelism], timestamps[k::parallelism])
            for k in dealt
        ]


class ShuffleGroupingPartitioner(Partitioner):
    """Deals records in rounds, every round in a new random order of the tasks.

    Senders that beat in time do not all hit one task first, unlike with `ShufflePartitioner`.
    Invariant: over all batches of one sender the targets' counts differ by at most one.
    Gearpump: `ShuffleGroupingPartitioner`.
    """

    name = "shuffle-grouping"
    is_unicast = True
    is_whole_for_one = True

    def __init__(self, rng: Random | None = None) -> None:
        self._rng = rng
        self._round: list[int] = []  # The rest of the current round, last one first.
        self._parallelism = 0

    def fork(self, rng: Random) -> ShuffleGroupingPartitioner:
        """Return an instance with its own random orders."""
        return ShuffleGroupingPartitioner(rng)

    def partition(
        self, values: list[Any], timestamps: list[int], *, parallelism: int, sender: int
    ) -> list[Part]:
        """Deal a batch, going on where the last one ended."""
        if parallelism == 1:
            return [(0, values, timestamps)] if values else []
        if self._parallelism != parallelism:
            self._parallelism, self._round = parallelism, []
        if type(values) is Table:
            # Deal, and tell only how many each gets; all full rounds at once.
            count = len(values)
            rest = min(count, len(self._round))
            full, extra = divmod(count - rest, self._parallelism)
            dealt = Counter(self._deal(rest))
            for target in range(self._parallelism):
                dealt[target] += full
            dealt.update(self._deal(extra))
            return list(deal_table(dealt, values, timestamps))
        return _split(self._deal(len(values)), values, timestamps)

    def _deal(self, count: int) -> list[int]:
        assert self._rng is not None, "fork() gives each sender its own instance"
        targets = self._round
        order = list(range(self._parallelism))
        while len(targets) < count:
            self._rng.shuffle(order)
            targets += order
        self._round = targets[count:]
        return targets[:count]


class BroadcastPartitioner(Partitioner):
    """Sends every record to every task. Gearpump: `BroadcastPartitioner`."""

    name = "broadcast"

    def fork(self, rng: Random) -> BroadcastPartitioner:
        return self

    def partition(
        self, values: list[Any], timestamps: list[int], *, parallelism: int, sender: int
    ) -> list[Part]:
        """Give the whole batch to each task; the lists are shared, not copied."""
        return [(index, values, timestamps) for index in range(parallelism)] if values else []


class CoLocationPartitioner(Partitioner):
    """Sends every record to the task with the sender's own index.

    Gearpump: `CoLocationPartitioner`.

    Args:
        by_chance: with other numbers of tasks the edge would need another partitioner.
    """

    name = "co-location"
    is_unicast = True
    keeps_whole = True

    def __init__(self, *, by_chance: bool = False) -> None:
        self.by_chance = by_chance

    def check(self, *, source_parallelism: int, target_parallelism: int) -> str | None:
        """Refuse processors of different parallelism."""
        if source_parallelism == target_parallelism:
            return None
        return (
            f"a co-location edge joins tasks of equal index, but parallelism is "
            f"{source_parallelism} on one side and {target_parallelism} on the other: "
            "make them equal or use another partitioner"
        )

    def fork(self, rng: Random) -> CoLocationPartitioner:
        return self

    def partition(
        self, values: list[Any], timestamps: list[int], *, parallelism: int, sender: int
    ) -> list[Part]:
        """Give the whole batch to one task."""
        return [(sender, values, timestamps)] if values else []


class _UserPartitioner(Partitioner):
    """Base of the two partitioners that run user code."""

    def fork(self, rng: Random) -> Self:
        """Return a deep copy, so that each sender has its own memory."""
        return deepcopy(self)

    def _checked(self, target: Any, value: Any, parallelism: int) -> int:
        if type(target) is int and 0 <= target < parallelism:
            return target
        if isinstance(target, Integral) and DROP <= int(target) < parallelism:
            return int(target)
        raise OperatorError(
            operator=self.name,
            cause=f"partition {target!r} for {short_repr(value)} is not a whole number from "
            f"{DROP} (drop) to {parallelism - 1}",
            record=short_repr(value),
        )


class UnicastPartitioner(_UserPartitioner):
    """Base for a user's partitioner that names at most one task for each record.

    Gearpump: `UnicastPartitioner`.
    """

    is_unicast = True

    @abstractmethod
    def get_partition(self, value: Any, parallelism: int, sender: int) -> int:
        """Return the index of the task that gets the value, or `DROP`."""

    def partition(
        self, values: list[Any], timestamps: list[int], *, parallelism: int, sender: int
    ) -> list[Part]:
        """Split a batch as `get_partition` says."""
        targets = [
            self._checked(self.get_partition(value, parallelism, sender), value, parallelism)
            for value in values
        ]
        return _split(targets, values, timestamps)


class MulticastPartitioner(_UserPartitioner):
    """Base for a user's partitioner that names any number of tasks for each record.

    Gearpump: `MulticastPartitioner`.
    """

    @abstractmethod
    def get_partitions(self, value: Any, parallelism: int, sender: int) -> Sequence[int]:
        """Return the indexes of the tasks that get the value; `DROP` and none mean nobody."""

    def partition(
        self, values: list[Any], timestamps: list[int], *, parallelism: int, sender: int
    ) -> list[Part]:
        """Split a batch as `get_partitions` says."""
        places: dict[int, list[int]] = {}
        for place, value in enumerate(values):
            for chosen in self.get_partitions(value, parallelism, sender):
                target = self._checked(chosen, value, parallelism)
                places.setdefault(target, []).append(place)
        places.pop(DROP, None)
        if type(values) is Table:
            return [(to, *pick_rows(at, values, timestamps)) for to, at in places.items()]
        return [
            (target, [values[at] for at in chosen], [timestamps[at] for at in chosen])
            for target, chosen in places.items()
        ]


def _itself(value: Any) -> Any:
    return value


def _split(targets: list[int], values: list[Any], timestamps: list[int]) -> list[Part]:
    """Split records by their targets; leave out the ones of `DROP`."""
    if type(values) is Table:
        return list(split_table(targets, values, timestamps))
    parts: dict[int, Part] = {target: (target, [], []) for target in dict.fromkeys(targets)}
    if len(parts) == 1 and DROP not in parts:
        return [(targets[0], values, timestamps)]
    keep = {target: (part[1].append, part[2].append) for target, part in parts.items()}
    for target, value, timestamp in zip(targets, values, timestamps, strict=True):
        keep_value, keep_timestamp = keep[target]
        keep_value(value)
        keep_timestamp(timestamp)
    parts.pop(DROP, None)
    return list(parts.values())
