"""The measurements that an app master answers with."""

from gearpy.cluster.app.metrics import AppMetrics
from gearpy.ids import MASTER_EXECUTOR, AppId, ExecutorId
from gearpy.messages.metrics import GetMetrics, MetricsData, ProcessSample, ReportMetrics
from tests.core.manager_bench import Bench


def test_the_process_of_an_executor_that_has_gone_is_not_told_any_more() -> None:
    """Its memory would stand on pages of Prometheus for as long as the application runs."""
    bench = Bench((2, 2), executors=2)
    metrics = AppMetrics(AppId(1), bench.dag, launch=1, wall_ms=lambda: 1, refused_orders=lambda: 0)

    def told() -> list[ExecutorId]:
        answer = metrics.answer(bench.manager, GetMetrics(app_id=AppId(1)))
        assert isinstance(answer, MetricsData)
        return [each.executor_id for each in answer.executors]

    for executor_id, launch in bench.launches.items():
        process = ProcessSample(pid=1, started_ms=1, rss_bytes=1, threads=1)
        report = ReportMetrics(executor_id=executor_id, launch=launch, at_ms=1, process=process)
        metrics.on_report(bench.manager, report)
    lost, kept = sorted(bench.launches)
    before = told()
    bench.lose(lost)

    assert before == [MASTER_EXECUTOR, lost, kept]
    assert told() == [MASTER_EXECUTOR, kept]
