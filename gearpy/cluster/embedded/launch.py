"""Starts an application on a cluster of its own in this process, and takes that away again."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.client.client import RunningApplication
from gearpy.cluster.embedded.registry import registered
from gearpy.cluster.embedded.run_folder import RunFolder, new_run
from gearpy.cluster.embedded.run_quarantine import OwnQuarantine, tell_quarantine
from gearpy.cluster.embedded.source_warnings import show_source_warnings
from gearpy.cluster.programs.artifacts import embed, forget, spread
from gearpy.cluster.worker.program_forks import ProgramForks
from gearpy.config.schema import ApplicationConfig, Config
from gearpy.connectors.folders.writer import PartSink
from gearpy.errors import ConfigError, SubmitRefused
from gearpy.messages.client import Artifact, UpdateApplication
from gearpy.messages.summaries import ApplicationSummary
from gearpy.task.api.application import StreamApplication

#: Slots of the one worker: an application alone on a cluster always fits.
_SLOTS: Final = 1_000_000

OnProgress = Callable[[ApplicationSummary], None]
Processes: TypeAlias = int | Literal["auto"]


class EmbeddedRun(Struct, frozen=True, kw_only=True):
    """A run that was started, or the summary of one that has finished before.

    ``on_progress`` is to be told how it is, several times a second and at its end.
    """

    running: RunningApplication | None = None
    finished: ApplicationSummary | None = None
    on_progress: OnProgress = lambda _: None


@contextmanager
def launched(
    application: StreamApplication,
    *,
    executors: int,
    config: Config,
    say: Callable[[str], None],
    checkpoint: str | Path | None = None,
    processes: Processes = 1,
    allow_drop: bool = False,
    is_look: bool = False,
) -> Iterator[EmbeddedRun]:
    """Start an application; at the end of the context it is cut short if it runs.

    The context may be left by another thread than the one that has entered it. Of a mere look
    nothing is kept.
    """
    processes = number_of(processes, executors)
    show_source_warnings()
    with ExitStack() as stack:
        embedded = embed(application)
        stack.callback(forget, embedded)
        forks = folder = None
        if processes > 1:
            config, executors = _on_processes(config), processes
            _tell_of_few_tasks(application.spread(processes), processes, say)
            forks = stack.enter_context(ProgramForks()).server  # Before there are threads.
        begins_on, launches, run = processes, 0, new_run()
        if checkpoint is not None:
            folder = stack.enter_context(
                RunFolder(checkpoint, application, processes, allows_drop=allow_drop, say=say)
            )
            if (finished := folder.finished) is not None:
                say(_nothing_to_resume(folder))
                yield EmbeddedRun(finished=finished)
                return
            begins_on, launches, run = folder.begins_on, folder.launches, folder.prefix
        stored = None if folder is None else folder.checkpoints
        cluster = stack.enter_context(
            LocalCluster(config, slots=_SLOTS, checkpoints=stored, forks=forks)
        )
        begins = application.spread(begins_on)
        resume_from = "" if folder is None else folder.resume_from
        if not (is_look or launches or resume_from):
            _tell_of_earlier_output(begins, say)
        if folder is None:
            cluster.note_pending(run, begins)
        running = stack.enter_context(
            cluster.submitted(
                begins,
                executors=executors,
                checkpoints=run,
                launches=launches,
                resume_from=resume_from,
                artifact=spread(embedded, begins_on),
            )
        )
        if is_look:
            yield EmbeddedRun(running=running)
            return
        path, runs = None if folder is None else folder.path, config.checkpoint.runs_folder
        stack.enter_context(registered(running, cluster.ask, path, runs))
        if folder is not None:
            stack.callback(tell_quarantine, folder.path, runs, say)
            spreads = None
            if begins_on != processes:
                spreads = _Spread(running, spread(embedded, processes), processes, say)

            def on_progress(summary: ApplicationSummary) -> None:
                folder.on_progress(summary)
                if spreads is not None:
                    spreads.on_progress(summary)

            yield EmbeddedRun(running=running, on_progress=on_progress)
        else:
            aside = OwnQuarantine(running, runs)
            stack.callback(aside.end, say)
            yield EmbeddedRun(running=running, on_progress=aside.on_progress)


class _Spread:
    """Gives a run that was resumed the tasks for another number of processes, once it is active.

    It first goes on with those that it had: they commit what was complete when it ended.
    """

    def __init__(
        self,
        running: RunningApplication,
        artifact: Artifact,
        processes: int,
        say: Callable[[str], None],
    ) -> None:
        self._running = running
        self._processes = processes
        self._say = say
        self._message: UpdateApplication | None = UpdateApplication(
            app_id=running.app_id,
            artifact=artifact,
            executors=processes,
            change=f"processes {processes}",
        )

    def on_progress(self, summary: ApplicationSummary) -> None:
        if self._message is None or summary.status != "active":
            return
        with suppress(SubmitRefused):  # Not yet; or it ends just now.
            planned = self._running.client.change(self._message)
            self._message = None
            if planned.refusal:
                self._say(
                    f"its tasks stay as they were, and not as for {self._processes} processes: "
                    f"{planned.refusal}"
                )


def number_of(processes: Processes, executors: int) -> int:
    """Return how many processes a run has; "auto" has one for each core that this one may use."""
    if processes == "auto":
        linux = hasattr(os, "sched_getaffinity")
        processes = len(os.sched_getaffinity(0)) if linux else os.cpu_count() or 1
    if type(processes) is not int or processes < 1:
        raise ConfigError(f'processes is {processes!r}: give a whole number from 1, or "auto"')
    if processes > 1 and executors > 1:
        raise ConfigError(
            f"executors is {executors} and processes {processes}: give one of them, each process "
            "is an executor"
        )
    return processes


def _on_processes(config: Config) -> Config:
    """Return the configuration of a run on several processes.

    They are on this machine, and come and go with the run. A process that is lost is replaced; by
    default an error of the program still ends the run at once.
    """
    application = config.application
    if application.retries == 0:
        application = replace(
            application, retries=ApplicationConfig().retries, retries_errors="off"
        )
    return replace(
        config,
        application=application,
        cluster=replace(config.cluster, masters=("127.0.0.1:0",)),
        executor=replace(config.executor, python_options=(), environment=()),
        transport=replace(config.transport, tls="off"),
        hostname="127.0.0.1",
        listen_host="",
    )


def _nothing_to_resume(folder: RunFolder) -> str:
    return (
        f"{folder.name} has finished, there is nothing to resume; to run it once more take "
        f"another name, or remove {folder.path}"
    )


def _tell_of_earlier_output(application: StreamApplication, say: Callable[[str], None]) -> None:
    sinks = [each.sink for each in application.processors.values()]
    folders = [each.earlier_output for each in sinks if isinstance(each, PartSink)]
    for place in dict.fromkeys(filter(None, folders)):
        say(
            f"{place} has results of an earlier run, and this one adds its own: overwrite=True "
            "removes those first, --resume NAME goes on with a run"
        )


def _tell_of_few_tasks(
    application: StreamApplication, processes: int, say: Callable[[str], None]
) -> None:
    specs = application.dag.processors.values()
    most = max((each.parallelism for each in specs if not each.hosts), default=0)
    if most < processes:
        say(
            f"no step has a task for each of the {processes} processes, but at most {most}: more "
            "parts of the source, .key_by(...) or .repartition(n) give it more"
        )
