"""How long a cluster and a thousand tasks take to start, and what memory they take."""

import time
from collections.abc import Iterable
from typing import Any

from gearpy.cluster.boot.local import LocalCluster
from gearpy.config.schema import Config
from gearpy.connectors.memory import collection, to_list
from gearpy.dsl.application import StreamApp
from gearpy.messages.client import ListWorkers
from gearpy.messages.summaries import ApplicationSummary
from tests.bench.measure import rss_mb

_KEYED_TASKS = 999


def measure_start() -> Iterable[tuple[str, float, float]]:
    """Yield what was started, the seconds it took, and the memory of the process after it, MB."""
    began = time.monotonic()
    with LocalCluster(Config(), workers=2) as cluster:
        while len(cluster.client.ask(ListWorkers()).workers) < 2:
            time.sleep(0.001)
        yield "local cluster, 2 workers, nothing submitted", time.monotonic() - began, rss_mb()
        began = time.monotonic()
        active_after: list[float] = []

        def on_progress(summary: ApplicationSummary) -> None:
            if summary.started_ms and not active_after:
                active_after.append((summary.started_ms - summary.submitted_ms) / 1000)

        cluster.run(_wide_application(), on_progress=on_progress)
        yield "1,000 tasks in one executor, until active", active_after[0], rss_mb()
        yield "the same, until 100,000 records are through", time.monotonic() - began, rss_mb()


def _wide_application() -> StreamApp:
    results: list[Any] = []
    app = StreamApp("wide")
    numbers = app.read(collection(range(100_000)))
    counted = numbers.key_by(lambda number: number % 5000, parallelism=_KEYED_TASKS).count()
    counted.write(to_list(results))
    return app
