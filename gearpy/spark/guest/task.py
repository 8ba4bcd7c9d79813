"""The work of a task of Spark that is a worker.

Its executors and app masters are child processes, which die with it, see `gearpy.cluster.worker`;
and it dies with its task, see `tie`. So nothing of gearpy outlives what Spark has given.
"""

import logging
import os
import select
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, Self

from pyspark import TaskContext

from gearpy import __version__
from gearpy.cluster.boot.worker import WorkerDaemon
from gearpy.cluster.host.folders import TemporaryFolder
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, NodeGivenUp
from gearpy.spark.guest.order import (
    MasterOrder,
    WorkerOrder,
    check_version,
    make_certificate,
    worker_config,
)
from gearpy.transport.api import split_address

_log = logging.getLogger(__name__)

#: Spark tells its Python by it what it may have, if that is limited.
_MEMORY_MIB: Final = "PYSPARK_EXECUTOR_MEMORY_MB"
#: An executor of Spark is told by it what its machine is called.
_HOSTNAME: Final = "--hostname"
_ANCESTORS: Final = 3  # The daemon that forks processes of Python, and the JVM.


def be_worker(order: WorkerOrder, rows: Iterable[Any]) -> Iterator[Any]:
    """Run a worker until the task is over, or the worker ends by itself.

    Raises:
        ConfigError: this machine cannot be a worker of that cluster.
        ConnectionLost: there is no master any more.
    """
    begin_task(order, rows)
    with ExitStack() as opened:
        running: list[WorkerDaemon] = []

        def kill() -> None:
            for each in [*running]:
                each.kill()

        opened.enter_context(TaskTie(kill))
        folder = TemporaryFolder()
        opened.callback(folder.remove)
        config = config_here(order, folder.path)
        while True:
            with (
                suppress(NodeGivenUp),  # Begin anew: as another node, with nothing that runs.
                WorkerDaemon(
                    config, secret=order.secret, on_ready=_log.info, on_waiting=_log.warning
                ) as daemon,
            ):
                running.append(daemon)
                try:
                    daemon.wait()
                finally:
                    running.clear()
                return iter(())


def begin_task(order: WorkerOrder | MasterOrder, rows: Iterable[Any]) -> None:
    """Take the rows that Spark sends, and check that this Python has the gearpy of the driver."""
    for _ in rows:  # All of it is read; from then on Spark's connection only ends.
        pass
    place = f"{socket.gethostname()} ({sys.executable})"
    check_version(order, here=__version__, place=place)


def config_here(order: WorkerOrder, folder: Path) -> Config:
    """Return the configuration of a worker here; make its certificate, if it needs one."""
    first, *_ = order.config["cluster.masters"].split(",")
    host = address_towards(*split_address(first))
    if order.authority is not None:
        make_certificate(folder / "certs", order.authority, host)
    memory = os.environ.get(_MEMORY_MIB)
    config = worker_config(
        order,
        folder=folder,
        host=host,
        machine=machine_here(),
        task=task_number(),
        memory_mib=None if memory is None else int(memory),
    )
    stored = config.checkpoint.folder
    if "://" not in stored and not Path(stored).expanduser().is_dir():
        raise ConfigError(
            f"a worker at {socket.gethostname()} does not see checkpoint.folder, {stored}: name "
            "one that all machines see, such as a mounted folder, hdfs:// or s3://"
        )
    return config


def task_number() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.taskAttemptId()


def machine_here() -> str:
    """Return the name that Spark has for this machine; empty where that cannot be seen.

    It is a name that sources in HDFS give for their blocks, where Spark and HDFS agree on names.
    """
    pid = os.getppid()
    with suppress(OSError, ValueError, IndexError):
        for _ in range(_ANCESTORS):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if _HOSTNAME.encode() in words:
                return words[words.index(_HOSTNAME.encode()) + 1].decode()
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return ""


def address_towards(host: str, port: int) -> str:
    """Return the address of this machine on the network where another host is."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(where)  # Nothing is sent: it is for datagrams.
            return str(probe.getsockname()[0])
    except OSError as error:
        raise ConfigError(
            f"a task at {socket.gethostname()} does not reach the driver's host {host}: {error}; "
            "set spark.driver.host to a name that Spark's executors can reach"
        ) from error


_FDS: Final = Path("/proc/self/fd")
_SOCKET: Final = "socket:"
_GONE: Final = 1  # The exit code; nobody is there to see it.


class TaskTie:
    """A thread that ends this process when its task of Spark, or its parent, is gone.

    Use as a context manager around what the task does, before that opens connections of its own:
    those that are there when it is made are Spark's.

    Runs on: a thread of its own. Where there is no ``/proc``, Spark alone ends the process.
    """

    def __init__(self, before: Callable[[], object]) -> None:
        self._before = before
        self._processes, self._connections = _parent(), _connections()
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._watch, name="gearpy-task-tie", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._stop_write, b"\0")
        self._thread.join()
        own = (self._stop_read, self._stop_write)
        for descriptor in (*self._processes, *self._connections, *own):
            os.close(descriptor)

    def _watch(self) -> None:
        poll = select.poll()
        for descriptor in (self._stop_read, *self._processes):  # The end of a process can be read.
            poll.register(descriptor, select.POLLIN)
        for descriptor in self._connections:
            poll.register(descriptor, select.POLLRDHUP)
        if any(descriptor == self._stop_read for descriptor, _ in poll.poll()):
            return
        with suppress(Exception):
            self._before()
        os._exit(_GONE)


def _parent() -> list[int]:
    """Return a descriptor of the process that has started this one; none where there are none."""
    try:
        return [os.pidfd_open(os.getppid())]
    except (AttributeError, OSError):
        return []


def _connections() -> list[int]:
    """Return copies of the descriptors of all connections that this process has."""
    found: list[int] = []
    with suppress(OSError):
        for link in _FDS.iterdir():
            with suppress(OSError):
                if str(link.readlink()).startswith(_SOCKET):
                    found.append(os.dup(int(link.name)))
    return found
