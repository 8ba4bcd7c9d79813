"""A window log that a test writes by hand, and a Spark that is none."""

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.spark_types import spark_schema
from gearpy.core.handover.window_log import LOG_FOLDERS, segment_name
from gearpy.spark.sessions.sessions import SessionTarget
from gearpy.storage.folder.at import folder_at
from gearpy.windowlog.bodies import BatchInfo, Body, SegmentInfo, write_body
from gearpy.windowlog.log import SCHEMA_FILE, LogSchema, schema_text

LANE = "windows-00000"
SCHEMA = pa.schema([("n", pa.int64())])


class LogOnDisk:
    """A log with one column; row ``n`` is the ``n``-th that was written."""

    def __init__(self, path: Path, *, body: Body = "parquet", lane: str = LANE) -> None:
        self.path = path
        self.lane = lane
        self.body: Body = body
        self.rows = 0
        self._seq = 0
        self._store = folder_at(path, key="window log")
        self._store.make(*LOG_FOLDERS)
        schema = LogSchema(SCHEMA, spark_schema(SCHEMA), "abc", 1)
        self._store.put(SCHEMA_FILE, schema_text(schema))

    def show(self, rows: int) -> int:
        """Write one more file, with a window of 10 s; return how many rows it has."""
        self._seq += 1
        start = self._seq * 10_000
        info = SegmentInfo(
            batches=[BatchInfo(self._seq, rows, self._seq, start, start + 10_000, windows=1)]
        )
        table = pa.table({"n": range(self.rows, self.rows + rows)}, schema=SCHEMA)
        name = segment_name(
            self.lane,
            first=self._seq,
            last=self._seq,
            rows=rows,
            epoch=self._seq,
            run="run",
            incarnation=1,
            body=self.body,
        )
        with self._store.create(f"_pending/{name}") as file:
            write_body(file, table, info, body=self.body)
            self._store.sync(file)
        self._store.move(f"_pending/{name}", to=name)
        self.rows += rows
        return rows


class FakeSession:
    """Makes frames that are lists of numbers; its files are read by Arrow."""

    def createDataFrame(self, table: pa.Table, schema: Any) -> list[int]:  # noqa: N802 - Spark's
        return list(table["n"].to_pylist())

    @property
    def read(self) -> "FakeSession":
        return self

    def schema(self, schema: Any) -> "FakeSession":
        return self

    def parquet(self, *files: str) -> list[int]:
        return [n for file in files for n in pa.parquet.read_table(file)["n"].to_pylist()]


class FakeTarget(SessionTarget):
    def __init__(self, make: Callable[[], Any] = FakeSession) -> None:
        super().__init__(make)
        self.is_down = False
        self.connects = 0
        self.connected = Event()

    def connect(self) -> Any:
        self.connects += 1
        if self.is_down:
            raise ConnectionRefusedError("no Spark here")
        self.connected.set()
        return self._make()

    @property
    def is_lost(self) -> bool:
        return self.is_down
