"""Starts an application on a cluster of its own in this process, and takes that away again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.client.client import RunningApplication
from gearpy.cluster.embedded.run_folder import RunFolder, new_run
from gearpy.cluster.embedded.run_quarantine import OwnQuarantine, tell_quarantine
from gearpy.cluster.embedded.source_warnings import show_source_warnings
from gearpy.config.schema import Config
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
    is_look: bool = False,
) -> Iterator[EmbeddedRun]:
    """Start an application; at the end of the context it is cut short if it runs.

    The context may be left by another thread than the one that has entered it. Of a mere look
    nothing is kept.
    """
    show_source_warnings()
    if checkpoint is None:
        with LocalCluster(config, slots=_SLOTS) as cluster:
            run = new_run()
            cluster.note_pending(run, application)
            with cluster.submitted(application, executors=executors, checkpoints=run) as running:
                if is_look:
                    yield EmbeddedRun(running=running)
                    return
                aside = OwnQuarantine(running, config.checkpoint.runs_folder)
                try:
                    yield EmbeddedRun(running=running, on_progress=aside.on_progress)
                finally:
                    aside.end(say)
        return
    with RunFolder(checkpoint, application) as folder:
        if (finished := folder.finished) is not None:
            say(
                f"{finished.name} has finished, there is nothing to resume; to run it once more "
                f"take another name, or remove {folder.path}"
            )
            yield EmbeddedRun(finished=finished)
            return
        with (
            LocalCluster(config, slots=_SLOTS, checkpoints=folder.checkpoints) as cluster,
            cluster.submitted(
                application,
                executors=executors,
                checkpoints=folder.prefix,
                launches=folder.launches,
            ) as running,
        ):
            try:
                yield EmbeddedRun(running=running, on_progress=folder.on_progress)
            finally:
                tell_quarantine(folder.path, config.checkpoint.runs_folder, say)
