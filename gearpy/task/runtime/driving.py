"""Gives a task its records, past bad ones if that is the policy; checks what it gives back."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TypeAlias

from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.data import Batch, Message
from gearpy.messages.late_time import LateTime
from gearpy.messages.table import Table, Times
from gearpy.task.api.failure import (
    USER_ERRORS,
    ProgramFailure,
    complete,
    operator_error,
    outputs_of,
)
from gearpy.task.api.interfaces import Columns, Task
from gearpy.task.api.rejects import Rejects

#: Work that can be left and taken up again: at a batch to send, or None when enough was put out.
Job: TypeAlias = Iterator[Batch | None]


def driver_of(
    task: Task,
    buffer: list[Message],
    *,
    limit: int,
    operator: str,
    rejects: Rejects,
    on_next: Callable[[Message], Any] | None = None,
) -> Callable[[Batch], Job]:
    """Return a function that makes a job of a batch of records.

    Args:
        buffer: its output; emptied by its owner whenever a job is left.
        limit: records in the buffer at which a job is left.
        rejects: takes the records on which the task raises.
    """
    driver = _Driver(
        task, buffer, limit, operator, rejects=rejects, on_next=on_next or task.on_next
    )
    if type(task).on_batch is not Task.on_batch:
        return driver.batch
    return driver.patiently if rejects.may_go_on else driver.messages


def blame(operator: str, error: BaseException, message: Message | None = None) -> NoReturn:
    """Raise an error of user code as an `OperatorError`, with the record if there is one."""
    if isinstance(error, OperatorError):
        complete(error)
        raise error
    if message is None:
        raise operator_error(operator, error) from error
    raise operator_error(
        operator, error, record=message.value, event_time_ms=message.timestamp
    ) from error


def reject(
    rejects: Rejects, operator: str, error: BaseException, message: Message, *, place: int = 0
) -> None:
    """Drop the record on which user code raised, if that is the policy, else `blame` it."""
    try:
        blame(operator, error, message)
    except OperatorError as blamed:
        rejects.take(message.value, message.timestamp, blamed, place=place)


class _Driver:
    """One task, and the three ways to give it records."""

    def __init__(
        self,
        task: Task,
        buffer: list[Message],
        limit: int,
        operator: str,
        *,
        rejects: Rejects,
        on_next: Callable[[Message], Any],
    ) -> None:
        self._task = task
        self._buffer = buffer
        self._limit = limit
        self._operator = operator
        self._rejects = rejects
        self._on_next = on_next

    def messages(self, batch: Batch) -> Job:
        """Call `on_next` until it raises."""
        on_next, buffer, limit = self._on_next, self._buffer, self._limit
        message = more = None
        try:
            for message in batch.messages():
                more = on_next(message)
                if more is not None:
                    for extra in more:
                        buffer.append(extra)
                        if len(buffer) >= limit:
                            yield None
                elif len(buffer) >= limit:
                    yield None
        except ProgramFailure as failure:
            blame(self._operator, failure.error)
        except USER_ERRORS as error:
            self._check_output(more, message)
            blame(self._operator, error, message)

    def patiently(self, batch: Batch) -> Job:
        """Call `on_next`; go on behind a record on which it raises."""
        on_next, buffer, limit = self._on_next, self._buffer, self._limit
        for message in batch.messages():
            kept = len(buffer)
            more: Any = None
            try:
                more = on_next(message)
                for extra in more if more is not None else ():
                    buffer.append(extra)
                    if len(buffer) >= limit:
                        yield None
                        kept = 0  # The buffer was sent.
            except ProgramFailure as failure:  # The record is not to blame.
                blame(self._operator, failure.error)
            except USER_ERRORS as error:
                del buffer[kept:]
                self._check_output(more, message)  # Lest each one is dropped without a word.
                reject(self._rejects, self._operator, error, message)
            if len(buffer) >= limit:
                yield None

    def _check_output(self, returned: Any, message: Message | None) -> None:
        """Fail if `on_next` gave back what is no output, whatever record it was about."""
        try:
            outputs_of(returned, "on_next")
        except ProgramFailure as failure:
            blame(self._operator, failure.error, message)

    def batch(self, batch: Batch) -> Job:
        """Call `on_batch`."""
        try:
            outputs = self._task.on_batch(batch)
            if outputs is not None:
                yield from outputs
        except USER_ERRORS as error:
            # Of many the bad one is not known, and those before it were taken. A chain has
            # looked after its records itself.
            if len(batch) > 1 or isinstance(error, OperatorError):
                raise
            reject(self._rejects, self._operator, error, *batch.messages())


# -- output of user code -----------------------------------------------------------------------


def columns_of_messages(messages: Sequence[Any]) -> Columns:
    """Return the columns of at least one message.

    Raises:
        ConfigError: not all are messages, or their times are no ms.
    """
    wrong = set(map(type, messages)) - {Message}
    if wrong:
        names = ", ".join(sorted(kind.__name__ for kind in wrong))
        raise ConfigError(
            f"output takes Message(value, timestamp), got {names}: yield messages, or return a list"
        )
    values, timestamps = zip(*messages, strict=True)
    _check_times(timestamps)
    return list(values), list(timestamps)


def columns_of_batch(batch: Any) -> Columns:
    """Return the columns of a batch.

    Raises:
        ConfigError: it is none, its columns differ in length, or its times are no ms.
    """
    if not isinstance(batch, Batch):
        raise ConfigError(f"yield Batch(values, timestamps), not {type(batch).__name__}")
    values, times = len(batch.values), len(batch.timestamps)
    if values != times:
        raise ConfigError(f"a batch has {values} values but {times} timestamps")
    _check_times(batch.timestamps)
    if type(batch.values) is Table:
        return batch.values, Times.of(batch.timestamps)
    return batch.values, batch.timestamps


def _check_times(timestamps: Sequence[Any]) -> None:
    # One of them, since it is for each record: the mistake is the same on all, as a rule.
    if timestamps and type(timestamps[0]) is not int and type(timestamps[0]) is not LateTime:
        raise ConfigError(f"timestamp {timestamps[0]!r} is no int: give ms since the epoch")
