"""What is special about TCP: limits, slow peers, reconnection. See `gearpy.transport.links.tcp`."""

import socket
from contextlib import ExitStack

import pytest

from gearpy.errors import ConfigError, FrameTooLarge
from gearpy.ids import TaskId
from gearpy.messages.data import DataMessage
from gearpy.transport.api import TransportLimits, split_address
from gearpy.transport.links.tcp import TcpTransport
from gearpy.transport.loop.loop import LoopThread
from gearpy.transport.security.credentials import Credentials
from gearpy.wire.connection.auth import HELLO_BYTES, NONCE_BYTES, PROOF_BYTES, Role
from gearpy.wire.connection.machine import Connection
from tests.transport.build import KEYS, SECRET, Inbox, Losses, data, request

TARGET, OTHER = TaskId(1, 0), TaskId(2, 0)


def started(stack: ExitStack, transport: TcpTransport) -> TcpTransport:
    transport.start()
    stack.callback(transport.stop)
    return transport


def mute_peer(stack: ExitStack) -> tuple[str, socket.socket]:
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return f"127.0.0.1:{listener.getsockname()[1]}", listener


def welcomed(stack: ExitStack, listener: socket.socket) -> socket.socket:
    """Accept a connection and shake hands; never read again."""
    accepted = stack.enter_context(listener.accept()[0])
    server = Connection(role=Role.SERVER, keys=KEYS, nonce=bytes(NONCE_BYTES), now_ms=0)
    server.receive_data(accepted.recv(HELLO_BYTES, socket.MSG_WAITALL), 1)
    accepted.sendall(server.data_to_send())
    server.receive_data(accepted.recv(PROOF_BYTES, socket.MSG_WAITALL), 1)
    accepted.sendall(server.data_to_send())
    assert server.authenticated
    return accepted


def test_a_peer_that_does_not_read_blocks_neither_sender_nor_other_peers(stack: ExitStack) -> None:
    """Clients are isolated; above the limit of its queue the slow one loses messages."""
    limits = TransportLimits(queue_bytes_max=4 << 20, close_timeout_ms=50)
    sender, good, inbox = TcpTransport(SECRET, limits=limits), TcpTransport(SECRET), Inbox()
    good.register(OTHER, inbox)
    started(stack, sender)
    address, listener = mute_peer(stack)
    sender.locate({TARGET: address, OTHER: started(stack, good).address})
    sender.send([request(0, TARGET)])
    accepted = welcomed(stack, listener)
    batch = [b"x" * 1000] * 1000

    for seq in range(40):
        sender.send([data(seq, TARGET, batch), request(seq, OTHER)])

    assert inbox.take_seqs(40) == list(range(40))
    sender.stop()
    received = 0
    while data_in := accepted.recv(1 << 20):
        received += len(data_in)
    assert received < 20 * 1000 * 1000


def test_what_waits_while_a_link_is_busy_goes_out_together(stack: ExitStack) -> None:
    """A busy link gathers; nothing is lost or reordered by it."""
    limits = TransportLimits(write_buffer_bytes=4096)
    sender, receiver, inbox = TcpTransport(SECRET, limits=limits), TcpTransport(SECRET), Inbox()
    receiver.register(TARGET, inbox)
    started(stack, sender).locate({TARGET: started(stack, receiver).address})

    sender.send([data(seq, TARGET, [b"x" * 500]) for seq in range(2000)])

    assert inbox.take_seqs(2000) == list(range(2000))


@pytest.mark.smoke
def test_a_broken_connection_is_reported_and_made_again(stack: ExitStack) -> None:
    losses = Losses()
    sender = started(stack, TcpTransport(SECRET, on_link_lost=losses))
    address, listener = mute_peer(stack)
    sender.locate({TARGET: address})
    sender.send([request(0, TARGET)])
    welcomed(stack, listener).close()

    assert losses.take()[0] == address
    sender.send([request(1, TARGET)])
    welcomed(stack, listener)


def test_a_peer_with_another_secret_is_given_up_at_once(stack: ExitStack) -> None:
    losses = Losses()
    limits = TransportLimits(reconnect_base_ms=60_000, reconnect_max_ms=60_000)
    sender = started(stack, TcpTransport(SECRET, limits=limits, on_link_lost=losses))
    stranger = started(stack, TcpTransport(b"t" * 32))
    sender.locate({TARGET: stranger.address})

    sender.send([request(1, TARGET)])

    assert "another cluster secret" in losses.take()[1]


def test_a_peer_that_answers_on_the_same_connection_is_cut_off(stack: ExitStack) -> None:
    losses = Losses()
    sender = started(stack, TcpTransport(SECRET, on_link_lost=losses))
    address, listener = mute_peer(stack)
    sender.locate({TARGET: address})
    sender.send([request(0, TARGET)])

    welcomed(stack, listener).sendall(b"\xff" * 100)

    assert "version 255" in losses.take()[1]


def test_a_batch_over_the_frame_limit_is_refused_where_it_is_sent(stack: ExitStack) -> None:
    limits = TransportLimits(frame_bytes_max=10_000)
    sender = started(stack, TcpTransport(SECRET, limits=limits))
    sender.locate({TARGET: mute_peer(stack)[0]})

    with pytest.raises(FrameTooLarge, match=r"over the limit of 10000: raise transport\.frame-max"):
        sender.send([data(1, TARGET, [b"x" * 10_000])])


def test_messages_behind_one_that_is_too_large_are_not_sent(stack: ExitStack) -> None:
    sender = started(stack, TcpTransport(SECRET, limits=TransportLimits(frame_bytes_max=10_000)))
    receiver, inbox = TcpTransport(SECRET), Inbox()
    receiver.register(TARGET, inbox)
    sender.locate({TARGET: started(stack, receiver).address, OTHER: mute_peer(stack)[0]})
    large, behind = data(2, TARGET, [b"x" * 10_000]), data(3, TARGET, [1])
    elsewhere = data(1, OTHER, [2])

    with pytest.raises(FrameTooLarge) as raised:
        sender.send([data(1, TARGET, [0]), large, elsewhere, behind])

    assert raised.value.unsent == [large, behind, elsewhere]
    assert inbox.take_seqs(1) == [1]


def test_a_handler_that_raises_does_not_end_the_connection(
    stack: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    sender, receiver, inbox = TcpTransport(SECRET), TcpTransport(SECRET), Inbox()

    def refuse(_: object) -> None:
        raise RuntimeError("no room")

    receiver.register(TARGET, refuse)
    receiver.register(OTHER, inbox)
    address = started(stack, receiver).address
    started(stack, sender).locate({TARGET: address, OTHER: address})

    sender.send([request(1, TARGET), request(2, OTHER)])

    assert inbox.take_seqs(1) == [2]
    assert "a handler refused 1 messages" in caplog.text


def test_transports_may_share_one_loop_thread(stack: ExitStack) -> None:
    """One thread a process is enough; who started it stops it."""
    loop = LoopThread()
    loop.start()
    stack.callback(loop.stop)
    sender, receiver = TcpTransport(SECRET, loop=loop), TcpTransport(SECRET, loop=loop)
    inbox = Inbox()
    receiver.register(TARGET, inbox)
    started(stack, sender).locate({TARGET: started(stack, receiver).address})

    sender.send([data(1, TARGET, ["a"])])

    assert isinstance(inbox.take(1)[0], DataMessage)
    sender.stop()
    assert loop.running


def test_an_address_in_use_is_a_mistake_that_says_so(stack: ExitStack) -> None:
    first = started(stack, TcpTransport(SECRET))
    second = TcpTransport(SECRET, port=split_address(first.address)[1])

    with pytest.raises(ConfigError, match=f"cannot listen on {first.address}"):
        second.start()


def test_other_machines_are_let_in_only_on_request(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConfigError, match=r"refused to listen on 0\.0\.0\.0"):
        TcpTransport(SECRET, host="0.0.0.0")  # noqa: S104 - refused

    allowing = Credentials(keys=KEYS, plain_text_anywhere=True)
    TcpTransport(allowing, host="0.0.0.0")  # noqa: S104 - not started
    assert "WITHOUT ENCRYPTION" in caplog.text


def test_an_ipv6_address_can_be_reached(stack: ExitStack) -> None:
    try:
        receiver = started(stack, TcpTransport(SECRET, host="::1"))
    except ConfigError:
        assert not socket.has_ipv6 or _no_ipv6_loopback()
        return
    sender, inbox = started(stack, TcpTransport(SECRET)), Inbox()
    receiver.register(TARGET, inbox)
    sender.locate({TARGET: receiver.address})

    sender.send([request(1, TARGET)])

    assert inbox.take_seqs(1) == [1]


def _no_ipv6_loopback() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return False
    except OSError:
        return True


def test_others_know_it_by_another_name_than_it_listens_at(stack: ExitStack) -> None:
    """A machine may take its own name for something else, or have none of its own."""
    known = started(stack, TcpTransport(SECRET, host="machine1.example", listen_host="127.0.0.1"))
    host, port = split_address(known.address)

    assert host == "machine1.example"
    stack.enter_context(socket.create_connection(("127.0.0.1", port)))


def test_to_listen_everywhere_needs_tls_or_permission() -> None:
    with pytest.raises(ConfigError, match=r"refused to listen on 0\.0\.0\.0"):
        TcpTransport(SECRET, host="localhost", listen_host="0.0.0.0")  # noqa: S104 - refused


def test_what_nobody_else_can_reach_warns(
    stack: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    name = "127.1"  # For the resolver; it is no address as others are.
    anywhere = Credentials(keys=KEYS, plain_text_anywhere=True)
    started(stack, TcpTransport(anywhere, host=name))

    assert "127.1 is 127.0.0.1 on this machine: others cannot reach" in caplog.text
    caplog.clear()
    started(stack, TcpTransport(anywhere, host=name, listen_host="127.0.0.1"))

    assert "others cannot reach" not in caplog.text
