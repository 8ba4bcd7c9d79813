"""Faults of the network, injected by proxies between real sockets: detected, never silent."""

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from gearpy.errors import ConnectionLost, GearpyError, ProtocolError
from gearpy.ids import AppId, address_of
from gearpy.messages.client import GetApplication
from gearpy.transport.api import TransportLimits
from gearpy.transport.letters.client import ControlClient
from gearpy.transport.links.tcp import TcpTransport
from gearpy.transport.security.certificates import make_authority_and_node
from gearpy.transport.security.credentials import Credentials
from gearpy.transport.security.tls import load_contexts
from tests.eventually import DEADLINE_S, eventually
from tests.system.network_build import ELSEWHERE, HEARTBEAT_TIMEOUT_MS, WINDOW, WIRE, Flow, Pair
from tests.transport.build import KEYS, SECRET
from tests.transport.fault_proxy import SILENT, Fault, Network, Shape, Way
from tests.transport.letters_build import Process

#: A link is lost after the time-out, two ticks and what a busy machine adds.
BOUND_S: Final = HEARTBEAT_TIMEOUT_MS / 1000 + 60.0
#: Records survive a delay. They survive a copy, too, unless its bytes are confirmed while nothing
#: else is sent: that is reported, as all other faults must be.
HARMLESS, COPIED = Fault.DELAY, Fault.DUPLICATE
HALF_A_MBIT_PER_S: Final = 62_500


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


# -- records ---------------------------------------------------------------------------------


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("on", ["data", "acks"])
@pytest.mark.parametrize("fault", list(Fault))
def test_no_fault_on_a_link_is_silent(stack: ExitStack, fault: Fault, on: str, way: Way) -> None:
    network = stack.enter_context(Network(seed=fault.value))
    pair = Pair(stack, network, Flow())
    pair.start()
    pair.wait_records(50)

    getattr(pair, on).inject(fault, way).result(DEADLINE_S)
    pair.flow.may_end.set()
    news = pair.outcome(BOUND_S)

    assert network.done == {fault: 1}
    assert pair.flow.received == list(range(len(pair.flow.received)))
    assert news or len(pair.flow.received) == pair.flow.sent
    if (on, way) == ("data", Way.THERE) and fault is not COPIED:
        assert bool(news) == (fault is not HARMLESS)


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault in SILENT])
def test_what_waits_for_a_silent_link_is_bounded(stack: ExitStack, fault: Fault) -> None:
    network = stack.enter_context(Network(seed=1))
    pair = Pair(stack, network, Flow(pad=1000))
    pair.start()
    pair.wait_records(50)

    pair.data.inject(fault).result(DEADLINE_S)
    news = pair.outcome(BOUND_S)

    assert news
    assert 0 < pair.flow.on_the_way_max <= WINDOW + 10
    assert pair.flow.received == list(range(len(pair.flow.received)))


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("fault", [f for f in Fault if f is not Fault.DELAY])
def test_no_fault_in_the_handshake_of_a_link_is_silent(
    stack: ExitStack, fault: Fault, way: Way
) -> None:
    network = stack.enter_context(Network(seed=fault.value))
    pair = Pair(stack, network, Flow(), limits=replace(WIRE, handshake_timeout_ms=150))
    done = pair.data.inject(fault, way, handshake=True)
    pair.flow.may_end.set()
    pair.start()

    done.result(DEADLINE_S)
    news = pair.outcome(BOUND_S)

    assert news or pair.finished


@pytest.mark.parametrize("seed", range(3))
def test_with_tls_no_fault_is_silent_either(stack: ExitStack, tmp_path: Path, seed: int) -> None:
    make_authority_and_node(tmp_path / "tls", [], days=10)
    shown = Credentials(keys=KEYS, tls=load_contexts(tmp_path / "tls"))
    network = stack.enter_context(Network(seed))
    fault = network.rng.choice([Fault.FLIP, Fault.REPEAT, Fault.TRUNCATE, Fault.DROP])
    pair = Pair(stack, network, Flow(), shown=shown)
    pair.start()
    pair.wait_records(50)

    pair.data.inject(fault).result(DEADLINE_S)

    assert pair.outcome(BOUND_S)
    assert pair.flow.received == list(range(len(pair.flow.received)))


# -- questions of clients ---------------------------------------------------------------------


@pytest.mark.parametrize("handshake", [False, True])
@pytest.mark.parametrize("way", list(Way))
def test_a_client_gets_the_answer_or_an_error_in_time(
    stack: ExitStack, way: Way, *, handshake: bool
) -> None:
    network = stack.enter_context(Network(seed=way.value))
    server = TcpTransport(SECRET, limits=replace(LETTER_WIRE, handshake_timeout_ms=3000))
    stack.callback(server.stop)
    proxy = network.proxy(server.start())
    server.serve_control(lambda message: message)
    client = stack.enter_context(ControlClient(proxy.address, SECRET))

    for number, fault in enumerate(Fault):
        if handshake:
            client.close()
        done = proxy.inject(fault, way, handshake=handshake)
        question = GetApplication(app_id=AppId(number))
        began_s = time.monotonic()
        with suppress(GearpyError):
            assert client.ask(question, 0.15) == question
        assert time.monotonic() - began_s < BOUND_S
        done.result(DEADLINE_S)
        with suppress(ProtocolError, ConnectionLost):  # Of what came behind the answer.
            assert client.ask(question, DEADLINE_S) == question
        assert client.ask(question, DEADLINE_S) == question


# -- letters ---------------------------------------------------------------------------------

LETTER_WIRE: Final = TransportLimits(
    handshake_timeout_ms=500,
    close_timeout_ms=50,
    heartbeat_interval_ms=100,
    heartbeat_timeout_ms=5000,  # Half of it is for another connection, on a busy machine, too.
    reconnect_base_ms=5,
    reconnect_max_ms=20,
)
#: Where no fault is silent nothing waits for the time-out: the machine may be as busy as it likes.
PATIENT_WIRE: Final = replace(LETTER_WIRE, heartbeat_timeout_ms=30_000)


class Correspondents:
    """Two processes that write to each other through proxies and watch each other.

    They are known to others by another address of this machine, where the proxies are.
    """

    def __init__(
        self, stack: ExitStack, network: Network, limits: TransportLimits = LETTER_WIRE
    ) -> None:
        self.one, self.other = (Process(limits, hostname=ELSEWHERE) for _ in range(2))
        for process in (self.one, self.other):
            stack.callback(process.transport.stop)
        self.there = network.proxy(self.other.address, address=address_of(self.other.node))
        self.back = network.proxy(self.one.address, address=address_of(self.one.node))
        self.one.watch(self.other.node)
        self.other.watch(self.one.node)
        self.written = 0

    def write(self, letters: int = 1, size: int = 1) -> None:
        for _ in range(letters):
            assert self.one.tell(self.other.node, b"%d" % self.written * size)
            self.written += 1

    def wait_taken(self) -> None:
        """Wait until the connection is of use: the other has answered."""
        (link,) = self.one.nodes._links.values()  # noqa: SLF001 - nothing else tells
        eventually(lambda: not link.outbox.untaken, "letters are taken")

    def check_arrived(self, size: int = 1) -> None:
        """All that were written arrive, each once, in order, and nobody was given up."""
        assert self.other.take(self.written) == [b"%d" % n * size for n in range(self.written)]
        assert self.other.letters.empty()
        assert self.one.losses.empty()
        assert self.other.losses.empty()


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("begun", [False, True])
def test_letters_survive_every_fault_of_a_connection(
    stack: ExitStack, fault: Fault, way: Way, *, begun: bool
) -> None:
    """Each arrives once and in order, on another connection if need be; from the greeting on."""
    network = stack.enter_context(Network(seed=fault.value))
    pair = Correspondents(stack, network, LETTER_WIRE if fault in SILENT else PATIENT_WIRE)
    pair.write()
    if begun:
        pair.wait_taken()

    done = pair.there.inject(fault, way)
    pair.write(200)

    done.result(DEADLINE_S)
    pair.check_arrived()


@pytest.mark.parametrize("seed", range(3))
def test_letters_survive_many_faults(stack: ExitStack, seed: int) -> None:
    network = stack.enter_context(Network(seed))
    rng, pair = random.Random(seed), Correspondents(stack, network, PATIENT_WIRE)
    kinds = [fault for fault in Fault if fault not in SILENT | {Fault.DELAY}]

    for _ in range(25):
        proxy, way = rng.choice([pair.there, pair.back]), rng.choice(list(Way))
        done = proxy.inject(rng.choice(kinds), way, handshake=rng.random() < 0.2)
        pair.write(rng.randrange(1, 30), size=20)
        time.sleep(rng.uniform(0, 0.04))
        del done

    pair.check_arrived(size=20)
    assert sum(network.done.values()) >= 10


def test_a_cut_cable_is_noticed_at_both_ends_in_time(stack: ExitStack) -> None:
    network = stack.enter_context(Network(seed=1))
    pair = Correspondents(stack, network)
    pair.write()
    assert pair.other.take() == [b"0"]

    began_s = time.monotonic()
    pair.there.unplug()
    pair.back.unplug()
    pair.write()

    assert "silent for" in pair.one.lost()
    assert "silent for" in pair.other.lost()
    assert time.monotonic() - began_s < BOUND_S + 1
    pair.there.plug_in()
    pair.back.plug_in()
    assert not pair.one.tell(pair.other.node)
    assert not pair.other.tell(pair.one.node)
    assert pair.other.letters.empty()


@pytest.mark.parametrize("way", Way)
def test_a_cable_that_is_cut_in_one_direction_is_noticed_by_who_is_not_answered(
    stack: ExitStack, way: Way
) -> None:
    network = stack.enter_context(Network(seed=1))
    pair = Correspondents(stack, network)
    pair.write()
    assert pair.other.take() == [b"0"]

    pair.there.swallow(way)
    pair.write(5)

    assert "silent for" in pair.one.lost()
    pair.there.plug_in()
    assert pair.other.lost()
    assert not pair.one.tell(pair.other.node)


def test_a_cable_that_is_plugged_in_again_in_time_costs_nothing(stack: ExitStack) -> None:
    network = stack.enter_context(Network(seed=1))
    pair = Correspondents(stack, network, PATIENT_WIRE)
    pair.write()

    for _ in range(2):
        pair.there.unplug()
        pair.write(10)
        time.sleep(0.2)
        pair.there.plug_in()
        time.sleep(0.2)

    pair.check_arrived()


def test_a_slow_network_is_no_fault(stack: ExitStack) -> None:
    """0.5 Mbit/s and 200 ms each way, with more on its way than passes within the time-out."""
    network, slow = stack.enter_context(Network(seed=1)), Shape(200, HALF_A_MBIT_PER_S)
    wire = replace(
        WIRE, handshake_timeout_ms=3000, heartbeat_interval_ms=100, heartbeat_timeout_ms=3000
    )
    records = Pair(stack, network, Flow(pad=1000), limits=wire)
    letters = Correspondents(stack, network, replace(wire, heartbeat_timeout_ms=3600))
    for proxy in network.proxies:
        proxy.shape = slow

    records.start()
    letters.write()
    letters.write(1, size=260_000)
    letters.write(5)
    records.wait_records(150)
    records.flow.may_end.set()
    first, large, *rest = letters.other.take(letters.written)

    assert (first, len(large), rest) == (b"0", 260_000, [b"2", b"3", b"4", b"5", b"6"])
    assert letters.one.losses.empty()
    assert letters.other.losses.empty()
    assert records.outcome(BOUND_S) == []
    assert records.flow.received == list(range(records.flow.sent))
