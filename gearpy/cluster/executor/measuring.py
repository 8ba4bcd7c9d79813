"""The measurements of one executor, for its own page of metrics."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from gearpy.clocks import wall_ms
from gearpy.ids import AppId, ExecutorId, TaskId
from gearpy.messages.app import TaskClock
from gearpy.messages.metrics import ExecutorSample, MetricsData, TaskLoad
from gearpy.metrics.process import process_meter
from gearpy.metrics.samples import sample_of


class MeasureExecutor(Struct, frozen=True):
    """Ask an executor for its `MetricsData`. Asked within its process only."""


def executor_data(
    app_id: AppId,
    executor_id: ExecutorId,
    launch: int,
    *,
    clocks: Mapping[TaskId, TaskClock] | None = None,
    loads: Iterable[TaskLoad] = (),
) -> MetricsData:
    pairs = [(clock, load) for load in loads if (clock := (clocks or {}).get(load.task_id))]
    return MetricsData(
        app_id=app_id,
        at_ms=wall_ms(),
        tasks=tuple(
            sample_of(clock, load, executor_id)
            for clock, load in pairs
            if clock.session == load.session
        ),
        executors=(
            ExecutorSample(
                executor_id=executor_id, launch=launch, process=process_meter().sample()
            ),
        ),
    )
