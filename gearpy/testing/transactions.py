"""A transactional sink in memory, whose content outlives every crash."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from gearpy.core.base.copies import own_each
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Sink, SinkWriter, TransactionalWriter


@dataclass(slots=True)
class _Part:
    """The records that one task of one run has written."""

    prepared: dict[int, tuple[int, list[Any]]] = field(default_factory=dict)  # By number.
    shown: dict[int, list[Any]] = field(default_factory=dict)  # The keys are epochs.
    incarnation: int = 0  # The newest start of the task.


class MemoryTransactions(Sink):
    """Shows records when their epoch is complete, as a database would.

    For simulations: all tasks write into this object, and also those that were given up and do not
    know it. It shows the records that a reader sees at that moment.

    Args:
        name: of the sink; two of one application must have different ones.
        messages: show each as a `Message`, with its event time.

    Attributes:
        retracted: records that were shown and have vanished. Right only after going back to an
            older epoch than the newest complete one, as that was damaged.

    Example:
        >>> import gearpy as gp
        >>> from gearpy.testing import MemoryTransactions, Simulation
        >>> app, sink = gp.StreamApp("numbers"), MemoryTransactions()
        >>> app.read(gp.collection(range(1000))).write(sink)
        >>> recipe = {"cut_every_ms": 5, "crashes_after_epochs": 2, "read_records": 8}
        >>> _ = Simulation(app, seed=3, **recipe).run()
        >>> sorted(sink.values) == list(range(1000))
        True
    """

    transactional = True
    of_program = True

    def __init__(self, name: str = "memory transactions", *, messages: bool = False) -> None:
        self.shows_messages = messages
        self.retracted: list[Any] = []
        self._name = name
        self._transactions = count(1)
        self._parts: dict[tuple[str, int], _Part] = {}

    @property
    def description(self) -> str:
        """The name; two sinks of one application must have different ones."""
        return self._name

    @property
    def values(self) -> list[Any]:
        """All that is shown, in the order of tasks and epochs."""
        return [
            value
            for _, part in sorted(self._parts.items())
            for _, values in sorted(part.shown.items())
            for value in values
        ]

    def open(self, task_index: int, parallelism: int) -> SinkWriter:
        """Open the writer of one task."""
        return _Writer(self, task_index)

    def recover(
        self,
        run: str,
        task_index: int,
        prepared: Mapping[int, Any],
        *,
        epoch: int,
        incarnation: int,
    ) -> None:
        """Show the prepared records up to an epoch, and remove those of later epochs.

        Raises:
            LookupError: the task has begun later elsewhere; the caller was given up.
        """
        part = self._parts.setdefault((run, task_index), _Part())
        if incarnation <= part.incarnation:
            raise LookupError(f"incarnation {incarnation} after {part.incarnation}")
        part.incarnation = incarnation
        for each, transaction in prepared.items():
            self.show(each, transaction)
        for each in [each for each in part.shown if each > epoch]:
            self.retracted += part.shown.pop(each)
        part.prepared = {
            transaction: kept for transaction, kept in part.prepared.items() if kept[0] <= epoch
        }

    def prepare(self, run: str, task_index: int, epoch: int, values: list[Any]) -> int:
        """Make records durable; return the number of the transaction that shows them."""
        transaction = next(self._transactions)
        self._parts[run, task_index].prepared[transaction] = (epoch, values)
        return transaction

    def show(self, epoch: int, transaction: int) -> None:
        """Show the records of a transaction, also of a run before; a second time changes nothing.

        Raises:
            LookupError: it has vanished; the caller was given up, and has prepared it for nothing.
        """
        for part in self._parts.values():
            if transaction in part.prepared:
                part.shown[epoch] = part.prepared[transaction][1]
                return
        raise LookupError(f"epoch {epoch}: what was prepared as {transaction} is not there")


class _Writer(TransactionalWriter):
    """Writes for one task."""

    def __init__(self, sink: MemoryTransactions, task_index: int) -> None:
        self._sink = sink
        self._task_index = task_index
        self._run = ""
        self._values: list[Any] = []

    def recover(
        self, prepared: Mapping[int, Any], *, epoch: int, run: str, incarnation: int
    ) -> None:
        self._run = run
        self._sink.recover(run, self._task_index, prepared, epoch=epoch, incarnation=incarnation)

    def write_batch(self, batch: Batch) -> None:
        # Whatever the program does with its records afterwards.
        own = Batch(own_each(batch.values), batch.timestamps)
        self._values += own.messages() if self._sink.shows_messages else own.values

    def prepare(self, epoch: int) -> Any:
        values, self._values = self._values, []
        if not values:
            return None
        return self._sink.prepare(self._run, self._task_index, epoch, values)

    def commit(self, epoch: int, prepared: Any) -> None:
        self._sink.show(epoch, prepared)
