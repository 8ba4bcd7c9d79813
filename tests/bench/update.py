"""How long records pause when an application is changed, on a real cluster of processes.

Two pipelines share an application: one is changed, and the other one is beside it. Each writes the
wall time of every batch that arrives at its end.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from gearpy.cluster.programs.upload import upload
from gearpy.errors import GearpyError
from gearpy.ids import AppId
from gearpy.messages.client import UpdateApplication
from gearpy.messages.metrics import GetMetrics, MetricsData
from tests.bench.beats import BEATS, gaps_between
from tests.bench.process_cluster import ProcessCluster

PROGRAM: Final = (
    BEATS
    + """
PARTS = 4


class Numbers(gp.Source):
    replayable = True

    def __init__(self, rate):
        self.rate = rate / PARTS

    def partitions(self):
        return [str(part) for part in range(PARTS)]

    def open(self, partition, resume):
        return Reader(int(partition), resume or 0, self.rate)


class Reader(gp.SourceReader):
    def __init__(self, part, at, rate):
        self.part, self.at, self.rate = part, at, rate
        self.first, self.began = at, time.monotonic()

    def read_batch(self, max_records):
        due = self.first + int((time.monotonic() - self.began) * self.rate)
        end = min(due, self.at + max_records)
        if end <= self.at:
            return None
        numbers = [n * PARTS + self.part for n in range(self.at, end)]
        self.at = end
        return gp.Batch(numbers, numbers)

    def snapshot(self):
        return self.at


def main(args):
    folder, rate, keys, value_bytes, version = args[0], *map(int, args[1:])
    app = gp.StreamApp("update", parallelism=4)

    def keep(before, number):
        return number.to_bytes(8, "big") * (value_bytes // 8), version

    for name, many in (("changed", keys), ("beside", 97)):
        numbers = app.read(Numbers(rate / 2), name=f"{name} numbers", parallelism=2)
        keyed = numbers.key_by(lambda number, many=many: number % many)
        if name == "changed":
            shown = keyed.map_with_state(keep, initial=b"", name="keep")
        else:
            shown = keyed.reduce(lambda one, other: other, name="newest")
        shown.write(Beats(folder, name), name=f"show {name}")
    return app
"""
)
#: "update": other code; "scale": from 4 tasks to 8.
Change: TypeAlias = Literal["update", "scale"]
_SETTINGS: Final = {"application.trial-seconds": "1"}
_WITHIN_S: Final = 600.0
_WATCH_S: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One change: how long it took, and the longest pauses of records meanwhile, in s."""

    lasted: float
    of_changed: float
    of_beside: float
    usual: float
    parts: str


def measure_update(
    folder: Path, change: Change, *, rate: int, keys: int, value_bytes: int, times: int
) -> Iterator[Changed]:
    """Change an application, again and again, whose state has grown to its size."""
    program = folder / "update.py"
    program.write_text(PROGRAM, encoding="utf-8")
    with ProcessCluster(folder, workers=2, slots=40, settings=_SETTINGS) as cluster:
        args = [str(folder), str(rate), str(keys), str(value_bytes)]
        app_id = cluster.submit(program, *args, "0", executors=2)
        _wait_for_state(cluster, app_id, keys)
        for number in range(1, times + 1):
            if change == "update":
                artifact = upload(
                    cluster.client.send, str(program), cluster.config, args=[*args, str(number)]
                )
                wanted = UpdateApplication(app_id=app_id, artifact=artifact)
            else:
                wanted = UpdateApplication(app_id=app_id, scale=(("keep", 8),))
            yield _measured(cluster, folder, wanted)
            if change == "scale":
                _change(cluster, UpdateApplication(app_id=app_id, scale=(("keep", 4),)))


def _measured(cluster: ProcessCluster, folder: Path, wanted: UpdateApplication) -> Changed:
    time.sleep(_WATCH_S)
    began_s = time.time()
    _change(cluster, wanted)
    ended_s = time.time()
    time.sleep(1.0)
    return Changed(
        lasted=ended_s - began_s,
        of_changed=_longest_pause(folder, "changed", began_s, ended_s),
        of_beside=_longest_pause(folder, "beside", began_s, ended_s),
        usual=_longest_pause(folder, "beside", began_s - _WATCH_S, began_s),
        parts=_parts(cluster, wanted.app_id),
    )


def _parts(cluster: ProcessCluster, app_id: AppId) -> str:
    answer = cluster.client.ask(GetMetrics(app_id=app_id))
    assert isinstance(answer, MetricsData), answer
    return [each.text for each in answer.events if "paused" in each.text][-1]


def _change(cluster: ProcessCluster, wanted: UpdateApplication) -> None:
    """Have it changed, as soon as nothing is in the way; return when its trial is over."""
    until_s = time.monotonic() + _WITHIN_S
    while True:
        try:
            version = cluster.client.change(wanted).version
            break
        except GearpyError:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.1)
    outcome = cluster.client.wait_for_version(wanted.app_id, version, _WITHIN_S)
    if outcome.state != "running":
        raise RuntimeError(f"version {version} is {outcome.state}: {outcome.reason}")


def _wait_for_state(cluster: ProcessCluster, app_id: AppId, keys: int) -> None:
    until_s, epoch = time.monotonic() + _WITHIN_S, 0
    while time.monotonic() < until_s:
        detail = cluster.detail(app_id)
        if detail is not None:
            seen = [each.records_in for each in detail.processors if "keep" in each.steps]
            if seen and seen[0] > 1.1 * keys:
                epoch = epoch or detail.epoch + 2
            if epoch and detail.epoch >= epoch:
                return
        time.sleep(0.2)
    raise TimeoutError(f"not all of {keys} keys have come")


def _longest_pause(folder: Path, name: str, from_s: float, to_s: float) -> float:
    found = gaps_between(folder, name, from_s - 1)
    gaps = [after - before for before, after in found if after > from_s and before < to_s]
    return max(gaps, default=to_s - from_s)
