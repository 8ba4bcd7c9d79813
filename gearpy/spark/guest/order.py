"""WorkerOrder, MasterOrder: what a task of Spark is told, and the configuration that follows."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from gearpy.config.load import as_overrides, from_overrides
from gearpy.config.schema import Config
from gearpy.distribution import pip_install
from gearpy.errors import ConfigError
from gearpy.transport.security.secret import make_private_folders
from gearpy.transport.security.tls import AUTHORITY_FILE

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


_DAYS: Final = 365


def make_authority(folder: Path, hosts: Sequence[str]) -> Authority:
    """Have an authority in a folder, with a certificate of this host; return the authority."""
    _check_library()
    from gearpy.transport.security import certificates  # noqa: PLC0415 - needs the extra

    key = folder / certificates.AUTHORITY_KEY_FILE
    if key.exists():  # The host may be another one than before.
        certificates.make_node(folder, hosts, authority=folder, days=_DAYS, replace=True)
    else:
        certificates.make_authority_and_node(folder, hosts, days=_DAYS)
    return Authority((folder / AUTHORITY_FILE).read_bytes(), key.read_bytes())


def make_certificate(folder: Path, authority: Authority, host: str) -> None:
    """Make the certificate of a worker in a folder, where the authority's key does not stay."""
    _check_library()
    from gearpy.transport.security import certificates  # noqa: PLC0415 - needs the extra

    make_private_folders(folder)
    with TemporaryDirectory(dir=folder) as name:  # Only this user can enter it.
        place = Path(name)
        (place / AUTHORITY_FILE).write_bytes(authority.certificate)
        key = place / certificates.AUTHORITY_KEY_FILE
        key.touch(mode=0o600)
        key.write_bytes(authority.key)
        certificates.make_node(folder, [host], authority=place, days=_DAYS)


def _check_library() -> None:
    if find_spec("cryptography") is None:
        raise ConfigError(
            "Spark's executors are on other machines, so connections are encrypted, and making "
            f"certificates needs a library: {pip_install('tls')}; or, on a network that you trust, "
            'config={"transport.plain-text": "anywhere"}'
        )
