"""Loads a program here that is to run elsewhere, to find its mistakes before it is sent."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from gearpy.cluster.programs.artifacts import ApplicationLoader, Program
from gearpy.cluster.programs.targets import split_path
from gearpy.cluster.programs.upload import Uploadable
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import AppId, ExecutorId
from gearpy.storage.archives import ArtifactLimits, unpack

_NOBODY: Final = (AppId(0), ExecutorId(0))


def loaded_here(program: Uploadable, target: str, config: Config) -> Program:
    """Load a packed program in the same way as the cluster, so that mistakes show at once.

    A package that is missing here may be there, and the other way round, so only the cluster checks
    requirements.

    Raises:
        ConfigError: there is no application, or it cannot run.
        OperatorError: the program itself raised.
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
        if artifact.module:
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
