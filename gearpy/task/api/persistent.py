"""A task whose state survives restarts without a record ever waiting for the end of an epoch.

Other tasks hold back the records of inputs that are ahead, so that their state at the end of an
epoch is clear. Here the state itself keeps the records of different epochs apart. Gearpump:
`PersistentTask`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, ClassVar, Generic, TypeVar

from gearpy.core.gearpump.monoid_state import PersistentState
from gearpy.messages.data import Batch, Message
from gearpy.task.api.interfaces import Task, TaskContext
from gearpy.wire.values.payload import decode_value, encode_value

S = TypeVar("S", bound=PersistentState[Any])


class ValueSerializer:
    """Turns plain data and registered records into bytes, as they travel between tasks.

    Implements `Serializer`.
    """

    def to_bytes(self, value: Any) -> bytes:
        """Return the value as bytes.

        Raises:
            ConfigError: it is of a class that cannot travel.
        """
        return encode_value(value)

    def from_bytes(self, data: bytes) -> Any:
        """Return the value of the bytes of `to_bytes`.

        Raises:
            ProtocolError: it is something else, or a record of a class that is not known.
        """
        return decode_value(data)


class PersistentTask(Task, ABC, Generic[S]):
    """Processes records with a state that comes back after a restart; each record counts once.

    Override `persistent_state` and `process_message`. All that the task keeps between records must
    be in that state. Gearpump: `PersistentTask`.

    A record is processed as soon as it comes, also if other inputs have not ended the epoch before
    its own. Output for it then waits until its epoch begins; the state shows the records
    that have come so far of that epoch and older ones, and may lack later ones of an older one. So
    the state is exact, but not every running total that is put out. A task that needs this sets
    ``aligned = True`` and has its records wait, or puts out its state in `process_watermark`.

    Example:
        >>> import gearpy as gp
        >>> from gearpy.testing import TaskDriver
        >>> class Total(gp.PersistentTask[gp.NonWindowState[int]]):
        ...     def persistent_state(self):
        ...         return gp.NonWindowState(gp.SumGroup(), gp.ValueSerializer())
        ...
        ...     def process_message(self, state, message):
        ...         state.update(message.timestamp, message.value)
        ...
        ...     def process_watermark(self, state, watermark_ms):
        ...         yield gp.Message(state.value, watermark_ms)
        >>> driver = TaskDriver(Total)
        >>> driver.send(20, timestamp=1)
        >>> driver.send(3, timestamp=2)
        >>> driver.watermark(5)
        >>> driver.take()
        [Message(value=23, timestamp=5)]
    """

    aligned: ClassVar[bool] = False

    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        self._state: S | None = None
        self._late_records = 0

    @abstractmethod
    def persistent_state(self) -> S:
        """Return a new state. Called once, at the start; kept state is put into it."""

    @abstractmethod
    def process_message(self, state: S, message: Message) -> Iterable[Message] | None:
        """Take one message, most likely to update the state. The returned messages are sent."""

    def process_watermark(self, state: S, watermark_ms: int) -> Iterable[Message] | None:
        """Learn how far event time has come, before the state does. The returned messages are sent.

        The state shows all records of the epochs that have ended, and of the one that is ending.
        """
        return None

    @property
    def state(self) -> S:
        """The state, from `on_start` on."""
        assert self._state is not None, "made by on_start"
        return self._state

    def on_start(self, start_time_ms: int) -> None:
        """Make the state, and go on from the checkpoint."""
        state = self.persistent_state()
        if self.context.resume is not None:
            state.recover(self.context.resume)
        state.set_next_checkpoint(self.context.epoch)
        self._state = state

    def on_next(self, message: Message) -> Iterable[Message] | None:
        """Process a message on the side of the checkpoint where its epoch is."""
        state = self.state
        state.enter(self.context.epoch)
        return self.process_message(state, message)

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        """Let the user's part look at the state, then let the state follow event time."""
        state = self.state
        state.enter(self.context.epoch)
        pending = iter(self.process_watermark(state, watermark_ms) or ())
        while portion := list(islice(pending, self.context.limits.batch_records)):
            yield Batch.of(*portion)
        state.on_watermark(watermark_ms)
        self._count_late()

    def snapshot(self) -> bytes:
        """Return the state of the epochs that have ended, without later ones."""
        self._count_late()
        self.state.set_next_checkpoint(self.context.epoch)
        return self.state.checkpoint()

    def _count_late(self) -> None:
        late_records = self.state.late_records
        self.context.counters.late_records += late_records - self._late_records
        self._late_records = late_records
