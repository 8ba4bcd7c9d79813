"""Savepoints of an application: each is a file that names all files that it needs.

So no log has to say that it is there, and nobody who removes it stands in the way of the
application, which may run.
"""

import logging
from contextlib import suppress
from typing import Final

from gearpy.core.coordinator.savepoints import Savepoint, decode_savepoint, encode_savepoint
from gearpy.errors import ProtocolError, SnapshotDamaged
from gearpy.storage.checkpoints import Checkpoints

_log = logging.getLogger(__name__)
_FOLDER: Final = "savepoints"


def save_savepoint(checkpoints: Checkpoints, prefix: str, savepoint: Savepoint) -> None:
    name = f"{prefix}/{_FOLDER}/{savepoint.name}"
    checkpoints.save(name, [encode_savepoint(savepoint)])


def savepoint_names(checkpoints: Checkpoints, prefix: str) -> list[str]:
    folder = f"{prefix}/{_FOLDER}"
    return [each.removeprefix(f"{folder}/") for each in checkpoints.names(folder)]


def read_savepoint(checkpoints: Checkpoints, prefix: str, name: str) -> Savepoint:
    """Read one savepoint.

    Raises:
        ProtocolError: its file is damaged, or of a newer gearpy.
    """
    return decode_savepoint(checkpoints.load(f"{prefix}/{_FOLDER}/{name}"))


def read_savepoints(checkpoints: Checkpoints, prefix: str) -> list[Savepoint]:
    """Return all savepoints of an application, the oldest first.

    One that is damaged is passed over, with a warning: nobody can begin with it.
    """
    found: list[Savepoint] = []
    for name in savepoint_names(checkpoints, prefix):
        with suppress(SnapshotDamaged):  # It has been dropped meanwhile.
            try:
                found.append(read_savepoint(checkpoints, prefix, name))
            except ProtocolError as error:
                _log.warning("savepoint %s of %s cannot be used: %s", name, prefix, error)
    return sorted(found, key=lambda each: each.stored_ms)


def remove_savepoint(checkpoints: Checkpoints, prefix: str, name: str) -> None:
    """Remove the file of a savepoint; the snapshots that it needs stay."""
    checkpoints.drop(f"{prefix}/{_FOLDER}/{name}")
