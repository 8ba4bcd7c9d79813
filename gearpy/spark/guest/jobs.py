"""GuestJobs: one job of Spark for each worker or master, started again when Spark has given it up.

One job with a task for each worker would end with the first task that has failed as often as Spark
lets it, and a barrier stage starts all of its tasks again when one is lost. So each worker has a
job of its own: what it loses is its own, and Spark itself moves it to another executor.
"""

import itertools
import logging
import random
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, TypeAlias

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests
from pyspark.sql import SparkSession

from gearpy.clocks import monotonic_ms
from gearpy.core.base.restart import RestartAfter, RestartBudget, RestartPolicy
from gearpy.spark.guest.room import cause_of
from gearpy.spark.sessions.sessions import is_alive
from gearpy.spark.sessions.settings import is_here

_log = logging.getLogger(__name__)

#: A session that was told of none has this one.
_ANY_PYTHON: Final = "python3"
#: Restarts have no end: the cluster is there as long as its driver.
_AGAIN: Final = RestartPolicy(max_restarts=-1, backoff_ms=1000, backoff_max_ms=30_000)
_END_S: Final = 30.0


#: Returns what the task of a job does, by the number of the job.
Work: TypeAlias = Callable[[int], Callable[[Iterable[Any]], Iterator[Any]]]


class GuestJobs:
    """Keeps so many workers, or masters, running inside Spark as `resize` says, until `close`.

    Runs on: a thread for each of them, which waits for its job.

    Args:
        work: makes what Spark runs, anew for each start.
        cores: of Spark that each takes; None for ``spark.task.cpus``.
    """

    def __init__(
        self, spark: SparkSession, kind: str, work: Work, *, cores: int | None = None
    ) -> None:
        self._spark, self._kind, self._work, self._cores = spark, kind, work, cores
        self._context = spark.sparkContext
        # A session that was told of no Python takes the first ``python3`` of its executors. Where
        # these are on this machine, the Python of this program has all that it needs.
        python, is_local = str(self._context.pythonExec), is_here(self._context.master or "")
        self._python = sys.executable if is_local and python == _ANY_PYTHON else python
        self._group = f"gearpy-{uuid.uuid4().hex[:12]}"
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._wanted, self._numbers = 0, itertools.count(1)
        self._threads: dict[int, threading.Thread] = {}
        self._beginning = set[int]()  # Those that were told to begin again.
        self._causes: dict[int, str] = {}  # The last failure of each worker.

    @property
    def failure(self) -> str:
        return next(iter(self._causes.copy().values()), "")

    def resize(self, workers: int) -> None:
        """Have so many workers: start those that are missing; returns at once.

        Of those that are too many, the ones that have ended are not started again, and those that
        wait for cores are not waited for.
        """
        with self._lock:
            self._wanted = workers
            for _ in range(workers - len(self._threads)):
                number = next(self._numbers)
                name = f"gearpy-{self._kind}-job-{number}"
                # A program that ends with an error is not held up by a daemon.
                thread = threading.Thread(target=self._keep, args=(number,), name=name, daemon=True)
                self._threads[number] = thread
                thread.start()
            newest_first, too_many = [*reversed(self._threads)], len(self._threads) - workers
        if too_many > 0:
            with suppress(Py4JError, OSError):  # Spark may have ended.
                waiting = [each for each in newest_first if not self._is_running(each)]
                for number in waiting[:too_many]:
                    self._context.cancelJobGroup(self._group_of(number))

    def begin_again(self, number: int | None = None) -> None:
        """Have Spark end one of them, or all, at once; they are started again."""
        with self._lock:
            numbers = [*self._threads] if number is None else [number]
            self._beginning |= set(numbers)
        with suppress(Py4JError, OSError):  # Spark may have ended.
            for each in numbers:
                self._context.cancelJobGroup(self._group_of(each))

    def close(self) -> None:
        """Have Spark end all workers with all that they run; that takes another moment."""
        with self._lock:
            self._closing.set()
            threads = dict(self._threads)
        if not is_alive(self._spark):
            return
        for number in threads:
            self._context.cancelJobGroup(self._group_of(number))
        for thread in threads.values():
            thread.join(_END_S)

    def _keep(self, number: int) -> None:
        budget, rng = RestartBudget(_AGAIN), random.Random()
        while True:
            cause = self._run(number)
            with self._lock:
                is_over = self._closing.is_set() or len(self._threads) > self._wanted
                if is_over:
                    del self._threads[number]
                    self._causes.pop(number, None)
            if is_over:
                return
            with self._lock:
                is_told = number in self._beginning and is_alive(self._spark)
                self._beginning.discard(number)
            if is_told:
                continue
            if not is_alive(self._spark):
                self._causes[number] = "Spark was stopped"
                return
            if not cause:  # It was drained, as when its executor of Spark will be taken away.
                continue
            self._causes[number] = cause
            again = budget.on_failure(monotonic_ms(), rng)
            assert isinstance(again, RestartAfter), "there is no limit"
            _log.warning(
                "%s %d in Spark has ended, again in %d ms: %s",
                *(self._kind, number, again.delay_ms, cause),
            )
            if self._closing.wait(again.delay_ms / 1000):
                return

    def _run(self, number: int) -> str:
        """Have Spark run a worker; return why it has failed, empty if it has ended by itself."""
        about = f"gearpy {self._kind} {number}"
        try:
            # The group is of this thread only. An interrupted task frees its core at once.
            self._context.setJobGroup(self._group_of(number), about, interruptOnCancel=True)

            rows = self._context.parallelize([number], 1)
            if self._cores is not None:
                requests = TaskResourceRequests().cpus(self._cores)
                rows = rows.withResources(ResourceProfileBuilder().require(requests).build)
            task = rows.mapPartitions(self._work(number))
            with self._lock:  # Spark notes which Python runs it while it is told of it.
                before, self._context.pythonExec = self._context.pythonExec, self._python
                try:
                    task._jrdd  # noqa: B018, SLF001 - made now
                finally:
                    self._context.pythonExec = before
            task.collect()
        except (PySparkException, Py4JError, OSError) as error:
            return cause_of(str(error))
        return ""

    def _group_of(self, number: int) -> str:
        return f"{self._group}-{number}"

    def _is_running(self, number: int) -> bool:
        tracker = self._context.statusTracker()
        jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(self._group_of(number)))
        stages = (stage for job in jobs if job is not None for stage in job.stageIds)
        return any(
            info is not None and info.numActiveTasks > 0
            for info in map(tracker.getStageInfo, stages)
        )


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
