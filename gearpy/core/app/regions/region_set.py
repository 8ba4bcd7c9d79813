"""The regions of one application: which one a task or an attempt belongs to, and all together."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from gearpy.core.app.decisions import RecoveryLimits
from gearpy.core.app.regions.region import Region
from gearpy.core.dag.graph import Dag, regions_of
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import MIN_MS, ExecutorId, TaskId
from gearpy.messages.app import SnapshotFile, TaskOffsets


class RegionSet:
    """All regions of a dag, by number."""

    def __init__(
        self,
        dag: Dag,
        placement: Mapping[TaskId, ExecutorId],
        limits: RecoveryLimits,
        *,
        manifests: Iterable[Manifest],
        overrides: Iterable[TaskOffsets],
        owns: Callable[[str], bool],
        first_epoch: int = 1,
        carried: Mapping[int, Region] = MappingProxyType({}),
    ) -> None:
        manifests, overrides = tuple(manifests), tuple(overrides)
        self._regions = [
            carried.get(number)
            or Region(
                number=number,
                tasks=dag.tasks_of(*pids),
                placement=placement,
                version=dag.version,
                limits=limits,
                manifests=[each for each in manifests if each.region == number],
                overrides=overrides,
                owns=owns,
                first_epoch=first_epoch,
            )
            for number, pids in enumerate(regions_of(dag))
        ]
        self._region_of = {task: each for each in self._regions for task in each.placement}
        #: The tasks that read records, and the region of each.
        self.sources = {task: self._region_of[task] for task in dag.tasks_of(*dag.sources())}

    def __iter__(self) -> Iterator[Region]:
        return iter(self._regions)

    def __getitem__(self, number: int) -> Region:
        return self._regions[number]

    def of_task(self, task: TaskId) -> Region | None:
        return self._region_of.get(task)

    def in_attempt(self, attempt: int) -> Region | None:
        return next((each for each in self._regions if each.attempt == attempt), None)

    def that_knew(self, attempt: int) -> Region | None:
        return next((each for each in self._regions if each.epochs.knows(attempt)), None)

    @property
    def epoch(self) -> int:
        newest = [each.history.newest for each in self._regions]
        return min((each.epoch if each else 0) for each in newest)

    @property
    def unused_epoch(self) -> int:
        return max(each.epochs.unused_epoch for each in self._regions)

    @property
    def clock_ms(self) -> int:
        return min((each.history.clock_ms for each in self._regions), default=MIN_MS)

    @property
    def newest_manifests(self) -> list[Manifest]:
        newest = (each.history.newest for each in self._regions)
        return [manifest for manifest in newest if manifest is not None]

    @property
    def are_active(self) -> bool:
        return all(each.is_running or each.state == "done" for each in self._regions)

    @property
    def are_done(self) -> bool:
        return all(each.state == "done" for each in self._regions)

    def but(self, numbers: Collection[int]) -> list[Region]:
        return [each for each in self._regions if each.number not in numbers]

    @property
    def needed_executors(self) -> set[ExecutorId]:
        return {
            executor_id
            for each in self._regions
            for executor_id in each.executors
            if each.needs(executor_id)
        }

    @property
    def tasks_of_executors(self) -> dict[ExecutorId, list[TaskId]]:
        tasks: dict[ExecutorId, list[TaskId]] = {}
        for region in self._regions:
            for task, executor_id in region.placement.items():
                tasks.setdefault(executor_id, []).append(task)
        return tasks

    def take_garbage(self) -> tuple[SnapshotFile, ...]:
        return tuple(file for each in self._regions for file in each.epochs.take_garbage())
