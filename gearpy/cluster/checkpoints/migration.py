"""Turns an epoch of one graph into one that the tasks of another graph can begin with.

Each step finds what it kept by its id, in whatever processor it was; what the new graph has no
place for is left out. Keyed state goes to the tasks of its key groups, so that their number may
change; what a task keeps as a whole can be given to another number of tasks only if it is the same
in all of them. The epoch is written anew, below the new application; the old files stay as they
are. Where the same application goes on, keyed state stays in the files that it is in.

Nothing of the program is needed for that: records stay the bytes that they are.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import Struct

from gearpy.core.base.stable_hash import KEY_GROUPS
from gearpy.core.dag.graph import Dag, ProcessorSpec, regions_of
from gearpy.core.dag.state_moves import Layout, StateMove, lost, state_moves
from gearpy.core.dag.taken_state import StateSource, TakenState
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
from gearpy.task.stages.sink import is_all_shown, shared_states, unwritten_after
from gearpy.wire.values.records import SEALED

_WRITES: Final = "write"  # Kind of steps that write to a sink.
_CELLS_MAX: Final = 8192
#: Much state is written as several files at a time, of about this size.
_FILE_BYTES: Final = 32 << 20
_FILES_MAX: Final = 8
_TASK_GROUP: Final = KEY_GROUPS  # It has the cells without a key.


class Migrated(Struct, frozen=True, kw_only=True):
    """Epochs for the regions of the new graph, and the places of sources that were set by hand."""

    manifests: tuple[Manifest, ...]
    overrides: tuple[TaskOffsets, ...]


def check_moves(old: Layout, new: Layout, *, allows_drop: bool) -> list[StateMove]:
    moves = state_moves(old, new)
    gone = lost(moves)
    if gone and not allows_drop:
        told = "; ".join(map(str, gone))
        raise ConfigError(
            f"the program has no place for what these steps keep: {told}: give steps the names "
            "that they had, or leave their state behind with --allow-drop (allow_drop=True in "
            "Python)"
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
        in_place: the same application goes on, whose sinks show these epochs: they stay shown,
            also by tasks that are no more.

    Raises:
        ConfigError: the state cannot be shared by another number of tasks, or a partition of a
            source is gone.
    """
    with ExitStack() as stack:
        chains = [
            stack.enter_context(SnapshotChain(checkpoints, each.chain, skims=in_place))
            for each in manifests
        ]
        moving = _Moving(_Before(chains), TakenState(manifests, old, dag), dag, in_place=in_place)
        written = [
            manifest
            for number, pids in enumerate(regions_of(dag))
            if number not in kept
            if (manifest := _region(checkpoints, moving, number, pids, prefix)) is not None
        ]
        moved = list[TaskOffsets]()
        for pid in dag.order:
            old_tasks = {*moving.taken.old_tasks(pid)}
            by_hand = {
                name: place
                for each in overrides
                if each.task_id in old_tasks
                for name, place in each.offsets.items()
            }
            for index, state in enumerate(moving.sources(pid) if by_hand else ()):
                mine = {name: by_hand[name] for name in source_places(state) if name in by_hand}
                if mine:
                    moved.append(TaskOffsets(task_id=TaskId(pid, index), offsets=mine))
        return Migrated(manifests=tuple(written), overrides=tuple(moved))


class _Before:
    """The stored state of the tasks of the old graph; only what is asked for is read."""

    def __init__(self, chains: Iterable[SnapshotChain]) -> None:
        self._chains = {task: chain for chain in chains for task in chain.tasks}
        self._states: dict[TaskId, TaskState] = {}

    def state(self, task: TaskId) -> TaskState:
        if task not in self._states:
            self._states[task] = TaskState.decode(self._chains[task].head(task), SEALED)
        return self._states[task]

    def step(self, task: TaskId, name: str) -> bytes:
        found: bytes = self.state(task).task[STEPS].get(name, b"")
        return found

    def groups(self, task: TaskId) -> list[int]:
        return self._chains[task].groups(task)

    def cells(self, task: TaskId, group: int) -> dict[bytes, bytes]:
        return self._chains[task].cells(task, group)

    def bodies(self, task: TaskId, group: int) -> Iterator[bytes]:
        return (body for _, body in self._chains[task].bodies(task, group))


class _Moving:
    """The state from which the tasks of the new graph go on."""

    def __init__(self, before: _Before, taken: TakenState, dag: Dag, *, in_place: bool) -> None:
        self.before = before
        self.taken = taken
        self.epoch = max((each.epoch for each in taken.manifests), default=0)
        self.in_place = in_place
        self.dag = dag

    def sources(self, pid: ProcessorId) -> list[dict[str, Any]]:
        spec = self.dag.processors[pid]
        first = self.taken.place(spec.steps[0].id)
        if first is None or first.place != 0 or spec.steps[0].is_whole:
            return [{} for _ in range(spec.parallelism)]
        kept = [self.before.state(task).task or {} for task in self.taken.tasks(first.processor)]
        try:
            names = [str(each) for each in json.loads(spec.partitions or "[]")]
        except ValueError:  # There are so many that only a digest is told.
            names = []
        names = names or sorted({n for each in kept for n in source_places(each)})
        return source_states(kept, names, spec.parallelism)

    def parts(self, pid: ProcessorId) -> list[TaskPart]:
        spec = self.dag.processors[pid]
        shows = self.in_place and any(step.kind == _WRITES for step in spec.steps)
        if not self.taken.steps(pid) and not shows:
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

    def files(self, pids: Sequence[ProcessorId]) -> tuple[SnapshotFile, ...]:
        return self.taken.files(pids, self.before.groups) if self.in_place else ()

    def has_copies(self, pids: Sequence[ProcessorId]) -> bool:
        tasks = self.dag.tasks_of(*pids)
        return any(self._is_copied(each) for task in tasks for each in self.taken.sources(task))

    def _is_copied(self, source: StateSource) -> bool:
        return not (self.in_place and source.as_stored)

    def _chains(self, spec: ProcessorSpec) -> list[dict[str, Any]]:
        states: list[dict[str, Any]] = [{STEPS: {}} | each for each in self.sources(spec.id)]
        for name, place in self.taken.steps(spec.id):
            kept = [self.before.step(task, name) for task in self.taken.tasks(place.processor)]
            is_sink = any(step.id == name and step.kind == _WRITES for step in spec.steps)
            share = self._written if is_sink else _shared
            for state, of_step in zip(states, share(name, kept, spec), strict=True):
                if of_step:
                    state[STEPS][name] = of_step
        if self.in_place:
            unwritten = encode_state(spec.name, unwritten_after(self.epoch))
            for step in spec.steps:
                for state in states if step.kind == _WRITES else ():
                    state[STEPS].setdefault(step.id, unwritten)
        return states

    def _written(self, _: str, kept: Sequence[bytes], spec: ProcessorSpec) -> Sequence[bytes]:
        """Share the states of a sink: tasks that are no more have shown all, or others will."""
        if len(kept) == spec.parallelism:
            return kept
        states = [decode_state(each, SEALED) if each else None for each in kept]
        if self.in_place:
            is_gone = [i >= spec.parallelism and is_all_shown(s) for i, s in enumerate(states)]
            states = [None if gone else s for gone, s in zip(is_gone, states, strict=True)]
        shared = shared_states(states, spec.parallelism)
        return [b"" if each is None else encode_state(spec.name, each) for each in shared]

    def _whole(self, spec: ProcessorSpec) -> list[Any]:
        ((name, place),) = self.taken.steps(spec.id)
        tasks = self.taken.tasks(place.processor)
        kept = [encode_state(spec.name, self.before.state(task).task) for task in tasks]
        if len(tasks) != spec.parallelism and any(self.before.state(each).timers for each in tasks):
            raise _unshared(name, len(tasks), spec, "timers of a task")
        return [decode_state(each, SEALED) for each in _shared(name, kept, spec)]

    def _frame(self, spec: ProcessorSpec, index: int) -> TaskState:
        """Return all that a task goes on from but its steps; of times the oldest is safe."""
        tasks = self.taken.old_tasks(spec.id)
        mine = [task for task in tasks if self.taken.is_one_to_one(task, spec)]
        from_ = [task for task in mine if task.task_index == index] or tasks
        states = [self.before.state(task) for task in from_]
        counters = dict(states[0].counters) if mine else {}
        for state in states if index == 0 and not mine else ():
            for name, number in state.counters.items():
                join = max if name.endswith("_ms") else int.__add__
                counters[name] = join(counters.get(name, MIN_MS if join is max else 0), number)
        return TaskState(
            task=None,
            counters=counters,
            watermark_ms=min((state.watermark_ms for state in states), default=MIN_MS),
            clock_ms=min((state.clock_ms for state in states), default=MIN_MS),
            timers=states[0].timers if mine else (),
            promised_ms=min((state.promised_ms for state in states), default=MIN_MS),
        )

    def _cells(self, spec: ProcessorSpec, index: int) -> Iterator[tuple[int, bytes]]:
        wanted = {name for name, _ in self.taken.steps(spec.id)}
        for source in self.taken.sources(TaskId(spec.id, index)):
            if index == 0:
                self._check_shared(source, spec, wanted)
            for group in self.before.groups(source.task) if self._is_copied(source) else ():
                if group not in source.groups:
                    continue
                if source.as_stored:
                    yield from ((group, each) for each in self.before.bodies(source.task, group))
                    continue
                cells = _of_steps(self.before.cells(source.task, group), wanted, spec)
                items = iter(cells.items())
                while part := dict(islice(items, _CELLS_MAX)):
                    yield group, msgspec.msgpack.encode(part)

    def _check_shared(self, source: StateSource, spec: ProcessorSpec, wanted: set[str]) -> None:
        if _TASK_GROUP in source.groups or _TASK_GROUP not in self.before.groups(source.task):
            return
        if _of_steps(self.before.cells(source.task, _TASK_GROUP), wanted, spec):
            tasks = self.taken.tasks(ProcessorId(source.task.processor))
            raise _unshared(spec.name, len(tasks), spec, "state without a key")


def _region(
    checkpoints: Checkpoints, moving: _Moving, number: int, pids: Sequence[ProcessorId], prefix: str
) -> Manifest | None:
    parts = [part for pid in pids for part in moving.parts(pid)]
    if not parts:
        return None  # From the beginning.
    taken = moving.taken
    found = {each.region: each for p in pids for each in map(taken.manifest, taken.old_tasks(p))}
    # If there are none, only sinks of before are in it.
    froms = [*found.values()] or [*taken.manifests]
    newest = max(froms, key=lambda each: each.epoch)
    epoch = moving.epoch if moving.in_place else newest.epoch
    size_bytes = sum(each.total_bytes for each in froms) if moving.has_copies(pids) else 0
    files = _saved(
        checkpoints,
        f"{prefix}/epochs/region{number}/epoch{epoch}-moved",
        parts,
        1 + min(_FILES_MAX - 1, size_bytes // _FILE_BYTES),
    )
    offsets = list[TaskOffsets]()
    for pid in pids:
        for index, state in enumerate(moving.sources(pid)):
            if places := source_places(state):
                told = encode_offsets(moving.dag.processors[pid].name, places)
                offsets.append(TaskOffsets(task_id=TaskId(pid, index), offsets=told))
    return Manifest(
        region=number,
        epoch=epoch,
        attempt=max(each.attempt for each in froms),
        clock_ms=min(each.clock_ms for each in froms),
        snapshots=(*moving.files(pids), *files),
        offsets=tuple(offsets),
        cut_time_ms=newest.cut_time_ms,
    )


def _saved(
    checkpoints: Checkpoints, name: str, parts: Sequence[TaskPart], count: int
) -> tuple[SnapshotFile, ...]:
    def save(at: int) -> SnapshotFile:
        of_file = parts[at::count]
        tasks = tuple(part.task for part in of_file)
        return save_snapshot(checkpoints, f"{name}-{at}", tasks, snapshot_chunks(of_file))

    with ThreadPoolExecutor(count, "gearpy-moving") as pool:
        return tuple(pool.map(save, range(min(count, len(parts)))))


# -- sharing -----------------------------------------------------------------------------------


def _shared(name: str, kept: Sequence[bytes], spec: ProcessorSpec) -> Sequence[bytes]:
    if spec.parallelism == len(kept):
        return kept
    if len(set(kept)) > 1:
        is_users = spec.steps[0].is_whole  # Nothing is known of what a task of a user's own keeps.
        one = (
            None
            if is_users
            else shared_state([decode_state(each, SEALED) for each in kept if each])
        )
        if one is None or not all(kept):
            raise _unshared(name, len(kept), spec, "what differs from task to task")
        return [encode_state(spec.name, one)] * spec.parallelism
    return [kept[0]] * spec.parallelism


def _unshared(name: str, parallelism: int, spec: ProcessorSpec, what: str) -> ConfigError:
    return ConfigError(
        f"step {name!r} ran in {parallelism} tasks and now would in {spec.parallelism}, but keeps "
        f"{what}, which cannot be shared out: keep the parallelism of {parallelism}"
    )


def _of_steps(
    cells: dict[bytes, bytes], wanted: set[str], spec: ProcessorSpec
) -> dict[bytes, bytes]:
    if spec.steps[0].is_whole:
        return cells
    known: dict[bytes, bool] = {}
    found: dict[bytes, bytes] = {}
    for cell, value in cells.items():
        tag = cell[: 1 + cell[0]]
        if tag not in known:
            names = (name for name in Tag.decode(tag).path if not name.startswith("#"))
            known[tag] = next(names, "") in wanted
        if known[tag]:
            found[cell] = value
    return found
