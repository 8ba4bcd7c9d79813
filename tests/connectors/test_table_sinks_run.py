"""Table sinks in applications that fail: tasks restart, rows are there once."""

from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path

# Ships no type information.
import pyarrow.dataset as pa_dataset  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.programs.artifacts import embed
from gearpy.config.load import load
from gearpy.connectors.delta.table import delta_table
from gearpy.connectors.partitioned.hive import hive_folder
from tests.connectors.failing import Failing
from tests.eventually import DEADLINE_S

RECORDS = 3000


def hive_numbers(path: Path) -> list[int]:
    table = pa_dataset.dataset(path, partitioning="hive").to_table(columns=["n"])
    found: list[int] = table["n"].to_pylist()
    return found


def delta_numbers(path: Path) -> list[int]:
    found: list[int] = DeltaTable(path).to_pyarrow_table()["n"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("make", "numbers"), [(hive_folder, hive_numbers), (delta_table, delta_numbers)]
)
def test_failures_neither_lose_nor_repeat(
    tmp_path: Path, make: Callable[..., gp.Sink], numbers: Callable[[Path], list[int]]
) -> None:
    """Tasks restart from the newest epoch; what they had written since is not shown."""
    step, out = Failing(501, 1600, 2901), tmp_path / "out"
    source = gp.generate(lambda part: count(part, 2), rate=4_000, limit=RECORDS, partitions=2)
    app = gp.StreamApp("numbers", parallelism=2)
    rows = app.read(source).map(step).map(lambda n: {"n": n, "p": n % 3})
    rows.write(make(out, partition_by="p"))
    config = {"checkpoint.interval-ms": "60", "application.backoff-base-ms": "1"}

    with LocalCluster(load(env={})) as cluster:
        summary = cluster.client.submit("numbers", embed(app.build()), config=config).wait(
            DEADLINE_S
        )

    assert not step.left
    assert summary.progress.restarts >= 2  # Two failures may be answered by one.
    assert Counter(numbers(out)) == Counter(range(RECORDS))
