"""Starts an application on a cluster of its own in this process, and takes that away again."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.client.client import RunningApplication
from gearpy.cluster.embedded.run_folder import RunFolder, new_run
from gearpy.cluster.embedded.run_quarantine import OwnQuarantine, tell_quarantine
from gearpy.cluster.embedded.source_warnings import show_source_warnings
from gearpy.cluster.programs.artifacts import embed, forget, spread
from gearpy.cluster.worker.program_forks import ProgramForks
from gearpy.config.schema import ApplicationConfig, Config
from gearpy.errors import ConfigError
from gearpy.messages.summaries import ApplicationSummary
from gearpy.task.api.application import StreamApplication

#: Slots of the one worker: an application alone on a cluster always fits.
_SLOTS: Final = 1_000_000

OnProgress = Callable[[ApplicationSummary], None]


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
    processes: int = 1,
    is_look: bool = False,
) -> Iterator[EmbeddedRun]:
    """Start an application; at the end of the context it is cut short if it runs.

    The context may be left by another thread than the one that has entered it. Of a mere look
    nothing is kept.
    """
    check_processes(processes, executors)
    show_source_warnings()
    with ExitStack() as stack:
        artifact = embed(application)
        stack.callback(forget, artifact)
        forks = None
        if processes > 1:
            config, executors = _on_processes(config), processes
            application, artifact = application.spread(processes), spread(artifact, processes)
            _tell_of_few_tasks(application, processes, say)
            forks = stack.enter_context(ProgramForks()).server  # Before there are threads.
        folder = None
        if checkpoint is not None:
            folder = stack.enter_context(RunFolder(checkpoint, application))
            if (finished := folder.finished) is not None:
                say(
                    f"{finished.name} has finished, there is nothing to resume; to run it once "
                    f"more take another name, or remove {folder.path}"
                )
                yield EmbeddedRun(finished=finished)
                return
        stored = None if folder is None else folder.checkpoints
        cluster = stack.enter_context(
            LocalCluster(config, slots=_SLOTS, checkpoints=stored, forks=forks)
        )
        run = new_run() if folder is None else folder.prefix
        if folder is None:
            cluster.note_pending(run, application)
        running = stack.enter_context(
            cluster.submitted(
                application,
                executors=executors,
                checkpoints=run,
                launches=0 if folder is None else folder.launches,
                artifact=artifact,
            )
        )
        if is_look:
            yield EmbeddedRun(running=running)
        elif folder is not None:
            stack.callback(tell_quarantine, folder.path, config.checkpoint.runs_folder, say)
            yield EmbeddedRun(running=running, on_progress=folder.on_progress)
        else:
            aside = OwnQuarantine(running, config.checkpoint.runs_folder)
            stack.callback(aside.end, say)
            yield EmbeddedRun(running=running, on_progress=aside.on_progress)


def check_processes(processes: int, executors: int) -> None:
    if type(processes) is not int or processes < 1:
        raise ConfigError(f"processes is {processes!r}, must be a whole number from 1")
    if processes > 1 and executors > 1:
        raise ConfigError(
            f"executors is {executors} and processes {processes}: give one of them, each process "
            "is an executor"
        )


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


def _tell_of_few_tasks(
    application: StreamApplication, processes: int, say: Callable[[str], None]
) -> None:
    dag = application.dag
    most = max(each.parallelism for each in dag.processors.values())
    if most < processes:
        say(
            f"of {processes} processes no more than {most} have work: no step has more tasks. More "
            "parts of the source, .key_by(...) or .repartition(n) give it more"
        )
