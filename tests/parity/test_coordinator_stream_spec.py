"""Promises of Samza's tests of the coordinator stream.

`TestCoordinatorStreamMessage`, `TestCoordinatorStreamSystemProducer`,
`TestCoordinatorStreamSystemConsumer` and `TestCoordinatorStreamWriter`. Registering, starting and
stopping of systems has no counterpart: a log is opened, and that is its bootstrap.
"""

from dataclasses import replace

import msgspec
import pytest

from gearpy.core.coordinator.codec import decode_segment, encode_segment
from gearpy.core.coordinator.log import VERSION, CoordinatorMessage, draft
from gearpy.core.coordinator.views import SET_CONFIG, ConfigView
from gearpy.errors import ConfigError
from gearpy.storage.checkpoints import MemoryCheckpoints
from gearpy.storage.coordinator_log import CoordinatorLog, read_log

PREFIX = "k3f9a1c2/app1"
NAME = "segment-0000000001-0001-00000000-0000000002"


def a_log(checkpoints: MemoryCheckpoints, launch: int | None = 1) -> CoordinatorLog:
    """Open a log."""
    return CoordinatorLog(checkpoints, PREFIX, launch=launch, source="source", wall_ms=lambda: 1)


def set_config(key: str, value: str) -> CoordinatorMessage:
    """Return Samza's `SetConfig`."""
    return draft(SET_CONFIG, key, {"value": value})


def sent(*drafts: CoordinatorMessage) -> list[CoordinatorMessage]:
    """Return what is in the log after these were appended, one after the other."""
    checkpoints = MemoryCheckpoints()
    log = a_log(checkpoints)
    for each in drafts:
        log.append([each])
    return list(read_log(checkpoints, PREFIX).history)


def test_a_message_says_where_it_is_from_and_when() -> None:
    """`TestCoordinatorStreamMessage.testCoordinatorStreamMessage`."""
    (message,) = sent(set_config("key", "value"))

    assert message.source == "source"
    assert message.version == VERSION
    assert message.username is not None
    assert message.timestamp_ms > 0
    assert message.values is not None
    assert decode_segment(encode_segment([message], name=NAME), name=NAME, log="") == [message]


def test_a_message_without_values_is_a_delete() -> None:
    """`TestCoordinatorStreamMessage.testCoordinatorStreamMessageIsDelete`, `.testDelete`.

    Samza's has no map at all, and so does not say who has deleted; ours does.
    """
    (message,) = sent(draft("delete-type", "key", None))

    assert (message.type, message.key, message.values) == ("delete-type", "key", None)
    assert message.version == VERSION
    assert message.source == "source"


def test_set_config_has_one_value() -> None:
    """`TestCoordinatorStreamMessage.testSetConfig`."""
    (message,) = sent(set_config("key", "value"))

    assert (message.type, message.key, message.version) == ("set-config", "key", VERSION)
    assert message.values == {"value": "value"}


def test_a_deleted_value_of_the_configuration_is_none() -> None:
    """`TestCoordinatorStreamMessage.testGetConfigValueShouldReturnNullForDeletedConfigs`."""
    log = a_log(MemoryCheckpoints())
    log.append([set_config("random-key", "value"), draft(SET_CONFIG, "random-key", None)])

    assert ConfigView(log.state).read().get("random-key") is None


def test_messages_are_equal_when_they_say_the_same() -> None:
    """`TestCoordinatorStreamMessage.testHashCodeAndEquality`, `.testEqualsNPEonNullValues`."""
    message = CoordinatorMessage(type=SET_CONFIG, key="key1", values={"value": "value1"})

    assert message == replace(message)
    assert message != replace(message, key="key2")
    assert replace(message, values={}) != replace(message, values=None)


def test_a_producer_sends_messages_in_order() -> None:
    """`TestCoordinatorStreamSystemProducer.testCoordinatorStreamSystemProducer`."""
    drafts = [
        set_config("job.name", "my-job-name"),
        set_config("job.id", "1234"),
        draft(SET_CONFIG, "job.name", None),
    ]

    assert [draft(each.type, each.key, each.values) for each in sent(*drafts)] == drafts


def test_a_consumer_bootstraps_the_configuration() -> None:
    """`TestCoordinatorStreamSystemConsumer.testCoordinatorStreamSystemConsumer`.

    Asking before the bootstrap cannot happen: there is no log that was not read.
    """
    checkpoints = MemoryCheckpoints()
    log = a_log(checkpoints)
    log.append([set_config("job.name", "my-job-name"), set_config("job.id", "1234")])
    log.append([draft(SET_CONFIG, "job.name", None)])

    for bootstrapped in (a_log(checkpoints, None), a_log(checkpoints, 2)):
        assert ConfigView(bootstrapped.state).read() == {"job.id": "1234"}


def test_a_value_that_was_written_again_is_the_last_one() -> None:
    """`TestCoordinatorStreamSystemConsumer.testOrderKeyRewrite`: it must not be deduplicated."""
    drafts = [set_config("key1", each) for each in ("value1", "value2", "value1")]
    checkpoints = MemoryCheckpoints()
    log = a_log(checkpoints)
    for each in (*drafts, set_config("key2", "x"), drafts[2]):
        log.append([each])

    last = a_log(checkpoints, 2).state.messages()[-1]

    assert (last.key, last.values) == ("key1", {"value": "value1"})


def test_a_writer_sends_a_value_as_values() -> None:
    """`TestCoordinatorStreamWriter.testSendMessage`: the key and the value of `values`.

    Samza's writer refuses types that it does not know; ours keeps them, for tools and versions to
    come, and refuses what cannot be stored.
    """
    (message,) = sent(set_config("key0", "value0"))
    record = encode_segment([message], name=NAME)[30:]
    (version, type_, key), value = msgspec.msgpack.decode(record)

    assert (version, type_, key) == (1, "set-config", "key0")
    assert value["values"]["value"] == "value0"
    assert [each.type for each in sent(draft("invalid-type", "key", {}))] == ["invalid-type"]
    with pytest.raises(ConfigError):
        sent(draft("", "key", {}))
