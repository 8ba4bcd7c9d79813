"""Loads the program that ``FILE[:ATTR]`` names."""

from collections.abc import Sequence
from dataclasses import replace

from gearpy.cluster.artifacts import load, split_target
from gearpy.messages.cluster import Artifact
from gearpy.task.application import StreamApplication

__all__ = ["load_program"]


def load_program(target: str, args: Sequence[str]) -> tuple[Artifact, StreamApplication]:
    """Return the program as others can find it, and the application in it.

    Raises:
        ConfigError: there is none, or it cannot run.
        OperatorError: the program itself raised.
    """
    path, attr = split_target(target)
    # Mistakes are told with the path as it was given.
    given = Artifact(kind="file", location=str(path), attr=attr, args=tuple(args))
    application = load(given)
    return replace(given, location=str(path.resolve())), application
