"""The master's state with the log that makes it durable."""

from typing import TYPE_CHECKING, Any, Final

from gearpy.core.master.checkpoint_names import new_cluster_id
from gearpy.core.master.commands import MasterCommand, NameCluster, decode_command, encode_command
from gearpy.core.master.state import MasterState
from gearpy.storage.log import Log

if TYPE_CHECKING:
    from random import Random

#: After so many changes the master writes its whole state and begins a new log. Fewer make a
#: restart faster and cost more writing.
SNAPSHOT_RECORDS: Final = 10_000
#: After so many bytes a snapshot is due, however few records they are.
_SEGMENT_BYTES_MAX: Final = 64 << 20


class MasterFold:
    """A `MasterState` that takes records of a log; where several masters have one, each has it."""

    def __init__(self) -> None:
        self.state = MasterState()

    def apply(self, record: bytes) -> object:
        return self.state.apply(decode_command(record))

    def restore(self, state: bytes) -> None:
        self.state = MasterState.from_bytes(state)

    def to_bytes(self, version: int) -> bytes:
        return self.state.to_bytes(version)


class MasterStore:
    """A `MasterState`, and the log that has its changes before anybody is told of them.

    The log of a new cluster gets the id of the cluster first.
    """

    def __init__(
        self, log: Log, *, snapshot_records: int = SNAPSHOT_RECORDS, rng: "Random"
    ) -> None:
        self._log = log
        self._snapshot_records = snapshot_records
        snapshot, records = log.replay()
        self.state = MasterState() if snapshot is None else MasterState.from_bytes(snapshot)
        for record in records:
            self.state.apply(decode_command(record))
        self._changes: list[bytes] = []  # They are not in the log yet.
        self._records = len(records)
        self._bytes = sum(map(len, records))
        if not self.state.cluster_id:
            self.change(NameCluster(cluster_id=new_cluster_id(rng)))
            self.commit()

    @property
    def has_changes(self) -> bool:
        return bool(self._changes)

    def change(self, *commands: MasterCommand) -> list[Any]:
        self._changes += [encode_command(each, self._log.version) for each in commands]
        return [self.state.apply(each) for each in commands]

    def commit(self) -> None:
        """Make all changes durable, all or none.

        Raises:
            LogBroken: nobody knows whether they are; the master must not go on.
        """
        if not self._changes:
            return
        records, self._changes = self._changes, []
        self._log.append(records)
        self._records += len(records)
        self._bytes += sum(map(len, records))
        if self._records >= self._snapshot_records or self._bytes >= _SEGMENT_BYTES_MAX:
            self._log.snapshot(self.state.to_bytes(self._log.version))
            self._records = self._bytes = 0
