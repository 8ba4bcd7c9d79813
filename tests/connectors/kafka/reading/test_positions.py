"""Which partitions a task reads, where each begins and ends, and what becomes of a lost offset."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from gearpy.connectors.kafka.reading.positions import (
    Gap,
    OutOfRange,
    ReadBounds,
    bounds_of,
    name_of,
    topic_of,
    topics_of,
)
from gearpy.errors import ConfigError
from gearpy.ids import MIN_MS


class Known:
    """Brokers with two partitions: `a/0` has offsets 3 to 9, `a/1` none behind 5."""

    ranges = {"a/0": (3, 10), "a/1": (5, 5)}  # noqa: RUF012 - never changed

    def low(self, name: str) -> int:
        return self.ranges[name][0]

    def high(self, name: str) -> int:
        return self.ranges[name][1]

    def committed(self, names: Sequence[str]) -> Mapping[str, int]:
        return {name: 7 for name in names if name == "a/0"}

    def at_time(self, names: Sequence[str], time_ms: int) -> Mapping[str, int]:
        return {name: max(3, time_ms - 1000) for name in names if name == "a/0" and time_ms < 1010}


NAMES = ["a/0", "a/1"]


def bounds(
    start: Any = "earliest", until: Any = None, out_of_range: OutOfRange = "fail"
) -> ReadBounds:
    return bounds_of("kafka(a)", start, until, out_of_range, "g")


def begun(start: Any = "earliest", until: Any = None, *, is_first: bool = True) -> list[Any]:
    places = bounds(start, until).begin(NAMES, Known(), is_first=is_first)
    assert {place["watermark_ms"] for place in places.values()} == {MIN_MS}
    return [(places[name]["offset"], places[name]["end"]) for name in NAMES]


@pytest.mark.parametrize(
    ("start", "offsets"),
    [
        ("earliest", [3, 5]),
        ("latest", [10, 5]),
        ("committed", [7, 5]),  # Where the group has none, from the earliest.
        ({"a/0": 8}, [8, 5]),
        ({"a/0": 0}, [0, 5]),  # It may be lost; that is told when it is read.
        (1005, [5, 5]),
        (0, [3, 5]),
        (1010, [10, 5]),  # Gearpump's rule: a time behind all that is known stands for the end.
        (datetime.fromtimestamp(1.008, UTC), [8, 5]),
    ],
    ids=str,
)
def test_the_first_run_begins_as_start_says(start: Any, offsets: list[int]) -> None:
    assert [offset for offset, _ in begun(start)] == offsets


@pytest.mark.parametrize("start", ["earliest", "latest", "committed", {"a/0": 8}, 1010])
def test_partitions_that_come_later_are_read_from_their_first_record(start: Any) -> None:
    assert [offset for offset, _ in begun(start, is_first=False)] == [3, 5]


@pytest.mark.parametrize(
    ("until", "ends"),
    [
        (None, [None, None]),
        ("now", [10, 5]),
        ({"a/0": 6}, [6, 5]),
        ({"a/0": 0}, [0, 5]),
        (1006, [6, 5]),
        (1010, [10, 5]),
    ],
    ids=str,
)
def test_reading_ends_as_until_says(until: Any, ends: list[int | None]) -> None:
    assert [end for _, end in begun(until=until)] == ends


def test_a_start_by_time_leaves_out_what_is_older() -> None:
    assert bounds(1005).starts_ms == 1005
    assert {bounds(start).starts_ms for start in ("latest", "earliest", "committed")} == {MIN_MS}


@pytest.mark.parametrize(
    ("policy", "wanted", "gap"),
    [
        ("fail", 1, None),
        ("fail", 11, None),
        ("earliest", 1, Gap(1, 3, 3, 10)),
        ("earliest", 11, Gap(11, 3, 3, 10)),
        ("latest", 1, Gap(1, 10, 3, 10)),
        ("latest", 11, Gap(11, 10, 3, 10)),
    ],
)
def test_an_offset_that_is_not_there_follows_the_rule(
    policy: OutOfRange, wanted: int, gap: Gap | None
) -> None:
    assert bounds(out_of_range=policy).recover(wanted, 3, 10) == gap


@pytest.mark.parametrize(
    ("gap", "told", "lost"),
    [
        (Gap(1, 3, 3, 10), "offset 1 is not there any more: its records are 3 to 9: 2 were", 2),
        (Gap(1, 10, 3, 10), "offset 1 is not there any more: its records are 3 to 9: 2 were", 9),
        (
            Gap(1, 5, 5, 5),
            "offset 1 is not there any more: it has no records, and the next is 5",
            4,
        ),
        (Gap(9, 0, 0, 4), "records are 0 to 3: its topic was made again, or has lost its", 0),
        (Gap(9, 4, 0, 4), "records are 0 to 3: its topic was made again, or has lost its", 4),
        (Gap(2, 0, 0, 4, is_other=True), "made again since offset 2, and with it went what", 0),
        (Gap(2, 4, 0, 4, is_other=True), "made again since offset 2, and with it went what", 4),
    ],
)
def test_a_gap_tells_what_is_there_and_how_much_is_lost(gap: Gap, told: str, lost: int) -> None:
    assert told in str(gap)
    assert gap.lost == lost


def test_all_mistakes_of_bounds_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        bounds_of("kafka(a)", "first", {"a": 1, "a/1": -1}, "skip", None)
    assert list(caught.value.mistakes) == [
        (
            "kafka(a): start is 'first', must be one of earliest, latest, committed, a time, or "
            "offsets by partition"
        ),
        "kafka(a): until: 'a': 1 is no partition with an offset: write {'orders/0': 15}",
        "kafka(a): until: 'a/1': -1 is no partition with an offset: write {'orders/0': 15}",
        "kafka(a): out_of_range is 'skip', must be one of fail, earliest, latest",
    ]


def test_committed_offsets_are_those_of_a_group() -> None:
    with pytest.raises(ConfigError, match='start="committed" needs to know whose offsets'):
        bounds_of("kafka(a)", "committed", None, "fail", None)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"kafka\(a\): start: .*time zone"):
        bounds_of("kafka(a)", datetime(2026, 1, 1), None, "fail", None)  # noqa: DTZ001 - as meant


@pytest.mark.parametrize(
    ("names", "pattern", "text"),
    [
        ([], None, "give names of topics, or pattern="),
        (["a"], "b", "give names of topics, or pattern="),
        (["a b"], None, "'a b' is no name of a topic"),
        ([], "(", r"pattern '\(' is no regular expression"),
    ],
)
def test_topics_that_are_none_are_refused(names: list[str], pattern: str | None, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        topics_of("kafka", names, pattern)


def test_topics_are_found_by_name_or_as_a_whole_by_pattern() -> None:
    found = {"orders": 2, "orders-eu": 3, "old-orders": 1}
    assert topics_of("kafka", ["orders", "none", "orders"], None).among(found) == {"orders": 2}
    fitting = topics_of("kafka", [], "orders.*").among(found)
    assert fitting == {"orders": 2, "orders-eu": 3}


def test_a_name_tells_topic_and_number() -> None:
    assert topic_of(name_of("a.b-c", 12)) == ("a.b-c", 12)
