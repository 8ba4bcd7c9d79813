"""ActorAppExecutor: an executor of an application of actors, around the user's `AppExecutor`."""

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from gearpy.actor.api import Actor, Exited, TurnCall
from gearpy.cluster.net.post import Post
from gearpy.errors import GearpyError
from gearpy.messages.actor_app import ActorLetter
from gearpy.messages.app import RegisterExecutor
from gearpy.messages.cluster import LaunchExecutor
from gearpy.task.api.actor_app import ActorApp, AppExecutor
from gearpy.task.api.failure import USER_ERRORS, operator_error
from gearpy.wire.values.payload import decode_value, encode_value

_Message: TypeAlias = ActorLetter | TurnCall


class ActorAppExecutor(Actor[_Message]):
    """Calls the user's `AppExecutor`, and ends with the app master.

    Runs on: its own thread. Restart: none; the app master has another one launched.
    """

    takes = _Message

    def __init__(
        self,
        launch: LaunchExecutor,
        *,
        load: Callable[[], ActorApp],
        post: Post,
        release: Callable[[], None],
        metrics_address: str = "",
    ) -> None:
        self._launch = launch
        self._load = load
        self._post = post
        self._release = release
        self._metrics_address = metrics_address
        self._user: AppExecutor | None = None

    def on_start(self) -> None:
        """Make the user's executor, have it begin, then register."""
        app_master = self._post.find(self._launch.reply_to)
        if app_master is None:
            self.context.stop_self()
            return
        self.context.watch(app_master)
        app = self._load()
        self._in_user_code(lambda: self._begin(app))
        launch, me = self._launch, self.context.self_ref
        self._tell(
            RegisterExecutor(
                executor_id=launch.executor_id,
                launch=launch.launch,
                executor=me.path,
                data_address="",
                slots=launch.slots,
                graph_hash="",
                pid=os.getpid(),
                metrics_address=self._metrics_address,
            )
        )

    def _begin(self, app: ActorApp) -> None:
        user = app.executor()
        user.context = _ExecutorMeans(self, self._launch, app)
        self._user = user
        user.on_start()

    def receive(self, message: _Message) -> None:
        """Pass a message of the app master on, or make a call that is due."""
        user = self._user
        if isinstance(message, TurnCall):
            self._in_user_code(message.call)
        elif user is not None:
            self._in_user_code(lambda: user.on_message(decode_value(message.body)))

    def on_exited(self, exited: Exited) -> None:
        if exited.ref.path == self._launch.reply_to:
            self.context.stop_self()

    def on_stop(self) -> None:
        if self._user is not None:
            self._user.on_stop()
        self._release()

    def tell(self, message: Any) -> None:
        """Send a message to the app master. Runs on: any thread."""
        launch = self._launch
        body = encode_value(message, where="a message")
        self._tell(ActorLetter(executor_id=launch.executor_id, launch=launch.launch, body=body))

    def call_later(self, delay_ms: int, call: Callable[[], None]) -> None:
        self.context.schedule_once(delay_ms, TurnCall(call))

    def fail(self, cause: str) -> None:
        """End, in a turn of its own. Runs on: any thread."""

        def end() -> None:
            raise GearpyError(cause)

        self.context.self_ref.tell(TurnCall(end))

    def _tell(self, message: object) -> None:
        self._post.tell(self._launch.reply_to, message)

    def _in_user_code(self, call: Callable[[], None]) -> None:
        """Call user code.

        Raises:
            OperatorError: it has raised.
            GearpyError: it has raised, or ended the executor.
        """
        try:
            call()
        except GearpyError:
            raise
        except USER_ERRORS as error:
            raise operator_error(f"executor {self._launch.executor_id}", error) from error


class _ExecutorMeans:
    """The `AppExecutorContext` of one executor."""

    def __init__(self, host: ActorAppExecutor, launch: LaunchExecutor, app: ActorApp) -> None:
        self._host = host
        self.app_id: int = launch.app_id
        self.executor_id: int = launch.executor_id
        self.config: Mapping[str, Any] = app.config

    def tell(self, message: Any) -> None:
        self._host.tell(message)

    def schedule(self, delay_ms: int, call: Callable[[], None]) -> None:
        self._host.call_later(delay_ms, call)

    def fail(self, cause: str) -> None:
        self._host.fail(cause)
