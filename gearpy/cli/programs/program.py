"""Loads the program that ``FILE[:ATTR]`` or ``MODULE[:ATTR]`` names."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from msgspec.structs import replace

from gearpy.cli.terminal.extras import setting_up
from gearpy.cluster.programs.artifacts import load, split_target, stream_of
from gearpy.errors import ConfigError
from gearpy.messages.client import Artifact
from gearpy.messages.summaries import Until
from gearpy.task.api.application import StreamApplication
from gearpy.task.api.failure import operator_error


def load_program(
    target: str, args: Sequence[str], *, until: Until = "end"
) -> tuple[Artifact, StreamApplication]:
    """Return the program as others can find it, and the application in it."""
    path, attr = split_target(target)
    name = str(path)
    given = Artifact(kind="file", location=name, attr=attr, args=tuple(args), until=until)
    if not path.is_file() and all(part.isidentifier() for part in name.split(".")):
        if (file := _file_of_module(name)) is not None:
            given = replace(given, location=str(file), module=name)
        elif not name.endswith(".py"):
            raise ConfigError(f"no such file or module: {name}")
    with program_arguments(given), setting_up():
        application = stream_of(load(given), "this command")
    return replace(given, location=str(Path(given.location).resolve())), application


@contextmanager
def program_arguments(program: Artifact) -> Iterator[None]:
    """Let ``sys.argv`` be that of the program, as if Python had started it."""
    before, sys.argv = sys.argv, [program.location, *program.args]
    try:
        yield
    finally:
        sys.argv = before


def _file_of_module(name: str) -> Path | None:
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        spec = find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is not None and name.startswith(error.name):
            return None  # A package above it is not there.
        raise operator_error(f"import {name}", error) from error
    except Exception as error:
        raise operator_error(f"import {name}", error) from error
    finally:
        sys.path.remove(here)
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None
