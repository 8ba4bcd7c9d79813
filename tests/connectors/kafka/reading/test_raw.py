"""Records as columns: parts of them, and several together."""

from typing import Any

from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.kafka.reading.raw import Raw, RawColumns

ALL = RawColumns(times=True, rest=True)
#: Of compacted topics, and of those with transactions, some are missing.
OFFSETS = st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True).map(sorted)


def a_raw(offsets: list[int], columns: RawColumns = ALL) -> Raw:
    """Return records in which all is told by their offsets."""
    messages = [
        Message(
            topic="t",
            partition=0,
            offset=at,
            value=None if at % 7 == 0 else b"v%d" % at,
            key=b"k%d" % at,
            timestamp=(1, 100 + at),
            headers=[("h", b"%d" % at)] if at % 2 else None,
        )
        for at in offsets
    ]
    return Raw.of(messages, columns)


def told(raw: Raw) -> list[Any]:
    columns = (raw.offsets, raw.bodies, raw.times, raw.keys, raw.headers)
    return list(zip(*columns, strict=True))


def right(offsets: list[int]) -> list[Any]:
    return [
        (
            at,
            None if at % 7 == 0 else b"v%d" % at,
            100 + at,
            b"k%d" % at,
            (("h", b"%d" % at),) if at % 2 else (),
        )
        for at in offsets
    ]


@given(offsets=OFFSETS, cut=st.integers(0, 12), end=st.integers(0, 45))
def test_parts_and_sums_have_the_same_records(offsets: list[int], cut: int, end: int) -> None:
    raw = a_raw(offsets)
    assert told(raw) == right(offsets)
    assert told(raw.before(end)) == right([at for at in offsets if at < end])
    first, second = raw.part(0, cut), raw.part(cut, len(raw))
    assert told(Raw.none().joined(first).joined(second)) == right(offsets)


@given(offsets=OFFSETS)
def test_offsets_without_a_gap_take_no_room(offsets: list[int]) -> None:
    raw = a_raw(offsets, RawColumns(times=False, rest=False))
    is_whole = offsets[-1] - offsets[0] == len(offsets) - 1
    assert isinstance(raw.offsets, range) == is_whole
    assert (raw.times, raw.keys, raw.headers) == ([], [], [])
