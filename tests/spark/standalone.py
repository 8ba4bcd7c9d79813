"""A Spark cluster on loopback: a master and workers, each a process, of the package `pyspark`."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from gearpy.spark.sessions.settings import LOOPBACK
from tests.spark.daemons import daemon

#: Master and workers tell where they are on standard output.
_LOGGING: Final = """
status = error
rootLogger.level = off
rootLogger.appenderRef.out.ref = console
logger.deploy.name = org.apache.spark.deploy.master.Master
logger.deploy.level = info
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %m%n
"""


@contextmanager
def standalone_cluster(
    folder: Path, *, workers: int = 2, cores: int = 1, env: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run a cluster while the block runs; give its URL.

    Args:
        folder: An empty one, for what executors write: each runs in ``APPLICATION/EXECUTOR`` there.
    """
    logging = folder / "log4j2.properties"
    logging.write_text(_LOGGING)
    # The server for REST has a fixed port.
    options = [
        f"-Dlog4j2.configurationFile={logging.as_uri()}",
        "-Dspark.master.rest.enabled=false",
    ]
    with ExitStack() as stack:
        start = partial(daemon, memory="256m", options=options, env=env)
        master = stack.enter_context(start(_arguments("master.Master")))
        url = master.said(r"Starting Spark master at (spark://\S+)")
        size = ("--cores", str(cores), "--memory", "512m", "--work-dir", str(folder), url)
        worker = [*_arguments("worker.Worker"), *size]
        for _ in range(workers):
            stack.enter_context(start(worker))
        for _ in range(workers):
            master.said("Registering worker")
        yield url


def _arguments(name: str) -> list[str]:
    return [
        f"org.apache.spark.deploy.{name}",
        *("--host", LOOPBACK, "--port", "0", "--webui-port", "0"),
    ]
