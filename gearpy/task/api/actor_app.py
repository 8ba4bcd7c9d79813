"""Applications that are not streams: an app master of one's own, and its executors.

Users derive from `AppMaster` and `AppExecutor`, and name both in an `ActorApp`. Gearpump:
`Application`, `ApplicationMaster`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from gearpy.errors import ConfigError
from gearpy.messages.summaries import WorkerSummary
from gearpy.task.api.application import name_mistakes

_PENDING: Final = object()


class PendingAnswer:
    """An answer that an app master gives later, by `set`. Runs on: the app master's turns."""

    def __init__(self) -> None:
        self._value: Any = _PENDING

    @property
    def is_set(self) -> bool:
        """Whether the answer is there."""
        return self._value is not _PENDING

    @property
    def value(self) -> Any:
        """The answer; ask `is_set` before."""
        return self._value

    def set(self, value: Any) -> None:
        """Give the answer; the first one counts."""
        if not self.is_set:
            self._value = value


class AppMasterContext(Protocol):
    """The means of an `AppMaster`. Use it only inside the app master's methods."""

    app_id: int
    app_name: str
    config: Mapping[str, Any]  #: As given to the `ActorApp`.
    values: Mapping[str, bytes]  #: Stored by `store`, also by app masters before this one.

    @property
    def workers(self) -> Sequence[WorkerSummary]:
        """The workers of the cluster, a second old at most; empty at first."""
        ...

    @property
    def executors(self) -> Mapping[int, int]:
        """The executors that are up, and the worker of each."""
        ...

    def request(self, count: int = 1, *, slots: int = 1) -> list[int]:
        """Ask for executors; each takes its slots on one worker, and waits while there are none.

        One that is lost is replaced by a new process of the same number, within the budget of
        ``application.total-retries``.

        Raises:
            ConfigError: ``count`` or ``slots`` is below 1.
        """
        ...

    def request_on_each_worker(self, *, slots: int = 1) -> None:
        """Ask for an executor on each worker of the cluster, also on later ones.

        Raises:
            ConfigError: ``slots`` is below 1.
        """
        ...

    def tell(self, executor: int, message: Any) -> bool:
        """Send a message to an executor; False if it is not up. Values are those of records.

        Raises:
            CannotTravel: a part of the message cannot be sent to another process.
        """
        ...

    def drop(self, executor: int) -> None:
        """Stop an executor for good; its slots become free."""
        ...

    def store(self, key: str, value: bytes) -> None:
        """Store a value at the master, durably, for app masters that come after this one."""
        ...

    def schedule(self, delay_ms: int, call: Callable[[], None]) -> None:
        """Call a function later, in a turn of its own."""
        ...

    def later(self) -> PendingAnswer:
        """Return an answer that `AppMaster.on_question` may return before it is known."""
        ...

    def succeed(self) -> None:
        """End the application: it has done its work."""
        ...

    def fail(self, cause: str) -> None:
        """End the application as failed."""
        ...


class AppMaster:
    """The app master of an application of actors; derive from it.

    Methods are called one after the other. What one raises ends this app master, and the master
    of the cluster starts another one, within the budget of ``application.total-retries``; executors
    end with their app master. `AppMasterContext.values` is what the next one goes on from.
    Gearpump: `ApplicationMaster`.
    """

    context: AppMasterContext

    def on_start(self) -> None:
        """Begin; usually asks for executors."""

    def on_executor(self, executor: int) -> None:
        """Hear that an executor is up; also of a new process for one that was lost."""

    def on_message(self, executor: int, message: Any) -> None:
        """Take a message that an executor sent by `AppExecutorContext.tell`."""

    def on_lost(self, executor: int, cause: str) -> None:
        """Hear that the process of an executor is gone; a new one is on its way."""

    def on_given_up(self, executor: int, cause: str) -> None:
        """Hear that an executor was lost once too often; the default fails the application."""
        self.context.fail(f"executor {executor}: {cause}")

    def on_question(self, question: Any) -> Any:
        """Answer a client (``gear app ask``), at once or by `AppMasterContext.later`."""
        raise ConfigError(f"{type(self).__name__} answers no questions: it has no on_question")

    def on_stop(self) -> None:
        """Clean up, when the application ends."""


class AppExecutorContext(Protocol):
    """The means of an `AppExecutor`. Runs on: any thread."""

    app_id: int
    executor_id: int
    config: Mapping[str, Any]  #: As given to the `ActorApp`.

    def tell(self, message: Any) -> None:
        """Send a message to the app master. Values are those of records.

        Raises:
            CannotTravel: a part of the message cannot be sent to another process.
        """
        ...

    def schedule(self, delay_ms: int, call: Callable[[], None]) -> None:
        """Call a function later, in a turn of its own; from the executor's methods only."""
        ...

    def fail(self, cause: str) -> None:
        """End this executor, as if it had raised; the app master gets a new one."""
        ...


class AppExecutor:
    """One executor of an application of actors; derive from it.

    On a cluster it has a process of its own, which ends with its worker and its app master, and
    takes all processes along that it has started. Methods are called one after the other, on a
    thread that may block. What one raises ends the executor.
    """

    context: AppExecutorContext

    def on_start(self) -> None:
        """Begin; `AppMaster.on_executor` is called when this has returned."""

    def on_message(self, message: Any) -> None:
        """Take a message that the app master sent by `AppMasterContext.tell`."""

    def on_stop(self) -> None:
        """Clean up, when it is stopped."""


class ActorApp:
    """An application that is not a stream: an app master and executors of one's own.

    Args:
        name: of the application.
        master: made once for each launch of the app master.
        executor: made once for each process of an executor.
        config: plain values that both find in their context.

    Raises:
        ConfigError: the name or a class is wrong; all mistakes at once.
    """

    def __init__(
        self,
        name: str,
        *,
        master: type[AppMaster],
        executor: type[AppExecutor],
        config: Mapping[str, Any] | None = None,
    ) -> None:
        mistakes = name_mistakes(name)
        for given, base in ((master, AppMaster), (executor, AppExecutor)):
            if not _is_class_of(given, base):
                mistakes.append(f"{given!r} is no class derived from gearpy.{base.__name__}")
        if mistakes:
            raise ConfigError(*mistakes)
        self.name = name
        self.master = master
        self.executor = executor
        self.config = dict(config or {})
        self.program = ""  #: As `StreamApplication.program`.

    def build(self) -> "ActorApp":
        """Return the application itself: there is nothing to plan."""
        return self


def _is_class_of(given: object, base: type) -> bool:
    return isinstance(given, type) and issubclass(given, base)
