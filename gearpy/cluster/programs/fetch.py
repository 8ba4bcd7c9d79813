"""Fetches programs from the master to the machine that runs them."""

import fcntl
import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final

from gearpy.errors import ConfigError
from gearpy.messages.client import Artifact, ArtifactPart, GetArtifactPart, Refused
from gearpy.storage.archives import ArtifactLimits, check_filename, unpack
from gearpy.storage.artifacts import is_sha256

_LOCK: Final = ".lock"
_USED: Final = ".used"  # Shared by all who need it; its time is when it was used last.
_PACKED: Final = ".packed"
_UNPACKED: Final = ".unpacked"


class ArtifactCache:
    """Unpacked programs in a folder that all processes of a machine may share.

    Each program is fetched and unpacked once; other users wait meanwhile. A folder is given
    its name only when all of it is on disk, and never changes after. Those that were used longest
    ago go when another one is fetched and all together have more than a quota.

    Invariant: a program stays while a process lives that has asked for its path, until that closes
    this.

    Runs on: any thread. Restart: what was fetched is kept, what was begun is begun again.
    """

    def __init__(
        self,
        folder: Path,
        ask: Callable[[Any], Any],
        limits: ArtifactLimits,
        *,
        quota_bytes: int = 0,
    ) -> None:
        self._folder = folder
        self._ask = ask
        self._limits = limits
        self._quota_bytes = quota_bytes
        self._lock = Lock()
        self._used: dict[str, int] = {}  # Locks that are held.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def path_of(self, artifact: Artifact) -> Path | None:
        if artifact.kind != "stored":
            return None
        if not is_sha256(artifact.location):
            raise ConfigError(f"{artifact.location[:80]!r} is no SHA-256 of an artifact")
        check_filename(artifact.filename)
        name = f"{artifact.location}-{artifact.filename}"
        ready = self._folder / name
        with self._lock:
            if name not in self._used:  # A removal is over in a moment.
                self._used[name] = self._locked(name, _USED, fcntl.LOCK_SH)
                os.utime(self._used[name])
        if not ready.is_dir():
            with _closing(self._locked(name, _LOCK, fcntl.LOCK_EX)):
                if not ready.is_dir():
                    packed, unpacked = (
                        self._folder / f"{name}{_PACKED}",
                        self._folder / f"{name}{_UNPACKED}",
                    )
                    shutil.rmtree(unpacked, ignore_errors=True)  # A process was killed there.
                    try:
                        self._fetch(artifact.location, packed)
                        unpack(packed, unpacked, artifact.filename, self._limits)
                        unpacked.rename(self._folder / name)
                    finally:
                        packed.unlink(missing_ok=True)
            self._keep_quota()
        return ready

    def close(self) -> None:
        """Let programs go that were asked for here, when nothing runs any more that needs them."""
        with self._lock:
            used, self._used = self._used, {}
        for handle in used.values():
            os.close(handle)

    # -- the quota -------------------------------------------------------------------------

    def _keep_quota(self) -> None:
        sizes: Counter[str] = Counter()
        for each in self._folder.iterdir() if self._quota_bytes else ():
            if each.suffix not in {_LOCK, _USED}:
                sizes[each.name.removesuffix(_PACKED).removesuffix(_UNPACKED)] += _bytes_in(each)
        left = sum(sizes.values()) - self._quota_bytes
        for name in sorted(sizes, key=self._used_ns):
            if left <= 0:
                return
            try:
                handle = self._locked(name, _USED, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            with _closing(handle):
                unpacked = self._folder / f"{name}{_UNPACKED}"
                shutil.rmtree(unpacked, ignore_errors=True)
                with suppress(FileNotFoundError):
                    (self._folder / name).rename(unpacked)  # A crash leaves nothing half there.
                shutil.rmtree(unpacked, ignore_errors=True)
                for suffix in (_PACKED, _LOCK, _USED):
                    (self._folder / f"{name}{suffix}").unlink(missing_ok=True)
            left -= sizes[name]

    def _used_ns(self, name: str) -> int:
        with suppress(FileNotFoundError):
            return (self._folder / f"{name}{_USED}").stat().st_mtime_ns
        return 0

    # -- fetching --------------------------------------------------------------------------

    def _fetch(self, sha256: str, path: Path) -> None:
        path.unlink(missing_ok=True)
        digest, offset, last = hashlib.sha256(), 0, False
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            while not last:
                part = self._ask(GetArtifactPart(sha256=sha256, offset=offset))
                if isinstance(part, Refused):
                    raise ConfigError(part.reason)
                if (
                    not isinstance(part, ArtifactPart)
                    or (part.sha256, part.offset) != (sha256, offset)
                    or not (part.data or part.last)
                ):
                    raise ConfigError(f"artifact {sha256[:12]}: the master answered something else")
                offset, last = offset + len(part.data), part.last
                if offset > self._limits.bytes_max:
                    raise ConfigError(
                        f"artifact {sha256[:12]} has more than {self._limits.bytes_max} bytes: "
                        "raise artifact.max-bytes of the worker"
                    )
                digest.update(part.data)
                file.write(part.data)
        if digest.hexdigest() != sha256:
            raise ConfigError(
                f"artifact {sha256[:12]} came as {digest.hexdigest()[:12]} from the master: "
                "submit the program again"
            )

    def _locked(self, name: str, suffix: str, how: int) -> int:
        """Lock a program, for this and all other processes; a process that dies lets go."""
        path = self._folder / f"{name}{suffix}"
        while True:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(handle, how)
                with suppress(FileNotFoundError):
                    if os.path.samestat(path.stat(), os.fstat(handle)):
                        return handle
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)  # It was removed meanwhile.


@contextmanager
def _closing(handle: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(handle)


def _bytes_in(place: Path) -> int:
    paths = [place]
    for folder, _, names in os.walk(place):  # It passes over files that vanish meanwhile.
        paths += [Path(folder, name) for name in names]
    total = 0
    for path in paths:
        with suppress(OSError):
            total += 0 if path.is_dir() else path.lstat().st_size
    return total
