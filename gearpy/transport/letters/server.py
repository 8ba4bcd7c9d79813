"""The receiving end of letters: hands letters on, answers pings, refuses zombies."""

import logging
import threading
from collections import OrderedDict

from gearpy.errors import AuthenticationFailed, ConnectionLost, ProtocolError
from gearpy.messages.peer import (
    Fenced,
    Greeting,
    Letter,
    LettersTaken,
    PeerMessage,
    Ping,
    Pong,
    Welcome,
)
from gearpy.transport.api import TakeLetter, TransportLimits
from gearpy.transport.connection.protocol import WireProtocol
from gearpy.wire.codec import decode_peer, encode_peer
from gearpy.wire.connection.frames import Frame
from gearpy.wire.connection.keys import Principal
from gearpy.wire.connection.letters import Intake, LetterVerdict

_log = logging.getLogger(__name__)


class LetterServer:
    """Answers the peers that have connected to this one.

    Runs on: the loop thread. ``lock`` guards the intake.
    """

    def __init__(
        self,
        intake: Intake,
        *,
        lock: threading.Lock,
        limits: TransportLimits,
    ) -> None:
        self.deliver: TakeLetter | None = None
        self._intake = intake
        self._lock = lock
        self._limits = limits
        self._principals: OrderedDict[str, Principal] = OrderedDict()  # Oldest first.
        self._greetings: dict[WireProtocol, Greeting] = {}
        self._closing = ""  # The reason why nobody is welcome any more.

    def principal_of(self, node: str) -> Principal | None:
        """Return the principal of a node that has written to this one. Runs on any thread."""
        return self._principals.get(node)

    def drop(self, node: str, reason: str) -> None:
        """Tell a node that it is fenced. Its letters until it has heard that are counted."""
        for protocol, greeting in self._greetings.items():
            if greeting.sender == node:
                fenced = Fenced(node=self._intake.node, reason=reason, given_up=True)
                self._write(protocol, fenced)

    def close(self, reason: str) -> None:
        self._closing = reason
        for protocol in list(self._greetings):
            self._refuse(protocol, reason)

    def on_frames(self, protocol: WireProtocol, frames: list[Frame]) -> None:
        if protocol.paused:
            raise ProtocolError("a node writes but does not read the answers")
        taken = 0
        for frame in frames:
            was_welcome = protocol in self._greetings
            taken = self._on_message(protocol, decode_peer(frame)) or taken
            if was_welcome and protocol not in self._greetings:
                return  # Refused; the rest is of no interest.
        if taken:
            self._write(protocol, LettersTaken(number=taken))

    def reassure(self, protocol: WireProtocol) -> None:
        if protocol in self._greetings and not protocol.paused:
            self._write(protocol, Pong(number=0))

    def on_closed(self, protocol: WireProtocol) -> None:
        self._greetings.pop(protocol, None)

    def _on_message(self, protocol: WireProtocol, message: PeerMessage) -> int:
        greeting = self._greetings.get(protocol)
        match message:
            case Greeting() if greeting is None:
                self._on_greeting(protocol, message)
            case Letter() if greeting is not None:
                with self._lock:
                    verdict = self._intake.on_letter(greeting, message.number)
                    reason = self._intake.reason(greeting.sender)
                if verdict is LetterVerdict.REFUSED:
                    text = f"fenced: {reason}" if reason else "the session is over"
                    self._refuse(protocol, text, given_up=bool(reason))
                    return 0
                if verdict is LetterVerdict.HAND_ON:
                    sender = greeting.sender
                    assert self.deliver is not None, "nobody was welcome before"
                    try:
                        self.deliver(sender, message)
                    except Exception:  # noqa: BLE001 - one letter must not end what others use
                        _log.exception("a letter of %s to %s was not taken", sender, message.to)
                return message.number
            case Ping(number=number) if greeting is not None:
                with self._lock:
                    is_answered = self._intake.on_ping(greeting)
                if is_answered:
                    self._write(protocol, Pong(number=number))
            case _:
                raise ProtocolError(f"unexpected {type(message).__name__} of a node")
        return 0

    def _on_greeting(self, protocol: WireProtocol, greeting: Greeting) -> None:
        if self._closing:
            self._refuse(protocol, self._closing)
            return
        if self.deliver is None:  # Soon; it will connect again.
            protocol.close(ConnectionLost("this process takes no letters yet"))
            return
        # A node is bound to the first principal that it proves, lest another takes its name.
        principal = protocol.connection.principal
        bound = self._principals.setdefault(greeting.sender, principal)
        if bound != principal:
            raise AuthenticationFailed(f"{greeting.sender} speaks for {bound}, not for {principal}")
        if len(self._principals) > self._limits.senders_max:
            self._principals.popitem(last=False)

        with self._lock:
            answer = self._intake.on_greeting(greeting)
        if isinstance(answer, Fenced):
            _log.info("refused %s: %s", greeting.sender, answer.reason)
            self._refuse(protocol, answer.reason, given_up=answer.given_up)
            return
        # An earlier connection of the same conversation has lost its other end.
        for earlier, known in list(self._greetings.items()):
            if (known.sender, known.receiver) == (greeting.sender, greeting.receiver):
                del self._greetings[earlier]
                earlier.abort()
        self._greetings[protocol] = greeting
        self._write(protocol, answer)

    def _refuse(self, protocol: WireProtocol, reason: str, *, given_up: bool = False) -> None:
        self._greetings.pop(protocol, None)
        fenced = Fenced(node=self._intake.node, reason=reason, given_up=given_up)
        self._write(protocol, fenced)
        protocol.close(ConnectionLost("refused"))
        if protocol.paused:
            protocol.abort()  # It does not read, so it would never be closed in order.

    def _write(
        self, protocol: WireProtocol, message: Welcome | Fenced | LettersTaken | Pong
    ) -> None:
        protocol.write(encode_peer(message, self._limits.frames, protocol.connection.version))
