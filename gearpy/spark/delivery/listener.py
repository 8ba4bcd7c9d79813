"""Spark's progress reports of queries, noted beside the log that they read."""

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from gearpy.clocks import wall_ms
from gearpy.core.handover.window_log import LogView
from gearpy.errors import GearpyError
from gearpy.windowlog.log import ReaderReport, WindowLog

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryTerminatedEvent,
        StreamingQueryListener,
    )

_LOG: Final = logging.getLogger(__name__)
_NAME_CHARS: Final = 80
#: A folder that is not there raises these, or a Spark that tells something else.
_ERRORS: Final = (GearpyError, OSError, LookupError, ValueError, TypeError, AttributeError)


def listen(
    spark: "SparkSession",
    path: "str | Path",
    *,
    query: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> "StreamingQueryListener":
    """Note how queries of this session get on with a window log, for `gear why` and others.

    After each batch of a query that reads the log there is a report in its folder `_readers`: the
    batch id, rows, rows per second, and how many rows and batches it is behind. It is called like
    the query, or by its id if that has no name.

    Spark does not tell which log a query reads. It is taken for this one if it reads lanes that are
    there; so if a session reads several logs whose lanes have the same names, say which query is
    meant.

    Args:
        path: the folder of the log, or its URL.
        query: name of the only query that is meant.
        storage_options: for the file system of a URL.

    Returns:
        the listener, for ``spark.streams.removeListener``.
    """
    from pyspark.sql.streaming.listener import StreamingQueryListener  # noqa: PLC0415

    notes = QueryNotes(WindowLog(path, storage_options=storage_options), query)

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - as Spark has it
            pass

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - as Spark has it
            pass

        def onQueryProgress(self, event: "QueryProgressEvent") -> None:  # noqa: N802
            notes.on_progress(json.loads(event.progress.json))

        def onQueryTerminated(self, event: "QueryTerminatedEvent") -> None:  # noqa: N802
            notes.on_end(str(event.id), event.exception)

    listener = Listener()
    spark.streams.addListener(listener)
    return listener


class QueryNotes:
    """Writes the reports of some queries. Never raises: that would disturb the query.

    Runs on: the thread of Spark's listeners.

    Args:
        query: name of the only query that is meant; None: any.
    """

    def __init__(self, log: WindowLog, query: str | None = None) -> None:
        self._log = log
        self._query = query
        self._last: dict[str, ReaderReport] = {}

    def on_progress(self, progress: Mapping[str, Any]) -> None:
        if self._query is not None and progress.get("name") != self._query:
            return
        try:
            report = report_of(progress, self._log.view(), now_ms=wall_ms())
        except _ERRORS as error:
            _LOG.warning("window log %s: no report of a query: %s", self._log.place, error)
            return
        if report is not None:
            self._last[str(progress["id"])] = report
            self._write(report)

    def on_end(self, query: str, failure: str | None) -> None:
        report = self._last.pop(query, None)
        if report is not None:
            reason = (failure or "").strip().partition("\n")[0]
            more = {**report.more, "trouble": reason or "the query was stopped"}
            self._write(replace(report, at_ms=wall_ms(), rows_per_s=0.0, more=more))

    def _write(self, report: ReaderReport) -> None:
        try:
            self._log.report(report)
        except (GearpyError, OSError) as error:
            _LOG.warning("window log %s: no report of a query: %s", self._log.place, error)


def report_of(progress: Mapping[str, Any], view: LogView, *, now_ms: int) -> ReaderReport | None:
    """Return a query's progress as a report on a log; None if it reads another log."""
    source = next((each for each in progress["sources"] if _reads(each, view)), None)
    if source is None:
        return None
    lanes, ends = dict(source["endOffset"]), view.ends()
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", progress.get("name") or "").lstrip("_.-")[:_NAME_CHARS]
    return ReaderReport(
        name=name or f"spark-{progress['id']}",
        lanes=lanes,
        at_ms=now_ms,
        rows_per_s=source.get("processedRowsPerSecond"),
        batch_id=progress["batchId"],
        more={
            "query": progress["id"],
            "rows": source.get("numInputRows", 0),
            "rows_behind": view.rows_between(lanes, ends),
            "batches_behind": view.batches_between(lanes, ends),
        },
    )


def _reads(source: Mapping[str, Any], view: LogView) -> bool:
    offset, ends = source.get("endOffset"), view.ends()
    return (
        isinstance(offset, Mapping)
        and bool(offset)
        and all(isinstance(seq, int) and seq <= ends.get(lane, 0) for lane, seq in offset.items())
    )
