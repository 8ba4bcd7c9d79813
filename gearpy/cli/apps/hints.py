"""What may not be meant in a submission, although nothing of it is wrong."""

import glob
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from gearpy.config.load import as_overrides
from gearpy.config.schema import Config
from gearpy.task.api.application import StreamApplication

__all__ = ["hints"]

#: What sources and sinks of files call themselves; these names are in those of processors.
_FILES: Final = re.compile(
    r"\b(?:files|text_file|jsonl_file|jsonl_folder|parquet_folder)\(([^()]+)\)"
)
#: Keys that the operator of a worker decides.
_OF_WORKERS: Final = (
    "executor.memory-max-bytes",
    "executor.open-files-max",
)
_SHOWN_MAX: Final = 3


def hints(application: StreamApplication, args: Sequence[str], config: Config) -> Iterator[str]:
    """Return a line for each thing that often surprises.

    Args:
        application: as it was built here.
        args: what its ``main`` was given.
        config: as it was configured here.
    """
    if paths := list(dict.fromkeys([*_files_here(args), *_relative_files(application)])):
        shown = ", ".join(paths[:_SHOWN_MAX]) + (", ..." if len(paths) > _SHOWN_MAX else "")
        yield (
            f"a cluster may run programs in another folder: where {shown} is a file, give its "
            "absolute path"
        )
    if keys := [key for key in as_overrides(config) if key in _OF_WORKERS]:
        yield f"{', '.join(keys)} counts where workers are started, not here"


def _files_here(args: Sequence[str]) -> Iterator[str]:
    """Yield what names a file of the working directory: as it is, as a pattern, as --option=it."""
    for arg in args:
        name = arg.partition("=")[2] if arg.startswith("-") else arg
        if name and not Path(name).is_absolute() and _is_there(name):
            yield name


def _is_there(name: str) -> bool:
    try:
        return Path(name).exists() or bool(glob.has_magic(name) and glob.glob(name))  # noqa: PTH207
    except (OSError, ValueError):  # Too long, or not a path at all.
        return False


def _relative_files(application: StreamApplication) -> Iterator[str]:
    for processor in application.processors.values():
        for match in _FILES.finditer(processor.name):
            yield from (each for each in match[1].split(", ") if not Path(each).is_absolute())
