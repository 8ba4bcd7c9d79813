"""About the process of a master or worker: what the services show of it."""

import os
import socket
import time

from gearpy.config.load import as_overrides
from gearpy.config.schema import Config
from gearpy.ids import WorkerId
from gearpy.messages.client import MasterDetail, WorkerDetail


def master_about(config: Config, address: str, *, folder: str = "", logs: str = "") -> MasterDetail:
    """Describe the master of this process, which starts now."""
    return MasterDetail(
        address=address,
        started_ms=_wall_ms(),
        host=socket.gethostname(),
        pid=os.getpid(),
        folder=folder,
        log_folder=logs,
        config=as_overrides(config),
    )


def worker_about(config: Config, address: str, *, folder: str = "", logs: str = "") -> WorkerDetail:
    """Describe a worker of this process, which starts now; its number follows."""
    return WorkerDetail(
        worker_id=WorkerId(-1),
        address=address,
        slots=0,
        executors=(),
        started_ms=_wall_ms(),
        host=socket.gethostname(),
        pid=os.getpid(),
        folder=folder,
        log_folder=logs,
        config=as_overrides(config),
    )


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
