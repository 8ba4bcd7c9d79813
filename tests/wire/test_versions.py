"""Messages between processes, also of two versions; see `gearpy.messages.versions`."""

import dataclasses
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gearpy.errors import GearpyError, ProtocolError
from gearpy.ids import ActorPath, AppId, WorkerId
from gearpy.messages.client import ListWorkers, WorkerList
from gearpy.messages.cluster import LastAnswer, RegisterWorker
from gearpy.messages.peer import Letter
from gearpy.messages.summaries import ErrorCard, WorkerSummary
from gearpy.messages.versions import ADDED, NEWEST
from gearpy.wire.codec import (
    CONTROL_CLASSES,
    decode_answer,
    decode_control,
    decode_peer,
    encode_answer,
    encode_control,
    encode_peer,
)
from gearpy.wire.connection.frames import FrameDecoder, FrameLimits
from tests.wire.message_fields import record_of

OLDER: Final = NEWEST - 1
#: The messages of the version before, a line each; another gearpy may be one that speaks these.
RECORD: Final = Path(__file__).with_name(f"version{OLDER}.txt")
WORKERS: Final = WorkerList(
    workers=(WorkerSummary(worker_id=WorkerId(1), slots=2, free_slots=1, version="9.9"),)
)
OLDER_WORKERS: Final = WorkerList(
    workers=(WorkerSummary(worker_id=WorkerId(1), slots=2, free_slots=1),)
)

_WHAT_TO_DO: Final = f"""
A process of protocol version {OLDER} knows these messages otherwise: see tests/wire/{RECORD.name}.
- An added field needs a default, and a line in ADDED of gearpy/messages/versions.py.
- An added message needs a line there, with () in place of fields, and a use that can do without it.
- What an older process knows is neither changed nor removed: add another field, or message.
If version {NEWEST} has been released, raise NEWEST first, begin ADDED anew, and put the record of
the release there: `python -m tests.wire.message_fields > tests/wire/version{NEWEST}.txt`.
"""


def plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        names = {field.name for field in msgspec.structs.fields(value)}
        names -= set(ADDED.get(type(value).__name__, ()))
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value


def test_messages_are_those_of_the_version_before_but_for_what_is_listed() -> None:
    """A change that nobody has listed would be found by users, in the middle of an upgrade."""
    now = record_of(CONTROL_CLASSES, ADDED)
    known = RECORD.read_text(encoding="utf-8").splitlines()

    changed = sorted({*now} ^ {*known})
    assert not changed, "\n".join([*changed, _WHAT_TO_DO])


def test_what_is_listed_is_there_and_has_a_default() -> None:
    for name, added in ADDED.items():
        fields = {each.name: each for each in msgspec.structs.fields(CONTROL_CLASSES[name])}
        for field in added:
            assert fields[field].default is not dataclasses.MISSING, f"{name}.{field}"


# Hypothesis takes the sign that a class shows for a default that is made anew for a value.
for _cls in CONTROL_CLASSES.values():
    if _made := [
        each
        for each in msgspec.structs.fields(_cls)
        if each.default_factory is not msgspec.NODEFAULT
    ]:
        st.register_type_strategy(
            _cls, st.builds(_cls, **{each.name: st.from_type(each.type) for each in _made})
        )


@pytest.mark.parametrize("cls", CONTROL_CLASSES.values(), ids=CONTROL_CLASSES.keys())
@settings(max_examples=3, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_message_arrives_as_it_was_sent_also_between_two_versions(
    cls: type, data: st.DataObject
) -> None:
    """Between two, whole but for what the older one does not know; it reads what it knows."""
    message = data.draw(st.from_type(cls))

    same = decode_control(encode_control(message))
    assert type(same) is cls
    assert same == message
    if ADDED.get(cls.__name__) == ():  # New itself: a letter carries it as it is.
        with pytest.raises(ProtocolError, match=f"no control message '{cls.__name__}'"):
            encode_control(message, OLDER)
        return

    sent = encode_control(message, OLDER)
    arrived: Any = decode_control(sent)

    assert type(arrived) is cls
    assert plain(arrived) == plain(message)
    assert encode_control(arrived, OLDER) == sent
    for added in ADDED.get(cls.__name__, ()):
        (field,) = (each for each in msgspec.structs.fields(cls) if each.name == added)
        assert getattr(arrived, added) == field.default
    version, name, fields = msgspec.msgpack.decode(sent)
    (line,) = (
        each
        for each in RECORD.read_text(encoding="utf-8").splitlines()
        if each.startswith(f"{cls.__name__} | ")
    )
    known = [each.name for each in msgspec.structs.fields(cls) if f" {each.name}: " in line]
    assert (version, name, list(fields)) == (OLDER, cls.__name__, known)


def test_added_fields_are_left_out_at_any_depth() -> None:
    """An older process would refuse the whole answer for one of them."""
    assert decode_control(encode_control(WORKERS)) == WORKERS
    assert decode_control(encode_control(WORKERS, OLDER)) == OLDER_WORKERS


def test_each_version_is_strict() -> None:
    message = RegisterWorker(worker=ActorPath("a:1#0", "w"), slots=1, version="9.9")
    newer = msgspec.msgpack.decode(encode_control(message))[2]
    older = msgspec.msgpack.decode(encode_control(message, OLDER))[2]

    for version, fields, text in (
        (OLDER, newer, "RegisterWorker: unknown field 'version'"),
        (NEWEST, older, "RegisterWorker: missing field 'version'"),
        (OLDER, older | {"x": 1}, "RegisterWorker: unknown field 'x'"),
    ):
        with pytest.raises(ProtocolError, match=text):
            decode_control(msgspec.msgpack.encode((version, "RegisterWorker", fields)))


def test_text_that_is_no_unicode_is_escaped_for_older_processes_too() -> None:
    arrived = decode_control(encode_control(ErrorCard(cause="no file \udcff"), OLDER))

    assert arrived == ErrorCard(cause="no file \\udcff")


def through(letter: Letter, version: int) -> Letter:
    (frame,) = FrameDecoder(FrameLimits()).feed(
        b"".join(encode_peer(letter, FrameLimits(), version))
    )
    assert msgspec.msgpack.decode(frame.body)[0] == version
    arrived = decode_peer(frame)
    assert isinstance(arrived, Letter)
    return arrived


def test_letters_and_what_is_in_them_are_of_the_version_of_their_connection() -> None:
    answer = LastAnswer(
        app_id=AppId(1), launch=1, kind="WorkerList", answer=encode_control(WORKERS)
    )
    older = msgspec.structs.replace(answer, answer=encode_control(WORKERS, OLDER))
    for message, expected in ((WORKERS, OLDER_WORKERS), (answer, older)):
        told = Letter(number=1, to="master", body=encode_control(message))
        answered = Letter(number=1, to="", body=encode_answer(message), answers=7)

        assert through(told, NEWEST) == told
        assert through(answered, NEWEST) == answered
        body = through(told, OLDER).body
        assert msgspec.msgpack.decode(body)[0] == OLDER
        assert decode_control(body) == expected
        assert decode_answer(through(answered, OLDER).body) == expected


@pytest.mark.parametrize("answer", [None, GearpyError("no")])
def test_answers_without_a_message_are_the_same_in_all_versions(answer: object) -> None:
    letter = Letter(number=1, to="", body=encode_answer(answer), answers=7)

    assert through(letter, OLDER) == letter


def test_a_message_that_is_new_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver says so, as it knows who has asked; the letter, which has a number, arrives."""
    monkeypatch.setitem(ADDED, "ListWorkers", ())
    letter = Letter(number=1, to="", body=encode_control(ListWorkers()), ask=1)
    in_older = msgspec.msgpack.encode((OLDER, "ListWorkers", {}))

    assert through(letter, OLDER) == letter
    with pytest.raises(ProtocolError, match="no control message 'ListWorkers' in protocol version"):
        encode_control(ListWorkers(), OLDER)
    with pytest.raises(ProtocolError, match="unknown control message 'ListWorkers'"):
        decode_control(in_older)
