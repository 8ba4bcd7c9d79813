"""Tell and ask: who gets what, when, and that nobody hangs."""

import threading
from queue import SimpleQueue

import pytest

from gearpy.actor.api import Exited, Ref
from gearpy.actor.dispatcher import SharedDispatcher
from gearpy.actor.threaded import ThreadedActorSystem
from gearpy.errors import ActorStopped, AskTimeout, ConfigError, MailboxFull
from tests.actor.build import (
    WAIT_S,
    DeadLetters,
    Gate,
    Log,
    Obedient,
    Order,
    drained,
    exits_of,
    fail,
    say,
    taken,
)
from tests.actor.conftest import How


def test_refs_are_equal_by_path(system: ThreadedActorSystem) -> None:
    a, b = system.spawn(Obedient, "a"), system.spawn(Obedient, "b")

    assert a == system.resolve("a") == system.resolve(a.path)
    assert hash(a) == hash(system.resolve("a"))
    assert a != b
    assert repr(a) == "Ref(/a)"


def test_ask_raises_what_receive_raised_and_the_actor_ends(
    system: ThreadedActorSystem, how: How, log: Log
) -> None:
    ref = system.spawn(lambda: Obedient(log), "a", dispatcher=how)

    with pytest.raises(ValueError, match="as ordered"):
        ref.ask(fail, WAIT_S)

    assert taken(log, 2) == ["start", "stop"]
    assert not ref.is_alive


def test_system_exit_reaches_an_asker_as_actor_stopped(
    system: ThreadedActorSystem, how: How
) -> None:
    ref = system.spawn(Obedient, "a", dispatcher=how)

    def leave(_: Obedient) -> None:
        raise SystemExit(3)

    with pytest.raises(ActorStopped) as caught:
        ref.ask(leave, WAIT_S)

    assert isinstance(caught.value.__cause__, SystemExit)


def test_ask_times_out_and_is_still_handled(
    system: ThreadedActorSystem, how: How, log: Log
) -> None:
    """The asker goes on; the question is not taken back."""
    ref, gate = system.spawn(lambda: Obedient(log), "a", dispatcher=how), threading.Event()
    ref.tell(lambda _: gate.wait(WAIT_S))

    with pytest.raises(AskTimeout, match=r"actor /a .* within 0.01 s"):
        ref.ask(say("late"), 0.01)
    gate.set()

    assert taken(log, 2) == ["start", "late"]


def test_ask_of_a_stopped_actor_fails_at_once(system: ThreadedActorSystem, how: How) -> None:
    ref, gate = system.spawn(Obedient, "a", dispatcher=how), threading.Event()
    ref.tell(lambda _: gate.wait(WAIT_S))

    system.stop(ref)

    with pytest.raises(ActorStopped):
        ref.ask(lambda _: 1, WAIT_S)
    gate.set()


def test_waiting_question_fails_when_the_actor_stops(system: ThreadedActorSystem, how: How) -> None:
    ref, gate = system.spawn(Obedient, "a", dispatcher=how), threading.Event()
    ref.tell(lambda _: gate.wait(WAIT_S))
    outcome: SimpleQueue[object] = SimpleQueue()

    def ask() -> None:
        try:
            ref.ask(lambda _: 1, WAIT_S)
        except ActorStopped as error:
            outcome.put(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while not ref.life.mailbox.user:  # type: ignore[attr-defined]  # Asked, not yet answered.
        thread.join(0.001)
    system.stop(ref)

    assert isinstance(outcome.get(timeout=WAIT_S), ActorStopped)
    gate.set()
    thread.join()


class Askers:
    """Threads that ask the actors they are given, each until it fails."""

    def __init__(self, count: int) -> None:
        self.outcomes: SimpleQueue[str] = SimpleQueue()
        self._refs: SimpleQueue[Ref[Order] | None] = SimpleQueue()
        self._threads = [threading.Thread(target=self._run) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def give(self, ref: Ref[Order]) -> None:
        for _ in self._threads:
            self._refs.put(ref)

    def finish(self) -> list[str]:
        for _ in self._threads:
            self._refs.put(None)
        for thread in self._threads:
            thread.join()
        return drained(self.outcomes)

    def _run(self) -> None:
        while (ref := self._refs.get()) is not None:
            try:
                while ref.ask(lambda _: True, WAIT_S):
                    self.outcomes.put("answered")
            except ActorStopped:
                self.outcomes.put("stopped")
            except AskTimeout:
                self.outcomes.put("hung")


@pytest.mark.parametrize("is_graceful", [True, False])
@pytest.mark.parametrize("is_asked_before", [True, False])
def test_no_ask_hangs_that_races_with_a_stop(
    system: ThreadedActorSystem, how: How, *, is_graceful: bool, is_asked_before: bool
) -> None:
    """pykka alone loses one of some thousands. Each is answered or fails, well before its time.

    In all 4,800 races: half of them with an actor that is up and answers when the stop comes.
    """
    askers = Askers(2)
    stop = system.stop_gracefully if is_graceful else system.stop

    for number in range(300):
        ref = system.spawn(Obedient, f"a{number}", dispatcher=how)
        askers.give(ref)
        if is_asked_before:
            ref.ask(lambda _: 1, WAIT_S)
        stop(ref)

    outcomes = askers.finish()
    assert outcomes.count("stopped") == 600
    assert set(outcomes) <= {"answered", "stopped"}


def test_asking_oneself_raises_at_once(system: ThreadedActorSystem, how: How) -> None:
    """It would wait for itself until the time is up."""
    ref = system.spawn(Obedient, "a", dispatcher=how)

    with pytest.raises(ConfigError, match="asks itself"):
        ref.ask(lambda me: me.context.self_ref.ask(lambda _: 1, WAIT_S), WAIT_S)


def test_asking_on_the_only_thread_of_a_dispatcher_raises_at_once(
    system: ThreadedActorSystem, shared: SharedDispatcher
) -> None:
    """Both need the thread that the asker holds; with another one it works."""
    a, b = (system.spawn(Obedient, name, dispatcher=shared) for name in "ab")
    c = system.spawn(Obedient, "c")

    with pytest.raises(ConfigError, match="only thread"):
        a.ask(lambda _: b.ask(lambda _: 1, WAIT_S), WAIT_S)

    assert c.ask(lambda _: b.ask(lambda _: 1, WAIT_S), WAIT_S) == 1


def test_full_mailbox_refuses(system: ThreadedActorSystem, how: How, log: Log) -> None:
    """The sender hears of it; what waits is untouched, and a stop still comes through."""
    ref = system.spawn(lambda: Obedient(log), "a", dispatcher=how, mailbox_max=2)
    gate = Gate(ref)
    ref.tell(say("1"))
    ref.tell(say("2"))

    with pytest.raises(MailboxFull, match="2 messages wait"):
        ref.tell(say("3"))
    with pytest.raises(MailboxFull):
        ref.ask(say("3"), WAIT_S)
    gate.open()

    assert taken(log, 3) == ["start", "1", "2"]


def test_tells_to_a_stopped_actor_are_dead_letters(
    system: ThreadedActorSystem, how: How, dead_letters: DeadLetters
) -> None:
    ref = system.spawn(Obedient, "a", dispatcher=how)
    exits = exits_of(ref)
    system.stop(ref)
    exited: Exited = exits.get(timeout=WAIT_S)

    for _ in range(3):
        exited.ref.tell(say("nobody"))

    assert dead_letters.of == {ref.path: 3}
