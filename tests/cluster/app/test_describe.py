"""What an app master tells about its application."""

from pathlib import Path

import gearpy as gp
from gearpy.cluster.app.describe import detail_of, path_lines
from gearpy.core.app.application import ApplicationCore
from gearpy.ids import AppId, TaskId
from gearpy.messages.app import TaskClock
from gearpy.messages.summaries import ApplicationDetail, ErrorCard, Failure
from gearpy.task.stages.guarantees import guarantees_of
from tests.core.manager_bench import Bench


def told(core: ApplicationCore | None, *failures: Failure, now_ms: int = 0) -> ApplicationDetail:
    return detail_of(
        AppId(1),
        core,
        failures,
        now_ms=now_ms,
        guarantees=("a -> b",),
        fallbacks={},
        scaled=(),
        stored_ms=lambda *_: 0,
    )


def test_each_path_has_its_guarantee(tmp_path: Path) -> None:
    app = gp.StreamApp("paths")
    numbers = app.read(gp.collection([1, 2]))
    numbers.write(gp.jsonl_folder(tmp_path / "out"))
    numbers.write(gp.console())

    good, weak = path_lines(guarantees_of(app.build()))

    source = "collection(2 values)"
    assert good == f"{source} -> jsonl_folder({tmp_path / 'out'}): exactly-once"
    assert weak.startswith(f"{source} -> console: at-least-once: console writes again after")
    assert weak.endswith("write to a transactional sink, such as jsonl_folder or parquet_folder")


def test_idle_tasks_are_counted() -> None:
    bench = Bench()
    (region,) = bench.manager.regions
    idle = TaskId(0, 1)
    report = TaskClock(
        task_id=idle, session=region.sessions[idle], clock_ms=1, watermark_ms=1, idle=True
    )

    bench.obey(bench.manager.on_clocks([report], bench.now_ms))

    detail = told(bench.manager)
    assert [each.idle_tasks for each in detail.processors] == [1, 0]
    assert [each.idle_ms for each in detail.processors] == [0, 0]


def test_a_processor_tells_for_how_long_all_of_its_tasks_are_idle() -> None:
    bench = Bench()
    (region,) = bench.manager.regions
    reports = [
        TaskClock(
            task_id=each, session=region.sessions[each], clock_ms=1, watermark_ms=1, idle=True
        )
        for each in (TaskId(0, 0), TaskId(0, 1))
    ]

    bench.obey(bench.manager.on_clocks(reports, bench.now_ms))

    detail = told(bench.manager, now_ms=bench.now_ms + 7)
    assert [each.idle_ms for each in detail.processors] == [7, 0]


def test_an_application_that_begins_has_guarantees_and_failures_only() -> None:
    failure = Failure(at_ms=1, what="it", error=ErrorCard(cause="why"))

    detail = told(None, failure)

    assert (detail.failures, detail.guarantees) == ((failure,), ("a -> b",))
    assert (detail.epochs, detail.processors) == ((), ())
