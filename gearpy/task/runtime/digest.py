"""A digest of the records that a task puts out, which does not tell how they were batched."""

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import msgspec

from gearpy.errors import ConfigError
from gearpy.messages.table import Table, Times
from gearpy.wire.values.extensions import EncoderPool
from gearpy.wire.values.records import DEFAULT_REGISTRY

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

#: Digest of output that cannot be told apart, as a value of it cannot be encoded.
NO_DIGEST: Final = -1
_WORD: Final = 0xFFFF_FFFF
_OTHER: Final = 0  # Code of a value that only gearpy's own encoders know.
#: What encoding something unusual can raise.
_UNUSUAL: Final = (ConfigError, TypeError, ValueError, OverflowError, RecursionError)


class OutputDigest:
    """Adds up the records that a task puts out; it does not matter how they were batched.

    A batch is encoded at once, without its length: bytes of two batches, one after the other, are
    those of one. Columns are kept until they are asked for, and joined, as they have no such form.
    A tuple is as good as a list, and an instance as its fields, which is by far the quickest.

    Attributes:
        only_counts: the digest is not needed.
        in_any_order: the order of the records does not matter either.
    """

    def __init__(self) -> None:
        self.only_counts = self.in_any_order = False
        self._records = self._values = self._times = 0
        self._is_told_apart = True
        self._tables: list[Table] = []
        self._encoders = EncoderPool(DEFAULT_REGISTRY)
        pack = self._encoders.pack
        self._encoder = msgspec.msgpack.Encoder(
            enc_hook=lambda value: msgspec.msgpack.Ext(_OTHER, pack(value))
        )

    def add(self, values: Sequence[Any], timestamps: Sequence[int]) -> None:
        self._records += len(timestamps)
        if self.only_counts or not self._is_told_apart:
            return
        try:
            if self.in_any_order:
                for row, time in zip(values, timestamps, strict=True):
                    self._values = self._values + crc32(self._row(row), int(time) & _WORD) & _WORD
                return
            if type(values) is Table:
                self._tables.append(values)
            else:
                self._add_rows(values)
            if type(timestamps) is Times:
                times = timestamps.array.to_numpy(zero_copy_only=False)
                self._times = crc32(memoryview(times).cast("B"), self._times)
            else:
                self._times = crc32(array("q", timestamps), self._times)
        except _UNUSUAL:
            self._is_told_apart = False

    def take(self) -> tuple[int, int]:
        """Return the number and the digest of the records since the last time."""
        if self._tables:
            self._add_tables()
        digest = self._values << 32 | self._times if self._is_told_apart else NO_DIGEST
        taken = self._records, digest
        self._records = self._values = self._times = 0
        self._is_told_apart = True
        return taken

    def _add_rows(self, values: Sequence[Any]) -> None:
        rows = values if type(values) is list else list(values)
        try:
            # The first bytes of an encoded list say its length.
            head = 1 if len(rows) < 1 << 4 else 3 if len(rows) < 1 << 16 else 5
            encoded = memoryview(self._encoder.encode(rows))[head:]
        except _UNUSUAL:
            for row in rows:
                self._values = crc32(self._row(row), self._values)
        else:
            self._values = crc32(encoded, self._values)

    def _row(self, row: Any) -> bytes:
        """Encode one record among which some are unusual, such as numbers of more than 64 bits."""
        try:
            return self._encoder.encode(row)
        except _UNUSUAL:
            return self._encoders.pack(row)

    def _add_tables(self) -> None:
        tables, self._tables = self._tables, []
        try:
            joined = _joined([each.batch for each in tables])
            if joined is not None:
                self._values = crc32(joined.serialize(), self._values)
                return
            for each in tables:
                self._add_rows(each)
        except _UNUSUAL:
            self._is_told_apart = False


def _joined(batches: "list[pa.RecordBatch]") -> "pa.RecordBatch | None":
    """Return columns as one batch of which the bytes say nothing about how they were cut.

    None if there is no such form of them: bytes behind a null, or of a dictionary, may be any.
    """
    import pyarrow as pa  # noqa: PLC0415 - there are tables, so Arrow is there

    if any(each.schema != batches[0].schema for each in batches):
        return None
    columns = pa.Table.from_batches(batches).combine_chunks()
    plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_timestamp)
    for column in columns.columns:
        if column.null_count or not any(is_plain(column.type) for is_plain in plain):
            return None
    return columns.to_batches()[0]
