"""Messages between masters, in parts, and the fence against old orders."""

from collections.abc import Iterator

import pytest

from gearpy.cluster.quorum.member import PartsTaken, parts_of
from gearpy.core.consensus.fence import TermFence
from gearpy.core.consensus.messages import AppendEntries, ReplicaMessage, TakeOver
from gearpy.core.consensus.stored import LogEntry
from gearpy.errors import ProtocolError
from gearpy.messages.cluster import ReplicaPart


def entries(size: int) -> AppendEntries:
    return AppendEntries(
        term=3,
        previous_index=1,
        previous_term=2,
        entries=(LogEntry(term=3, command=b"x" * size), LogEntry(term=3, members=("a", "b"))),
        commit_index=1,
        round=5,
    )


def sent(message: ReplicaMessage) -> Iterator[ReplicaPart]:
    return parts_of("a", "", message, version=1, speaks=1)


@pytest.mark.parametrize("size", [0, 10, 2_000_000])
def test_a_message_arrives_as_it_was(size: int) -> None:
    taken, message = PartsTaken(), entries(size)

    *before, last = [taken.take(each) for each in sent(message)]

    assert before == [None] * len(before)
    assert last == message
    assert bool(before) == (size > 1_000_000)


def test_a_message_without_all_of_its_parts_is_dropped() -> None:
    """A connection broke between them; the next message is whole again."""
    taken = PartsTaken()
    first, *_, last = sent(entries(2_000_000))
    (other,) = sent(TakeOver(term=9))

    assert taken.take(last) is None
    assert taken.take(first) is None
    assert taken.take(other) == TakeOver(term=9)
    assert taken.take(last) is None


@pytest.mark.parametrize("data", [b"", b"\x93\x02\xa1X\x80", b"\x93\x01\xa1X\x80"])
def test_what_is_no_message_is_told(data: bytes) -> None:
    part = ReplicaPart(member="a", disk="", part=data, is_first=True, is_last=True)

    with pytest.raises(ProtocolError, match="master"):
        PartsTaken().take(part)


def test_a_fence_admits_the_newest_term() -> None:
    fence = TermFence()

    assert [fence.admits(term) for term in (0, 3, 2, 0, 3, 5, 4)] == [
        *(True, True, False, True, True, True, False)
    ]
    assert (fence.term, fence.refused) == (5, 2)
    assert fence.why(4).startswith("it is of a master of term 4, and one of term 5 has spoken")
