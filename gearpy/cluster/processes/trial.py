"""Loads programs in processes of their own: what runs is safe from one that was never tried."""

import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from gearpy.cluster.processes.child_process import ChildProcess
from gearpy.cluster.processes.fork_server import ForkServer
from gearpy.cluster.processes.spec import encoded_spec
from gearpy.cluster.processes.trial_child import BEGUN, TrialAnswer, TrialSpec
from gearpy.cluster.programs.artifacts import ArgumentsRefused, shown_program
from gearpy.cluster.programs.outline import OutlineDifferences, ProgramOutline
from gearpy.cluster.programs.targets import split_path
from gearpy.cluster.programs.upload import Uploadable
from gearpy.config.load import as_overrides
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.client import Artifact
from gearpy.storage.archives import ArtifactLimits, unpack
from gearpy.task.api.failure import placed_line

#: -P: a file of the working folder must not stand in for a module. Options are those of this one.
_COMMAND: Final = (
    sys.executable,
    *subprocess._args_from_interpreter_flags(),  # type: ignore[attr-defined]  # noqa: SLF001
    "-P",
    "-m",
    "gearpy.cluster.processes.trial_child",
)
_START_S: Final = 60.0  # A process that is not ready to load anything by then is in trouble.
_LAST_WORDS_S: Final = 2.0  # A process that is asked where it stands is killed after that.
_OUTPUT_BYTES_MAX: Final = 16 << 20
_ANSWER_BYTES_MAX: Final = 64 << 20
_STACK: Final = re.compile(
    rb"^(?:Fatal Python error: .*\n\n)?(?:Current thread .*|Stack) \(most recent call first\):$",
    re.MULTILINE,
)
_TEXT_CHARS_MAX: Final = 8000  # Errors travel in control messages.
_LINE_CHARS_MAX: Final = 300
_FRAME: Final = re.compile(r'^  File "(.+)", line (\d+) in ', re.MULTILINE)


class ProgramTrials:
    """Loads programs in processes of their own, with a deadline and a limit of memory.

    A process is a fork where there is a fork server. It is killed with all that it has started
    when it is done, or at the deadline.

    Runs on: any thread; each call blocks.
    """

    def __init__(
        self, config: Config, *, forks: ForkServer | None = None, folder: Path | None = None
    ) -> None:
        self._config = config
        self._forks = forks
        self._folder = folder

    def load(
        self,
        artifact: Artifact,
        folder: Path | None,
        *,
        compared: tuple[Artifact, Path | None] | None = None,
    ) -> tuple[ProgramOutline, OutlineDifferences]:
        limits, of_executors = self._config.application, self._config.executor.memory_max_bytes
        memory_max = min(limits.load_memory_max_bytes, of_executors or sys.maxsize)
        with tempfile.TemporaryDirectory(prefix="gearpy-trial-") as place:
            answer = Path(place, "answer")
            before, before_folder = compared or (None, None)
            spec = TrialSpec(
                artifact=artifact,
                folder=str(folder or ""),
                answer=str(answer),
                config=as_overrides(self._config),
                memory_max_bytes=memory_max,
                path=tuple(sys.path),
                compared=before,
                compared_folder=str(before_folder or ""),
            )
            trial = _Trial(spec, self._forks, self._folder or Path(place))
            cause = trial.run(limits.load_timeout_s)
            found = _answer_in(answer)
            if found is None:
                tail = trial.tail
                own_folder = spec.folder or str(Path(spec.artifact.location).resolve().parent)
                frames = _FRAME.findall(_parted(tail)[1].decode("utf-8", "replace"))
                own = (
                    placed_line(path, int(number))
                    for path, number in frames
                    if path.startswith(own_folder)
                )
                source, line = next(own, ("", ""))
                name = (
                    spec.artifact.module
                    or Path(spec.artifact.filename or spec.artifact.location).name
                )
                raise OperatorError(
                    operator=f"import {name}",
                    cause=cause,
                    source=source,
                    source_line=line,
                    traceback=tail.decode("utf-8", "replace")[-_TEXT_CHARS_MAX:],
                )
        if found.outline is None:
            raise _error_of(found)
        unknown = f"what runs was not loaded once more: {cause}" if compared else ""
        return found.outline, found.differences or OutlineDifferences(why_unknown=unknown)


class _Trial:
    """One process that loads a program."""

    def __init__(self, spec: TrialSpec, forks: ForkServer | None, folder: Path) -> None:
        self._written = 0
        self._is_over = threading.Event()  # It has ended, or says too much.
        self._has_begun = threading.Event()  # Or is over.
        try:
            self._child = ChildProcess(
                _COMMAND,
                encoded_spec(spec),
                folder=folder,
                log=self,
                log_format="text",
                stop_timeout_s=_LAST_WORDS_S,
                on_end=lambda _: self._end(),
                fork_server=forks,
            )
        except (OSError, RuntimeError) as error:
            raise ConfigError(
                f"{shown_program(spec.artifact)} cannot be loaded: there is no process for it: "
                f"{error}"
            ) from error

    def run(self, timeout_s: float) -> str:
        is_late = True
        try:
            self._has_begun.wait(_START_S)
            is_late = not self._is_over.wait(timeout_s)
            if is_late or self._written > _OUTPUT_BYTES_MAX:
                self._child.abort()
            self._child.join(_LAST_WORDS_S)
        finally:
            self._child.stop(kill=True)
            self._child.join()
        if is_late:
            return (
                f"it is not loaded after {timeout_s:.0f} s: raise application.load-timeout-seconds "
                "if it needs longer"
            )
        if self._written > _OUTPUT_BYTES_MAX:
            return f"it has printed more than {_OUTPUT_BYTES_MAX >> 20} MiB while it was loaded"
        printed, stack = _parted(self.tail)
        cause = self._child.why_ended(printed).partition("\n")[0]
        words = printed.decode("utf-8", "replace").rstrip()
        last = words.rpartition("\n")[2].strip()[:_LINE_CHARS_MAX]
        said = f", and had printed: {last}" if last and not stack and last not in cause else ""
        return f"it has ended its process while it was loaded: {cause}{said}"

    def write(self, lines: bytes) -> None:
        """Count output; of all that is more than the end of it nothing is kept."""
        self._written += len(lines)
        if self._written > _OUTPUT_BYTES_MAX:
            self._end()
        if lines.startswith(BEGUN):
            self._has_begun.set()

    def _end(self) -> None:
        self._is_over.set()
        self._has_begun.set()

    @property
    def tail(self) -> bytes:
        return self._child.tail


def _answer_in(path: Path) -> TrialAnswer | None:
    try:
        if path.stat().st_size > _ANSWER_BYTES_MAX:
            raise ConfigError(f"its graph has more than {_ANSWER_BYTES_MAX >> 20} MiB")
        return msgspec.msgpack.decode(path.read_bytes(), type=TrialAnswer)
    except (OSError, ValueError, msgspec.DecodeError):
        return None


def _error_of(answer: TrialAnswer) -> ConfigError | OperatorError:
    error: ConfigError | OperatorError
    if (card := answer.error) is None:
        error = (ArgumentsRefused if answer.is_of_arguments else ConfigError)(*answer.mistakes)
        for note in answer.notes:
            error.add_note(note)
        return error
    return OperatorError(
        operator=card.operator,
        cause=card.cause,
        source=card.source,
        source_line=card.source_line,
        traceback=card.traceback,
    )


def _parted(tail: bytes) -> tuple[bytes, bytes]:
    starts = [each.start() for each in _STACK.finditer(tail)]
    at = starts[-1] if starts else len(tail)
    return tail[:at], tail[at:]


def tried_here(program: Uploadable, target: str, config: Config) -> ProgramOutline:
    """Load a packed program in the same way as the cluster, so that mistakes show at once.

    A package that is missing here may be there, and the other way round, so only the cluster checks
    requirements; nor do the limits of its executors count here.
    """
    artifact = replace(program.artifact, check_requirements=False)
    config = replace(config, executor=replace(config.executor, memory_max_bytes=0))
    with tempfile.TemporaryDirectory(prefix="gearpy-check-") as parent:
        folder = Path(parent).resolve() / "program"
        with _told_as_given(program, target, folder):
            unpack(program.path, folder, artifact.filename, ArtifactLimits.of(config.artifact))
            return ProgramTrials(config, folder=Path.cwd()).load(artifact, folder)[0]


@contextmanager
def _told_as_given(program: Uploadable, target: str, folder: Path) -> Iterator[None]:
    path, artifact = split_path(target).path, program.artifact
    place = f"{path}" if path.suffix in {".py", ".sql"} else f"{path}:{artifact.module}"

    def told(text: str) -> str:
        if artifact.module:
            text = text.replace(f"{artifact.filename}:{artifact.module}", place)
        return text.replace(str(folder), str(program.origin))

    try:
        yield
    except ConfigError as error:
        kind = ArgumentsRefused if isinstance(error, ArgumentsRefused) else ConfigError
        raise kind(*map(told, error.mistakes)) from error
    except OperatorError as error:
        error.cause = told(error.cause)
        error.source, error.traceback = told(error.source), told(error.traceback)
        raise
