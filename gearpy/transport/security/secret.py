"""The file with the secret that the processes of a cluster share."""

import contextlib
import os
import secrets
import tempfile
from pathlib import Path
from typing import Final

from gearpy.errors import ConfigError
from gearpy.transport.security.private_files import check_private, make_private_folders

SECRET_BYTES: Final = 32


def load_or_create_secret(path: str | Path) -> bytes:
    """Return the secret in a file; the first process to ask creates it, for its user only.

    Raises:
        ConfigError: others may read the file, it is not ours, or it holds no secret.
    """
    file = Path(path).expanduser()
    with contextlib.suppress(FileNotFoundError):
        return _load(file)
    _create(file)
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


def _create(file: Path) -> None:
    """Write a new secret under a temporary name, then give it its name unless another was first."""
    try:
        make_private_folders(file.parent)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(handle, "w") as opened:
                opened.write(secrets.token_hex(SECRET_BYTES) + "\n")
                opened.flush()
                os.fsync(opened.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(temporary, file)
        finally:
            Path(temporary).unlink()
    except OSError as error:
        raise ConfigError(f"secret file {file} cannot be created: {error.strerror}") from error
