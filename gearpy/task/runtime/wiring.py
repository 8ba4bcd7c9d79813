"""Makes the runner of a task from an application and the id of the task."""

import logging
import random
from collections.abc import Callable
from dataclasses import replace

from msgspec import Struct, field

from gearpy.ids import FIRST_SESSION, MIN_MS, AppId, ExecutorId, ProcessorId, SessionId, TaskId
from gearpy.messages.app import SourceProbe
from gearpy.state.keyed import KeyedState
from gearpy.task.api.application import StreamApplication
from gearpy.task.api.interfaces import TaskLimits
from gearpy.task.api.keyed import OpenState, open_on_heap
from gearpy.task.api.rejects import OnError
from gearpy.task.api.snapshots import TaskResume
from gearpy.task.runtime.info import TaskInfo
from gearpy.task.runtime.metering import MeterSettings
from gearpy.task.runtime.outlet import OutputEdge, OutputLimits
from gearpy.task.runtime.recording import MakeRecorder
from gearpy.task.runtime.runner import TaskRunner
from gearpy.transport.loop.coroutines import Coroutines, CoroutineThread

_log = logging.getLogger(__name__)


class RunnerFactory(Struct, frozen=True, kw_only=True):
    """Makes the runners of one application's tasks, all with the same limits and clocks."""

    application: StreamApplication
    output: OutputLimits
    limits: TaskLimits
    turn_ms: int
    clock_ms: Callable[[], int]
    wall_ms: Callable[[], int]
    rng: random.Random
    open_state: OpenState = open_on_heap
    on_error: OnError = "fail"
    run: str = ""
    app_id: AppId = AppId(0)
    executor_id: ExecutorId = ExecutorId(0)
    coroutines: Coroutines = field(default_factory=CoroutineThread)
    metering: MeterSettings | None = None  #: None: tasks are not measured.
    recorder: MakeRecorder | None = None  #: None: nothing is recorded.
    is_rerun: bool = False  #: Sinks show nothing: what runs has run before.

    def make(
        self,
        task_id: TaskId,
        session: SessionId,
        *,
        epoch: int = 1,
        resume: TaskResume | None = None,
        first_session: SessionId = FIRST_SESSION,
        probe: SourceProbe | None = None,
    ) -> TaskRunner:
        """Return the runner of a task, not opened yet.

        Args:
            resume: its state at the end of the epoch before; None: it begins at the beginning.
            first_session: of this attempt of its region.
            probe: how it reads, if it is a source that is to look for what ends processes.
        """
        application, source = self.application, ProcessorId(task_id.processor)
        dag, processor = application.dag, application.processors[source]
        info = TaskInfo(
            task_id=task_id,
            session=session,
            first_session=first_session,
            parallelism=processor.parallelism,
            operator=processor.name,
            upstream=dag.upstream_tasks(task_id),
            edges=[
                OutputEdge(
                    processor=target,
                    parallelism=application.processors[target].parallelism,
                    partitioner=application.partitioners[source, target].fork(self.rng),
                    meets=dag.meets(source, target),
                )
                for target in dag.downstream(source)
            ],
            app_id=self.app_id,
            app_name=application.name,
            executor_id=self.executor_id,
            config=processor.config,
            key=processor.key,
            ordered=processor.ordered,
            sources=processor.sources,
            run=self.run,
            program=application.program,
            is_rerun=self.is_rerun,
        )
        limits = self.limits
        if application.until == "caught-up":
            limits = replace(limits, until_caught_up=True)
        return TaskRunner(
            info,
            processor.task,
            limits=self.output,
            task_limits=limits,
            turn_ms=self.turn_ms,
            clock_ms=self.clock_ms,
            wall_ms=self.wall_ms,
            open_state=self.open_state,
            epoch=epoch,
            resume=resume,
            on_error=self.on_error,
            coroutines=self.coroutines,
            metering=self.metering,
            recorder=self.recorder,
            probe=probe,
        )

    def open_ahead(self, task_id: TaskId) -> KeyedState | None:
        """Return the keyed state of a task that is to come; None if it has to be made by the task.

        It begins at no event time; see `KeyedState.begin_at`.
        """
        state = self.open_state(f"ahead/task{task_id}", self.wall_ms, lambda: MIN_MS)
        if state.is_in_memory:
            return state
        state.close()
        return None

    def settle(self, task_id: TaskId) -> None:
        """Let a sink close the transactions that a task left open when it died elsewhere."""
        processor = self.application.processors[ProcessorId(task_id.processor)]
        if processor.sink is None:
            return
        try:
            processor.sink.settle(task_id.task_index, run=self.run)
        except Exception as error:  # noqa: BLE001 - of connectors; its next start does it
            _log.warning("task %s has left something open: %s", task_id, error)
