"""Side outputs: streams of a processor beside its main one, told apart by a tag.

A record of a side is wrapped until it leaves its task; the edges take their own records from
the output, and unwrap them. At the other end comes out a record like any other.
"""

from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from gearpy.core.flow.partition import Part, Partitioner
from gearpy.messages.data import Batch
from gearpy.messages.table import Table
from gearpy.wire.values.records import register_record

#: The tag of records that are not wrapped.
MAIN: Final = ""
#: The tag of bad records, in plans and messages.
ERRORS: Final = "errors"
_RECORD_CHARS_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Side:
    """A record of a side output.

    Attributes:
        tag: which one; no two of a processor have the same.
    """

    tag: str
    value: Any


register_record(Side, "gearpy.Side")  # It may stand in a snapshot, and in quarantine.


@dataclass(frozen=True, slots=True)
class BadRecord:
    r"""A record that could not be taken, as `Stream.errors` gives it.

    Attributes:
        record: as it was read, as text; bytes that are no UTF-8 look like ``\xff``. It ends
            after 1,048,576 characters. Where a file or a part of it cannot be read, its name.
        step: the name of the step that could not take it.
        error: what is wrong with it.
        where: file and line, row group, or topic/partition and offset.
        time: its event time in ms since the epoch; None if it has none, or it cannot be told.
    """

    record: str
    step: str
    error: str
    where: str
    time: int | None = None

    @classmethod
    def of(cls, record: object, *, step: str, error: str, where: str) -> "BadRecord":
        """Return one with a record of any kind made a text."""
        if isinstance(record, bytes):
            text = record[:_RECORD_CHARS_MAX].decode("utf-8", "backslashreplace")
        else:
            text = record if isinstance(record, str) else repr(record)
        return cls(text[:_RECORD_CHARS_MAX], step, error, where)


register_record(BadRecord, "gearpy.BadRecord")


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A record on which the code of a step raised, as `Stream.errors` of the step gives it.

    Attributes:
        record: as the step got it.
        step: the name of the step.
        error: what was raised.
        time: its event time in ms since the epoch.
    """

    record: Any
    step: str
    error: str
    time: int


register_record(FailedRecord, "gearpy.FailedRecord")


class SetAside(list[BadRecord]):
    """The bad records that a reader has set aside, until it is asked for them."""

    def take(self) -> list[BadRecord]:
        taken = self[:]
        self.clear()
        return taken


class SidePartitioner(Partitioner):
    """Hands on the records of some outputs of a processor, unwrapped, to another partitioner.

    Every edge of a processor with sides needs one, the main ones too: the other records are
    not theirs.

    Args:
        tags: of the outputs that the edge is for; `MAIN` is one, too.
    """

    def __init__(self, inner: Partitioner, tags: Collection[str]) -> None:
        self._inner = inner
        self.keeps_whole = inner.keeps_whole
        self.by_chance = inner.by_chance
        self._tags = frozenset(tags)
        self.is_unicast = inner.is_unicast

    @property
    def name(self) -> str:
        """The name of the inner partitioner, and the sides that it spreads."""
        sides = sorted(self._tags - {MAIN})
        if not sides:
            return self._inner.name
        mains = ["all"] if MAIN in self._tags else []
        return f"{self._inner.name} of {', '.join([*mains, *sides])}"

    def check(self, *, source_parallelism: int, target_parallelism: int) -> str | None:
        return self._inner.check(
            source_parallelism=source_parallelism, target_parallelism=target_parallelism
        )

    def fork(self, rng: Random) -> "SidePartitioner":
        """Return one with an own instance of the other."""
        return SidePartitioner(self._inner.fork(rng), self._tags)

    def partition(
        self, values: list[Any], timestamps: list[int], *, parallelism: int, sender: int
    ) -> list[Part]:
        """Split the records of this edge among the tasks."""
        if _has_sides(values):
            tags = self._tags
            picked: list[Any] = []
            times: list[int] = []
            for value, time in zip(values, timestamps, strict=True):
                tag, record = (value.tag, value.value) if type(value) is Side else (MAIN, value)
                if tag in tags:
                    picked.append(record)
                    times.append(time)
            values, timestamps = picked, times
        elif MAIN not in self._tags:
            return []
        if not values:
            return []
        return self._inner.partition(values, timestamps, parallelism=parallelism, sender=sender)


def split_sides(values: list[Any], timestamps: list[int]) -> tuple[list[Any], list[int], Batch]:
    """Return the records of the main output, and the wrapped rest as a batch to send."""
    sides = Batch([], [])
    if not _has_sides(values):
        return values, timestamps, sides
    main: list[Any] = []
    times: list[int] = []
    for value, time in zip(values, timestamps, strict=True):
        if type(value) is Side:
            sides.values.append(value)
            sides.timestamps.append(time)
        else:
            main.append(value)
            times.append(time)
    return main, times, sides


def _has_sides(values: list[Any]) -> bool:
    return type(values) is not Table and Side in set(map(type, values))
