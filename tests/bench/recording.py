"""The processor time that recording the input of tasks costs, of a cheap step by key."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.config.load import load

_USERS: Final = 1000
_RUN_S: Final = 300
#: Ways to record: settings by name. The first is without.
_WAYS: Final = {
    "off": {},
    "on": {"application.record-input-bytes": "100000000"},
    "1 in 4": {
        "application.record-input-bytes": "100000000",
        "application.record-input-epochs": "4",
    },
}
_RECORDS: Final[dict[str, Callable[[int], Any]]] = {
    "dicts": lambda n: {"id": n, "user": f"u{n % _USERS}", "price": n % 97},
    "tuples": lambda n: (f"u{n % _USERS}", n % 97),
}
_FIELDS: Final[dict[str, tuple[Any, Any]]] = {"dicts": ("user", "price"), "tuples": (0, 1)}


class _Nothing(gp.Sink, gp.SinkWriter):
    """A sink that drops everything."""

    def open(self, task_index: int, parallelism: int) -> gp.SinkWriter:
        return self

    def write_batch(self, batch: gp.Batch) -> None:
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingCost:
    """The processor time of a record, in microseconds, and the median of the ratios of turns."""

    kind: str
    way: str
    us: float
    ratio: float


def measure_recording(folder: Path, *, records: int, runs: int) -> Iterator[RecordingCost]:
    """Run a sum by key with each way to record, in turns."""
    for kind in _RECORDS:
        made = [_RECORDS[kind](n) for n in range(records)]
        times: dict[str, list[float]] = {way: [] for way in _WAYS}
        for run in range(runs + 1):
            for way, settings in _WAYS.items():
                seconds = _run(made, kind, folder / f"{kind}-{way}-{run}", settings)
                if run:  # The first one warms up.
                    times[way].append(seconds)
        for way, of_runs in times.items():
            ratios = [each / off for each, off in zip(of_runs, times["off"], strict=True)]
            us = median(of_runs) / records * 1e6
            yield RecordingCost(kind=kind, way=way, us=us, ratio=median(ratios))


def _run(made: list[Any], kind: str, folder: Path, settings: dict[str, str]) -> float:
    """Return the processor time of a run, in seconds."""
    user, price = _FIELDS[kind]
    app = gp.StreamApp("recording")
    sums = (
        app.read(gp.collection(made))
        .key_by(lambda record: record[user])
        .map_with_state(lambda kept, record: _add(kept, record[user], record[price]), initial=0)
    )
    sums.write(_Nothing())
    given = {"checkpoint.folder": str(folder), "checkpoint.interval-ms": "500"}
    with LocalCluster(load(env={}, overrides=given), workers=1, slots=8, durable=True) as cluster:
        before = time.process_time()
        with cluster.submitted(app, overrides=settings) as running:
            summary = running.wait(_RUN_S)
        assert summary.status == "succeeded", summary.cause
        return time.process_time() - before


def _add(kept: int, user: str, price: int) -> tuple[int, tuple[str, int]]:
    return kept + price, (user, kept + price)
