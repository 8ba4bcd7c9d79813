"""From an epoch of one graph to one that tasks of another graph can begin with.

Each step finds what it kept by its id, in whatever processor it was; what the new graph has no
place for is left out. Keyed state goes to the tasks of its key groups, so that their number may
change; what a task keeps as a whole can be given to another number of tasks only if it is the same
in all of them. The epoch is written anew, below the new application; the old files stay as they
are.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Final

import msgspec

from gearpy.core.base.stable_hash import KEY_GROUPS, task_of_group
from gearpy.core.dag.graph import Dag, ProcessorSpec, regions_of
from gearpy.core.dag.state_moves import Layout, StateMove, StepPlace, layout_of, lost, state_moves
from gearpy.core.epoch.epochs import Manifest
from gearpy.errors import ConfigError
from gearpy.ids import MIN_MS, ProcessorId, TaskId
from gearpy.messages.app import SnapshotFile, TaskOffsets
from gearpy.state.stores.cells import Tag
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.snapshot_files import SnapshotChain, TaskPart, save_snapshot, snapshot_chunks
from gearpy.task.aggregates.fold import shared_state
from gearpy.task.api.snapshots import TaskState, decode_state, encode_offsets, encode_state
from gearpy.task.chain.chain import STEPS
from gearpy.task.sources.task import source_places, source_states
from gearpy.task.stages.sink import is_all_shown, unwritten_after

_WRITES: Final = "write"  # Kind of steps that write to a sink.
_CELLS_MAX: Final = 8192
#: Much state is written as several files at a time, of about this size.
_FILE_BYTES: Final = 32 << 20
_FILES_MAX: Final = 8
_TASK_GROUP: Final = KEY_GROUPS  # Of cells that belong to no key.


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """Epochs for the regions of the new graph, and the places of sources that were set by hand."""

    manifests: tuple[Manifest, ...]
    overrides: tuple[TaskOffsets, ...]


def check_moves(old: Layout, new: Layout, *, drops_state: bool) -> list[StateMove]:
    """Return the fate of each step.

    Raises:
        ConfigError: something that is kept has no place, and that was not allowed.
    """
    moves = state_moves(old, new)
    gone = lost(moves)
    if gone and not drops_state:
        told = "; ".join(map(str, gone))
        raise ConfigError(
            f"the program has no place for what these steps keep: {told}: give steps the names "
            "that they had, or leave their state behind with --drop-state"
        )
    return moves


def migrate(
    checkpoints: Checkpoints,
    manifests: Sequence[Manifest],
    overrides: Sequence[TaskOffsets],
    *,
    old: Layout,
    dag: Dag,
    prefix: str,
    kept: Collection[int] = (),
    in_place: bool = False,
) -> Migrated:
    """Write the epochs anew; state without a place is left out.

    Args:
        manifests: one epoch of each region of the old graph.
        overrides: places of its sources that were set by hand.
        prefix: below which name everything of the new application is.
        kept: regions of the new graph that go on as they are, and need no epoch.
        in_place: the same application goes on, whose sinks show these epochs: they stay shown,
            also by tasks that are no more.

    Raises:
        ConfigError: the state cannot be shared by another number of tasks, or a partition of a
            source is gone; or it was stored by a gearpy that gave steps no ids.
        SnapshotDamaged: a file is missing or damaged.
        OSError: the store cannot be used.
    """
    with ExitStack() as stack:
        before = _Before(
            {
                task: (manifest, chain)
                for manifest in manifests
                for chain in [stack.enter_context(SnapshotChain(checkpoints, manifest.chain))]
                for task in chain.tasks
            },
            old,
        )
        moving = _Moving(before, old, dag, in_place=in_place)
        written = [
            manifest
            for number, pids in enumerate(regions_of(dag))
            if number not in kept
            if (manifest := _region(checkpoints, moving, number, pids, prefix)) is not None
        ]
        return Migrated(
            manifests=tuple(written), overrides=tuple(_overrides(moving, overrides, dag))
        )


class _Before:
    """The stored state of the tasks of the old graph."""

    def __init__(
        self, found: Mapping[TaskId, tuple[Manifest, SnapshotChain]], layout: Layout
    ) -> None:
        self._found = found
        self._parallelism = {place.processor: place.parallelism for place in layout.values()}
        self._states: dict[TaskId, TaskState] = {}

    def tasks(self, pid: ProcessorId) -> list[TaskId]:
        """Return the tasks of a processor; none if it had ended no epoch."""
        tasks = [TaskId(pid, index) for index in range(self._parallelism[pid])]
        return tasks if all(task in self._found for task in tasks) else []

    @property
    def manifests(self) -> list[Manifest]:
        return [manifest for manifest, _ in self._found.values()]

    def manifest(self, task: TaskId) -> Manifest:
        return self._found[task][0]

    def state(self, task: TaskId) -> TaskState:
        if task not in self._states:
            self._states[task] = TaskState.decode(self._found[task][1].head(task))
        return self._states[task]

    def step(self, task: TaskId, name: str) -> bytes:
        """Return the state of a step of a chain that is not keyed."""
        kept = self.state(task).task
        if not isinstance(kept, dict) or STEPS not in kept:
            raise ConfigError(
                "the checkpoint was stored before steps had ids: only a program with the same "
                "graph can go on from it"
            )
        found: bytes = kept[STEPS].get(name, b"")
        return found

    def groups(self, task: TaskId) -> list[int]:
        return self._found[task][1].groups(task)

    def cells(self, task: TaskId, group: int) -> dict[bytes, bytes]:
        return self._found[task][1].cells(task, group)

    def bodies(self, task: TaskId, group: int) -> Iterator[bytes]:
        """Yield the cells as they are stored, the oldest first."""
        return (body for _, body in self._found[task][1].bodies(task, group))


class _Moving:
    """The state from which the tasks of the new graph go on."""

    def __init__(self, before: _Before, old: Layout, dag: Dag, *, in_place: bool) -> None:
        self.before = before
        self.epoch = max((each.epoch for each in before.manifests), default=0)
        self.in_place = in_place
        self.dag = dag
        self._old = old
        self._taken: dict[str, StepPlace] = {
            move.id: move.old
            for move in state_moves(old, layout_of(dag))
            if move.fate in {"kept", "moved"} and move.old and before.tasks(move.old.processor)
        }

    def old_tasks(self, pid: ProcessorId) -> list[TaskId]:
        pids = dict.fromkeys(place.processor for _, place in self._steps(pid))
        return [task for each in pids for task in self.before.tasks(each)]

    def sources(self, pid: ProcessorId) -> list[dict[str, Any]]:
        """Return the state of the tasks of a processor as readers of a source."""
        spec = self.dag.processors[pid]
        first = self._taken.get(spec.steps[0].id)
        if first is None or first.place != 0 or spec.steps[0].is_whole:
            return [{} for _ in range(spec.parallelism)]
        kept = [self.before.state(task).task or {} for task in self.before.tasks(first.processor)]
        names = _partitions(spec) or sorted({n for each in kept for n in source_places(each)})
        return source_states(kept, names, spec.parallelism)

    def parts(self, pid: ProcessorId) -> list[TaskPart]:
        """Return the parts of a file for the tasks of a processor."""
        spec = self.dag.processors[pid]
        shows = self.in_place and any(step.kind == _WRITES for step in spec.steps)
        if not self._steps(pid) and not shows:
            return []
        kept = self._whole(spec) if spec.steps[0].is_whole else self._chains(spec)
        return [
            TaskPart(
                task=TaskId(pid, index),
                head=replace(self._frame(spec, index), task=state).encode(spec.name),
                deltas=[partial(self._cells, spec, index)],
            )
            for index, state in enumerate(kept)
        ]

    def _steps(self, pid: ProcessorId) -> list[tuple[str, StepPlace]]:
        steps = self.dag.processors[pid].steps
        return [(step.id, self._taken[step.id]) for step in steps if step.id in self._taken]

    def _chains(self, spec: ProcessorSpec) -> list[dict[str, Any]]:
        states: list[dict[str, Any]] = [{STEPS: {}} | each for each in self.sources(spec.id)]
        for name, place in self._steps(spec.id):
            kept = [self.before.step(task, name) for task in self.before.tasks(place.processor)]
            is_shown = self.in_place and _is_sink(name, spec)
            writing = _writing(kept, spec, self.epoch) if is_shown else kept
            for state, of_step in zip(states, _shared(name, writing, spec), strict=True):
                if of_step:
                    state[STEPS][name] = of_step
        if self.in_place:
            unwritten = encode_state(spec.name, unwritten_after(self.epoch))
            for step in spec.steps:
                for state in states if step.kind == _WRITES else ():
                    state[STEPS].setdefault(step.id, unwritten)
        return states

    def _whole(self, spec: ProcessorSpec) -> list[Any]:
        ((name, place),) = self._steps(spec.id)
        tasks = self.before.tasks(place.processor)
        kept = [encode_state(spec.name, self.before.state(task).task) for task in tasks]
        if len(tasks) != spec.parallelism and any(self.before.state(each).timers for each in tasks):
            raise _unshared(name, len(tasks), spec, "timers of a task")
        return [decode_state(each) for each in _shared(name, kept, spec)]

    def _frame(self, spec: ProcessorSpec, index: int) -> TaskState:
        """Return all that a task goes on from but its steps; of times the oldest is safe."""
        tasks = self.old_tasks(spec.id)
        mine = [task for task in tasks if self._is_one_to_one(task, spec)]
        from_ = [task for task in mine if task.task_index == index] or tasks
        states = [self.before.state(task) for task in from_]
        return TaskState(
            task=None,
            counters=states[0].counters if mine else _counted(states) if index == 0 else {},
            watermark_ms=min((state.watermark_ms for state in states), default=MIN_MS),
            clock_ms=min((state.clock_ms for state in states), default=MIN_MS),
            timers=states[0].timers if mine else (),
            promised_ms=min((state.promised_ms for state in states), default=MIN_MS),
        )

    def _is_one_to_one(self, task: TaskId, spec: ProcessorSpec) -> bool:
        return len(self.before.tasks(ProcessorId(task.processor))) == spec.parallelism

    def _keeping(self, task: TaskId) -> set[str]:
        """Return the steps that kept something in an old task."""
        return {
            name
            for name, place in self._old.items()
            if place.processor == task.processor and place.step.keeps
        }

    def _cells(self, spec: ProcessorSpec, index: int) -> Iterator[tuple[int, bytes]]:
        wanted = None if spec.steps[0].is_whole else {name for name, _ in self._steps(spec.id)}
        for task in self.old_tasks(spec.id):
            is_one_to_one = self._is_one_to_one(task, spec)
            if is_one_to_one and task.task_index != index:
                continue
            are_all_wanted = wanted is None or self._keeping(task) <= wanted
            for group in self.before.groups(task):
                if not is_one_to_one and not _owns(spec, index, group):
                    continue
                if are_all_wanted and (is_one_to_one or group != _TASK_GROUP):
                    yield from ((group, body) for body in self.before.bodies(task, group))
                    continue
                cells = _of_steps(self.before.cells(task, group), wanted)
                if cells and not is_one_to_one and group == _TASK_GROUP:
                    parallelism = len(self.before.tasks(ProcessorId(task.processor)))
                    raise _unshared(spec.name, parallelism, spec, "state without a key")
                yield from ((group, body) for body in _bodies(cells))


def _region(
    checkpoints: Checkpoints,
    moving: _Moving,
    number: int,
    pids: Sequence[ProcessorId],
    prefix: str,
) -> Manifest | None:
    parts = [part for pid in pids for part in moving.parts(pid)]
    if not parts:
        return None  # From the beginning.
    found = [moving.before.manifest(task) for pid in pids for task in moving.old_tasks(pid)]
    found = found or moving.before.manifests  # Only sinks of before are in it.
    newest = max(found, key=lambda each: each.epoch)
    epoch = moving.epoch if moving.in_place else newest.epoch
    size_bytes = sum(each.total_bytes for each in {m.region: m for m in found}.values())
    files = _saved(
        checkpoints,
        f"{prefix}/epochs/region{number}/epoch{epoch}-moved",
        parts,
        1 + min(_FILES_MAX - 1, size_bytes // _FILE_BYTES),
    )
    return Manifest(
        region=number,
        epoch=epoch,
        attempt=max(each.attempt for each in found),
        clock_ms=min(each.clock_ms for each in found),
        snapshots=files,
        offsets=tuple(_offsets(moving, pids)),
        cut_time_ms=newest.cut_time_ms,
    )


def _saved(
    checkpoints: Checkpoints, name: str, parts: Sequence[TaskPart], count: int
) -> tuple[SnapshotFile, ...]:
    """Store the parts in so many files at a time; executors read those of their tasks only."""

    def save(at: int) -> SnapshotFile:
        of_file = parts[at::count]
        tasks = tuple(part.task for part in of_file)
        return save_snapshot(checkpoints, f"{name}-{at}", tasks, snapshot_chunks(of_file))

    with ThreadPoolExecutor(count, "gearpy-moving") as pool:
        return tuple(pool.map(save, range(min(count, len(parts)))))


def _offsets(moving: _Moving, pids: Iterable[ProcessorId]) -> Iterator[TaskOffsets]:
    for pid in pids:
        for index, state in enumerate(moving.sources(pid)):
            places = source_places(state)
            if places:
                name = moving.dag.processors[pid].name
                yield TaskOffsets(task_id=TaskId(pid, index), offsets=encode_offsets(name, places))


def _overrides(
    moving: _Moving, overrides: Sequence[TaskOffsets], dag: Dag
) -> Iterator[TaskOffsets]:
    """Yield places that were set by hand for the tasks that read these partitions now."""
    for pid in dag.order:
        old = {*moving.old_tasks(pid)}
        by_hand = {
            name: place
            for each in overrides
            if each.task_id in old
            for name, place in each.offsets.items()
        }
        for index, state in enumerate(moving.sources(pid) if by_hand else ()):
            mine = {name: by_hand[name] for name in source_places(state) if name in by_hand}
            if mine:
                yield TaskOffsets(task_id=TaskId(pid, index), offsets=mine)


# -- sharing -----------------------------------------------------------------------------------


def _shared(name: str, kept: Sequence[bytes], spec: ProcessorSpec) -> Sequence[bytes]:
    """Share the states that old tasks kept as a whole among the tasks there are now."""
    more = spec.parallelism - len(kept)
    if more == 0:
        return kept
    if more > 0 and any(step.id == name and step.kind == _WRITES for step in spec.steps):
        return [*kept, *([b""] * more)]  # Each goes on with what it has written.
    if len(set(kept)) > 1:
        is_users = spec.steps[0].is_whole  # Nothing is known of what a task of a user's own keeps.
        one = None if is_users else shared_state([decode_state(each) for each in kept if each])
        if one is None or not all(kept):
            raise _unshared(name, len(kept), spec, "what differs from task to task")
        return [encode_state(spec.name, one)] * spec.parallelism
    return [kept[0]] * spec.parallelism


def _is_sink(name: str, spec: ProcessorSpec) -> bool:
    return any(step.id == name and step.kind == _WRITES for step in spec.steps)


def _writing(kept: Sequence[bytes], spec: ProcessorSpec, epoch: int) -> Sequence[bytes]:
    """Return the states of the tasks that write from now on, where all is shown up to an epoch."""
    more = spec.parallelism - len(kept)
    if more >= 0:
        return [*kept, *([encode_state(spec.name, unwritten_after(epoch))] * more)]
    over = (decode_state(each) for each in kept[spec.parallelism :])
    return kept[: spec.parallelism] if all(map(is_all_shown, over)) else kept


def _unshared(name: str, parallelism: int, spec: ProcessorSpec, what: str) -> ConfigError:
    return ConfigError(
        f"step {name!r} ran in {parallelism} tasks and now would in {spec.parallelism}, but keeps "
        f"{what}, which cannot be shared out: keep the parallelism"
    )


def _counted(states: Sequence[TaskState]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for state in states:
        for name, number in state.counters.items():
            join = max if name.endswith("_ms") else int.__add__
            counted[name] = join(counted.get(name, MIN_MS if join is max else 0), number)
    return counted


def _owns(spec: ProcessorSpec, index: int, group: int) -> bool:
    if group == _TASK_GROUP:
        return index == 0
    return task_of_group(group, parallelism=spec.parallelism) == index


def _of_steps(cells: dict[bytes, bytes], wanted: set[str] | None) -> dict[bytes, bytes]:
    """Return the cells of some steps; None stands for all."""
    if wanted is None:
        return cells
    known: dict[bytes, bool] = {}
    found: dict[bytes, bytes] = {}
    for cell, value in cells.items():
        tag = cell[: 1 + cell[0]]
        if tag not in known:
            known[tag] = _step_of(tag) in wanted
        if known[tag]:
            found[cell] = value
    return found


def _step_of(tag: bytes) -> str:
    """Return the id of the step whose state has a tag; names with ``#`` are gearpy's own."""
    names = (name for name in Tag.decode(tag).path if not name.startswith("#"))
    return next(names, "")


def _bodies(cells: dict[bytes, bytes]) -> Iterator[bytes]:
    items = iter(cells.items())
    while portion := dict(islice(items, _CELLS_MAX)):
        yield msgspec.msgpack.encode(portion)


def _partitions(spec: ProcessorSpec) -> list[str]:
    """Return the partitions of a source, unless there are so many that only a digest is told."""
    try:
        names = json.loads(spec.partitions or "[]")
    except ValueError:
        return []
    return [str(each) for each in names]
