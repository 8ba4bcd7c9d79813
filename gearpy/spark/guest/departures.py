"""LeavingTasks: which tasks are on executors that Spark is about to take away."""

import logging
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

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
