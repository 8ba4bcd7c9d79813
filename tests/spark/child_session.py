"""The life of a session, in a process of its own: what happened goes to standard output as JSON.

Run by `test_without_java`: its JVM is killed here, while windows are handed over to Spark.
"""

import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import LongType

import gearpy.spark
from gearpy.errors import ConfigError
from gearpy.spark.delivery.batch import SparkBatch, overwrite
from gearpy.spark.sessions.driver import DRIVER
from tests.spark.test_spark_sink import windows_in
from tests.spark.test_to_spark import a_config, counted, run

CONF = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}

_LISTENS = "0A"
_LOOPBACK = ("0100007F", "0" * 24 + "01000000", "0000000000000000FFFF00000100007F")


def outside_listeners(pid: int) -> list[str]:
    """Return where a process listens, other than on loopback; as Linux writes addresses."""
    links = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    sockets = {link[len("socket:[") : -1] for link in links if link.startswith("socket:")}
    rows = [
        row.split()
        for table in ("tcp", "tcp6")
        for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
    ]
    assert sockets
    listening = [row[1] for row in rows if row[3] == _LISTENS and row[9] in sockets]
    assert listening
    return [address for address in listening if address.split(":")[0] not in _LOOPBACK]


def refusal(call: Callable[[], object]) -> str:
    """Return the text of the `ConfigError` that a call raises."""
    try:
        call()
    except ConfigError as error:
        return str(error)
    return "nothing was refused"


def refusal_in_a_fork() -> str:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, refusal(gearpy.spark.session).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return os.read(reader, 1000).decode()


def plus_one(spark: SparkSession) -> list[int]:
    return [row[0] for row in spark.range(3).select(_plus_one("id")).collect()]


def _checked(number: int) -> int:
    assert number >= 0, "not for these"
    return number + 1


# A lambda, as PySpark warns of type hints that are not its own.
_plus_one = f.udf(lambda number: _checked(number), LongType())  # noqa: PLW0108


def first_life(said: dict[str, Any]) -> SparkSession:
    handler = signal.getsignal(signal.SIGINT)
    spark = gearpy.spark.session(master="local[2]", conf=CONF)
    jvm: Any = spark._jvm  # noqa: SLF001 - the only way to ask a JVM.
    said["java"] = jvm.System.getProperty("java.home")
    said["sigint kept"] = signal.getsignal(signal.SIGINT) is handler
    said["left in the environment"] = [n for n in os.environ if n.startswith("PYSPARK_GATEWAY")]
    said["job"] = plus_one(spark)
    try:
        spark.range(1).select(_plus_one(f.lit(-1))).collect()
    except Exception as error:  # noqa: BLE001 - its class is PySpark's matter.
        said["failed job"] = (
            "not for these" in str(error),
            gearpy.spark.is_connection_error(error),
        )
    assert DRIVER.pid is not None
    if sys.platform == "linux":
        said["outside"] = outside_listeners(DRIVER.pid)
    said["fork"] = refusal_in_a_fork()
    said["alive"] = gearpy.spark.is_alive(spark)
    return spark


def kill() -> None:
    pid = DRIVER.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # Only waits: the status is for its owner.


def look_at(dead: SparkSession, said: dict[str, Any]) -> None:
    said["alive after the kill"] = gearpy.spark.is_alive(dead)
    try:
        dead.range(3).count()
    except Exception as error:  # noqa: BLE001 - its class is not promised.
        said["error after the kill"] = gearpy.spark.is_connection_error(error)
    said["forgotten"] = gearpy.spark.forget_dead_session()


def other_lives(said: dict[str, Any], folder: Path) -> SparkSession:
    """Hand windows over, by a thread that makes the sessions; return the last one.

    The JVM is killed in the middle of a write, and between the write and its end.
    """
    sessions: list[SparkSession] = []
    attempts: list[tuple[int, int]] = []

    def connect() -> SparkSession:
        sessions.append(gearpy.spark.session(master="local[2]", conf=CONF))
        return sessions[-1]

    def load(df: DataFrame, batch: SparkBatch) -> None:
        attempts.append((batch.id, batch.attempt))
        if len(attempts) == 1:
            kill()
            look_at(sessions[0], said)
        overwrite(df, str(folder / "table"), batch)
        if len(attempts) == 2:
            kill()
            df.count()

    run(counted(folder / "log", load, spark=connect), a_config(folder))
    said["attempts"], said["sessions"] = attempts[:3], len(sessions)
    said["windows"] = windows_in(sessions[-1].read.parquet(str(folder / "table")))
    return sessions[-1]


def last_life(said: dict[str, Any], spark: SparkSession, dead: SparkSession) -> None:
    said["second job"] = plus_one(spark)
    said["alive again"] = (gearpy.spark.is_alive(spark), gearpy.spark.is_alive(dead))
    pid = DRIVER.pid
    gearpy.spark.stop()
    said["ended"] = (not Path(f"/proc/{pid}").exists(), gearpy.spark.is_alive(spark))


def main(folder: Path) -> None:
    """Live three times; then ask for a server without what that needs."""
    logging.getLogger("gearpy").setLevel(logging.CRITICAL)  # It says what it tries again.
    said: dict[str, Any] = {}
    first = first_life(said)
    last_life(said, other_lives(said, folder), first)
    sys.modules["grpc"] = None  # type: ignore[assignment] # As if it were not installed.
    said["connect"] = refusal(lambda: gearpy.spark.session(remote="sc://127.0.0.1:1"))
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
