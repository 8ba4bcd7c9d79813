"""Many actors on few threads."""

import threading
from queue import SimpleQueue
from time import monotonic
from typing import Any

import pytest

from gearpy.actor.api import BatchActor
from gearpy.actor.dispatcher import SharedDispatcher
from gearpy.actor.threaded import ThreadedActorSystem
from tests.actor.build import WAIT_S, Log, Obedient, say, taken


def test_busy_actor_does_not_starve_its_neighbour(
    system: ThreadedActorSystem, shared: SharedDispatcher
) -> None:
    ends: SimpleQueue[str] = SimpleQueue()
    is_over = threading.Event()
    busy = system.spawn(Obedient, "busy", dispatcher=shared)
    neighbour = system.spawn(Obedient, "neighbour", dispatcher=shared)

    def spin(me: Obedient) -> None:
        if is_over.is_set():
            ends.put("spin")
        else:
            me.context.schedule_self(spin)

    busy.tell(spin)

    assert [neighbour.ask(lambda _: "here", WAIT_S) for _ in range(20)] == ["here"] * 20
    is_over.set()
    assert ends.get(timeout=WAIT_S) == "spin"


@pytest.mark.parametrize(
    ("limits", "messages", "order"),
    [
        pytest.param({"turn_messages": 2, "turn_ms": 60_000}, 4, "aabbaabb", id="messages"),
        pytest.param({"turn_ms": 0.001}, 2, "abab", id="time, however few messages"),
    ],
)
def test_turn_ends_with_its(log: Log, limits: dict[str, Any], messages: int, order: str) -> None:
    dispatcher = SharedDispatcher(**limits)
    with ThreadedActorSystem() as system:
        is_open = threading.Event()
        gate = system.spawn(Obedient, "gate", dispatcher=dispatcher)
        gate.tell(lambda _: is_open.wait(WAIT_S))
        refs = [system.spawn(Obedient, name, dispatcher=dispatcher) for name in "ab"]

        def work(me: Obedient) -> None:
            log.put(me.context.self_ref.path.name)
            until_s = monotonic() + 20e-6  # Longer than a turn that ends with its time.
            while monotonic() < until_s:
                pass

        for ref in refs:
            for _ in range(messages):
                ref.tell(work)
        is_open.set()

        assert "".join(taken(log, len(order))) == order
    dispatcher.close()


def test_thousand_actors_share_one_thread(
    system: ThreadedActorSystem, shared: SharedDispatcher
) -> None:
    before = threading.active_count()

    refs = [system.spawn(Obedient, f"a{n}", dispatcher=shared) for n in range(1_000)]
    threads = {ref.ask(lambda _: threading.get_ident(), WAIT_S) for ref in refs}

    assert len(threads) == 1
    assert threading.active_count() - before <= 1


def test_many_messages_pass_through_a_shared_actor(
    system: ThreadedActorSystem, shared: SharedDispatcher
) -> None:
    """The hot path, end to end; how fast is measured elsewhere."""
    is_done = threading.Event()

    class Counter(BatchActor[int]):
        def __init__(self) -> None:
            self._sum = 0

        def receive_batch(self, messages: list[int]) -> None:
            self._sum += sum(messages)
            if messages[-1] == 49_999:
                is_done.set()

        def receive(self, message: int) -> int:
            return self._sum

    ref = system.spawn(Counter, "counter", dispatcher=shared)

    for number in range(50_000):
        ref.tell(number)

    assert is_done.wait(WAIT_S)
    assert ref.ask(0, WAIT_S) == sum(range(50_000))


def test_closed_dispatcher_ends_its_thread() -> None:
    """Its owner closes it; other systems may have used it."""
    dispatcher = SharedDispatcher(name="closing")
    with ThreadedActorSystem() as system:
        system.spawn(Obedient, "a", dispatcher=dispatcher).ask(say("up"), WAIT_S)
    (thread,) = (t for t in threading.enumerate() if t.name == "gearpy-closing")

    dispatcher.close()
    thread.join(WAIT_S)

    assert not thread.is_alive()
