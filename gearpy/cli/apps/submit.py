"""Submits an application to a cluster."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from gearpy.cli.apps.connect import connected
from gearpy.cli.apps.hints import hints
from gearpy.cli.terminal.output import print_guarantee, print_hints, print_json
from gearpy.cli.terminal.settings import application_overrides
from gearpy.cli.terminal.text import printable
from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.programs.artifacts import ApplicationLoader
from gearpy.cluster.programs.targets import split_path
from gearpy.cluster.programs.upload import Progress, Uploadable, packed, send
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import AppId, ExecutorId
from gearpy.storage.archives import ArtifactLimits, unpack
from gearpy.task.api.application import StreamApplication
from gearpy.task.stages.guarantees import guarantee_lines, guarantees_of

__all__ = ["submit_application"]

#: Smaller programs are there before anyone wonders.
_QUIET_BYTES: Final = 4 * 1024 * 1024
_NOBODY: Final = (AppId(0), ExecutorId(0))


def submit_application(
    target: str,
    args: Sequence[str],
    *,
    name: str | None,
    name_prefix: str,
    config: Config,
    executors: int | None,
    check_requirements: bool,
    from_checkpoint: str | None,
    drops_state: bool,
    as_json: bool,
) -> None:
    """Pack it, load here what was packed, upload it, start it there, print its id.

    Raises:
        GearpyError: it cannot be loaded, there is no cluster, or the cluster refuses it; there is
            no such checkpoint, or its program has no place for what that holds.
    """
    with packed(target, config, args=args, check_requirements=check_requirements) as program:
        application = _loaded(program, target, config)
        if not as_json:
            print_hints(hints(application, args, config))
        with connected(config) as client:
            resume_from = _resume_point(from_checkpoint, config, client, drops_state=drops_state)
            if resume_from:
                _tell_moves(resume_from, application, config, as_json=as_json)
            send(client.ask, program, on_progress=_on_progress(program, as_json=as_json))
            running = client.submit(
                f"{name_prefix}{name or application.name}",
                program.artifact,
                executors=executors or config.application.executors,
                config=application_overrides(config),
                resume_from=resume_from,
            )
    if as_json:
        print_json({"app_id": running.app_id, "name": running.name})
    else:
        print_guarantee(guarantee_lines(guarantees_of(application)))
        print(f"application {running.app_id} ({running.name}) submitted")


def _loaded(program: Uploadable, target: str, config: Config) -> StreamApplication:
    """Load what the cluster will load, as it will, so that mistakes show at once.

    What is not installed here may be there, and the other way round, so only the cluster checks
    requirements.
    """
    artifact = replace(program.artifact, check_requirements=False)
    loader = ApplicationLoader(own_process=True)
    with tempfile.TemporaryDirectory(prefix="gearpy-check-") as parent:
        folder = Path(parent).resolve() / "program"
        limits = ArtifactLimits.of(config.artifact)
        with _told_as_given(program, target, folder):
            unpack(program.path, folder, artifact.filename, limits)
            try:
                return loader.load(_NOBODY[0], artifact, _NOBODY[1], folder)
            finally:
                loader.release(*_NOBODY)


@contextmanager
def _told_as_given(program: Uploadable, target: str, folder: Path) -> Iterator[None]:
    """Tell mistakes with the paths that the user knows."""
    path, artifact = split_path(target).path, program.artifact
    place = f"{path}" if path.suffix == ".py" else f"{path}:{artifact.module}"

    def told(text: str) -> str:
        text = text.replace(f"{artifact.filename}:{artifact.module}", place)
        return text.replace(str(folder), str(program.origin))

    try:
        yield
    except ConfigError as error:
        raise ConfigError(*map(told, error.mistakes)) from error
    except OperatorError as error:
        error.cause = told(error.cause)
        error.source, error.traceback = told(error.source), told(error.traceback)
        raise


def _resume_point(
    text: str | None, config: Config, client: ClusterClient, *, drops_state: bool
) -> str:
    if text is None:
        if drops_state:
            raise ConfigError("--drop-state is for --from-checkpoint: give both")
        return ""
    from gearpy.cluster.checkpoints.resuming import resume_point

    return resume_point(
        text, config=config, cluster_id=client.cluster().cluster_id, drops_state=drops_state
    )


def _tell_moves(
    point: str, application: StreamApplication, config: Config, *, as_json: bool
) -> None:
    """Say what becomes of the state of steps that do not simply go on."""
    from gearpy.cluster.checkpoints.resuming import resume_moves

    moves = resume_moves(point, application.dag, config=config)
    told = [
        f"state: {each}"
        for each in moves
        if each.is_lost or each.is_spread_anew or (each.fate == "moved" and each.keeps_something)
    ]
    if not as_json:
        for line in told:
            print(printable(line), file=sys.stderr)


def _on_progress(program: Uploadable, *, as_json: bool) -> Progress | None:
    if as_json or program.size < _QUIET_BYTES or not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\ruploaded {done * 100 // total} %", end=end, file=sys.stderr, flush=True)

    return show
