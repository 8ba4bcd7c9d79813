"""The actor system on threads: every actor is a pykka actor. The only import of pykka.

pykka's part is the runner of one incarnation: its registry entry, its thread or its place on a
shared pool, its loop. Messages do not travel through pykka: its inbox hands out *turns*, and in
a turn the cell takes what waits in its own mailbox. So nothing that users raise ever reaches
pykka, whose loop would ignore it (under ask), kill the actor (under tell) or stop the process
(`SystemExit`); and restarts, priorities, limits and watches are the cell's.
"""

import logging
import threading
import time
from abc import abstractmethod
from math import inf
from queue import SimpleQueue
from random import Random
from types import TracebackType
from typing import Any, Final, Self

import pykka
from pykka._envelope import Envelope
from pykka.messages import _ActorStop

from gearpy.actor.api import Dispatcher, DispatcherChoice
from gearpy.actor.cell import ActorCell
from gearpy.actor.dispatcher import SharedDispatcher, default_threads
from gearpy.actor.host import Host
from gearpy.actor.local_ref import running
from gearpy.actor.local_system import LocalActorSystem
from gearpy.actor.mailbox import Reply
from gearpy.actor.timers import TimerThread
from gearpy.errors import ConfigError

__all__ = ["STOP_TIMEOUT_MS", "ThreadedActorSystem"]

_log = logging.getLogger("gearpy.actor")

#: How long a parent waits for its children to stop before it kills them.
STOP_TIMEOUT_MS: Final = 5_000

#: Messages in one turn of a pinned actor; nobody else waits for its thread.
_PINNED_TURN_MESSAGES: Final = 1_000

_TURN: Final[Envelope[Any]] = Envelope(None)


class _TurnInbox:
    """A pykka inbox that holds turns, at most one at a time, instead of messages."""

    def __init__(self) -> None:
        self._turns: SimpleQueue[Envelope[Any]] = SimpleQueue()
        self.cell: ActorCell[Any]
        self.get = self._turns.get
        self.empty = self._turns.empty

    def give_turn(self) -> None:
        """Have the runner's loop go round once."""
        self._turns.put(_TURN)

    def put(self, envelope: Envelope[Any], /) -> None:
        """Take what comes through a `pykka.ActorRef`: only `ActorRegistry.stop_all` has one."""
        if not isinstance(envelope.message, _ActorStop):
            raise ConfigError(f"actor {self.cell.path} is reached through its gearpy Ref only")
        self.cell.request_stop()
        if envelope.reply_to is not None:
            envelope.reply_to.set(None)


class _Runner(pykka.Actor):
    """The pykka actor of one incarnation of a cell."""

    actor_inbox: _TurnInbox

    def __init__(self, cell: ActorCell[Any], host: "_Host") -> None:
        super().__init__()
        self.cell = cell
        self.host = host
        self.actor_inbox.cell = cell

    @staticmethod
    def _create_actor_inbox() -> _TurnInbox:
        return _TurnInbox()

    def __str__(self) -> str:
        return f"{type(self).__name__} of {self.cell.path}"

    @abstractmethod
    def give_turn(self) -> None:
        """Have the cell take a turn."""

    def retire(self) -> None:
        """Leave pykka's registry and loop; called in the runner's own turn."""
        self._stop()


class _PinnedRunner(_Runner, pykka.ThreadingActor):
    """A runner with a thread of its own, on which pykka's loop asks the inbox for turns."""

    use_daemon_thread = True

    def _start_actor_loop(self) -> None:
        try:
            super()._start_actor_loop()
        except BaseException:  # No thread to be had.
            pykka.ActorRegistry.unregister(self.actor_ref)
            raise
        self.host.take_over(self)

    def on_start(self) -> None:
        """Name the thread after the actor."""
        threading.current_thread().name = f"gearpy-{self.cell.path.name}"

    def on_receive(self, message: Any) -> None:
        """Take a turn."""
        self.cell.take_turn(_PINNED_TURN_MESSAGES, inf)

    def give_turn(self) -> None:
        """Have pykka's loop go round once."""
        self.actor_inbox.give_turn()


class _SharedRunner(_Runner):
    """A runner that takes turns on a dispatcher, which stands for pykka's loop."""

    @staticmethod
    def _create_future() -> pykka.Future[Any]:
        return pykka.ThreadingFuture()

    def _start_actor_loop(self) -> None:
        self.host.take_over(self)

    def give_turn(self) -> None:
        """Queue for a turn."""
        assert self.host.dispatcher is not None
        self.host.dispatcher.schedule(self)

    def take_turn(self, messages_max: int, until_s: float) -> None:
        """See `Runnable`."""
        self.cell.take_turn(messages_max, until_s)


class _Host:
    """`Host` that makes pykka actors: on the dispatcher, or without one each on a thread.

    Restart: stays; the runner is replaced.
    """

    def __init__(self, cell: ActorCell[Any], dispatcher: Dispatcher | None) -> None:
        self.dispatcher = dispatcher
        self.lane = dispatcher if dispatcher is not None and dispatcher.threads == 1 else None
        self._cell = cell
        self._runner: _Runner | None = None

    def start(self) -> None:
        """See `Host`."""
        if self.dispatcher is None:
            _PinnedRunner.start(self._cell, self)
        else:
            self.dispatcher.start()
            _SharedRunner.start(self._cell, self)

    def take_over(self, runner: _Runner) -> None:
        """Replace the runner by one that has just started."""
        self.retire()
        self._runner = runner
        runner.give_turn()

    def give_turn(self) -> None:
        """See `Host`."""
        assert self._runner is not None, "the first turn comes with the start"
        self._runner.give_turn()

    def retire(self) -> None:
        """See `Host`."""
        if self._runner is not None:
            self._runner.retire()


class ThreadedActorSystem(LocalActorSystem):
    """`ActorSystem` on pykka: pinned actors have a thread, shared ones take turns on a pool.

    All threads are daemons. Use as a context manager, or call `shutdown`.

    Runs on: any thread.
    """

    def __init__(
        self,
        *,
        node: str = "",
        rng: Random | None = None,
        shared_threads: int | None = None,
        stop_timeout_ms: int = STOP_TIMEOUT_MS,
    ) -> None:
        super().__init__(node=node, rng=rng or Random(), stop_timeout_ms=stop_timeout_ms)
        self._timers = TimerThread()
        self._shared = SharedDispatcher(shared_threads or default_threads())

    @property
    def timers(self) -> TimerThread:
        """See `Runtime`."""
        return self._timers

    def now_ms(self) -> int:
        """See `Runtime`."""
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        """See `Runtime`."""
        return time.time_ns() // 1_000_000

    def wait(self, reply: Reply, timeout_s: float) -> bool:
        """See `Runtime`."""
        return reply.wait(timeout_s)

    def _make_host(self, cell: ActorCell[Any], dispatcher: DispatcherChoice) -> Host:
        if dispatcher == "pinned":
            return _Host(cell, None)
        if dispatcher == "shared":
            return _Host(cell, self._shared)
        if isinstance(dispatcher, str):
            raise ConfigError(f"dispatcher is {dispatcher!r}, must be 'pinned' or 'shared'")
        return _Host(cell, dispatcher)

    def shutdown(self, timeout_s: float = 10.0) -> bool:
        """See `ActorSystem`."""
        if running.cell is not None:
            raise ConfigError(f"actor {running.cell.path} shuts its own system down, and waits")
        self._directory.close()
        for cell in reversed(self._directory.cells()):
            if cell.parent is None:
                cell.request_stop()
        is_empty = self._directory.wait_empty(timeout_s)
        self._kill_the_rest()
        self._shared.close()
        self._timers.close()
        return is_empty

    def _kill_the_rest(self) -> None:
        for cell in self._directory.cells():
            _log.warning("actor %s did not stop in time, killed", cell.path)
            cell.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown()
