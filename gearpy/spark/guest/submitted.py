"""SubmittedApplication: an application of a cluster inside Spark whose program is at hand."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gearpy.cluster.client.client import ClusterClient, RunningApplication
from gearpy.connectors.window_log.sink import WindowLogSink
from gearpy.core.master.registry import TERMINAL
from gearpy.errors import AskTimeout, ConfigError
from gearpy.ids import AppId
from gearpy.task.api.application import StreamApplication

_POLL_S: Final = 0.05


class SubmittedApplication(RunningApplication):
    """An application whose program this process has; see `RunningApplication`."""

    def __init__(
        self, client: ClusterClient, app_id: AppId, name: str, built: StreamApplication
    ) -> None:
        super().__init__(client, app_id, name)
        self._built = built

    def window_log(self, name: str = "", *, timeout_s: float = 120.0) -> str:
        """Return where a window log of the application is, for Spark's ``format("gearpy")``.

        Its first window makes the log, with its columns, without which Spark cannot read it: that
        is waited for.

        Args:
            name: of the step that writes it, or the last part of its folder; not needed if there
                is only one.
            timeout_s: how long to wait for the first window.

        Raises:
            ConfigError: there is none, or it is not clear which.
            AskTimeout: no window has come in time, or before the application has ended.
        """
        logs = dict(_window_logs(self._built))
        found = [
            sink
            for step, sink in logs.items()
            if not name or name in {step, Path(sink.options.place).name}
        ]
        if len(found) != 1:
            has = ", ".join(f"{step} ({sink.options.place})" for step, sink in logs.items())
            wanted = f"one window log {name!r}" if name else "one window log"
            raise ConfigError(f"application {self.name} has not {wanted}; it has {has or 'none'}")
        log, until_s = found[0].log(), time.monotonic() + timeout_s
        while not log.exists:
            is_over = time.monotonic() > until_s or self.summary().status in TERMINAL
            if is_over and not log.exists:  # It may have come meanwhile.
                raise AskTimeout(
                    f"application {self.name} has written no window to {found[0].options.place} "
                    f"yet, after up to {timeout_s:g} s: see how it is by `gear why`"
                )
            time.sleep(_POLL_S)
        return found[0].options.place


def _window_logs(built: StreamApplication) -> Iterator[tuple[str, WindowLogSink]]:
    for number, processor in built.processors.items():
        if isinstance(processor.sink, WindowLogSink):
            last = processor.steps[-1].name if processor.steps else processor.name
            yield last or f"processor {number}", processor.sink
