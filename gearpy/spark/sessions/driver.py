"""The Spark driver of this process, and the state that PySpark keeps about it in its modules.

PySpark has one gateway to one JVM for the life of a process, and no way to get another one after
that JVM was killed: every call fails from then on. All that reaches into PySpark for the sake of
that is in this module, written against PySpark 4.2 and 4.3.
"""

# ruff: noqa: SLF001 - there is no other way; hence all of it is here.

import gc
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext, SparkFiles, java_gateway
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, SQLContext
from pyspark.sql.udf import UserDefinedFunction
from pyspark.sql.udtf import UserDefinedTableFunction

from gearpy.errors import ConfigError, ConnectionLost
from gearpy.spark.sessions.java import java_home
from gearpy.spark.sessions.settings import LOOPBACK, is_here, launch_settings, python_env

_log: Final = logging.getLogger(__name__)

_PORT: Final = "PYSPARK_GATEWAY_PORT"
_PROBE_TIMEOUT_S: Final = 5
#: A JVM that is not up by then hangs.
START_TIMEOUT_S: Final = 120
#: How long a JVM may clean up before it is killed.
_END_TIMEOUT_S: Final = 60
_CONNECT_PORT: Final = 15002


def spark_home() -> Path:
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def conf_folder() -> Path:
    return Path(os.environ.get("SPARK_CONF_DIR") or spark_home() / "conf")


class Jvm(subprocess.Popen[bytes]):
    """The process of a JVM, which ends when its standard input does.

    PySpark would wait for ever for one that hangs, or that ended without an error.
    """

    #: Until when PySpark may wait; None when it is up.
    deadline_s: float | None = None

    def poll(self) -> int | None:
        """Return the status with which it ended, if it did; while it starts, that is an error.

        Raises:
            ConfigError: It ended before it was up; what it said is on standard error.
            ConnectionLost: It did not come up in time, and was killed.
        """
        status = super().poll()
        if self.deadline_s is None or (status is None and time.monotonic() < self.deadline_s):
            return status
        self.deadline_s = None
        self.kill()
        self.communicate()  # Closes the pipe.
        if status is None:
            raise ConnectionLost(f"the JVM of Spark was not up in {START_TIMEOUT_S} s")
        raise ConfigError(
            f"the JVM of Spark ended with status {status} before it was up: standard error has its "
            "reason; check memory= and the Java options"
        )

    def end(self) -> None:
        if self.stdin is not None:
            self.stdin.close()
        try:
            self.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            _log.warning("the JVM of Spark did not end in %d s, and is killed", _END_TIMEOUT_S)
            self.kill()
            self.wait()


class Driver:
    """The JVM of this process, if it has one, also one that gearpy did not start.

    Runs on: any thread, under the lock of `session`. There is one, `DRIVER`.
    """

    def __init__(self) -> None:
        self._jvm: Jvm | None = None
        self._settings: Mapping[str, str] = {}
        self._owner = os.getpid()

    @property
    def pid(self) -> int | None:
        return None if self._jvm is None else self._jvm.pid

    @property
    def session(self) -> SparkSession | None:
        context: Any = SparkContext._active_spark_context
        if context is None or context._jsc is None:
            return None
        if context._jsc.sc().isStopped():  # Its cluster went away.
            context.stop()
            return None
        made = SparkSession._instantiatedSession
        return made if made is not None and made._sc is context else SparkSession(context)

    @property
    def is_given(self) -> bool:
        return self._jvm is None and (_PORT in os.environ or SparkContext._gateway is not None)

    def is_up(self) -> bool:
        gateway: Any = SparkContext._gateway
        if gateway is None:
            return False
        if self._jvm is not None:
            if self._owner != os.getpid():
                raise ConfigError(
                    f"process {os.getpid()} was forked from {self._owner}, whose Spark it cannot "
                    "use: start processes with multiprocessing's 'spawn', or make the session in "
                    "each"
                )
            return self._jvm.poll() is None
        # Asking PySpark would write tracebacks to the log if no JVM is there.
        return _is_open("127.0.0.1", gateway.java_parameters.port)

    def is_dead(self) -> bool:
        return SparkContext._gateway is not None and not self.is_up()

    def runs(self, spark: SparkSession) -> bool:
        context: Any = spark._sc
        if context._jsc is None or not self.is_up():
            return False
        try:
            return not context._jsc.sc().isStopped()
        except (Py4JError, OSError):
            return False

    def start(self, settings: Mapping[str, str]) -> None:
        """Have a JVM that was started with these settings of a session; without one, start it.

        One of ours that was started otherwise (with less memory, say) is ended: it is not in use.

        Raises:
            ConfigError: There is no Java that runs Spark, or the JVM ended at once.
            ConnectionLost: It did not come up in time.
        """
        own = any(
            (conf_folder() / f"log4j2.{kind}").is_file() for kind in ("properties", "xml", "yaml")
        )
        ours = Path(__file__).with_name("log4j2.properties")
        settings = launch_settings(
            settings, logging=("" if own else f"-Dlog4j2.configurationFile={ours.as_uri()}")
        )
        if self._jvm is not None and self._settings != settings:
            self.end()
        if SparkContext._gateway is None:
            gateway = _launched(settings)
            SparkContext._ensure_initialized(gateway=gateway)
            self._jvm, self._settings, self._owner = gateway.proc, settings, os.getpid()

    def end(self) -> None:
        if self._jvm is not None:
            self._jvm.end()
            self.forget()

    def forget(self) -> None:
        """Make PySpark forget a JVM that is gone, so that it can have another one.

        Functions that were made with `udf` keep working: they are registered again on their next
        use. Data frames, streaming queries and broadcast variables are gone.
        """
        context: Any = SparkContext._active_spark_context
        gateway: Any = SparkContext._gateway
        if context is not None:
            context._jsc = None
            server = context._accumulatorServer
            if server is not None:
                server.shutdown()
                server.server_close()
                context._accumulatorServer = None
            SparkFiles._sc = None
            # Each context has added a folder with files for user functions.
            sys.path[:] = [
                path for path in sys.path if not Path(path).name.startswith("userFiles-")
            ]
        if gateway is not None:
            logger = logging.getLogger("py4j")
            was, logger.disabled = logger.disabled, True
            try:
                gateway.shutdown()
            except (OSError, Py4JError):
                _log.debug("the JVM was gone already", exc_info=True)
            finally:
                logger.disabled = was
        SparkContext._active_spark_context = None
        SparkContext._gateway = SparkContext._jvm = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None
        SQLContext._instantiatedContext = None
        frozen = gc.get_freeze_count()  # `ProcessTuning` freezes: frozen objects are in no list.
        gc.unfreeze()
        for thing in gc.get_objects():
            # `type`, as proxies of others may do anything when they are asked for their class.
            if issubclass(type(thing), UserDefinedFunction):
                thing._judf_placeholder = None
            elif issubclass(type(thing), UserDefinedTableFunction):
                thing._judtf_placeholder = None
        if frozen:
            gc.freeze()
        if self._jvm is not None:
            self._jvm.end()
        self._jvm, self._settings = None, {}


#: The one of this process.
DRIVER: Final = Driver()


def be_quiet() -> None:
    context: Any = SparkContext._active_spark_context
    context._accumulatorServer.handle_error = lambda *_: None


def server_answers(spark: Any) -> bool:
    """Whether the Spark Connect server of a session is there, and knows the session.

    The client itself would try again for minutes; hence a look at the port before.
    """
    try:
        if spark.is_stopped or not is_open(f"sc://{spark.client._builder.endpoint}"):
            return False
        # The client would remember the server's version.
        return spark.conf.get("spark.sql.session.timeZone") is not None
    except PySparkException:
        return False


def is_open(url: str) -> bool:
    where = urlsplit(url)
    return _is_open(where.hostname or "", where.port or _CONNECT_PORT)


def _is_open(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), _PROBE_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def _launched(settings: Mapping[str, str]) -> Any:
    here = is_here(settings["spark.master"])
    python = python_env(settings["spark.master"], os.environ, python=sys.executable)
    # Spark would look up the host's name, and bind to the address outside.
    local = {"SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", LOOPBACK)} if here else {}
    own = {**python, **local, "SPARK_HOME": str(spark_home()), "JAVA_HOME": str(java_home())}

    def start(command: list[str], **options: Any) -> Jvm:
        # Ctrl-C is for Python: neither the JVM nor its workers are to end by it before.
        options |= {"env": {**options["env"], **own}, "process_group": 0}
        jvm = Jvm(command, **options)
        jvm.deadline_s = time.monotonic() + START_TIMEOUT_S
        return jvm

    launcher: Any = java_gateway
    popen, launcher.Popen = launcher.Popen, start
    try:
        conf = SparkConf(loadDefaults=False).setAll([*settings.items()])
        gateway = launcher.launch_gateway(conf)
    finally:
        launcher.Popen = popen
    gateway.proc.deadline_s = None
    if "PYSPARK_PYTHON" in python:  # PySpark looks here for the Python of user functions.
        os.environ["PYSPARK_PYTHON"] = python["PYSPARK_PYTHON"]
    return gateway
