"""What is noted of the queries that read a log."""

from pathlib import Path
from typing import Any

import pytest

from gearpy.spark.delivery.listener import QueryNotes, report_of
from gearpy.windowlog.log import WindowLog
from tests.connectors.log_build import LogBuilder

LANE = "windows-00000"


def a_log(path: Path) -> LogBuilder:
    build = LogBuilder(path / "log")
    for _ in range(3):
        build.put()
    return build


def a_progress(offset: Any = None, **others: Any) -> dict[str, Any]:
    source = {"endOffset": offset, "numInputRows": 2, "processedRowsPerSecond": 40.5}
    foreign = {"endOffset": {"logOffset": 3}, "numInputRows": 9}
    return {"id": "q-1", "name": None, "batchId": 7, "sources": [foreign, source], **others}


def test_a_batch_is_noted_with_how_far_it_is_behind(tmp_path: Path) -> None:
    notes, log = QueryNotes(a_log(tmp_path).log), WindowLog(tmp_path / "log")

    notes.on_progress(a_progress({LANE: 1}))
    notes.on_progress(a_progress({LANE: 2}, name="roll up/day"))

    unnamed, named = sorted(log.readers(), key=lambda each: each.lanes[LANE])
    assert (unnamed.name, named.name) == ("spark-q-1", "roll_up_day")
    assert (named.batch_id, named.rows_per_s, dict(named.lanes)) == (7, 40.5, {LANE: 2})
    assert named.more == {"query": "q-1", "rows": 2, "rows_behind": 2, "batches_behind": 1}


@pytest.mark.parametrize("offset", [None, {}, {"logOffset": 3}, {LANE: 4}, 17, {LANE: "1"}])
def test_queries_that_read_something_else_are_not(tmp_path: Path, offset: Any) -> None:
    view = a_log(tmp_path).log.view()

    assert report_of(a_progress(offset), view, now_ms=1) is None


def test_only_the_query_that_is_meant_is_noted(tmp_path: Path) -> None:
    build = a_log(tmp_path)
    notes = QueryNotes(build.log, "mine")

    notes.on_progress(a_progress({LANE: 1}, name="other"))
    before = build.log.readers()
    notes.on_progress(a_progress({LANE: 1}, name="mine"))

    assert before == []
    assert [each.name for each in build.log.readers()] == ["mine"]


@pytest.mark.parametrize(
    ("failure", "expected"), [(None, "the query was stopped"), ("it broke\nat line 3", "it broke")]
)
def test_the_end_of_a_query_is_noted(tmp_path: Path, failure: str | None, expected: str) -> None:
    build = a_log(tmp_path)
    notes = QueryNotes(build.log)
    notes.on_progress(a_progress({LANE: 1}))

    notes.on_end("unknown", failure)
    notes.on_end("q-1", failure)

    (report,) = build.log.readers()
    assert report.more["trouble"] == expected
    assert report.rows_per_s == 0.0


def test_a_listener_disturbs_no_query(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    build = a_log(tmp_path)
    (tmp_path / "log" / "_readers").rmdir()
    (tmp_path / "log" / "_readers").write_text("")
    notes = QueryNotes(build.log)

    notes.on_progress({"id": "q", "sources": "?"})
    notes.on_progress(a_progress({LANE: 1}))
    notes.on_end("q-1", None)

    assert caplog.text.count("no report of a query") == 3
