"""Questions to actors of other processes."""

import logging
import secrets
from concurrent.futures import Future, InvalidStateError
from itertools import count
from typing import Any, Final

from gearpy.errors import ActorStopped, AskTimeout, GearpyError, ProtocolError
from gearpy.ids import ActorPath
from gearpy.messages.peer import Letter
from gearpy.transport.api import Peers
from gearpy.wire.codec import decode_answer, encode_control

__all__ = ["Questions"]

_log = logging.getLogger(__name__)

#: Numbers of questions cannot be guessed, so that nobody answers what it was not asked.
_FIRST_NUMBER_BITS: Final = 62


class Questions:
    """Questions that wait for their answers. Runs on: any thread; `ask` blocks."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
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
            self._peers.unwatch(path.node, answer)
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

        self._peers.watch(path.node, answer, lost)
        self._peers.send(  # What comes of False is told to the watcher.
            path.node,
            to=path.name,
            body=encode_control(message),
            reply_to=ActorPath(self._peers.node, ""),
            ask=number,
        )


def _settle(answer: "Future[Any]", outcome: object) -> None:
    """Set the outcome unless there is one."""
    try:
        answer.set_result(outcome)
    except InvalidStateError:
        _log.debug("a question was settled twice")
