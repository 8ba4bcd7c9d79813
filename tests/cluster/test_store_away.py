"""Folders of a run are taken away while it runs, and given back: it goes on exactly."""

import itertools
import json
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable

import gearpy as gp
from gearpy.cluster.embedded.background import BackgroundRun
from gearpy.errors import GearpyError
from tests.eventually import eventually

CONFIG = gp.load_config(
    overrides={"checkpoint.interval-ms": "100", "application.total-retries": "0"}
)


def numbers_in_json(folder: Path) -> list[int]:
    texts = [each.read_text() for each in folder.glob("*.jsonl")]
    return [json.loads(line)["n"] for text in texts for line in text.splitlines()]


def numbers_in_hive(folder: Path) -> list[int]:
    tables = [pq.read_table(each, partitioning=None) for each in folder.glob("*/*.parquet")]
    return [n for table in tables for n in table["n"].to_pylist()]


def numbers_in_log(folder: Path) -> list[int]:
    read = list[dict[str, int]]()
    app = gp.StreamApp("look")
    app.read(gp.window_log(folder, follow=False)).write(gp.to_list(read))
    gp.run(app)
    return [each["n"] for each in read]


def numbers_in_delta(folder: Path) -> list[int]:
    return [*DeltaTable(str(folder)).to_pyarrow_table()["n"].to_pylist()]


Sinks = tuple[Callable[[Path], gp.Sink], Callable[[Path], list[int]]]
SINKS: dict[str, Sinks] = {
    "json": (gp.jsonl_folder, numbers_in_json),
    "hive": (lambda folder: gp.hive_folder(folder, partition_by="key"), numbers_in_hive),
    "window log": (gp.window_log_folder, numbers_in_log),
    "delta": (gp.delta_table, numbers_in_delta),
}


def started(tmp_path: Path, sink: gp.Sink) -> BackgroundRun:
    app = gp.StreamApp("away")
    numbers = app.read(gp.generate(itertools.count, rate=500))
    numbers.map(lambda n: {"key": n % 2, "n": n}).write(sink)
    run = gp.start(app, config=CONFIG, checkpoint=tmp_path / "run")
    eventually(lambda: run.summary.progress.epoch > 1)
    return run


def waits_for(run: BackgroundRun, text: str) -> None:
    eventually(lambda: text in run.summary.progress.waits_for)
    assert run.summary.status == "active"


QUICK = [("json", False), ("window log", True)]
OTHERS = [each for each in product(SINKS, [False, True]) if each not in QUICK]


@pytest.mark.parametrize(
    ("name", "leaves_empty"),
    [*QUICK, *(pytest.param(*each, marks=pytest.mark.long) for each in OTHERS)],
)
def test_the_folder_of_a_sink_is_waited_for(
    tmp_path: Path, name: str, *, leaves_empty: bool
) -> None:
    make, numbers_in = SINKS[name]
    folder, away = tmp_path / "out", tmp_path / "away"
    run = started(tmp_path, make(folder))
    folder.rename(away)
    if leaves_empty:
        folder.mkdir()

    waits_for(run, "its store: ")
    epoch = run.summary.progress.epoch
    assert [*tmp_path.glob("out/**/*")] == []

    if leaves_empty:
        folder.rmdir()
    away.rename(folder)
    eventually(lambda: run.summary.progress.epoch > epoch + 2)
    summary = run.stop()
    assert summary.progress.drained
    assert summary.progress.restarts == 0
    shown = numbers_in(folder)
    assert Counter(shown) == Counter(range(len(shown)))
    assert len(shown) > 100


def test_the_folder_of_a_run_is_waited_for_and_never_made_anew(tmp_path: Path) -> None:
    """One that is gone for good leaves nothing behind that a later run would trip over."""
    run = started(tmp_path, gp.jsonl_folder(tmp_path / "out"))
    (tmp_path / "run").rename(tmp_path / "away")
    waits_for(run, f"checkpoint folder {tmp_path}/run/checkpoints has nothing of")
    epoch, read = run.summary.progress.epoch, run.summary.progress.records_in
    eventually(lambda: run.summary.progress.records_in > read)
    (tmp_path / "away").rename(tmp_path / "run")
    eventually(lambda: run.summary.progress.epoch > epoch + 2)

    (tmp_path / "run").rename(tmp_path / "away")
    waits_for(run, "its store: ")
    run.kill()
    assert not (tmp_path / "run").exists()
    (tmp_path / "away").rename(tmp_path / "run")
    again = started(tmp_path, gp.jsonl_folder(tmp_path / "out"))

    assert again.stop().progress.drained
    numbers = numbers_in_json(tmp_path / "out")
    assert Counter(numbers) == Counter(range(len(numbers)))


def test_nothing_more_is_read_when_a_stop_waits_for_the_store(tmp_path: Path) -> None:
    run = started(tmp_path, gp.jsonl_folder(tmp_path / "out"))
    (tmp_path / "run").rename(tmp_path / "away")
    waits_for(run, "its store: ")

    run.stop(0.01)
    eventually(lambda: run.metrics().totals.records_in_rate == 0)
    read = run.summary.progress.records_in
    (tmp_path / "away").rename(tmp_path / "run")

    summary = run.wait()
    assert (summary.progress.drained, summary.progress.records_in) == (True, read)
    numbers = numbers_in_json(tmp_path / "out")
    assert Counter(numbers) == Counter(range(read))


def test_a_folder_that_is_missing_at_the_first_start_ends_it_at_once(tmp_path: Path) -> None:
    app = gp.StreamApp("missing")
    app.read(gp.generate(itertools.count, rate=500)).write(gp.jsonl_folder(tmp_path / "no" / "out"))
    run = gp.start(app, config=gp.load_config(overrides={"application.total-retries": "5"}))

    with pytest.raises(GearpyError, match=r"folder .*/no does not exist: make it first"):
        run.wait()

    assert run.summary.progress.restarts == 0
