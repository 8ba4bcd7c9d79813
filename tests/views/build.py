"""Answers of a cluster, for views: a source, a step and a sink, as a running application has."""

from typing import Any, Final

from msgspec.structs import replace

from gearpy.ids import AppId, ExecutorId, WorkerId
from gearpy.messages.summaries import (
    ApplicationDetail,
    ApplicationProgress,
    ApplicationSummary,
    ClockHolderSummary,
    EdgeSummary,
    EpochsSummary,
    ExecutorSummary,
    ProcessorSummary,
    RegionSummary,
)
from gearpy.views.look import Look

NOW_MS: Final = 1_800_000_000_000
SUMMARY: Final = ApplicationSummary(
    app_id=AppId(7),
    name="revenue",
    status="active",
    user="ada",
    submitted_ms=NOW_MS - 60_000,
    started_ms=NOW_MS - 59_000,
    progress=ApplicationProgress(records_in=1_000, records_out=100, epoch=12),
)
DETAIL: Final = ApplicationDetail(
    app_id=AppId(7),
    executors=(
        ExecutorSummary(
            executor_id=ExecutorId(0),
            launch=1,
            worker_id=WorkerId(0),
            slots=4,
            status="running",
            pid=4711,
            data_address="127.0.0.1:41001",
            tasks=("0.0", "1.0", "1.1", "2.0"),
        ),
    ),
    processors=(
        ProcessorSummary(
            processor_id=0,
            name="orders",
            parallelism=1,
            clock_ms=5_000,
            records_out=1_000,
            steps=("orders", "parse"),
        ),
        ProcessorSummary(
            processor_id=1,
            name="join",
            parallelism=2,
            clock_ms=4_000,
            records_in=900,
            records_out=100,
        ),
        ProcessorSummary(
            processor_id=2,
            name="to_spark",
            parallelism=1,
            clock_ms=4_000,
            records_in=100,
            records_out=100,
        ),
    ),
    edges=(
        EdgeSummary(source=0, target=1, partitioner="hash"),
        EdgeSummary(source=1, target=2, partitioner="shuffle"),
    ),
    epoch=12,
    epochs=(EpochsSummary(region=0, epoch=12, stored_ms=NOW_MS - 400, size_bytes=9_000, kept=3),),
    regions=(RegionSummary(region=0, state="running", from_epoch=12, tasks=4),),
    guarantees=("orders -> to_spark: exactly-once",),
    why=(
        ClockHolderSummary(
            task="0.0", name="orders", clock_ms=5_000, watermark_ms=5_000, waits_for="upstream"
        ),
        ClockHolderSummary(
            task="1.1",
            name="join",
            clock_ms=4_000,
            watermark_ms=5_000,
            waits_for="unacknowledged output",
        ),
    ),
    lag_ms=200,
)


def a_summary(**changes: Any) -> ApplicationSummary:
    """Return the application with other facts; those of its progress are among them."""
    progress = {
        name: changes.pop(name)
        for name in list(changes)
        if name in ApplicationProgress.__struct_fields__
    }
    return replace(SUMMARY, progress=replace(SUMMARY.progress, **progress), **changes)


def a_detail(**changes: Any) -> ApplicationDetail:
    return replace(DETAIL, **changes)


def a_look(at_ms: int = NOW_MS, **answers: Any) -> Look:
    return replace(Look(at_ms=at_ms, summary=SUMMARY, detail=DETAIL), **answers)
