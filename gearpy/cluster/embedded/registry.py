"""Lets a run be found, and answer questions; at its end it leaves a report.

Its thread sleeps until somebody asks.
"""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gearpy.clocks import wall_ms
from gearpy.cluster.client.client import RunningApplication
from gearpy.cluster.client.report import Report, report_of
from gearpy.cluster.client.runs import LAST, RunEntry, runtime_folder, safe_name
from gearpy.cluster.embedded.run_folder import run_name_of
from gearpy.cluster.processes.framed import framed, read_framed
from gearpy.errors import GearpyError
from gearpy.transport.security.secret import write_private
from gearpy.wire.codec import decode_control, encode_answer

_REPORTED_MS: Final = 1000  # A shorter run leaves no report.
_REPORT_S: Final = 3.0
_REPORT_BYTES_MAX: Final = 4 << 20
_REPORTS_MAX: Final = 50


@contextmanager
def registered(
    running: RunningApplication, ask: Callable[[Any], Any], folder: Path | None, runs_folder: str
) -> Iterator[None]:
    """Let a run be found as long as the context lasts; at its end it leaves a report."""
    runtime = runtime_folder()
    if runtime is None:
        yield
        return
    number = 0
    while (place := runtime / f"{os.getpid()}-{number}.json").exists():
        number += 1
    name = running.name if folder is None else run_name_of(folder, runs_folder)
    listener = socket.socket(socket.AF_UNIX)
    entry = RunEntry(
        name=name,
        application=running.name,
        pid=os.getpid(),
        folder="" if folder is None else str(folder),
        socket=str(place.with_suffix(".sock")),
        began_ms=wall_ms(),
    )
    try:
        listener.bind(entry.socket)
        listener.listen()
        write_private(place, msgspec.json.encode(entry))
    except OSError:  # Such as a path that is too long: then it is not found.
        listener.close()
        yield
        return
    threading.Thread(
        target=_serve, args=(listener, ask), name=f"gearpy-answers-{name}", daemon=True
    ).start()
    try:
        yield
    finally:
        place.unlink(missing_ok=True)
        with suppress(OSError):  # It wakes the thread.
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        place.with_suffix(".sock").unlink(missing_ok=True)
        if wall_ms() - entry.began_ms >= _REPORTED_MS:
            # A run that ends waits no longer than that for one that does not answer.
            leaving = threading.Thread(
                target=_leave, args=(runtime / LAST, entry, running), daemon=True
            )
            leaving.start()
            leaving.join(_REPORT_S)


def _leave(folder: Path, entry: RunEntry, running: RunningApplication) -> None:
    with suppress(OSError, GearpyError):
        _keep(folder, entry, report_of(running.client, running.app_id, of_a_run=True))


def _keep(folder: Path, entry: RunEntry, report: Report) -> None:
    """Keep a report, without the history if it is too large; the oldest of too many go."""
    data = msgspec.json.encode(report)
    if len(data) > _REPORT_BYTES_MAX:
        answers = {name: each for name, each in report.answers.items() if "series" not in name}
        missing = [*report.missing, "history: the report would have become too large"]
        data = msgspec.json.encode(replace(report, answers=answers, missing=missing))
    if len(data) > _REPORT_BYTES_MAX:
        return
    for name in {entry.name, entry.application}:
        write_private(folder / f"{safe_name(name)}.json", data)
    kept = sorted(folder.glob("*.json"), key=lambda each: each.stat().st_mtime)
    for path in kept[:-_REPORTS_MAX]:
        path.unlink(missing_ok=True)


# -- questions and answers -------------------------------------------------------------------


def _serve(listener: socket.socket, ask: Callable[[Any], Any]) -> None:
    while True:
        try:
            asker, _ = listener.accept()
        except OSError:  # It is closed.
            return
        threading.Thread(target=_answer, args=(asker, ask), daemon=True).start()


def _answer(asker: socket.socket, ask: Callable[[Any], Any]) -> None:
    with asker, suppress(OSError, EOFError):
        question = read_framed(asker.recv)
        try:
            reply = encode_answer(ask(decode_control(question)))
        except Exception as error:  # noqa: BLE001 - else the asker would think that the run ended
            reply = encode_answer(error)
        asker.sendall(framed(reply))
