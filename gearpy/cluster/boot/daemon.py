"""The common part of the daemons: the names of their actors, their log files, their ends."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from gearpy.actor.api import Exited, ExitReason, Failed, Killed, Ref
from gearpy.cluster.host.interruptible import wait_interruptibly
from gearpy.cluster.host.logs import LogHandler, LogSettings, log_to
from gearpy.cluster.net.limits import transport_limits
from gearpy.config.schema import Config
from gearpy.errors import AuthenticationFailed, ConfigError, GearpyError, NodeGivenUp
from gearpy.messages.client import GetCluster
from gearpy.transport.letters.client import ControlClient
from gearpy.transport.security.credentials import Credentials

#: The name of the master's actor; with an address it is the path by which others find it.
MASTER: Final = "master"
WORKER: Final = "worker"


class DaemonExit:
    """The end of the first of some actors, for threads that wait for it."""

    def __init__(self) -> None:
        self._exited = threading.Event()
        self._reason: ExitReason | None = None
        self.given_up = ""  # Why others do not listen to this process any more.

    def watch(self, ref: Ref[Any]) -> None:
        ref.add_watcher(self, self._on_exited)

    def fail(self, error: GearpyError) -> None:
        self._reason = self._reason or Failed(error, "")
        self._exited.set()

    def _on_exited(self, exited: Exited) -> None:
        self._reason = self._reason or exited.reason
        self._exited.set()

    def give_up(self, reason: str) -> None:
        self.given_up = self.given_up or reason
        self._exited.set()

    def is_within(self, timeout_s: float) -> bool:
        return self._exited.wait(timeout_s)

    def wait(self) -> None:
        wait_interruptibly(self._exited)
        if self.given_up:
            raise NodeGivenUp(f"frozen or cut off for too long: {self.given_up}")
        match self._reason:
            case Failed(cause=GearpyError() as cause):
                raise cause
            case Failed() | Killed():
                raise GearpyError(f"the daemon has failed: {self._reason}")


@contextmanager
def usable(key: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{key} cannot be used: {error}") from error


def begin_log(
    settings: LogSettings,
    config: Config,
    name: str,
    opened: ExitStack,
    *,
    logger: str | None = None,
) -> None:
    file = settings.open(name)
    file.check()
    handler = LogHandler(file)
    opened.callback(handler.close)
    opened.callback(logging.getLogger(logger).removeHandler, handler)
    log_to(handler, config.log, logger)


_ASK_AGAIN_S: Final = 5.0


class RefusalWatch:
    """Asks masters, while a process finds none that leads, whether they refuse it.

    Runs on: a thread of its own, from `begin` to `end`.

    Args:
        on_refusal: is told of each master that refuses it, once, while these are not enough.
    """

    def __init__(
        self,
        config: Config,
        credentials: Credentials,
        masters: Sequence[str],
        *,
        on_refused: Callable[[AuthenticationFailed], object],
        enough: int = 1,
        on_refusal: Callable[[AuthenticationFailed], object] = lambda _: None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._config, self._credentials, self._masters = config, credentials, masters
        self._on_refused, self._enough = on_refused, enough
        self._on_refusal, self._is_over = on_refusal, is_over
        self._refusing: set[str] = set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gearpy-refusals", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._end.set()

    def _watch(self) -> None:
        while not self._end.is_set() and not self._is_over():
            for address in self._masters:
                try:
                    limits = transport_limits(self._config)
                    with ControlClient(address, self._credentials, limits) as client:
                        client.ask(GetCluster(), self._config.masterclient.timeout_s)
                    self._refusing.discard(address)
                except AuthenticationFailed as error:
                    is_new = address not in self._refusing
                    self._refusing.add(address)
                    is_enough = len(self._refusing) >= self._enough
                    if is_new and not is_enough:
                        self._on_refusal(error)
                    if is_enough:
                        self._on_refused(error)
                        return
                except GearpyError:  # It is not there, or has not yet begun.
                    continue
            self._end.wait(_ASK_AGAIN_S)
