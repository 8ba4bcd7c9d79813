"""An application on a real cluster whose tasks follow its load, without a record lost or twice."""

import json
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from gearpy.cluster.client.client import ClusterClient
from gearpy.errors import SubmitRefused
from gearpy.ids import AppId
from gearpy.messages.client import DescribeApplication, GetVersions, ListWorkers, VersionSummary
from tests.bench.process_cluster import ProcessCluster
from tests.eventually import eventually

#: A source gives as many records a second as a file says; each takes 10 ms of a task's time.
_PROGRAM: Final = """\
import time
from pathlib import Path
import gearpy as gp

class Rated(gp.Source):
    replayable = True

    def __init__(self, file):
        self.file = file

    def partitions(self):
        return ["0"]

    def open(self, partition, resume):
        return Reader(Path(self.file), resume or 0)

class Reader(gp.SourceReader):
    def __init__(self, file, at):
        self.file, self.at = file, at
        self.credit, self.since = 0.0, time.monotonic()

    def read_batch(self, max_records):
        now = time.monotonic()
        self.credit = min(50.0, self.credit + (now - self.since) * float(self.file.read_text()))
        self.since = now
        count = min(int(self.credit), max_records)
        self.credit -= count
        values = list(range(self.at, self.at + count))
        self.at += count
        return gp.Batch(values, [time.time_ns() // 1_000_000] * count)

    def snapshot(self):
        return self.at

def count(before, number):
    time.sleep(0.01)
    return before + 1, number

def main(args):
    app = gp.StreamApp("rated")
    keyed = app.read(Rated(args[1]), name="numbers").key_by(lambda n: n % 64, ordered=False)
    counted = keyed.map_with_state(count, initial=0, name="count").scale(1, 4)
    counted.write(gp.jsonl_folder(args[0]), name="show")
    return app
"""
_SETTINGS: Final = {
    "checkpoint.interval-ms": "200",
    "application.trial-seconds": "1",
    "application.autoscale-cooldown-seconds": "6",
}
_WITHIN_S: Final = 180.0


def tasks_of_count(client: ClusterClient, app_id: AppId) -> int:
    """Return how many there are; 0 while there is no app master that could tell."""
    try:
        scaled = client.ask(DescribeApplication(app_id=app_id)).scaled
    except SubmitRefused:
        return 0
    return next((each.tasks for each in scaled if each.step == "count"), 0)


def told_of_count(client: ClusterClient, app_id: AppId) -> str:
    """Return what autoscale says of the step; nothing while there is no app master."""
    try:
        return client.ask(DescribeApplication(app_id=app_id)).scaled[0].text
    except SubmitRefused:
        return ""


def wait_for_change(client: ClusterClient, app_id: AppId, after: int) -> VersionSummary:
    """Wait until a version stays that is newer than one, and has other tasks of count."""
    found: list[VersionSummary] = []

    def is_there() -> bool:
        versions = client.ask(GetVersions(app_id=app_id)).versions
        stay = (each for each in versions if each.state in {"running", "replaced"})
        found[:] = [each for each in stay if each.number > after and "count x" in each.reason]
        return bool(found)

    eventually(is_there, within_s=_WITHIN_S)
    return found[0]


@pytest.mark.long
def test_tasks_follow_the_load(tmp_path: Path) -> None:
    """They come when there is too much to do for one, and slots for them; and go when not."""
    program, rate, results = tmp_path / "rated.py", tmp_path / "rate", tmp_path / "results"
    program.write_text(_PROGRAM)
    rate.write_text("20")
    with ProcessCluster(tmp_path, workers=2, slots=3, settings=_SETTINGS) as cluster:
        client = cluster.client
        cluster.workers[1].stop()
        eventually(lambda: len(client.ask(ListWorkers()).workers) == 1, within_s=_WITHIN_S)
        app_id = cluster.submit(program, str(results), str(rate), executors=1)
        eventually(lambda: tasks_of_count(client, app_id) == 1, within_s=_WITHIN_S)

        rate.write_text("150")
        eventually(lambda: "no free slot" in told_of_count(client, app_id), within_s=_WITHIN_S)
        assert not any(
            "count x" in each.reason for each in client.ask(GetVersions(app_id=app_id)).versions
        )
        cluster.workers[1].start()
        eventually(lambda: tasks_of_count(client, app_id) > 1, within_s=_WITHIN_S)
        grown, shown = (
            wait_for_change(client, app_id, 0),
            client.ask(DescribeApplication(app_id=app_id)).scaled[0],
        )
        rate.write_text("10")
        eventually(lambda: tasks_of_count(client, app_id) == 1, within_s=_WITHIN_S)
        wait_for_change(client, app_id, grown.number)
        client.drain(app_id)
        summary = client.wait(app_id, _WITHIN_S)

    lines = [line for file in results.glob("*.jsonl") for line in file.read_text().splitlines()]
    counts = Counter(map(json.loads, lines))
    assert summary.status == "terminated"
    assert (grown.by, "count x1 to x" in grown.reason) == ("autoscale", True)
    assert shown.text in grown.reason
    assert counts == Counter(range(len(counts))), "each number is there, and once"
