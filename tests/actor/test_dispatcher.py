"""Many actors on few threads."""

import threading
from queue import SimpleQueue
from time import monotonic
from typing import Any

import pytest

from gearpy.actor.api import BatchActor
from gearpy.actor.dispatcher import SharedDispatcher, default_threads
from gearpy.actor.threaded import ThreadedActorSystem
from gearpy.errors import ConfigError
from tests.actor.build import WAIT_S, Log, Obedient, Order, say, taken


def test_busy_actor_does_not_starve_its_neighbour(system: ThreadedActorSystem) -> None:
    ends: SimpleQueue[str] = SimpleQueue()
    is_over = threading.Event()
    busy = system.spawn(Obedient, "busy", dispatcher="shared")
    neighbour = system.spawn(Obedient, "neighbour", dispatcher="shared")

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


def test_thousand_actors_share_one_thread(system: ThreadedActorSystem) -> None:
    before = threading.active_count()

    refs = [system.spawn(Obedient, f"a{n}", dispatcher="shared") for n in range(1_000)]
    threads = {ref.ask(lambda _: threading.get_ident(), WAIT_S) for ref in refs}

    assert len(threads) == default_threads()
    assert threading.active_count() - before <= default_threads()


def test_several_threads_run_one_actor_one_turn_at_a_time() -> None:
    dispatcher = SharedDispatcher(4, turn_messages=3)
    counts = [0, 0, 0]

    with ThreadedActorSystem() as system:
        refs = [system.spawn(Obedient, f"a{n}", dispatcher=dispatcher) for n in range(3)]

        def count(index: int) -> Order:
            def add(_: Obedient) -> None:
                counts[index] += 1

            return add

        orders = [count(index) for index in range(3)]
        for _ in range(2_000):
            for ref, order in zip(refs, orders, strict=True):
                ref.tell(order)
        for ref in refs:
            ref.ask(lambda _: 1, WAIT_S)

    dispatcher.close()
    assert counts == [2_000] * 3


def test_many_messages_pass_through_a_shared_actor(system: ThreadedActorSystem) -> None:
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

    ref = system.spawn(Counter, "counter", dispatcher="shared")

    for number in range(50_000):
        ref.tell(number)

    assert is_done.wait(WAIT_S)
    assert ref.ask(0, WAIT_S) == sum(range(50_000))


def test_closed_dispatcher_ends_its_threads() -> None:
    """Its owner closes it; other systems may have used it."""
    dispatcher = SharedDispatcher(2, name="closing")
    with ThreadedActorSystem() as system:
        system.spawn(Obedient, "a", dispatcher=dispatcher).ask(say("up"), WAIT_S)
    threads = [t for t in threading.enumerate() if t.name.startswith("gearpy-closing")]

    dispatcher.close()
    for thread in threads:
        thread.join(WAIT_S)

    assert len(threads) == 2
    assert not any(thread.is_alive() for thread in threads)


def test_limits_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="threads is 0"):
        SharedDispatcher(0)
