"""Applications that hand windows over, with a Spark that is none: the end, failures, pressure."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.config.load import load
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.client import DescribeApplication
from tests.spark.delivery.test_thread import WAIT_S, Taken
from tests.spark.log_build import FakeSession, FakeTarget


class RowSession(FakeSession):
    def createDataFrame(self, table: Any, schema: Any) -> Any:  # noqa: N802 - Spark's
        return table.to_pylist()


def a_config(tmp_path: Path, **settings: Any) -> Config:
    known = {
        "checkpoint.folder": tmp_path / "checkpoints",
        "checkpoint.interval-ms": 20,
        "checkpoint.max-overhead-percent": "100",
        "spark.pause-ms": 1,
        "spark.call-attempts": 2,
        **settings,
    }
    return load(overrides={name: str(value) for name, value in known.items()})


def run(app: Any, config: Config, *, retries: int = 2) -> Any:
    with LocalCluster(config) as cluster:
        return cluster.run(app, overrides={"application.total-retries": str(retries)})


def counted(path: Path, function: Any, *, spark: Any = None) -> Any:
    """Return an application that counts numbers by their last digit, in windows of 100."""
    app = gp.StreamApp("shop")
    source = gp.generate(lambda: range(1000), timestamp=lambda n: n)
    counts = app.read(source).key_by(lambda n: n % 10).window(gp.tumbling("100ms")).count()
    counts.to_spark(function, str(path), spark=spark or FakeTarget(RowSession))
    return app


def keys_of(taken: Taken) -> list[tuple[int, int, int]]:
    """Return the windows that were taken: start in ms, key, count."""
    rows: Iterator[Any] = iter(taken.rows)
    found = [
        (int(row["window_start"].timestamp() * 1000), row["key"], row["value"]) for row in rows
    ]
    return sorted(found)


EXPECTED = [(start, key, 10) for start in range(0, 1000, 100) for key in range(10)]


@pytest.mark.smoke
def test_application_ends_when_all_windows_are_handed_over(tmp_path: Path) -> None:
    go = Event()
    taken = Taken(before=lambda _: go.wait(0.5))  # Longer than epochs.

    summary = run(counted(tmp_path / "log", taken), a_config(tmp_path))

    assert summary.status == "succeeded"
    assert keys_of(taken) == EXPECTED
    assert {batch.app for batch in taken.told} == {"shop"}
    assert sum(batch.windows for batch in taken.told) == 10


def test_another_run_goes_on_with_the_next_batch(tmp_path: Path) -> None:
    first, second = Taken(), Taken()
    run(counted(tmp_path / "log", first), a_config(tmp_path))

    run(counted(tmp_path / "log", second), a_config(tmp_path))

    assert keys_of(second) == EXPECTED
    assert min(second.batches) == max(first.batches) + 1


def test_function_that_keeps_raising_fails_the_application(tmp_path: Path) -> None:
    taken = Taken(failures=10**6)

    def load_into_table(frame: Any, batch: Any) -> None:
        taken(frame, batch)

    with pytest.raises(OperatorError) as caught:
        run(counted(tmp_path / "log", load_into_table), a_config(tmp_path))

    assert "load_into_table() has raised 2 times with batch 1" in caught.value.cause
    assert caught.value.source_line == 'raise KeyError("country")'
    assert {batch.id for batch in taken.told} == {1}


def test_function_that_raised_in_one_start_is_called_again_in_the_next(tmp_path: Path) -> None:
    taken = Taken(failures=3)

    summary = run(counted(tmp_path / "log", taken), a_config(tmp_path))

    assert summary.progress.restarts == 1
    assert keys_of(taken) == EXPECTED


def test_application_that_is_stopped_does_not_wait(tmp_path: Path) -> None:
    called, go = Event(), Event()

    def wait(_: Any) -> None:
        called.set()
        go.wait(WAIT_S)

    taken = Taken(before=wait)
    with LocalCluster(a_config(tmp_path)) as cluster:
        app = counted(tmp_path / "log", taken)
        with ThreadPoolExecutor() as pool:
            running = pool.submit(cluster.run, app)
            assert called.wait(WAIT_S)
            (summary,) = cluster.client.applications()
            cluster.client.shutdown(summary.app_id)
            ended = running.result(WAIT_S)
            go.set()

    assert ended.status == "terminated"


def test_description_has_who_takes_the_windows(tmp_path: Path) -> None:
    called, go = Event(), Event()

    def wait(_: Any) -> None:
        called.set()
        go.wait(WAIT_S)

    with LocalCluster(a_config(tmp_path)) as cluster:
        app = counted(tmp_path / "log", Taken(before=wait))
        with ThreadPoolExecutor() as pool:
            running = pool.submit(cluster.run, app)
            assert called.wait(WAIT_S)
            (summary,) = cluster.client.applications()
            consumers: Any = ()
            while not consumers or not consumers[0].report.waiting_rows:
                consumers = cluster.client.ask(DescribeApplication(app_id=summary.app_id)).consumers
            go.set()
            running.result(WAIT_S)

    (consumer,) = consumers
    assert consumer.report.name == "spark"
    assert consumer.report.waiting_since_ms > 0
    assert "to_spark" in consumer.sink


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        ({"function": 3}, "to_spark needs a function of a frame and a batch, not 3"),
        ({"function": len}, "to_spark calls its function with a frame and a batch"),
        ({"spark": 3}, "to_spark: spark is 3: give nothing, a URL, a SparkSession, or a function"),
        ({"spark": "http://x"}, "to_spark: 'http://x' is no URL of a Spark: give sc://host:port"),
        ({"name": "../x"}, "to_spark: name '../x' cannot be that of files"),
        ({"name": "x" * 51}, "underscores, a letter first, 50 at most"),
        ({"compact_files": 8}, "to_spark: compact_files would remove files while Spark reads them"),
    ],
)
def test_wrong_use_is_refused_when_it_is_written(
    tmp_path: Path, arguments: dict[str, Any], mistake: str
) -> None:
    app = gp.StreamApp("shop")
    stream = app.read(gp.collection([1]))
    given = {"function": Taken(), "path": str(tmp_path), **arguments}

    with pytest.raises(ConfigError) as caught:
        stream.to_spark(**given)

    assert mistake in str(caught.value)


def take(frame: Any, batch: Any) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        ({}, "2 sinks write to window_log_folder("),
        ({"name": "other"}, "2 sinks write to window_log_folder("),
        ({"writer": "other"}, "2 sinks write to batches of name 'spark' in "),
    ],
    ids=["both", "writer", "name"],
)
def test_two_sinks_of_one_log_have_names_and_writers_of_their_own(
    tmp_path: Path, options: dict[str, Any], mistake: str
) -> None:
    """Else each would take the other for an earlier start of itself."""
    app = gp.StreamApp("shop")
    stream = app.read(gp.collection([1]))
    stream.to_spark(take, str(tmp_path / "log"))
    stream.to_spark(Taken(), str(tmp_path / "log"), **options)

    with pytest.raises(ConfigError) as caught:
        gp.run(app)

    assert mistake in str(caught.value)


def test_a_folder_of_windows_may_not_be_that_of_to_spark_too(tmp_path: Path) -> None:
    app = gp.StreamApp("shop")
    stream = app.read(gp.collection([1]))
    stream.to_spark(take, str(tmp_path / "log"))
    stream.write(gp.window_log_folder(str(tmp_path / "log")))

    with pytest.raises(ConfigError, match="2 sinks write to window_log_folder"):
        gp.run(app)


def test_two_sinks_of_one_log_get_their_own_rows(tmp_path: Path) -> None:
    first, second = Taken(), Taken()
    target = FakeTarget(RowSession)
    app = gp.StreamApp("shop")
    numbers = app.read(gp.generate(lambda: range(1000), timestamp=lambda n: n))
    counts = numbers.key_by(lambda n: n % 10).window(gp.tumbling("100ms")).count()
    path = str(tmp_path / "log")
    counts.to_spark(first, path, spark=target, name="a", writer="a")
    counts.to_spark(second, path, spark=target, name="b", writer="b")

    run(app, a_config(tmp_path))

    assert keys_of(first) == keys_of(second) == EXPECTED
