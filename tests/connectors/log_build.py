"""Window logs for tests, file by file: what a writer leaves, without one."""

from pathlib import Path
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.spark_types import spark_schema
from gearpy.core.handover.window_log import LOG_FOLDERS, PENDING, segment_name
from gearpy.windowlog.bodies import BatchInfo, Body, SegmentInfo, write_body
from gearpy.windowlog.log import SCHEMA_FILE, LogSchema, WindowLog, schema_text

TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [("window_start", TIME), ("window_end", TIME), ("key", pa.string()), ("value", pa.int64())]
)
#: Each batch has one window of so many ms.
WINDOW_MS = 10_000


class LogBuilder:
    """Writes batches into a new log. Values of rows say which batch they are of: seq, place."""

    def __init__(self, path: Path, schema: pa.Schema = SCHEMA) -> None:
        self.log = WindowLog(path)
        self.log.store.make(*LOG_FOLDERS)
        begun = LogSchema(schema, spark_schema(schema), log="test", created_ms=1)
        self.log.store.put(SCHEMA_FILE, schema_text(begun))
        self._ends: dict[str, int] = {}

    def put(
        self,
        lane: str = "windows-00000",
        rows: int = 2,
        *,
        body: Body = "parquet",
        watermark: int | None = None,
        **columns: list[Any],
    ) -> int:
        """Write the next batch of a lane; return its number."""
        seq = self._ends[lane] = self._ends.get(lane, 0) + 1
        table = self._rows(lane, seq, rows) if not columns else pa.table(columns)
        info = BatchInfo(
            seq,
            table.num_rows,
            seq,
            None if columns else seq * WINDOW_MS,
            None if columns else (seq + 1) * WINDOW_MS,
            1,
            watermark,
        )
        self._show(lane, table.cast(self.log.schema.arrow), (info,), body=body)
        return seq

    def compact(self, lane: str, first: int, last: int) -> None:
        pieces = self.log.view().between({lane: first - 1}, {lane: last})
        table = pa.concat_tables(self.log.read(piece) for piece in pieces)
        infos = [batch for piece in pieces for batch in self.log.info(piece.segment).batches]
        self._show(lane, table, tuple(infos), incarnation=2)
        for piece in pieces:
            self.log.store.remove(piece.segment.name)

    def _rows(self, lane: str, seq: int, rows: int) -> pa.Table:
        start = pa.array([seq * WINDOW_MS * 1000] * rows, pa.int64())
        end = pa.array([(seq + 1) * WINDOW_MS * 1000] * rows, pa.int64())
        keys = [f"{lane}/{place}" for place in range(rows)]
        return pa.table([start, end, keys, [seq] * rows], names=SCHEMA.names)

    def _show(
        self,
        lane: str,
        table: pa.Table,
        batches: tuple[BatchInfo, ...],
        *,
        body: Body = "parquet",
        incarnation: int = 1,
    ) -> None:
        store, last = self.log.store, batches[-1]
        name = segment_name(
            lane,
            first=batches[0].seq,
            last=last.seq,
            rows=table.num_rows,
            epoch=last.epoch,
            run="test",
            incarnation=incarnation,
            body=body,
        )
        with store.create(PENDING + name) as file:
            write_body(file, table, SegmentInfo(run="test", batches=batches), body=body)
            store.sync(file)
        store.move(PENDING + name, to=name)
