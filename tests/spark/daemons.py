"""Processes of Spark that serve others: of the package `pyspark`, on loopback, small."""

import os
import queue
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Final

from gearpy.spark.sessions.driver import spark_home
from gearpy.spark.sessions.java import java_home
from gearpy.spark.sessions.settings import LOOPBACK

#: Small, and quick to start.
JAVA_OPTIONS: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

_START_TIMEOUT_S: Final = 300  # On a machine that does a lot besides.
_END_TIMEOUT_S: Final = 30


class Daemon:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        assert process.stdout is not None
        threading.Thread(target=self._listen, args=(process.stdout,), daemon=True).start()

    def said(self, pattern: str) -> str:
        """Wait until it says what fits, and return the group in the pattern, else the line."""
        while line := self._lines.get(timeout=_START_TIMEOUT_S):
            if found := re.search(pattern, line):
                return found[found.re.groups]
        raise AssertionError(f"it ended before it said {pattern!r}")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _listen(self, output: IO[str]) -> None:
        for line in output:
            self._lines.put(line)
        self._lines.put("")


@contextmanager
def daemon(
    arguments: Sequence[str],
    *,
    memory: str,
    options: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Iterator[Daemon]:
    env = dict(os.environ if env is None else env)
    java = " ".join([*JAVA_OPTIONS, *options])
    here = {
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": LOOPBACK,
        # Of masters and workers; of servers that are submitted.
        "SPARK_DAEMON_MEMORY": memory,
        "SPARK_DAEMON_JAVA_OPTS": java,
        "SPARK_SUBMIT_OPTS": java,
        "JAVA_HOME": str(java_home(env)),
    }
    with subprocess.Popen(
        [spark_home() / "bin" / "spark-class", *arguments],
        env={**env, **here},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Daemon(process)
        finally:
            process.terminate()  # A worker ends its executors before it ends.
            try:
                process.wait(_END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
