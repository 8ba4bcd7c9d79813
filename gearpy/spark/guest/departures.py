"""Departures: which workers are on executors that Spark is about to take away."""

import logging
from collections.abc import Iterable
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from gearpy.cluster.client.client import ClusterClient
from gearpy.errors import GearpyError
from gearpy.ids import WorkerId
from gearpy.messages.client import DescribeWorker
from gearpy.spark.guest.order import task_of

_log = logging.getLogger(__name__)

_ENABLED: Final = "spark.decommission.enabled"


class LeavingTasks:
    """Asks the driver of Spark for tasks on executors that it decommissions.

    Spark tells nobody outside its scheduler, and waits for the tasks there to end by themselves.

    Runs on: one thread at a time.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self.is_on = self._context.getConf().get(_ENABLED) == "true"

    def has(self, task: int | None) -> bool:
        if task is None or not self.is_on:
            return False
        try:
            scheduler: Any = self._context._jsc.sc().taskScheduler()  # noqa: SLF001
            executor = scheduler.taskIdToExecutorId().get(task)
            if not executor.isDefined():
                return False
            return bool(scheduler.getExecutorDecommissionState(executor.get()).isDefined())
        except Py4JError as error:  # It is nothing that Spark promises.
            self.is_on = False
            _log.warning("executors that are decommissioned cannot be seen: %s", error)
            return False


class Departures:
    """Knows the workers whose executor of Spark is about to go.

    Runs on: the thread of `WorkerTending`.
    """

    def __init__(self, spark: SparkSession, client: ClusterClient) -> None:
        self._leaving, self._client = LeavingTasks(spark), client
        self._tasks: dict[WorkerId, int | None] = {}

    def among(self, workers: Iterable[WorkerId]) -> list[WorkerId]:
        if not self._leaving.is_on:
            return []
        self._tasks = {each: self._task(each) for each in workers}
        return [each for each, task in self._tasks.items() if self._leaving.has(task)]

    def _task(self, worker_id: WorkerId) -> int | None:
        if worker_id in self._tasks:
            return self._tasks[worker_id]
        try:
            return task_of(self._client.ask(DescribeWorker(worker_id=worker_id)).process.folder)
        except GearpyError:  # It has just gone.
            return None
