"""Files that only their owner may read, such as that with the secret of a cluster."""

import contextlib
import os
import secrets
import stat
import tempfile
from pathlib import Path
from typing import Final

from gearpy.errors import ConfigError

SECRET_BYTES: Final = 32
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def check_private(file: Path, descriptor: int, *, what: str) -> None:
    """Check an open file, so that it cannot be swapped between the check and the reading.

    Raises:
        ConfigError: others may read it, or it is not ours.
    """
    status = os.fstat(descriptor)
    mode = stat.S_IMODE(status.st_mode)
    if mode & _OTHERS:
        raise ConfigError(f"{what} {file} is open to others (mode {mode:04o}): chmod 600 it")
    if status.st_uid not in {os.geteuid(), 0}:
        raise ConfigError(f"{what} {file} belongs to user {status.st_uid}: chown it")


def make_private_folders(folder: Path) -> None:
    """Make a folder and its missing parents, all for this user only."""
    if not folder.is_dir():
        make_private_folders(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def write_private(file: Path, data: bytes, *, replaces: bool = True) -> None:
    """Write a file for this user only, whole or not at all.

    Args:
        file: in a folder that is made, if need be.
        replaces: a file of this name that is there; else that one stays.
    """
    make_private_folders(file.parent)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        if replaces:
            temporary.replace(file)
        else:
            with contextlib.suppress(FileExistsError):
                os.link(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)


def load_or_create_secret(path: str | Path) -> bytes:
    """Return the secret in a file; the first process to ask creates it, for its user only."""
    file = Path(path).expanduser()
    with contextlib.suppress(FileNotFoundError):
        return _load(file)
    try:
        write_private(file, f"{secrets.token_hex(SECRET_BYTES)}\n".encode(), replaces=False)
    except OSError as error:
        raise ConfigError(f"secret file {file} cannot be created: {error.strerror}") from error
    return _load(file)


def _load(file: Path) -> bytes:
    # Checked on the open file, so that it cannot be swapped in between.
    try:
        with file.open("rb") as opened:
            check_private(file, opened.fileno(), what="secret file")
            text = opened.read(1024).decode("ascii", "replace").strip()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(f"secret file {file} cannot be read: {error.strerror}") from error
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise ConfigError(
            f"secret file {file} does not hold {SECRET_BYTES} bytes in hexadecimal: restore it, "
            "or delete it on all machines and copy the new one"
        )
    return secret
