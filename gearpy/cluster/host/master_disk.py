"""The files of a master: how large they are, and how much room is left."""

import shutil
from collections.abc import Callable
from pathlib import Path

from gearpy import __version__
from gearpy.clocks import wall_ms
from gearpy.messages.masters import MasterDisk
from gearpy.storage.artifacts import ArtifactStore

_NS_PER_MS = 1_000_000


def disk_of(folder: Path, log: str, store: ArtifactStore) -> Callable[[], MasterDisk]:
    """Return a function that describes the files of a master that begins now."""
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
