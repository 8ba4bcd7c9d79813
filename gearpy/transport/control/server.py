"""Answers questions on control connections, on threads of its own."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from gearpy.errors import GearpyError, ProtocolError
from gearpy.transport.api import TransportLimits
from gearpy.transport.connection.protocol import WireProtocol
from gearpy.transport.loop.loop import LoopThread
from gearpy.wire.connection.frames import Frame
from gearpy.wire.connection.keys import Principal
from gearpy.wire.control_codec import (
    decode_request,
    encode_error,
    encode_reply,
    request_id_of,
)

__all__ = ["ControlAllows", "ControlHandler", "ControlServer"]

_log = logging.getLogger(__name__)

#: Takes a control message, returns the answer; what it raises becomes an error for the asker.
ControlHandler = Callable[[object], object]

#: Tells whether a principal may send a control message.
ControlAllows = Callable[[Principal, object], bool]


class ControlServer:
    """Calls a handler for each question, with a bounded number of questions at once.

    Above the bound a question is answered with an error at once; it was not handled.

    Runs on: the loop thread; the handler on worker threads.
    """

    def __init__(
        self,
        handler: ControlHandler,
        loop: LoopThread,
        limits: TransportLimits,
        allows: ControlAllows,
    ) -> None:
        self._handler = handler
        self._allows = allows
        self._loop = loop
        self._limits = limits
        self._in_flight = 0
        self._workers = ThreadPoolExecutor(limits.control_threads, "gearpy-control")

    def on_frames(self, protocol: WireProtocol, frames: list[Frame]) -> None:
        """Take questions from one connection.

        Raises:
            ProtocolError: the peer sent something else, or does not read its answers.
        """
        for frame in frames:
            request_id = request_id_of(frame)
            if protocol.paused:
                raise ProtocolError("the peer asks but does not read the answers")
            if self._in_flight < self._limits.control_in_flight_max:
                self._in_flight += 1
                self._workers.submit(self._work, protocol, request_id, frame)
            elif request_id is not None:
                busy = GearpyError(f"busy: {self._in_flight} questions in flight, ask again later")
                protocol.write(encode_error(request_id, busy, self._limits.frames))

    def close(self) -> None:
        """Start no further question; those that run are not waited for."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _work(self, protocol: WireProtocol, request_id: int | None, frame: Frame) -> None:
        """Handle one question, on a worker thread."""
        reply = self._reply(request_id or 0, frame, protocol.connection.principal)
        self._loop.call_soon(self._done, protocol, None if request_id is None else reply)

    def _reply(
        self, request_id: int, frame: Frame, principal: Principal
    ) -> list[bytes | memoryview]:
        frames = self._limits.frames
        try:
            message = decode_request(frame)
            self._check_allowed(principal, message)
            return encode_reply(request_id, self._handler(message), frames)
        except GearpyError as error:
            return encode_error(request_id, error, frames)
        except Exception as error:  # noqa: BLE001 - else the asker would wait in vain
            _log.error("a control handler failed", exc_info=error)
            return encode_error(request_id, error, frames)

    def _check_allowed(self, principal: Principal, message: object) -> None:
        if not self._allows(principal, message):
            name = type(message).__name__
            _log.warning("%s sent %s and may not", principal, name)
            raise GearpyError(f"{principal} may not send {name} to this process")

    def _done(self, protocol: WireProtocol, reply: list[bytes | memoryview] | None) -> None:
        self._in_flight -= 1
        if reply is not None:
            protocol.write(reply)
