"""What an actor can do: watch, schedule, spawn; and that it ends with the incarnation."""

import threading
from queue import SimpleQueue

import pytest

from gearpy.actor.api import Exited, Failed, Stopped
from gearpy.actor.threaded import ThreadedActorSystem
from gearpy.errors import ActorStopped, ConfigError
from tests.actor.build import (
    WAIT_S,
    DeadLetters,
    Log,
    Obedient,
    drained,
    exits_of,
    fail,
    say,
    taken,
)
from tests.actor.conftest import How


def test_watcher_is_told_exactly_once(system: ThreadedActorSystem, how: How, log: Log) -> None:
    watcher = system.spawn(lambda: Obedient(log), "watcher", dispatcher=how)
    watched = system.spawn(Obedient, "watched", dispatcher=how)
    for _ in range(3):
        watcher.ask(lambda me: me.context.watch(watched), WAIT_S)

    watched.tell(fail)

    start, exited = taken(log, 2)
    assert start == "start"
    assert exited.ref == watched
    assert isinstance(exited.reason, Failed)
    watcher.ask(lambda _: 1, WAIT_S)
    assert drained(log) == []


def test_watching_the_dead_tells_at_once(system: ThreadedActorSystem, how: How, log: Log) -> None:
    watcher = system.spawn(lambda: Obedient(log), "watcher", dispatcher=how)
    dead = system.spawn(Obedient, "dead")
    exits = exits_of(dead)
    system.stop(dead)
    exited = exits.get(timeout=WAIT_S)

    watcher.ask(lambda me: me.context.watch(dead), WAIT_S)
    assert taken(log, 2) == ["start", exited]

    watcher.ask(lambda me: me.context.watch(dead), WAIT_S)
    assert taken(log, 1) == [exited]


def test_unwatch_prevents_even_an_exit_that_waits(
    system: ThreadedActorSystem, how: How, log: Log
) -> None:
    """What matters is what the actor wants when it would hear of it."""
    watcher = system.spawn(lambda: Obedient(log), "watcher", dispatcher=how)
    watched = system.spawn(Obedient, "watched")
    exits = exits_of(watched)

    def watch_and_undo(me: Obedient) -> None:
        me.context.watch(watched)
        system.stop(watched)
        exits.get(timeout=WAIT_S)
        me.context.unwatch(watched)
        me.context.unwatch(watched)

    watcher.ask(watch_and_undo, WAIT_S)
    watcher.ask(lambda _: 1, WAIT_S)

    assert drained(log) == ["start"]


def test_parent_that_also_watches_its_child_is_told_once(
    system: ThreadedActorSystem, how: How, log: Log
) -> None:
    parent = system.spawn(lambda: Obedient(log), "parent", dispatcher=how)

    def spawn_and_stop(me: Obedient) -> None:
        child = me.context.spawn(Obedient, "child", dispatcher=how)
        me.context.watch(child)
        me.context.stop(child)

    parent.ask(spawn_and_stop, WAIT_S)

    start, exited = taken(log, 2)
    assert (start, exited.reason) == ("start", Stopped())
    parent.ask(lambda _: 1, WAIT_S)
    assert drained(log) == []


def test_successor_of_the_same_name_is_watched_apart(system: ThreadedActorSystem, log: Log) -> None:
    watcher = system.spawn(lambda: Obedient(log), "watcher")
    old = system.spawn(Obedient, "name")
    exits = exits_of(old)

    def watch_both(me: Obedient) -> None:
        me.context.watch(old)
        system.stop(old)
        exits.get(timeout=WAIT_S)
        me.context.watch(system.spawn(Obedient, "name"))

    watcher.ask(watch_both, WAIT_S)
    assert taken(log, 2) == ["start", Exited(old, Stopped())]
    new = system.resolve("name")
    assert new is not None
    system.stop(new)

    assert taken(log, 1) == [Exited(new, Stopped())]


def test_watches_and_timers_end_with_the_actor(
    system: ThreadedActorSystem, how: How, log: Log
) -> None:
    ref = system.spawn(lambda: Obedient(log), "a", dispatcher=how)
    watched = system.spawn(Obedient, "watched")
    exits, late = exits_of(ref, watched), threading.Event()

    def prepare(me: Obedient) -> None:
        me.context.watch(watched)
        me.context.schedule_once(0, say("once"))
        me.context.schedule(1, say("tick"))
        raise ValueError("it ends")

    ref.tell(prepare)
    assert exits.get(timeout=WAIT_S).ref == ref
    system.stop(watched)
    assert exits.get(timeout=WAIT_S).ref == watched
    system.timers.call_later(5, late.set)
    assert late.wait(WAIT_S)

    assert drained(log) == ["start", "stop"]


def test_no_timer_fires_after_stop(
    system: ThreadedActorSystem, how: How, log: Log, dead_letters: DeadLetters
) -> None:
    ref = system.spawn(lambda: Obedient(log), "a", dispatcher=how)
    exits, late = exits_of(ref), threading.Event()

    def prepare(me: Obedient) -> None:
        me.context.schedule(1, say("tick"))
        system.timers.call_later(10, late.set)
        late.wait(WAIT_S)  # The first tick is queued by now.
        me.context.stop_self()

    ref.tell(prepare)
    exits.get(timeout=WAIT_S)

    done = threading.Event()
    system.timers.call_later(10, done.set)
    assert done.wait(WAIT_S)
    assert [line for line in drained(log) if line != "tick"] == ["start", "stop"]
    assert not dead_letters.of


def test_ticks_of_a_busy_actor_do_not_pile_up(
    system: ThreadedActorSystem, how: How, log: Log
) -> None:
    ref, late = system.spawn(lambda: Obedient(log), "a", dispatcher=how), threading.Event()

    def prepare(me: Obedient) -> None:
        me.context.schedule(1, say("tick"))
        system.timers.call_later(20, late.set)
        late.wait(WAIT_S)
        me.log.put(len(ref.life.mailbox.system))  # type: ignore[attr-defined]

    ref.tell(prepare)

    assert taken(log, 3) == ["start", 1, "tick"]


def test_one_shot_and_repeated_timers_are_received(
    system: ThreadedActorSystem, how: How, log: Log
) -> None:
    ref = system.spawn(lambda: Obedient(log), "a", dispatcher=how)

    ref.ask(lambda me: me.context.schedule_once(1, say("once")), WAIT_S)
    assert taken(log, 2) == ["start", "once"]

    ref.ask(lambda me: me.context.schedule(1, say("tick")), WAIT_S)
    assert taken(log, 3) == ["tick"] * 3


def test_message_to_self_goes_to_the_back_even_of_a_full_mailbox(
    system: ThreadedActorSystem, how: How, log: Log
) -> None:
    """Long work in pieces must not fail because others are eager."""
    ref = system.spawn(lambda: Obedient(log), "a", dispatcher=how, mailbox_max=1)

    def work(me: Obedient) -> None:
        ref.tell(say("other"))
        me.context.schedule_self(say("piece"))

    ref.tell(work)

    assert taken(log, 3) == ["start", "other", "piece"]


def test_message_to_a_stopping_self_is_a_dead_letter(
    system: ThreadedActorSystem, how: How, dead_letters: DeadLetters
) -> None:
    ref = system.spawn(Obedient, "a", dispatcher=how)

    def work(me: Obedient) -> None:
        me.context.stop_self()
        me.context.schedule_self(say("never"))

    ref.ask(work, WAIT_S)

    assert dead_letters.of == {ref.path: 1}


def test_context_tells_who_and_when(system: ThreadedActorSystem) -> None:
    parent = system.spawn(Obedient, "parent")
    child = parent.ask(lambda me: me.context.spawn(Obedient, "child"), WAIT_S)

    assert child.ask(lambda me: me.context.parent, WAIT_S) == parent
    assert parent.ask(lambda me: me.context.parent, WAIT_S) is None
    assert child.ask(lambda me: me.context.self_ref, WAIT_S) is child
    assert child.ask(lambda me: me.context.system, WAIT_S) is system
    assert child.ask(lambda me: me.context.now_ms(), WAIT_S) <= system.now_ms()
    assert child.ask(lambda me: me.context.wall_ms(), WAIT_S) <= system.wall_ms()


def test_context_of_an_ended_actor_refuses(system: ThreadedActorSystem, how: How) -> None:
    ref = system.spawn(Obedient, "a", dispatcher=how)
    exits = exits_of(ref)
    old = ref.ask(lambda me: me.context, WAIT_S)
    ref.tell(fail)
    exits.get(timeout=WAIT_S)

    with pytest.raises(ActorStopped, match="has stopped"):
        old.watch(ref)
    with pytest.raises(ActorStopped, match="has stopped"):
        old.spawn(Obedient, "b")
    with pytest.raises(ActorStopped, match="has stopped"):
        old.schedule(1, say("x"))


def test_taken_child_name_is_the_parents_mistake(system: ThreadedActorSystem, how: How) -> None:
    parent = system.spawn(Obedient, "parent", dispatcher=how)
    outcome: SimpleQueue[str] = SimpleQueue()

    def spawn_twin(me: Obedient) -> None:
        try:
            me.context.spawn(Obedient, "parent", dispatcher=how)
        except ConfigError as error:
            outcome.put(str(error))

    parent.ask(spawn_twin, WAIT_S)

    assert "'parent'" in outcome.get(timeout=WAIT_S)
    assert system.resolve("parent") is parent
