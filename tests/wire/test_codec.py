"""Control messages as bytes, see `gearpy.wire.codec`."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.cluster.app.events import CoreEvent
from gearpy.errors import ApplicationFailed, ConfigError, GearpyError, ProtocolError, SubmitRefused
from gearpy.ids import AppId
from gearpy.messages import app, cluster
from gearpy.messages.client import ListWorkers, Submitted
from gearpy.messages.peer import Letter
from gearpy.messages.summaries import ErrorCard
from gearpy.messages.versions import NEWEST
from gearpy.wire.codec import (
    CONTROL_CLASSES,
    decode_answer,
    decode_control,
    decode_peer,
    encode_answer,
    encode_control,
    encode_peer,
)
from gearpy.wire.connection.frames import Frame, FrameDecoder, FrameKind, FrameLimits, encode_frame


def envelope(name: str, fields: Any, version: Any = NEWEST) -> bytes:
    return msgspec.msgpack.encode((version, name, fields))


def test_the_public_dataclasses_of_both_message_modules_can_travel() -> None:
    assert {"SubmitApplication", "ErrorCard", "LaunchTasks", "TaskClock"} <= CONTROL_CLASSES.keys()
    assert "MasterMessage" not in CONTROL_CLASSES


@pytest.mark.parametrize(
    "union",
    [CoreEvent, app.ExecutorMessage, cluster.MasterMessage, cluster.WorkerMessage],
    ids=["to app master", "to executor", "to master", "to worker"],
)
def test_whatever_an_actor_is_told_can_travel(union: Any) -> None:
    """One that was forgotten in the list would end who sends it."""
    assert set(get_args(union)) <= set(CONTROL_CLASSES.values())


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (envelope("Nonsense", {}), "unknown control message 'Nonsense'"),
        (envelope("ListApplications", {}, version=9), "protocol version 9, expected 1 and 2"),
        (envelope("ListApplications", {}, version="1"), "Expected `int`"),
        (envelope("Submitted", {}), r"Submitted: .*missing required field `app_id`"),
        (envelope("Submitted", {"app_id": "1"}), r"Submitted: Expected `int`.*\$\.app_id"),
        (envelope("Submitted", {"app_id": 1.0}), r"Submitted: Expected `int`.*\$\.app_id"),
        (envelope("Submitted", {"app_id": 1, "x": 2}), "Submitted: unknown field 'x'"),
        (envelope("ErrorCard", {"cause": "x"}), "ErrorCard: missing field 'epoch'"),
        (envelope("Submitted", [1]), "Submitted: Expected `object`"),
        (envelope("RegisterWorker", {"worker": ["a"], "slots": 1}), r"\$\.worker"),
        (b"", "malformed control message"),
        (b"\x93\x01", "malformed control message"),
        (envelope("ListApplications", {}) + b"\x00", "malformed control message"),
    ],
)
def test_a_message_in_any_other_form_is_refused_by_class_and_field(data: bytes, text: str) -> None:
    with pytest.raises(ProtocolError, match=text):
        decode_control(data)


def test_an_unknown_field_of_a_nested_value_is_found() -> None:
    artifact = {"kind": "file", "location": "", "attr": "", "args": [], "sudo": True}
    texts = {"name": "", "user": "", "resume_from": "", "checkpoints": "", "key": ""}
    fields = {**texts, "artifact": artifact, "executors": 1, "launches": 0, "config": {}}

    with pytest.raises(ProtocolError, match=r"unknown field 'sudo' - at `\$\.artifact`"):
        decode_control(envelope("SubmitApplication", fields))


def test_another_value_of_a_literal_is_refused() -> None:
    fields = {"kind": "pickle", "location": "", "attr": "", "args": []}

    with pytest.raises(ProtocolError, match=r"Artifact: Invalid enum value 'pickle'.*\$\.kind"):
        decode_control(envelope("Artifact", fields))


def test_text_that_is_no_unicode_is_escaped_and_not_lost() -> None:
    arrived = decode_control(encode_control(ErrorCard(cause="no file \udcff")))

    assert arrived == ErrorCard(cause="no file \\udcff")


def test_only_control_messages_can_be_encoded() -> None:
    """Anything else is a mistake of ours, found where it is sent."""
    with pytest.raises(AssertionError, match="int is no control message"):
        encode_control(AppId(1))


@given(st.binary(max_size=200))
def test_random_bytes_are_protocol_errors(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_control(data)


@given(st.integers(0, 200), st.integers(0, 255))
def test_damaged_bytes_are_protocol_errors_or_messages(at: int, byte: int) -> None:
    data = bytearray(encode_control(ErrorCard(cause="cause", operator="op")))
    data[at % len(data)] = byte

    try:
        message = decode_control(bytes(data))
    except ProtocolError:
        return

    assert type(message) in set(CONTROL_CLASSES.values())


@pytest.mark.parametrize("answer", [None, Submitted(app_id=AppId(7))])
def test_an_answer_arrives(answer: object) -> None:
    assert decode_answer(encode_answer(answer)) == answer


@pytest.mark.parametrize("error", [SubmitRefused("name taken"), ConfigError("one\ntwo")])
def test_an_error_of_ours_arrives_as_its_class(error: GearpyError) -> None:
    arrived = decode_answer(encode_answer(error))

    assert type(arrived) is type(error)
    assert str(arrived) == str(error)


@pytest.mark.parametrize("error", [KeyError("k"), ApplicationFailed("app", "it broke")])
def test_another_error_arrives_with_its_name_and_text(error: Exception) -> None:
    arrived = decode_answer(encode_answer(error))

    assert type(arrived) is GearpyError
    assert str(arrived) == f"{type(error).__name__}: {error}"


def test_a_huge_error_is_cut_to_fit() -> None:
    assert len(str(decode_answer(encode_answer(ConfigError("x" * 10_000_000))))) == 100_000


@pytest.mark.parametrize(
    "body", [b"", b"\x00", b"\x01surplus", b"\x02", b"\x02\x91", b"\x07", bytes(9)]
)
def test_a_malformed_answer_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="malformed"):
        decode_answer(body)


def only_frame(buffers: list[bytes | memoryview]) -> Frame:
    (frame,) = FrameDecoder(FrameLimits()).feed(b"".join(buffers))
    return frame


def test_a_letter_arrives() -> None:
    letter = Letter(number=1, to="master", body=encode_control(ListWorkers()))

    assert decode_peer(only_frame(encode_peer(letter, FrameLimits()))) == letter


@pytest.mark.parametrize(
    "frame",
    [
        encode_frame(FrameKind.ACK, [b""], FrameLimits()),
        encode_frame(FrameKind.PEER, [encode_control(ListWorkers())], FrameLimits()),
        encode_frame(FrameKind.PEER, [b"\xff"], FrameLimits()),
    ],
    ids=["another frame", "another message", "no message"],
)
def test_nodes_say_nothing_else(frame: list[bytes | memoryview]) -> None:
    with pytest.raises(ProtocolError):
        decode_peer(only_frame(frame))
