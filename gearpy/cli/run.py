"""One application in this process, until its input ends."""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace

import typer

from gearpy.cli import text
from gearpy.cli.exits import exit_code_of
from gearpy.cli.log import log_to_stderr
from gearpy.cli.output import print_guarantee
from gearpy.cli.program import load_program
from gearpy.cli.progress import Bar, Lines, Silence, View, left_out
from gearpy.cluster.local import run
from gearpy.config.schema import Config
from gearpy.errors import GearpyError
from gearpy.messages.cluster import ApplicationSummary
from gearpy.task.application import StreamApplication
from gearpy.task.guarantees import guarantee_lines, guarantees_of

__all__ = ["run_application", "summary_line"]


def run_application(
    target: str,
    args: Sequence[str],
    *,
    config: Config,
    executors: int | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Run it, show how far it is, and say in the end what it did.

    Raises:
        GearpyError: see `load_program` and `gearpy.cluster.local.run`.
    """
    log_to_stderr(verbose=verbose)
    _, application = load_program(target, args)
    if not (quiet or as_json):
        print_guarantee(guarantee_lines(guarantees_of(application)))
    view = _view(quiet=quiet or as_json)
    try:
        with view:
            _run(application, view, config=config, executors=executors)
    except GearpyError as error:
        _print_summary(view.last, as_json=as_json, quiet=quiet)
        if as_json and view.last is not None:
            raise typer.Exit(exit_code_of(error)) from None  # The summary has the cause.
        raise
    except KeyboardInterrupt:
        stopped = view.last and replace(view.last, status="terminated")
        _print_summary(stopped, as_json=as_json, quiet=quiet)
        raise
    _print_summary(view.last, as_json=as_json, quiet=quiet)


def summary_line(summary: ApplicationSummary, now_ms: int) -> str:
    """Return what an application has done, in one line."""
    progress = summary.progress
    return (
        f"{summary.name} {summary.status}: {text.count(progress.records_in)} records in, "
        f"{text.count(progress.records_out)} out, {text.count(progress.late_records)} late, "
        f"{''.join(f'{each}, ' for each in left_out(progress))}"
        f"{text.duration(text.duration_ms_of(summary, now_ms))}"
    )


def _run(
    application: StreamApplication, view: View, *, config: Config, executors: int | None
) -> None:
    wanted = executors or config.application.executors
    run(application, executors=wanted, config=config, on_progress=view.on_progress)


def _view(*, quiet: bool) -> View:
    if quiet:
        return Silence()
    return Bar() if sys.stderr.isatty() else Lines()


def _print_summary(summary: ApplicationSummary | None, *, as_json: bool, quiet: bool) -> None:
    if summary is None:
        return
    if as_json:
        print(json.dumps(asdict(summary)), file=sys.stderr)
    elif not quiet:
        print(text.printable(summary_line(summary, _now_ms())), file=sys.stderr)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
