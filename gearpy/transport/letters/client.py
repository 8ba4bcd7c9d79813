"""A client of a cluster: a blocking socket, without an event loop."""

import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import NoReturn, Self

from msgspec import Struct

from gearpy.clocks import monotonic_ms
from gearpy.errors import AskTimeout, ConnectionLost, GearpyError, ProtocolError
from gearpy.messages.peer import Letter
from gearpy.transport.api import TransportLimits, split_address
from gearpy.transport.connection.protocol import NO_TLS_THERE, new_connection
from gearpy.transport.security.credentials import Shown, credentials_of
from gearpy.transport.security.tls import TlsPipe
from gearpy.wire.codec import decode_answer, decode_peer, encode_control, encode_peer
from gearpy.wire.connection.auth import Purpose, Role
from gearpy.wire.connection.frames import Frame
from gearpy.wire.connection.machine import Authenticated, Connection, ConnectionClosed

_READ_BYTES = 65_536


class WhileSilent(Struct, frozen=True):
    """The action of a client while an answer does not come.

    Args:
        every_s: after so long without anything, and again after as much.
        why_not_wait: returns why the answer is not waited for any longer; "" to wait on.
    """

    every_s: float
    why_not_wait: Callable[[], str]


class _GivenUp(Exception):
    """An answer is not waited for any longer."""


class ControlClient:
    """One connection to a cluster, made when first needed and again after a loss.

    A question is a letter; the letter with its answer comes back on the same connection.
    Questions of several threads are asked one after the other.

    Runs on: any thread; `ask` blocks.
    """

    def __init__(
        self,
        address: str,
        shown: Shown,
        limits: TransportLimits = TransportLimits(),  # noqa: B008 - frozen
    ) -> None:
        self.address = address
        self._host_port = split_address(address)
        self._credentials = credentials_of(shown)
        self._limits = limits
        self._ids = count(1)
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._connection: Connection | None = None
        self._tls: TlsPipe | None = None
        self._frames: list[Frame] = []
        self._silence: WhileSilent | None = None  # That of the question that is asked.

    def ask(
        self, message: object, timeout_s: float, *, silence: WhileSilent | None = None
    ) -> object:
        """Return the answer to a control message.

        Args:
            silence: is asked whether to wait on while nothing comes.

        Raises:
            ConnectionLost: there is no cluster at the address, or it went away; the question
                may have been handled.
            AuthenticationFailed: the cluster has another secret.
            AskTimeout: no answer within ``timeout_s``, or it was not waited for; the question may
                still be handled.
            GearpyError: what the other side raised.
        """
        deadline_ms = monotonic_ms() + int(timeout_s * 1000)
        with self._lock:
            self._silence = silence
            ask = next(self._ids)
            letter = Letter(number=ask, to="", body=encode_control(message), ask=ask)
            try:
                if self._socket is not None and _is_readable(self._socket, 0):
                    self._disconnect()
                if self._socket is None:
                    self._connect(deadline_ms)
                assert self._socket is not None
                assert self._connection is not None
                version = self._connection.version
                data = b"".join(encode_peer(letter, self._limits.frames, version))
                try:
                    self._socket.settimeout(_seconds_until(deadline_ms))
                    self._socket.sendall(self._encrypted(data))
                except TimeoutError:
                    raise
                except OSError as error:
                    self._lose(ConnectionLost(f"{self.address} went away: {error}"))
                answer = self._answer(ask, deadline_ms)
            except _GivenUp as error:
                self._disconnect()
                name = type(message).__name__
                raise AskTimeout(f"{self.address} did not answer {name}: {error}") from None
            except TimeoutError:
                self._disconnect()
                name = type(message).__name__
                raise AskTimeout(f"{self.address} did not answer {name} in {timeout_s} s") from None
        if isinstance(answer, GearpyError):
            raise answer
        return answer

    @property
    def is_connected(self) -> bool:
        with self._lock:
            return self._socket is not None and not _is_readable(self._socket, 0)

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- all below: with the lock held -----------------------------------------------------

    def _connect(self, deadline_ms: int) -> None:
        """Connect and shake hands, within the time that a peer has to prove itself."""
        limit_ms = self._limits.handshake_timeout_ms
        proof_ms = monotonic_ms() + limit_ms
        try:
            self._shake_hands(min(deadline_ms, proof_ms))
        except TimeoutError:
            if deadline_ms <= proof_ms:
                raise
            self._lose(
                ConnectionLost(
                    f"no cluster at {self.address}: nothing there has proved within "
                    f"{limit_ms / 1000:g} s to be a gearpy master"
                )
            )

    def _shake_hands(self, deadline_ms: int) -> None:
        try:
            self._socket = socket.create_connection(self._host_port, _seconds_until(deadline_ms))
        except TimeoutError:
            raise
        except OSError as error:
            raise ConnectionLost(f"no cluster at {self.address}: {error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tls = self._credentials.tls
        self._tls = None if tls is None else tls.client_pipe(self._host_port[0])
        self._connection = new_connection(
            Role.CLIENT, self._credentials, self._limits, purpose=Purpose.CLIENT
        )
        self._flush()
        while not self._connection.authenticated:
            self._receive(deadline_ms)

    def _answer(self, ask: int, deadline_ms: int) -> object:
        """Wait for the answer to a question; skip those of an `ask` that was interrupted."""
        while True:
            while not self._frames:
                self._receive(deadline_ms)
            try:
                letter = decode_peer(self._frames.pop(0))
                if isinstance(letter, Letter) and letter.answers == ask:
                    return decode_answer(letter.body)
            except ProtocolError as error:
                self._lose(error)
            if not isinstance(letter, Letter) or not letter.answers:
                name = type(letter).__name__
                self._lose(ProtocolError(f"expected an answer, got {name}"))

    def _receive(self, deadline_ms: int) -> None:
        assert self._socket is not None
        assert self._connection is not None
        sock = self._socket
        # While nothing can be read, it is asked now and then whether to go on.
        while (silence := self._silence) is not None:
            left_s = _seconds_until(deadline_ms)
            if _is_readable(sock, min(silence.every_s, left_s)):
                break
            if why := silence.why_not_wait():
                raise _GivenUp(why)
        sock.settimeout(_seconds_until(deadline_ms))
        try:
            data = sock.recv(_READ_BYTES)
        except TimeoutError:
            raise
        except OSError as error:
            self._lose(ConnectionLost(f"{self.address} went away: {error}"))
        if data:
            if self._tls is not None:
                try:
                    data = self._tls.receive(data)
                except ProtocolError as error:
                    with suppress(OSError):  # The alert, so that the peer knows why.
                        sock.sendall(self._tls.data_to_send())
                    self._lose(ProtocolError(f"{self.address}: {error}"))
            self._connection.receive_data(data, monotonic_ms())
        elif self._tls is not None and not self._tls.ready:
            self._lose(ConnectionLost(f"{self.address}: {NO_TLS_THERE}"))
        else:
            self._connection.receive_eof()
        self._flush()
        for event in self._connection.events():
            match event:
                case Frame():
                    self._frames.append(event)
                case ConnectionClosed(error=cause):
                    self._lose(type(cause)(f"{self.address}: {cause}"))
                case Authenticated():
                    pass

    def _flush(self) -> None:
        assert self._socket is not None
        assert self._connection is not None
        data = self._encrypted(self._connection.data_to_send())
        if data:
            try:
                self._socket.sendall(data)
            except OSError as error:
                self._lose(ConnectionLost(f"{self.address} went away: {error}"))

    def _encrypted(self, data: bytes) -> bytes:
        """Return the bytes for the socket; without ``data``, bytes that TLS itself has to send."""
        if self._tls is None:
            return data
        if data:
            self._tls.send(data)
        return self._tls.data_to_send()

    def _lose(self, error: ProtocolError | ConnectionLost) -> NoReturn:
        self._disconnect()
        raise error

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._connection, self._tls = None, None, None
        self._frames.clear()


def _seconds_until(deadline_ms: int) -> float:
    """Return the time left; raises `TimeoutError` if there is none, as a socket would."""
    left_ms = deadline_ms - monotonic_ms()
    if left_ms <= 0:
        raise TimeoutError
    return left_ms / 1000


def _is_readable(sock: socket.socket, within_s: float) -> bool:
    """Wait until there is something to read; `select` knows no socket above the 1024th file."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(within_s * 1000))
