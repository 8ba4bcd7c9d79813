"""WorkerTending: starts and drains workers of a cluster inside Spark while it lives."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Self

from gearpy.clocks import monotonic_ms
from gearpy.cluster.client.client import ClusterClient
from gearpy.errors import GearpyError
from gearpy.ids import WorkerId
from gearpy.messages.client import DescribeWorker, GetDemand, ListWorkers
from gearpy.spark.guest.departures import LeavingTasks
from gearpy.spark.guest.jobs import GuestJobs
from gearpy.spark.guest.order import task_of
from gearpy.spark.guest.sizing import WorkerCount

_log = logging.getLogger(__name__)

_LOOK_S: Final = 1.0


class WorkerTending:
    """Looks once a second at waiting applications, at idle workers, and at workers to leave.

    It ends, and says so, when Spark has ended.

    Use as a context manager.

    Runs on: a thread of its own.

    Args:
        leaving: tells which workers have to leave with an executor of Spark.
        on_end: is called on this thread when Spark has ended.
    """

    def __init__(
        self,
        client: ClusterClient,
        jobs: GuestJobs,
        count: WorkerCount,
        leaving: LeavingTasks,
        *,
        is_alive: Callable[[], bool],
        on_end: Callable[[], object],
    ) -> None:
        self._client, self._jobs, self._count = client, jobs, count
        self._leaving_tasks, self._tasks = leaving, dict[WorkerId, int | None]()
        self._is_alive, self._on_end = is_alive, on_end
        self._leaving: set[WorkerId] = set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._tend, name="gearpy-tending", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _tend(self) -> None:
        while not self._end.wait(_LOOK_S):
            if not self._is_alive():
                self._on_end()
                return
            with suppress(GearpyError):  # A master that is busy is asked again.
                self._look()

    def _look(self) -> None:
        running = {
            each.worker_id: each.executors for each in self._client.ask(ListWorkers()).workers
        }
        self._leaving &= running.keys()
        staying = running.keys() - self._leaving if self._leaving_tasks.is_on else set[WorkerId]()
        for worker_id in staying:
            if worker_id not in self._tasks:
                self._tasks[worker_id] = None
                with suppress(GearpyError):  # It may just have gone.
                    detail = self._client.ask(DescribeWorker(worker_id=worker_id))
                    self._tasks[worker_id] = task_of(detail.process.folder)
        self._tasks = {each: task for each, task in self._tasks.items() if each in staying}
        for worker_id in [each for each, at in self._tasks.items() if self._leaving_tasks.has(at)]:
            _log.info("worker %d leaves, as Spark takes its executor away", worker_id)
            self._leaving.add(worker_id)
            self._drain(worker_id, if_idle=False)
        if self._count.is_fixed:
            return
        demand = self._client.ask(GetDemand(worker_slots=self._count.slots)).slots
        before = self._count.wanted
        idle = self._count.on_look(running, demand, monotonic_ms())
        if before != self._count.wanted:
            _log.info(
                "%d workers are wanted, there are %d; %d slots are waited for",
                *(self._count.wanted, len(running), demand),
            )
        self._jobs.resize(self._count.wanted)
        for worker_id in idle:
            self._drain(worker_id, if_idle=True)

    def _drain(self, worker_id: WorkerId, *, if_idle: bool) -> None:
        with suppress(GearpyError):  # It is in use again, or has ended before it could answer.
            self._client.drain_worker(worker_id, if_idle=if_idle)
