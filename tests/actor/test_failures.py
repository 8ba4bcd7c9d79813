"""Failures: contained, counted, escalated; and what becomes of children."""

from collections.abc import Callable

import pytest

from gearpy.actor.api import Exited, Failed, Killed, Ref, Stopped
from gearpy.actor.threaded import ThreadedActorSystem
from gearpy.ids import ActorPath
from tests.actor.build import (
    WAIT_S,
    Gate,
    Log,
    Obedient,
    Order,
    drained,
    exits_of,
    fail,
    taken,
)
from tests.actor.conftest import How


def a_child(parent: Ref[Order], log: Log, *, how: How) -> Ref[Order]:
    child: Ref[Order] = parent.ask(
        lambda me: me.context.spawn(lambda: Obedient(log), "child", dispatcher=how), WAIT_S
    )
    return child


def raising(error: BaseException) -> Callable[[Obedient], None]:
    def order(_: Obedient) -> None:
        raise error

    return order


def test_a_failure_stops(system: ThreadedActorSystem, how: How, log: Log) -> None:
    """Watchers get cause and traceback; what waits is dead letters."""
    ref = system.spawn(lambda: Obedient(log), "a", dispatcher=how)
    exits = exits_of(ref)

    ref.tell(fail)

    reason = exits.get(timeout=WAIT_S).reason
    assert isinstance(reason, Failed)
    assert str(reason) == "ValueError: as ordered"
    assert 'raise ValueError("as ordered")' in reason.traceback
    assert drained(log) == ["start", "stop"]


def test_a_failure_is_told_to_the_parent(system: ThreadedActorSystem, how: How, log: Log) -> None:
    parent_log: Log = Log()
    parent = system.spawn(lambda: Obedient(parent_log), "parent", dispatcher=how)
    child = a_child(parent, log, how=how)

    for _ in range(3):
        child.tell(fail)

    start, exited = taken(parent_log, 2)
    assert start == "start"
    assert exited.ref == child
    assert isinstance(exited.reason, Failed)
    assert drained(log) == ["start", "stop"]
    assert parent.ask(lambda _: 1, WAIT_S) == 1
    assert drained(parent_log) == []


@pytest.mark.parametrize(
    "error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), MemoryError()]
)
def test_no_exception_stops_a_neighbour(
    system: ThreadedActorSystem, how: How, error: BaseException
) -> None:
    """pykka alone stops every actor of the process on `SystemExit`."""
    ref = system.spawn(Obedient, "a", dispatcher=how)
    neighbours = [system.spawn(Obedient, f"n{n}", dispatcher=how) for n in range(3)]
    exits = exits_of(ref)

    ref.tell(raising(error))

    reason = exits.get(timeout=WAIT_S).reason
    assert isinstance(reason, Failed)
    assert reason.cause is error
    assert [n.ask(lambda _: 1, WAIT_S) for n in neighbours] == [1, 1, 1]


@pytest.mark.parametrize("where", ["factory", "on_start"])
def test_failing_start_ends_it(system: ThreadedActorSystem, how: How, log: Log, where: str) -> None:
    """The caller of `spawn` and `on_stop` hear nothing."""

    class Broken(Obedient):
        def __init__(self) -> None:
            super().__init__(log)
            self._begin("factory")

        def on_start(self) -> None:
            self._begin("on_start")

        def _begin(self, step: str) -> None:
            if step == where:
                log.put(step)
                raise SystemExit(step)

    ref = system.spawn(Broken, "a", dispatcher=how)
    exits = exits_of(ref)

    assert isinstance(exits.get(timeout=WAIT_S).reason, Failed)
    assert drained(log) == [where]


def test_children_stop_before_their_parent(system: ThreadedActorSystem, how: How, log: Log) -> None:
    """Youngest first; the parent can rely on them until its own `on_stop` is over."""

    class Named(Obedient):
        def __init__(self, name: str) -> None:
            super().__init__()
            self._name = name

        def on_stop(self) -> None:
            log.put(self._name)

    def spawn(name: str) -> Callable[[Obedient], Ref[Order]]:
        return lambda me: me.context.spawn(lambda: Named(name), name, dispatcher=how)

    top = system.spawn(lambda: Named("top"), "top", dispatcher=how)
    middle = top.ask(spawn("middle"), WAIT_S)
    bottom = middle.ask(spawn("bottom"), WAIT_S)
    exits = exits_of(top, middle, bottom)

    system.stop(top)

    assert taken(log, 3) == ["bottom", "middle", "top"]
    assert [exits.get(timeout=WAIT_S).reason for _ in range(3)] == [Stopped()] * 3


def test_child_that_does_not_stop_in_time_is_killed(log: Log) -> None:
    """A bounded wait: user code that hangs cannot keep its parent."""
    with ThreadedActorSystem(stop_timeout_ms=20) as system:
        parent = system.spawn(lambda: Obedient(log), "parent")
        child = a_child(parent, log, how="pinned")
        exits, gate = exits_of(child, parent), Gate(child)

        system.stop(parent)

        assert exits.get(timeout=WAIT_S) == Exited(child, Killed())
        assert exits.get(timeout=WAIT_S) == Exited(parent, Stopped())
        gate.open()


def test_stopping_parent_cannot_spawn(system: ThreadedActorSystem, how: How, log: Log) -> None:
    """An orphan would outlive it."""

    class Late(Obedient):
        def on_stop(self) -> None:
            self.context.spawn(lambda: Obedient(log), "orphan")

    ref = system.spawn(Late, "late", dispatcher=how)
    exits = exits_of(ref)

    system.stop(ref)

    assert exits.get(timeout=WAIT_S).reason == Stopped()
    assert system.resolve("orphan") is None
    assert drained(log) == []


def test_failing_hook_is_a_failure_too(system: ThreadedActorSystem, how: How, log: Log) -> None:
    """`on_exited` that raises ends the actor like `receive`."""

    class Touchy(Obedient):
        def on_exited(self, exited: Exited) -> None:
            super().on_exited(exited)
            raise ValueError(exited.ref.path)

    parent = system.spawn(lambda: Touchy(log), "a", dispatcher=how)
    child = a_child(parent, Log(), how=how)

    system.stop(child)

    assert taken(log, 3) == ["start", Exited(child, Stopped()), "stop"]


def test_watcher_that_raises_does_not_hide_the_exit(system: ThreadedActorSystem) -> None:
    ref = system.spawn(Obedient, "a")

    def bad(_: Exited) -> None:
        raise ValueError("bad watcher")

    ref.add_watcher("bad", bad)
    exits = exits_of(ref)

    system.stop(ref)

    assert exits.get(timeout=WAIT_S).ref.path == ActorPath("", "a")
