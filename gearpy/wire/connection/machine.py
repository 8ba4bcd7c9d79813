"""One authenticated connection, as a state machine: bytes and ``now_ms`` in, events and bytes out.

Both ends use the same class. Nothing is parsed as a frame before the peer has proved that it
knows the cluster secret, or the key of an application, see `auth` and `keys`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

from gearpy.errors import AuthenticationFailed, ConnectionLost, ProtocolError
from gearpy.messages.versions import PROTOCOL, KnownVersions
from gearpy.wire.connection import auth
from gearpy.wire.connection.auth import Proved, Purpose, Role
from gearpy.wire.connection.frames import Frame, FrameDecoder, FrameLimits
from gearpy.wire.connection.keys import KeyRing, Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class HandshakeLimits:
    """The time in which a peer must prove itself, and the bytes that it may send until then."""

    timeout_ms: int = 3000
    bytes_max: int = 512


@dataclass(frozen=True, slots=True)
class Authenticated:
    """Both ends know the key of ``principal``; frames may follow."""

    purpose: Purpose
    principal: Principal


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """The connection has ended; close the socket once `data_to_send` is empty.

    ``error`` is a `ConnectionLost` if the peer closed it, else what the peer did wrong.
    """

    error: ProtocolError | ConnectionLost


ConnectionEvent: TypeAlias = Authenticated | Frame | ConnectionClosed


class _State(Enum):
    EXPECT_HELLO = auto()
    EXPECT_CHALLENGE = auto()
    EXPECT_PROOF = auto()
    EXPECT_WELCOME = auto()
    OPEN = auto()
    CLOSED = auto()


#: How many bytes the peer's next message has.
_EXPECTED_BYTES: Final = {
    _State.EXPECT_HELLO: auth.HELLO_BYTES,
    _State.EXPECT_CHALLENGE: auth.CHALLENGE_BYTES,
    _State.EXPECT_PROOF: auth.PROOF_BYTES,
    _State.EXPECT_WELCOME: auth.PROOF_BYTES,
}


#: How the peer begins if it speaks TLS and was not spoken to in TLS.
_TLS_ALERT: Final = b"\x15\x03"
_TLS_HINT: Final = ': it speaks TLS, set transport.tls = "on"'


class Connection:
    """One end of a connection. Never raises for an action of the peer: that becomes an event.

    After every `receive_data`, `receive_eof` or `on_tick`: send `data_to_send()`, handle
    `events()`. Frames to send go straight to the socket once `Authenticated` was seen.

    Invariant: no frame event before `Authenticated`; no event after `ConnectionClosed`.
    """

    def __init__(
        self,
        *,
        role: Role,
        keys: KeyRing,
        nonce: bytes,
        now_ms: int,
        purpose: Purpose = Purpose.LINK,
        follow: bool = False,
        versions: KnownVersions = PROTOCOL,
        frames: FrameLimits = FrameLimits(),  # noqa: B008 - frozen
        handshake: HandshakeLimits = HandshakeLimits(),
    ) -> None:
        """Begin a connection; ``nonce`` is `auth.NONCE_BYTES` fresh random bytes.

        ``purpose`` is the client's choice; a server learns it from its client. A client offers
        to prove the key of its own principal. With ``follow`` it proves another one that it has,
        if the server names that: then anybody with that key may answer, and who asked must look
        at `principal` before it believes. ``versions`` are those of the protocol that this end
        speaks.
        """
        assert len(nonce) == auth.NONCE_BYTES, "a nonce of the agreed size"
        self.purpose = purpose
        self.version = versions.newest  # It is agreed on once `authenticated`.
        self._versions = versions
        self._role = role
        self._keys, self._nonce = keys, nonce
        self._follow = follow
        self._asked = keys.own  # Whose key the client would prove ...
        self._named = keys.own  # ... and whose it is asked to.
        self._peer_nonce = b""
        self._handshake = handshake
        self._deadline_ms = now_ms + handshake.timeout_ms
        self._decoder = FrameDecoder(frames)
        self.frame_bytes_in = 0  # All that came behind the handshake.
        self._received = bytearray()  # Handshake bytes not yet consumed.
        self._received_total = 0  # Handshake bytes ever.
        self._outgoing: list[bytes] = []
        self._events: list[ConnectionEvent] = []
        self._state = _State.EXPECT_HELLO
        if role is Role.CLIENT:
            self._state = _State.EXPECT_CHALLENGE
            self._nonce = auth.client_nonce(nonce, versions.newest)
            self._outgoing.append(auth.hello(purpose, self._nonce, self._asked, versions.oldest))
        self._steps: dict[_State, Callable[[bytes], None]] = {
            _State.EXPECT_HELLO: self._on_hello,
            _State.EXPECT_CHALLENGE: self._on_challenge,
            _State.EXPECT_PROOF: self._on_proof,
            _State.EXPECT_WELCOME: self._on_welcome,
        }

    @property
    def authenticated(self) -> bool:
        return self._state is _State.OPEN

    @property
    def principal(self) -> Principal:
        """The name in which the peer speaks; means nothing before `Authenticated`.

        It knows the key of this principal. A holder of the cluster secret can be any of them.
        """
        return self._named

    @property
    def closed(self) -> bool:
        return self._state is _State.CLOSED

    @property
    def deadline_ms(self) -> int | None:
        """The latest time at which to call `on_tick`; None once it is not needed."""
        return None if self.authenticated or self.closed else self._deadline_ms

    @property
    def held_bytes(self) -> int:
        return len(self._received) + self._decoder.held_bytes

    def receive_data(self, data: bytes | memoryview, now_ms: int) -> None:
        """Take bytes from the peer. After the end they are ignored."""
        self._check_deadline(now_ms)
        try:
            if not self.authenticated:
                data = self._shake_hands(memoryview(data))
            if data and self.authenticated:
                self.frame_bytes_in += len(data)
                self._events += self._decoder.feed(data)
        except ProtocolError as error:
            self._close(error)

    def receive_eof(self) -> None:
        if not self.closed:
            when = "" if self.authenticated else " during the handshake"
            hint = _TLS_HINT if self._received[: len(_TLS_ALERT)] == _TLS_ALERT else ""
            self._close(ConnectionLost(f"the peer closed the connection{when}{hint}"))

    def on_tick(self, now_ms: int) -> None:
        """Give up on a peer that has not proved itself in time, or has stopped amid a frame.

        The latter is found if this is called now and then, several times in
        `FrameLimits.stall_ms`.
        """
        self._check_deadline(now_ms)
        if self.authenticated:
            try:
                self._decoder.on_tick(now_ms)
            except ProtocolError as error:
                self._close(error)

    def _check_deadline(self, now_ms: int) -> None:
        deadline_ms = self.deadline_ms
        if deadline_ms is not None and now_ms >= deadline_ms:
            text = f"the peer did not finish the handshake in {self._handshake.timeout_ms} ms"
            self._close(AuthenticationFailed(text))

    def data_to_send(self) -> bytes:
        """Return the handshake bytes to send next; each is returned once."""
        data, self._outgoing = b"".join(self._outgoing), []
        return data

    def events(self) -> list[ConnectionEvent]:
        events, self._events = self._events, []
        return events

    def _shake_hands(self, data: memoryview) -> memoryview:
        """Consume handshake messages; return the bytes behind them, which belong to frames."""
        while data and not (self.authenticated or self.closed):
            missing = _EXPECTED_BYTES[self._state] - len(self._received)
            self._received += data[:missing]
            received = min(missing, len(data))
            self._received_total += received
            if self._received_total > self._handshake.bytes_max:
                raise ProtocolError(f"more than {self._handshake.bytes_max} bytes before a proof")
            data = data[missing:]
            if len(self._received) == _EXPECTED_BYTES[self._state]:
                message = bytes(self._received)
                self._received.clear()
                self._steps[self._state](message)
        return data

    def _on_hello(self, message: bytes) -> None:
        hello = auth.parse_hello(message, self._versions)
        self.purpose, self._peer_nonce, self._asked = hello.purpose, hello.nonce, hello.principal
        if self._keys.key_of(self._asked) is not None:
            self._named = self._asked
        common = self._versions.common(hello.oldest, hello.newest)
        self.version = common or self._versions.newest
        # Answered in any case: it tells a client without a common version what is wrong.
        self._outgoing.append(auth.challenge(self._nonce, self._named, self.version))
        if common is None:
            raise self._other_version(hello.newest)
        self._state = _State.EXPECT_PROOF

    def _on_challenge(self, message: bytes) -> None:
        challenge = auth.parse_challenge(message)
        if not self._versions.knows(challenge.version):
            raise self._other_version(challenge.version)
        self.version = challenge.version
        self._peer_nonce, self._named = challenge.nonce, challenge.principal
        allowed = self._follow or self._named == self._asked
        if not (allowed and self._keys.key_of(self._named) is not None):
            raise ProtocolError(
                f"the peer belongs to {self._named}, this side spoke for {self._asked}"
            )
        self._outgoing.append(self._proof(Role.CLIENT))
        self._state = _State.EXPECT_WELCOME

    def _other_version(self, version: int) -> ProtocolError:
        return ProtocolError(
            f"the peer speaks protocol version {version}, this side {self._versions.text}: run "
            "gearpy versions that follow each other, and upgrade through each one between"
        )

    def _on_proof(self, message: bytes) -> None:
        try:
            auth.check_proof(self._proof(Role.CLIENT), message, self._named)
        except AuthenticationFailed:
            self._outgoing.append(auth.REFUSED)
            raise
        self._outgoing.append(self._proof(Role.SERVER))
        self._open()

    def _on_welcome(self, message: bytes) -> None:
        if message == auth.REFUSED:
            other = self._named.key_name.replace("the ", "another ", 1)
            raise AuthenticationFailed(f"the peer refused our proof: it has {other}")
        auth.check_proof(self._proof(Role.SERVER), message, self._named)
        self._open()

    def _open(self) -> None:
        self._state = _State.OPEN
        self._events.append(Authenticated(self.purpose, self._named))

    def _close(self, error: ProtocolError | ConnectionLost) -> None:
        self._state = _State.CLOSED
        self._received.clear()
        self._events.append(ConnectionClosed(error))

    def _proof(self, role: Role) -> bytes:
        key = self._keys.key_of(self._named)
        assert key is not None, "checked when it was named"
        nonces = (self._nonce, self._peer_nonce)
        if self._role is Role.SERVER:
            nonces = (self._peer_nonce, self._nonce)
        proved = Proved(self.purpose, self._asked, self._named, *nonces, self.version)
        return auth.proof(key, role, proved)
