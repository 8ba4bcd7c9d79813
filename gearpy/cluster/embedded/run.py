"""Runs an application in this process, as a cluster would: with epochs, restarts and a good end."""

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import Final

from gearpy.clocks import monotonic_ms
from gearpy.cluster.client.client import RunningApplication
from gearpy.cluster.embedded.launch import OnProgress, Processes, launched
from gearpy.cluster.embedded.output import NO_READER, give_up_output, is_of_no_reader
from gearpy.cluster.embedded.signals import StopSignals
from gearpy.cluster.programs.artifacts import run_by_loader, stream_here
from gearpy.config.load import Overrides, chosen, load, project_file
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, OperatorError, SubmitRefused, ends_at_the_caller
from gearpy.messages.summaries import ApplicationSummary, Until
from gearpy.task.api.application import Buildable, StreamApplication
from gearpy.task.stages.guarantees import cannot_be_resumed
from gearpy.views.draining import DrainNotice

#: What counts where nobody has set anything else. With the user at hand, the first failure of a
#: program is one to correct, not one to try again.
#: Autoscale has no cluster to go to.
EMBEDDED: Final[Mapping[str, str]] = {
    "application.total-retries": "0",
    "application.autoscale-cooldown-seconds": "0",
}
_STOPPING: Final = (
    "stopping: nothing more is read, what was read is being committed; once more: at once"
)
_AT_ONCE: Final = "Ctrl-C once more ends it at once"
NEEDS_FOLDER: Final = (
    "a run that ends when it has caught up goes on the next time, and needs a place for what it "
    'keeps: give it --resume NAME, or gp.run(app, until="caught-up", checkpoint=FOLDER)'
)
#: Said of the end at once, where the run has a checkpoint.
RESUMED: Final = ", and the next run goes on from the newest epoch"

#: Something that goes on as long as an application runs, such as a page about it.
Beside = Callable[[RunningApplication], AbstractContextManager[object]]


@ends_at_the_caller
def run(
    app: Buildable | Callable[..., Buildable],
    *,
    executors: int = 1,
    processes: Processes = 1,
    config: Config | Overrides | None = None,
    checkpoint: str | Path | None = None,
    until: Until = "end",
    allow_drop: bool = False,
    on_progress: OnProgress | None = None,
) -> ApplicationSummary:
    """Run an application in this process until its input ends, or until it is stopped.

    The first Ctrl-C or SIGTERM drains it: sources stop, and sinks commit what was read. Then
    `KeyboardInterrupt` is raised after Ctrl-C, and after SIGTERM the program ends with exit code 0.
    The second one ends it at once. So it is in the main thread, where a program has no handlers
    of its own. When nobody reads its output any more, as behind ``| head``, the program ends with
    exit code 141.

    In a program that ``gear run`` or a cluster loads, it says which application that is, and
    nothing behind it is executed.

    Args:
        app: an application, or a function that makes one (of a list of arguments: it gets
            ``sys.argv[1:]``).
        executors: how many executors share its tasks, all in this process.
        processes: how many processes share its tasks, each a fork of this one, on Linux; "auto":
            one for each core. Steps that do not say otherwise have as many tasks. With 1 all is in
            this process.
        config: the configuration, or settings of it, such as ``{"checkpoint.interval-ms": 500}``.
            The others are what `load_config` gives, with no restarts after a failure unless
            ``application.total-retries`` is set.
        checkpoint: a folder of its own for the run, which then goes on where it was when it is
            started again with the same folder, however it ended. A run that has finished is not
            started again: its summary is returned at once. Another program goes on from what its
            steps have kept, by their ids; what becomes of it is told on standard error.
        until: "end" of the input, or "caught-up": when all that is there now was read. Windows that
            are open then stay open; with the same ``checkpoint``, which it needs, the next run
            goes on from there with what has come since.
        allow_drop: leave behind what another program has no place for.
        on_progress: called several times a second with how it is.

    Raises:
        ConfigError: the application cannot run, or not with this folder.
        OperatorError: user code raised.
        ApplicationFailed: it failed in another way.
    """
    if until == "caught-up" and checkpoint is None:
        raise ConfigError(NEEDS_FOLDER)
    run_by_loader(app)
    application = stream_here(app, until)
    try:
        with StopSignals() as stop:
            summary = run_until(
                application,
                stop,
                executors=executors,
                processes=processes,
                config=chosen(config, defaults=EMBEDDED, project=project_file()),
                checkpoint=checkpoint,
                allow_drop=allow_drop,
                on_progress=on_progress,
                say=_say,
            )
    except OperatorError as error:
        if not is_of_no_reader(error):
            raise
        give_up_output()
        raise SystemExit(NO_READER) from None
    if stop.number is not None and summary.status != "succeeded":
        _say(f"{summary.name} {summary.outcome}")
        if stop.number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(0)
    return summary


def run_until(
    app: Buildable,
    stop: StopSignals,
    *,
    executors: int,
    config: Config,
    say: Callable[[str], None],
    processes: Processes = 1,
    checkpoint: str | Path | None = None,
    allow_drop: bool = False,
    on_progress: OnProgress | None = None,
    beside: Sequence[Beside] = (),
) -> ApplicationSummary:
    """Run an application until it ends, or a signal has come and it is drained; see `run`."""
    application = app.build()
    if checkpoint is None and (line := cannot_be_resumed(application)) is not None:
        say(line)
    with ExitStack() as stack:
        run = stack.enter_context(
            launched(
                application,
                executors=executors,
                processes=processes,
                config=config,
                say=say,
                checkpoint=checkpoint,
                allow_drop=allow_drop,
            )
        )
        if run.running is None:
            assert run.finished is not None, "it runs, or it has finished"
            return run.finished
        for each in beside:
            stack.enter_context(each(run.running))
        watch = Watch(
            run.running,
            stop,
            say,
            run.on_progress,
            on_progress,
            drain_timeout_ms=config.application.drain_timeout_s * 1000,
            way_out=_AT_ONCE if checkpoint is None else f"{_AT_ONCE}{RESUMED}",
        )
        return watch.to_the_end()


class Watch:
    """Follows a run to its end, and has it drained when a signal has come.

    Args:
        say: tells the user a line, such as what a drain waits for.
        way_out: what the user can do in place of waiting for a drain, for the same.
    """

    def __init__(
        self,
        running: RunningApplication,
        stop: StopSignals,
        say: Callable[[str], None],
        *listeners: OnProgress | None,
        stopping: str = _STOPPING,
        drain_timeout_ms: int | None = None,
        way_out: str = "",
    ) -> None:
        self._running = running
        self._stop = stop
        self._say = say
        self._listeners = [each for each in listeners if each is not None]
        self._drain_timeout_ms = drain_timeout_ms
        self._way_out = way_out
        self._stopping = stopping  # Empty once it was said.
        self._notice: DrainNotice | None = None

    def to_the_end(self) -> ApplicationSummary:
        while True:
            try:
                return self._running.wait(on_progress=self._look)
            except KeyboardInterrupt:
                if self._stop.number is not None:
                    with suppress(SubmitRefused):  # It has just ended.
                        self._running.shutdown()
                    raise
                self._stop.ask(signal.SIGINT)  # A handler of the program raised it.

    def _look(self, summary: ApplicationSummary) -> None:
        if self._notice is not None:
            if line := self._notice.line(summary, monotonic_ms()):
                self._say(line)
        elif self._stop.number is not None:
            if self._stopping:
                self._say(self._stopping)
                self._stopping = ""
            with suppress(SubmitRefused):  # It is still being started, or has just ended.
                self._running.drain()
                self._notice = DrainNotice(
                    began_ms=monotonic_ms(),
                    timeout_ms=self._drain_timeout_ms,
                    way_out=self._way_out,
                )
        for each in self._listeners:
            each(summary)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def run_for_a_look(
    application: StreamApplication, *, is_enough: Callable[[], bool], timeout_s: float | None
) -> ApplicationSummary:
    config = load(defaults=EMBEDDED, project=project_file())
    with launched(application, executors=1, config=config, say=lambda _: None, is_look=True) as run:
        running = run.running
        assert running is not None, "without a folder nothing has finished before"

        def look(summary: ApplicationSummary) -> None:
            if is_enough() and summary.status == "active":
                with suppress(SubmitRefused):  # It has just ended.
                    running.shutdown()

        return running.wait(timeout_s, on_progress=look)
