"""Name, links and application of a task; its report and its context."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gearpy.ids import AppId, ExecutorId, SessionId, TaskId
from gearpy.messages.app import TaskClock
from gearpy.messages.data import Message, Origin
from gearpy.messages.summaries import ConsumerReport
from gearpy.task.api.counters import TaskCounters
from gearpy.task.api.interfaces import TaskContext, TaskLimits
from gearpy.task.api.keyed import KeyedTask
from gearpy.task.api.rejects import Rejects
from gearpy.task.runtime.outlet import OutputEdge
from gearpy.transport.loop.coroutines import Coroutines

__all__ = ["TaskInfo", "clock_of", "context_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """Names a task, its operator, its links and its application."""

    task_id: TaskId
    session: SessionId
    parallelism: int
    operator: str
    upstream: Sequence[TaskId]
    edges: Sequence[OutputEdge]
    app_id: AppId = AppId(0)
    app_name: str = ""
    executor_id: ExecutorId = ExecutorId(0)
    run: str = ""
    program: str = ""  #: Package of the program's modules, where a process has several programs.
    config: Mapping[str, Any] | None = None
    key: Callable[[Any], Any] | None = None  #: Of a record, for keyed state.
    ordered: bool = False  #: Records come in the order of event time, key timers between them.
    sources: int = 0  #: Where records may come from; 0 if nobody knows.


def clock_of(
    info: TaskInfo,
    counters: TaskCounters,
    *,
    clock_ms: int,
    watermark_ms: int,
    hold_ms: int,
    idle: bool,
    consumers: tuple[ConsumerReport, ...] = (),
    waits_for: str = "",
    wants_epoch: bool = False,
) -> TaskClock:
    """Return the report of a task: its clock and its counters."""
    return TaskClock(
        task_id=info.task_id,
        session=info.session,
        clock_ms=clock_ms,
        watermark_ms=watermark_ms,
        hold_ms=hold_ms,
        idle=idle,
        records_in=counters.records_in,
        records_out=counters.records_out,
        late_records=counters.late_records,
        skipped_records=counters.skipped_records,
        quarantined_records=counters.quarantined_records,
        done=counters.done,
        total=counters.total,
        newest_ms=counters.newest_ms,
        span_ms=counters.span_ms,
        consumers=consumers,
        waits_for=waits_for,
        wants_epoch=wants_epoch,
    )


def context_of(
    info: TaskInfo,
    *,
    output: Callable[[Message], None],
    schedule: Callable[[int, object], None],
    update_watermark: Callable[[int], None],
    set_idle: Callable[[bool], None],
    send_unmanaged: Callable[[TaskId, Any], None],
    upstream_min_clock: Callable[[], int],
    now_ms: Callable[[], int],
    limits: TaskLimits,
    keyed: KeyedTask,
    epoch: int,
    counters: TaskCounters,
    rejects: Rejects,
    coroutines: Coroutines,
    enter: Callable[[Origin], None],
) -> TaskContext:
    """Return the context of the user's task, with the functions of its runner."""
    return TaskContext(
        task_id=info.task_id,
        parallelism=info.parallelism,
        operator=info.operator,
        app_id=info.app_id,
        app_name=info.app_name,
        executor_id=info.executor_id,
        output=output,
        schedule=schedule,
        update_watermark=update_watermark,
        set_idle=set_idle,
        send_unmanaged=send_unmanaged,
        upstream_min_clock=upstream_min_clock,
        now_ms=now_ms,
        limits=limits,
        log=logging.getLogger(f"gearpy.app.{info.app_name}.{info.operator}"),
        config=info.config or {},
        run=info.run,
        incarnation=info.session,
        epoch=epoch,
        keyed=keyed,
        counters=counters,
        rejects=rejects,
        coroutines=coroutines,
        enter=enter,
        sources=info.sources,
    )
