"""Files of the coordinator log as bytes: read as they were written, or refused."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.core.coordinator.codec import (
    CommitMark,
    check_message,
    decode_mark,
    decode_segment,
    encode_mark,
    encode_segment,
    salvage_segment,
)
from gearpy.core.coordinator.log import CoordinatorMessage, draft
from gearpy.errors import ConfigError, LogDamaged

NAME = "segment-0000000001-0001-00000000-0000000002"
LOG = "app3/coordinator"
MESSAGE = CoordinatorMessage(
    type="set-config",
    key="job.id",
    values={"value": "1234"},
    host="one",
    username="ada",
    source="app master",
    timestamp_ms=7,
)

PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def decoded(data: bytes, name: str = NAME) -> list[CoordinatorMessage]:
    return list(decode_segment(data, name=name, log=LOG))


@pytest.mark.slow
@given(
    st.lists(
        st.builds(
            CoordinatorMessage,
            type=st.text(),
            key=st.text(),
            values=st.none() | st.dictionaries(st.text(), PLAIN),
            host=st.text(),
            username=st.text(),
            source=st.text(),
            timestamp_ms=st.integers(-(2**63), 2**63 - 1),
            version=st.integers(0, 2**32),
        ),
        max_size=3,
    )
)
def test_messages_come_back_as_they_were(messages: list[CoordinatorMessage]) -> None:
    """The invariant; what is plain passes the check, too."""
    for each in messages:
        if each.type and each.key and len(each.type) <= 100:
            check_message(draft(each.type, each.key, each.values))

    assert decoded(encode_segment(messages, name=NAME)) == messages


def test_a_message_is_a_key_and_a_value() -> None:
    """`CoordinatorStreamMessage`: `[version, type, key]`, and who says what, and when."""
    record = encode_segment([MESSAGE], name=NAME)[30:]

    assert msgspec.msgpack.decode(record) == [
        [1, "set-config", "job.id"],
        {
            "host": "one",
            "username": "ada",
            "source": "app master",
            "timestamp": 7,
            "values": {"value": "1234"},
        },
    ]


def test_a_file_that_ends_too_soon_is_damaged() -> None:
    data = encode_segment([MESSAGE], name=NAME)

    for size in range(len(data)):
        with pytest.raises(LogDamaged) as damage:
            decoded(data[:size])
        assert damage.value.file == f"{LOG}/{NAME}"
    with pytest.raises(LogDamaged, match="1 bytes follow its last message"):
        decoded(data + b"\0")


def test_a_file_with_a_flipped_bit_is_damaged() -> None:
    data = encode_segment([MESSAGE], name=NAME)

    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(LogDamaged):
            decoded(bytes(flipped))


def test_a_newer_format_is_told() -> None:
    data = bytearray(encode_segment([], name=NAME))
    mark = bytearray(encode_mark(CommitMark(1), name=NAME))
    data[9] = mark[9] = 3

    with pytest.raises(LogDamaged, match="version 3, this gearpy reads version 2; use the gearpy"):
        decoded(bytes(data))
    with pytest.raises(LogDamaged, match="version 3, this gearpy reads version 2"):
        decode_mark(bytes(mark), name=NAME, log=LOG)


@pytest.mark.parametrize(
    "body",
    [
        5,
        [[1, "t"], {}],
        [["1", "t", "k"], {}],
        [[1, "t", "k"], None],
        [[1, "t", "k"], {"host": 5}],
        [[1, "t", "k"], {"timestamp": "now"}],
        [[1, "t", "k"], {"values": 5}],
    ],
)
def test_what_is_whole_but_no_message_is_damage(
    body: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded = msgspec.msgpack.encode(body)
    monkeypatch.setattr(msgspec.msgpack, "encode", lambda _: encoded)

    with pytest.raises(LogDamaged, match="message 1 of 1 is malformed"):
        decoded(encode_segment([MESSAGE], name=NAME))


@given(st.integers(1, 5), st.data())
def test_damage_of_a_message_leaves_the_others(count: int, data: st.DataObject) -> None:
    """The invariant: what is salvaged was stored, in order; nothing else of the file is lost."""
    messages = [replace(MESSAGE, key=str(each), values={"v": "x" * each}) for each in range(count)]
    whole = encode_segment(messages, name=NAME)
    begin = 22 + 8 * count
    at = data.draw(st.integers(begin, len(whole) - 1))
    flipped = bytes([*whole[:at], whole[at] ^ data.draw(st.integers(1, 255)), *whole[at + 1 :]])

    found = salvage_segment(flipped, name=NAME, log=LOG)

    assert found.lost == 1
    assert found.damage is not None
    assert [each for each in messages if each in found.messages] == [*found.messages]
    assert len(found.messages) == count - 1
    cut = salvage_segment(whole[:at], name=NAME, log=LOG)
    assert [*cut.messages] == messages[: len(cut.messages)]
    assert cut.lost == count - len(cut.messages) > 0


@given(
    st.builds(CommitMark, st.integers(0, 2**40), st.integers(0, 9), st.lists(st.text()).map(tuple))
)
def test_a_mark_comes_back_as_it_was(mark: CommitMark) -> None:
    """Under its own name, and whole; else it is damaged."""
    data = encode_mark(mark, name=NAME)

    assert decode_mark(data, name=NAME, log=LOG) == mark
    with pytest.raises(LogDamaged, match="the checksum of its header"):
        decode_mark(data, name=f"{NAME}0", log=LOG)
    for at in range(len(data)):
        with pytest.raises(LogDamaged):
            decode_mark(data[:at], name=NAME, log=LOG)


def nested(levels: int) -> Any:
    return [nested(levels - 1)] if levels else None


@pytest.mark.parametrize(
    ("draft", "mistake"),
    [
        (draft("", "k", {}), "type '' .* has 0 characters, allowed are 1 to 100"),
        (draft("t" * 101, "k", {}), "has 101 characters, allowed are 1 to 100"),
        (draft("t", "", {}), "the key of a message t has 0 characters"),
        (draft("t", "k" * 10_001, None), "has 10001 characters, allowed are 1 to 10000"),
        (draft("t", "k", {"a": (1,)}), r"message t k holds '\(1,\)' \(tuple\)"),
        (draft("t", "k", {"a": [{1}]}), r"\(set\): values are None, bool"),
        (draft("t", "k", {"a": 2**64}), r"'18446744073709551616' \(int\)"),
        (draft("t", "k", {"a": {1: 2}}), r"'\{1: 2\}' \(dict\)"),
        (draft("t", "k", {"a": "\ud800"}), "message t 'k' has text that is none"),
        (draft("t", "k", {"a": nested(31)}), "values nest deeper than 32"),
    ],
)
def test_what_would_not_come_back_is_refused(draft: CoordinatorMessage, mistake: str) -> None:
    with pytest.raises(ConfigError, match=mistake):
        check_message(draft)
