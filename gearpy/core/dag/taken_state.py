"""The stored state that tasks of another graph go on from, and what of it needs no copy.

Each step finds what it kept by its id. Keyed state goes to the tasks of its key groups. Where
a task keeps all that is in such groups, it takes them over in the files in which they were stored;
only where something has to be left out is a copy made.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from gearpy.core.base.stable_hash import KEY_GROUPS, task_of_group
from gearpy.core.dag.graph import Dag, ProcessorSpec, regions_of
from gearpy.core.dag.state_moves import Layout, StepPlace, layout_of, state_moves
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import ProcessorId, TaskId
from gearpy.messages.app import SnapshotFile, TakenGroups


class KeyGroups(NamedTuple):
    """Key groups from ``first`` to ``last``; the one behind the last is of cells without a key."""

    first: int
    last: int

    def __contains__(self, group: object) -> bool:
        return isinstance(group, int) and self.first <= group <= self.last

    def both(self, other: "KeyGroups") -> "KeyGroups":
        return KeyGroups(max(self.first, other.first), min(self.last, other.last))


_ALL = KeyGroups(0, KEY_GROUPS)


class StateSource(NamedTuple):
    """An old task from which a task of another graph gets some key groups.

    ``as_stored``: it keeps all that is in them, and nobody else has files of that task.
    """

    task: TaskId
    groups: KeyGroups
    as_stored: bool


class TakenState:
    """Tells which task of a graph goes on from the state of which tasks of the graph before."""

    def __init__(self, manifests: Iterable[Manifest], old: Layout, dag: Dag) -> None:
        self.manifests: Sequence[Manifest] = sorted(manifests, key=lambda each: each.region)
        self._manifest_of = {
            task: manifest
            for manifest in self.manifests
            for file in manifest.chain
            for task in file.tasks
        }
        self._old = old
        self._dag = dag
        self._parallelism = {place.processor: place.parallelism for place in old.values()}
        self._places: Mapping[str, StepPlace] = {
            move.id: move.old
            for move in state_moves(old, layout_of(dag))
            if move.fate in {"kept", "moved"} and move.old and self.tasks(move.old.processor)
        }
        #: A file belongs to one region, which deletes it when it needs it no more.
        self._takers: dict[int, set[int]] = {each.region: set() for each in self.manifests}
        for number, pids in enumerate(regions_of(dag)):
            for pid in pids:
                for task in self.old_tasks(pid):
                    self._takers[self._manifest_of[task].region].add(number)

    def tasks(self, pid: ProcessorId) -> list[TaskId]:
        tasks = [TaskId(pid, index) for index in range(self._parallelism[pid])]
        return tasks if all(task in self._manifest_of for task in tasks) else []

    def manifest(self, task: TaskId) -> Manifest:
        return self._manifest_of[task]

    def place(self, step: str) -> StepPlace | None:
        return self._places.get(step)

    def steps(self, pid: ProcessorId) -> list[tuple[str, StepPlace]]:
        steps = self._dag.processors[pid].steps
        return [(step.id, self._places[step.id]) for step in steps if step.id in self._places]

    def old_tasks(self, pid: ProcessorId) -> list[TaskId]:
        pids = dict.fromkeys(place.processor for _, place in self.steps(pid))
        return [task for each in pids for task in self.tasks(each)]

    def is_one_to_one(self, task: TaskId, spec: ProcessorSpec) -> bool:
        return self._parallelism[ProcessorId(task.processor)] == spec.parallelism

    def sources(self, task: TaskId) -> Iterator[StateSource]:
        spec = self._dag.processors[ProcessorId(task.processor)]
        for each in self.old_tasks(spec.id):
            takers = self._takers[self._manifest_of[each].region]
            as_stored = self._keeps_all(each, spec) and len(takers) == 1
            if not self.is_one_to_one(each, spec):
                yield StateSource(each, _groups(task, spec.parallelism), as_stored)
            elif each.task_index == task.task_index:
                yield StateSource(each, _ALL, as_stored)

    def files(
        self,
        pids: Iterable[ProcessorId],
        groups_of: Callable[[TaskId], Collection[int]] | None = None,
    ) -> tuple[SnapshotFile, ...]:
        """Return the files that tasks of some processors take over, in an order to read them in."""
        wanted: dict[TaskId, list[TakenGroups]] = {}
        for task in self._dag.tasks_of(*pids):
            for source, groups, as_stored in self.sources(task):
                if not as_stored:
                    continue
                if groups_of is not None:
                    has_some = any(group in groups for group in groups_of(source))
                else:
                    parallelism = self._parallelism[ProcessorId(source.processor)]
                    both = groups.both(_groups(source, parallelism))
                    has_some = groups == _ALL or both.first <= both.last
                if has_some:
                    wanted.setdefault(source, []).append(_taken(task, source, groups))
        # The first files of all tasks are large: what is at the beginning is seldom written anew.
        depth_of: dict[TaskId, int] = {}
        found: list[tuple[int, SnapshotFile]] = []
        for file in (file for manifest in self.manifests for file in manifest.chain):
            depth = 1 + max((depth_of.get(task, 0) for task in file.tasks), default=0)
            depth_of |= dict.fromkeys(file.tasks, depth)
            found.append((depth, file))
        taken = (_taken_from(file, wanted) for _, file in sorted(found, key=lambda each: each[0]))
        return tuple(file for file in taken if file is not None)

    def _keeps_all(self, task: TaskId, spec: ProcessorSpec) -> bool:
        if spec.steps[0].is_whole:
            return True
        kept = {
            name
            for name, place in self._old.items()
            if place.processor == task.processor and place.step.keeps
        }
        return kept <= {name for name, _ in self.steps(spec.id)}


def _groups(task: TaskId, parallelism: int) -> KeyGroups:
    first, behind = (
        -(-each * KEY_GROUPS // parallelism) for each in (task.task_index, task.task_index + 1)
    )
    assert first == behind or task_of_group(first, parallelism=parallelism) == task.task_index
    return KeyGroups(first, behind - 1)


def _taken_from(
    file: SnapshotFile, wanted: Mapping[TaskId, Sequence[TakenGroups]]
) -> SnapshotFile | None:
    before = file.taken or [_taken(task, task, _ALL) for task in file.tasks]
    taken = tuple(
        replace(each, source=own.source, first=both.first, last=both.last)
        for own in before
        if own.task in file.tasks
        for each in wanted.get(own.task, ())
        for both in [KeyGroups(own.first, own.last).both(KeyGroups(each.first, each.last))]
        if both.first <= both.last
    )
    if not taken:
        return None
    return replace(file, tasks=tuple(sorted({each.task for each in taken})), taken=taken)


def _taken(task: TaskId, source: TaskId, groups: KeyGroups) -> TakenGroups:
    return TakenGroups(task=task, source=source, via=source, first=groups.first, last=groups.last)
