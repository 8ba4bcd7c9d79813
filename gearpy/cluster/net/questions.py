"""Questions to actors of other processes, and answers to theirs."""

import logging
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from itertools import count
from typing import Any, Final

from gearpy.errors import ActorStopped, AskTimeout, GearpyError, ProtocolError
from gearpy.ids import ActorPath
from gearpy.messages.node import Letter
from gearpy.transport.api import Nodes
from gearpy.wire.codec import encode_control
from gearpy.wire.control_codec import decode_answer, encode_answer

__all__ = ["Answers", "Questions"]

_log = logging.getLogger(__name__)

_THREADS: Final = 4
_IN_FLIGHT_MAX: Final = 64
#: Numbers of questions cannot be guessed, so that nobody answers what it was not asked.
_FIRST_NUMBER_BITS: Final = 62


class Questions:
    """Questions that wait for their answers. Runs on: any thread; `ask` blocks."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._numbers = count(1 + secrets.randbits(_FIRST_NUMBER_BITS))
        self._open: dict[int, Future[Any]] = {}

    def ask(self, path: ActorPath, message: object, timeout_s: float) -> Any:
        """Return what the actor answers; raises as `Ref.ask` does."""
        number, answer = next(self._numbers), Future[Any]()
        self._open[number] = answer
        try:
            self._send(path, message, number, answer)
            outcome = answer.result(timeout_s)
        except TimeoutError:
            what = type(message).__name__
            raise AskTimeout(f"no answer from actor {path} to {what} in {timeout_s} s") from None
        finally:
            del self._open[number]
            self._nodes.unwatch(path.node, answer)
        if isinstance(outcome, GearpyError):
            raise outcome
        return outcome

    def on_answer(self, letter: Letter) -> None:
        """Take an answer; one that nobody waits for any more is dropped."""
        answer = self._open.get(letter.answers)
        if answer is None:
            _log.debug("an answer came too late")
            return
        try:
            _settle(answer, decode_answer(letter.body))
        except ProtocolError as error:
            _settle(answer, error)

    def _send(self, path: ActorPath, message: object, number: int, answer: "Future[Any]") -> None:
        def lost(reason: str) -> None:
            _settle(answer, ActorStopped(f"actor {path} is gone: {reason}"))

        self._nodes.watch(path.node, answer, lost)
        self._nodes.send(  # What comes of False is told to the watcher.
            path.node,
            to=path.name,
            body=encode_control(message),
            reply_to=ActorPath(self._nodes.node, ""),
            ask=number,
        )


class Answers:
    """Asks actors of this process for others, a bounded number at once.

    Runs on: the transport's thread; actors are asked on threads of its own.
    """

    def __init__(self, nodes: Nodes, *, timeout_s: float) -> None:
        self._nodes = nodes
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(_THREADS, "gearpy-answers")
        self._lock = threading.Lock()
        self._in_flight = 0

    def take(self, asker: str, number: int, question: Callable[[float], object]) -> None:
        """Have a question answered, soon; at once with an error if there are too many."""
        with self._lock:
            is_busy = self._in_flight >= _IN_FLIGHT_MAX
            self._in_flight += not is_busy
        if is_busy:
            busy = GearpyError(f"busy: {_IN_FLIGHT_MAX} questions in flight, ask again later")
            self.send(asker, number, busy)
            return
        try:
            self._threads.submit(self._work, asker, number, question)
        except RuntimeError:
            _log.debug("a question came when this process was stopping")

    def send(self, asker: str, number: int, answer: object) -> None:
        """Send an answer, which may be an exception."""
        try:
            self._nodes.send(asker, to="", body=encode_answer(answer), answers=number)
        except Exception as error:  # noqa: BLE001 - else the asker would wait in vain
            _log.error("an answer cannot be sent", exc_info=error)
            self._nodes.send(asker, to="", body=encode_answer(error), answers=number)

    def close(self) -> None:
        """Ask nobody any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _work(self, asker: str, number: int, question: Callable[[float], object]) -> None:
        answer: object
        try:
            answer = question(self._timeout_s)
        except Exception as error:  # noqa: BLE001 - it is the asker's
            answer = error
        finally:
            with self._lock:
                self._in_flight -= 1
        self.send(asker, number, answer)


def _settle(answer: "Future[Any]", outcome: object) -> None:
    """Set the outcome unless there is one."""
    try:
        answer.set_result(outcome)
    except InvalidStateError:
        _log.debug("a question was settled twice")
