"""Reads the stored epochs of applications, without a cluster, and changes nothing.

Which applications a store has, their epochs, what is in them, and whether that is whole. Samza:
`CheckpointTool`.
"""

import base64
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from gearpy.core.coordinator.log import EPOCH, CoordinatorState
from gearpy.core.coordinator.views import ApplicationView, DagVersions, EpochManifests, SourcePlaces
from gearpy.core.epoch.epochs import Manifest
from gearpy.errors import ConfigError, GearpyError, ProtocolError, SnapshotDamaged
from gearpy.ids import AppId, TaskId
from gearpy.messages.app import SnapshotFile
from gearpy.storage.changelog import rebuilt
from gearpy.storage.checkpoints import Checkpoints, checkpoints_at
from gearpy.storage.coordinator_log import read_log
from gearpy.storage.savepoints import read_savepoints
from gearpy.storage.snapshot_files import SnapshotChain
from gearpy.task.api.snapshots import decode_state

#: What is below `LaunchExecutor.checkpoints`; a store may be of one cluster alone.
_PREFIX: Final = re.compile(r"((?:[^/]+/)?app([0-9]{1,18}))/", re.ASCII)
_DIGITS_MAX: Final = 18
_SHOWN_MAX: Final = 10
#: A line of `Dag.description` about a processor; the name may be anything.
_PROCESSOR: Final = re.compile(r"(\d+) (?!-> )(.+?) x\d+(?: \(| life | reads |$)", re.ASCII)
#: Epochs of an application that runs may go while they are read, even all of them.
_LOOKS_MAX: Final = 5


class EpochSummary(Struct, frozen=True, kw_only=True):
    """A complete epoch. ``stored_ms`` is when it became complete.

    ``cut_time_ms`` is the event time that it ends at; None if sources ended it where they were.
    """

    region: int
    epoch: int
    attempt: int
    clock_ms: int
    cut_time_ms: int | None
    files: int
    size_bytes: int
    stored_ms: int
    newest: bool


class TaskContents(Struct, frozen=True, kw_only=True):
    """The part of an epoch that belongs to one task, without cells that later files replace."""

    task: TaskId
    operator: str
    head_bytes: int
    state_bytes: int


class Unreadable(Struct, frozen=True):
    """A place that only the program itself can read, as bytes."""

    data: bytes


class EpochContents(Struct, frozen=True, kw_only=True):
    """The contents of an epoch. ``offsets``: places of sources by task; None: finished.

    ``overrides`` are the places that were set by hand, and count more. ``damage`` says why the
    sizes of tasks are not known.
    """

    summary: EpochSummary
    offsets: Mapping[TaskId, Mapping[str, Any]]
    overrides: Mapping[TaskId, Mapping[str, Any]]
    tasks: Sequence[TaskContents]
    files: Sequence[SnapshotFile]
    damage: str = ""


class StoredEpochs:
    """The complete epochs of an application, as its coordinator log has them, or a savepoint.

    Those of savepoints of an earlier graph are left out: steps would be looked for in other tasks.
    """

    def __init__(self, checkpoints: Checkpoints, prefix: str) -> None:
        self.checkpoints = checkpoints
        self.prefix = prefix
        self.state = read_log(checkpoints, prefix).state
        view = EpochManifests(self.state)
        #: By region, the oldest first.
        self.manifests = {region: view.manifests(region) for region in view.regions()}
        graph = next(reversed(DagVersions(self.state).read()), None)
        self._named = {
            (manifest.region, manifest.epoch): (manifest, savepoint.stored_ms)
            for savepoint in read_savepoints(checkpoints, prefix)
            for manifest in savepoint.manifests
            if graph is not None and savepoint.graph.layout == graph.layout
        }
        self._operators = _operators(self.state)

    def find(self, epoch: int | None = None) -> list[Manifest]:
        if epoch is None:
            found = [each[-1] for each in self.manifests.values() if each]
        else:
            every = {(each.region, each.epoch): each for each in self}
            every |= {place: named for place, (named, _) in self._named.items()}
            found = [every[place] for place in sorted(every) if place[1] == epoch]
        if not found:
            known = {each.epoch for each in self} | {place[1] for place in self._named}
            there = ", ".join(map(str, sorted(known)))
            wanted = "complete epoch" if epoch is None else f"epoch {epoch}"
            raise ConfigError(f"{self.prefix} has no {wanted}; there are: {there or 'none'}")
        return found

    def __iter__(self) -> Iterator[Manifest]:
        return (each for manifests in self.manifests.values() for each in manifests)

    def operator(self, task: TaskId) -> str:
        return self._operators.get(task.processor, "")

    def summary(self, manifest: Manifest) -> EpochSummary:
        stored = self.state.find(EPOCH, f"{manifest.region}/{manifest.epoch}")
        _, named_ms = self._named.get((manifest.region, manifest.epoch), (None, 0))
        return EpochSummary(
            region=manifest.region,
            epoch=manifest.epoch,
            attempt=manifest.attempt,
            clock_ms=manifest.clock_ms,
            cut_time_ms=manifest.cut_time_ms,
            files=len(manifest.chain),
            size_bytes=manifest.total_bytes,
            stored_ms=stored.timestamp_ms if stored else named_ms,
            newest=manifest in self.manifests.get(manifest.region, [])[-1:],
        )

    def places(self, manifest: Manifest) -> dict[TaskId, dict[str, bytes]]:
        return {each.task_id: dict(each.offsets) for each in manifest.offsets}

    def overrides(self, manifest: Manifest) -> dict[TaskId, dict[str, bytes]]:
        found = SourcePlaces(self.state).overrides(
            {task for file in manifest.snapshots for task in file.tasks}, epoch=manifest.epoch
        )
        return {each.task_id: dict(each.offsets) for each in found}

    def contents(self, manifest: Manifest) -> EpochContents:
        tasks, damage = list[TaskContents](), ""
        try:
            with SnapshotChain(self.checkpoints, manifest.chain) as chain:
                for task in sorted(chain.tasks):
                    size = chain.size(task)
                    tasks.append(
                        TaskContents(
                            task=task,
                            operator=self.operator(task),
                            head_bytes=size.head_bytes,
                            state_bytes=size.state_bytes,
                        )
                    )
        except (SnapshotDamaged, OSError) as error:
            damage = str(error)
        return EpochContents(
            summary=self.summary(manifest),
            offsets=_decoded(self.places(manifest)),
            overrides=_decoded(self.overrides(manifest)),
            tasks=tasks,
            files=manifest.chain,
            damage=damage,
        )


def open_store(place: str, *, named_by: str = "--checkpoints or checkpoint.folder") -> Checkpoints:
    if "://" not in place and not Path(place).expanduser().is_dir():
        raise ConfigError(
            f"checkpoint store {place} is not there: name the folder, as this machine sees it, "
            f"with {named_by}"
        )
    try:
        store = checkpoints_at(place)
        store.folder.names()
        return store
    except OSError as error:
        raise ConfigError(f"checkpoint store {place} cannot be read: {error}") from error


def stored_prefixes(checkpoints: Checkpoints, cluster: str = "") -> dict[str, AppId]:
    found = map(_PREFIX.match, checkpoints.names(cluster))
    pairs = {(AppId(int(each[2])), each[1]) for each in found if each is not None}
    return {prefix: app_id for app_id, prefix in sorted(pairs)}


def find_application(
    checkpoints: Checkpoints,
    wanted: str,
    *,
    cluster: str | None = None,
    else_try: str = "another store is named with --checkpoints",
) -> str:
    every = stored_prefixes(checkpoints)
    mine = [each for each in every if cluster in (None, each.rpartition("/")[0])]
    if wanted.isascii() and wanted.isdigit() and len(wanted) <= _DIGITS_MAX:
        known, shown = dict.fromkeys(every, ""), f"application {wanted}"
        found = [prefix for prefix in mine if every[prefix] == int(wanted)]
    else:
        known = {prefix: name_of(checkpoints, prefix) or f"app{every[prefix]}" for prefix in mine}
        shown = f"application {wanted!r}"
        found = [prefix for prefix in mine if known[prefix] == wanted]
    clusters = sorted({each.rpartition("/")[0] for each in found})
    if len(clusters) > 1:
        raise ConfigError(
            f"{shown} is in the checkpoint store for several clusters, "
            f"{_listed(each or repr(each) for each in clusters)}: choose one with --cluster"
        )
    if not found:
        whose = "" if cluster is None else f" of cluster {cluster!r}"
        there = _listed(dict.fromkeys(name or prefix for prefix, name in known.items()))
        raise ConfigError(
            f"there is nothing of {shown}{whose} in the checkpoint store, only of: "
            f"{there or 'none'}; what succeeded is deleted after checkpoint.keep-succeeded hours; "
            f"{else_try}"
        )
    return found[-1]


def name_of(checkpoints: Checkpoints, prefix: str) -> str:
    try:
        return ApplicationView(read_log(checkpoints, prefix).state).name
    except GearpyError:
        return ""


def _listed(texts: Iterable[str]) -> str:
    every = list(texts)
    more = f" and {len(every) - _SHOWN_MAX} more" if len(every) > _SHOWN_MAX else ""
    return ", ".join(every[:_SHOWN_MAX]) + more


# -- is it whole -----------------------------------------------------------------------------


class EpochVerdict(Struct, frozen=True, kw_only=True):
    """Verdict: can an application go back to this epoch? ``damage`` has the error of each bad file.

    ``segments`` are those of the changelog, and ``changelog_damage`` says what is wrong with them.
    They matter only if a file is bad: with ``is_rebuildable`` they stand for it.
    """

    region: int
    epoch: int
    files: int
    damage: tuple[str, ...]
    segments: int = 0
    changelog_damage: tuple[str, ...] = ()
    is_rebuildable: bool = False

    @property
    def is_damaged(self) -> bool:
        return bool(self.damage or self.changelog_damage)

    @property
    def is_usable(self) -> bool:
        return not self.damage or self.is_rebuildable


def verify(stored: StoredEpochs, epoch: int | None = None) -> list[EpochVerdict]:
    """Read all files of all epochs, or of one; return the newest epochs first, by region.

    Where that one is damaged, older ones are looked at, up to one that is whole: a restart would
    go back to that. An application that runs deletes the files of epochs that it needs no more:
    what the log does not have any more when they were read is left out.
    """
    for _ in range(_LOOKS_MAX):
        known: dict[SnapshotFile, str] = {}  # Epochs have files in common.
        verdicts = list[EpochVerdict]()
        for newest in stored.find(epoch):
            manifests = stored.manifests[newest.region]
            for manifest in reversed(manifests[: manifests.index(newest) + 1]):
                verdicts.append(_verdict(stored.checkpoints, manifest, known))
                if epoch is not None and verdicts[-1].is_usable:
                    break
        if not any(each.is_damaged for each in verdicts):
            break
        stored = StoredEpochs(stored.checkpoints, stored.prefix)
        there = {(each.region, each.epoch) for each in stored}
        left = [e for e in verdicts if not e.is_damaged or (e.region, e.epoch) in there]
        if left:
            return left
    return verdicts


def _verdict(
    checkpoints: Checkpoints, manifest: Manifest, known: dict[SnapshotFile, str]
) -> EpochVerdict:
    for file in manifest.snapshots:
        if file not in known:
            known[file] = ""
            try:
                SnapshotChain(checkpoints, [file]).close()
            except (SnapshotDamaged, OSError) as error:
                known[file] = str(error)
    bad, is_rebuildable = [file for file in manifest.chain if known[file]], False
    if bad:
        damage = SnapshotDamaged(location=bad[0].location, reason="it is damaged")
        tasks = {task for file in bad for task in file.tasks}
        with suppress(SnapshotDamaged, OSError):
            heads, state = rebuilt(checkpoints, manifest.snapshots, tasks, damage)
            heads.close()
            state.close()
            is_rebuildable = True
    return EpochVerdict(
        region=manifest.region,
        epoch=manifest.epoch,
        files=len(manifest.chain),
        damage=tuple(known[file] for file in bad),
        segments=len(manifest.changelog),
        changelog_damage=tuple(found for file in manifest.changelog if (found := known[file])),
        is_rebuildable=is_rebuildable,
    )


# -- what has changed ------------------------------------------------------------------------


class PlaceChange(Struct, frozen=True, kw_only=True):
    """A partition of a source whose place is another one; None: finished, or not there."""

    task: TaskId
    operator: str
    partition: str
    old: Any
    new: Any


class TaskChange(Struct, frozen=True, kw_only=True):
    """The difference of a task between two epochs; each pair has the one and the other value.

    Cells are those of keyed state; ``state_bytes`` is what they take.
    """

    task: TaskId
    operator: str
    head_bytes: tuple[int, int]
    state_bytes: tuple[int, int]
    cells: tuple[int, int]
    added: int
    changed: int
    deleted: int


class EpochDifference(Struct, frozen=True, kw_only=True):
    """The changes in a region between two epochs; only places of sources that differ."""

    region: int
    old: int
    new: int
    offsets: Sequence[PlaceChange]
    tasks: Sequence[TaskChange]


def compare(stored: StoredEpochs, old: int, new: int) -> list[EpochDifference]:
    later = {each.region: each for each in stored.find(new)}
    pairs = [
        (before, later[before.region]) for before in stored.find(old) if before.region in later
    ]
    found = list[EpochDifference]()
    for before, after in pairs:
        with (
            SnapshotChain(stored.checkpoints, before.chain) as was,
            SnapshotChain(stored.checkpoints, after.chain) as now,
        ):
            tasks = [
                _task_change(task, stored.operator(task), was, now)
                for task in sorted(was.tasks | now.tasks)
            ]
        places = _changed_places(stored, before, after)
        found.append(
            EpochDifference(region=before.region, old=old, new=new, offsets=places, tasks=tasks)
        )
    return found


def _changed_places(stored: StoredEpochs, before: Manifest, after: Manifest) -> list[PlaceChange]:
    old, new = stored.places(before), stored.places(after)
    return [
        PlaceChange(
            task=task,
            operator=stored.operator(task),
            partition=name,
            old=decoded_place(was),
            new=decoded_place(now),
        )
        for task in sorted(old.keys() | new.keys())
        for name in sorted(old.get(task, {}).keys() | new.get(task, {}).keys())
        if (was := old.get(task, {}).get(name, b"")) != (now := new.get(task, {}).get(name, b""))
    ]


def _task_change(task: TaskId, operator: str, old: SnapshotChain, new: SnapshotChain) -> TaskChange:
    tally = Counter[str]()
    for group in sorted({*old.groups(task), *new.groups(task)}):
        was, now = old.cells(task, group), new.cells(task, group)
        kept = was.keys() & now.keys()
        tally.update(
            old_bytes=sum(map(len, was)) + sum(map(len, was.values())),
            new_bytes=sum(map(len, now)) + sum(map(len, now.values())),
            old_cells=len(was),
            new_cells=len(now),
            added=len(now) - len(kept),
            changed=sum(was[cell] != now[cell] for cell in kept),
            deleted=len(was) - len(kept),
        )
    return TaskChange(
        task=task,
        operator=operator,
        head_bytes=(_head_bytes(old, task), _head_bytes(new, task)),
        state_bytes=(tally["old_bytes"], tally["new_bytes"]),
        cells=(tally["old_cells"], tally["new_cells"]),
        added=tally["added"],
        changed=tally["changed"],
        deleted=tally["deleted"],
    )


def _head_bytes(chain: SnapshotChain, task: TaskId) -> int:
    return chain.size(task).head_bytes if task in chain.tasks else 0


# --------------------------------------------------------------------------------------------


def decoded_place(data: bytes) -> Any:
    try:
        return decode_state(data)
    except ProtocolError:
        return Unreadable(data)


def plain(value: Any) -> Any:
    """Return a value as JSON has it: an unknown one as text, or as bytes in base64."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case TaskId():
            return str(value)
        case bytes():
            return {"base64": base64.b64encode(value).decode()}
        case Unreadable():
            return plain(value.data)
    if (named := _named(value)) is not None:
        return {str(name): plain(each) for name, each in named.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else repr(value)


def _named(value: Any) -> Mapping[Any, Any] | None:
    if isinstance(value, dict):
        return value
    if isinstance(value, Struct):
        return asdict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return value._asdict() if isinstance(value, tuple) and hasattr(value, "_asdict") else None


def _decoded(places: Mapping[TaskId, Mapping[str, bytes]]) -> dict[TaskId, dict[str, Any]]:
    return {
        task: {name: decoded_place(data) for name, data in sorted(by_name.items())}
        for task, by_name in sorted(places.items())
    }


def _operators(state: CoordinatorState) -> dict[int, str]:
    versions = DagVersions(state).read()
    lines: Iterable[str] = versions[-1].description if versions else ()
    found = (_PROCESSOR.match(line) for line in lines)
    return {int(each[1]): each[2] for each in found if each is not None}
