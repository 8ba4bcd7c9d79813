"""Reads sources to their end."""

from gearpy.messages.data import Batch, Message
from gearpy.task.api.interfaces import SourceReader


def rest_of(reader: SourceReader, max_records: int = 2) -> list[Message]:
    """Read to the end."""
    read: list[Message] = []
    while not reader.finished:
        read += (reader.read_batch(max_records) or Batch([], [])).messages()
    return read
