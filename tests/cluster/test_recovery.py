"""Failures that an application survives, on real threads."""

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.programs.artifacts import embed
from gearpy.config.schema import Config
from gearpy.errors import OperatorError
from gearpy.messages.client import DescribeApplication, ListQuarantined
from tests.eventually import DEADLINE_S, eventually

Configured = Callable[..., Config]

QUICK = {"checkpoint.interval-ms": "20", "application.backoff-base-ms": "1"}


class Opened(gp.Sink):
    def __init__(self) -> None:
        self.opened = 0
        self.got: list[Any] = []

    def open(self, task_index: int, parallelism: int) -> gp.SinkWriter:
        self.opened += 1
        return _Writer(self.got)


class _Writer(gp.SinkWriter):
    def __init__(self, got: list[Any]) -> None:
        self._got = got

    def write_batch(self, batch: gp.Batch) -> None:
        self._got += batch.values


class Fuse:
    def __init__(self) -> None:
        self.lit = threading.Event()
        self.blown = threading.Event()

    def __call__(self, value: int) -> int:
        if self.lit.is_set() and not self.blown.is_set():
            self.blown.set()
            raise ValueError("blown")
        return value


def endless(app: gp.StreamApp, sink: Opened, *steps: Callable[[int], int]) -> None:
    stream = app.read(gp.generate(itertools.count, rate=2000))
    for step in steps:
        stream = stream.map(step)
    stream.key_by(lambda n: n % 7).reduce(lambda _, n: n).write(sink)


def test_only_the_region_of_a_failure_restarts(cluster: LocalCluster) -> None:
    app, fuse, hit, spared = gp.StreamApp("regions"), Fuse(), Opened(), Opened()
    endless(app, hit, fuse)
    endless(app, spared)
    running = cluster.client.submit("regions", embed(app.build()), executors=2, config=QUICK)
    eventually(lambda: hit.got and spared.got and running.summary().progress.epoch >= 2)

    fuse.lit.set()
    eventually(lambda: running.summary().progress.restarts == 1 and hit.opened == 2)
    written = len(hit.got), len(spared.got)
    eventually(lambda: len(hit.got) > written[0] and len(spared.got) > written[1])

    assert (hit.opened, spared.opened) == (2, 1)
    failure = cluster.client.ask(DescribeApplication(app_id=running.app_id)).failures[-1]
    assert (failure.error.cause, failure.what[:4]) == ("ValueError: blown", "task")
    running.shutdown()


def test_replay_restarts_everything_and_costs_nothing(cluster: LocalCluster) -> None:
    app, sink = gp.StreamApp("replayed"), Opened()
    endless(app, sink)
    config = {**QUICK, "application.total-retries": "0"}
    running = cluster.client.submit("replayed", embed(app.build()), config=config)
    eventually(lambda: running.summary().progress.epoch >= 2)

    cluster.client.replay(running.app_id)

    eventually(lambda: sink.opened == 2)
    assert running.summary().progress.restarts == 0
    eventually(lambda: running.summary().status == "active")
    running.shutdown()


def test_a_record_that_fails_every_time_ends_the_application(cluster: LocalCluster) -> None:
    """Other records that fail do not count for it; the card shows the one that does."""
    app = gp.StreamApp("poisoned")
    app.read(gp.collection(range(100))).map(lambda n: 1 // (n - 50)).write(gp.to_list([]))
    running = cluster.client.submit("poisoned", embed(app.build()), config=QUICK)

    with pytest.raises(OperatorError, match="ZeroDivisionError") as caught:
        running.wait(DEADLINE_S)

    assert caught.value.record == "50"
    assert running.summary().progress.restarts == 2


@pytest.mark.parametrize(("policy", "kept"), [("skip", 0), ("quarantine", 2)])
def test_records_that_fail_are_left_out(cluster: LocalCluster, policy: str, kept: int) -> None:
    app, results = gp.StreamApp("picky"), list[int]()
    app.read(gp.collection(["1", "x", "2", "y"])).map(int).write(gp.to_list(results))
    config = {**QUICK, "application.on-error": policy}
    running = cluster.client.submit("picky", embed(app.build()), config=config)

    summary = running.wait(DEADLINE_S)

    assert (summary.status, results) == ("succeeded", [1, 2])
    progress = summary.progress
    assert progress.skipped_records + progress.quarantined_records == 2
    found = cluster.client.ask(ListQuarantined(app_id=running.app_id)).records
    assert len(found) == kept
    assert all("ValueError" in each.error.cause for each in found)
