"""Who reads a log, and who is stuck: by what readers say of themselves."""

from pathlib import Path
from shutil import rmtree
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from gearpy.core.handover.window_log import LOG_FOLDERS, segment_name
from gearpy.messages.summaries import ConsumerReport
from gearpy.windowlog.bodies import BatchInfo, SegmentInfo, write_body
from gearpy.windowlog.consumers import LogConsumers
from gearpy.windowlog.log import ReaderReport, WindowLog

LANE = "windows-00000"


class Bench:
    """A log with files of ten rows, whoever watches its readers, and a clock."""

    def __init__(self, path: Path, **kwargs: Any) -> None:
        self.now_ms = 1_000_000
        self.log = WindowLog(path)
        self.log.store.make(*LOG_FOLDERS)
        self.watch = LogConsumers(self.log, lambda: self.now_ms, **kwargs)

    def show(self, seq: int) -> None:
        name = segment_name(LANE, first=seq, last=seq, rows=10, epoch=seq, run="run", incarnation=1)
        info = SegmentInfo(batches=[BatchInfo(seq, 10, seq)])
        with self.log.store.create(name) as file:
            write_body(file, pa.table({"n": range(10)}), info, body="parquet")

    def read(self, name: str, seq: int, **kwargs: Any) -> None:
        lanes = {LANE: seq} if seq else {}
        self.log.report(ReaderReport(name=name, lanes=lanes, at_ms=self.now_ms, **kwargs))

    def look(self, *, after_ms: int = 10_000) -> tuple[ConsumerReport, ...]:
        self.now_ms += after_ms
        return self.watch.reports()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "log")


def test_reader_is_told_with_how_far_it_is_behind(bench: Bench) -> None:
    for seq in (1, 2, 3):
        bench.show(seq)
    bench.read("query", 1, batch_id=7, rows_per_s=12.5, more={"trouble": "no such table"})

    assert bench.look() == (
        ConsumerReport(
            name="query",
            batch_id=7,
            rows_per_s=12.5,
            waiting_rows=20,
            waiting_since_ms=bench.now_ms,
            trouble="no such table",
        ),
    )


def test_reader_that_stands_still_waits_longer_and_longer(bench: Bench) -> None:
    bench.show(1)
    bench.read("query", 0)
    (first,) = bench.look()
    (second,) = bench.look()

    assert second.waiting_since_ms == first.waiting_since_ms == bench.now_ms - 10_000


def test_a_moment_later_nobody_looks_again(bench: Bench) -> None:
    bench.look()
    bench.read("query", 0)

    assert bench.look(after_ms=4_999) == ()
    assert len(bench.look(after_ms=1)) == 1


def test_readers_that_report_otherwise_are_left_out(tmp_path: Path) -> None:
    """The function of `to_spark` is no stranger to its own sink."""
    bench = Bench(tmp_path / "log", but=frozenset({"spark"}))
    bench.read("spark", 0)
    bench.read("query", 0)

    assert [each.name for each in bench.look()] == ["query"]


def test_a_store_that_cannot_be_read_changes_nothing(bench: Bench, tmp_path: Path) -> None:
    bench.read("query", 0)
    known = bench.look()

    rmtree(tmp_path / "log" / "_readers")
    (tmp_path / "log" / "_readers").write_text("this is no folder")

    assert bench.look() == known


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"name": "x"}',
        '{"name": 5, "lanes": {}, "at_ms": 1}',
        '{"name": "x", "lanes": [1], "at_ms": 1}',
        '{"name": "x", "lanes": {"windows-00000": "1"}, "at_ms": 1}',
        '{"name": "x", "lanes": {"windows-00000": true}, "at_ms": 1}',
        '{"name": "x", "lanes": {}, "at_ms": "now"}',
        '{"name": "x", "lanes": {}, "at_ms": 1, "rows_per_s": "fast"}',
        '{"name": "x", "lanes": {}, "at_ms": 1, "batch_id": [1]}',
    ],
)
def test_what_is_no_report_is_passed_over(bench: Bench, tmp_path: Path, text: str) -> None:
    """Anybody may write there; the task goes on, and tells of the others."""
    bench.show(1)
    bench.read("query", 0)
    (tmp_path / "log" / "_readers" / "x.json").write_text(text)

    assert [each.name for each in bench.look()] == ["query"]


def test_a_report_that_cannot_be_read_changes_nothing(bench: Bench, tmp_path: Path) -> None:
    bench.read("query", 0)
    known = bench.look()
    (tmp_path / "log" / "_readers" / "x.json").mkdir()

    assert bench.look() == known
