"""What one incarnation of an actor holds: its timers and its watches. `ActorContext`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gearpy.actor.api import MAILBOX_MAX, Actor, Cancellable, DispatcherChoice, Exited, Ref
from gearpy.actor.local_ref import LocalRef
from gearpy.actor.mailbox import TimerFired, WatchExited
from gearpy.core.base.restart import NO_RESTART, RestartPolicy
from gearpy.errors import ActorStopped

if TYPE_CHECKING:
    from gearpy.actor.cell import ActorCell
    from gearpy.actor.system import ActorSystem

__all__ = ["CellContext", "CellTimer", "Watch"]

M = TypeVar("M")
N = TypeVar("N")


class Watch:
    """One watch of one actor. Inactive once told, undone or outlived."""

    __slots__ = ("_cell", "context", "is_active", "ref")

    def __init__(self, cell: "ActorCell[Any]", context: "CellContext[Any]", ref: Ref[Any]) -> None:
        self._cell = cell
        self.context = context
        self.ref = ref
        self.is_active = True

    def notify(self, exited: Exited) -> None:
        """Have the watcher told in its own turn. Runs on any thread."""
        self._cell.mailbox.put_system(WatchExited(self, exited))


class CellTimer:
    """A timer of one incarnation. What fires is a system message, at most one at a time.

    Whether it still counts is decided when the actor would receive it, so that nothing
    arrives after `cancel` or after the end of the incarnation.
    """

    __slots__ = (
        "_cell",
        "_handle",
        "_is_queued",
        "_is_repeated",
        "_others",
        "is_active",
        "message",
    )

    def __init__(
        self, cell: "ActorCell[Any]", others: "set[CellTimer]", message: Any, *, is_repeated: bool
    ) -> None:
        self._cell = cell
        self._others = others  # Those of the same incarnation, with this one.
        self._is_repeated = is_repeated
        self._is_queued = False
        self._handle: Cancellable | None = None
        self.message = message
        self.is_active = True

    def start(self, delay_ms: int) -> None:
        """Fire after ``delay_ms``, and each time that passes again when repeated."""
        timers = self._cell.runtime.timers
        begin = timers.call_every if self._is_repeated else timers.call_later
        self._handle = begin(delay_ms, self._fire)

    def cancel(self) -> None:
        """See `Cancellable.cancel`."""
        self.is_active = False
        self._others.discard(self)
        if self._handle is not None:
            self._handle.cancel()

    def _fire(self) -> None:
        if self.is_active and not self._is_queued:
            self._is_queued = True
            self._cell.mailbox.put_system(TimerFired(self))

    def take(self) -> bool:
        """Whether to receive the message now; called in the actor's turn."""
        is_due, self._is_queued = self.is_active, False
        if is_due and not self._is_repeated:
            self.cancel()
        return is_due


class CellContext(Generic[M]):
    """`ActorContext` over a cell.

    Runs on: the actor's turns. Restart: closed, a new one is made.
    """

    def __init__(self, cell: "ActorCell[M]") -> None:
        self._cell = cell
        self._is_open = True
        self._timers: set[CellTimer] = set()
        self._watches: dict[Ref[Any], Watch] = {}

    @property
    def self_ref(self) -> Ref[M]:
        """See `ActorContext`."""
        return self._cell.ref

    @property
    def system(self) -> "ActorSystem":
        """See `ActorContext`."""
        return self._cell.runtime.system

    @property
    def parent(self) -> Ref[Any] | None:
        """See `ActorContext`."""
        parent = self._cell.parent
        return None if parent is None else parent.ref

    def spawn(
        self,
        factory: Callable[[], Actor[N]],
        name: str,
        *,
        dispatcher: DispatcherChoice = "pinned",
        supervision: RestartPolicy | None = None,
        mailbox_max: int = MAILBOX_MAX,
    ) -> Ref[N]:
        """See `ActorContext`."""
        self._check_open()
        return self._cell.runtime.spawn_cell(
            factory,
            name,
            parent=self._cell,
            dispatcher=dispatcher,
            supervision=supervision or NO_RESTART,
            mailbox_max=mailbox_max,
        )

    def stop(self, ref: Ref[Any]) -> None:
        """See `ActorContext`."""
        self.system.stop(ref)

    def stop_self(self) -> None:
        """See `ActorContext`."""
        self._cell.request_stop()

    # -- watches ---------------------------------------------------------------------------

    def watch(self, ref: Ref[Any]) -> None:
        """See `ActorContext`."""
        self._check_open()
        known = self._watches.get(ref)
        if (known is not None and known.ref is ref) or self._is_child(ref):
            return  # A parent is told of its children anyway.
        watch = self._watches[ref] = Watch(self._cell, self, ref)
        ref.add_watcher(watch, watch.notify)

    def _is_child(self, ref: Ref[Any]) -> bool:
        return isinstance(ref, LocalRef) and self._cell.children.has(ref.cell)

    def unwatch(self, ref: Ref[Any]) -> None:
        """See `ActorContext`."""
        watch = self._watches.pop(ref, None)
        if watch is not None:
            watch.is_active = False
            watch.ref.remove_watcher(watch)

    def take_exit(self, watch: Watch) -> bool:
        """Whether to tell the actor of this exit; true once for each watch."""
        is_due = watch.is_active and watch.context is self
        watch.is_active = False
        if self._watches.get(watch.ref) is watch:
            del self._watches[watch.ref]
        return is_due

    # -- timers ----------------------------------------------------------------------------

    def schedule_once(self, delay_ms: int, message: M) -> Cancellable:
        """See `ActorContext`."""
        return self._add_timer(delay_ms, message, is_repeated=False)

    def schedule(self, interval_ms: int, message: M) -> Cancellable:
        """See `ActorContext`."""
        return self._add_timer(interval_ms, message, is_repeated=True)

    def _add_timer(self, delay_ms: int, message: M, *, is_repeated: bool) -> CellTimer:
        self._check_open()
        timer = CellTimer(self._cell, self._timers, message, is_repeated=is_repeated)
        self._timers.add(timer)
        timer.start(delay_ms)
        return timer

    # -- turns and time --------------------------------------------------------------------

    def schedule_self(self, message: M) -> None:
        """See `ActorContext`."""
        self._cell.put_own(message)

    def yield_turn(self) -> None:
        """See `ActorContext`."""
        self._cell.yield_turn()

    def now_ms(self) -> int:
        """See `ActorContext`."""
        return self._cell.runtime.now_ms()

    def wall_ms(self) -> int:
        """See `ActorContext`."""
        return self._cell.runtime.wall_ms()

    # -- end -------------------------------------------------------------------------------

    def close(self) -> None:
        """End all timers and watches, for good. Runs on any thread when the actor is killed."""
        self._is_open = False
        for timer in list(self._timers):
            timer.cancel()
        for watch in list(self._watches.values()):
            watch.is_active = False
            watch.ref.remove_watcher(watch)

    def _check_open(self) -> None:
        if not self._is_open:
            raise ActorStopped(f"actor {self._cell.path} has stopped, or was restarted")
