"""The process of a master or worker: what the services show of it."""

import os
import socket
from pathlib import Path

from gearpy.clocks import wall_ms
from gearpy.config.load import as_overrides
from gearpy.config.schema import Config
from gearpy.messages.client import ProcessDetail


def names_of_machine(config: Config) -> tuple[str, ...]:
    names = (config.worker.machine, socket.gethostname(), config.hostname)
    return tuple(dict.fromkeys(name for name in names if name))


def this_process(
    config: Config, address: str, *, folder: str = "", logs: str = "", metrics: str = ""
) -> ProcessDetail:
    return ProcessDetail(
        address=address,
        started_ms=wall_ms(),
        host=socket.gethostname(),
        pid=os.getpid(),
        folder=_expanded(folder),
        log_folder=_expanded(logs),
        config=as_overrides(config),
        metrics_address=metrics,
    )


def _expanded(folder: str) -> str:
    return str(Path(folder).expanduser().absolute()) if folder else ""
