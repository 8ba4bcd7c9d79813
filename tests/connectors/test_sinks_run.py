"""Sinks of files and tables at work: in applications that run, fail, and crash."""

import json
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

# Ships no type information.
import pyarrow.dataset as pa_dataset  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.programs.artifacts import embed
from gearpy.config.load import load
from gearpy.testing import Simulation
from gearpy.windowlog.log import WindowLog
from gearpy.windowlog.verify import verify
from tests.connectors.failing import Failing
from tests.eventually import DEADLINE_S

#: Makes a sink, and reads the numbers that it has written.
Kind = tuple[Callable[[Path], gp.Sink], Callable[[Path], list[Any]]]


def in_lines(folder: Path) -> list[Any]:
    texts = [path.read_text() for path in sorted(folder.glob("*.jsonl"))]
    return [json.loads(line)["n"] for text in texts for line in text.splitlines()]


def in_files(folder: Path) -> list[Any]:
    return [n for path in folder.glob("*.parquet") for n in pq.read_table(path)["n"].to_pylist()]


def in_partitions(folder: Path) -> list[Any]:
    table = pa_dataset.dataset(folder, partitioning="hive").to_table(columns=["n"])
    return list(table["n"].to_pylist())


def in_log(folder: Path) -> list[Any]:
    log = WindowLog(folder)
    assert verify(log).findings == []
    return list(log.read_between({}, log.view().ends())["n"].to_pylist())


KINDS: dict[str, Kind] = {
    "jsonl": (gp.jsonl_folder, in_lines),
    "parquet": (gp.parquet_folder, in_files),
    "hive": (lambda path: gp.hive_folder(path, partition_by="p"), in_partitions),
    "delta": (
        lambda path: gp.delta_table(path, partition_by="p"),
        lambda path: list(DeltaTable(path).to_pyarrow_table()["n"].to_pylist()),
    ),
    "log": (lambda path: gp.window_log_folder(path, body="auto", compact_files=5), in_log),
}


def an_app(sink: gp.Sink, *, records: int, tasks: int) -> gp.StreamApp:
    app = gp.StreamApp("numbers", parallelism=tasks)
    numbers = app.read(gp.collection(range(records), partitions=tasks))
    numbers.map(lambda n: {"n": n, "p": n % 3}).write(sink)
    return app


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Killed.
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [1, 2])
def test_crashes_neither_lose_nor_repeat(tmp_path: Path, kind: str, seed: int) -> None:
    """All begin anew from the newest epoch; what they had written since is not shown."""
    make, numbers = KINDS[kind]
    app = an_app(make(tmp_path / "out"), records=3000, tasks=2)

    ran = Simulation(app, seed=seed, cut_every_ms=20, crashes_after_epochs=3)
    ran.run()

    assert ran.restored
    assert Counter(numbers(tmp_path / "out")) == Counter(range(3000))


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_the_end_of_the_input_shows_everything(tmp_path: Path, kind: str, tasks: int) -> None:
    """The end is the end of an epoch; nothing is left pending."""
    make, numbers = KINDS[kind]

    Simulation(an_app(make(tmp_path / "out"), records=2000, tasks=tasks)).run()

    assert sorted(numbers(tmp_path / "out")) == list(range(2000))
    assert list((tmp_path / "out" / "_pending").iterdir()) == []


def test_failures_of_tasks_neither_lose_nor_repeat(tmp_path: Path) -> None:
    """Tasks of a cluster restart from the newest epoch, as often as one fails."""
    step, out = Failing(1501, 6000, 9001), tmp_path / "out"
    source = gp.generate(lambda part: count(part, 2), rate=10_000, limit=10_000, partitions=2)
    app = gp.StreamApp("numbers", parallelism=2)
    app.read(source).map(step).map(lambda n: {"n": n}).write(gp.jsonl_folder(out))
    config = {"checkpoint.interval-ms": "20", "application.backoff-base-ms": "1"}

    with LocalCluster(load(env={})) as cluster:
        summary = cluster.client.submit("numbers", embed(app.build()), config=config).wait(
            DEADLINE_S
        )

    assert not step.left
    assert summary.progress.restarts in {2, 3}  # Two failures may be answered by one.
    assert Counter(in_lines(out)) == Counter(range(10_000))
    assert len(list(out.iterdir())) > 10


def test_a_refused_record_is_the_applications_failure(tmp_path: Path) -> None:
    """It is named; nothing that is not complete is shown."""
    app = gp.StreamApp("bad")
    app.read(gp.collection([{"n": 1}, {"n": {2}}])).write(gp.jsonl_folder(tmp_path / "out"))

    with pytest.raises(gp.OperatorError) as caught:
        gp.run(app)

    assert caught.value.record == "{'n': {2}}"
    assert in_lines(tmp_path / "out") == []
