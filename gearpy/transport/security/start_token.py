"""The token that services make at each start, where nobody has made tokens for them.

It is in a file that only their user can read, and locked while they run: so other programs of this
user find it, and know what is left of services that were killed.
"""

import fcntl
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import urlsplit

from gearpy.errors import ConfigError
from gearpy.transport.security.secret import check_private, write_private

_ENDING: Final = ".json"
_FILE_BYTES_MAX: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class StartToken:
    """The token of services at an address of this machine."""

    url: str
    token: str

    @property
    def page(self) -> str:
        return f"{self.url}/?token={self.token}"


def start_tokens_of(token_file: str | Path) -> Path:
    return Path(token_file).expanduser().parent / "services"


@contextmanager
def kept_for_others(folder: Path, started: StartToken) -> Iterator[None]:
    """Keep a token in a file of this user as long as the context lasts."""
    file = folder / f"{socket.gethostname()}-{urlsplit(started.url).netloc}{_ENDING}"
    try:
        write_private(file, json.dumps(asdict(started)).encode())
        opened = file.open("rb")
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from error
    with opened:
        fcntl.flock(opened, fcntl.LOCK_SH)
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def start_tokens(folder: Path) -> tuple[StartToken, ...]:
    """Return the tokens of all services of this user that run on this machine, by address."""
    found = []
    for file in sorted(folder.glob(f"{socket.gethostname()}-*{_ENDING}")):
        try:
            with file.open("rb") as opened:
                check_private(file, opened.fileno(), what="token file")
                if _is_in_use(opened):
                    found.append(StartToken(**json.loads(opened.read(_FILE_BYTES_MAX))))
                else:
                    file.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError(f"token file {file} cannot be read: {error.strerror}") from error
    return tuple(found)


def _is_in_use(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
