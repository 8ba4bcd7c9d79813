"""``gear run``: one application in this process, until its input ends."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer
from msgspec import to_builtins

from gearpy.cli.apps.progress import Bar, Lines, Silence, View, left_out
from gearpy.cli.programs.program import load_program, program_arguments
from gearpy.cli.terminal.exits import exit_code_of, exit_code_of_signal
from gearpy.cli.terminal.log import log_to_stderr
from gearpy.cli.terminal.options import (
    AppArgs,
    Executors,
    Given,
    MetricsPlace,
    ProcessesOption,
    Target,
    UntilOption,
    option,
    processes_of,
    takes,
)
from gearpy.cli.terminal.output import print_guarantee, print_hints
from gearpy.cli.terminal.services import NoToken, check_services, open_services
from gearpy.clocks import wall_ms
from gearpy.cluster.client.client import RunningApplication
from gearpy.cluster.client.measured import cluster_sample
from gearpy.cluster.embedded.run import EMBEDDED, NEEDS_FOLDER, run_until
from gearpy.cluster.embedded.run_folder import run_folder_of
from gearpy.cluster.embedded.signals import StopSignals
from gearpy.cluster.host.metrics_page import metrics_page
from gearpy.cluster.processes.lifeline import end_group_with
from gearpy.cluster.programs.artifacts import split_target
from gearpy.config.load import project_file
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, GearpyError
from gearpy.messages.summaries import ApplicationSummary
from gearpy.task.stages.guarantees import guarantees_of, short_guarantee
from gearpy.views import text


@takes(
    "conf",
    "set_",
    "as_json",
    "verbose",
    as_json=Annotated[
        bool, typer.Option("--json", help="No progress; the summary as one line of JSON.")
    ],
)
def run(
    given: Given,
    target: Target,
    args: AppArgs = None,
    *,
    executors: Executors = None,
    processes: ProcessesOption = None,
    resume: Annotated[
        str | None,
        option(
            "--resume",
            metavar="NAME",
            help="Go on where the run of this name has ended, however it did, or begin it; a name, "
            "or the path of a folder for the run.",
        ),
    ] = None,
    until: UntilOption = "end",
    allow_drop: Annotated[
        bool,
        typer.Option(
            "--allow-drop",
            help="With --resume: leave behind what another program has no place for.",
        ),
    ] = False,
    metrics: MetricsPlace = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no summary.")] = False,
    ui: Annotated[
        bool, typer.Option("--ui", help="Serve the page of the run, at services.port.")
    ] = False,
    port: Annotated[
        int | None, option("--port", min=0, max=65_535, metavar="N", help="With --ui.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="With --ui: go on serving behind the end of the run.")
    ] = False,
    no_token: NoToken = False,
    watches: Annotated[
        bool,
        typer.Option(
            "--watch", help="Run it again when a file is saved, with what its steps have kept."
        ),
    ] = False,
) -> None:
    """Run an application in this process until its input ends, or it has caught up with it.

    What it prints goes to standard output. Progress, summary and errors go to standard error.
    Ctrl-C and SIGTERM stop its sources and commit what they have read; the second one ends it
    at once.
    """
    if watches:
        own = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
        words = [word for word in sys.argv[2:own] if word != "--watch"] + sys.argv[own:]
        raise typer.Exit(watch(target, words, is_named=resume is not None, say=_say))
    number = processes_of(processes, executors or 1)
    config, as_json = given.config(defaults=EMBEDDED), given.as_json
    log_to_stderr(verbose=given.verbose, quiet=quiet)
    is_silent = quiet or as_json
    view: View = Silence() if is_silent else Bar() if sys.stderr.isatty() else Lines()
    folder = run_folder_of(resume, config.checkpoint.runs_folder) if resume else None
    page = Page(config, port=port, keeps=keep, say=_say, no_token=no_token) if ui else None
    stop = StopSignals(
        on_second=lambda number: _end_at_once(number, view, is_resumable=folder is not None),
        replaces=lambda handler: handler is not signal.SIG_IGN,
    )
    try:
        if until != "end" and folder is None:
            raise ConfigError(NEEDS_FOLDER)
        program, application = load_program(target, args or (), until=until)
        if not is_silent:
            if (project := project_file()) is not None:
                _say(f"configuration: {project}")
            if config.executor.python_options or config.executor.environment:
                print_hints([_OF_PROCESSES])
            is_resumable = folder is not None
            if is_resumable or config.application.retries or number > 1:
                lasts = "" if is_resumable else ", as long as this process lives"
                print_guarantee([f"{short_guarantee(guarantees_of(application))}{lasts}"])
        with program_arguments(program), stop, view:
            summary = run_until(
                application,
                stop,
                executors=executors or (1 if number > 1 else config.application.executors),
                processes=number,
                config=config,
                checkpoint=folder,
                allow_drop=allow_drop,
                on_progress=view.on_progress,
                say=(lambda _: None) if is_silent else _say,
                beside=[
                    *([] if page is None else [partial(page.of, stop)]),
                    *([partial(_metrics_at, metrics)] if metrics else []),
                ],
            )
    except GearpyError as error:
        _print_summary(view.last, as_json=as_json, quiet=quiet)
        if as_json and view.last is not None:
            raise typer.Exit(exit_code_of(error)) from None  # The summary has the cause.
        raise
    _print_summary(view.last, as_json=as_json, quiet=quiet)
    if stop.number is not None and summary.status != "succeeded":
        raise typer.Exit(exit_code_of_signal(stop.number, drained=summary.progress.drained))


_OF_PROCESSES: Final = (
    "executor.python-options and executor.environment are for the processes of a cluster; this one "
    "has begun: give both to Python or the shell"
)
_AHEAD_HINT: Final = (
    "records ahead of the clock by more than max_ahead= were left out: see them with "
    'read(..., late="side")'
)
_LATE_HINT: Final = (
    "late records were dropped unless the program says otherwise: see them with "
    'read(..., late="side") or window(..., late="side"), take them with a larger out_of_order='
)


def summary_line(summary: ApplicationSummary, now_ms: int) -> str:
    progress = summary.progress
    counts = (
        f"{text.count(progress.records_in)} records in, {text.count(progress.records_out)} out, "
        f"{text.count(progress.late_records)} late"
    )
    if progress.caught_up:
        new = text.plural(progress.records_in - progress.records_before, "record")
        since = f"; since its first run {counts}" if progress.records_before else f": {counts}"
        counts = f"{new} read{since}; {text.plural(progress.open_windows, 'window')} open"
    return (
        f"{summary.name} {summary.outcome}: {counts}, "
        f"{''.join(f'{each}, ' for each in left_out(progress))}"
        f"{text.duration(text.duration_ms_of(summary, now_ms))}"
    )


def _end_at_once(number: int, view: View, *, is_resumable: bool) -> None:
    epoch = view.last.progress.epoch if view.last else 0
    since = f"since epoch {epoch}" if epoch else "so far"
    again = "; it is read again when the run is resumed" if is_resumable else ""
    line = f"ended at once: what was read {since} is not committed{again}\n"
    os.write(sys.stderr.fileno(), line.encode())
    os._exit(exit_code_of_signal(number))


@contextmanager
def _metrics_at(place: str, running: RunningApplication) -> Iterator[None]:
    with metrics_page(place, lambda: cluster_sample(running.client)) as url:
        _say(f"metrics at {url}")
        yield


def _say(line: str) -> None:
    print(text.printable(line), file=sys.stderr, flush=True)


def _print_summary(summary: ApplicationSummary | None, *, as_json: bool, quiet: bool) -> None:
    if summary is None:
        return
    if as_json:
        print(json.dumps(to_builtins(summary)), file=sys.stderr)
    elif not quiet:
        print(text.printable(summary_line(summary, wall_ms())), file=sys.stderr)
        if summary.progress.late_records:
            print(_LATE_HINT, file=sys.stderr)
        if summary.progress.ahead_records:
            print(_AHEAD_HINT, file=sys.stderr)


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


_POLL_S: Final = 0.3
#: What a child that has not drained by then has not shown, the next one reads again.
_DRAIN_S: Final = 10.0
_NOT_SEARCHED: Final = frozenset({"__pycache__", "node_modules", "site-packages"})


def watch(target: str, words: Sequence[str], *, is_named: bool, say: Callable[[str], None]) -> int:
    """Run the program until Ctrl-C or SIGTERM, again whenever a file is saved; return an exit code.

    Args:
        target: the program; ``gear.toml`` and all modules beside it and below are watched.
        words: the command line behind ``gear run``, without ``--watch``.
        is_named: it has ``--resume``; else what the steps have kept is in a folder until the end.
    """
    path, _ = split_target(target)
    folder = path.resolve().parent if path.is_file() else Path.cwd()
    child: subprocess.Popen[bytes] | None = None

    def tell(number: int) -> None:
        if child is not None and child.poll() is None:
            child.send_signal(number)

    finished = 0
    lifeline, held = os.pipe()
    with (
        open(lifeline, "rb"),  # noqa: PTH123 - descriptors
        open(held, "wb"),  # noqa: PTH123
        TemporaryDirectory(prefix="gearpy-watch-") as kept,
        StopSignals(on_second=tell, replaces=lambda handler: handler is not signal.SIG_IGN) as stop,
    ):
        while True:
            stamps = _stamps(folder)
            state = [] if is_named else ["--resume", f"{kept}/{finished}", "--allow-drop"]
            # A terminal sends Ctrl-C to its whole group, and a second one would end it at once.
            command = [sys.executable, "-m", "gearpy", "run", *state, *words]
            child = subprocess.Popen(command, process_group=0, pass_fds=[lifeline])  # noqa: S603 - the same program
            end_group_with(lifeline, child.pid)  # Also if this process is killed.
            has_ended = False
            while stop.number is None and _stamps(folder) == stamps:
                if not has_ended and child.poll() is not None:
                    has_ended = True
                    finished += child.returncode == 0
                    say(f"watching {folder}: save a file to run it again, Ctrl-C ends it")
                time.sleep(_POLL_S)
            if stop.number is not None:
                tell(stop.number)
                return child.wait()
            changed = {path for path, _ in stamps.items() ^ _stamps(folder).items()}
            say(f"saved: {', '.join(sorted(changed))}")
            tell(signal.SIGTERM)
            try:
                child.wait(_DRAIN_S)
            except subprocess.TimeoutExpired:
                tell(signal.SIGKILL)
                child.wait()


def _stamps(folder: Path) -> Mapping[str, tuple[int, int]]:
    """Return size and time of change of each file that makes the program, by its path."""
    return {
        os.path.relpath(found.path, folder): ((stat := found.stat()).st_size, stat.st_mtime_ns)
        for found in _files(str(folder))
        if found.name.endswith(".py") or found.name in ("gear.toml", "pyproject.toml")
    }


def _files(folder: str) -> Iterator["os.DirEntry[str]"]:
    try:
        found = list(os.scandir(folder))
    except OSError:
        return  # It has just been removed, or is another user's.
    if any(each.name == "pyvenv.cfg" for each in found):
        return
    for each in found:
        if each.is_dir(follow_symlinks=False):
            if not each.name.startswith(".") and each.name not in _NOT_SEARCHED:
                yield from _files(each.path)
        elif each.is_file():
            yield each
