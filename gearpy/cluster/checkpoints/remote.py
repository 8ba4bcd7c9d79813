"""Checkpoint files that are read through the cluster, where a client does not see the store.

`StoreReader` is the cluster's end, beside the master, which sees the store as all machines of a
cluster do; `RemoteCheckpoints` is the client's.
"""

import hashlib
import io
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO, Final, NoReturn

from gearpy.cluster.checkpoints.reading import open_store
from gearpy.errors import ConfigError, SnapshotDamaged
from gearpy.ids import AppId
from gearpy.messages.client import (
    EpochList,
    GetEpochs,
    GetStoredNames,
    GetStoredPart,
    Refused,
    StoredNames,
    StoredPart,
)
from gearpy.messages.question import Question
from gearpy.storage.checkpoints import Checkpoints, StoredFile
from gearpy.storage.folder.api import parent_of

#: With its envelope it fits a control frame.
_PART_BYTES: Final = 512 * 1024


class StoreReader:
    """Reads the files of checkpoint stores for clients.

    Args:
        checkpoints: the store of a cluster in this process; others are opened where they are.

    Runs on: any thread; blocks while it reads.
    """

    def __init__(
        self, ask: Callable[[Any], object], checkpoints: Checkpoints | None = None
    ) -> None:
        self._ask = ask
        self._here = checkpoints

    def answer(self, message: GetStoredNames | GetStoredPart) -> object:
        listed = self._ask(GetEpochs(app_id=message.app_id))
        if not isinstance(listed, EpochList):
            return listed
        try:
            store = self._here or open_store(listed.place, named_by="checkpoint.folder")
            if isinstance(message, GetStoredNames):
                return StoredNames(names=tuple(store.names(message.prefix)))
            with store.open(message.location) as file:
                file.seek(message.offset)
                return StoredPart(data=file.read(_PART_BYTES))
        except SnapshotDamaged:
            return StoredPart(is_there=False)
        except (ConfigError, OSError) as error:
            return Refused(reason=f"the master cannot read this: {error}")


class RemoteCheckpoints:
    """`Checkpoints` that are only read, through a cluster."""

    def __init__(self, ask: Callable[[Question[Any]], Any], app_id: AppId, place: str) -> None:
        self._ask = ask
        self._app_id = app_id
        self.place = f"{place}, read through the cluster"  #: See `Checkpoints`.

    def names(self, prefix: str) -> list[str]:
        question = GetStoredNames(app_id=self._app_id, prefix=prefix)
        return [*self._ask(question).names]

    def open(self, location: str) -> BinaryIO:
        file = io.BytesIO()
        while True:
            question = GetStoredPart(app_id=self._app_id, location=location, offset=file.tell())
            part: StoredPart = self._ask(question)
            if not part.is_there:
                raise SnapshotDamaged(location=location, reason="it is not there")
            file.write(part.data)
            if len(part.data) < _PART_BYTES:
                file.seek(0)
                return file

    def load(self, location: str, sha256: str = "") -> bytes:
        with self.open(location) as file:
            data = file.read()
        if sha256 and hashlib.sha256(data).hexdigest() != sha256:
            raise SnapshotDamaged(location=location, reason="it is not what was stored")
        return data

    def has(self, name: str) -> bool:
        return name in self.names(parent_of(name))

    def hold(self, prefix: str) -> None:
        """See `Checkpoints`; nothing is made here."""

    def save(self, name: str, chunks: Iterable[bytes]) -> StoredFile:
        self._refuse(name)

    def drop(self, location: str) -> None:
        self._refuse(location)

    def drop_all(self, prefix: str) -> None:
        self._refuse(prefix)

    def _refuse(self, name: str) -> NoReturn:
        raise ConfigError(f"{name} in {self.place} is only read: change it where the store is seen")
