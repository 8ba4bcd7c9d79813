"""Questions and answers as frames, see `gearpy.wire.control_codec`."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import (
    ApplicationFailed,
    ConfigError,
    GearpyError,
    ProtocolError,
    SubmitRefused,
)
from gearpy.ids import AppId
from gearpy.messages.cluster import ListWorkers, Refused, Submitted
from gearpy.messages.node import Letter, Ping
from gearpy.wire.codec import encode_control
from gearpy.wire.connection.frames import Frame, FrameDecoder, FrameKind, FrameLimits, encode_frame
from gearpy.wire.control_codec import (
    decode_answer,
    decode_node,
    decode_reply,
    decode_request,
    encode_answer,
    encode_error,
    encode_node,
    encode_reply,
    encode_request,
    encode_tell,
    request_id_of,
)

LIMITS = FrameLimits()


def only_frame(buffers: list[bytes | memoryview]) -> Frame:
    """Return the one frame in some buffers."""
    (frame,) = FrameDecoder(LIMITS).feed(b"".join(buffers))
    return frame


def error_after(error: Exception) -> object:
    """Return what an error is when it arrives."""
    return decode_reply(only_frame(encode_error(1, error, LIMITS)))[1]


@given(st.integers(0, 2**64 - 1))
def test_a_question_and_its_answer_carry_one_id(request_id: int) -> None:
    """The invariant: an answer finds its question."""
    question = only_frame(encode_request(request_id, ListWorkers(), LIMITS))
    answer = only_frame(encode_reply(request_id, Submitted(app_id=AppId(7)), LIMITS))

    assert (request_id_of(question), decode_request(question)) == (request_id, ListWorkers())
    assert decode_reply(answer) == (request_id, Submitted(app_id=AppId(7)))


def test_a_tell_wants_no_answer() -> None:
    """It has no id."""
    frame = only_frame(encode_tell(Refused(reason="no"), LIMITS))

    assert request_id_of(frame) is None
    assert decode_request(frame) == Refused(reason="no")


def test_nothing_is_an_answer() -> None:
    """A handler that returns None has handled the question."""
    assert decode_reply(only_frame(encode_reply(3, None, LIMITS))) == (3, None)


@pytest.mark.parametrize("error", [SubmitRefused("name taken"), ConfigError("one\ntwo")])
def test_an_error_of_ours_arrives_as_its_class(error: GearpyError) -> None:
    """The asker can catch it by class."""
    arrived = error_after(error)

    assert type(arrived) is type(error)
    assert str(arrived) == str(error)


@pytest.mark.parametrize("error", [KeyError("k"), ApplicationFailed("app", "it broke")])
def test_another_error_arrives_with_its_name_and_text(error: Exception) -> None:
    """No class is looked up by a name from the network."""
    arrived = error_after(error)

    assert type(arrived) is GearpyError
    assert str(arrived) == f"{type(error).__name__}: {error}"


def test_a_huge_error_is_cut_to_fit() -> None:
    """The answer must not be refused for its size."""
    assert len(str(error_after(ConfigError("x" * 10_000_000)))) == 100_000


@given(st.sampled_from(FrameKind), st.binary(max_size=60))
def test_malformed_frames_are_protocol_errors(kind: FrameKind, body: bytes) -> None:
    """And nothing else, on either side."""
    frame = Frame(kind, memoryview(body))

    for decode in (request_id_of, decode_reply):
        with suppress(ProtocolError):
            decode(frame)


@pytest.mark.parametrize("body", [b"", bytes(8), bytes(8) + b"\x01?", bytes(8) + b"\x02\x91"])
def test_a_malformed_reply_is_refused(body: bytes) -> None:
    """Too short, surplus bytes, no error in it."""
    with pytest.raises(ProtocolError, match="CONTROL_REPLY"):
        decode_reply(Frame(FrameKind.CONTROL_REPLY, memoryview(body)))


@pytest.mark.parametrize("answer", [None, Submitted(app_id=AppId(7))])
def test_the_answer_in_a_letter_arrives(answer: object) -> None:
    """None is an answer, too."""
    assert decode_answer(encode_answer(answer)) == answer


def test_an_error_in_a_letter_arrives_as_what_it_was() -> None:
    """As in a reply."""
    error = decode_answer(encode_answer(SubmitRefused("the name is taken")))

    assert isinstance(error, SubmitRefused)
    assert str(error) == "the name is taken"


@pytest.mark.parametrize("body", [b"", b"\x00", b"\x01surplus", b"\x02", b"\x07"])
def test_a_malformed_answer_in_a_letter_is_refused(body: bytes) -> None:
    """It fails the question, not the process."""
    with pytest.raises(ProtocolError, match="malformed"):
        decode_answer(body)


def test_what_nodes_say_arrives() -> None:
    """A letter holds another message, encoded."""
    letter = Letter(number=1, to="master", body=encode_control(ListWorkers()))

    assert decode_node(only_frame(encode_node(letter, LIMITS))) == letter


@pytest.mark.parametrize(
    "frame",
    [
        encode_tell(Ping(number=1), LIMITS),
        encode_frame(FrameKind.NODE, [encode_control(ListWorkers())], LIMITS),
        encode_frame(FrameKind.NODE, [b"\xff"], LIMITS),
    ],
    ids=["another frame", "another message", "no message"],
)
def test_nodes_say_nothing_else(frame: list[bytes | memoryview]) -> None:
    """What is meant for an actor comes in a letter."""
    with pytest.raises(ProtocolError):
        decode_node(only_frame(frame))
