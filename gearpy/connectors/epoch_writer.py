"""Exactly once into a store that can write some records and a number in one transaction."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, TypedDict

from gearpy.connectors.files.stamps import each
from gearpy.core.handover.ledger import LedgerClaim, claims
from gearpy.errors import GearpyError
from gearpy.messages.type_variables import T_contra
from gearpy.task.api.interfaces import Batch, TransactionalWriter


class EpochOwner(NamedTuple):
    """The owner of records: one start of a task of a sink, in a run of an application.

    Of one run, sink and task, later starts have greater incarnations. Who goes on from a checkpoint
    of a run, in another run, has the greatest: the records that follow come again from there, so
    the run itself must not write any more.
    """

    run: str
    sink: str
    task: int
    incarnation: int


class EpochRecords(TypedDict):
    """All records of an epoch, and their run, as `EpochWriter.prepare` returns them."""

    run: str
    values: list[Any]
    timestamps: list[int]


class EpochWriter(TransactionalWriter[T_contra]):
    """Gives a store the records of one epoch at a time, when the epoch is complete.

    A subclass says how the store is written, in two methods. Both may be called again with the same
    arguments, and by a process that was given up and goes on, so each is one transaction that looks
    first at what the store knows of the run, sink and task: who owns them
    (`EpochOwner.incarnation`) and which epoch was written last. Run, sink, task, epoch and the
    place in the batch together are a key that no other record of any run has. The sink that opens
    the writer sets ``transactional``.

    Until its epoch is complete a record is in memory, and from its end on in the checkpoint.
    `write_epoch` comes too late to refuse one: what it raises is a failure, and the same one again
    after the restart. `row_of` is the place to refuse a record, which then is dealt with by
    ``application.on-error``.

    A store whose records have keys of their own, and where writing one again changes nothing, does
    not need this: a `SinkWriter` of a sink with ``idempotent`` set is enough, and quicker.

    Args:
        name: of the sink; another one of the application that writes to the store needs another.
        task_index: as given to `Sink.open`.
    """

    atomic = True

    #: So many records of one epoch are kept; more are a failure. Long before that the epoch is
    #: ended, whatever `checkpoint.interval-ms` says.
    epoch_records_max: ClassVar[int] = 1_000_000

    def __init__(self, name: str, task_index: int) -> None:
        self._name = name
        self._task = task_index
        self._incarnation = 0
        self._run = ""
        self._claims: dict[str, LedgerClaim] = {}  # They are by run.
        self._values: list[Any] = []
        self._timestamps: list[int] = []

    @abstractmethod
    def take_over(self, owner: EpochOwner, epoch: int) -> None:
        """Keep all others from writing for this task of this run, and undo later epochs.

        In one transaction: raise `GearpyError` if an owner with a greater incarnation is noted;
        note this one; delete what this task has written in this run for epochs after ``epoch``,
        which also becomes the last one written if that was a later one.
        """

    @abstractmethod
    def write_epoch(self, owner: EpochOwner, epoch: int, batch: Batch) -> None:
        """Write all records of an epoch, unless it was written.

        In one transaction: raise `GearpyError` if another owner is noted; do nothing if this or a
        later epoch is noted as the last one written; else write the records and note the epoch.
        """

    def row_of(self, record: T_contra) -> Any:
        """Return the plain data that `write_epoch` gets for a record; raise to refuse it."""
        return record

    def recover(
        self, prepared: Mapping[int, EpochRecords | None], *, epoch: int, run: str, incarnation: int
    ) -> None:
        """Take over, and write prepared records; also for an earlier run that this one goes on."""
        self._claim(prepared, epoch=epoch, run=run, incarnation=incarnation)
        for other, claim in self._claims.items():
            self.take_over(self._owner_of(other), claim.since)
        for number in sorted(prepared):
            self.commit(number, prepared[number])

    def write_batch(self, batch: Batch[T_contra]) -> None:
        """Keep the records until the end of the epoch.

        Raises:
            GearpyError: there are too many.
        """
        rows = each(self._name, self.row_of, batch.values)
        if len(self._values) + len(rows) > self.epoch_records_max:
            raise GearpyError(
                f"{self._name}: more than {self.epoch_records_max} records came before their epoch "
                "could end: raise epoch_records_max of the writer, or its parallelism"
            )
        self._values += rows
        self._timestamps += batch.timestamps

    @property
    def epoch_fill(self) -> float:
        """The number of records kept, as a share of ``epoch_records_max``."""
        return len(self._values) / self.epoch_records_max

    def prepare(self, epoch: int) -> EpochRecords | None:
        """Return the records of the epoch: they become durable with the checkpoint."""
        values, self._values = self._values, []
        timestamps, self._timestamps = self._timestamps, []
        return {"run": self._run, "values": values, "timestamps": timestamps} if values else None

    def commit(self, epoch: int, prepared: EpochRecords | None) -> None:
        if prepared is not None:
            batch = Batch(list(prepared["values"]), list(prepared["timestamps"]))
            self.write_epoch(self._owner_of(prepared["run"]), epoch, batch)

    def _claim(
        self, prepared: Mapping[int, EpochRecords | None], *, epoch: int, run: str, incarnation: int
    ) -> None:
        self._run, self._incarnation = run, incarnation
        runs = [records["run"] for records in prepared.values() if records]
        writer = f"{self._name}: what task {self._task} writes"
        self._claims = claims(writer, runs, run, incarnation=incarnation, epoch=epoch)

    def _owner_of(self, run: str) -> EpochOwner:
        return EpochOwner(run, self._name, self._task, self._claims[run].owner)
