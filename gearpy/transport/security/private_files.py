"""Files and folders that only their owner may read."""

import os
import stat
from pathlib import Path
from typing import Final

from gearpy.errors import ConfigError

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
