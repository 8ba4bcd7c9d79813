"""The application clock: the progress of all tasks, and the tasks that stall or hold it.

Gearpump: `ClockService`.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from gearpy.core.base.lazy_min import LazyMin
from gearpy.core.dag.graph import Dag
from gearpy.ids import MAX_MS, MIN_MS, ProcessorId, SessionId, TaskId
from gearpy.messages.app import TaskClock
from gearpy.messages.summaries import ApplicationProgress

#: Between two points of how far sources have read.
_READ_POINT_MS: Final = 50

WaitsFor: TypeAlias = Literal[
    "idle",
    "unacknowledged output",
    "source has not advanced",
    "open windows or state",
    "unprocessed input",
    "upstream",
]


class ClockHolder(Struct, frozen=True, kw_only=True):
    """One link of the chain from a source to the task that holds the clock."""

    task_id: TaskId
    name: str
    clock_ms: int
    watermark_ms: int
    waits_for: WaitsFor


class Stall(Struct, frozen=True, kw_only=True):
    """The clock has stood still for too long. ``tasks``: the tasks that hold it."""

    clock_ms: int
    stalled_for_ms: int
    tasks: tuple[TaskId, ...]


class _Task(Struct):
    """The latest report of one task."""

    session: SessionId
    clock_ms: int
    watermark_ms: int
    hold_ms: int = MAX_MS
    idle: bool = False
    idle_since_ms: int = 0

    @property
    def is_finished(self) -> bool:
        return self.clock_ms == MAX_MS


class _ReadTimes:
    """The times at which the sources had read so far, for as long as the clock is not there."""

    def __init__(self, size: int = 512) -> None:
        self._size = size
        self._points: list[tuple[int, int]] = []  # Time, and event time; both grow.
        self._checked_ms = -_READ_POINT_MS

    def is_due(self, now_ms: int) -> bool:
        return now_ms - self._checked_ms >= _READ_POINT_MS

    def add(self, now_ms: int, read_ms: int, clock_ms: int) -> None:
        self._checked_ms = now_ms
        while self._points and self._points[0][1] <= clock_ms:  # Nobody asks about these again.
            self._points.pop(0)
        newest_ms = self._points[-1][1] if self._points else clock_ms
        if read_ms > newest_ms:
            self._points.append((now_ms, read_ms))
        if len(self._points) > self._size:
            del self._points[1::2]

    def lag_ms(self, now_ms: int, event_ms: int) -> int:
        return next((now_ms - at_ms for at_ms, read_ms in self._points if read_ms > event_ms), 0)


class ClockService:
    """Makes processor clocks and one global clock of the clocks that tasks report.

    Idle and finished tasks hold no clock back; while there are no others, the clocks stay.

    Invariant: no clock moves backwards; whenever the global clock moves, it is at most the clock of
    every task that is neither idle nor finished.
    """

    def __init__(
        self,
        dag: Dag,
        sessions: Mapping[TaskId, SessionId],
        *,
        stall_after_ms: int,
        now_ms: int,
        start_ms: int = MIN_MS,
    ) -> None:
        self._stall_after_ms = stall_after_ms
        self.global_min_ms = start_ms  #: The application clock. Gearpump: `GetLatestMinClock`.
        self._dag = dag
        self._processor_ms = dict.fromkeys(dag.processors, start_ms)
        self._tasks = {
            task_id: _Task(sessions[task_id], start_ms, start_ms) for task_id in dag.tasks()
        }
        self._read = _ReadTimes()
        self._file_all(now_ms)

    # -- questions -------------------------------------------------------------------------

    def processor_min_ms(self, pid: ProcessorId) -> int:
        return self._processor_ms[pid]

    def idle_ms(self, pid: ProcessorId, now_ms: int) -> int:
        tasks = [self._tasks[each] for each in self._unfinished_of(self._dag.tasks_of(pid))]
        if not tasks or not all(task.idle for task in tasks):
            return 0
        return max(0, now_ms - max(task.idle_since_ms for task in tasks))

    @property
    def finished(self) -> bool:
        """Whether every task has finished. Gearpump: `EndingClock`."""
        return not any(self._unfinished.values())

    # -- what happens ----------------------------------------------------------------------

    def on_report(
        self,
        task_id: TaskId,
        session: SessionId,
        *,
        clock_ms: int,
        watermark_ms: int,
        idle: bool,
        now_ms: int,
        hold_ms: int = MAX_MS,
    ) -> bool:
        task = self._tasks.get(task_id)
        if task is None or task.session != session:
            return False
        was_finished = task.is_finished
        task.clock_ms = max(task.clock_ms, clock_ms)
        task.watermark_ms = max(task.watermark_ms, watermark_ms)
        if idle and not task.idle:
            task.idle_since_ms = now_ms
        task.hold_ms, task.idle = hold_ms, idle
        if not was_finished and task.is_finished:
            self._unfinished[ProcessorId(task_id.processor)] -= 1
        self._file(task_id, task)
        has_moved = self._advance(now_ms)
        if self._read.is_due(now_ms) and not self._dag.upstream(ProcessorId(task_id.processor)):
            sources = [pid for pid in self._dag.order if not self._dag.upstream(pid)]
            tasks = [self._tasks[task_id] for task_id in self._dag.tasks_of(*sources)]
            read_ms = min((task.watermark_ms for task in tasks if not task.idle), default=MIN_MS)
            self._read.add(now_ms, read_ms, self.global_min_ms)
        return has_moved

    def on_restart(
        self, sessions: Mapping[TaskId, SessionId], *, start_ms: int, now_ms: int
    ) -> None:
        """Take the new sessions of tasks that begin again at ``start_ms``."""
        for task_id, session in sessions.items():
            self._tasks[task_id] = _Task(session, start_ms, start_ms)
        self._file_all(now_ms)

    # -- stalls ----------------------------------------------------------------------------

    def check_stall(self, now_ms: int) -> Stall | None:
        """Return the holder of the clock if the clock rests for too long while work is left.

        Gearpump: `ClockService.selfCheck`, "stalling tasks".
        """
        stalled_for_ms = now_ms - self._moved_at_ms
        if stalled_for_ms < self._stall_after_ms or (pid := self._holding_processor()) is None:
            return None
        return Stall(
            clock_ms=self.global_min_ms,
            stalled_for_ms=stalled_for_ms,
            tasks=tuple(self._holding_tasks(pid)),
        )

    def lag_ms(self, now_ms: int) -> int:
        told = (task.watermark_ms for task in self._tasks.values() if not task.idle)
        return self._read.lag_ms(now_ms, max(self.global_min_ms, min(told, default=MAX_MS)))

    def why(self) -> tuple[ClockHolder, ...]:
        """Return the chain of tasks that the clock waits for, from a source to the holder.

        Empty when all tasks have finished.
        """
        if (pid := self._holding_processor()) is not None:
            holder: TaskId | None = self._holding_tasks(pid)[0]
        else:
            ordered = self._dag.tasks_of(*self._dag.order)
            holder = next(iter(self._unfinished_of(ordered)), None)
        chain: list[ClockHolder] = []
        while holder is not None:
            task, all_upstream = self._tasks[holder], self._dag.upstream_tasks(holder)
            upstream = {each: self._tasks[each] for each in self._unfinished_of(all_upstream)}
            promises = [each.watermark_ms for each in upstream.values() if not each.idle]
            waits_for: WaitsFor = "upstream"
            if task.idle:
                waits_for = "idle"
            elif task.hold_ms <= task.clock_ms:
                waits_for = "open windows or state"
            elif task.clock_ms < task.watermark_ms:
                waits_for = "unacknowledged output"
            elif not all_upstream:
                waits_for = "source has not advanced"
            elif task.watermark_ms < min(promises, default=MAX_MS):
                waits_for = "unprocessed input"
            chain.append(
                ClockHolder(
                    task_id=holder,
                    name=self._dag.processors[ProcessorId(holder.processor)].name,
                    clock_ms=task.clock_ms,
                    watermark_ms=task.watermark_ms,
                    waits_for=waits_for,
                )
            )
            slowest = [
                (each.idle, each.watermark_ms, task_id) for task_id, each in upstream.items()
            ]
            holder = min(slowest)[2] if slowest else None
        return tuple(reversed(chain))

    def _holding_processor(self) -> ProcessorId | None:
        if (least := self._live.least()) is None:
            return None
        clocks = self._clocks
        return next(
            pid
            for pid in self._dag.order
            if (own := clocks[pid].least()) is not None and own[0] == least[0]
        )

    def _holding_tasks(self, pid: ProcessorId) -> list[TaskId]:
        least = self._clocks[pid].least()
        return [
            task_id
            for task_id in self._unfinished_of(self._dag.tasks_of(pid))
            if least is not None
            and not self._tasks[task_id].idle
            and self._tasks[task_id].clock_ms == least[0]
        ]

    # -- bookkeeping -----------------------------------------------------------------------

    def _unfinished_of(self, task_ids: Iterable[TaskId]) -> list[TaskId]:
        return [each for each in task_ids if not self._tasks[each].is_finished]

    def _file_all(self, now_ms: int) -> None:
        self._clocks: dict[ProcessorId, LazyMin[int]] = {
            pid: LazyMin() for pid in self._dag.processors
        }
        self._live: LazyMin[ProcessorId] = LazyMin()
        self._unfinished: dict[ProcessorId, int] = {
            pid: len(self._unfinished_of(self._dag.tasks_of(pid))) for pid in self._dag.processors
        }
        for task_id, task in self._tasks.items():
            self._file(task_id, task)
        self._moved_at_ms = now_ms
        self._advance(now_ms)

    def _file(self, task_id: TaskId, task: _Task) -> None:
        pid = ProcessorId(task_id.processor)
        clocks = self._clocks[pid]
        if task.idle or task.is_finished:
            clocks.remove(task_id.task_index)
        else:
            clocks.set(task_id.task_index, task.clock_ms)
        if (least := clocks.least()) is not None:
            self._live.set(pid, least[0])
            self._processor_ms[pid] = max(self._processor_ms[pid], least[0])
            return
        self._live.remove(pid)
        if not self._unfinished[pid]:
            self._processor_ms[pid] = MAX_MS

    def _advance(self, now_ms: int) -> bool:
        if (least := self._live.least()) is not None:
            reached_ms = least[0]
        elif self.finished:
            reached_ms = MAX_MS
        else:
            return False
        if reached_ms <= self.global_min_ms:
            return False
        self.global_min_ms, self._moved_at_ms = reached_ms, now_ms
        return True


def progress_of(
    dag: Dag, reports: Mapping[TaskId, TaskClock], *, stall: str = ""
) -> ApplicationProgress:
    """Sum up the records that sources have read and sinks written, and the watermark.

    The watermark is the least one of all tasks; None until every task has reported one.
    """
    read = [reports[task] for task in dag.tasks_of(*dag.sources()) if task in reports]
    is_complete = len(reports) == dag.task_count
    active = [report.watermark_ms for report in reports.values() if not report.idle]
    return ApplicationProgress(
        records_in=sum(report.records_in for report in read),
        records_out=sum(report.written_records for report in reports.values()),
        late_records=sum(report.late_records for report in reports.values()),
        skipped_records=sum(report.skipped_records for report in reports.values()),
        quarantined_records=sum(report.quarantined_records for report in reports.values()),
        ahead_records=sum(report.ahead_records for report in read),
        watermark_ms=min(active) if is_complete and active else None,
        done=sum(report.done for report in read),
        total=sum(report.total for report in read),
        stall=stall,
        waits_for=outside_of(dag, reports),
        open_windows=sum(report.open_windows for report in reports.values()),
    )


def outside_of(dag: Dag, reports: Mapping[TaskId, TaskClock]) -> str:
    """Name what a task waits for outside of the application, and its step; of several, the first.

    The text is empty if none does.
    """
    for task_id, report in sorted(reports.items()):
        if report.waits_for:
            step = dag.processors[ProcessorId(task_id.processor)].name
            return f"{report.waits_for} (step {step})"
    return ""
