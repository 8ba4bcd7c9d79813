"""The stored epochs of an application: its coordinator log, and its files."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from gearpy.cluster.app.config import inherited, of_submission
from gearpy.cluster.app.quarantine import moved as moved_record
from gearpy.cluster.checkpoints.changing import drop_expired
from gearpy.cluster.checkpoints.migration import check_moves, migrate
from gearpy.core.coordinator.log import EPOCH, CoordinatorMessage, CoordinatorState, draft
from gearpy.core.coordinator.quarantine import KeptQuarantine
from gearpy.core.coordinator.savepoints import DrainView, Savepoint, check_savepoint
from gearpy.core.coordinator.versions import ProgramVersion, Versions
from gearpy.core.coordinator.views import (
    SET_CHECKPOINT,
    ApplicationView,
    ChangelogPartitions,
    ConfigView,
    DagVersion,
    DagVersions,
    EpochManifests,
    SourcePlaces,
)
from gearpy.core.dag.graph import Dag, without_regions
from gearpy.core.dag.state_moves import layout_of
from gearpy.core.epoch.epochs import Manifest
from gearpy.core.epoch.kept import KeptEpochs
from gearpy.core.epoch.recorded import RECORDED, superfluous
from gearpy.core.master.checkpoint_names import ALLOW_DROP, RESTART, ResumePoint
from gearpy.errors import ConfigError, GearpyError, LogBroken, LogSuperseded, SnapshotDamaged
from gearpy.ids import TaskId
from gearpy.messages.app import LaunchTasks, SnapshotFile, TaskOffsets
from gearpy.messages.client import QuarantinedRecord
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.coordinator_log import CoordinatorLog, newest_launch, read_log
from gearpy.storage.held import HeldCheckpoints
from gearpy.storage.savepoints import (
    read_savepoint,
    read_savepoints,
    save_savepoint,
    savepoint_names,
)

_log = logging.getLogger(__name__)
_SOURCE: Final = "app master"


class FoundEpochs(Struct, frozen=True, kw_only=True):
    """The epochs that a launch of an app master goes on from; none at the very first.

    ``config`` is what the application sets of the configuration, for this launch.
    """

    manifests: tuple[Manifest, ...] = ()
    overrides: tuple[TaskOffsets, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)


class AppCheckpoints:
    """Opens the coordinator log of an application, adds its epochs, deletes its files.

    After `LogBroken` nobody knows whether something was added: the same call again, or `settle`,
    sees to it.

    Runs on: the app master's thread. Restart: a relaunched app master opens the log again, and
    this one appends no more: `LogSuperseded`.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        *,
        prefix: str,
        launch: int,
        segments_max: int,
        wall_ms: Callable[[], int],
    ) -> None:
        self.prefix = prefix
        self._checkpoints = HeldCheckpoints(checkpoints, prefix)
        self._launch = launch
        self._segments_max = segments_max
        self._wall_ms = wall_ms
        self._partitions: dict[TaskId, int] = {}
        self._log: CoordinatorLog | None = None
        self._retired: list[tuple[int, int]] = []  # Regions and epochs that the log still has.
        self._surplus: list[SnapshotFile] = []  # To be deleted when it has them no more.
        self._savepoints: dict[str, Savepoint] = {}  # Some may have been dropped meanwhile.
        self.epochs = KeptEpochs()
        self.keeps_recordings = False  #: The input of tasks is recorded.

    def begin(self, *, is_known: bool, resume_from: str = "") -> None:
        is_restart = resume_from.endswith(RESTART)
        after = ResumePoint.parse(resume_from).prefix if is_restart else ""
        try:
            self._checkpoints.begin(is_known=is_known, after=after)
        except OSError as error:
            raise LogBroken(str(error)) from error

    def open(
        self,
        dag: Dag,
        config: Mapping[str, str],
        *,
        name: str = "",
        resume_from: str = "",
        known_launch: int = 0,
    ) -> FoundEpochs:
        """Open the log, note the DAG, return the epochs and the configuration found in the log.

        Args:
            config: the settings of the submission; they count for the first launch,
                later ones go by the log.
            resume_from: text of a `ResumePoint`: an epoch of another application that is the first
                one of this one, if it has none of its own.
        """
        self.begin(is_known=bool(known_launch), resume_from=resume_from)
        log = self._log = CoordinatorLog(
            self._checkpoints,
            self.prefix,
            launch=self._launch,
            source=_SOURCE,
            wall_ms=self._wall_ms,
            segments_max=self._segments_max,
            known_launch=known_launch,
        )
        try:
            found = read_savepoints(self._checkpoints, self.prefix)
        except OSError as error:
            raise LogBroken(f"savepoints of {self.prefix} cannot be read: {error}") from error
        self._savepoints = {each.name: each for each in found}
        version = dag_version(dag)
        is_known = bool(EpochManifests(log.state).regions() or Versions(log.state).read())
        resumes = bool(resume_from) and not is_known
        other = self._other(resume_from) if resumes else CoordinatorState()
        log.append(
            [
                *ApplicationView(log.state).write(name),
                *_config_of_submission(log.state, config, other, resume_from, known_launch),
                *DagVersions(log.state).write(version),
                # A run that is resumed was drained before; an app master that died was not done.
                *(() if known_launch else DrainView(log.state).clear()),
                *Versions(log.state).end_unfinished("the app master was started again"),
            ]
        )
        if resumes:
            self._adopt(log, other, resume_from, version, dag)
        return self.found(dag)

    @property
    def versions(self) -> Versions:
        return Versions(self._opened.state)

    def stored_version(self, number: int | None = None) -> ProgramVersion | None:
        """Return the version to begin with, or of a number; None if there is none.

        A program that was never changed has none. It is read before the log is opened, which needs
        the graph of that version.
        """
        versions = Versions(read_log(self._checkpoints, self.prefix).state)
        if number is None:
            return versions.current
        return next((each for each in versions.read() if each.number == number), None)

    def note_versions(self, versions: Iterable[ProgramVersion]) -> None:
        self._opened.append([self.versions.write(each) for each in versions])

    def settle(self) -> None:
        self._opened.append([])

    def migrated(
        self, manifests: Sequence[Manifest], old: Dag, new: Dag, *, kept: Collection[int]
    ) -> tuple[Manifest, ...]:
        if is_same_program(dag_version(old), dag_version(new)):
            return tuple(manifests)
        prefix = f"{self.prefix}/version{new.version}"
        moved = migrate(
            self._checkpoints,
            manifests,
            (),
            old=layout_of(old),
            dag=new,
            prefix=prefix,
            kept=kept,
            in_place=True,
        )
        return moved.manifests

    def begin_version(
        self,
        versions: Iterable[ProgramVersion],
        dag: Dag,
        manifests: Sequence[Manifest],
        *,
        kept: Collection[int],
    ) -> None:
        """Let another version go on from these epochs, and from no other, in one go.

        What an error has stopped before is to be there: `settle` it first. Regions that are
        ``kept`` have what they had.
        """
        state = self._opened.state
        view, places = EpochManifests(state), SourcePlaces(state)
        before = [each for each in self.manifests() if each.region not in kept]
        begins = {*without_regions(dag, kept).processors}
        left = [each for each in places.read_all() if each.task.processor in begins]
        self._retired = [each for each in self._retired if each[0] in kept]
        self._opened.append(
            [
                *(drop for each in before for drop in view.drop_messages(each.region, each.epoch)),
                *(draft(SET_CHECKPOINT, str(each.task), None) for each in left),
                *(each for m in manifests for each in view.messages_for(m, m.offsets)),
                *(ChangelogPartitions(state).assign(dag.tasks()) if self._partitions else ()),
                *DagVersions(state).write(dag_version(dag)),
                *(self.versions.write(each) for each in versions),
            ]
        )

    def manifests(self) -> list[Manifest]:
        view = EpochManifests(self._opened.state)
        return [each for region in view.regions() for each in view.manifests(region)]

    def found(self, dag: Dag) -> FoundEpochs:
        if self._partitions:
            self._partitions = ChangelogPartitions(self._opened.state).read()
        log, manifests = self._opened, self.manifests()
        places, newest = SourcePlaces(log.state), {each.region: each for each in manifests}
        epochs = dict.fromkeys(dag.tasks(), 0)  # Regions without epochs begin at 0.
        for manifest in newest.values():
            epochs |= {task: manifest.epoch for file in manifest.snapshots for task in file.tasks}
        overrides = [
            each for task, epoch in epochs.items() for each in places.overrides([task], epoch=epoch)
        ]
        return FoundEpochs(
            manifests=tuple(manifests),
            overrides=tuple(overrides),
            config=ConfigView(log.state).read(),
        )

    def give_partitions(self, dag: Dag) -> None:
        partitions = ChangelogPartitions(self._opened.state)
        self._opened.append(partitions.assign(dag.tasks()))
        self._partitions = partitions.read()

    def _other(self, resume_from: str) -> CoordinatorState:
        """Return the state in the log of another application, which its app master loses.

        An epoch that it completed from now on would be shown, and come again.
        """
        point = ResumePoint.parse(resume_from)
        prefix = point.prefix
        if point.savepoint:  # It may run: nothing of a savepoint is its any more.
            return read_log(self._checkpoints, prefix).state
        launch = newest_launch(self._checkpoints, prefix)
        if not launch:
            return CoordinatorState()
        try:
            return CoordinatorLog(
                self._checkpoints,
                prefix,
                launch=launch,
                source=_SOURCE,
                wall_ms=self._wall_ms,
                segments_max=self._segments_max,
            ).state
        except LogSuperseded as error:
            raise LogBroken(f"{error}: another one goes on from it at the same time") from error

    def with_partitions(self, launch: LaunchTasks) -> LaunchTasks:
        tasks = tuple(
            replace(each, partition=self._partitions.get(each.task_id)) for each in launch.tasks
        )
        return replace(launch, tasks=tasks)

    def store(
        self,
        *manifests: Manifest,
        versions: Iterable[ProgramVersion] = (),
        quarantined: Iterable[QuarantinedRecord] = (),
        given_back: Iterable[int] = (),
    ) -> None:
        """Add complete epochs, all or none; called again for one, it settles if that is there.

        Epochs that were retired before leave the log with it. ``versions`` have their new states
        together with these epochs, and records come into quarantine, or leave it.
        """
        log = self._opened
        view = EpochManifests(log.state)
        new = [each for each in manifests if not view.has(each.region, each.epoch)]
        log.append(
            [
                *(message for each in new for message in view.messages_for(each, each.offsets)),
                *(drop for each in self._retired for drop in view.drop_messages(*each)),
                *(self.versions.write(each) for each in versions),
                *(self.quarantine.write(each) for each in quarantined),
                *self.quarantine.drop(given_back),
            ]
        )
        regions = {region for region, _ in self._retired}
        self._retired.clear()
        files, self._surplus = self._surplus, []
        self.drop(files)
        if self.keeps_recordings:
            for region in regions:
                self._drop_recordings(region)

    def forget(self, region: int, epochs: Iterable[int]) -> None:
        """Let epochs leave the log that are never gone back to; see `store` for errors."""
        view = EpochManifests(self._opened.state)
        self._opened.append(drop for each in epochs for drop in view.drop_messages(region, each))

    def retire(self, region: int, epochs: Iterable[int]) -> None:
        """Let epochs that newer ones take the place of leave the log with the next one.

        That saves steps to the store, and sinks are told of an epoch sooner. Until then no file is
        deleted: what the log names is there.
        """
        self._retired += [(region, each) for each in epochs]

    def _drop_recordings(self, region: int) -> None:
        named = self.epochs.kept(region)
        epochs = [
            each.epoch
            for each in EpochManifests(self._opened.state).manifests(region)
            if each.epoch not in named
        ]
        try:
            names = self._checkpoints.names(f"{self.prefix}/{RECORDED}/region{region}")
            for name in superfluous(names, epochs, self.epochs.failure(region)):
                self._checkpoints.drop(name)
        except OSError as error:
            _log.warning("recordings of %s stay: %s", self.prefix, error)

    def check_free(self, savepoint: str) -> None:
        check_savepoint(savepoint)
        if savepoint in self._names():
            raise ConfigError(f"savepoint {savepoint!r} is there already: take another name")

    def made(self, savepoint: str) -> Mapping[int, int]:
        found = self._savepoints.get(savepoint)
        return {} if found is None else found.epochs

    def name_epochs(self, savepoints: Mapping[str, Mapping[int, int]]) -> None:
        """Give names to epochs; an epoch that is not there any more gets none."""
        manifests = self.manifests()
        for name, epochs in savepoints.items():
            found = tuple(each for each in manifests if epochs.get(each.region) == each.epoch)
            if len(found) == len(epochs):
                self._save(name, found)
            else:
                _log.warning("savepoint %s is not made: its epochs were replaced meanwhile", name)
            self.epochs.on_named(name)

    def drop(self, files: Iterable[SnapshotFile]) -> None:
        """Delete files that nobody needs; a failure to delete is logged, and the file stays.

        What savepoints need stays, too, until they are dropped.
        """
        if self._retired:
            self._surplus += files
            return
        try:
            if self._savepoints:
                names = self._names()
                self._savepoints = {n: each for n, each in self._savepoints.items() if n in names}
            needed = {file for each in self._savepoints.values() for file in each.files}
            for file in files:
                if file.location not in needed:
                    self._checkpoints.drop(file.location)
        except (OSError, LogBroken) as error:
            _log.warning("snapshots of %s stay: %s", self.prefix, error)

    def _save(self, name: str, manifests: tuple[Manifest, ...]) -> None:
        state = self._opened.state
        savepoint = Savepoint(
            name=name,
            application=ApplicationView(state).name,
            graph=DagVersions(state).read()[-1],
            manifests=manifests,
            stored_ms=self._wall_ms(),
        )
        try:
            save_savepoint(self._checkpoints, self.prefix, savepoint)
        except OSError as error:
            raise LogBroken(f"savepoint {name} cannot be stored: {error}") from error
        self._savepoints[name] = savepoint

    def _names(self) -> set[str]:
        try:
            return {*savepoint_names(self._checkpoints, self.prefix)}
        except OSError as error:
            raise LogBroken(f"savepoints of {self.prefix} cannot be read: {error}") from error

    def drop_all(self) -> None:
        try:
            if not self._names():
                self._checkpoints.drop_all(self.prefix)
        except (OSError, LogBroken) as error:
            _log.warning("checkpoints of %s stay: %s", self.prefix, error)

    def end(self) -> None:
        try:
            self._opened.append(ApplicationView(self._opened.state).end())
        except LogBroken as error:
            _log.warning("checkpoints of %s stay until they are dropped: %s", self.prefix, error)

    def drop_expired(self, keep_ms: int) -> None:
        try:
            for prefix in drop_expired(self._checkpoints, self.prefix, keep_ms, self._wall_ms()):
                _log.info("checkpoints of %s are removed: it succeeded long ago", prefix)
        except (OSError, GearpyError) as error:
            _log.warning("old checkpoints stay: %s", error)

    @property
    def place(self) -> str:
        return self._checkpoints.place

    @property
    def are_in_memory(self) -> bool:
        return self._checkpoints.is_in_memory

    @property
    def keep_quarantine(self) -> bool:
        return self._checkpoints.outlive_master

    @property
    def quarantine(self) -> KeptQuarantine:
        return KeptQuarantine(self._opened.state)

    @property
    def drain(self) -> DrainView:
        return DrainView(self._opened.state)

    def ask_drain(self, savepoint: str) -> None:
        if savepoint:
            self.check_free(savepoint)
        self._opened.append(self.drain.write(savepoint))

    def end_drain(self, epochs: Mapping[int, int]) -> str:
        name = self.drain.savepoint
        if name and epochs:
            self._save(name, tuple(e for e in self.manifests() if epochs.get(e.region) == e.epoch))
        return name if epochs else ""

    def stored_ms(self, region: int, epoch: int) -> int:
        found = self._opened.state.find(EPOCH, f"{region}/{epoch}")
        return found.timestamp_ms if found else 0

    def owns(self, location: str) -> bool:
        return location.startswith(f"{self.prefix}/")

    @property
    def _opened(self) -> CoordinatorLog:
        assert self._log is not None, "open() comes first"
        return self._log

    def _adopt(
        self,
        log: CoordinatorLog,
        other: CoordinatorState,
        resume_from: str,
        version: DagVersion,
        dag: Dag,
    ) -> None:
        point = resume_from.partition("+")[0]
        adopted, overrides, graph = self._chosen(other, ResumePoint.parse(resume_from), point)
        if not adopted and resume_from.endswith(RESTART) and graph is not None:
            return  # It was stopped before its first epoch.
        if graph is None:
            raise ConfigError(
                f"there is nothing of {point.partition('@')[0]} in checkpoint store "
                f"{self._checkpoints.place} to go on from: is the folder mounted, and the same as "
                "before?"
            )
        if not adopted:
            raise ConfigError(f"there is no complete epoch of {point} to go on from")
        if not is_same_program(graph, version):
            check_moves(graph.layout, layout_of(dag), allows_drop=resume_from.endswith(ALLOW_DROP))
            moved = migrate(
                self._checkpoints,
                adopted,
                [each for of_region in overrides.values() for each in of_region],
                old=graph.layout,
                dag=dag,
                prefix=self.prefix,
            )
            adopted = list(moved.manifests)
            overrides = {}
            for manifest in adopted:
                tasks = {task for file in manifest.snapshots for task in file.tasks}
                overrides[manifest.region] = tuple(
                    each for each in moved.overrides if each.task_id in tasks
                )
        mine, places = EpochManifests(log.state), SourcePlaces(log.state)
        drafts = [each for manifest in adopted for each in mine.messages_for(manifest, ())]
        drafts += [
            places.override(each, epoch=manifest.epoch)
            for manifest in adopted
            for each in overrides[manifest.region]
        ]
        if self.keep_quarantine:
            kept, here = KeptQuarantine(other).read(), KeptQuarantine(log.state)
            now = [moved_record(each, graph.layout, layout_of(dag)) for each in kept]
            drafts += [here.write(each.record, is_wanted=each.is_wanted) for each in now]
        log.append(drafts)

    def _chosen(
        self, other: CoordinatorState, point: ResumePoint, text: str
    ) -> tuple[list[Manifest], dict[int, tuple[TaskOffsets, ...]], DagVersion | None]:
        if point.savepoint:
            try:
                savepoint = read_savepoint(self._checkpoints, point.prefix, point.savepoint)
            except SnapshotDamaged as error:
                raise ConfigError(f"there is no savepoint {text} to go on from") from error
            return (list(savepoint.manifests), dict.fromkeys(savepoint.epochs, ()), savepoint.graph)
        view, places = EpochManifests(other), SourcePlaces(other)
        epoch = "" if point.epoch is None else str(point.epoch)
        found = [_chosen(view.manifests(region), epoch, text) for region in view.regions()]
        overrides = {
            manifest.region: places.overrides(
                [task for file in manifest.snapshots for task in file.tasks], epoch=manifest.epoch
            )
            for manifest in found
        }
        return found, overrides, next(reversed(DagVersions(other).read()), None)


def _config_of_submission(
    state: CoordinatorState,
    config: Mapping[str, str],
    other: CoordinatorState,
    resume_from: str,
    known_launch: int,
) -> list[CoordinatorMessage]:
    """Return the configuration of a first launch as messages; ``other``: it goes on from that.

    What is submitted counts more, but for a restart, which must not undo changes in the log.
    """
    if DagVersions(state).read():
        if known_launch:
            return []
        # A run that is resumed.
        return ConfigView(state).write(inherited(config, ConfigView(state).read()))
    if resume_from.endswith(RESTART) and DagVersions(other).read():
        config = of_submission(config)
    return ConfigView(state).write(inherited(config, ConfigView(other).read()))


def dag_version(dag: Dag) -> DagVersion:
    return DagVersion(dag.version, dag.structural_hash(), tuple(dag.description), layout_of(dag))


def is_same_program(old: DagVersion, new: DagVersion) -> bool:
    return old.structural_hash == new.structural_hash and _kept(old) == _kept(new)


def _kept(version: DagVersion) -> set[tuple[str, int, str]]:
    return {
        (name, place.processor, place.step.keeps)
        for name, place in version.layout.items()
        if place.step.keeps
    }


def _chosen(manifests: Sequence[Manifest], epoch: str, resume_from: str) -> Manifest:
    found = [each for each in manifests if epoch in {"", str(each.epoch)}]
    if not found:
        there = ", ".join(str(each.epoch) for each in manifests)
        raise ConfigError(f"checkpoint {resume_from} is not there; complete epochs are {there}")
    return found[-1]
