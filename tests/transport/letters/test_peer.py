"""Links that break, peers that freeze or are gone, see `gearpy.transport.letters.peer`."""

import random
import socket
import threading
from contextlib import ExitStack

import pytest
from msgspec.structs import replace

from gearpy.ids import node_text
from gearpy.transport.security.credentials import Credentials
from gearpy.wire.connection.auth import HELLO_BYTES, NONCE_BYTES, PROOF_BYTES, Role
from gearpy.wire.connection.keys import KeyRing
from gearpy.wire.connection.machine import Connection
from tests.eventually import eventually
from tests.transport.build import PATIENCE_S, SECRET
from tests.transport.fault_proxy import Fault, Network, Way
from tests.transport.letters_build import PATIENT, QUICK, Make, proxied


@pytest.fixture
def network(stack: ExitStack) -> Network:
    return stack.enter_context(Network(seed=1))


@pytest.mark.parametrize("seed", range(4))
def test_whatever_breaks_letters_arrive_once_and_in_order(
    make: Make, network: Network, seed: int
) -> None:
    one, other, rng = make(), make(), random.Random(seed)
    proxy, node = proxied(network, other)

    for _ in range(10):
        cut = proxy.inject(Fault.RESET, rng.choice(list(Way)))
        expected = [b"%d " % count * rng.randrange(100) for count in range(200)]
        for body in expected:
            assert one.tell(node, body)
        cut.result(PATIENCE_S)
        assert other.take(200) == expected

    assert other.letters.empty()


def test_letters_cross_encrypted_links(make: Make, network: Network, shown: Credentials) -> None:
    """TLS goes around everything; also connections that break."""
    one, other = make(shown=shown), make(shown=shown)
    proxy, node = proxied(network, other, frames=False)
    bodies = [bytes([count]) * 300_000 for count in range(20)]

    for body in bodies:
        assert one.tell(node, body)
    proxy.cut()

    assert other.take(20) == bodies


def test_letters_whose_receipt_was_lost_are_not_repeated(make: Make, network: Network) -> None:
    """They were taken, but that was never heard: the welcome of the next connection says so."""
    one, other = make(), make()
    proxy, node = proxied(network, other)
    one.tell(node, b"first")
    assert other.take() == [b"first"]

    proxy.swallow(Way.BACK)
    one.tell(node, b"second")
    assert other.take() == [b"second"]
    proxy.plug_in()
    proxy.cut()

    one.tell(node, b"third")
    assert other.take() == [b"third"]


def test_a_link_nobody_needs_is_forgotten_when_it_breaks(make: Make, network: Network) -> None:
    """A master has met many executors; a new letter makes a new link."""
    one, other = make(), make()
    proxy, node = proxied(network, other)
    one.tell(node, b"a")
    other.take()
    eventually(lambda: not one.nodes._links[node].is_needed, "it was taken")  # noqa: SLF001

    proxy.cut()
    eventually(lambda: not one.nodes._links, "the link is gone")  # noqa: SLF001

    one.tell(node, b"b")
    assert other.take() == [b"b"]


def test_a_process_whose_listener_is_gone_is_lost_at_once(make: Make, network: Network) -> None:
    """A killed process says nothing; its machine refuses the next connection."""
    one, other = make(), make()
    proxy, node = proxied(network, other)
    one.watch(node)
    one.tell(node)
    other.take()

    network.run(proxy.stop())

    assert f"nobody listens at {proxy.address} any more" in one.lost()


def test_a_peer_that_proves_itself_and_then_says_nothing_is_lost(
    make: Make, stack: ExitStack
) -> None:
    one = make(replace(QUICK, handshake_timeout_ms=1500, heartbeat_timeout_ms=1500))
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    one.watch(node_text(f"127.0.0.1:{listener.getsockname()[1]}", "1" * 16))

    accepted = stack.enter_context(listener.accept()[0])
    server = Connection(
        role=Role.SERVER, keys=KeyRing.of_cluster(SECRET), nonce=bytes(NONCE_BYTES), now_ms=0
    )
    for size in (HELLO_BYTES, PROOF_BYTES):
        server.receive_data(accepted.recv(size, socket.MSG_WAITALL), 1)
        accepted.sendall(server.data_to_send())

    assert "silent for" in one.lost()


def test_a_black_hole_is_found_while_connecting(make: Make, stack: ExitStack) -> None:
    one = make(QUICK)
    hole = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

    one.watch(node_text(f"127.0.0.1:{hole.getsockname()[1]}", "1" * 16))

    reason = one.lost()
    assert "silent for" in reason
    assert "no answer in 300 ms" in reason


def test_heartbeats_keep_quiet_nodes_together(make: Make) -> None:
    one, other = (make(replace(QUICK, heartbeat_timeout_ms=2000)) for _ in range(2))
    one.watch(other.node)
    other.watch(one.node)

    assert not threading.Event().wait(2.5)

    assert one.losses.empty()
    assert other.losses.empty()


def test_a_loop_that_is_held_up_blames_nobody(make: Make) -> None:
    limits = replace(PATIENT, heartbeat_interval_ms=500, heartbeat_timeout_ms=1000)
    one, other = make(limits), make()
    one.watch(other.node)
    one.tell(other.node)
    other.take()

    thaw = one.freeze()
    threading.Event().wait(2.0)
    thaw.set()

    one.tell(other.node, b"again")
    assert other.take() == [b"again"]
    assert one.losses.empty()


def test_a_node_that_takes_nothing_is_lost_when_there_is_no_room(
    make: Make, stack: ExitStack
) -> None:
    """Memory is limited; to drop a letter would be silent."""
    one = make(replace(PATIENT, letters_max=10))
    hole = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    node = node_text(f"127.0.0.1:{hole.getsockname()[1]}", "1" * 16)
    one.watch(node)

    sent = [one.tell(node) for _ in range(12)]

    assert sent == [True] * 10 + [False] * 2
    assert one.lost() == "10 letters were not taken, no room for more"
