"""The common part of the daemons: the names of their actors, their log files, their ends."""

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from gearpy.actor.api import Exited, ExitReason, Failed, Killed, Ref
from gearpy.cluster.host.logs import LogHandler, LogSettings, log_to
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, GearpyError, NodeGivenUp

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
        self._exited.wait()
        if self.given_up:
            raise NodeGivenUp(f"frozen or cut off for too long: {self.given_up}")
        match self._reason:
            case Failed(cause=GearpyError() as cause):
                raise cause
            case Failed() | Killed():
                raise GearpyError(f"the daemon has failed: {self._reason}")


@contextmanager
def usable(key: str) -> Iterator[None]:
    """Turn an error of the operating system into a mistake of the configuration."""
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
    """Write the log of this process, or of one logger, into a file until the stack is closed."""
    file = settings.open(name)
    file.check()
    handler = LogHandler(file)
    opened.callback(handler.close)
    opened.callback(logging.getLogger(logger).removeHandler, handler)
    log_to(handler, config.log, logger)
