"""Whether what was written arrives, see `gearpy.wire.connection.receipts`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import ProtocolError
from gearpy.wire.connection.frames import Frame, FrameDecoder, FrameKind, FrameLimits
from gearpy.wire.connection.receipts import Unreceived, encode_receipt

INTERVAL_MS, TIMEOUT_MS = 1000, 6000


def a_receipt(received: int) -> Frame:
    wire = b"".join(encode_receipt(received, FrameLimits()))
    (frame,) = FrameDecoder(FrameLimits()).feed(wire)
    return frame


def unreceived() -> Unreceived:
    return Unreceived(interval_ms=INTERVAL_MS, timeout_ms=TIMEOUT_MS)


def lost_after(link: Unreceived, start_ms: int, end_ms: int) -> int | None:
    """Tick in time; return when the connection was lost."""
    for now_ms in range(start_ms, end_ms + 1, INTERVAL_MS):
        if link.is_lost(now_ms):
            return now_ms
    return None


def test_bytes_that_are_not_confirmed_are_lost_after_the_timeout() -> None:
    """It counts from when they were written, however long the link was idle before."""
    link = unreceived()
    link.on_written(10, 100_000)

    assert lost_after(link, 101_000, 200_000) == 106_000
    assert link.reason(106_000) == "10 bytes did not arrive, silent for 6000 ms"


def test_writing_more_does_not_make_up_for_silence() -> None:
    link = unreceived()
    link.on_written(10, 0)

    for second in range(1, 6):
        assert not link.is_lost(second * 1000)
        link.on_written(10, second * 1000)

    assert link.is_lost(6000)


@pytest.mark.parametrize("received", [11, 2**64 - 1])
def test_a_receipt_for_more_than_was_sent_is_an_error(received: int) -> None:
    """Something else is at the other end, or something was repeated on the way."""
    link = unreceived()
    link.on_written(10, 0)

    with pytest.raises(ProtocolError, match=f"{received} bytes: 10 were sent"):
        link.on_receipt(a_receipt(received), 1)


def test_a_receipt_for_less_than_the_one_before_is_an_error() -> None:
    link = unreceived()
    link.on_written(10, 0)
    link.on_receipt(a_receipt(5), 1)

    with pytest.raises(ProtocolError, match="4 bytes: 10 were sent and 5 confirmed before"):
        link.on_receipt(a_receipt(4), 2)


@pytest.mark.parametrize(
    "frame",
    [
        Frame(FrameKind.ACK, memoryview(bytes(8))),
        Frame(FrameKind.RECEIPT, memoryview(bytes(7))),
        Frame(FrameKind.RECEIPT, memoryview(b"")),
    ],
)
def test_anything_but_a_receipt_is_an_error(frame: Frame) -> None:
    link = unreceived()
    link.on_written(10, 0)

    with pytest.raises(ProtocolError, match="on a link that goes one way"):
        link.on_receipt(frame, 1)


@given(st.lists(st.tuples(st.sampled_from(["write", "confirm", "tick"]), st.integers(1, 900))))
def test_nobody_is_lost_who_confirms_in_time(steps: list[tuple[str, int]]) -> None:
    """The invariant, for any order of events with ticks that are in time."""
    link = unreceived()
    now_ms = written = received = 0
    quiet_since_ms = 0

    for what, number in steps:
        now_ms += number
        if what == "write":
            quiet_since_ms = now_ms if received == written else quiet_since_ms
            written += number
            link.on_written(number, now_ms)
        elif what == "confirm":
            received = min(written, received + number)
            quiet_since_ms = now_ms
            link.on_receipt(a_receipt(received), now_ms)
        else:
            is_owed = received < written
            if link.is_lost(now_ms):
                assert is_owed
                assert now_ms - quiet_since_ms >= TIMEOUT_MS
                return
        assert link.is_settled == (received == written)
