"""Decides which partitions of topics a task reads, where each begins and ends: a core."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    NotRequired,
    Protocol,
    TypeAlias,
    TypedDict,
    get_args,
)

from gearpy.core.base.times import EventTime, event_time_ms
from gearpy.errors import ConfigError
from gearpy.ids import MIN_MS

#: The beginning of reading: by a name, an event time, or an offset for each partition.
Start: TypeAlias = Literal["earliest", "latest", "committed"] | EventTime | Mapping[str, int]

#: The end of reading: at what is there now, at a time, or at an offset of each partition.
Until: TypeAlias = Literal["now"] | EventTime | Mapping[str, int]

#: The fate of a partition whose next record is not there any more.
OutOfRange: TypeAlias = Literal["fail", "earliest", "latest"]

_STARTS: Final = ("earliest", "latest", "committed")
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_PART: Final = re.compile(r"[A-Za-z0-9._-]+/\d+")


class KafkaPlace(TypedDict):
    """Snapshot of a partition: its next offset, the one where it ends, and the watermark.

    A topic that is deleted and made again has another id, and offsets that begin anew.
    """

    offset: int
    end: int | None
    watermark_ms: int
    topic_id: NotRequired[str]  #: Empty or missing where it is not known.


class Gap(NamedTuple):
    """A step over records that are not there any more: from an offset to another."""

    wanted: int
    going: int
    low: int
    high: int
    is_other: bool = False  #: The topic was made again: all its records are new ones.

    @property
    def is_anew(self) -> bool:
        return self.is_other or self.wanted > self.high

    @property
    def lost(self) -> int:
        return max(0, self.going - (self.low if self.is_anew else self.wanted))

    def __str__(self) -> str:
        there = f"its records are {self.low} to {self.high - 1}"
        if self.low == self.high:
            there = f"it has no records, and the next is {self.high}"
        if self.is_other:
            anew = f"its topic was deleted and made again since offset {self.wanted}"
            return f"{anew}, and with it went what was not read: {there}"
        gone = f"offset {self.wanted} is not there any more: {there}"
        if self.wanted > self.high:
            return f"{gone}: its topic was made again, or has lost its newest records"
        return (
            f"{gone}: {self.low - self.wanted:,} were removed" if self.wanted < self.low else gone
        )


class Offsets(Protocol):
    """Answers of the brokers, by the names of partitions."""

    def low(self, name: str) -> int: ...

    def high(self, name: str) -> int: ...

    def committed(self, names: Sequence[str]) -> Mapping[str, int]:
        """Return the offsets that the group has committed, where it has."""
        ...

    def at_time(self, names: Sequence[str], time_ms: int) -> Mapping[str, int]:
        """Return the offsets of the first records of this Kafka time or later, where there are."""
        ...


def name_of(topic: str, number: int) -> str:
    return f"{topic}/{number}"


def names_of(topics: Mapping[str, int]) -> list[str]:
    return [name_of(topic, at) for topic, count in topics.items() for at in range(count)]


def topic_of(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("/")
    return topic, int(number)


@dataclass(frozen=True, slots=True)
class WantedTopics:
    """The topics to read: by their names, or by an expression that fits the whole name."""

    names: Sequence[str]
    pattern: re.Pattern[str] | None

    def among(self, found: Mapping[str, int]) -> dict[str, int]:
        if self.pattern is None:
            return {topic: found[topic] for topic in self.names if topic in found}
        fits = self.pattern.fullmatch
        return {topic: found[topic] for topic in sorted(found) if fits(topic)}

    def __str__(self) -> str:
        return ", ".join(self.names) if self.pattern is None else f"pattern {self.pattern.pattern}"


def topics_of(operator: str, topics: Sequence[Any], pattern: str | None) -> WantedTopics:
    if bool(topics) == (pattern is not None):
        raise ConfigError(f"{operator}: give names of topics, or pattern=")
    wrong = [
        f"{operator}: {each!r} is no name of a topic"
        for each in topics
        if not (isinstance(each, str) and _NAME.fullmatch(each))
    ]
    if wrong:
        raise ConfigError(*wrong)
    try:
        return WantedTopics(
            list(dict.fromkeys(topics)), None if pattern is None else re.compile(pattern)
        )
    except re.error as error:
        raise ConfigError(
            f"{operator}: pattern {pattern!r} is no regular expression: {error}"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBounds:
    """The places where partitions begin and end, and the choice for one that cannot begin there.

    Attributes:
        start: a name, ms since the epoch, or offsets by partition; others begin at the earliest.
        until: "now", ms since the epoch, or offsets by partition; None: there is no end.
        out_of_range: the rule for an offset that is not there any more.
    """

    start: str | int | Mapping[str, int]
    until: str | int | Mapping[str, int] | None
    out_of_range: OutOfRange

    @property
    def starts_ms(self) -> int:
        return self.start if isinstance(self.start, int) else MIN_MS

    def begin(
        self, names: Sequence[str], offsets: Offsets, *, is_first: bool
    ) -> dict[str, KafkaPlace]:
        """Return where new partitions begin and end.

        Those that were not there when the reading began are read from their earliest record.
        """
        starts, until = self._starts(names, offsets) if is_first else {}, self.until
        ends: Mapping[str, int] = {}
        if until is not None:
            known = offsets.at_time(names, until) if isinstance(until, int) else until
            if isinstance(known, str):
                known = {}
            ends = {name: known[name] if name in known else offsets.high(name) for name in names}
        return {
            name: KafkaPlace(
                offset=starts[name] if name in starts else offsets.low(name),
                end=ends.get(name),
                watermark_ms=MIN_MS,
            )
            for name in names
        }

    def recover(self, wanted: int, low: int, high: int, *, is_other: bool = False) -> Gap | None:
        """Return the step from an offset that is not there; None: the application is to fail."""
        if self.out_of_range == "fail":
            return None
        going = low if self.out_of_range == "earliest" else high
        return Gap(wanted, going, low, high, is_other)

    def _starts(self, names: Sequence[str], offsets: Offsets) -> Mapping[str, int]:
        if isinstance(self.start, int):
            found = offsets.at_time(names, self.start)
            # Gearpump's rule: a time behind all that is known stands for the end.
            return {name: found[name] if name in found else offsets.high(name) for name in names}
        if not isinstance(self.start, str):
            return {name: self.start[name] for name in names if name in self.start}
        if self.start == "latest":
            return {name: offsets.high(name) for name in names}
        return offsets.committed(names) if self.start == "committed" else {}


def bounds_of(operator: str, start: Any, until: Any, out_of_range: Any, group: Any) -> ReadBounds:
    mistakes: list[str] = []
    begins = _place_of(f"{operator}: start", start, _STARTS, mistakes)
    ends = None if until is None else _place_of(f"{operator}: until", until, ("now",), mistakes)
    if out_of_range not in get_args(OutOfRange):
        mistakes.append(
            f"{operator}: out_of_range is {out_of_range!r}, must be one of "
            f"{', '.join(get_args(OutOfRange))}"
        )
    if begins == "committed" and not group:
        mistakes.append(f'{operator}: start="committed" needs to know whose offsets: give group=')
    if mistakes:
        raise ConfigError(*mistakes)
    return ReadBounds(start=begins, until=ends, out_of_range=out_of_range)


def _place_of(
    what: str, given: Any, names: Collection[str], mistakes: list[str]
) -> str | int | Mapping[str, int]:
    if isinstance(given, Mapping):
        mistakes += [
            f"{what}: {key!r}: {at!r} is no partition with an offset: write {{'orders/0': 15}}"
            for key, at in given.items()
            if not (isinstance(key, str) and _PART.fullmatch(key) and type(at) is int and at >= 0)
        ]
        return given
    if isinstance(given, str):
        if given not in names:
            mistakes.append(
                f"{what} is {given!r}, must be one of {', '.join(names)}, a time, or offsets by "
                "partition"
            )
        return given
    try:
        return event_time_ms(given)
    except ConfigError as error:
        mistakes += [f"{what}: {each}" for each in error.mistakes]
        return 0
