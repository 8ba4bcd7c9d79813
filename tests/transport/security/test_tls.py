"""TLS around every connection, see `gearpy.transport.security.tls` and `credentials`."""

import queue
import socket
import ssl
from contextlib import ExitStack, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import ConnectionLost, GearpyError, ProtocolError
from gearpy.ids import AppId, ExecutorId, TaskId
from gearpy.messages.client import ListWorkers, WorkerList
from gearpy.transport.api import TransportLimits, split_address
from gearpy.transport.letters.client import ControlClient
from gearpy.transport.links.tcp import TcpTransport
from gearpy.transport.security.credentials import Credentials, Shown
from gearpy.transport.security.tls import (
    AUTHORITY_FILE,
    CERTIFICATE_FILE,
    KEY_FILE,
    TlsContexts,
    TlsPipe,
    load_contexts,
)
from gearpy.wire.connection.keys import KeyRing, LaunchToken
from gearpy.wire.link_codec import LinkCodec
from tests.transport.build import (
    KEYS,
    PATIENCE_S,
    SECRET,
    Folders,
    Inbox,
    Losses,
    ask_for_workers,
    data,
    request,
)

TARGET = TaskId(1, 0)
LIMITS = TransportLimits(unauthenticated_max=4)
#: For who must be cut off in time; still long enough for good peers on a busy machine.
IMPATIENT = TransportLimits(handshake_timeout_ms=1000, unauthenticated_max=4)


class Port:
    def __init__(self, stack: ExitStack, shown: Shown, limits: TransportLimits = LIMITS) -> None:
        self.shown = shown
        self.inbox = Inbox()
        self.transport = TcpTransport(shown, limits=limits)
        self.transport.register(TARGET, self.inbox)
        self.transport.serve_control(lambda _: WorkerList(workers=()))
        self.address = self.transport.start()
        stack.callback(self.transport.stop)

    def assert_serves_good_peers(self) -> None:
        """Records and questions of good peers arrive; nothing else was delivered before."""
        assert self.inbox.empty
        good = TcpTransport(self.shown)
        good.start()
        good.locate({TARGET: self.address})
        good.send([request(7, TARGET)])
        assert self.inbox.take_seqs(1) == [7]
        good.stop()
        assert ask_for_workers(self.address, self.shown) == WorkerList(workers=())


def ask(address: str, shown: Shown) -> object:
    with ControlClient(address, shown) as client:
        return client.ask(ListWorkers(), PATIENCE_S)


def loss(stack: ExitStack, address: str, shown: Shown) -> str:
    losses = Losses()
    limits = TransportLimits(reconnect_retries=1, reconnect_base_ms=1, handshake_timeout_ms=3000)
    sender = TcpTransport(shown, limits=limits, on_link_lost=losses)
    sender.start()
    stack.callback(sender.stop)
    sender.locate({TARGET: address})
    sender.send([request(1, TARGET)])
    return losses.take()[1]


# -- good peers ----------------------------------------------------------------------------


def test_records_and_questions_travel_encrypted(stack: ExitStack, shown: Credentials) -> None:
    port = Port(stack, shown)
    port.assert_serves_good_peers()
    sender = TcpTransport(shown, limits=TransportLimits(write_buffer_bytes=65_536))
    sender.start()
    stack.callback(sender.stop)
    sender.locate({TARGET: port.address})

    for seq in range(200):
        sender.send([data(seq, TARGET, [b"x" * 1000] * 50)])

    assert port.inbox.take_seqs(200) == list(range(200))


def test_nothing_is_readable_on_the_way(stack: ExitStack, shown: Credentials) -> None:
    port = Port(stack, shown)
    host_port = split_address(port.address)
    pipe = shown.tls.client_pipe(host_port[0]) if shown.tls else None
    assert pipe is not None
    frame = b"".join(LinkCodec().encode(request(666, TARGET)))
    with socket.create_connection(host_port, PATIENCE_S) as sock:
        sent, received = pipe.data_to_send(), b""
        sock.sendall(sent)
        while not pipe.ready:
            received += (chunk := sock.recv(65_536))
            pipe.receive(chunk)
        pipe.send(b"gearpy" + frame)
        sent += pipe.data_to_send()

    for text in (b"gearpy\x00", b"gearpy" + frame[:4]):
        assert text not in sent
        assert text not in received


def test_an_application_speaks_tls_with_its_own_key(
    stack: ExitStack, contexts: TlsContexts
) -> None:
    token = LaunchToken.issued(KEYS, AppId(7), ExecutorId(0), launch=1, expires_ms=1)
    port = Port(stack, Credentials(keys=token.keys, tls=contexts))

    port.assert_serves_good_peers()

    with pytest.raises(GearpyError, match="belongs to application 7"):
        ask(port.address, Credentials(keys=KEYS, tls=contexts))


def test_letters_travel_encrypted_between_the_cluster_and_an_application(
    stack: ExitStack, contexts: TlsContexts
) -> None:
    """Both ways: the application proves its own key, the cluster the one that is named."""
    token = LaunchToken.issued(KEYS, AppId(7), ExecutorId(0), launch=1, expires_ms=1)
    got: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    nodes = []
    for keys in (KEYS, token.keys):
        transport = TcpTransport(Credentials(keys=keys, tls=contexts))
        transport.start()
        stack.callback(transport.stop)
        nodes.append(transport.serve_peers())
        nodes[-1].serve(lambda _, letter: got.put(letter.body))
    cluster, application = nodes

    cluster.send(application.node, to="actor", body=b"from the cluster")
    assert got.get(timeout=PATIENCE_S) == b"from the cluster"
    application.send(cluster.node, to="actor", body=b"from the application")
    assert got.get(timeout=PATIENCE_S) == b"from the application"

    assert cluster.principal_of(application.node) == token.keys.own


def test_a_control_client_keeps_its_connection(stack: ExitStack, shown: Credentials) -> None:
    port = Port(stack, shown)
    with ControlClient(port.address, shown) as client:
        sockets = set()
        for _ in range(20):
            client.ask(ListWorkers(), PATIENCE_S)
            sockets.add(client._socket)  # noqa: SLF001

        assert len(sockets) == 1


# -- others --------------------------------------------------------------------------------


def test_a_good_certificate_is_no_secret(stack: ExitStack, shown: Credentials) -> None:
    port = Port(stack, shown)
    liar = Credentials(keys=KeyRing.of_cluster(b"t" * 32), tls=shown.tls)

    with pytest.raises(GearpyError, match="another cluster secret"):
        ask(port.address, liar)
    assert "another cluster secret" in loss(stack, port.address, liar)

    port.assert_serves_good_peers()


def test_the_secret_is_no_certificate(
    stack: ExitStack, shown: Credentials, folders: Folders
) -> None:
    """A peer of another authority is refused, whatever else it knows."""
    port = Port(stack, shown)
    foreign = Credentials(keys=KEYS, tls=load_contexts(folders.other_cluster))

    with pytest.raises(ProtocolError, match="a certificate was refused"):
        ask(port.address, foreign)
    assert "a certificate was refused" in loss(stack, port.address, foreign)

    port.assert_serves_good_peers()


@pytest.mark.parametrize("client", ["without a certificate", "with an expired one", "of TLS 1.2"])
def test_a_client_is_refused(
    stack: ExitStack, shown: Credentials, folders: Folders, contexts: TlsContexts, client: str
) -> None:
    port = Port(stack, shown)
    bad = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    bad.load_verify_locations(folders.cluster / AUTHORITY_FILE)
    if client != "without a certificate":
        own = folders.expired if client == "with an expired one" else folders.cluster
        bad.load_cert_chain(own / CERTIFICATE_FILE, own / KEY_FILE)
    if client == "of TLS 1.2":
        bad.maximum_version = ssl.TLSVersion.TLSv1_2

    with pytest.raises((ProtocolError, ConnectionLost)):
        ask(port.address, Credentials(keys=KEYS, tls=TlsContexts(contexts.server, bad)))

    port.assert_serves_good_peers()


def test_half_a_cluster_with_tls_is_told_what_is_wrong(
    stack: ExitStack, shown: Credentials
) -> None:
    encrypted, plain = Port(stack, shown), Port(stack, SECRET)

    with pytest.raises(ConnectionLost, match=r'set transport\.tls = "on"'):
        ask(encrypted.address, SECRET)
    with pytest.raises(GearpyError, match=r"transport\.tls = \"on\" there"):
        ask(plain.address, shown)
    assert 'set transport.tls = "on"' in loss(stack, encrypted.address, SECRET)
    assert 'transport.tls = "on" there' in loss(stack, plain.address, shown)

    encrypted.assert_serves_good_peers()
    plain.assert_serves_good_peers()


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\x16",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 20,
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00" * 1000,
        b"\x17\x03\x03\x40\x00" + b"x" * 100_000,
        b"".join(LinkCodec().encode(request(666, TARGET))) * 10,
    ],
    ids=["nothing", "one-byte", "half-hello", "http", "zeros", "large", "frames"],
)
def test_garbage_at_an_encrypted_port_is_cut_off(
    stack: ExitStack, shown: Credentials, garbage: bytes
) -> None:
    port = Port(stack, shown, IMPATIENT)
    with (
        socket.create_connection(split_address(port.address), PATIENCE_S) as sock,
        suppress(ConnectionError),
    ):
        sock.sendall(garbage)
        while sock.recv(4096):
            pass

    port.assert_serves_good_peers()


def test_strangers_in_a_tls_handshake_count_as_strangers(
    stack: ExitStack, shown: Credentials
) -> None:
    port = Port(stack, shown, IMPATIENT)
    strangers = [
        stack.enter_context(socket.create_connection(split_address(port.address), PATIENCE_S))
        for _ in range(LIMITS.unauthenticated_max + 1)
    ]

    for each in strangers:
        with suppress(ConnectionError):
            assert each.recv(1) == b""
    port.assert_serves_good_peers()


def test_a_peer_with_certificate_that_says_nothing_is_cut_off(
    stack: ExitStack, shown: Credentials, contexts: TlsContexts
) -> None:
    """TLS is no proof of a key: the deadline of the handshake goes on."""
    port = Port(stack, shown, IMPATIENT)
    with (
        socket.create_connection(split_address(port.address), PATIENCE_S) as raw,
        contexts.client.wrap_socket(raw, server_hostname="127.0.0.1") as sock,
        suppress(OSError),
    ):
        assert sock.recv(1) == b""

    port.assert_serves_good_peers()


# -- the pipe ------------------------------------------------------------------------------


def talk(client: TlsPipe, server: TlsPipe) -> tuple[bytes, bytes]:
    """Carry bytes until neither says anything; return what the server and the client got."""
    to_server = to_client = b""
    while (out := client.data_to_send()) or (back := server.data_to_send()):
        to_server += server.receive(out) if out else b""
        back = server.data_to_send() if out else back
        to_client += client.receive(back) if back else b""
    return to_server, to_client


@given(data_=st.data(), words=st.lists(st.binary(max_size=50_000), max_size=4))
def test_what_is_sent_arrives_however_it_is_cut(
    contexts: TlsContexts, data_: st.DataObject, words: list[bytes]
) -> None:
    """The invariant: a pipe is a pipe. What is sent early waits for the handshake."""
    client, server = contexts.client_pipe("127.0.0.1"), contexts.server_pipe()
    client.send(b"early")
    got = [talk(client, server)[0]]
    for word in words:
        client.send(word)
    stream = client.data_to_send()
    cuts = sorted(data_.draw(st.lists(st.integers(0, len(stream)), max_size=5)))

    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got.append(server.receive(stream[start:end]))

    assert b"".join(got) == b"early" + b"".join(words)


def test_a_flipped_bit_ends_the_pipe(contexts: TlsContexts) -> None:
    client, server = contexts.client_pipe("127.0.0.1"), contexts.server_pipe()
    talk(client, server)
    client.send(b"one hundred")
    stream = bytearray(client.data_to_send())
    stream[-20] ^= 1

    with pytest.raises(ProtocolError, match="TLS failed"):
        server.receive(bytes(stream))


def test_an_endless_handshake_is_cut_off(contexts: TlsContexts) -> None:
    server, taken = contexts.server_pipe(), []
    # A ClientHello that announces 128 KiB, in records of 16 KiB.
    record = b"\x16\x03\x01\x40\x00"
    first = record + b"\x01\x01\xff\xff" + bytes(16_380)

    def feed() -> None:
        for chunk in [first, *[record + bytes(16_384)] * 1000]:
            server.receive(chunk)
            taken.append(chunk)

    with pytest.raises(ProtocolError):
        feed()
    assert len(taken) < 10


def test_the_end_is_said(contexts: TlsContexts) -> None:
    client, server = contexts.client_pipe("127.0.0.1"), contexts.server_pipe()
    talk(client, server)
    client.send(b"last words")
    client.close()

    assert server.receive(client.data_to_send()) == b"last words"
    assert server.receive(b"") == b""


def test_a_host_that_is_not_in_the_certificate_is_not_believed(contexts: TlsContexts) -> None:
    """Else each machine of the cluster could pose as any other."""
    client, server = contexts.client_pipe("other.example"), contexts.server_pipe()

    with pytest.raises(ProtocolError, match=r"not valid for 'other\.example'"):
        talk(client, server)


def test_machines_of_one_authority_believe_each_other(
    folders: Folders, contexts: TlsContexts
) -> None:
    other = load_contexts(folders.elsewhere)

    for host, server, client in (
        ("other.example", other, contexts),
        ("node.example", contexts, other),
    ):
        pipes = client.client_pipe(host), server.server_pipe()
        talk(*pipes)
        assert pipes[0].ready
        assert pipes[1].ready
