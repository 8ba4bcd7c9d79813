"""Logs to read and write in tests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.log_columns import moments
from gearpy.columns.spark_types import spark_schema
from gearpy.core.handover.window_log import LOG_FOLDERS
from gearpy.storage.folder.api import Folder
from gearpy.windowlog.bodies import Body
from gearpy.windowlog.lane import LaneWriter, PreparedBatch
from gearpy.windowlog.log import SCHEMA_FILE, LogSchema, WindowLog, schema_text

ARROW = pa.schema(
    {"window_start": pa.timestamp("us", "UTC"), "window_end": pa.timestamp("us", "UTC")}
    | {"key": pa.int64()}
)
SCHEMA = LogSchema(ARROW, spark_schema(ARROW), "log", 1, ("window_start", "window_end", "key"))


def rows_of(*keys: int) -> pa.RecordBatch:
    starts, ends = moments([key * 10 for key in keys]), moments([key * 10 + 10 for key in keys])
    return pa.RecordBatch.from_arrays([starts, ends, pa.array(keys, pa.int64())], schema=ARROW)


def a_log(store: Folder | Path | str) -> WindowLog:
    log = WindowLog(store)
    log.store.make(*LOG_FOLDERS)
    log.store.put_new(SCHEMA_FILE, schema_text(SCHEMA))
    return log


def a_lane(log: WindowLog, run: str = "r", incarnation: int = 1, **changes: Any) -> LaneWriter:
    known: dict[str, Any] = {"writer": "windows", "task": 0, "compression": "lz4", **changes}
    lane = LaneWriter(log, **known)
    lane.begin(run=run, incarnation=incarnation)
    lane.clean()
    lane.number_on()
    return lane


def prepared(
    lane: LaneWriter, epoch: int, *keys: int, body: Body = "parquet", **about: Any
) -> PreparedBatch:
    lane.add(rows_of(*keys))
    found = lane.prepare(epoch, body=body, about=about)
    assert found is not None
    return found


def shown(lane: LaneWriter, epoch: int, *keys: int, body: Body = "parquet") -> PreparedBatch:
    found = prepared(lane, epoch, *keys, body=body)
    lane.show(found)
    return found


def a_log_of(store: Folder | Path | str, batches: Sequence[Sequence[int]]) -> WindowLog:
    log = a_log(store)
    lane = a_lane(log)
    for epoch, keys in enumerate(batches, start=1):
        shown(lane, epoch, *keys)
    return log


def keys_in(log: WindowLog) -> list[int]:
    view = log.view()
    keys: list[int] = log.read_between(view.start(), view.ends())["key"].to_pylist()
    return keys
