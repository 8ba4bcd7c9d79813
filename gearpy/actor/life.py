"""The life of an actor: the state machine, and the `Ref` that others hold.

One turn at a time runs, on a thread of the actor's dispatcher. All time comes from the system,
so actors also live in a single thread, on virtual time.
"""

import logging
import threading
from collections.abc import Callable
from enum import Enum
from functools import partial
from time import monotonic
from typing import Any, Final, Generic, TypeVar

import pykka
from pykka._envelope import Envelope

from gearpy.actor.api import Actor, ActorContext, ActorSystem, BatchActor, CommittingActor, NotTaken
from gearpy.actor.dispatcher import Dispatcher
from gearpy.actor.exits import Exit, as_answer, failure_of, tell_watcher
from gearpy.actor.mailbox import Mailbox, Reply, is_stop
from gearpy.actor.refs import Exited, ExitReason, Killed, Ref, Stopped
from gearpy.actor.timers import Cancellable
from gearpy.errors import ActorStopped, AskTimeout, ConfigError
from gearpy.ids import ActorPath

M = TypeVar("M")
M_contra = TypeVar("M_contra", contravariant=True)

_log = logging.getLogger("gearpy.actor")


class _Phase(Enum):
    """The phase of an actor's life."""

    WAITING = "waiting"  # For the start.
    RUNNING = "running"  # User messages are handled.
    ENDING = "ending"  # Children stop, then the end follows.


_RUNNING: Final = _Phase.RUNNING


class _Children:
    """The living children of one actor.

    Runs on: the parent's turns, and on any thread when the parent is killed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._living: dict[ActorLife[Any], None] = {}  # A dict for its order: oldest first.
        self._is_open = True

    def add(self, child: "ActorLife[Any]") -> bool:
        with self._lock:
            if self._is_open:
                self._living[child] = None
            return self._is_open

    def discard(self, child: "ActorLife[Any]") -> bool:
        with self._lock:
            if child not in self._living:
                return False
            del self._living[child]
            return True

    def __contains__(self, child: object) -> bool:
        return child in self._living

    def __bool__(self) -> bool:
        return bool(self._living)

    def stop_all(self) -> None:
        with self._lock:
            children = list(self._living)
        for child in reversed(children):
            child.request_stop()

    def kill_all(self, *, close: bool) -> None:
        """Give up those that are left; ``close`` when the parent takes in no more."""
        with self._lock:
            self._is_open = self._is_open and not close
            children = list(self._living)
            self._living.clear()
        for child in children:
            child.kill()


class ActorLife(Generic[M]):
    """Mailbox, path, children and watchers of one actor.

    Runs on: its turns, one at a time; `kill`, `request_stop` and what has to do with watchers
    also on any thread.

    Invariant: exactly one exit reason, set once; each watcher gets it exactly once.
    """

    def __init__(
        self,
        factory: Callable[[], Actor[M]],
        path: ActorPath,
        parent: "ActorLife[Any] | None",
        system: ActorSystem,
        dispatcher: Dispatcher,
        *,
        mailbox_max: int,
    ) -> None:
        self.path = path
        self.parent = parent
        self.system = system
        self.dispatcher = dispatcher
        self.mailbox = Mailbox(path, mailbox_max, partial(dispatcher.schedule, self))
        self.ref: LocalRef[M] = LocalRef(self)
        self.children = _Children()
        self._factory = factory
        self._phase = _Phase.WAITING
        self._actor: Actor[M] | None = None
        self._pykka_ref: pykka.ActorRef[Any] | None = None
        self._is_started = False  # `on_start` returned, `on_stop` was not called yet.
        self._handle: Callable[[int], int] = self._handle_one
        self._receive: Callable[[Any], object]
        self._asked: Envelope[Any] | None = None  # The question that is being answered.
        self._commit: Callable[[], None] | None = None
        self._held: list[tuple[Envelope[Any], Any]] = []  # Questions, answers: for after it.
        self._reason: ExitReason = Stopped()  # It follows ENDING.
        self._patience: Cancellable | None = None  # With children that are to stop.
        self.exit = Exit()

    def start(self) -> None:
        self.dispatcher.start()
        self.mailbox.put_system(self._start_actor)

    # -- turns -----------------------------------------------------------------------------

    def take_turn(self, messages_max: int, until_s: float) -> bool:
        outer, running.life = running.life, self
        try:
            self._take_turn(messages_max, until_s)
        except BaseException as error:  # noqa: BLE001 - the thread serves other actors too
            _log.critical("actor %s: bug in the actor layer", self.path, exc_info=True)
            self._end(failure_of(error))
        finally:
            running.life = outer
        if self.exit.is_set:
            self._close()  # Again: a killed actor may have gone on in this turn.
            self._drop_held()
            self._actor = None  # Its state may be large, and refs hold the life.
            return False
        if self.mailbox.rest(takes_user=self._phase is _RUNNING):
            self.dispatcher.schedule(self)
        return True

    def _take_turn(self, messages_max: int, until_s: float) -> None:
        mailbox, left = self.mailbox, messages_max
        system, user = mailbox.system, mailbox.user
        while left > 0 and not self.exit.is_set:
            if system:
                self._guard(system.popleft())
            elif user and self._phase is _RUNNING:
                left -= self._handle(left)
            else:
                break
            if monotonic() >= until_s:
                break
        self._settle()

    def _guard(self, call: Callable[..., object], *arguments: Any) -> bool:
        try:
            call(*arguments)
        except BaseException as error:  # noqa: BLE001 - user code; the actor ends
            self._fail(error)
            return False
        return True

    # -- starting --------------------------------------------------------------------------

    def _start_actor(self) -> None:
        if self._guard(self._make_actor):
            self._is_started = True
            self._phase = _RUNNING

    def _make_actor(self) -> None:
        actor = self._factory()
        parent = None if self.parent is None else self.parent.ref
        context = ActorContext(
            actor,
            self.ref,
            parent=parent,
            system=self.system,
            inbox=self.mailbox,
            is_child=lambda ref: isinstance(ref, LocalRef) and ref.life in self.children,
        )
        ref = self._pykka_ref = actor.join(context)
        if self.system.is_registered:
            pykka.ActorRegistry.register(ref)
        self._actor = actor
        self._handle = self._handle_batch if isinstance(actor, BatchActor) else self._handle_one
        self._commit = actor.commit if isinstance(actor, CommittingActor) else None
        self._receive = actor._handle_receive  # noqa: SLF001 - pykka's, with calls of proxies
        actor._start_actor_loop()  # noqa: SLF001 - pykka's hook

    # -- user messages ---------------------------------------------------------------------

    def _handle_one(self, _left: int) -> int:
        try:
            envelope = self.mailbox.user.popleft()
        except IndexError:
            return 0
        if envelope.reply_to is not None or is_stop(envelope):
            self._handle_special(envelope)
        else:
            self._guard(self._receive, envelope.message)
        return 1

    def _handle_batch(self, left: int) -> int:
        assert isinstance(self._actor, BatchActor)
        batch, special = self.mailbox.take_batch(min(left, self._actor.batch_max))
        taken = batch
        if self._actor.takes is not None:
            taken = [each for each in batch if self._actor.is_taken(each)]
        if taken:
            self._guard(self._actor.receive_batch, taken)
        if special is not None:
            if self._phase is _RUNNING and not self.exit.is_set:
                self._handle_special(special)
            else:
                self.mailbox.put_back(special)
        return len(batch) + (special is not None)

    def _handle_special(self, envelope: Envelope[Any]) -> None:
        reply = envelope.reply_to
        if is_stop(envelope):
            if reply is not None:
                self.exit.add_watcher(reply, lambda _: reply.set(None))
            self._begin_stop()
        elif reply is not None:
            self._asked = envelope
            try:
                value = self._receive(envelope.message)
            except BaseException as error:  # noqa: BLE001 - user code; the actor ends
                self._asked = None  # The asker gets the exception, not the exit.
                self._fail(error)
                answer = as_answer(error, self.path)
                reply.set_exception((type(answer), answer, answer.__traceback__))
            else:
                self._asked = None
                if isinstance(value, NotTaken):
                    reply.set_exception((NotTaken, value, None))
                elif self._commit is None:
                    reply.set(value)
                else:
                    self._held.append((envelope, value))

    def _settle(self) -> None:
        if self._commit is None or self._phase is not _RUNNING or self.exit.is_set:
            return
        try:
            self._commit()
        except BaseException as error:  # noqa: BLE001 - user code; the actor ends
            held, self._held = self._held, []  # The askers get the exception.
            self._fail(error)
            answer = as_answer(error, self.path)
            for envelope, _ in held:
                assert envelope.reply_to is not None
                envelope.reply_to.set_exception((type(answer), answer, answer.__traceback__))
        else:
            held, self._held = self._held, []
            for envelope, value in held:
                assert envelope.reply_to is not None
                envelope.reply_to.set(value)

    def _drop_held(self) -> None:
        held, self._held = self._held, []
        self.mailbox.discard(envelope for envelope, _ in held)

    def on_child_exited(self, child: "ActorLife[Any]", exited: Exited) -> None:
        if not self.children.discard(child):
            return
        if self._phase is _RUNNING and self._actor is not None:
            self._actor.on_exited(exited)
        elif not self.children:
            self._on_children_gone()

    # -- failing, stopping, ending ---------------------------------------------------------

    def _fail(self, error: BaseException) -> None:
        if self.exit.is_set:
            return  # Killed meanwhile; nobody is interested any more.
        self._drop_held()
        failed = self._reason = failure_of(error)
        _log.error("actor %s failed, stops: %s\n%s", self.path, failed, failed.traceback)
        self._phase = _Phase.ENDING
        self.mailbox.close()
        if self._is_started and self._actor is not None:
            hook = partial(self._actor.on_failure, type(error), error, error.__traceback__)
            self._contain("on_failure", hook)
        self._stop_children()

    def _begin_stop(self) -> None:
        self._settle()
        if self._phase is _Phase.ENDING:
            return
        self.mailbox.close()
        if self._phase is _Phase.WAITING:
            self._end(self._reason)
        else:
            self._phase = _Phase.ENDING
            self._stop_children()

    def _stop_children(self) -> None:
        self._close()
        if self.children:
            self.children.stop_all()
            give_up = partial(self.mailbox.put_system, self._on_children_late)
            self._patience = self.system.timers.call_later(self.system.stop_timeout_ms, give_up)
        else:
            self._on_children_gone()

    def _on_children_gone(self) -> None:
        if self._is_started and self._actor is not None:
            self._is_started = False
            self._contain("on_stop", self._actor.on_stop)
        self._end(self._reason)

    def _contain(self, what: str, hook: Callable[[], object]) -> None:
        try:
            hook()
        except BaseException:  # noqa: BLE001 - user code, and the actor ends anyway
            _log.exception("actor %s: %s failed, ignored", self.path, what)

    def _on_children_late(self) -> None:
        if not self.exit.is_set:
            _log.warning("actor %s: children did not stop in time, killed", self.path)
            self.children.kill_all(close=False)
            self._on_children_gone()

    def _end(self, reason: ExitReason) -> None:
        exited = Exited(self.ref, reason)
        watchers = self.exit.set(exited)
        if watchers is None:
            return
        if self._patience is not None:
            self._patience.cancel()
        self._close()
        self.children.kill_all(close=True)
        asked = self._asked
        if asked is not None:
            self.mailbox.discard([asked])
        self._drop_held()
        self.mailbox.end()
        self.system.forget(self.ref)
        parent = self.parent
        if parent is not None:
            parent.mailbox.put_system(partial(parent.on_child_exited, self, exited))
        for notify in watchers:
            tell_watcher(notify, exited)

    def _close(self) -> None:
        if self._actor is not None:
            self._actor.context.close()
        ref = self._pykka_ref
        if self.exit.is_set and ref is not None and not ref.actor_stopped.is_set():
            ref.actor_stopped.set()
            pykka.ActorRegistry.unregister(ref)

    # -- from any thread -------------------------------------------------------------------

    def request_stop(self) -> None:
        self.mailbox.close()
        self.mailbox.put_system(self._begin_stop)

    def kill(self) -> None:
        """Give the actor up with its children: for all others it is gone at once."""
        self._end(Killed())


class _Running(threading.local):
    """The actor whose turn the current thread runs, if any."""

    life: ActorLife[Any] | None = None


running = _Running()


class LocalRef(Ref[M_contra]):
    """The one `Ref` of an actor of this process. Runs on: any thread."""

    __slots__ = ("_put", "life")

    def __init__(self, life: ActorLife[Any]) -> None:
        self.path = life.path
        self.life = life
        self._put = life.mailbox.put

    def tell(self, message: M_contra) -> None:
        self._put(Envelope(message))

    def ask(self, message: M_contra, timeout_s: float) -> Any:
        asker, asked = running.life, self.life
        if asker is not None:
            if asker is asked:
                raise ConfigError(
                    f"actor {self.path} asks itself: nobody is left to answer, use tell"
                )
            if asker.dispatcher is asked.dispatcher:
                raise ConfigError(
                    f"actor {asker.path} asks actor {self.path} on the only thread of their "
                    "dispatcher: nobody is left to answer, use tell"
                )

        reply = Reply()
        self._put(Envelope(message, reply))
        if not self.life.system.wait(reply, timeout_s):
            what = type(message).__name__
            raise AskTimeout(f"no answer from actor {self.path} to {what} within {timeout_s} s")
        try:
            return reply.get()
        except pykka.ActorDeadError as error:
            raise ActorStopped(str(error)) from None

    @property
    def is_alive(self) -> bool:
        return self.life.mailbox.is_open

    def add_watcher(self, key: object, notify: Callable[[Exited], None]) -> None:
        self.life.exit.add_watcher(key, notify)

    def remove_watcher(self, key: object) -> None:
        self.life.exit.remove_watcher(key)
