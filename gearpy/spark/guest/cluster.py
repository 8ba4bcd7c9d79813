"""SparkCluster: a cluster of gearpy inside an application of Spark."""

import json
import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from pyspark.sql import SparkSession

from gearpy import __version__
from gearpy.clocks import monotonic_ms
from gearpy.cluster.boot.master import MasterDaemon
from gearpy.cluster.boot.remote import RemoteCluster
from gearpy.cluster.client.client import ClusterClient, user_at_hand
from gearpy.cluster.host.folders import TemporaryFolder, private_folder
from gearpy.cluster.programs.artifacts import loading
from gearpy.cluster.programs.origin import target_of
from gearpy.config.load import Overrides, as_overrides, from_overrides, load
from gearpy.config.schema import DEFAULTS, ROOT, Config
from gearpy.core.master.registry import TERMINAL
from gearpy.errors import ConfigError, ConnectionLost, GearpyError, SubmitRefused
from gearpy.ids import AppId, WorkerId
from gearpy.messages.client import DescribeWorker, GetDemand, ListWorkers
from gearpy.messages.summaries import WorkerSummary
from gearpy.spark.guest.jobs import GuestJobs, LeavingTasks
from gearpy.spark.guest.masters import GuestMasters
from gearpy.spark.guest.order import Authority, MasterOrder, make_authority, order_of, task_of
from gearpy.spark.guest.room import cores_in, refusal, too_few
from gearpy.spark.guest.seat_notes import NUMBERS
from gearpy.spark.guest.sizing import WorkerCount
from gearpy.spark.guest.task import be_worker
from gearpy.spark.sessions.sessions import is_alive, is_connect, session
from gearpy.spark.sessions.settings import LOOPBACK, cores_of, is_here
from gearpy.storage.folder.local import LocalFolder
from gearpy.transport.security.secret import load_or_create_secret

if TYPE_CHECKING:
    from gearpy.spark.guest.submitted import SubmittedApplication
    from gearpy.task.api.application import Buildable, StreamApplication


_log = logging.getLogger(__name__)

#: The file in a cluster's folder by which ``gear --conf FILE`` finds it.
CONF_FILE: Final = "gear.toml"
_DRIVER: Final = "driver.json"
_CONF_KEYS: Final = (
    *("cluster.masters", "hostname", "checkpoint.folder"),
    *("transport.secret-file", "transport.tls", "transport.tls-folder", "transport.plain-text"),
)
#: The folder in a cluster's folder in which masters in tasks keep their files.
_SEATS: Final = "masters"
_EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - recognised, not chosen
_POLL_S: Final = 0.05
_END_S: Final = 30
_WATCH_S: Final = 1.0
_ANY_PORT: Final = 1  # It stands for one that is not known yet.


class DriverProcess(NamedTuple):
    """The process that has started a cluster, and ends it at SIGTERM."""

    pid: int
    host: str


def driver_of(folder: Path) -> DriverProcess:
    try:
        return DriverProcess(*json.loads((folder / _DRIVER).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise ConfigError(
            f"no cluster inside Spark runs over {folder}: `gear spark start --folder {folder}` "
            "starts one"
        ) from None


def cluster(
    spark: SparkSession | None = None,
    *,
    workers: int = 2,
    max_workers: int | None = None,
    masters: int = 1,
    idle_s: float = 60.0,
    cores: int | None = None,
    slots: int | None = None,
    folder: str | Path | None = None,
    port: int = 0,
    config: Overrides | None = None,
    timeout_s: float = 120.0,
) -> "SparkCluster":
    """Start a cluster of gearpy inside a Spark application, and wait until its workers are there.

    The master is in this process, or three are tasks of Spark; each worker is a task with its
    executors as child processes. A worker that is lost, with its Spark executor or by itself, is
    started again by Spark; applications go on from their newest epoch. It all ends with the
    ``with`` block, or with the Spark application.

    Args:
        spark: a session; that of `session` if not given. Not one of Spark Connect.
        workers: how many; with ``max_workers`` as few as these while no more are needed.
        max_workers: up to so many while applications wait for slots; ``workers`` if not given.
        masters: 1, in this process; or 3, each a task of Spark with a core of its own. The cluster
            then needs a ``folder`` that all machines see.
        idle_s: a worker beyond ``workers`` on which nothing runs for so long ends.
        cores: of Spark that each worker takes while it lives; ``spark.task.cpus`` if not given.
            All those of a Spark executor put one worker on each.
        slots: of each worker; ``worker.slots`` of the configuration if not given.
        folder: what the cluster goes on from when it is started over it again: its applications
            and, unless ``checkpoint.folder`` is another place, their checkpoints, which all
            machines must see. Without, all is forgotten in the end.
        port: where the master listens; 0 lets the system choose.
        config: keys of gearpy with their values, over those of files and environment.
        timeout_s: how long to wait until all workers are there.

    Raises:
        ConfigError: there is no room for the workers, their Python has no gearpy or another
            one, the folder is in use, or the arguments are wrong; nothing is left running.
        ConnectionLost: Spark was stopped meanwhile.

    Example:
        .. code-block:: python

            with gearpy.spark.cluster(spark, workers=2, folder="/shared/shop") as cluster:
                run = cluster.submit(app, executors=2)
                windows = spark.readStream.format("gearpy").load(run.window_log("counts"))
    """
    if program := loading.get():
        raise ConfigError(
            f"{program} starts a cluster while it is imported, and each process of an "
            'application imports it: put what it runs below `if __name__ == "__main__":`'
        )
    spark = session() if spark is None else spark
    at_most = workers if max_workers is None else max_workers

    # Refuse what can be known not to work before anything is started.
    if is_connect(spark):
        raise ConfigError(
            "a session of Spark Connect cannot host a cluster: its driver is elsewhere, and the "
            "master of the cluster has to be there; run this program by spark-submit, or "
            "`gear spark start` there, and connect to it by gearpy.connect"
        )
    if not is_alive(spark):
        raise ConfigError("this Spark session was stopped: start another, and give that")
    mistakes = [
        f"{name} is {number}, must be 1 or more"
        for name, number in (("workers", workers), ("cores", cores))
        if number is not None and number < 1
    ]
    if at_most < workers:
        mistakes.append(f"max_workers is {at_most}, must be as many as workers or more")
    if masters not in {1, len(NUMBERS)}:
        mistakes.append(f"masters is {masters}, must be 1, in the driver, or 3, in tasks of Spark")
    if mistakes:
        raise ConfigError(*mistakes)
    master = spark.sparkContext.master or ""
    has = cores_in(master, cores_of(master, os.cpu_count() or 1))
    each, seats = cores or _task_cores(spark), 0 if masters == 1 else masters * _task_cores(spark)
    if has is not None and (why := refusal(workers=at_most, cores=each, has=has, masters=seats)):
        raise ConfigError(why)

    if masters > 1 and folder is None:
        raise ConfigError(
            "masters are in tasks of Spark, and need a folder= that all of its machines see, where "
            "they keep what they have agreed on"
        )
    chosen = dict(config or {})
    if slots is not None:
        chosen["worker.slots"] = str(slots)
    with ExitStack() as opened:
        place = _folder(folder, opened)
        settings = _settings(spark, place, chosen, is_kept=folder is not None)
        found = SparkCluster(
            spark, settings, place, port=port, masters=masters, timeout_s=timeout_s, opened=opened
        )
        count = WorkerCount(
            workers,
            at_most,
            slots=settings.worker.slots,
            idle_ms=int(idle_s * 1000),
        )
        found.start(count, cores, timeout_s)
    return found


class SparkCluster:
    """A cluster of gearpy inside a Spark application; made by `cluster`.

    Use as a context manager, or call `close`.

    Runs on: any thread.

    Attributes:
        folder: where it keeps what it goes on from.
        client: what all else is asked of, see `RemoteCluster`.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: Config,
        folder: Path,
        *,
        port: int,
        masters: int,
        timeout_s: float,
        opened: ExitStack,
    ) -> None:
        self._spark, self._opened, self.folder = spark, opened, folder
        self._started = ExitStack()
        self._closing = threading.Lock()
        self._jobs: GuestJobs | None = None
        self._authority: Authority | None = None
        if config.transport.tls == "on":
            self._authority = make_authority(Path(config.transport.tls_folder), [config.hostname])
        self._config = config
        opened.callback((folder / CONF_FILE).unlink, missing_ok=True)
        opened.callback((folder / _DRIVER).unlink, missing_ok=True)
        if masters == 1:
            _refuse_log(self.folder / _SEATS, "three masters", "masters=3")
            bound = self._spark.sparkContext.getConf().get("spark.driver.bindAddress") or ""
            is_here_only = is_here(self._spark.sparkContext.master or "")
            is_for_others = bound in _EVERYWHERE and not is_here_only
            host = bound if is_for_others else self._config.hostname
            # Workers of a driver before have ended with it.
            master = MasterDaemon(
                self._config, host=host, port=port, logs="gearpy", can_return=False
            )
            self._opened.enter_context(master)
            self._on_members((master.address,), is_again=False)
        else:
            self._begin_masters(timeout_s)
        self.client = opened.enter_context(
            RemoteCluster(self._config.cluster.masters, self._config)
        )

    @property
    def address(self) -> str:
        """The address of its master; of several all, with commas between."""
        return ",".join(self._config.cluster.masters)

    def _begin_masters(self, timeout_s: float) -> None:
        _refuse_log(self.folder / "master", "one master", "masters=1")
        lock = LocalFolder(self.folder, private=True)
        lock.lock()
        self._opened.callback(lock.unlock)
        seats = private_folder(self.folder / _SEATS, "folder")
        masters = GuestMasters(
            self._spark,
            self._config,
            MasterOrder(
                version=__version__,
                config=as_overrides(self._config),
                folder=str(seats),
                secret=load_or_create_secret(self._config.transport.secret_file),
                authority=self._authority,
            ),
            lambda addresses, is_again: self._on_members(addresses, is_again=is_again),
        )
        self._opened.callback(masters.close)
        masters.start(timeout_s)

    def _on_members(self, masters: Sequence[str], *, is_again: bool) -> None:
        known = {**as_overrides(self._config), "cluster.masters": ",".join(masters)}
        self._config = from_overrides(known)
        file = self.folder / CONF_FILE
        config = self._config
        values = as_overrides(config)
        lines = ["# This cluster, for gear --conf; it is removed when the cluster ends."]
        for key in (key for key in _CONF_KEYS if key in values):
            value = values[key].split(",") if key == "cluster.masters" else values[key]
            lines.append(f"{ROOT}.{key} = {json.dumps(value)}")
        file.write_text("\n".join([*lines, ""]), encoding="utf-8")
        driver = DriverProcess(os.getpid(), socket.gethostname())
        (self.folder / _DRIVER).write_text(json.dumps(driver), encoding="utf-8")
        if self._jobs is None:
            return
        self.client.know_masters(masters)
        if is_again:  # Workers look for masters that nobody will be.
            self._jobs.begin_again()

    def start(self, count: WorkerCount, cores: int | None, timeout_s: float) -> None:
        """Start the workers, and wait until they are there; once, by `cluster`."""

        def work(_: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
            secret = load_or_create_secret(self._config.transport.secret_file)
            order = order_of(
                self._config, version=__version__, secret=secret, authority=self._authority
            )
            return partial(be_worker, order)

        jobs, workers = GuestJobs(self._spark, "worker", work, cores=cores), count.wanted
        self._jobs = jobs
        self._opened.callback(self._wait_for_the_end)
        self._opened.callback(jobs.close)
        self._opened.callback(self._announce_the_end, jobs)
        jobs.resize(workers)
        until_s = time.monotonic() + timeout_s
        while (came := len(self.workers())) < workers:
            if not is_alive(self._spark):
                raise ConnectionLost("Spark was stopped while a cluster of gearpy started in it")
            if jobs.failure:  # Spark itself has tried a few times.
                raise ConfigError(f"a worker could not start inside Spark: {jobs.failure}")
            if time.monotonic() > until_s:
                each = cores or _task_cores(self._spark)
                raise ConfigError(
                    too_few(workers=workers, cores=each, came=came, within_s=timeout_s)
                )
            time.sleep(_POLL_S)
        tending = WorkerTending(
            self.client,
            jobs,
            count,
            LeavingTasks(self._spark),
            is_alive=lambda: is_alive(self._spark),
            on_end=self._end_with_spark,
        )
        self._opened.enter_context(tending)
        self._started = self._opened.pop_all()

    def submit(
        self,
        app: "Buildable",
        *,
        name: str = "",
        executors: int = 0,
        config: Overrides | None = None,
    ) -> "SubmittedApplication":
        """Upload the program of an application of this process, and start it on the cluster.

        Each process of the application imports the program's file anew, so what the program runs
        has to be below ``if __name__ == "__main__":``.

        Args:
            app: a variable at the top of a module. For others see `RemoteCluster.submit_program`
                of `client`.
            name: instead of the application's own.
            executors: how many share its tasks; 0 for as few as there is room for.
            config: its own settings, by key: numbers, texts, or lists of texts.

        Raises:
            ConfigError: it cannot run, or other processes could not find it.
            OperatorError: the program itself raised.
            SubmitRefused: the cluster does not take it, as when its name is taken.
        """
        built, target = app.build(), target_of(app)
        run = self.client.submit_program(target, name=name, executors=executors, config=config)
        return self._known(run.app_id, run.name, built)

    def running(self, app: "Buildable", *, name: str = "") -> "SubmittedApplication | None":
        """Find an application that was submitted before and has not ended; None if there is none.

        A cluster that is started over its folder again goes on with its applications by itself,
        so a driver that may be started again looks here first, and then submits.

        Args:
            app: as `submit` has got it.
            name: under which it was submitted, if not its own.

        Example:
            .. code-block:: python

                run = cluster.running(app) or cluster.submit(app)
        """
        built = app.build()
        called = name or built.name
        for each in self.client.applications():
            if each.name == called and each.status not in TERMINAL:
                return self._known(each.app_id, each.name, built)
        return None

    def _known(
        self, app_id: AppId, name: str, built: "StreamApplication"
    ) -> "SubmittedApplication":
        # It needs Arrow, which workers need not wait for.
        from gearpy.spark.guest.submitted import SubmittedApplication  # noqa: PLC0415

        return SubmittedApplication(self.client, app_id, name, built)

    def workers(self) -> tuple[WorkerSummary, ...]:
        """Return the workers that are there now; one that was lost is missing for a while."""
        return self.client.ask(ListWorkers()).workers

    @property
    def id(self) -> str:
        """The id of the Spark application."""
        return str(self._spark.sparkContext.applicationId)

    def wait(self) -> None:
        """Wait until Spark ends, as a program does that only hosts the cluster.

        Raises:
            ConnectionLost: it has.
        """
        while is_alive(self._spark):
            time.sleep(_WATCH_S)
        raise ConnectionLost("the Spark application of this cluster has ended")

    def close(self) -> None:
        """End the workers with all that they run, and the master.

        Applications that run go on when a cluster is started over the same folder.
        """
        with self._closing:
            self._started.close()

    def _end_with_spark(self) -> None:
        """End what is in this process, so that who waits hears of it, and the folder is free."""
        if self._closing.acquire(blocking=False):  # Somebody may end it already.
            try:
                _log.warning(
                    "Spark has ended, and with it the cluster of gearpy at %s", self.address
                )
                self._started.close()
            finally:
                self._closing.release()

    def _announce_the_end(self, jobs: GuestJobs) -> None:
        """Have workers say that they leave, so that no restart is spent on what ends with them."""
        jobs.resize(0)
        if not is_alive(self._spark):  # They end with it.
            return
        with suppress(GearpyError):
            for each in self.workers():
                with suppress(SubmitRefused):
                    self.client.drain_worker(each.worker_id)

    def _wait_for_the_end(self) -> None:
        until_s = time.monotonic() + _END_S
        with suppress(GearpyError):
            while is_alive(self._spark) and self.workers():
                if time.monotonic() > until_s:
                    _log.warning("workers have not ended in %d s, Spark kills them", _END_S)
                    return
                time.sleep(_POLL_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SparkCluster {self.address}>"


# -- what is needed for it ---------------------------------------------------------------------


def _task_cores(spark: SparkSession) -> int:
    return math.ceil(float(spark.sparkContext.getConf().get("spark.task.cpus") or 1))


def _refuse_log(folder: Path, kind: str, argument: str) -> None:
    if folder.exists():
        raise ConfigError(
            f"folder {folder.parent} is of a cluster with {kind}, and a log of one master is no "
            f"log of three: go on with {argument}, or take another folder"
        )


def _folder(folder: str | Path | None, opened: ExitStack) -> Path:
    if folder is not None:
        return private_folder(Path(folder), "folder")
    temporary = TemporaryFolder()
    opened.callback(temporary.remove)
    return temporary.path


def _settings(spark: SparkSession, folder: Path, chosen: Overrides, *, is_kept: bool) -> Config:
    context = spark.sparkContext
    is_local = is_here(spark.sparkContext.master or "")
    # On one machine `spark-submit` has its name all the same, where nothing would be encrypted.
    host = LOOPBACK if is_local else context.getConf().get("spark.driver.host") or LOOPBACK
    own = {
        "hostname": host,
        "master.folder": str(folder / "master"),
        "log.folder": str(folder / "logs"),
        "transport.secret-file": str(folder / "secret"),
        "transport.tls-folder": str(folder / "certs"),
    }
    config = load(overrides={**chosen, **own})
    if user := user_at_hand():  # A task of Spark may have another one.
        own["master.admins"] = ",".join({*config.master.admins, user})
    own["cluster.masters"] = f"{host}:{_ANY_PORT}"  # Known when it listens.
    if config.checkpoint.folder == DEFAULTS.checkpoint.folder:
        if not (is_local or is_kept):
            raise ConfigError(
                "Spark's executors are on other machines: name a folder that all of them see, "
                "folder= or checkpoint.folder, where applications keep what they go on from"
            )
        own["checkpoint.folder"] = str(folder / "checkpoints")
    if not is_local and config.transport.plain_text != "anywhere":
        own["transport.tls"] = "on"
    config = load(overrides={**chosen, **own})
    if "://" not in config.checkpoint.folder:  # Workers look whether they see it.
        private_folder(Path(config.checkpoint.folder), "checkpoint.folder")
    return config


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
