"""Records as columns: parts of them, and several together."""

from typing import Any

from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.kafka.reading.raw import BETWEEN, JoinedBodies, Raw, RawColumns

ALL = RawColumns(times=True, rest=True)
#: Of compacted topics, and of those with transactions, some are missing.
OFFSETS = st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True).map(sorted)


def a_raw(offsets: list[int], columns: RawColumns = ALL) -> Raw:
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


def of_bodies(bodies: list[bytes | None], first: int) -> Raw:
    messages = [
        Message(topic="t", partition=0, offset=first + at, value=body)
        for at, body in enumerate(bodies)
    ]
    return Raw.of(messages, RawColumns(times=False, rest=False, joins=True))


#: Objects, what looks like one, and what must not be taken for the blanks between two.
BODY = st.sampled_from(
    [
        b'{"a": 1}',
        b'{"a":\n1}',
        b"{",
        b"}",
        b"{\n}\n",
        b"",
        None,
        b"\n\t",
        b"{" + BETWEEN + b"}",
        b"{}" + BETWEEN + b"{}",
        BETWEEN,
    ]
)
BODIES = st.lists(st.just(b"{}") | BODY, min_size=1, max_size=6)


@given(first=BODIES, second=BODIES, cut=st.integers(0, 12))
def test_joined_values_can_be_had_back(
    first: list[bytes | None], second: list[bytes | None], cut: int
) -> None:
    raw = of_bodies(first, 0).joined(of_bodies(second, len(first)))
    bodies = first + second
    assert (list(raw.bodies), len(raw), list(raw.offsets)) == (
        bodies,
        len(bodies),
        [*range(len(bodies))],
    )
    assert list(raw.part(0, cut).bodies) == bodies[:cut]
    assert list(raw.part(cut, len(raw)).bodies) == bodies[cut:]


def test_objects_are_kept_in_one_piece() -> None:
    raw = of_bodies([b'{"a": 1}', b'{"a":\n2}'], 0).joined(of_bodies([b"{}"], 2))
    assert isinstance(raw.bodies, JoinedBodies)
    assert raw.bodies.pieces == [b'{"a": 1}' + BETWEEN + b'{"a":\n2}', b"{}"]
    assert raw.size_bytes == len(b"".join(raw.bodies.pieces))
