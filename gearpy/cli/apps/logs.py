"""Prints the log of an application's executor or app master."""

import threading
from dataclasses import asdict
from typing import Final

from gearpy.cli.terminal import text
from gearpy.cli.terminal.output import print_json
from gearpy.cluster.client.client import ClusterClient
from gearpy.core.master.registry import TERMINAL
from gearpy.ids import MASTER_EXECUTOR, AppId, ExecutorId
from gearpy.messages.client import LogText

__all__ = ["print_log"]

_POLL_S: Final = 0.5


def print_log(
    client: ClusterClient,
    ref: str,
    executor: int | None,
    *,
    lines: int,
    follow: bool,
    as_json: bool,
) -> None:
    """Print the last lines; with ``follow`` also those that come, until the application ends.

    Raises:
        GearpyError: there is no such application or log.
    """
    app_id = client.find(ref)
    executor_id = MASTER_EXECUTOR if executor is None else ExecutorId(executor)
    shown = client.log(app_id, executor_id, lines=lines)
    if as_json:
        print_json(asdict(shown))
    else:
        _print(shown.text, ends_line=not follow)
    if follow:
        _follow(client, app_id, executor_id, shown, as_json=as_json)


def _follow(
    client: ClusterClient,
    app_id: AppId,
    executor_id: ExecutorId,
    shown: LogText,
    *,
    as_json: bool,
) -> None:
    """Ask again and again for what is new; a new launch has a log of its own."""
    pause, has_ended = threading.Event(), False
    while True:
        more = client.log(app_id, executor_id, after=shown.position)
        if as_json and more.text:
            print_json(asdict(more))
        elif more.text:
            if more.source != shown.source:
                print(f"\n==> {text.printable(more.source)} <==")
            _print(more.text, ends_line=False)
        shown = more
        if more.text:
            continue
        if has_ended:
            return
        has_ended = client.application(app_id).status in TERMINAL
        pause.wait(_POLL_S)  # Also at the end: its processes may have something left to say.


def _print(log: str, *, ends_line: bool) -> None:
    missing = "\n" if ends_line and log and not log.endswith("\n") else ""
    print(text.printable(log), end=missing, flush=True)
