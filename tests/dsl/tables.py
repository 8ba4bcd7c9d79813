"""A source of tables."""

from collections.abc import Sequence
from typing import Any, TypedDict

import pyarrow as pa  # type: ignore[import-untyped]

import gearpy as gp
from gearpy.columns.row_schema import RowSchema, row_schema_of
from gearpy.messages.table import Table, Times


class Sale(TypedDict):
    user: str
    item: int
    price: int


#: Three users, four items; one event each ms.
SALES: list[Sale] = [{"user": "abc"[n % 3], "item": n % 4, "price": n * 7 % 20} for n in range(60)]
EVENTS = [gp.Message(sale, time) for time, sale in enumerate(SALES)]


class TableSource(gp.Source):
    """Messages whose values are dicts, as tables of a few rows; partitions in turns."""

    replayable = True
    bounded = True

    def __init__(
        self,
        events: Sequence[gp.Message],
        schema: Any = Sale,
        *,
        parts: int = 1,
        rows_per_table: int = 7,
    ) -> None:
        self._events = events
        self._schema = row_schema_of(schema)
        self._parts = parts
        self._rows_per_table = rows_per_table

    @property
    def schema(self) -> RowSchema:
        return self._schema

    @property
    def description(self) -> str:
        return "tables"

    def partitions(self) -> Sequence[str]:
        return [str(part) for part in range(self._parts)]

    def open(self, partition: str, resume: Any | None) -> "TableReader":
        events = self._events[int(partition) :: self._parts]
        return TableReader(events, self._schema.arrow, self._rows_per_table, resume or 0)


class TableReader(gp.SourceReader):
    out_of_order_ms = 0

    def __init__(
        self, events: Sequence[gp.Message], schema: pa.Schema, rows: int, place: int
    ) -> None:
        self._events = events
        self._arrow = schema
        self._rows = rows
        self._place = place
        self.finished = place >= len(events)

    def read_batch(self, max_records: int) -> gp.Batch | None:
        events = self._events[self._place : self._place + min(max_records, self._rows)]
        self._place += len(events)
        self.finished = self._place >= len(self._events)
        if not events:
            return None
        table = pa.RecordBatch.from_pylist([event.value for event in events], self._arrow)
        return gp.Batch(Table(table), Times.of([event.timestamp for event in events]))

    def snapshot(self) -> int:
        return self._place

    @property
    def watermark_ms(self) -> int:
        return self._events[self._place - 1].timestamp if self._place else gp.MIN_MS
