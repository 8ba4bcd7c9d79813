"""The page of a run in this process: `gear run --ui`."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from gearpy.cli.terminal.services import check_services, open_services
from gearpy.cluster.client.client import RunningApplication
from gearpy.cluster.embedded.signals import StopSignals
from gearpy.config.schema import Config

_LOOK_S: Final = 0.1


class Page:
    """Serves the page beside a run, and behind its end if that is wanted."""

    def __init__(
        self,
        config: Config,
        *,
        port: int | None,
        keeps: bool,
        say: Callable[[str], None],
        no_token: bool = False,
    ) -> None:
        check_services()
        self._config = config
        self._port = port
        self._keeps = keeps
        self._say = say
        self._no_token = no_token

    @contextmanager
    def of(self, stop: StopSignals, running: RunningApplication) -> Iterator[None]:
        """Serve the page as long as the context lasts, and then until there is a signal."""
        with open_services(
            running.client, self._config, port=self._port, of_one_run=True, no_token=self._no_token
        ) as services:
            page = f"{services.page}#/app/{running.app_id}"
            self._say(f"the page of this run is at {page}")
            try:
                yield
            finally:
                if self._keeps and stop.number is None:
                    self._say(f"the run has ended; the page goes on at {page} until Ctrl-C")
                    pause = threading.Event()
                    while stop.number is None:
                        pause.wait(_LOOK_S)
