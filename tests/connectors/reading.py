"""Reads sources to their end."""

from contextlib import closing
from typing import Any

from gearpy.messages.data import Batch, Message
from gearpy.task.api.interfaces import Source, SourceReader


def rows_of(source: Source[Any]) -> list[Any]:
    rows: list[Any] = []
    for partition in source.partitions():
        with closing(source.open(partition, None)) as reader:
            rows += [message.value for message in rest_of(reader, 1 << 16)]
    return rows


def rest_of(reader: SourceReader, max_records: int = 2) -> list[Message]:
    read: list[Message] = []
    while not reader.finished:
        read += (reader.read_batch(max_records) or Batch([], [])).messages()
    return read
