"""Changes the stored epochs of a stopped application: places of sources, files, or everything.

Without a cluster: the caller makes sure that the application does not run.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from msgspec import Struct

from gearpy.cluster.checkpoints.reading import (
    StoredEpochs,
    Unreadable,
    decoded_place,
    plain,
    stored_prefixes,
)
from gearpy.core.coordinator.versions import Versions
from gearpy.core.coordinator.views import ApplicationView, SourcePlaces, task_of
from gearpy.core.epoch.epochs import Manifest
from gearpy.errors import ConfigError, ProtocolError, SnapshotDamaged
from gearpy.ids import TaskId
from gearpy.messages.app import TaskOffsets
from gearpy.storage.checkpoints import Checkpoints, orphans
from gearpy.storage.coordinator_log import SEGMENTS_MAX, CoordinatorLog, newest_launch, read_log
from gearpy.storage.savepoints import read_savepoints, savepoint_names
from gearpy.wire.values.payload import encode_value

#: Says of a message of the coordinator log that this tool has appended it.
SOURCE: Final = "gear checkpoint"
_FOLDERS: Final = ("changelog", "epochs")


# -- places of sources -----------------------------------------------------------------------


class PlannedPlace(Struct, frozen=True, kw_only=True):
    """The place from which a partition will be read, instead of ``old``; None: finished."""

    task: TaskId
    operator: str
    partition: str
    epoch: int
    old: Any
    new: Any


def plan_places(
    stored: StoredEpochs, wanted: Mapping[str, Mapping[str, Any]]
) -> list[PlannedPlace]:
    """Check places, given as JSON has them, for partitions of tasks such as ``1.0``.

    Those that are as they were are left out: `plain` of all, with one edited, will do.
    """
    known = {task: each for each in stored.find() for task in stored.places(each)}
    planned, mistakes = list[PlannedPlace](), list[str]()
    for text, places in wanted.items():
        try:
            task = task_of(text)
        except ProtocolError:
            task = None
        if task is None or task not in known:
            there = ", ".join(map(str, sorted(known))) or "none"
            mistakes.append(f"{text!r} is no task that reads a source; there are: {there}")
            continue
        for partition, place in places.items():
            try:
                planned.append(_planned(stored, known[task], task, partition, place))
            except ConfigError as error:
                mistakes += error.mistakes
    if mistakes:
        raise ConfigError(*mistakes)
    return [each for each in planned if each.new != each.old]


def set_places(
    stored: StoredEpochs,
    planned: Sequence[PlannedPlace],
    *,
    segments_max: int = SEGMENTS_MAX,
    wall_ms: Callable[[], int],
) -> None:
    log = CoordinatorLog(
        stored.checkpoints,
        stored.prefix,
        launch=newest_launch(stored.checkpoints, stored.prefix),
        source=SOURCE,
        wall_ms=wall_ms,
        segments_max=segments_max,
    )
    by_task: dict[tuple[TaskId, int], dict[str, bytes]] = {}
    for each in planned:
        by_task.setdefault((each.task, each.epoch), {})[each.partition] = encode_value(each.new)
    places = SourcePlaces(log.state)
    log.append(
        [
            places.override(TaskOffsets(task_id=task, offsets=offsets), epoch=epoch)
            for (task, epoch), offsets in by_task.items()
        ]
    )


def _planned(
    stored: StoredEpochs, manifest: Manifest, task: TaskId, partition: str, place: Any
) -> PlannedPlace:
    places = stored.places(manifest)[task]
    if partition not in places:
        raise ConfigError(
            f"task {task} reads no partition {partition!r}; it reads: {', '.join(sorted(places))}"
        )
    overridden = stored.overrides(manifest).get(task, {})
    old = decoded_place(overridden.get(partition, places[partition]))
    where = f"task {task}, partition {partition}"
    if place is None and old is not None:
        raise ConfigError(f"{where}: null is no place; it would stay where it is")
    return PlannedPlace(
        task=task,
        operator=stored.operator(task),
        partition=partition,
        epoch=manifest.epoch,
        old=old,
        new=old if place == plain(old) else _alike(old, place, where),
    )


def _alike(old: Any, new: Any, where: str) -> Any:
    """Return a place that came from JSON in the types of the one before: it knows no tuples."""
    match old, new:
        case None, _:
            return new
        case tuple(), list():
            return tuple(_alike_in(old, new, where))
        case list(), list():
            return [*_alike_in(old, new, where)]
        case dict(), dict():
            return {key: _alike(old.get(key), value, where) for key, value in new.items()}
        case float(), int() if not isinstance(new, bool):
            return float(new)
    if type(old) is not type(new):
        is_plain = isinstance(old, bool | int | float | str | list | tuple | dict)
        advice = "write one of the same kind" if is_plain else "JSON has nothing of that kind"
        shown = old if not isinstance(old, Unreadable) else "bytes"
        raise ConfigError(
            f"{where}: {new!r} cannot take the place of {shown!r} ({type(old).__name__}): {advice}"
        )
    return new


def _alike_in(old: Sequence[Any], new: Sequence[Any], where: str) -> Iterator[Any]:
    if len(old) != len(new):
        return iter(new)
    return (_alike(was, now, where) for was, now in zip(old, new, strict=True))


# -- files -----------------------------------------------------------------------------------


class Orphan(NamedTuple):
    """A file of an epoch, or a segment of the changelog, that is in no log.

    ``size_bytes`` is 0 if that cannot be told.
    """

    location: str
    size_bytes: int


def needed_files(checkpoints: Checkpoints) -> set[str]:
    """Return the files that the epochs and savepoints of all applications in a store need.

    An application may have gone on from another one, and need its files.
    """
    return {
        file for prefix in stored_prefixes(checkpoints) for file in needed_by(checkpoints, prefix)
    }


def find_orphans(checkpoints: Checkpoints, prefix: str, needed: Iterable[str]) -> list[Orphan]:
    """Return the files of an application's epochs that are not among the needed ones.

    A crash may leave some behind, between storing a file and saying so in the log.
    """
    if not newest_launch(checkpoints, prefix):
        raise ConfigError(
            f"{prefix} has no coordinator log: nothing says which of its files are needed; "
            "'gear checkpoint drop' removes all of it"
        )
    needed = set(needed)
    found = list[Orphan]()
    for folder in _FOLDERS:
        for name in orphans(checkpoints, f"{prefix}/{folder}", needed):
            size = 0
            with suppress(SnapshotDamaged, OSError), checkpoints.open(name) as file:
                size = file.seek(0, 2)
            found.append(Orphan(name, size))
    return found


def check_unused(checkpoints: Checkpoints, prefix: str) -> None:
    """Refuse to remove an application with savepoints, or one that another one still needs."""
    if names := savepoint_names(checkpoints, prefix):
        told = ", ".join(names)
        raise ConfigError(
            f"{prefix} has the savepoint {told}: drop it first, with gear savepoint drop"
        )
    for other in stored_prefixes(checkpoints).keys() - {prefix}:
        used = [each for each in needed_by(checkpoints, other) if each.startswith(f"{prefix}/")]
        if used:
            raise ConfigError(
                f"{other} has gone on from {prefix} and needs {len(used)} files of it, such as "
                f"{used[0]}: drop {other} first, or wait until it has stored everything anew"
            )


def drop_expired(checkpoints: Checkpoints, own: str, keep_ms: int, now_ms: int) -> Iterator[str]:
    """Remove applications that succeeded so long ago; yield below which names they were.

    Those of the same cluster only: others may keep theirs longer. One that another application has
    gone on from stays as long as that needs its files.
    """
    cluster = own.rpartition("/")[0]
    for prefix in stored_prefixes(checkpoints, cluster).keys() - {own}:
        ended_ms = ApplicationView(read_log(checkpoints, prefix).state).succeeded_ms
        if ended_ms is None or now_ms - ended_ms < keep_ms:
            continue
        try:
            check_unused(checkpoints, prefix)
        except ConfigError:
            continue
        checkpoints.drop_all(prefix)
        yield prefix


def needed_by(checkpoints: Checkpoints, prefix: str, *, but: str = "") -> list[str]:
    """Return the files that the epochs and savepoints of one application need.

    So it is with the epochs that a version on trial goes back to.
    """
    stored = StoredEpochs(checkpoints, prefix)
    bases = (each for version in Versions(stored.state).read() for each in version.base)
    savepoints = (each for each in read_savepoints(checkpoints, prefix) if each.name != but)
    epochs = (file.location for each in (*stored, *bases) for file in each.snapshots)
    return [*epochs, *(file for each in savepoints for file in each.files)]
