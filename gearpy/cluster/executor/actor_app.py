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
    """Calls the user's `AppExecutor`, is its context, and ends with the app master.

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
        self.app_id: int = launch.app_id
        self.executor_id: int = launch.executor_id
        self.config: Mapping[str, Any] = {}

    def on_start(self) -> None:
        app_master = self._post.find(self._launch.reply_to)
        if app_master is None:
            self.context.stop_self()
            return
        self.context.watch(app_master)
        app = self._load()
        self.config = app.config
        self._in_user_code(lambda: self._begin(app))
        launch, me = self._launch, self.context.self_ref
        self._post.tell(
            self._launch.reply_to,
            RegisterExecutor(
                executor_id=launch.executor_id,
                launch=launch.launch,
                executor=me.path,
                data_address="",
                slots=launch.slots,
                graph_hash="",
                pid=os.getpid(),
                metrics_address=self._metrics_address,
            ),
        )

    def _begin(self, app: ActorApp) -> None:
        user = app.executor()
        user.context = self
        self._user = user
        user.on_start()

    def receive(self, message: _Message) -> None:
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
        self._post.tell(
            self._launch.reply_to,
            ActorLetter(executor_id=launch.executor_id, launch=launch.launch, body=body),
        )

    def schedule(self, delay_ms: int, call: Callable[[], None]) -> None:
        self.context.schedule_once(delay_ms, TurnCall(call))

    def fail(self, cause: str) -> None:
        """End, in a turn of its own. Runs on: any thread."""

        def end() -> None:
            raise GearpyError(cause)

        self.context.self_ref.tell(TurnCall(end))

    def _in_user_code(self, call: Callable[[], None]) -> None:
        try:
            call()
        except GearpyError:
            raise
        except USER_ERRORS as error:
            raise operator_error(f"executor {self._launch.executor_id}", error) from error
