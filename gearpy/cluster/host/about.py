"""The process of a master or worker: what the services show of it."""

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

from gearpy import __version__
from gearpy.clocks import wall_ms
from gearpy.config.load import as_overrides
from gearpy.config.schema import Config
from gearpy.messages.client import ProcessDetail
from gearpy.messages.masters import MasterDisk
from gearpy.storage.artifacts import ArtifactStore


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


_NS_PER_MS = 1_000_000


def disk_of(folder: Path, log: str, store: ArtifactStore) -> Callable[[], MasterDisk]:
    started_ms = wall_ms()
    where = folder.expanduser()

    def describe() -> MasterDisk:
        found = [(each, each.stat()) for each in (where / log).iterdir() if each.is_file()]
        snapshots = [info.st_mtime_ns for path, info in found if path.name.startswith("snapshot-")]
        kept = store.kept()
        sums = (kept.living, kept.ended, kept.others)
        return MasterDisk(
            version=__version__,
            started_ms=started_ms,
            folder=str(where),
            log_bytes=sum(info.st_size for _, info in found),
            snapshot_ms=max(snapshots, default=0) // _NS_PER_MS,
            programs=sum(number for number, _ in sums),
            programs_bytes=sum(size for _, size in sums),
            quota_bytes=store.quota_bytes,
            free_bytes=shutil.disk_usage(where).free,
        )

    return describe
