"""WorkerJobs: one job of Spark for each worker, started again when Spark has given it up.

One job with a task for each worker would end with the first task that has failed as often as Spark
lets it, and a barrier stage starts all of its tasks again when one is lost. So each worker has a
job of its own: what it loses is its own, and Spark itself moves it to another executor.
"""

import logging
import random
import threading
import uuid
from functools import partial
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests
from pyspark.sql import SparkSession

from gearpy.cluster.net.limits import monotonic_ms
from gearpy.core.base.restart import RestartAfter, RestartBudget, RestartPolicy
from gearpy.spark.guest.order import WorkerOrder
from gearpy.spark.guest.room import cause_of
from gearpy.spark.guest.task import be_worker
from gearpy.spark.sessions.sessions import is_alive

_log = logging.getLogger(__name__)

#: Without an end: the cluster is there as long as its driver.
_AGAIN: Final = RestartPolicy(max_restarts=-1, backoff_ms=1000, backoff_max_ms=30_000)
_END_S: Final = 30.0


class WorkerJobs:
    """Keeps so many workers running inside Spark, from `start` to `close`.

    Runs on: a thread for each worker, which waits for its job.

    Args:
        spark: the session.
        order: what each of them is told.
        workers: how many.
        cores: of Spark that each takes; None for ``spark.task.cpus``.
    """

    def __init__(
        self, spark: SparkSession, order: WorkerOrder, *, workers: int, cores: int | None
    ) -> None:
        self._spark, self._order, self._cores = spark, order, cores
        self._context = spark.sparkContext
        self._group = f"gearpy-{uuid.uuid4().hex[:12]}"
        self._closing = threading.Event()
        self._causes: dict[int, str] = {}  # Of the last failure of each worker.
        self._threads = [
            threading.Thread(target=self._keep, args=(number,), name=f"gearpy-worker-job-{number}")
            for number in range(1, workers + 1)
        ]
        for thread in self._threads:
            thread.daemon = True  # A program that ends with an error is not held up.

    @property
    def failure(self) -> str:
        """Why a worker has failed last; empty if none has."""
        return next(iter(self._causes.copy().values()), "")

    def start(self) -> None:
        """Start the jobs; returns at once."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Have Spark end all workers with all that they run; that takes another moment."""
        self._closing.set()
        if not is_alive(self._spark):
            return
        self._context.cancelJobGroup(self._group)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(_END_S)

    def _keep(self, number: int) -> None:
        budget, rng = RestartBudget(_AGAIN), random.Random()
        while not self._closing.is_set():
            cause = self._run(number)
            if self._closing.is_set():
                return
            if not is_alive(self._spark):
                self._causes[number] = "Spark was stopped"
                return
            self._causes[number] = cause
            again = budget.on_failure(monotonic_ms(), rng)
            assert isinstance(again, RestartAfter), "there is no limit"
            _log.warning(
                "worker %d in Spark has ended, again in %d ms: %s", number, again.delay_ms, cause
            )
            self._closing.wait(again.delay_ms / 1000)

    def _run(self, number: int) -> str:
        """Have Spark run a worker; return why it has ended."""
        about = f"gearpy worker {number} of {len(self._threads)}"
        try:
            # Of this thread only. What Spark interrupts frees its core at once.
            self._context.setJobGroup(self._group, about, interruptOnCancel=True)
            self._task(number).collect()
        except (PySparkException, Py4JError, OSError) as error:
            return cause_of(str(error))
        return "it has ended by itself"

    def _task(self, number: int) -> Any:
        rows = self._context.parallelize([number], 1)
        if self._cores is not None:
            requests = TaskResourceRequests().cpus(self._cores)
            rows = rows.withResources(ResourceProfileBuilder().require(requests).build)
        return rows.mapPartitions(partial(be_worker, self._order))
