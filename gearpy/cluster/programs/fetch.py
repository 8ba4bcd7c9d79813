"""Fetches programs from the master to the machine that runs them."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from gearpy.errors import ConfigError
from gearpy.messages.client import Artifact, ArtifactPart, GetArtifactPart, Refused
from gearpy.storage.archives import ArtifactLimits, check_filename, unpack
from gearpy.storage.artifacts import is_sha256

_LOCK: Final = ".lock"
_PACKED: Final = ".packed"
_UNPACKED: Final = ".unpacked"


class ArtifactCache:
    """Unpacked programs in a folder that all processes of a machine may share.

    Each program is fetched and unpacked once; other users wait meanwhile. A folder is given
    its name only when all of it is on disk, and never changes after.

    Runs on: any thread. Restart: what was fetched is kept, what was begun is begun again.

    Args:
        ask: asks the master; raises `GearpyError` when there is no answer.
    """

    def __init__(self, folder: Path, ask: Callable[[Any], Any], limits: ArtifactLimits) -> None:
        self._folder = folder
        self._ask = ask
        self._limits = limits
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def path_of(self, artifact: Artifact) -> Path | None:
        """Return the folder to import a program from; None if it was not uploaded.

        Raises:
            ConfigError: the master does not have it, or it is refused.
            GearpyError: the master does not answer.
        """
        if artifact.kind != "stored":
            return None
        name = _name_of(artifact)
        ready = self._folder / name
        if not ready.is_dir():
            with self._locked(name):
                if not ready.is_dir():
                    self._get(artifact, name)
        return ready

    def drop(self, artifact: Artifact) -> None:
        """Remove the fetched files; the processes that run them must have ended."""
        name = _name_of(artifact)
        with self._locked(name):
            shutil.rmtree(self._folder / name, ignore_errors=True)

    def _get(self, artifact: Artifact, name: str) -> None:
        packed, unpacked = self._folder / f"{name}{_PACKED}", self._folder / f"{name}{_UNPACKED}"
        shutil.rmtree(unpacked, ignore_errors=True)  # Of a process that was killed.
        try:
            self._fetch(artifact.location, packed)
            unpack(packed, unpacked, artifact.filename, self._limits)
            unpacked.rename(self._folder / name)
        finally:
            packed.unlink(missing_ok=True)

    def _fetch(self, sha256: str, path: Path) -> None:
        path.unlink(missing_ok=True)
        digest, received = hashlib.sha256(), 0
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            for data in self._parts(sha256):
                received += len(data)
                if received > self._limits.bytes_max:
                    raise ConfigError(
                        f"artifact {sha256[:12]} has more than {self._limits.bytes_max} bytes: "
                        "raise artifact.max-bytes of the worker"
                    )
                digest.update(data)
                file.write(data)
        if digest.hexdigest() != sha256:
            raise ConfigError(
                f"artifact {sha256[:12]} came as {digest.hexdigest()[:12]} from the master: "
                "submit the program again"
            )

    def _parts(self, sha256: str) -> Iterator[bytes]:
        offset, last = 0, False
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
            yield part.data
            offset, last = offset + len(part.data), part.last

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """Keep other threads and processes out; a process that dies lets them in."""
        handle = os.open(self._folder / f"{name}{_LOCK}", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _name_of(artifact: Artifact) -> str:
    """Name the folder; the same bytes may be several modules, by their file names."""
    if not is_sha256(artifact.location):
        raise ConfigError(f"{artifact.location[:80]!r} is no SHA-256 of an artifact")
    check_filename(artifact.filename)
    return f"{artifact.location}-{artifact.filename}"
