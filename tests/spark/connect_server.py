"""A Spark Connect server on loopback, of the package `pyspark`; one that may be killed."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gearpy.spark.sessions.settings import LOOPBACK, session_settings
from tests.spark.daemons import Daemon, daemon

_SERVER: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"
_LOGGING: Final = f"""
status = error
rootLogger.level = off
rootLogger.appenderRef.out.ref = console
logger.server.name = {_SERVER}
logger.server.level = info
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %m%n
"""


@contextmanager
def connect_server(folder: Path, port: int) -> Iterator[Daemon]:
    logging = folder / "connect.properties"
    logging.write_text(_LOGGING)
    conf = session_settings(
        "server", master="local[2]", memory="1g", conf={}, fast_files=True, cores=2
    ) | {
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    arguments = [
        "org.apache.spark.deploy.SparkSubmit",
        *("--class", _SERVER),
        *(part for name, value in conf.items() for part in ("--conf", f"{name}={value}")),
        "spark-internal",
    ]
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    options = [f"-Dlog4j2.configurationFile={logging.as_uri()}"]
    with daemon(arguments, memory="1g", options=options, env=env) as server:
        server.said("Spark Connect server started")
        yield server
