"""What pykka adds: each actor is a pykka actor, and none is left behind."""

import threading

import pykka
import pytest

from gearpy.actor.api import Killed, Ref
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
    restarts,
    say,
)
from tests.actor.conftest import How


def pykka_actors(ref: Ref[Order]) -> list[str]:
    """Return the URNs of the pykka actors that run this actor."""
    return [
        found.actor_urn
        for found in pykka.ActorRegistry.get_all()
        if found.actor_inbox.cell.path == ref.path  # type: ignore[attr-defined]
    ]


@pytest.mark.smoke
def test_every_incarnation_is_a_pykka_actor(system: ThreadedActorSystem, how: How) -> None:
    """One at a time; a restart makes a new one on the same cell."""
    ref = system.spawn(Obedient, "a", dispatcher=how, supervision=restarts())
    first = pykka_actors(ref)
    ref.tell(fail)
    ref.ask(lambda _: 1, WAIT_S)
    second = pykka_actors(ref)

    assert len(first) == len(second) == 1
    assert first != second


@pytest.mark.smoke
def test_no_pykka_actor_is_left_behind(how: How) -> None:
    """The registry of pykka is global and would keep them for ever."""
    system = ThreadedActorSystem()
    refs = [
        system.spawn(Obedient, f"left{n}", dispatcher=how, supervision=restarts()) for n in range(5)
    ]
    for ref in refs:
        ref.tell(fail)
    for ref in refs:
        ref.ask(lambda _: 1, WAIT_S)

    assert system.shutdown(WAIT_S)

    for thread in threading.enumerate():
        if thread.name.startswith(("gearpy-left", "gearpy-shared")):
            thread.join(WAIT_S)
    assert [urn for ref in refs for urn in pykka_actors(ref)] == []


def test_pinned_actors_have_a_thread_each_named_after_them(system: ThreadedActorSystem) -> None:
    """A blocked one holds nobody up, and a thread dump tells who it is."""
    ref = system.spawn(Obedient, "blocker")

    thread = ref.ask(lambda _: threading.current_thread(), WAIT_S)

    assert thread.name == "gearpy-blocker"
    assert thread.daemon


def test_pykka_can_stop_actors_but_not_talk_to_them(how: How) -> None:
    """Other users of pykka in the process may call `ActorRegistry.stop_all`."""
    with ThreadedActorSystem() as system:
        ref = system.spawn(Obedient, "a", dispatcher=how)
        exits = exits_of(ref)
        found = next(
            found for found in pykka.ActorRegistry.get_all() if found.actor_urn in pykka_actors(ref)
        )

        with pytest.raises(ConfigError, match="gearpy Ref"):
            found.tell("hello")
        found.stop()

        assert exits.get(timeout=WAIT_S).ref is ref


def test_shutdown_kills_what_does_not_stop(log: Log) -> None:
    """It is bounded, and says that not all went well."""
    system = ThreadedActorSystem()
    ref = system.spawn(lambda: Obedient(log), "stuck")
    exits, gate = exits_of(ref), Gate(ref)

    assert not system.shutdown(0.02)

    assert exits.get(timeout=WAIT_S).reason == Killed()
    gate.open()


def test_shutdown_twice_is_fine() -> None:
    """Who ends last need not know of the others."""
    system = ThreadedActorSystem()

    assert system.shutdown()
    assert system.shutdown()


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
    """And the name stays free."""
    with pytest.raises(ConfigError, match="'pined'"):
        system.spawn(Obedient, "a", dispatcher="pined")  # type: ignore[arg-type]

    assert system.resolve("a") is None


def test_failure_to_get_a_thread_is_raised_at_spawn(
    system: ThreadedActorSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left of the actor that could not start."""
    before = len(pykka.ActorRegistry.get_all())

    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(RuntimeError, match="new thread"):
            system.spawn(Obedient, "a")

    assert len(pykka.ActorRegistry.get_all()) == before
    assert system.spawn(Obedient, "a").ask(lambda _: 1, WAIT_S) == 1


def test_failure_to_get_a_thread_for_a_restart_uses_the_budget(
    system: ThreadedActorSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old runner stays until there is a new one; then the actor goes on."""
    ref = system.spawn(Obedient, "a", supervision=restarts(5, backoff_ms=1))
    ref.ask(lambda _: 1, WAIT_S)
    failures = [RuntimeError("can't start new thread")] * 2
    start = threading.Thread.start

    def few_threads(thread: threading.Thread) -> None:
        if failures and thread.name.startswith("_PinnedRunner"):
            raise failures.pop()
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", few_threads)
    ref.tell(fail)

    assert ref.ask(lambda _: "back", WAIT_S) == "back"
    assert failures == []
