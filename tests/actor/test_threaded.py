"""What pykka adds: each actor is a pykka actor, and none is left behind."""

import threading
from queue import SimpleQueue
from unittest.mock import ANY

import pykka
import pytest

from gearpy.actor.api import Failed, Killed, Ref
from gearpy.actor.threaded import ThreadedActorSystem
from gearpy.errors import ConfigError
from tests.actor.build import (
    WAIT_S,
    Gate,
    Log,
    Obedient,
    Order,
    drained,
    exits_of,
    fail,
    say,
)
from tests.actor.conftest import How


def pykka_refs(ref: Ref[Order]) -> list[pykka.ActorRef[Obedient]]:
    return [
        found
        for found in pykka.ActorRegistry.get_by_class(Obedient)
        if found.actor_inbox is ref.life.mailbox  # type: ignore[attr-defined]
    ]


def a_pykka_ref(ref: Ref[Order]) -> pykka.ActorRef[Obedient]:
    """Return the one that pykka's registry has for an actor, as soon as it is up."""
    ref.ask(lambda _: 1, WAIT_S)
    (found,) = pykka_refs(ref)
    return found


@pytest.mark.smoke
def test_pykka_tells_asks_and_calls_an_actor(
    system: ThreadedActorSystem, how: How, log: Log
) -> None:
    ref = system.spawn(lambda: Obedient(log), "a", dispatcher=how)
    found = a_pykka_ref(ref)

    found.tell(say("told"))
    answer = found.ask(lambda me: me.actor_urn, timeout=WAIT_S)
    proxied = found.proxy().receive(say("by proxy"))

    assert answer == found.actor_urn
    assert proxied.get(timeout=WAIT_S) is None
    assert drained(log) == ["start", "told", "by proxy"]


def test_failure_under_ask_of_pykka_is_told_to_both(system: ThreadedActorSystem, how: How) -> None:
    """pykka alone tells the asker only; then the hook for failures is called, too."""
    failures: SimpleQueue[object] = SimpleQueue()

    class Failing(Obedient):
        def on_failure(self, *failure: object) -> None:
            failures.put(failure[1])

    ref = system.spawn(Failing, "a", dispatcher=how)
    exits, found = exits_of(ref), a_pykka_ref(ref)

    with pytest.raises(ValueError, match="as ordered") as caught:
        found.ask(fail, timeout=WAIT_S)

    assert exits.get(timeout=WAIT_S).reason == Failed(caught.value, ANY)
    assert failures.get(timeout=WAIT_S) is caught.value
    with pytest.raises(pykka.ActorDeadError):
        found.ask(fail, timeout=WAIT_S)


def test_pykka_stops_an_actor_after_what_waits(
    system: ThreadedActorSystem, how: How, log: Log
) -> None:
    """Others in the process may call `ActorRegistry.stop_all`; it returns when all is over."""
    ref = system.spawn(lambda: Obedient(log), "a", dispatcher=how)
    found, gate = a_pykka_ref(ref), Gate(ref)
    ref.tell(say("waits"))
    stop = found.stop(block=False)
    question = found.ask(say("too late"), block=False)
    gate.open()

    assert stop.get(timeout=WAIT_S)
    assert drained(log) == ["start", "waits", "stop"]
    with pytest.raises(pykka.ActorDeadError):
        question.get(timeout=WAIT_S)
    assert not found.is_alive()
    assert not found.stop()
    assert pykka_refs(ref) == []


def test_pykka_starts_no_actor() -> None:
    """Nobody would supervise it."""
    with pytest.raises(ConfigError, match=r"Obedient starts by ActorSystem\.spawn"):
        Obedient.start()


@pytest.mark.smoke
def test_no_pykka_actor_is_left_behind(how: How) -> None:
    """The registry of pykka is global and would keep them for ever."""
    system = ThreadedActorSystem()
    refs = [system.spawn(Obedient, f"left{n}", dispatcher=how) for n in range(5)]
    for ref in refs[:2]:
        ref.tell(fail)
    for ref in refs[2:]:
        ref.ask(lambda _: 1, WAIT_S)

    assert system.shutdown(WAIT_S)

    for thread in threading.enumerate():
        if thread.name.startswith(("gearpy-left", "gearpy-shared")):
            thread.join(WAIT_S)
    assert not any(pykka_refs(ref) for ref in refs)


def test_pinned_actors_have_a_thread_each_named_after_them(system: ThreadedActorSystem) -> None:
    ref = system.spawn(Obedient, "blocker")

    thread = ref.ask(lambda _: threading.current_thread(), WAIT_S)

    assert thread.name == "gearpy-blocker"
    assert thread.daemon


def test_shutdown_kills_what_does_not_stop(log: Log) -> None:
    system = ThreadedActorSystem()
    ref = system.spawn(lambda: Obedient(log), "stuck")
    exits, gate = exits_of(ref), Gate(ref)

    assert not system.shutdown(0.02)

    assert exits.get(timeout=WAIT_S).reason == Killed()
    gate.open()


def test_shutdown_tells_nobody_of_the_end_of_others(log: Log) -> None:
    """All end, and none has lost another: who is still to be stopped hears of nothing."""
    system = ThreadedActorSystem()
    parent, other = system.spawn(Obedient, "parent"), system.spawn(Obedient, "other")
    watcher = parent.ask(lambda me: me.context.spawn(lambda: Obedient(log), "watcher"), WAIT_S)
    watcher.ask(lambda me: me.context.watch(other), WAIT_S)
    exits, gate = exits_of(other), Gate(parent)
    shutdown = threading.Thread(target=system.shutdown)

    shutdown.start()
    exits.get(timeout=WAIT_S)
    watcher.ask(say("asked"), WAIT_S)
    gate.open()
    shutdown.join(WAIT_S)

    assert drained(log) == ["start", "asked", "stop"]


def test_actor_cannot_wait_for_its_own_end(system: ThreadedActorSystem, how: How) -> None:
    """It would be killed for hanging."""
    ref = system.spawn(Obedient, "a", dispatcher=how)

    with pytest.raises(ConfigError, match="shuts its own system down"):
        ref.ask(lambda _: system.shutdown(), WAIT_S)


def test_unknown_dispatcher_is_refused(system: ThreadedActorSystem) -> None:
    with pytest.raises(ConfigError, match="'pined'"):
        system.spawn(Obedient, "a", dispatcher="pined")  # type: ignore[arg-type]

    assert system.resolve("a") is None


def test_failure_to_get_a_thread_is_raised_at_spawn(
    system: ThreadedActorSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = pykka.ActorRegistry.get_all()  # Some of another test may end meanwhile.

    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(RuntimeError, match="new thread"):
            system.spawn(Obedient, "a")

    assert not [each for each in pykka.ActorRegistry.get_all() if each not in before]
    assert system.spawn(Obedient, "a").ask(lambda _: 1, WAIT_S) == 1
