"""A cluster of daemons with checkpoints and results in a real store, while processes are killed."""

import os
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

# Ships no type information.
from pyarrow import parquet as pq  # type: ignore[import-untyped]

from gearpy.ids import AppId
from gearpy.messages.client import GetApplication
from gearpy.messages.summaries import EpochsSummary
from gearpy.storage.folder.api import Folder
from gearpy.storage.folder.at import folder_at
from tests.bench.process_cluster import ProcessCluster
from tests.eventually import eventually
from tests.servers.hdfs import Hdfs
from tests.servers.kafka import Kafka
from tests.servers.s3 import S3Address

DEADLINE_S: Final = 150.0
RECORDS: Final = 4000
PROGRAM: Final = """
import itertools
import gearpy as gp

def main(args):
    app = gp.StreamApp("numbers", parallelism=2)
    numbers = app.read(gp.generate(
        lambda part: itertools.count(part, 2), rate=100, limit=%d, partitions=2
    ))
    by_digit = numbers.key_by(lambda n: n %% 10)
    counted = by_digit.map_with_state(lambda seen, n: (seen + 1, (n, seen)), initial=0)
    counted.map(lambda each: {"n": each[0], "seen": each[1]}).write(
        gp.parquet_folder(args[0])
    )
    return app
"""


class Results:
    """The rows in a folder, as readers see them; each file is read once."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._read: dict[str, list[dict[str, Any]]] = {}

    def rows(self) -> list[dict[str, Any]]:
        names = self._folder.walk(into=lambda each: not each.startswith("_"))
        for name in set(names) - self._read.keys():
            with self._folder.open(name) as file:
                self._read[name] = pq.ParquetFile(file).read().to_pylist()
        return [row for name in names for row in self._read[name]]

    def wait_for(self, count: int) -> None:
        """Wait until there are so many; look now and then, as the server has other work."""
        eventually(
            lambda: len(self.rows()) >= count, f"{count} rows", within_s=DEADLINE_S, every_s=1
        )


@contextmanager
def running(
    path: Path, store: str, *, out: str = "", changelog: str = "off"
) -> Iterator[tuple[ProcessCluster, AppId]]:
    """Run the program in two executors, with all that lasts in a store, or results elsewhere."""
    (path / "numbers.py").write_text(PROGRAM % RECORDS, encoding="utf-8")
    settings = {
        "checkpoint.folder": f"{store}/checkpoints",
        "checkpoint.interval-ms": "300",
        "checkpoint.changelog": changelog,
        "application.backoff-base-ms": "10",
    }
    with ProcessCluster(path, workers=1, settings=settings) as cluster:
        app_id = cluster.submit(path / "numbers.py", out or f"{store}/out", executors=2)
        yield cluster, app_id


def kill_an_executor(cluster: ProcessCluster) -> None:
    (*_, newest) = eventually(lambda: cluster.launched("executor"), within_s=DEADLINE_S)
    os.kill(newest, signal.SIGKILL)


def has_ended(cluster: ProcessCluster, app_id: AppId) -> bool:
    """Tell whether the application has succeeded; it must not have failed."""
    status = cluster.client.ask(GetApplication(app_id=app_id)).status
    assert status not in {"failed", "terminated"}
    return status == "succeeded"


def check(cluster: ProcessCluster, app_id: AppId, results: Results) -> None:
    """Wait for the end, and see each number once, and each count of a key once."""
    eventually(lambda: has_ended(cluster, app_id), within_s=DEADLINE_S)
    rows = results.rows()
    assert Counter(row["n"] for row in rows) == Counter(range(RECORDS))
    assert Counter((row["n"] % 10, row["seen"]) for row in rows) == Counter(
        (digit, seen) for digit in range(10) for seen in range(RECORDS // 10)
    )


@pytest.mark.long
def test_checkpoints_and_results_in_s3(
    tmp_path: Path, s3: S3Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is named by its URL; its address and the key come from the environment."""
    for name, value in s3.env.items():
        monkeypatch.setenv(name, value)
    store = s3.make_bucket()
    results = Results(folder_at(f"{store}/out", s3.options, key="out"))

    with running(tmp_path, store) as (cluster, app_id):
        for count in (1, 1000):
            results.wait_for(count)
            kill_an_executor(cluster)
        check(cluster, app_id, results)


@pytest.mark.long
def test_checkpoints_and_results_in_hdfs(tmp_path: Path, own_hdfs: Hdfs) -> None:
    store = f"webhdfs://root@{own_hdfs.address.web}/gearpy"
    results = Results(folder_at(f"{store}/out", key="out"))

    with running(tmp_path, store) as (cluster, app_id):
        results.wait_for(1)
        own_hdfs.names.restart()
        results.wait_for(1000)
        kill_an_executor(cluster)
        check(cluster, app_id, results)


@pytest.mark.long
def test_checkpoints_and_logs_in_kafka(tmp_path: Path, own_kafka: Kafka) -> None:
    """The changelog and the coordinator log, too; no epoch is given up but for the broker."""
    out = str(tmp_path / "out")
    results = Results(folder_at(out, key="out"))
    store = f"kafka://{own_kafka.address.plain}/gearpy"

    with running(tmp_path, store, out=out, changelog="on") as (cluster, app_id):
        results.wait_for(1000)
        assert [each.aborted for each in eventually(lambda: epochs_of(cluster, app_id))] == [0]
        own_kafka.broker.restart()
        results.wait_for(1500)
        kill_an_executor(cluster)
        check(cluster, app_id, results)


def epochs_of(cluster: ProcessCluster, app_id: AppId) -> Sequence[EpochsSummary]:
    """Return what the app master says of epochs; nothing while it is away."""
    detail = cluster.detail(app_id)
    return () if detail is None else detail.epochs
