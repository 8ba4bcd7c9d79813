"""Folder sinks at work: in applications that run, and in ones that fail."""

import json
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

# Ships no type information.
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.programs.artifacts import embed
from gearpy.config.load import load
from tests.connectors.failing import Failing
from tests.eventually import DEADLINE_S

#: Makes a sink, and reads what is in its folder.
Kind = tuple[Callable[..., gp.Sink], Callable[[Path], list[Any]]]


def jsonl_rows(folder: Path) -> list[Any]:
    texts = [path.read_text() for path in sorted(folder.glob("*.jsonl"))]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def parquet_rows(folder: Path) -> list[Any]:
    return [
        row for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist()
    ]


@pytest.fixture(params=["jsonl", "parquet"])
def kind(request: pytest.FixtureRequest) -> Kind:
    kinds: dict[str, Kind] = {
        "jsonl": (gp.jsonl_folder, jsonl_rows),
        "parquet": (gp.parquet_folder, parquet_rows),
    }
    return kinds[request.param]


def an_app(sink: gp.Sink, step: Callable[[Any], Any], *, records: int, tasks: int) -> gp.StreamApp:
    app = gp.StreamApp("numbers", parallelism=tasks)
    numbers = app.read(gp.collection(range(records), partitions=tasks))
    numbers.map(step).map(lambda n: {"n": n}).write(sink)
    return app


@pytest.mark.parametrize("tasks", [1, 3])
def test_the_end_of_the_input_shows_everything(tmp_path: Path, kind: Kind, tasks: int) -> None:
    """The end is the end of an epoch; nothing is left pending."""
    make, rows = kind

    gp.run(an_app(make(tmp_path / "out"), lambda n: n, records=5000, tasks=tasks))

    assert sorted(row["n"] for row in rows(tmp_path / "out")) == list(range(5000))
    assert list((tmp_path / "out" / "_pending").iterdir()) == []


def test_failures_neither_lose_nor_repeat(tmp_path: Path, kind: Kind) -> None:
    """Tasks restart from the newest epoch; what they had written since is not shown."""
    make, rows = kind
    step, out = Failing(1501, 6000, 9001), tmp_path / "out"
    source = gp.generate(lambda part: count(part, 2), rate=10_000, limit=10_000, partitions=2)
    app = gp.StreamApp("numbers", parallelism=2)
    app.read(source).map(step).map(lambda n: {"n": n}).write(make(out))
    config = {"checkpoint.interval-ms": "20", "application.backoff-base-ms": "1"}

    with LocalCluster(load(env={})) as cluster:
        summary = cluster.client.submit("numbers", embed(app.build()), config=config).wait(
            DEADLINE_S
        )

    assert not step.left
    assert summary.progress.restarts in {2, 3}  # Two failures may be answered by one.
    assert Counter(row["n"] for row in rows(out)) == Counter(range(10_000))
    assert len(list(out.iterdir())) > 10


def test_a_refused_record_is_the_applications_failure(tmp_path: Path) -> None:
    """It is named; nothing that is not complete is shown."""
    app = gp.StreamApp("bad")
    app.read(gp.collection([{"n": 1}, {"n": {2}}])).write(gp.jsonl_folder(tmp_path / "out"))

    with pytest.raises(gp.OperatorError) as caught:
        gp.run(app)

    assert caught.value.record == "{'n': {2}}"
    assert jsonl_rows(tmp_path / "out") == []
