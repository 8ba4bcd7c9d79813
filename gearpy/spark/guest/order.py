"""WorkerOrder, MasterOrder: what a task of Spark is told, and the configuration that follows."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from gearpy.config.load import as_overrides, from_overrides
from gearpy.config.schema import Config
from gearpy.errors import ConfigError

#: Keys of the machine on which a process is, and of the master; a worker elsewhere has its own.
_OF_THE_DRIVER: Final = (
    *("alerts.", "master.", "services.", "log.folder", "hostname", "listen-host"),
    *("worker.folder", "worker.machine", "worker.rack", "state.folder", "checkpoint.runs-folder"),
    *("transport.secret-file", "transport.tls-folder"),
)
_MIB: Final = 1024 * 1024
_TASK: Final = re.compile(r"spark-task-(\d+)")
_MEMORY: Final = "executor.memory-max-bytes"


class Authority(NamedTuple):
    """The authority of a cluster, as PEM: a worker makes the certificate of its host by it."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOrder:
    """An order to be a worker. It travels in the closure of a job of Spark, and nowhere else.

    Args:
        authority: of its certificates; None if it does not encrypt.
    """

    version: str
    config: Mapping[str, str]
    secret: bytes = field(repr=False)
    authority: Authority | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterOrder(WorkerOrder):
    """An order to be a master at a seat: that of a worker, and a place.

    Args:
        folder: of the seats; driver and tasks see it.
    """

    folder: str


def master_config(
    order: MasterOrder, *, number: int, folder: Path, address: str, masters: Sequence[str]
) -> Config:
    """Return the configuration of a master at a seat."""
    own = {
        "cluster.masters": ",".join(masters),
        "hostname": address.rpartition(":")[0],
        "master.folder": str(seat_folder(Path(order.folder), number)),
        "transport.secret-file": str(folder / "secret"),
        "transport.tls-folder": str(folder / "certs"),
    }
    return from_overrides({**order.config, **own})


def seat_folder(folder: Path, number: int) -> Path:
    return folder / str(number)


def order_of(
    config: Config, *, version: str, secret: bytes, authority: Authority | None = None
) -> WorkerOrder:
    """Return the order for all workers of a cluster whose master has this configuration."""
    told = {
        key: value
        for key, value in as_overrides(config).items()
        if not key.startswith(_OF_THE_DRIVER)
    }
    return WorkerOrder(version=version, config=told, secret=secret, authority=authority)


def worker_config(
    order: WorkerOrder,
    *,
    folder: Path,
    host: str,
    machine: str = "",
    task: int = 0,
    memory_mib: int | None = None,
) -> Config:
    """Return the configuration of a worker."""
    own = {
        "hostname": host,
        "worker.machine": machine,
        "worker.folder": str(folder / f"spark-task-{task}"),
        "state.folder": str(folder / "state"),
        "log.folder": str(folder / "logs"),
        "transport.tls-folder": str(folder / "certs"),
    }
    limit = {} if memory_mib is None else {_MEMORY: str(memory_mib * _MIB)}
    return from_overrides({**limit, **order.config, **own})


def task_of(folder: str) -> int | None:
    found = _TASK.fullmatch(Path(folder).name)
    return int(found[1]) if found else None


def check_version(order: WorkerOrder | MasterOrder, *, here: str, place: str) -> None:
    """Find out whether a task would be of the same gearpy as the driver."""
    if order.version != here:
        raise ConfigError(
            f"gearpy is {order.version} in the driver and {here} at {place}: install the same in "
            "both"
        )
