"""A source whose records, watermarks and end are given by hand."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from gearpy.errors import ConfigError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch, Message
from gearpy.messages.type_variables import T
from gearpy.task.api.interfaces import Source, SourceReader


class ManualSource(Source[T]):
    """A source whose records a `FlowDriver` sends; one partition.

    Args:
        name: for plans and messages.
    """

    of_program = True

    def __init__(self, name: str = "manual") -> None:
        self._name = name
        self._reader: ManualReader[T] | None = None

    @property
    def description(self) -> str:
        """The name given."""
        return self._name

    def partitions(self) -> Sequence[str]:
        """Return the only one."""
        return [self._name]

    def open(self, partition: str, resume: Any | None) -> SourceReader[T]:
        """Return a reader that waits for records to be sent."""
        self._reader = ManualReader()
        return self._reader

    @property
    def reader(self) -> "ManualReader[T]":
        """The reader that takes the orders of the driver."""
        if self._reader is None:
            raise ConfigError(f"source {self._name!r} is not read by the application of the driver")
        return self._reader


class ManualReader(SourceReader[T]):
    """Gives the records put into ``records``; the rest are plain fields, set from outside."""

    def __init__(self) -> None:
        self.records: deque[Message[T]] = deque()
        self.promised_ms = MIN_MS
        self.ends = False

    def read_batch(self, max_records: int) -> Batch[T] | None:
        count = min(max_records, len(self.records))
        batch = Batch.of(*(self.records.popleft() for _ in range(count)))
        self.finished = self.ends and not self.records
        return batch if count else None

    def snapshot(self) -> None:
        """Return no place, as there is nothing to come back to."""

    @property
    def watermark_ms(self) -> int:
        return self.promised_ms
