"""The records of one application that went into quarantine, until the master has stored them."""

from dataclasses import replace

from gearpy.ids import AppId, TaskId
from gearpy.messages.app import RecordQuarantined
from gearpy.messages.cluster import Quarantine
from gearpy.messages.summaries import ErrorCard


class AppQuarantine:
    """Numbers records, and keeps them until they are stored.

    Part of an app master; runs on its thread.

    Args:
        records_max: at more, something is wrong with the program, not with records.
    """

    def __init__(self, app_id: AppId, launch: int, records_max: int) -> None:
        self._app_id = app_id
        self._launch = launch
        self._records_max = records_max
        self._count = 0
        self._unstored: dict[int, Quarantine] = {}

    @property
    def unstored(self) -> list[Quarantine]:
        """The records that the master has not stored yet."""
        return list(self._unstored.values())

    def add(self, message: RecordQuarantined) -> Quarantine | ErrorCard:
        """Return the record for the master to store, or the cause of the application's failure."""
        self._count += 1
        if self._count > self._records_max:
            cause = (
                f"more than {self._records_max} records were put into quarantine, the last one "
                f"because of: {message.error.cause}"
            )
            return replace(message.error, cause=cause)
        record = self._unstored[self._count] = Quarantine(
            app_id=self._app_id,
            launch=self._launch,
            number=self._count,
            processor_id=message.processor_id,
            value=message.value,
            event_time_ms=message.event_time_ms,
            error=message.error,
        )
        return record

    def on_stored(self, number: int) -> None:
        """Forget a record that is stored."""
        self._unstored.pop(number, None)


def task_of(text: str) -> TaskId:
    """Return the task that `str` made this text of; one that is none if it did not."""
    processor, _, index = text.partition(".")
    if processor.isdecimal() and index.isdecimal():
        return TaskId(int(processor), int(index))
    return TaskId(-1, -1)
