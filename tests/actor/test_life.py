"""The life of one actor: order of messages, both ways to stop, batches."""

import threading

import pykka
import pytest
from pykka._envelope import Envelope

from gearpy.actor.api import BatchActor, CommittingActor, Exited, Failed, Killed, Ref, Stopped
from gearpy.actor.mailbox import Reply
from gearpy.actor.threaded import ThreadedActorSystem
from gearpy.errors import ActorStopped
from tests.actor.build import (
    WAIT_S,
    DeadLetters,
    Gate,
    Log,
    Obedient,
    drained,
    exits_of,
    say,
    taken,
)
from tests.actor.conftest import How


def test_system_messages_overtake_user_messages(
    system: ThreadedActorSystem, how: How, log: Log
) -> None:
    ref = system.spawn(lambda: Obedient(log), "a", dispatcher=how)
    other = system.spawn(Obedient, "other")
    ref.ask(lambda me: me.context.watch(other), WAIT_S)
    gate, exits = Gate(ref), exits_of(other)
    ref.tell(say("data"))
    system.stop(other)
    exits.get(timeout=WAIT_S)
    gate.open()

    assert taken(log, 3) == ["start", Exited(other, Stopped()), "data"]


def test_stop_drops_what_waits_into_the_dead_letters(
    system: ThreadedActorSystem, how: How, log: Log, dead_letters: DeadLetters
) -> None:
    ref = system.spawn(lambda: Obedient(log), "a", dispatcher=how)
    gate, exits = Gate(ref), exits_of(ref)
    ref.tell(say("waits"))

    system.stop(ref)
    ref.tell(say("too late"))
    gate.open()

    assert exits.get(timeout=WAIT_S) == Exited(ref, Stopped())
    assert drained(log) == ["start", "stop"]
    assert dead_letters.of == {ref.path: 2}
    assert not ref.is_alive


def test_graceful_stop_handles_what_waits_and_takes_no_more(
    system: ThreadedActorSystem, how: How, log: Log, dead_letters: DeadLetters
) -> None:
    ref = system.spawn(lambda: Obedient(log), "a", dispatcher=how)
    gate, exits = Gate(ref), exits_of(ref)
    ref.tell(say("waits"))

    system.stop_gracefully(ref)
    system.stop_gracefully(ref)
    ref.tell(say("too late"))
    with pytest.raises(ActorStopped):
        ref.ask(say("too late"), WAIT_S)
    gate.open()

    assert exits.get(timeout=WAIT_S) == Exited(ref, Stopped())
    assert drained(log) == ["start", "waits", "stop"]
    assert dead_letters.of == {ref.path: 1}


def test_failing_on_stop_changes_nothing(system: ThreadedActorSystem, how: How) -> None:
    """It is called once and what it raises is contained, even `SystemExit`."""
    calls: list[int] = []

    class Stubborn(Obedient):
        def on_stop(self) -> None:
            calls.append(1)
            raise SystemExit(1)

    ref = system.spawn(Stubborn, "a", dispatcher=how)
    exits = exits_of(ref)

    system.stop(ref)
    system.stop(ref)

    assert exits.get(timeout=WAIT_S) == Exited(ref, Stopped())
    assert calls == [1]


def test_killed_actor_is_gone_for_all_others(system: ThreadedActorSystem, log: Log) -> None:
    """Its code may go on, but it sends no exit twice, calls no `on_stop`, answers nobody."""
    ref = system.spawn(lambda: Obedient(log), "a")
    gate, exits = Gate(ref), exits_of(ref)

    ref.life.kill()  # type: ignore[attr-defined]

    assert exits.get(timeout=WAIT_S) == Exited(ref, Killed())
    assert system.resolve("a") is None
    gate.open()
    successor = system.spawn(lambda: Obedient(log), "a")
    assert successor.ask(lambda _: 1, WAIT_S) == 1
    assert drained(log) == ["start", "start"]
    assert exits.empty()


class Batched(BatchActor[str]):
    def __init__(self, log: Log, gate: threading.Event) -> None:
        self._log = log
        self._gate = gate

    def receive_batch(self, messages: list[str]) -> None:
        self._log.put(messages)
        self._gate.wait(WAIT_S)
        if "fail" in messages:
            raise ValueError("as ordered")


def test_batch_actor_gets_all_that_waits_in_one_call(
    system: ThreadedActorSystem, how: How, log: Log
) -> None:
    """One turn drains the mailbox; asked messages keep their place."""
    gate = threading.Event()
    ref = system.spawn(lambda: Batched(log, gate), "a", dispatcher=how)
    ref.tell("first")
    assert taken(log, 1) == [["first"]]
    for message in ("a", "b"):
        ref.tell(message)
    asker = threading.Thread(target=ref.ask, args=("asked", WAIT_S))
    asker.start()
    while len(ref.life.mailbox.user) < 3:  # type: ignore[attr-defined]  # Until it has asked.
        asker.join(0.001)
    ref.tell("c")
    gate.set()
    asker.join()

    assert taken(log, 3) == [["a", "b"], ["asked"], ["c"]]


def test_failing_batch_ends_it_and_the_question_behind_it_is_not_answered(
    system: ThreadedActorSystem, how: How, log: Log
) -> None:
    gate = threading.Event()
    ref = system.spawn(lambda: Batched(log, gate), "a", dispatcher=how)
    ref.tell("first")
    assert taken(log, 1) == [["first"]]
    ref.tell("fail")
    asked, exits = Reply(), exits_of(ref)
    ref.life.mailbox.put(Envelope("asked", asked))  # type: ignore[attr-defined]
    gate.set()

    assert isinstance(exits.get(timeout=WAIT_S).reason, Failed)
    assert drained(log) == [["fail"]]
    with pytest.raises(pykka.ActorDeadError):
        asked.get(timeout=WAIT_S)


class Committing(CommittingActor[str]):
    def __init__(self, log: Log, gate: threading.Event) -> None:
        self._log = log
        self._gate = gate
        self._noted: list[str] = []

    def receive(self, message: str) -> str:
        self._noted.append(message)
        if message == "raise":
            raise ValueError("as ordered")
        return message.upper()

    def commit(self) -> None:
        noted, self._noted = self._noted, []
        if noted:
            self._log.put(noted)
            assert self._gate.wait(WAIT_S)
        if "fail" in noted:
            raise ValueError("no commit")


def asked_while_busy(
    system: ThreadedActorSystem, how: How, log: Log, *messages: str
) -> tuple[Ref[str], list[object]]:
    """Return an actor that was asked each of these while it committed, and the outcomes."""
    gate, outcomes = threading.Event(), dict[int, object]()
    ref = system.spawn(lambda: Committing(log, gate), "a", dispatcher=how)
    ref.tell("first")
    assert taken(log, 1) == [["first"]]

    def ask(number: int, message: str) -> None:
        try:
            outcomes[number] = ref.ask(message, WAIT_S)
        except (ActorStopped, ValueError) as error:
            outcomes[number] = error

    askers = list[threading.Thread]()
    for number, message in enumerate(messages):
        askers.append(threading.Thread(target=ask, args=(number, message)))
        askers[-1].start()
        while len(ref.life.mailbox.user) <= number:  # type: ignore[attr-defined]
            askers[-1].join(0.001)
    gate.set()
    for each in askers:
        each.join()
    return ref, [outcomes[number] for number in range(len(messages))]


def test_committing_actor_answers_all_that_waited_after_one_commit(
    system: ThreadedActorSystem, how: How, log: Log
) -> None:
    ref, outcomes = asked_while_busy(system, how, log, "a", "b", "c")

    assert outcomes == ["A", "B", "C"]
    assert taken(log, 1) == [["a", "b", "c"]]
    ref.tell("told")
    system.stop_gracefully(ref)
    assert taken(log, 1) == [["told"]]


def test_commit_that_fails_is_what_everybody_hears(
    system: ThreadedActorSystem, how: How, log: Log
) -> None:
    ref, outcomes = asked_while_busy(system, how, log, "a", "fail")

    assert list(map(str, outcomes)) == ["no commit", "no commit"]
    assert not ref.is_alive


def test_message_that_fails_takes_along_what_was_not_committed(
    system: ThreadedActorSystem, how: How, log: Log
) -> None:
    ref, outcomes = asked_while_busy(system, how, log, "a", "raise", "c")

    assert [type(each) for each in outcomes] == [ActorStopped, ValueError, ActorStopped]
    assert not ref.is_alive
    assert drained(log) == []


def test_failure_of_the_layer_itself_ends_the_actor_only(
    system: ThreadedActorSystem, how: How
) -> None:
    ref, neighbour = (system.spawn(Obedient, name, dispatcher=how) for name in "ab")
    ref.ask(lambda _: 1, WAIT_S)
    exits = exits_of(ref)

    ref.life.mailbox.put_system("nonsense")  # type: ignore[attr-defined]

    assert isinstance(exits.get(timeout=WAIT_S).reason, Failed)
    assert neighbour.ask(lambda _: 1, WAIT_S) == 1
