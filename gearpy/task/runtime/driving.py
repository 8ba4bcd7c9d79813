"""Gives a task its records: one by one or as batches, past bad ones if that is the policy."""

from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeAlias

from gearpy.errors import OperatorError
from gearpy.messages.data import Batch, Message
from gearpy.task.api.failure import USER_ERRORS, TimerFailure, complete, operator_error
from gearpy.task.api.interfaces import Task
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
        message = None
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
        except TimerFailure as failure:
            blame(self._operator, failure.error)
        except USER_ERRORS as error:
            blame(self._operator, error, message)

    def patiently(self, batch: Batch) -> Job:
        """Call `on_next`; go on behind a record on which it raises."""
        on_next, buffer, limit = self._on_next, self._buffer, self._limit
        for message in batch.messages():
            kept = len(buffer)
            try:
                more: Any = on_next(message)
                for extra in more if more is not None else ():
                    buffer.append(extra)
                    if len(buffer) >= limit:
                        yield None
                        kept = 0  # The buffer was sent.
            except TimerFailure as failure:  # The record is not to blame.
                blame(self._operator, failure.error)
            except USER_ERRORS as error:
                del buffer[kept:]
                reject(self._rejects, self._operator, error, message)
            if len(buffer) >= limit:
                yield None

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
