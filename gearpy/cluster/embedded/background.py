"""Runs applications in this process while the program, or the notebook, goes on."""

import atexit
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

from msgspec.structs import replace

from gearpy.clocks import wall_ms
from gearpy.cluster.client.client import ClusterClient, RunningApplication, StateAt
from gearpy.cluster.client.looking import look_at
from gearpy.cluster.embedded.launch import Processes, launched
from gearpy.cluster.embedded.run import EMBEDDED, NEEDS_FOLDER, RESUMED, Watch
from gearpy.cluster.embedded.signals import StopSignals
from gearpy.cluster.host.interruptible import wait_interruptibly
from gearpy.cluster.programs.artifacts import run_by_loader, stream_here
from gearpy.config.load import Overrides, chosen, project_file
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, GearpyError, SubmitRefused, ends_at_the_caller
from gearpy.ids import AppId
from gearpy.messages.summaries import ApplicationSummary, Until
from gearpy.task.api.application import Buildable
from gearpy.views.app import app_view
from gearpy.views.look import Look, Looks
from gearpy.views.model import AppView
from gearpy.views.notebook import app_html

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

#: So long may a run drain that another one takes the place of.
_REPLACED_S: Final = 10.0
#: So long may all runs drain when the program ends: Jupyter gives a kernel about 5 s.
_AT_EXIT_S: Final = 3.0
_KILLED_S: Final = 2.0  # To end what was cut short.
_REFRESH_S: Final = 1.0
_AT_ONCE: Final = "run.kill() ends it at once"

#: The runs that have not ended, by their names.
_runs: Final[dict[str, "BackgroundRun"]] = {}
_lock: Final = threading.Lock()


@ends_at_the_caller
def start(
    app: Buildable | Callable[..., Buildable],
    *,
    executors: int = 1,
    processes: Processes = 1,
    config: Config | Overrides | None = None,
    checkpoint: str | Path | None = None,
    until: Until = "end",
    allow_drop: bool = False,
) -> "BackgroundRun":
    """Start an application in this process and return at once; the run goes on beside the program.

    A run of the same name that this process has started before is stopped first, so that a cell of
    a notebook can be run again. Runs that go on when the program ends are drained, for a few
    seconds at most.

    Args:
        app: an application, or a function that makes one.
        executors: how many executors share its tasks, all in this process.
        processes: how many processes share its tasks; see `run`.
        config: the configuration, or settings of it; see `run`.
        checkpoint: a folder of its own for the run, which then can be resumed; see `run`.
        until: where it ends; see `run`.
        allow_drop: leave behind what another program has no place for; see `run`.

    Raises:
        ConfigError: the application cannot run, or not with this folder.

    Example:
        >>> import gearpy as gp
        >>> app, results = gp.StreamApp("squares"), list[int]()
        >>> app.read(gp.collection([1, 2, 3])).map(lambda n: n * n).write(gp.to_list(results))
        >>> run = gp.start(app)
        >>> run.wait().status
        'succeeded'
        >>> results
        [1, 4, 9]
    """
    if until == "caught-up" and checkpoint is None:
        raise ConfigError(NEEDS_FOLDER)
    run_by_loader(app)
    application = stream_here(app, until)

    name = application.name
    with _lock:
        before = _runs.get(name)
    if before is not None:
        _say(f"{name} was started before: that run is stopped first")
        _end([before], _REPLACED_S)

    config = chosen(config, defaults=EMBEDDED, project=project_file())
    stack = ExitStack()
    with ExitStack() as undo:
        undo.push(stack)
        given = stack.enter_context(
            launched(
                application,
                executors=executors,
                processes=processes,
                config=config,
                say=_say,
                checkpoint=checkpoint,
                allow_drop=allow_drop,
            )
        )
        undo.pop_all()
    if given.running is None:
        assert given.finished is not None, "it runs, or it has finished"
        stack.close()
        return BackgroundRun(application.name, None, given.finished)
    run = BackgroundRun(application.name, given.running, given.running.summary(), checkpoint)
    with _lock:
        _runs[application.name] = run
    run._follow(  # noqa: SLF001 - a class and its one maker
        given.on_progress,
        stack.close,
        drain_timeout_ms=config.application.drain_timeout_s * 1000,
        way_out=_AT_ONCE if checkpoint is None else f"{_AT_ONCE}{RESUMED}",
    )
    return run


class BackgroundRun:
    """An application that runs in this process beside the program; made by `start`.

    As a context manager it is stopped at the end of the context, or killed after an error.

    Runs on: any thread.

    Args:
        name: of the application.
        running: the application; None if it has finished before.
        summary: how it is.
        checkpoint: the folder from which it can be resumed, if it has one.
    """

    def __init__(
        self,
        name: str,
        running: RunningApplication | None,
        summary: ApplicationSummary,
        checkpoint: str | Path | None = None,
    ) -> None:
        self.name = name
        self._running = running
        self._checkpoint = checkpoint
        self._summary = summary
        self._looks = Looks()
        self._error: GearpyError | None = None
        self._stop = StopSignals(on_second=lambda _: None)  # Never entered: it is only asked.
        self._ended = threading.Event()
        self._looking = threading.Lock()
        if running is None:
            self._ended.set()

    # -- questions -------------------------------------------------------------------------

    @property
    def summary(self) -> ApplicationSummary:
        """The state of the run: status, counts, cause of a failure."""
        if self._running is not None and not self._ended.is_set():
            with suppress(GearpyError):  # It has just ended.
                self._summary = self._running.summary()
        return self._summary

    @property
    def running(self) -> RunningApplication:
        """The application as its cluster knows it: to be changed, scaled, or given a savepoint.

        Raises:
            SubmitRefused: it had finished before it was started.
        """
        if self._running is None:
            raise SubmitRefused(f"{self.name} has finished before, so nothing was started")
        return self._running

    @property
    def client(self) -> ClusterClient:
        """A client of the cluster that is only there for this run; of no use when it has ended.

        Raises:
            SubmitRefused: it had finished before it was started.
        """
        return self.running.client

    @property
    def app_id(self) -> AppId:
        """Its number in that cluster."""
        return self._summary.app_id

    def metrics(self) -> AppView:
        """Return how it is, with rates, processors, executors, epochs and why it is so.

        When it has ended, as it was at its end.
        """
        if not self._ended.is_set():
            self._look()
        newest = self._looks.newest or Look(at_ms=wall_ms(), summary=self._summary)
        if self._ended.is_set():
            ended = replace(self._summary, app_master="/")  # Its cluster has ended with it.
            view = app_view(replace(newest, summary=ended))
            if ended.status == "succeeded":
                return view
            advice = "the next one begins anew; with checkpoint=FOLDER it goes on"
            if self._checkpoint is not None:
                advice = (
                    f"gp.start with the same checkpoint= goes on from epoch {ended.progress.epoch}"
                )
            return replace(view, headline=replace(view.headline, advice=advice))
        return app_view(newest, self._looks.before)

    def state(
        self, step: str, state: str = "", *, epoch: int | None = None, at: StateAt = "epoch"
    ) -> "pa.Table":
        """Return the state of a step, as an Arrow table; see `ClusterClient.state`.

        Raises:
            SubmitRefused: it has ended, or has no complete epoch yet.
        """
        return self.client.state(self.app_id, step, state, epoch=epoch, at=at)

    if not TYPE_CHECKING:  # A checker would take any name for one that is there.

        def __getattr__(self, name: str) -> NoReturn:
            is_there = not name.startswith("_") and hasattr(RunningApplication, name)
            where = f": write run.running.{name}" if is_there else ""
            raise AttributeError(f"a run has no {name!r}{where}", name=name, obj=None)

    def __repr__(self) -> str:
        return f"<run {repr(self.summary).removeprefix('<')}"

    def _repr_html_(self) -> str:
        return app_html(self.metrics())

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display  # noqa: PLC0415 - who calls it has IPython

        def html() -> object:
            return HTML(self._repr_html_())  # type: ignore[no-untyped-call]

        shown = display(html(), display_id=True)  # type: ignore[no-untyped-call]

        def refresh() -> None:
            while not self._ended.wait(_REFRESH_S):
                shown.update(html())
            shown.update(html())

        threading.Thread(target=refresh, name=f"gearpy-cell-{self.name}", daemon=True).start()

    # -- to its end ------------------------------------------------------------------------

    @ends_at_the_caller
    def wait(self, timeout_s: float | None = None) -> ApplicationSummary:
        """Wait for its end; return at the time-out, too, with the summary of that time.

        Args:
            timeout_s: how many seconds to wait; without it, for as long as it takes.

        Raises:
            OperatorError: user code raised.
            ApplicationFailed: it failed in another way.
        """
        wait_interruptibly(self._ended, timeout_s)
        if self._error is not None:
            raise self._error
        return self.summary

    @ends_at_the_caller
    def stop(self, timeout_s: float | None = None) -> ApplicationSummary:
        """Drain the run: sources stop, sinks commit all that was read; return when it has ended.

        Does nothing to a run that has ended. What a slow one waits for is told on standard error.

        Args:
            timeout_s: how many seconds that may take; then it goes on in the background.

        Raises:
            OperatorError: user code raised.
            ApplicationFailed: it failed in another way.
        """
        self._stop.ask(signal.SIGTERM)
        return self.wait(timeout_s)

    def kill(self) -> None:
        """End the run at once: records read since its newest epoch are not shown."""
        if self._running is not None:
            with suppress(GearpyError):  # It has just ended, and its cluster, too.
                self._running.shutdown()
        self._ended.wait(_KILLED_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.stop()
        else:
            self.kill()

    # -- its thread ------------------------------------------------------------------------

    def _follow(
        self,
        on_progress: Callable[[ApplicationSummary], None],
        close: Callable[[], None],
        **draining: Any,
    ) -> None:
        """Follow it to its end in a thread, then end its cluster; see `Watch` for a drain."""
        running = self._running
        assert running is not None, "there is something to follow"
        watch = Watch(running, self._stop, _say, on_progress, self._note, stopping="", **draining)

        def to_the_end() -> None:
            try:
                self._summary = watch.to_the_end()
            except GearpyError as error:
                self._error = error
            finally:
                with _lock:
                    if _runs.get(self.name) is self:
                        del _runs[self.name]
                self._look()  # The last one: its cluster ends with it.
                close()
                self._ended.set()

        threading.Thread(target=to_the_end, name=f"gearpy-run-{self.name}", daemon=True).start()

    def _note(self, summary: ApplicationSummary) -> None:
        self._summary = summary

    def _look(self) -> None:
        with suppress(GearpyError), self._looking:
            look = look_at(self.client, self.app_id)
            if look.detail is not None:
                self._looks.add(look)


@atexit.register
def _end_all() -> None:
    with _lock:
        left = [*_runs.values()]
    if left:
        _say(f"the program ends, so it stops {', '.join(each.name for each in left)}")
        _end(left, _AT_EXIT_S)


def _end(runs: list[BackgroundRun], within_s: float) -> None:
    deadline = time.monotonic() + within_s
    for run in runs:
        run._stop.ask(signal.SIGTERM)  # noqa: SLF001 - a class and its one maker
    for run in runs:
        with suppress(GearpyError):
            run.wait(max(0.0, deadline - time.monotonic()))
        if not run._ended.is_set():  # noqa: SLF001 - the same
            _say(f"{run.name} did not end within {within_s:g} s, so it is ended at once")
            run.kill()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
