"""Messages that an actor has no use for do it no harm, and are noted."""

import logging
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.actor.api import Actor, BatchActor, NotTaken
from gearpy.actor.threaded import ThreadedActorSystem
from gearpy.actor.unknown import QUIET_MS, UnknownMessages
from gearpy.ids import ActorPath
from gearpy.metrics.process import process_meter
from tests.eventually import DEADLINE_S

_HERE = ActorPath("", "one")


@dataclass(frozen=True)
class Known:
    number: int


@dataclass(frozen=True)
class Other:
    """A message of another version."""


class Counter(Actor[Known]):
    takes = Known

    def __init__(self) -> None:
        self.total = 0

    def receive(self, message: Known) -> int:
        self.total += message.number
        return self.total


class BatchCounter(BatchActor[Known]):
    takes = Known

    def __init__(self) -> None:
        self.total = 0

    def receive_batch(self, messages: list[Known]) -> None:
        self.total += sum(each.number for each in messages)

    def receive(self, message: Known) -> int:
        self.receive_batch([message])
        return self.total


@pytest.mark.parametrize("kind", [Counter, BatchCounter])
def test_an_actor_lives_on(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Told or asked; who asks is answered by an error at once."""
    before = process_meter().sample().unknown_messages
    system = ThreadedActorSystem()
    try:
        ref = system.spawn(kind, "one")
        for message in (Known(1), Other(), Known(2), Other(), "text", None):
            ref.tell(message)
        with pytest.raises(NotTaken, match="actor /one has no use for Other"):
            ref.ask(Other(), DEADLINE_S)

        assert ref.ask(Known(4), DEADLINE_S) == 7
    finally:
        system.shutdown()

    assert process_meter().sample().unknown_messages - before == 5
    lines = [each.getMessage() for each in caplog.records if "no use for" in each.getMessage()]
    assert lines == [f"actor /one has no use for {each}" for each in ("Other", "str", "NoneType")]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2 * QUIET_MS)), max_size=60))
def test_each_kind_is_logged_once_a_minute(arrivals: list[tuple[str, int]]) -> None:
    """And the lines tell of all messages but those since the last one."""
    unknown, lines, now_ms = UnknownMessages(), list[tuple[str, int]](), 0
    handler = logging.Handler()
    handler.emit = lambda record: lines.append((record.getMessage(), now_ms))  # type: ignore[method-assign]
    logger = logging.getLogger("gearpy.actor")
    logger.addHandler(handler)
    due = dict.fromkeys("abc", 0)
    expected = list[int]()
    try:
        for kind, pause_ms in arrivals:
            now_ms += pause_ms
            if now_ms >= due[kind]:
                due[kind] = now_ms + QUIET_MS
                expected.append(now_ms)
            unknown.note(_HERE, kind, now_ms)
    finally:
        logger.removeHandler(handler)

    assert [at_ms for _, at_ms in lines] == expected


def test_very_many_kinds_are_one(caplog: pytest.LogCaptureFixture) -> None:
    unknown = UnknownMessages()

    for number in range(3_000):
        unknown.note(_HERE, f"kind{number}", 0)
    unknown.note(_HERE, "one more", QUIET_MS)

    assert len(caplog.records) == 1_002
    assert "messages of other kinds, and for 1999 more since" in caplog.records[-1].getMessage()
