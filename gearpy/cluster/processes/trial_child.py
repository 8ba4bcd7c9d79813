"""The process that loads a program to see what it is: whatever the program does, it does it here.

`trial` starts it, tells it on standard input what to load, and reads its answer from a file. It is
a fork of a warm process, or ``python -m gearpy.cluster.processes.trial_child``.
"""

import faulthandler
import os
import resource
import sys
from collections.abc import Callable
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Final, NoReturn

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gearpy.cluster.processes.lifeline import hold_lifeline
from gearpy.cluster.processes.oom import prefer_to_kill
from gearpy.cluster.processes.spec import read_spec
from gearpy.cluster.programs.artifacts import (
    ApplicationLoader,
    ArgumentsRefused,
    Program,
    loaded_as,
)
from gearpy.cluster.programs.outline import (
    OutlineDifferences,
    ProgramOutline,
    differences,
    outline_of,
)
from gearpy.config.load import from_overrides
from gearpy.errors import ConfigError, GearpyError
from gearpy.ids import AppId, ExecutorId
from gearpy.messages.client import Artifact
from gearpy.messages.summaries import ErrorCard
from gearpy.task.api.application import StreamApplication
from gearpy.task.api.failure import USER_ERRORS, card_of, operator_error

#: Said before the program is loaded: the deadline is that of the program, not of this process.
BEGUN: Final = b"gearpy loads the program\n"

_STDIN, _STDOUT, _STDERR = range(3)
_NICE: Final = 5  # Programs that run come first.
_MOST_LIKELY: Final = 1000  # To be killed for want of memory, before all that runs.
_NOBODY: Final = (AppId(0), ExecutorId(0))


class TrialSpec(Struct, frozen=True, kw_only=True):
    """The program to load, and where the answer is to be.

    ``folder`` is where it was unpacked, empty if it was not uploaded; ``compared`` the program
    that it may take the place of. ``config`` is that of the application; ``path`` has folders that
    modules are imported from where it is asked for, such as those that a notebook has added.
    """

    artifact: Artifact
    folder: str
    answer: str
    config: dict[str, str]
    memory_max_bytes: int
    path: tuple[str, ...]
    compared: Artifact | None = None
    compared_folder: str = ""


class TrialAnswer(Struct, frozen=True, kw_only=True):
    """The outline of a program, or why it cannot be loaded: ``mistakes``, or an ``error`` of it."""

    outline: ProgramOutline | None = None
    differences: OutlineDifferences | None = None
    mistakes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_of_arguments: bool = False
    error: ErrorCard | None = None


def main() -> NoReturn:
    try:
        spec = read_spec(partial(os.read, _STDIN), TrialSpec)
    except EOFError:
        os._exit(1)  # Nobody waits any more.
    hold_lifeline()
    end = os._exit
    os.write(_STDOUT, BEGUN)
    memory_max_bytes = spec.memory_max_bytes
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (memory_max_bytes, memory_max_bytes))
    prefer_to_kill(_MOST_LIKELY)
    os.nice(_NICE)
    os.dup2(_STDERR, _STDOUT)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")

    faulthandler.enable(all_threads=False)
    own = os.getpid()

    def told_end(status: int) -> NoReturn:
        if os.getpid() == own:
            faulthandler.dump_traceback(all_threads=False)
        end(status)

    os._exit = told_end
    sys.path += [each for each in spec.path if each not in sys.path]

    def tell(answer: TrialAnswer) -> None:
        path = Path(spec.answer)
        begun = path.with_suffix(".begun")
        begun.write_bytes(msgspec.msgpack.encode(answer))
        begun.replace(path)

    _try(spec, tell)
    end(0)


def _try(spec: TrialSpec, tell: Callable[[TrialAnswer], None]) -> None:
    loader, config = ApplicationLoader(own_process=True), from_overrides(spec.config)

    def outlined(artifact: Artifact, folder: str) -> tuple[Program, ProgramOutline]:
        path = Path(folder) if folder else None
        program = loader.load(_NOBODY[0], artifact, _NOBODY[1], folder=path)
        return program, outline_of(program, artifact, config)

    try:
        program, outline = outlined(spec.artifact, spec.folder)
        answer = TrialAnswer(outline=outline)
        tell(answer)
    except (*USER_ERRORS, MemoryError) as error:
        tell(_failure(error))
        return
    if spec.compared is None or not isinstance(program, StreamApplication):
        return
    try:
        before, _ = outlined(spec.compared, spec.compared_folder)
        found = differences(loaded_as(StreamApplication, before), program)
    except (*USER_ERRORS, MemoryError) as error:
        found = OutlineDifferences(why_unknown=f"what runs cannot be loaded once more: {error}")
    tell(replace(answer, differences=found))


def _failure(error: BaseException) -> TrialAnswer:
    if isinstance(error, ConfigError):
        return TrialAnswer(
            mistakes=tuple(error.mistakes),
            notes=tuple(getattr(error, "__notes__", ())),
            is_of_arguments=isinstance(error, ArgumentsRefused),
        )
    known = error if isinstance(error, GearpyError) else operator_error("load", error)
    card = card_of(known)
    if isinstance(known.__cause__ or error, MemoryError):
        cure = "raise application.load-memory-max-bytes if it needs more memory to be loaded"
        card = replace(card, cause=f"{card.cause}: {cure}")
    return TrialAnswer(error=card)


if __name__ == "__main__":
    main()
