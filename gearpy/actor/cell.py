"""The stable half of an actor: what stays over restarts, and the state machine of its life.

One turn at a time runs on a cell, on whatever thread its `Host` provides. Nothing here knows
pykka, and all time comes from the `Runtime`; so cells also run in a single thread.
"""

import logging
from collections.abc import Callable
from enum import Enum
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, assert_never

from gearpy.actor.api import (
    Actor,
    BatchActor,
    Cancellable,
    Exited,
    ExitReason,
    Failed,
    Killed,
    Stopped,
)
from gearpy.actor.context import CellContext
from gearpy.actor.dead_letters import Undelivered
from gearpy.actor.host import Blueprint, Host
from gearpy.actor.local_ref import LocalRef, running
from gearpy.actor.mailbox import (
    POISON_PILL,
    ChildExited,
    Mailbox,
    PauseOver,
    PoisonPill,
    Question,
    Refusal,
    Signal,
    Stop,
    TimerFired,
    WatchExited,
)
from gearpy.actor.supervisor import (
    Children,
    Exit,
    Supervisor,
    as_answer,
    failure_of,
    tell_watcher,
)
from gearpy.core.base.restart import RestartAfter
from gearpy.ids import ActorPath

if TYPE_CHECKING:
    from gearpy.actor.system import Runtime

__all__ = ["ActorCell"]

M = TypeVar("M")

_log = logging.getLogger("gearpy.actor")


class _Phase(Enum):
    """Where a cell is in its life."""

    STARTING = "starting"  # The next turn makes the actor and calls `on_start`.
    RUNNING = "running"  # User messages are handled.
    FAILING = "failing"  # Children stop, then a pause or the end follows.
    WAITING = "waiting"  # For the pause before a restart to end.
    STOPPING = "stopping"  # Children stop, then the end follows.


_RUNNING: Final = _Phase.RUNNING


class ActorCell(Generic[M]):
    """Mailbox, path, children, watchers and restart history of one actor.

    Runs on: its turns, one at a time, by its host; `kill`, `request_stop` and what has to do
    with watchers also on any thread. Restart: stays; the `Actor` and its context are replaced.

    Invariant: exactly one exit reason, set once; who watches gets it exactly once.
    """

    def __init__(
        self,
        blueprint: Blueprint[M],
        path: ActorPath,
        parent: "ActorCell[Any] | None",
        runtime: "Runtime",
    ) -> None:
        self.path = path
        self.parent = parent
        self.runtime = runtime
        self.mailbox = Mailbox(blueprint.mailbox_max, self._on_work)
        self.ref: LocalRef[M] = LocalRef(self)
        self.undelivered = Undelivered(path, blueprint.mailbox_max, runtime)
        self.host: Host
        self.incarnation = 0
        self.children = Children()
        self._blueprint = blueprint
        self._supervisor = Supervisor(path, blueprint.supervision, runtime.rng)
        self._phase = _Phase.STARTING
        self._actor: Actor[M]
        self._context = CellContext(self)
        self._is_started = False  # `on_start` returned, `on_stop` was not called yet.
        self._handle: Callable[[int], int] = self._handle_one
        self._yielded = False
        self._asked: Question | None = None  # The question that is being answered.
        self._next: RestartAfter | ExitReason = Stopped()  # What follows FAILING, STOPPING.
        self._pause: Cancellable | None = None  # Ends FAILING, WAITING or STOPPING.
        self._pause_number = 0
        self._exit = Exit()

    # -- turns -----------------------------------------------------------------------------

    def _on_work(self) -> None:
        self.host.give_turn()

    def take_turn(self, messages_max: int, until_s: float) -> None:
        """Handle what waits, system messages first, within the limits; then go on or rest.

        The last thing it does to the cell is to give away the next turn.
        """
        outer, running.cell = running.cell, self
        try:
            self._take_turn(messages_max, until_s)
        except BaseException as error:  # noqa: BLE001 - the thread serves other actors too
            _log.critical("actor %s: bug in the actor layer", self.path, exc_info=True)
            self._end(failure_of(error))
        finally:
            running.cell = outer
        self._end_turn()

    def _take_turn(self, messages_max: int, until_s: float) -> None:
        self._yielded = False
        if self._phase is _Phase.STARTING and not self._exit.is_set:
            self._start_actor()
        system, user, left = self.mailbox.system, self.mailbox.user, messages_max
        while left > 0 and not self._exit.is_set and not self._yielded:
            if system:
                self._on_signal(system.popleft())
            elif user and self._phase is _RUNNING:
                left -= self._handle(left)
            else:
                break
            if monotonic() >= until_s:
                break

    def _end_turn(self) -> None:
        if self._exit.is_set:
            self._context.close()  # Again: a killed actor may have gone on in this turn.
            vars(self).pop("_actor", None)  # Its state may be large, and refs hold the cell.
            self.host.retire()
        elif self._phase is _Phase.STARTING:
            self._start_next_incarnation()
        elif self.mailbox.rest(takes_user=self._phase is _RUNNING):
            self.host.give_turn()

    def _start_next_incarnation(self) -> None:
        try:
            self.host.start()
        except Exception as error:  # noqa: BLE001 - no thread to be had; not the caller's fault
            self._fail(error)
            self._end_turn()

    def _start_actor(self) -> None:
        self.incarnation += 1
        self._context = CellContext(self)
        if self._guard(self._make_actor):
            self._is_started = True
            self._phase = _RUNNING

    def _make_actor(self) -> None:
        actor = self._actor = self._blueprint.factory()
        actor.context = self._context
        self._handle = self._handle_batch if isinstance(actor, BatchActor) else self._handle_one
        actor.on_start()

    # -- user messages ---------------------------------------------------------------------

    def _handle_one(self, _left: int) -> int:
        try:
            item = self.mailbox.user.popleft()
        except IndexError:
            return 0
        kind = type(item)
        if kind is Question or kind is PoisonPill:
            self._handle_special(item)
            return 1
        try:
            self._actor.receive(item)
        except BaseException as error:  # noqa: BLE001 - user code; the supervisor decides
            self._fail(error)
        return 1

    def _handle_batch(self, left: int) -> int:
        assert isinstance(self._actor, BatchActor)
        batch, special = self.mailbox.take_batch(min(left, self._actor.batch_max))
        if batch:
            self._guard(self._actor.receive_batch, batch)
        if special is not None:
            if self._phase is _RUNNING and not self._exit.is_set:
                self._handle_special(special)
            elif not self.mailbox.put_back(special):
                self.undelivered.take_all([special])
        return len(batch) + (special is not None)

    def _handle_special(self, item: Question | PoisonPill) -> None:
        if isinstance(item, PoisonPill):
            self._begin_stop()
        else:
            self._answer(item)

    def _answer(self, question: Question) -> None:
        self._asked = question
        try:
            value = self._actor.receive(question.message)
        except BaseException as error:  # noqa: BLE001 - user code; the supervisor decides
            self._asked = None  # What the asker gets is the exception, not the exit.
            self._fail(error)
            question.reply.fail(as_answer(error, self.path))
        else:
            self._asked = None
            question.reply.set(value)

    def _guard(self, call: Callable[..., object], *arguments: Any) -> bool:
        try:
            call(*arguments)
        except BaseException as error:  # noqa: BLE001 - user code; the supervisor decides
            self._fail(error)
            return False
        return True

    def put_own(self, message: M) -> None:
        """`ActorContext.schedule_self`."""
        if not self.mailbox.put_unbounded(message):
            self.undelivered.take(message, Refusal.CLOSED)

    def yield_turn(self) -> None:
        """`ActorContext.yield_turn`."""
        self._yielded = True

    # -- system messages -------------------------------------------------------------------

    def _on_signal(self, signal: Signal) -> None:
        match signal:
            case Stop():
                self._begin_stop()
            case TimerFired(timer=timer):
                if timer.take():
                    self._guard(self._actor.receive, timer.message)
            case WatchExited(watch=watch, exited=exited):
                if self._context.take_exit(watch) and not self.runtime.is_shutting_down:
                    self._guard(self._actor.on_exited, exited)
            case ChildExited(child=child, exited=exited):
                self._on_child_exited(child, exited)
            case PauseOver(number=number):
                self._on_pause_over(number)
            case _:
                assert_never(signal)

    def _on_child_exited(self, child: "ActorCell[Any]", exited: Exited) -> None:
        if not self.children.discard(child):
            return
        if self._phase is _RUNNING:
            self._guard(self._actor.on_exited, exited)
        elif self.children.is_empty:
            self._on_children_gone()

    def _on_pause_over(self, number: int) -> None:
        if number != self._pause_number:
            return
        if self._phase is _Phase.WAITING:
            self._phase = _Phase.STARTING
            self._yielded = True  # The next turn belongs to a new runner, which makes the actor.
        else:
            _log.warning("actor %s: children did not stop in time, killed", self.path)
            self.children.kill_all(close=False)
            self._on_children_gone()

    # -- failing, stopping, ending ---------------------------------------------------------

    def _fail(self, error: BaseException) -> None:
        if self._exit.is_set:
            return  # Killed meanwhile; nobody is interested any more.
        failed = failure_of(error)
        decision = self._supervisor.on_failure(failed, self.runtime.now_ms())
        self._phase = _Phase.FAILING
        if isinstance(decision, RestartAfter):
            self._next = decision
        else:
            self._next = failed
            self.undelivered.take_all(self.mailbox.close())
        self._stop_children()

    def _begin_stop(self) -> None:
        if self._phase is _Phase.STOPPING or isinstance(self._next, Failed):
            return
        self._next = Stopped()
        self.undelivered.take_all(self.mailbox.close())
        if self._phase is _Phase.WAITING:
            self._end(self._next)
        elif self._phase is _RUNNING:
            self._phase = _Phase.STOPPING
            self._stop_children()

    def _stop_children(self) -> None:
        self._context.close()
        if self.children.stop_all():
            self._pause_for(self.runtime.stop_timeout_ms)
        else:
            self._on_children_gone()

    def _on_children_gone(self) -> None:
        self._cancel_pause()
        self._call_on_stop()
        if isinstance(self._next, RestartAfter):
            self._phase = _Phase.WAITING
            self._pause_for(self._next.delay_ms)
        else:
            self._end(self._next)

    def _call_on_stop(self) -> None:
        if not self._is_started:
            return
        self._is_started = False
        try:
            self._actor.on_stop()
        except BaseException:  # noqa: BLE001 - user code, and the actor ends anyway
            _log.exception("actor %s: on_stop failed, ignored", self.path)

    def _pause_for(self, delay_ms: int) -> None:
        self._cancel_pause()
        put, signal = self.mailbox.put_system, PauseOver(self._pause_number)
        if delay_ms > 0:
            self._pause = self.runtime.timers.call_later(delay_ms, lambda: put(signal))
        else:
            put(signal)

    def _cancel_pause(self) -> None:
        self._pause_number += 1  # One that is over, but was not noticed, counts no more.
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None

    def _end(self, reason: ExitReason) -> None:
        exited = Exited(self.ref, reason)
        watchers = self._exit.set(exited)
        if watchers is None:
            return
        self._release()
        self.runtime.forget(self)
        if self.parent is not None:
            self.parent.mailbox.put_system(ChildExited(self, exited))
        for notify in watchers:
            tell_watcher(notify, exited)

    def _release(self) -> None:
        self._cancel_pause()
        self._context.close()
        self.children.kill_all(close=True)
        asked = self._asked
        if asked is not None:
            self.undelivered.take_all([asked])
        self.undelivered.take_all(self.mailbox.end())

    # -- from any thread -------------------------------------------------------------------

    def request_stop(self) -> None:
        """Stop now: waiting user messages are discarded by the caller, `on_stop` follows."""
        self.undelivered.take_all(self.mailbox.close())
        self.mailbox.put_system(Stop())

    def request_graceful_stop(self) -> None:
        """Stop when everything that waits now has been handled; take nothing more."""
        self.mailbox.put_unbounded(POISON_PILL, close=True)

    def kill(self) -> None:
        """Give the actor up with its children: for all others it is gone at once."""
        self._end(Killed())

    def add_watcher(self, key: object, notify: Callable[[Exited], None]) -> None:
        """See `Ref.add_watcher`."""
        self._exit.add_watcher(key, notify)

    def remove_watcher(self, key: object) -> None:
        """See `Ref.remove_watcher`."""
        self._exit.remove_watcher(key)
