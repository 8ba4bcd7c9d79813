"""Starts the JVM of a Spark driver.

PySpark would run ``bin/spark-submit`` for that: a shell script that starts a first JVM to learn how
to start the second. Starting it here is a second or two quicker, needs no shell, works with every
Java (`java` says why that takes an effort), and is quiet.
"""

import logging
import re
import shlex
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from gearpy.errors import ConfigError, ConnectionLost
from gearpy.spark.sessions.java import Java
from gearpy.spark.sessions.settings import LOOPBACK, defaults_of

_log: Final = logging.getLogger(__name__)

#: Of all Spark 4; what starts executors asks for it.
SCALA_VERSION: Final = "2.13"

#: A JVM that is not up by then hangs.
START_TIMEOUT_S: Final = 120
_POLL_S: Final = 0.01
#: How long a JVM may clean up, or write an archive, before it is killed. An archive takes 20 s, and
#: several times that on a busy machine.
_END_TIMEOUT_S: Final = 300

#: As Spark's `JavaModuleOptions` has it, without the module that cut-down runtimes lack; only
#: linear algebra of MLlib would use that one.
_OPENED: Final = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.util.calendar",
)
#: Is there up to that version; later ones warn of it.
_OPENED_UNTIL: Final = {"sun.security.action": 23}
_MODULE_OPTIONS: Final = (
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
#: Spark's own pattern (`spark.redaction.regex`) for what must not be seen. All users of a machine
#: see the arguments of its processes; these settings reach Spark over the connection instead.
_SECRET: Final = re.compile(r"(?i)secret|password|token|access[.]?key")
#: Files of settings that Spark opens by their paths, and its scripts.
_NOT_FOR_JAVA: Final = frozenset({"spark-defaults.conf", "spark-env.sh", "workers"})
#: Settings that mean nothing before there is a session; it gets them over the connection.
_OF_SESSIONS: Final = ("spark.app.name", "spark.sql.", "spark.ui.")


class Jvm(NamedTuple):
    """A JVM that was started here, and how to reach it."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        """End the JVM in good order, and wait until it has ended."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            _log.warning("the JVM of Spark did not end in %d s, and is killed", _END_TIMEOUT_S)
            self.process.kill()
            self.process.wait()
        _log.debug("the JVM of Spark ended with status %d", self.process.returncode)


def command(
    java: Java,
    *,
    spark_home: Path,
    conf: Mapping[str, str],
    options: Sequence[str] = (),
    submit: str = "",
    env: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the command line of a driver.

    Args:
        java: The Java to start.
        spark_home: Where Spark's ``jars`` are.
        conf: All settings. Those that only count when a JVM starts (``spark.driver.memory``,
            ``spark.driver.extraJavaOptions``, ``spark.driver.extraClassPath``) become arguments.
        options: More arguments for Java.
        submit: The value of ``PYSPARK_SUBMIT_ARGS``.
        env: The environment, for the folders with Spark's and Hadoop's files of settings.
    """
    plain = {
        name: value
        for name, value in sorted(conf.items())
        if not name.startswith(_OF_SESSIONS) and not _SECRET.search(name)
    }
    return [
        str(java.program),
        "-cp",
        ":".join(class_path(spark_home, conf, env or {})),
        f"-Xmx{conf['spark.driver.memory']}",
        *module_options(java.version),
        *_logging(spark_home, env or {}),
        *options,
        *shlex.split(conf.get("spark.driver.defaultJavaOptions", "")),
        *shlex.split(conf.get("spark.driver.extraJavaOptions", "")),
        "org.apache.spark.deploy.SparkSubmit",
        *(part for name, value in plain.items() for part in ("--conf", f"{name}={value}")),
        *(shlex.split(submit) or ["pyspark-shell"]),
    ]


def class_path(spark_home: Path, conf: Mapping[str, str], env: Mapping[str, str]) -> list[str]:
    """Return where Java looks for classes and their files, in Spark's order.

    A ``conf`` of Spark's that has nothing for Java is left out: Java archives no classes behind a
    folder with files (`archive`), and every full Spark has such a folder.
    """
    folder = Path(env.get("SPARK_CONF_DIR") or spark_home / "conf")
    parts = [
        *conf.get("spark.driver.extraClassPath", "").split(":"),
        "" if _is_only_for_scripts(folder) else str(folder),
        str(spark_home / "jars" / "*"),
        env.get("HADOOP_CONF_DIR", ""),
        env.get("YARN_CONF_DIR", ""),
    ]
    return [part for part in parts if part]


def module_options(version: int) -> list[str]:
    """Return the arguments that let Spark reach into a Java of this version."""
    opened = [*_OPENED, *(name for name, until in _OPENED_UNTIL.items() if version <= until)]
    return [
        "-XX:+IgnoreUnrecognizedVMOptions",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in opened),
        *_MODULE_OPTIONS,
    ]


def environment(
    env: Mapping[str, str],
    *,
    spark_home: Path,
    java_home: Path,
    python: Mapping[str, str],
    here: bool,
    connection: Path,
) -> dict[str, str]:
    """Return the environment of a driver.

    Args:
        env: That of this process.
        spark_home: Where Spark is.
        java_home: The Java with which the driver is to start executors.
        python: Which Python runs user functions.
        here: Whether nothing but this machine takes part; then it needs no name or address.
        connection: The file in which the driver tells how to reach it.
    """
    return {
        **env,
        **python,
        **({"SPARK_LOCAL_IP": env.get("SPARK_LOCAL_IP", LOOPBACK)} if here else {}),
        "SPARK_HOME": str(spark_home),
        "SPARK_SCALA_VERSION": SCALA_VERSION,
        "JAVA_HOME": str(java_home),
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection),
    }


def read_connection(data: bytes) -> tuple[int, str]:
    """Return port and secret out of a driver's bytes: numbers are four bytes, big end first."""
    port, length = struct.unpack_from("!ii", data)
    return port, data[8 : 8 + length].decode()


def launch(
    arguments: Sequence[str],
    env: Mapping[str, str],
    connection: Path,
    *,
    timeout_s: float = START_TIMEOUT_S,
) -> Jvm:
    """Start a JVM and wait until it can be reached.

    It ends by itself when this process does: it sees its standard input close.

    Raises:
        ConfigError: It ended at once; what it said is on standard error.
        ConnectionLost: It did not come up in time, and was killed.
    """
    process = subprocess.Popen(  # noqa: S603 - our own command line.
        arguments,
        env=dict(env),
        stdin=subprocess.PIPE,
        # Ctrl-C is for Python: the JVM is not to end by it before Python has said good-bye.
        process_group=0,
    )
    deadline = time.monotonic() + timeout_s
    while not connection.is_file():
        if process.poll() is not None:
            process.communicate()  # Closes the pipe.
            raise ConfigError(
                f"the JVM of Spark ({arguments[0]}) ended with status {process.returncode} before "
                "it was up: standard error has its reason; check memory= and the Java options"
            )
        if time.monotonic() > deadline:
            process.kill()
            process.communicate()
            raise ConnectionLost(f"the JVM of Spark ({arguments[0]}) was not up in {timeout_s} s")
        time.sleep(_POLL_S)
    return Jvm(process, *read_connection(connection.read_bytes()))


def connection_file() -> Path:
    """Return where a driver may tell its secret: in a folder that only this user may read."""
    return Path(tempfile.mkdtemp(prefix="gearpy-spark-")) / "connection"


def defaults(spark_home: Path, env: Mapping[str, str]) -> dict[str, str]:
    file = Path(env.get("SPARK_CONF_DIR") or spark_home / "conf") / "spark-defaults.conf"
    return defaults_of(file.read_text("utf-8")) if file.is_file() else {}


def _is_only_for_scripts(folder: Path) -> bool:
    """Whether there are files in a folder of settings, and none that Java would look for."""
    names = [file.name for file in folder.iterdir()] if folder.is_dir() else []
    return bool(names) and all(
        name.endswith(".template") or name in _NOT_FOR_JAVA for name in names
    )


def _logging(spark_home: Path, env: Mapping[str, str]) -> list[str]:
    """Return the argument that makes Spark quiet, unless a file of the user's says otherwise."""
    folder = Path(env.get("SPARK_CONF_DIR") or spark_home / "conf")
    own = any((folder / f"log4j2.{kind}").is_file() for kind in ("properties", "xml", "yaml"))
    ours = Path(__file__).with_name("log4j2.properties")
    return [] if own else [f"-Dlog4j2.configurationFile={ours.as_uri()}"]
