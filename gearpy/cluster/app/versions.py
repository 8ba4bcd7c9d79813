"""The versions of an application's program: planned, put in place, tried, gone back to."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from gearpy.cluster.app.checkpoints import AppCheckpoints, FoundEpochs, dag_version, is_same_program
from gearpy.cluster.checkpoints.migration import check_moves
from gearpy.cluster.programs.artifacts import embedded_here
from gearpy.cluster.programs.outline import LoadedProgram, LoadProgram, ProgramOutline
from gearpy.core.app.application import ApplicationCore
from gearpy.core.app.decisions import Command, GoBack, PutInPlace
from gearpy.core.coordinator.versions import ProgramVersion
from gearpy.core.dag.graph import Dag, StepSpec, birth_of_change, regions_of
from gearpy.core.dag.state_moves import layout_of, state_moves, untouched_regions
from gearpy.core.epoch.epochs import Manifest
from gearpy.core.scaling.autoscale import AUTOSCALE
from gearpy.core.scaling.bounds import bounds_by_id, with_bounds
from gearpy.errors import ConfigError, GearpyError, LogBroken, OperatorError
from gearpy.ids import AppId, ExecutorId, ProcessorId
from gearpy.messages.app import SnapshotFile
from gearpy.messages.client import (
    Artifact,
    PlannedMove,
    UpdateApplication,
    UpdatePlanned,
    VersionSummary,
)
from gearpy.messages.cluster import LaunchExecutor
from gearpy.messages.summaries import ChangeSummary, ScaleBounds
from gearpy.task.api.application import steps_scaled
from gearpy.views import text

_log = logging.getLogger(__name__)

_SUBMITTED: Final = "submitted"
#: Says how the code of a processor of before differs from that of one of now; empty if it does not.
#: And whether that is its own difference, and not only that of one before it.
_Difference: TypeAlias = Callable[[ProcessorId, ProcessorId], tuple[str, bool]]


class LoadedVersion(Struct, frozen=True, kw_only=True):
    """A version of the program: its outline, and its graph under the version's number."""

    artifact: Artifact
    outline: ProgramOutline
    dag: Dag


class PlannedVersion(Struct, frozen=True, kw_only=True):
    """A version that is to be put in place, and the answer to who asked for it.

    ``kept``: the regions that it does not touch.
    """

    version: ProgramVersion
    kept: frozenset[int]
    loaded: LoadedVersion
    answer: UpdatePlanned


class AppVersions:
    """Keeps the versions of the program of one application in its coordinator log.

    After `LogBroken` a change may or may not be in the log: the same is called again, and nothing
    else.
    """

    def __init__(
        self,
        checkpoints: AppCheckpoints,
        submitted: Artifact,
        *,
        load: LoadProgram,
        wall_ms: Callable[[], int],
    ) -> None:
        self._checkpoints = checkpoints
        self._submitted = submitted
        self._load = load
        self._wall_ms = wall_ms
        self._surplus: list[SnapshotFile] = []  # These go once the trial has passed.
        self._appended: list[SnapshotFile] | None = None  # A switch that may be in the log.
        self._gone_back: LoadedVersion | None = None  # The same, of a switch back.
        self._given_up: dict[int, ProgramVersion] = {}  # The log may be away as they are.
        self._unloadable: tuple[int, str] | None = None
        self._before: LoadedVersion | None = None  # That of before, while one is on trial.
        self.running: LoadedVersion | None = None  #: The one that runs.
        self.planned: PlannedVersion | None = None  #: The one to be put in place.

    # -- questions -------------------------------------------------------------------------

    @property
    def all(self) -> list[ProgramVersion]:
        known = [self._here(each) for each in self._checkpoints.versions.read()]
        return known or [self._first(self._submitted)]

    @property
    def current(self) -> ProgramVersion:
        found = self._checkpoints.versions.current
        return self._first(self._submitted) if found is None else self._here(found)

    @property
    def is_switching(self) -> bool:
        return self._appended is not None or self._gone_back is not None

    def summaries(self) -> tuple[VersionSummary, ...]:
        return tuple(_summary(self._given_up.get(each.number, each)) for each in self.all)

    def under_way(self, core: ApplicationCore) -> ChangeSummary | None:
        succession = core.succession
        if not (doing := succession.doing):
            return None
        version = self.current if self.planned is None else self.planned.version
        return ChangeSummary(
            version=version.number,
            change=version.change,
            doing=doing,
            by=version.by,
            at_ms=version.at_ms,
            at_event_ms=version.at_event_ms,
            may_be_called_off=self.planned is not None and succession.may_be_called_off,
        )

    def launch_like(
        self, launch: LaunchExecutor, core: ApplicationCore | None, executor_id: ExecutorId
    ) -> LaunchExecutor:
        planned = self.planned
        if planned is None or core is None or executor_id not in core.succession.wanted:
            return launch
        return replace(launch, artifact=planned.version.artifact)

    def load_stored(self) -> LoadedVersion:
        """Load the version that an app master begins with.

        That is the one before one on trial that cannot be loaded: see `give_up_unloadable`.
        """
        self._unloadable = None
        stored = self._checkpoints.stored_version()
        if stored is None:
            return self._loaded(self._first(self._submitted))
        try:
            return self._loaded(self._here(stored))
        except GearpyError as error:
            if stored.state != "trial":
                raise
            self._unloadable = (stored.number, str(error))
            before = self._checkpoints.stored_version(stored.base_of)
            try:
                return self._loaded(self._here(before) if before else self._first(self._submitted))
            except GearpyError as also:
                raise ConfigError(no_way_back(str(error), stored.base_of, also)) from also

    def give_up_unloadable(self) -> tuple[LoadedVersion, FoundEpochs] | None:
        """Put the version before in place if the one on trial could not be loaded; else None."""
        number, cause = self._unloadable or (None, "")
        current = self.current
        if current.number != number:
            return None
        _log.warning("version %d cannot be loaded: %s", number, cause)
        begun = max((each.epoch for each in current.base), default=0)
        try:
            return self.go_back(cause, first=begun + 1)
        except LogBroken:
            self._gone_back = None
            raise

    def is_trial(self, manifests: Sequence[Manifest]) -> bool:
        """Tell whether the current version has stored no epoch of its own yet."""
        current = self.current
        newest = max((each.attempt for each in current.base), default=0)
        begun = (each for each in manifests if each.region not in current.kept)
        return current.state == "trial" and all(each.attempt <= newest for each in begun)

    # -- a change --------------------------------------------------------------------------

    def wanted(
        self, core: ApplicationCore, message: UpdateApplication
    ) -> tuple[Artifact, Artifact | None]:
        refusal = core.why_unchangeable()
        if (names := self._checkpoints.epochs.wanted) and not refusal:
            refusal = f"savepoint {names[0]} is being made: ask again when it is there"
        if refusal:
            raise ConfigError(f"application {message.app_id} cannot be changed now: {refusal}")
        artifact, _ = self._wanted(message, core.dag)
        return artifact, self._compared_with(artifact)

    def plan(self, message: UpdateApplication, dag: Dag, program: LoadedProgram) -> PlannedVersion:
        artifact, change = self._wanted(message, dag)
        version = ProgramVersion(
            number=self.all[-1].number + 1,
            artifact=artifact,
            change=change,
            by=message.by.user,
            at_ms=self._wall_ms(),
            reason=message.reason,
            base_of=self.current.number,
            executors=message.executors,
        )
        loaded = _as_version(program, version.number)
        at_ms = message.at_event_ms
        if at_ms is None and message.artifact is not None:
            at_ms = birth_of_change(dag, loaded.dag)
        if at_ms is not None:
            change = f"{change} at {text.time(at_ms)}"
            version = replace(version, change=change, state="waiting", at_event_ms=at_ms)
        difference = _difference_from(dag, program)
        return self._planned(version, loaded, dag, message, difference)

    def _planned(
        self,
        version: ProgramVersion,
        loaded: LoadedVersion,
        dag: Dag,
        message: UpdateApplication,
        difference: _Difference,
    ) -> PlannedVersion:
        moves = state_moves(layout_of(dag), layout_of(loaded.dag))
        kept = untouched_regions(dag, loaded.dag, lambda pid: not difference(pid, pid)[0])
        answer = UpdatePlanned(
            app_id=message.app_id,
            version=version.number,
            moves=tuple(
                PlannedMove(
                    step=each.id,
                    name=each.name,
                    fate=each.fate,
                    is_lost=each.is_lost,
                    text=str(each),
                )
                for each in moves
            ),
            is_same=is_same_program(dag_version(dag), dag_version(loaded.dag)),
            refusal=_refusal(dag, loaded.dag, allows_drop=message.allows_drop),
            goes_on=tuple(_steps_of(loaded.dag, kept)),
            differences=tuple(_replaced(dag, loaded.dag, difference)),
            at_event_ms=version.at_event_ms,
        )
        return PlannedVersion(
            version=replace(version, kept=tuple(sorted(kept))),
            kept=kept,
            loaded=loaded,
            answer=answer,
        )

    def begin(
        self, core: ApplicationCore, message: UpdateApplication, program: LoadedProgram
    ) -> PlannedVersion:
        """Plan a change, and note that it begins: it is `planned` then."""
        if self.wanted(core, message) != (program.artifact, program.compared):
            raise ConfigError("another version has begun while this one was loaded: ask again")
        planned = self.plan(message, core.dag, program)
        at_ms = planned.version.at_event_ms
        if at_ms is not None and (refusal := core.why_not_at(at_ms, planned.kept)):
            raise ConfigError(f"it cannot be changed at {text.time(at_ms)}: {refusal}")
        if not message.is_trial_run and not planned.answer.refusal:
            known = self._checkpoints.versions.read()
            first = [] if known else [self._first(self._submitted)]
            versions = [*first, replace(planned.version, state="preparing")]
            try:
                self._checkpoints.note_versions(versions)
            except LogBroken:
                # Its user is told that it is refused, but the next append brings it along. If none
                # does, a later launch finds a version in preparation at most, and gives it up.
                refused = replace(
                    versions[-1], state="failed", reason="it could not be stored in time"
                )
                with suppress(LogBroken):
                    self._checkpoints.note_versions([refused])
                raise
            self.planned = planned
        return planned

    def start(self, core: ApplicationCore, now_ms: int) -> Iterator[Command]:
        """Have a core prepare the version that `begin` has planned, and so has not refused.

        From now on a later launch waits on for the event time of a version that has one.
        """
        planned = self.planned
        if planned is not None and planned.version.state == "waiting":
            with suppress(LogBroken):  # The next append brings it along.
                self._checkpoints.note_versions([planned.version])
        yield from self.change(core, now_ms)

    def resume(self, core: ApplicationCore, app_id: AppId, now_ms: int) -> Iterator[Command]:
        version = self._checkpoints.versions.waiting
        if version is None:
            return
        version, asked = self._here(version), UpdateApplication(app_id=app_id, allows_drop=True)
        try:
            program = self._load(version.artifact, self._compared_with(version.artifact))
            loaded = _as_version(program, version.number)
            difference = _difference_from(core.dag, program)
            self.planned = self._planned(version, loaded, core.dag, asked, difference)
        except GearpyError as error:
            _log.warning("application %s is not changed: %s", app_id, error)
            failed = replace(version, state="failed", reason=str(error))
            with suppress(LogBroken):  # The next append brings it along.
                self._checkpoints.note_versions([failed])
        else:
            yield from self.change(core, now_ms)

    def change(self, core: ApplicationCore, now_ms: int) -> Iterable[Command]:
        planned = self.planned
        assert planned is not None, "it was planned"
        return core.change(
            planned.loaded.dag,
            now_ms,
            executors=planned.version.executors,
            kept=planned.kept,
            moves=not planned.answer.is_same,
            at_ms=planned.version.at_event_ms,
        )

    def bind(self, message: UpdateApplication, dag: Dag) -> LoadedVersion:
        """Let the version that runs have other bounds for autoscale; nothing else changes."""
        if message.at_event_ms is not None:
            raise ConfigError(
                "bounds of autoscale cannot wait for an event time: leave out the time, or give a "
                "number of tasks"
            )
        current, running = self.current, self.running
        assert running is not None, "it runs"
        bounds = bounds_by_id(dag, message.bounds)
        artifact = _bounded(current.artifact, bounds)
        bound = replace(running, artifact=artifact, dag=with_bounds(running.dag, bounds))
        if not message.is_trial_run:
            self._checkpoints.note_versions([replace(current, artifact=artifact)])
            self.running = bound
        return bound

    def follow(
        self, core: ApplicationCore, decided: PutInPlace | GoBack
    ) -> tuple[LoadedVersion, FoundEpochs] | None:
        """Put the version in place that follows a core; None if nothing is to follow any more."""
        if not core.may_be_followed:
            return None
        if isinstance(decided, GoBack):
            _log.warning("version %d has failed: %s", core.dag.version, decided.cause.cause)
            return self.go_back(decided.cause.cause, first=core.regions.unused_epoch)
        planned = self.planned
        if planned is None or core.succession.change is None:
            return None
        last = core.last_manifests()
        first = core.regions.unused_epoch
        return planned.loaded, self.put_in_place(last, core.dag, first=first)

    def put_in_place(self, manifests: Sequence[Manifest], old: Dag, *, first: int) -> FoundEpochs:
        """Let the planned version go on from the last epochs of the one before."""
        planned = self.planned
        assert planned is not None, "a change is under way"
        self._checkpoints.settle()
        if self._appended is None:
            kept = planned.kept
            moved = self._checkpoints.migrated(manifests, old, planned.loaded.dag, kept=kept)
            now = replace(
                planned.version,
                state="trial",
                epoch=max((each.epoch for each in moved), default=0),
                first=first,
                base=tuple(manifests),
            )
            before = replace(self.current, state="replaced", base=())
            self._appended = _without(self._files(but=kept), [*manifests, *moved])
            self._checkpoints.begin_version([before, now], planned.loaded.dag, moved, kept=kept)
        unneeded, self._appended, self.planned = self._appended, None, None
        self._before = self.running
        self._checkpoints.drop(unneeded)
        found = self._checkpoints.found(planned.loaded.dag)
        self._surplus = _without(_files_of(manifests), found.manifests)
        return found

    def give_up(self, reason: str) -> None:
        """Note that the planned version never began."""
        planned, self.planned = self.planned, None
        if planned is None:
            return
        failed = replace(planned.version, state="failed", reason=reason)
        self._given_up[failed.number] = failed
        unneeded, self._appended = self._appended, None
        if unneeded is not None:
            self._take_back(failed, unneeded)
        else:
            self._checkpoints.note_versions([failed])

    def _take_back(self, failed: ProgramVersion, files: Sequence[SnapshotFile]) -> None:
        self._checkpoints.settle()
        put, running = self.current, self.running
        assert running is not None, "it was to be replaced"
        if put.number != failed.number:
            self._checkpoints.note_versions([failed])
            return
        again = next(each for each in self.all if each.number == put.base_of)
        files = _without([*files, *self._files(but=put.kept)], put.base)
        self._checkpoints.begin_version(
            [replace(again, state="running"), failed], running.dag, put.base, kept=put.kept
        )
        self._checkpoints.drop(files)

    def tried(self, untried: str) -> Iterator[ProgramVersion]:
        current = self.current
        if current.state == "trial":
            reason = "; ".join(each for each in (current.reason, untried) if each)
            yield replace(current, state="running", reason=reason)

    def passed(self) -> None:
        current, self._before = self.current, None
        if current.state == "trial" or current.base:
            kept = replace(current, state="running", base=())
            self._checkpoints.note_versions([kept])
        files, self._surplus = self._surplus, []
        self._checkpoints.drop(files)

    def go_back(self, reason: str, *, first: int) -> tuple[LoadedVersion, FoundEpochs]:
        """Put the version before in place again, from where it has ended."""
        self._checkpoints.settle()  # An epoch that comes into the log yet has to leave it.
        if self._gone_back is None:
            failed, versions = self.current, self.all
            base = next(each for each in versions if each.number == failed.base_of)
            again = ProgramVersion(
                number=versions[-1].number + 1,
                artifact=base.artifact,
                change=f"back to version {base.number}",
                at_ms=self._wall_ms(),
                state="running",
                epoch=max((each.epoch for each in failed.base), default=0),
                first=first,
                base_of=base.number,
            )
            loaded = self._loaded_again(again)
            self._surplus = _without(self._files(but=failed.kept), failed.base)
            over = replace(failed, state="failed", reason=reason, base=())
            self._gone_back = loaded
            self._checkpoints.begin_version(
                [over, again], loaded.dag, failed.base, kept=failed.kept
            )
        loaded, self._gone_back = self._gone_back, None
        files, self._surplus = self._surplus, []
        self._checkpoints.drop(files)
        return loaded, self._checkpoints.found(loaded.dag)

    # --------------------------------------------------------------------------------------

    def is_in_place(self, message: UpdateApplication, dag: Dag) -> bool:
        is_more = message.artifact or message.executors or message.version is not None
        if is_more or not message.scale:
            return False
        artifact, _ = self._wanted(message, dag)
        tasks = {
            step.id: each.parallelism for each in dag.processors.values() for step in each.steps
        }
        wanted = steps_scaled(dict(message.scale), _steps(dag))
        return artifact.bounds == self.current.artifact.bounds and wanted.items() <= tasks.items()

    def _wanted(self, message: UpdateApplication, dag: Dag) -> tuple[Artifact, str]:
        current = self.current.artifact
        if message.artifact is not None:
            artifact = replace(message.artifact, until=current.until)
            return artifact, message.change or f"update {message.artifact.filename}"
        if message.version is not None:
            numbers = [each.number for each in self.all]
            if message.version not in numbers:
                known = ", ".join(map(str, numbers))
                raise ConfigError(f"there is no version {message.version}; there are {known}")
            wanted = next(each for each in self.all if each.number == message.version)
            return wanted.artifact, f"back to version {wanted.number}"
        if not message.scale and not message.executors:
            raise ConfigError("nothing was said that is to change")
        steps = _steps(dag)
        tasks = steps_scaled(dict(message.scale), steps)
        scale = tuple(sorted((dict(current.scale) | tasks).items()))
        bounds = bounds_by_id(dag, message.bounds)
        if message.by.user != AUTOSCALE:  # A user's choice stays.
            chosen = {step.id for step in steps if step.bounds is not None} | {
                *dict(current.bounds)
            }
            fixed = (each for each in tasks.items() if each[0] in chosen)
            bounds = (*((step, ScaleBounds(least=n, most=n)) for step, n in fixed), *bounds)
        told = [f"{name}={number}" for name, number in message.scale]
        if not told:
            told = [f"executors={message.executors}"]
        scaled = replace(current, scale=scale)
        return _bounded(scaled, bounds), f"scale {' '.join(told)}"

    def _compared_with(self, artifact: Artifact) -> Artifact | None:
        running = self.current.artifact
        return None if _code_of(artifact) == _code_of(running) else running

    def _first(self, artifact: Artifact) -> ProgramVersion:
        return ProgramVersion(number=0, artifact=artifact, change=_SUBMITTED, state="running")

    def _here(self, version: ProgramVersion) -> ProgramVersion:
        return replace(version, artifact=embedded_here(version.artifact, self._submitted))

    def _loaded_again(self, version: ProgramVersion) -> LoadedVersion:
        """Load a version that has run; what is known of it will do if its process is in trouble."""
        try:
            return self._loaded(version)
        except OperatorError as error:
            before = self._before
            if before is None or before.artifact != version.artifact:
                raise
            _log.warning("version %d is not loaded again: %s", version.base_of, error)
            return replace(before, dag=Dag(version.number, before.dag.processors, before.dag.edges))

    def _loaded(self, version: ProgramVersion) -> LoadedVersion:
        return _as_version(self._load(version.artifact, None), version.number)

    def _files(self, *, but: Collection[int]) -> list[SnapshotFile]:
        return _files_of([each for each in self._checkpoints.manifests() if each.region not in but])


def _as_version(program: LoadedProgram, number: int) -> LoadedVersion:
    outline = program.outline
    return LoadedVersion(artifact=program.artifact, outline=outline, dag=outline.dag(number))


def _difference_from(running: Dag, program: LoadedProgram) -> _Difference:
    if program.compared is None:
        return lambda *_: ("", False)
    return partial(program.differences.between, running)


def no_way_back(cause: str, before: int, error: Exception) -> str:
    return f"{cause}; version {before} cannot take its place again: {error}"


def _steps(dag: Dag) -> list[StepSpec]:
    return [step for spec in dag.processors.values() for step in spec.steps]


def _refusal(old: Dag, new: Dag, *, allows_drop: bool) -> str:
    try:
        check_moves(layout_of(old), layout_of(new), allows_drop=allows_drop)
    except ConfigError as error:
        return str(error)
    return ""


def _bounded(artifact: Artifact, bounds: Iterable[tuple[str, ScaleBounds]]) -> Artifact:
    merged = dict(artifact.bounds) | dict(bounds)
    return replace(artifact, bounds=tuple((step, merged[step]) for step in sorted(merged)))


def _code_of(artifact: Artifact) -> Artifact:
    return replace(artifact, scale=(), bounds=())


def _replaced(old: Dag, new: Dag, difference: _Difference) -> Iterator[str]:
    """Yield the steps with other code, and the difference; one reason is said once."""
    before, now = layout_of(old), layout_of(new)
    own: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for pid in new.order:
        both = [each for each in now.values() if each.processor == pid and each.step.id in before]
        if not both:
            continue
        why, is_own = difference(before[both[0].step.id].processor, pid)
        if why:
            named = (own if is_own else others).setdefault(why, [])
            named += (each.step.name or each.step.kind for each in both)
    yield from (f"{', '.join(names)}: {why}" for why, names in (own or others).items())


def _steps_of(dag: Dag, regions: Collection[int]) -> Iterator[str]:
    for number, pids in enumerate(regions_of(dag)):
        for pid in pids if number in regions else ():
            spec = dag.processors[pid]
            yield from (step.name for step in spec.steps) if spec.steps else (spec.name,)


def _files_of(manifests: Sequence[Manifest]) -> list[SnapshotFile]:
    return [file for each in manifests for file in each.snapshots]


def _without(files: Sequence[SnapshotFile], manifests: Sequence[Manifest]) -> list[SnapshotFile]:
    needed = {file.location for file in _files_of(manifests)}
    return list({each.location: each for each in files if each.location not in needed}.values())


def _summary(version: ProgramVersion) -> VersionSummary:
    artifact = version.artifact
    return VersionSummary(
        number=version.number,
        filename=artifact.filename or (artifact.location if artifact.kind == "file" else ""),
        args=artifact.args,
        scale=artifact.scale,
        change=version.change,
        by=version.by,
        at_ms=version.at_ms,
        state=version.state,
        reason=version.reason,
        epoch=version.epoch,
    )
