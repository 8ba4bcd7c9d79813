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
from gearpy.messages.client import GetDemand, ListWorkers
from gearpy.spark.guest.departures import Departures
from gearpy.spark.guest.jobs import GuestJobs
from gearpy.spark.guest.sizing import WorkerCount

_log = logging.getLogger(__name__)

_LOOK_S: Final = 1.0


class WorkerTending:
    """Looks once a second at waiting applications, at idle workers, and at workers to leave.

    It ends, and says so, when Spark has ended.

    Use as a context manager.

    Runs on: a thread of its own.

    Args:
        departures: tells who has to leave with an executor of Spark.
        on_end: is called on this thread when it is not.
    """

    def __init__(
        self,
        client: ClusterClient,
        jobs: GuestJobs,
        count: WorkerCount,
        departures: Departures,
        *,
        is_alive: Callable[[], bool],
        on_end: Callable[[], object],
    ) -> None:
        self._client, self._jobs, self._count = client, jobs, count
        self._departures = departures
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
        for worker_id in self._departures.among(running.keys() - self._leaving):
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
