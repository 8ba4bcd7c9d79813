"""The coordinator log of an application, in a checkpoint store below the application's names."""

import getpass
import logging
import platform
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace

from gearpy.core.coordinator import segments
from gearpy.core.coordinator.codec import check_message, salvage_segment
from gearpy.core.coordinator.log import CoordinatorMessage, CoordinatorState
from gearpy.core.coordinator.repair import SalvagedLog, salvage_log
from gearpy.core.coordinator.segments import (
    CoordinatorLogWriter,
    Drop,
    ListNames,
    Load,
    LogContents,
    Save,
    Step,
    Steps,
)
from gearpy.errors import GearpyError, LogAbsent, LogBroken
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.held import log_folder

_log = logging.getLogger(__name__)
#: Beside it: files of logs as they were before they were repaired.
_ASIDE: Final = "aside"
_NONCE_BYTES: Final = 4
#: After so many segments the log of an application is compacted.
SEGMENTS_MAX: Final = 64
_T = TypeVar("_T")


class CoordinatorLog:
    """Reads all of a log, and appends to it until a later launch opens it.

    Opening is appending: it makes sure that earlier launches append no more. See
    `coordinator_segments` for the protocol. Samza: `CoordinatorStreamSystemConsumer`, whose
    `bootstrap` comes with opening, and `CoordinatorStreamSystemProducer`.

    Runs on: one thread at a time. Restart: opened again, it has all that was appended.

    Args:
        checkpoints: the store; it must show to every process at once what any has saved.
        prefix: below which name of the store everything of the application is.
        launch: of the app master; None: only to read.
        source: what appends, such as ``app master``.
        segments_max: after so many appends the log is compacted.
        host: of this process; default: this machine's name.
        nonce: eight hexadecimal digits that no other opening at the same time has.
        known_launch: the newest launch that is known to have opened the log; 0: none is.
        instead: begins with this in place of what the files say, as they are damaged.

    Raises:
        LogAbsent: it is not there, although a launch has opened it.
        LogSuperseded: a later launch has opened it.
        LogDamaged: a file is missing, or is not as it was stored.
        LogBroken: the store cannot be used.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        prefix: str,
        *,
        launch: int | None,
        source: str,
        wall_ms: Callable[[], int],
        segments_max: int = SEGMENTS_MAX,
        host: str | None = None,
        username: str | None = None,
        nonce: str = "",
        known_launch: int = 0,
        instead: CoordinatorState | None = None,
    ) -> None:
        self._checkpoints = checkpoints
        self._folder = log_folder(prefix)
        self._source = source
        self._wall_ms = wall_ms
        self._host = platform.node() if host is None else host
        if username is None:
            try:
                username = getpass.getuser()
            except (OSError, KeyError):
                username = ""
        self._username = username
        self._writer: CoordinatorLogWriter | None = None
        self._state = CoordinatorState()
        if launch is None:
            self._state = read_log(checkpoints, prefix).state
            return
        self._writer = CoordinatorLogWriter(
            log=self._folder,
            launch=launch,
            nonce=nonce or secrets.token_hex(_NONCE_BYTES),
            segments_max=segments_max,
            known_launch=known_launch,
        )
        _run(self._writer.open(instead=instead), checkpoints, self._folder)
        _log.info("coordinator log %s opened by %s", self._folder, self._writer.opening)

    @property
    def state(self) -> CoordinatorState:
        return self._state if self._writer is None else self._writer.state

    def append(self, drafts: Iterable[CoordinatorMessage]) -> None:
        """Add messages, all or none; they are in every later bootstrap when this returns.

        After `LogBroken` nobody knows whether they will be. The next append, also one of nothing,
        settles it: it stores them first.

        Raises:
            LogSuperseded: a later launch has opened the log. Whether these messages are in it is
                for that one to see; nothing more will be appended here.
            LogBroken: the store cannot be used.
            ConfigError: a message has values that cannot be stored; nothing was appended.
        """
        assert self._writer is not None, "the log was opened only to read"
        drafts, now_ms = list(drafts), self._wall_ms()
        for each in drafts:
            check_message(each)
        messages = [
            replace(
                each,
                host=self._host,
                username=self._username,
                source=self._source,
                timestamp_ms=now_ms,
            )
            for each in drafts
        ]
        _run(self._writer.append(messages), self._checkpoints, self._folder)


def read_log(checkpoints: Checkpoints, prefix: str) -> LogContents:
    """Return all that counts in the log of an application; empty if it has none.

    While a launch opens the log, what an earlier one could not append any more may be in it.

    Raises:
        LogDamaged: a file is missing, or is not as it was stored.
        LogBroken: the store cannot be used.
    """
    folder = log_folder(prefix)
    return _run(segments.read_log(folder), checkpoints, folder)


def newest_launch(checkpoints: Checkpoints, prefix: str) -> int:
    """Return the launch that a tool opens the log with; 0 if it was never opened.

    Raises:
        LogBroken: the store cannot be used.
    """
    folder = log_folder(prefix)
    with _store_errors(folder):
        return segments.newest_launch(_names(checkpoints, folder))


class FileReport(NamedTuple):
    """The readable part of a file of a log, and its mistake.

    ``counts`` is None when that cannot be told, as a file is missing.
    """

    name: str
    messages: Sequence[CoordinatorMessage]
    problem: str
    counts: bool | None


def survey_log(checkpoints: Checkpoints, prefix: str) -> list[FileReport]:
    """Read a log file by file in order, as far as it can be read."""
    folder = log_folder(prefix)
    with _store_errors(folder):
        names = _names(checkpoints, folder)
        try:
            counting = {each.name for each in segments.files_that_count(names, log=folder)}
        except GearpyError:
            counting = None
        found = []
        for name in (each.name for each in segments.files_of(names) if each.kind != "open"):
            counts = None if counting is None else name in counting
            try:
                data = checkpoints.load(f"{folder}/{name}")
            except GearpyError as error:
                found.append(FileReport(name, (), str(error), counts))
            else:
                read = salvage_segment(data, name=name, log=folder)
                found.append(FileReport(name, read.messages, str(read.damage or ""), counts))
        return found


def salvage(checkpoints: Checkpoints, prefix: str) -> SalvagedLog:
    """Read the rest of the log of an application that does not run."""
    folder = log_folder(prefix)
    return _run(salvage_log(folder), checkpoints, folder)


def repair_log(
    checkpoints: Checkpoints,
    prefix: str,
    salvaged: SalvagedLog,
    *,
    source: str,
    wall_ms: Callable[[], int],
) -> str:
    """Write the log anew with its salvaged part; return where copies of its files are kept.

    Raises:
        LogSuperseded: the application was launched meanwhile.
        LogBroken: the store cannot be used.
    """
    folder, aside = log_folder(prefix), f"{prefix}/{_ASIDE}/coordinator-{wall_ms()}"
    with _store_errors(folder):
        for name in salvaged.files:
            checkpoints.save(f"{aside}/{name}", [checkpoints.load(f"{folder}/{name}")])
    CoordinatorLog(
        checkpoints,
        prefix,
        launch=newest_launch(checkpoints, prefix),
        source=source,
        wall_ms=wall_ms,
        instead=salvaged.state,
    )
    return aside


def _run(steps: Steps[_T], checkpoints: Checkpoints, folder: str) -> _T:
    def do(step: Step) -> object:
        match step:
            case Save(name, data):
                checkpoints.save(f"{folder}/{name}", [data])
            case ListNames():
                return _names(checkpoints, folder)
            case Load(name):
                return checkpoints.load(f"{folder}/{name}")
            case Drop(name):
                checkpoints.drop(f"{folder}/{name}")
        return None

    with _store_errors(folder):
        try:
            return segments.run_steps(steps, do)
        except LogAbsent as error:
            raise error.at(checkpoints.place) from None


def _names(checkpoints: Checkpoints, folder: str) -> list[str]:
    return [each.removeprefix(f"{folder}/") for each in checkpoints.names(folder)]


@contextmanager
def _store_errors(folder: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LogBroken(
            f"coordinator log {folder}: {error}; what was appended last may or may not be in it"
        ) from error
