"""Programs that were uploaded, each a file named after the SHA-256 of its bytes."""

import hashlib
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, Self, TypeAlias

from gearpy.config.schema import ArtifactConfig
from gearpy.core.master.programs import GRACE_MS, ProgramsKept, UnneededSince
from gearpy.errors import ConfigError
from gearpy.messages.client import (
    Artifact,
    ArtifactMissing,
    ArtifactPart,
    ArtifactStored,
    GetArtifactPart,
    HasArtifact,
    Refused,
    UploadArtifact,
)
from gearpy.messages.summaries import ApplicationSummary
from gearpy.storage.folder.api import Folder
from gearpy.storage.folder.at import folder_at
from gearpy.storage.folder.files import create_file, sync_file, sync_folder
from gearpy.views import text

#: Artifacts travel in parts of this size.
PART_BYTES: Final = 256 * 1024

#: Uploads under way; the one that has waited longest gives way to another.
UPLOADS_MAX: Final = 16

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_BUFFER_BYTES: Final = 1 << 17
_COPY_BYTES: Final = 1 << 20
_PARTIAL: Final = ".partial"

_log = logging.getLogger(__name__)


def is_sha256(text: str) -> bool:
    """Whether a text is a SHA-256 in hex, and so safe as the name of a file."""
    return _SHA256.fullmatch(text) is not None


@dataclass(eq=False, slots=True)
class _Upload:
    """The part of an artifact that has arrived; ``lock`` is held while more is written."""

    path: Path
    received: int = 0
    digest: Any = field(default_factory=hashlib.sha256)
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: bool = False


class ArtifactStore:
    """Keeps artifacts in a folder, by content; one that was stored never changes.

    An upload may stop and go on where it was, as long as the process lives. It counts only when
    all of it has arrived, has the SHA-256 it was announced with, and is on disk.

    With a second folder that others see, too, each artifact is there as well before it counts, and
    one that is only there is copied from it when it is asked for.

    What no application needs any more goes at a `sweep`; nothing goes from the second folder.

    Runs on: any thread. Restart: keeps what was stored; uploads under way begin again.

    Args:
        bytes_max: an artifact above this size is refused.
        shared: where others find artifacts, and this one those of others; None: nowhere.
        quota_bytes: nothing is taken that would make all of them larger; 0: everything is.
        grace_ms: what nobody needs or asks for stays so long.
    """

    def __init__(
        self,
        folder: Path,
        bytes_max: int,
        shared: Folder | None = None,
        *,
        quota_bytes: int = 0,
        grace_ms: int = GRACE_MS,
    ) -> None:
        self._folder = folder
        self._bytes_max = bytes_max
        self._shared = shared
        self.quota_bytes = quota_bytes  #: All of them may have so many bytes; 0: any number.
        self._unneeded = UnneededSince[str](grace_ms)
        self._idle = UnneededSince[tuple[str, int]](grace_ms)  # Uploads, with what has arrived.
        self._needed: Mapping[str, ApplicationSummary] = {}  # At the last sweep.
        self._is_shared: set[str] = set()
        self._copying = threading.Lock()
        self._lock = threading.Lock()
        self._uploads: dict[str, _Upload] = {}  # The one that was written to last is last.
        self._sound: set[str] = set()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for leftover in folder.glob(f"*{_PARTIAL}"):
            leftover.unlink(missing_ok=True)

    @classmethod
    def configured(cls, folder: Path, config: ArtifactConfig) -> Self:
        """Return the store in a folder as a configuration has it."""
        if not config.folder:
            return cls(folder, config.max_bytes, quota_bytes=config.quota_bytes)
        shared = folder_at(config.folder, key="artifact.folder", private=True)
        try:
            shared.make()
        except OSError as error:
            raise ConfigError(f"artifact.folder {shared.place} cannot be used: {error}") from error
        shared.hold("")
        return cls(folder, config.max_bytes, shared, quota_bytes=config.quota_bytes)

    def shas(self) -> tuple[str, ...]:
        return tuple(sorted(path.name for path in self._folder.iterdir() if is_sha256(path.name)))

    def has(self, sha256: str) -> bool:
        """Tell whether the artifact is stored and undamaged, in the shared folder, too.

        The bytes are read once in the life of the process. An artifact that has rotted on disk is
        dropped, so that it can be uploaded again.
        """
        with self._lock:
            self._unneeded.on_used(sha256)  # No sweep takes it from now on.
        if self._has_here(sha256):
            self._share(sha256, self._path(sha256))
            return True
        return self._copied(sha256)

    def kept(self) -> ProgramsKept:
        return ProgramsKept.of(self._sizes(), self._needed)

    def sweep(self, needed: Mapping[str, ApplicationSummary], now_ms: int) -> list[str]:
        """Remove programs that no application needs, and stalled uploads; return their names.

        Args:
            needed: the names of files that an application needs, or may need.
        """
        with self._lock:
            self._needed = needed
            gone = self._unneeded.look(self.shas(), needed, now_ms)
            for sha256 in gone:
                self._sound.discard(sha256)
                self._is_shared.discard(sha256)
                self._path(sha256).unlink(missing_ok=True)
            uploads = {(name, each.received): each for name, each in self._uploads.items()}
            idle = self._idle.look(uploads, (), now_ms)
        for key in idle:
            with uploads[key].lock:
                if uploads[key].received == key[1]:
                    self._end(key[0], uploads[key])
        return gone + [name for name, _ in idle]

    def _sizes(self) -> dict[str, int]:
        with os.scandir(self._folder) as entries:
            found = [(each.name, each) for each in entries]
        sizes: dict[str, int] = {}
        for name, entry in found:
            with suppress(FileNotFoundError):  # It has just got its name, or was given up.
                sizes[name] = entry.stat().st_size
        return sizes

    def _has_here(self, sha256: str) -> bool:
        path = self._path(sha256)
        if sha256 in self._sound or not path.is_file():
            return path.is_file()
        with path.open("rb") as file:
            sound = hashlib.file_digest(file, "sha256").hexdigest() == sha256
        if sound:
            self._sound.add(sha256)
        else:
            path.unlink(missing_ok=True)
        return sound

    def size(self, sha256: str) -> int:
        try:
            return self._path(sha256).stat().st_size
        except FileNotFoundError:
            raise _unknown(sha256) from None

    def path(self, sha256: str) -> Path:
        if not (self._has_here(sha256) or self._copied(sha256)):
            raise _unknown(sha256)
        return self._path(sha256)

    def received(self, sha256: str) -> int:
        with self._lock:
            upload = self._uploads.get(sha256)
            return upload.received if upload is not None else 0

    def read(self, sha256: str, *, offset: int, count: int) -> bytes:
        if not (self._has_here(sha256) or self._copied(sha256)):
            raise _unknown(sha256)
        size = self.size(sha256)
        if not 0 <= offset <= size:
            raise ConfigError(f"artifact {sha256[:12]} has {size} bytes, none at {offset}")
        with self._path(sha256).open("rb") as file:
            file.seek(offset)
            return file.read(count)

    def write(self, sha256: str, *, offset: int, data: bytes, last: bool) -> bool:
        """Take some bytes of an upload; return whether it is stored now.

        What has arrived before is skipped, and what would leave a gap is not taken: `received`
        tells where to go on.

        Raises:
            ConfigError: it is too large, or in the end has another SHA-256.
        """
        self._path(sha256)
        if offset < 0 or offset + len(data) > self._bytes_max:
            raise ConfigError(
                f"the artifact has {offset + len(data)} bytes or more, "
                f"at most {self._bytes_max} are taken: raise artifact.max-bytes of the master"
            )
        # The shared folder is asked once for an upload, and not for each part of it.
        if self._has_here(sha256) if self.received(sha256) else self.has(sha256):
            return True

        with self._lock:
            upload = self._uploads.pop(sha256, None)
            if upload is None:
                path = self._folder / f"{sha256}{_PARTIAL}"
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
                upload = _Upload(path)
            self._uploads[sha256] = upload
            oldest = next(iter(self._uploads.items()))
            crowded = len(self._uploads) > UPLOADS_MAX
        if crowded:
            with oldest[1].lock:
                self._end(*oldest)

        with upload.lock:
            if upload.ended:  # Another thread had the last part, or it gave way.
                return self.has(sha256)
            try:
                return self._take(sha256, upload, offset=offset, data=data, last=last)
            except BaseException:
                self._end(sha256, upload)
                raise

    def drop(self, sha256: str) -> None:
        with self._lock:
            upload = self._uploads.get(sha256)
        if upload is not None:
            with upload.lock:
                self._end(sha256, upload)
        self._sound.discard(sha256)
        self._path(sha256).unlink(missing_ok=True)
        if self._shared is not None:
            self._is_shared.discard(sha256)
            self._shared.remove(sha256)

    def _take(self, sha256: str, upload: _Upload, *, offset: int, data: bytes, last: bool) -> bool:
        more = offset + len(data) - upload.received
        if self.quota_bytes and sum(self._sizes().values()) + more > self.quota_bytes:
            raise ConfigError(self.kept().refusal(self.quota_bytes, text.size))
        new = data[upload.received - offset :] if offset <= upload.received else b""
        if new:
            with create_file(upload.path, "ab", buffering=_BUFFER_BYTES) as file:
                if file.tell() != upload.received:
                    raise ConfigError(f"{upload.path} was changed by others: upload it again")
                file.write(new)
            upload.digest.update(new)
            upload.received += len(new)
        if not last or upload.received < offset + len(data):
            return False

        if upload.digest.hexdigest() != sha256:
            raise ConfigError(
                f"the artifact has SHA-256 {upload.digest.hexdigest()[:12]}..., "
                f"was announced as {sha256[:12]}...: upload it again"
            )
        with create_file(upload.path, "ab", buffering=_BUFFER_BYTES) as file:
            sync_file(file)
        self._share(sha256, upload.path)
        self._keep(sha256, upload.path)
        self._end(sha256, upload)
        return True

    def _keep(self, sha256: str, path: Path) -> None:
        path.rename(self._path(sha256))
        sync_folder(self._folder)
        self._sound.add(sha256)

    # -- the shared folder -----------------------------------------------------------------

    def _share(self, sha256: str, path: Path) -> None:
        """Store an artifact in the shared folder, too, unless it is there."""
        if self._shared is None or sha256 in self._is_shared:
            return
        found = self._shared.look(sha256)
        if found is None or found.size != path.stat().st_size:
            with path.open("rb") as file:
                self._shared.write(sha256, _chunks(file))
        self._is_shared.add(sha256)

    def _copied(self, sha256: str) -> bool:
        """Copy an artifact from the shared folder; False if it is not there, or is damaged."""
        if self._shared is None:
            return False
        path = self._folder / f"{sha256}-copy{_PARTIAL}"
        with self._copying:
            if self._has_here(sha256):  # Another thread has copied it.
                return True
            try:
                found = self._shared.open(sha256)
            except FileNotFoundError:
                return False
            with found, create_file(path, "wb", buffering=_BUFFER_BYTES) as file:
                digest = hashlib.sha256()
                for chunk in _chunks(found):
                    digest.update(chunk)
                    file.write(chunk)
                sync_file(file)
            if digest.hexdigest() != sha256:
                _log.warning("%s is damaged: it is not used", self._shared.location(sha256))
                path.unlink()
                return False
            self._keep(sha256, path)
            self._is_shared.add(sha256)
            return True

    def _end(self, sha256: str, upload: _Upload) -> None:
        with self._lock:
            if upload.ended:
                return
            upload.ended = True
            upload.path.unlink(missing_ok=True)
            if self._uploads.get(sha256) is upload:
                del self._uploads[sha256]

    def _path(self, sha256: str) -> Path:
        if not is_sha256(sha256):
            raise ConfigError(f"{sha256[:80]!r} is no SHA-256: give 64 hex digits in lower case")
        return self._folder / sha256


ArtifactQuestion: TypeAlias = HasArtifact | UploadArtifact | GetArtifactPart

#: The questions that an `ArtifactDesk` answers.
ARTIFACT_QUESTIONS: Final = (HasArtifact, UploadArtifact, GetArtifactPart)


class ArtifactDesk:
    """Answers questions about artifacts; never raises.

    Runs on: any thread.

    Args:
        why_not: returns why an application cannot be begun with a program; without it, the program
            has to be in the store.
    """

    def __init__(
        self, store: ArtifactStore, why_not: Callable[[Artifact], str] | None = None
    ) -> None:
        self._store = store
        self.why_not = why_not or self._why_missing  #: An empty text if it can be.

    def _why_missing(self, artifact: Artifact) -> str:
        try:
            is_there = artifact.kind != "stored" or self._store.has(artifact.location)
        except OSError as error:
            return f"the master cannot read artifacts: {error.strerror or error}"
        return "" if is_there else str(_unknown(artifact.location))

    def answer(
        self, message: ArtifactQuestion
    ) -> ArtifactStored | ArtifactMissing | ArtifactPart | Refused:
        try:
            match message:
                case HasArtifact(sha256=sha256):
                    return self._state(sha256, stored=self._store.has(sha256))
                case UploadArtifact(sha256=sha256, offset=offset, data=data, last=last):
                    stored = self._store.write(sha256, offset=offset, data=data, last=last)
                    return self._state(sha256, stored=stored)
                case GetArtifactPart(sha256=sha256, offset=offset):
                    data = self._store.read(sha256, offset=offset, count=PART_BYTES)
                    last = offset + len(data) == self._store.size(sha256)
                    return ArtifactPart(sha256=sha256, offset=offset, data=data, last=last)
        except ConfigError as error:
            return Refused(reason=str(error))
        except OSError as error:
            why = error.strerror or error
            return Refused(reason=f"the master cannot store or read artifacts: {why}")

    def _state(self, sha256: str, *, stored: bool) -> ArtifactStored | ArtifactMissing:
        if stored:
            return ArtifactStored(sha256=sha256, size=self._store.size(sha256))
        return ArtifactMissing(sha256=sha256, received=self._store.received(sha256))


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_COPY_BYTES):
        yield chunk


def _unknown(sha256: str) -> ConfigError:
    return ConfigError(f"the master has no artifact {sha256[:12]}: submit the program again")
