"""The disk of one of several masters: what its replica must remember, in a log."""

from gearpy.core.base.versions import MASTERS
from gearpy.core.consensus.stored import DiskWrite, StoredLog, decode_write, encode_write
from gearpy.storage.log import Log


class ReplicaStore:
    """A `StoredLog` that changes only after its log has taken the change.

    Args:
        new: the content where there is nothing yet; from then on it is what is stored.

    Runs on: one thread at a time.

    Raises:
        ProtocolError: the log is of another version of gearpy.
        LogDamaged: a file was changed by something else.
        LogBroken: what is new could not be stored.
    """

    def __init__(self, log: Log, new: StoredLog) -> None:
        self._log = log
        snapshot, records = log.replay()
        if snapshot is None:
            log.snapshot(new.to_bytes(MASTERS.oldest))
            self.stored = new
        else:
            self.stored = StoredLog.from_bytes(snapshot)
        for record in records:
            self.stored.apply(decode_write(record))

    def write(self, write: DiskWrite, version: int = MASTERS.newest) -> None:
        """Make a write durable. One with a snapshot replaces the files before it.

        Args:
            version: of `MASTERS`, in which it is written.

        Raises:
            LogBroken: nobody knows whether it is there; the replica must not go on.
        """
        if write.snapshot is None:
            self._log.append([encode_write(write, version)])
            self.stored.apply(write)
        else:
            self.stored.apply(write)
            self._log.snapshot(self.stored.to_bytes(version))
