"""Answers to questions of other processes, on threads of their own."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from gearpy.errors import GearpyError, ProtocolError
from gearpy.messages.peer import Letter
from gearpy.transport.api import TransportLimits
from gearpy.transport.connection.protocol import WireProtocol
from gearpy.transport.loop.loop import LoopThread
from gearpy.wire.codec import decode_control, decode_peer, encode_answer, encode_peer
from gearpy.wire.connection.frames import Frame
from gearpy.wire.connection.keys import Principal

_log = logging.getLogger(__name__)

#: Takes a control message, returns the answer; what it raises becomes an error for the asker.
ControlHandler = Callable[[object], object]

#: Tells whether a principal may send a control message.
ControlAllows = Callable[[Principal, object], bool]

#: Finds the answer to one question; what it raises is the answer, too.
Find = Callable[[], object]

#: Sends the body of an answer; raises `GearpyError` if that cannot travel.
Reply = Callable[[bytes], object]


class Answers:
    """Finds answers to a bounded number of questions at once.

    Above the bound a question is answered with an error at once; it was not handled.

    Runs on: any thread; `Find` and `Reply` are called on threads of its own.
    """

    def __init__(self, name: str, *, threads: int = 4, in_flight_max: int = 64) -> None:
        self._threads = ThreadPoolExecutor(threads, name)
        self._in_flight_max = in_flight_max
        self._lock = threading.Lock()
        self._in_flight = 0

    def take(self, find: Find, reply: Reply) -> None:
        with self._lock:
            is_busy = self._in_flight >= self._in_flight_max
            self._in_flight += not is_busy
        if is_busy:
            text = f"busy: {self._in_flight_max} questions in flight, ask again later"
            send_answer(GearpyError(text), reply)
            return
        try:
            self._threads.submit(self._work, find, reply)
        except RuntimeError:
            _log.debug("a question came when this process was stopping")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _work(self, find: Find, reply: Reply) -> None:
        answer: object
        try:
            answer = find()
        except GearpyError as error:
            answer = error
        except Exception as error:  # noqa: BLE001 - else the asker would wait in vain
            _log.error("a question could not be answered", exc_info=error)
            answer = error
        finally:
            with self._lock:
                self._in_flight -= 1
        send_answer(answer, reply)


def send_answer(answer: object, reply: Reply) -> None:
    try:
        reply(encode_answer(answer))
    except Exception as error:  # noqa: BLE001 - else the asker would wait in vain
        _log.error("an answer cannot be sent", exc_info=error)
        reply(encode_answer(error))


class ClientServer:
    """Answers clients: processes without a listener, which ask by letter and wait for the answer.

    A client does not greet, since nobody writes to it; the answer comes on its own connection.

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
        self._answers = Answers(
            "gearpy-control",
            threads=limits.control_threads,
            in_flight_max=limits.control_in_flight_max,
        )

    def on_frames(self, protocol: WireProtocol, frames: list[Frame]) -> None:
        principal = protocol.connection.principal
        for frame in frames:
            letter = decode_peer(frame)
            if not isinstance(letter, Letter) or not letter.ask:
                raise ProtocolError(f"unexpected {type(letter).__name__} of a client")
            if protocol.paused:
                raise ProtocolError("the peer asks but does not read the answers")
            self._answers.take(
                partial(self._answer, principal, letter.body),
                partial(self._reply, protocol, letter.ask),
            )

    def close(self) -> None:
        self._answers.close()

    def _answer(self, principal: Principal, body: bytes) -> object:
        message = decode_control(body)
        if not self._allows(principal, message):
            name = type(message).__name__
            _log.warning("%s sent %s and may not", principal, name)
            raise GearpyError(f"{principal} may not send {name} to this process")
        return self._handler(message)

    def _reply(self, protocol: WireProtocol, ask: int, body: bytes) -> None:
        letter = Letter(number=ask, to="", body=body, answers=ask)
        version = protocol.connection.version
        self._loop.call_soon(protocol.write, encode_peer(letter, self._limits.frames, version))
