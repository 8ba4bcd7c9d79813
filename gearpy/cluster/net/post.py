"""Delivery of messages to actors by path, in this process and in others."""

import logging
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from itertools import count
from typing import Any, Final, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from gearpy.actor.api import ActorSystem, Exited, Killed, Ref
from gearpy.errors import ActorStopped, AskTimeout, GearpyError, MailboxFull, ProtocolError
from gearpy.ids import ActorPath, incarnation_of, is_same_node
from gearpy.messages.peer import Letter
from gearpy.transport.api import Peers
from gearpy.transport.letters.answers import Answers, send_answer
from gearpy.wire.codec import decode_answer, decode_control, encode_answer, encode_control

_log = logging.getLogger(__name__)

#: Whether a node may send this actor (its name) this message.
Allow: TypeAlias = Callable[[str, str, object], bool]

#: How long an actor of this process may take to answer another process.
_ANSWER_TIMEOUT_S: Final = 60.0
#: Numbers of questions cannot be guessed, so that nobody answers what it was not asked.
_FIRST_NUMBER_BITS: Final = 62

M_contra = TypeVar("M_contra", contravariant=True)


class Post:
    """Delivers control messages to actors by path.

    Every message is encoded and decoded on its way, also within one process: what works here
    works between processes, and no role ever shares an object with another. With ``peers``,
    paths may lead to other processes, and letters from those are delivered, if ``allow`` allows.

    Letters that cannot be delivered are logged, never raised.

    Runs on: any thread; `ask` blocks.
    """

    def __init__(
        self,
        system: ActorSystem,
        peers: Peers | None = None,
        *,
        allow: Allow | None = None,
        answer_timeout_s: float = _ANSWER_TIMEOUT_S,
    ) -> None:
        self._system = system
        self._peers = peers
        self._allow = allow
        self._answer_timeout_s = answer_timeout_s
        self._lock = threading.Lock()  # It guards `_refs`.
        self._refs: WeakValueDictionary[ActorPath, RemoteRef[Any]] = WeakValueDictionary()
        if peers is not None:
            self._questions = _Questions(peers)
            self._answers = Answers("gearpy-answers")
            peers.serve(self._deliver)

    @property
    def node(self) -> str:
        return "" if self._peers is None else self._peers.node

    def tell(self, path: ActorPath, message: Any) -> bool:
        """Send a message; if there is no such actor or node it is logged, and False.

        To another process, True means that it will be there unless that process is lost.
        """
        peers = self._peers_to(path)
        if peers is None:
            return self._tell_here(path, decode_control(encode_control(message)))
        is_sent = peers.send(path.node, to=path.name, body=encode_control(message))
        if not is_sent:
            _log_undelivered(path, message)
        return is_sent

    def find(self, path: ActorPath) -> Ref[Any] | None:
        peers = self._peers_to(path)
        if peers is None:
            return self._system.resolve(path.name if self._is_here(path) else path)
        with self._lock:
            ref = self._refs.get(path)
            if ref is None:
                ref = self._refs[path] = RemoteRef(path, self, peers)
            return ref

    def ask(self, path: ActorPath, message: Any, timeout_s: float) -> Any:
        """Wait for an actor's answer, wherever it is; see `Ref.ask`.

        Raises:
            AskTimeout: no answer in time; the question may still be handled.
            GearpyError: what the actor raised; of another class if it is not one of ours.
        """
        if self._peers_to(path) is not None:
            return self._questions.ask(path, message, timeout_s)
        answer = self._ask_here(path, decode_control(encode_control(message)), timeout_s)
        return decode_answer(encode_answer(answer))

    def give_up(self, path: ActorPath) -> None:
        peers = self._peers_to(path)
        if peers is not None:
            peers.fence(path.node)

    def close(self) -> None:
        if self._peers is not None:
            self._answers.close()

    def _peers_to(self, path: ActorPath) -> Peers | None:
        return None if self._is_here(path) else self._peers

    def _is_here(self, path: ActorPath) -> bool:
        return not path.node or is_same_node(path.node, self.node)

    def _tell_here(self, path: ActorPath, message: object) -> bool:
        ref = self.find(path)
        if ref is None:
            _log_undelivered(path, message)
            return False
        ref.tell(message)
        return True

    def _ask_here(self, path: ActorPath, message: object, timeout_s: float) -> object:
        ref = self.find(path)
        if ref is None:
            raise ActorStopped(f"no actor {path}")
        return ref.ask(message, timeout_s)

    # -- letters from other processes; on the transport's thread ---------------------------

    def _deliver(self, sender: str, letter: Letter) -> None:
        if letter.answers:
            self._questions.on_answer(letter)
            return
        try:
            message = decode_control(letter.body)
            if self._allow is not None and not self._allow(sender, letter.to, message):
                what = type(message).__name__
                raise GearpyError(f"{sender} may not send {what} to {letter.to}")  # noqa: TRY301
            if letter.ask:
                path, timeout_s = ActorPath("", letter.to), self._answer_timeout_s
                self._answers.take(
                    lambda: self._ask_here(path, message, timeout_s), self._reply(sender, letter)
                )
            else:
                self._tell_here(ActorPath("", letter.to), message)
        except MailboxFull as error:
            _log.warning("a letter of %s was not delivered: %s", sender, error)
        except ProtocolError as error:  # Such as a message of a newer version.
            path, now_ms = ActorPath("", letter.to), self._system.now_ms()
            self._system.unknown.note(path, f"a letter that cannot be read: {error}", now_ms)
            if letter.ask:
                send_answer(error, self._reply(sender, letter))
        except GearpyError as error:
            _log.warning("a letter of %s to %s was not delivered: %s", sender, letter.to, error)
            if letter.ask:
                send_answer(error, self._reply(sender, letter))

    def _reply(self, sender: str, letter: Letter) -> Callable[[bytes], object]:
        peers = self._peers
        assert peers is not None, "letters come from peers"
        return lambda body: peers.send(sender, to="", body=body, answers=letter.ask)


def _log_undelivered(path: ActorPath, message: object) -> None:
    _log.debug("no actor %s for %s", path, type(message).__name__)


class RemoteRef(Ref[M_contra]):
    """A `Ref` whose messages go through the post. A `Post` makes one for each path.

    What it can tell of the actor is what it knows of the process: watchers hear `Killed` when
    that is lost, but not when the actor alone stops.

    Runs on: any thread.
    """

    # Without `__slots__`, so that the post can hold it weakly.

    def __init__(self, path: ActorPath, post: "Post", peers: Peers) -> None:
        self.path = path
        self._post = post
        self._peers = peers
        self._is_alive = True

    def tell(self, message: M_contra) -> None:
        if not self._post.tell(self.path, message):
            self._note_loss()

    def ask(self, message: M_contra, timeout_s: float) -> Any:
        return self._post.ask(self.path, message, timeout_s)

    @property
    def is_alive(self) -> bool:
        return self._is_alive

    def add_watcher(self, key: object, notify: Callable[[Exited], None]) -> None:
        """See `Ref.add_watcher`. ``notify`` may be called on the transport's thread."""

        def lost(_reason: str) -> None:
            self._note_loss()
            notify(Exited(self, Killed()))

        self._peers.watch(self.path.node, (self.path, key), lost)

    def remove_watcher(self, key: object) -> None:
        self._peers.unwatch(self.path.node, (self.path, key))

    def _note_loss(self) -> None:
        # Where there is no incarnation, another process may take the place of the lost one.
        self._is_alive = not incarnation_of(self.path.node)


class _Questions:
    """Questions that wait for their answers. Runs on: any thread; `ask` blocks."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._numbers = count(1 + secrets.randbits(_FIRST_NUMBER_BITS))
        self._open: dict[int, Future[Any]] = {}

    def ask(self, path: ActorPath, message: object, timeout_s: float) -> Any:
        number, answer = next(self._numbers), Future[Any]()
        self._open[number] = answer
        try:

            def lost(reason: str) -> None:
                _settle(answer, ActorStopped(f"actor {path} is gone: {reason}"))

            self._peers.watch(path.node, answer, lost)
            self._peers.send(  # The watcher is told of a failure.
                path.node,
                to=path.name,
                body=encode_control(message),
                reply_to=ActorPath(self._peers.node, ""),
                ask=number,
            )
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
        answer = self._open.get(letter.answers)
        if answer is None:
            _log.debug("an answer came too late")
            return
        try:
            _settle(answer, decode_answer(letter.body))
        except ProtocolError as error:
            _settle(answer, error)


def _settle(answer: "Future[Any]", outcome: object) -> None:
    try:
        answer.set_result(outcome)
    except InvalidStateError:
        _log.debug("a question was settled twice")
