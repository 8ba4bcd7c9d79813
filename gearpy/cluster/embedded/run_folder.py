"""The folder of a run that can be resumed."""

import os
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from typing import Final, Self

import msgspec

from gearpy.clocks import wall_ms
from gearpy.cluster.app.checkpoints import dag_version, is_same_program
from gearpy.cluster.checkpoints.changing import check_unused
from gearpy.cluster.client.runs import RUN_APP
from gearpy.core.coordinator.log import CoordinatorState
from gearpy.core.coordinator.quarantine import KeptQuarantine
from gearpy.core.coordinator.versions import ProgramVersion, Versions
from gearpy.core.coordinator.views import DagVersion, DagVersions, EpochManifests
from gearpy.core.dag.state_moves import Layout, layout_of, lost, state_moves
from gearpy.core.master.checkpoint_names import ResumePoint, new_cluster_id, prefix_of
from gearpy.errors import ConfigError, GearpyError, StoreAway
from gearpy.ids import AppId
from gearpy.messages.client import QuarantinedRecord
from gearpy.messages.summaries import ApplicationSummary
from gearpy.storage.checkpoints import Checkpoints, RunCheckpoints, checkpoints_at
from gearpy.storage.coordinator_log import newest_launch, read_log
from gearpy.storage.folder.api import TEMPORARY, Folder
from gearpy.storage.folder.local import LocalFolder
from gearpy.task.api.application import StreamApplication
from gearpy.views import text

#: The files of a run in its folder.
NOTE: Final = "run.json"
STORE: Final = "checkpoints"
#: The records in quarantine of a run that has finished, or has no name; one a line.
RECORDS: Final = "quarantine.jsonl"
_VERSION: Final = 1


class _Note(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a run that are known before its checkpoints are read.

    ``has_stored``: an epoch of it was complete, so there must be checkpoints. ``processes``: on how
    many it has run, each number once; the graph depends on it. ``origins``: below which names is
    what other programs have stored; it goes on from the last of them at first.
    """

    version: int
    application: str
    prefix: str
    has_stored: bool = False
    finished_ms: int = 0
    processes: tuple[int, ...] = (1,)
    origins: tuple[str, ...] = ()


def new_run() -> str:
    return prefix_of(new_cluster_id(SystemRandom()), RUN_APP)


def run_folder_of(name: str, runs_folder: str) -> Path:
    if os.sep in name or name in {".", ".."}:
        return Path(name).expanduser()
    return Path(runs_folder).expanduser() / name


def encode_records(records: Iterable[QuarantinedRecord]) -> bytes:
    return b"".join(msgspec.json.encode(each) + b"\n" for each in records)


def read_note(disk: LocalFolder) -> _Note | None:
    if (data := disk.read(NOTE)) is None:
        return None
    place = disk.location(NOTE)
    try:
        note = msgspec.json.decode(data, type=_Note)
    except msgspec.DecodeError as error:
        raise ConfigError(f"{place} is damaged: {error}") from error
    if note.version != _VERSION:
        raise ConfigError(
            f"{place} has version {note.version}, this gearpy knows {_VERSION}: resume the run "
            "with the gearpy that began it"
        )
    return note


def stored_state(store: Checkpoints, note: _Note) -> tuple[str, CoordinatorState]:
    """Return the name and the state that a run goes on from.

    That is of the program before until another one has begun with it.
    """
    state = read_log(store, note.prefix).state
    if not note.origins or EpochManifests(state).regions():
        return note.prefix, state
    return note.origins[-1], read_log(store, note.origins[-1]).state


def run_name_of(path: Path, runs_folder: str) -> str:
    """Return a user's word for the run in a folder: its name, or else the path."""
    is_named = path.parent == Path(runs_folder).expanduser().resolve()
    return path.name if is_named else str(path)


class RunFolder:
    """Keeps the checkpoints of one run from its first start to its end, however often resumed.

    A context manager: the folder is locked from its beginning to its end.

    Args:
        application: as it runs on one process.
        processes: on how many it is to run.
        allows_drop: another program may leave behind what it has no place for.
        say: is told what becomes of the state, of another program.
    """

    def __init__(
        self,
        path: Path | str,
        application: StreamApplication,
        processes: int = 1,
        *,
        allows_drop: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        if "://" in str(path):
            raise ConfigError(
                f"{path} is no folder of this machine, which a run needs to be resumed"
            )
        self.path = Path(path).expanduser().resolve()
        self._application = application
        self._processes = processes
        self._allows_drop = allows_drop
        self._say = say
        self._looked_at = 0  # The epoch that may need what programs of before have stored.
        self._note: _Note
        self.begins_on = processes  #: What it goes on from is of a graph for so many processes.

    def __enter__(self) -> Self:
        try:
            self._disk = LocalFolder(self.path, private=True)
            self._disk.make()
            self._disk.hold("")
            self._disk.lock()
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be used: {error.strerror}") from error
        try:
            found = self._read()
            self._note = found or _Note(
                version=_VERSION, application=self._application.name, prefix=new_run()
            )
            if found is None:
                self._put(self._note)
            self._check()
        except BaseException:
            self._disk.unlock()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._disk.unlock()

    # -- questions -------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._note.application

    @property
    def prefix(self) -> str:
        return self._note.prefix

    @property
    def resume_from(self) -> str:
        """The epoch of another program with which it begins, if it has none of its own."""
        if not self._note.origins:
            return ""
        cluster_id, _, app = self._note.origins[-1].partition("/app")
        point = ResumePoint(cluster_id=cluster_id, app_id=AppId(int(app)), allows_drop=True)
        return str(point)

    @property
    def checkpoints(self) -> Checkpoints:
        return _RunCheckpoints(self, self._store.folder)

    @property
    def launches(self) -> int:
        return newest_launch(self._store, self.prefix)

    @property
    def finished(self) -> ApplicationSummary | None:
        if not self._note.finished_ms:
            return None
        return ApplicationSummary(
            app_id=RUN_APP,
            name=self._note.application,
            status="succeeded",
            finished_ms=self._note.finished_ms,
        )

    # -- what happens ----------------------------------------------------------------------

    def on_progress(self, summary: ApplicationSummary) -> None:
        """Note that there is something to go on from, or that the run has finished.

        While the folder is away it cannot be noted, and the next run may do its end once more.
        """
        with suppress(OSError):
            if summary.progress.epoch and not self._note.has_stored:
                self._write(msgspec.structs.replace(self._note, has_stored=True))
            if self._note.origins and summary.progress.epoch > self._looked_at:
                self._looked_at = summary.progress.epoch
                self._drop_origins()
            if not summary.can_go_on:
                self.on_finished()

    def on_finished(self) -> None:
        if not self._note.finished_ms:
            self._write(msgspec.structs.replace(self._note, finished_ms=wall_ms()))

    def keep_quarantine(self) -> None:
        """Keep the records in quarantine, before the log that has them is removed."""
        if kept := KeptQuarantine(read_log(self._store, self.prefix).state).read():
            self._disk.put(RECORDS, encode_records(each.record for each in kept))

    # --------------------------------------------------------------------------------------

    def _read(self) -> _Note | None:
        names = [name for name in self._disk.names() if not name.endswith(TEMPORARY)]
        if NOTE not in names:
            others = [*names, *(each.name for each in self.path.iterdir() if each.is_dir())]
            if others:
                raise ConfigError(
                    f"{self.path} is not the folder of a run, it has {min(others)}: name one "
                    "that does not exist"
                )
            return None
        return read_note(self._disk)

    def _write(self, note: _Note) -> None:
        if self._disk.look(NOTE) is None:
            raise StoreAway(f"{self.path} is not the folder of this run any more")
        self._put(note)

    def _put(self, note: _Note) -> None:
        self._disk.put(NOTE, msgspec.json.format(msgspec.json.encode(note)))
        self._note = note

    def _check(self) -> None:
        note = self._note
        if note.application != self._application.name:
            raise ConfigError(
                f"{self.path} has a run of {note.application}, not of {self._application.name}: "
                "take another name for it"
            )
        if note.finished_ms:
            return
        self._store = checkpoints_at(self.path / STORE)
        basis, state = stored_state(self._store, note)
        if note.has_stored and not newest_launch(self._store, basis):
            raise ConfigError(
                f"{self.path / STORE} is empty, but the run had stored something there: is it "
                "mounted? To begin anew, remove the folder, or take another name"
            )
        if self._processes not in note.processes:
            self._write(msgspec.structs.replace(note, processes=(*note.processes, self._processes)))
        if not (known := DagVersions(state).read()):
            return
        begins_on = self._processes_of(known[-1], Versions(state).current)
        if begins_on is not None:
            self.begins_on = begins_on
        elif not EpochManifests(state).regions():  # There is nothing to go on from.
            self._put(msgspec.structs.replace(self._note, prefix=new_run()))
        else:
            self._adapt(basis, known[-1].layout)

    def _processes_of(self, stored: DagVersion, version: ProgramVersion | None) -> int | None:
        """Return for how many processes the graph was that was stored; it may have been scaled.

        None: it was another program.
        """
        scale = {} if version is None else dict(version.artifact.scale)
        for processes in (self._processes, *self._note.processes):
            with suppress(ConfigError):  # It has no such steps any more.
                application = self._application.spread(processes)
                scaled = application.scaled(scale) if scale else application
                if is_same_program(stored, dag_version(scaled.dag)):
                    return processes
        return None

    def _adapt(self, basis: str, before: Layout) -> None:
        """Let another program go on from the state of the one before, as if it were submitted so.

        It is another run for its sinks, which take over what the one before has prepared. That one
        stays until the new one has stored an epoch.
        """
        moves = state_moves(before, layout_of(self._application.spread(self._processes).dag))
        gone = lost(moves)
        if gone and not self._allows_drop:
            sizes = _sizes_of(self._store, basis)
            told = "; ".join(f"{each}{sizes.get(each.id, '')}" for each in gone)
            raise ConfigError(
                f"{self.path} has a run of another program, and this one has no place for what "
                f"these steps keep: {told}: give steps the names that they had, leave their state "
                "behind with --allow-drop (allow_drop=True in Python), or take another name for "
                "the run"
            )
        self._say("the program is another one than that of the run so far:")
        for move in moves:
            self._say(f"  {move}")
        dropped = f"the state of {text.plural(len(gone), 'step')} is dropped"
        self._say(f"  {dropped if gone else 'no state is dropped'}")
        if basis == self.prefix:
            origins = (*self._note.origins, basis)
            self._put(msgspec.structs.replace(self._note, prefix=new_run(), origins=origins))

    def _drop_origins(self) -> None:
        """Remove what programs of before have stored, unless it has a name, or is needed."""
        needed = []
        for origin in self._note.origins:
            try:
                check_unused(self._store, origin)
                self._store.drop_all(origin)
            except ConfigError:
                needed.append(origin)
        if needed != [*self._note.origins]:
            self._write(msgspec.structs.replace(self._note, origins=tuple(needed)))


def _sizes_of(store: Checkpoints, prefix: str) -> dict[str, str]:
    """Return how much steps keep by key, in words; nothing where it cannot be told."""
    sizes: dict[str, str] = {}
    with suppress(GearpyError, ImportError):
        from gearpy.cluster.states.stored import StoredStates  # noqa: PLC0415 - it needs pyarrow

        cells: Counter[str] = Counter()
        for each in StoredStates(store, prefix).summaries():
            cells[each.step] += each.cells
        sizes = {step: f" ({text.plural(n, 'value')})" for step, n in cells.items()}
    return sizes


class _RunCheckpoints(RunCheckpoints):
    """The checkpoint store of a run; that it has finished is noted before all is removed."""

    def __init__(self, run: RunFolder, folder: Folder) -> None:
        super().__init__(folder)
        self._run = run

    def drop_all(self, prefix: str) -> None:
        self._run.keep_quarantine()
        self._run.on_finished()
        super().drop_all(prefix)
