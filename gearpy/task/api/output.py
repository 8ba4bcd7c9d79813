"""The output of user code, checked and as columns."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from gearpy.errors import ConfigError
from gearpy.messages.data import Batch, Message
from gearpy.messages.late_time import LateTime
from gearpy.messages.table import Table, Times

#: Values and their event times.
Columns: TypeAlias = tuple[list[Any], list[int]]


def columns_of_messages(messages: Sequence[Any]) -> Columns:
    """Return the columns of at least one message.

    Raises:
        ConfigError: not all are messages, or their times are no ms.
    """
    wrong = set(map(type, messages)) - {Message}
    if wrong:
        names = ", ".join(sorted(kind.__name__ for kind in wrong))
        raise ConfigError(f"output takes Message(value, timestamp), got {names}")
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
