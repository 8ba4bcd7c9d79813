"""The processor time that recording the input of tasks costs, of a cheap step by key.

It is taken when the first epochs, which are always recorded, are over.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.config.load import load

_USERS: Final = 1000
_MADE: Final = 200_000  # Records that come again and again.
_BATCH: Final = 1024
_WARM_UP_S: Final = 11.0
#: Ways to record: settings by name. The first is without.
_WAYS: Final = {
    "off": {},
    "on": {"application.record-input-bytes": "100000000"},
    "all": {
        "application.record-input-bytes": "100000000",
        "application.record-input-epochs": "1",
    },
}
_RECORDS: Final[dict[str, Callable[[int], Any]]] = {
    "dicts": lambda n: {"id": n, "user": f"u{n % _USERS}", "price": n % 97},
    "tuples": lambda n: (f"u{n % _USERS}", n % 97),
}
_FIELDS: Final[dict[str, tuple[Any, Any]]] = {"dicts": ("user", "price"), "tuples": (0, 1)}


class _Nothing(gp.Sink, gp.SinkWriter):
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


class _Again(gp.Source, gp.SourceReader):
    out_of_order_ms = 0

    def __init__(self, made: list[Any]) -> None:
        self._portions = [made[at : at + _BATCH] for at in range(0, len(made), _BATCH)]
        self.given = 0

    def partitions(self) -> list[str]:
        return ["all"]

    def open(self, partition: str, resume: Any | None) -> gp.SourceReader:
        return self

    def read_batch(self, max_records: int) -> gp.Batch:
        values = self._portions[self.given // _BATCH % len(self._portions)]
        self.given += _BATCH
        return gp.Batch(values, [self.given] * len(values))

    def snapshot(self) -> int:
        return self.given


def measure_recording(
    folder: Path, *, seconds: float, runs: int, ways: Sequence[str] = tuple(_WAYS)
) -> Iterator[RecordingCost]:
    for kind in _RECORDS:
        made = [_RECORDS[kind](n) for n in range(_MADE // _BATCH * _BATCH)]
        times: dict[str, list[float]] = {way: [] for way in ways}
        for run in range(runs):
            for way in ways:
                place = folder / f"{kind}-{way}-{run}"
                times[way].append(_run(made, kind, place, _WAYS[way], seconds))
        for way, of_runs in times.items():
            ratios = [each / off for each, off in zip(of_runs, times["off"], strict=True)]
            us = median(of_runs) * 1e6
            yield RecordingCost(kind=kind, way=way, us=us, ratio=median(ratios))


def _run(
    made: list[Any], kind: str, folder: Path, settings: dict[str, str], seconds: float
) -> float:
    user, price = _FIELDS[kind]
    app, source = gp.StreamApp("recording"), _Again(made)
    sums = (
        app.read(source)
        .key_by(lambda record: record[user])
        .map_with_state(lambda kept, record: _add(kept, record[user], record[price]), initial=0)
    )
    sums.write(_Nothing())
    given = {"checkpoint.folder": str(folder), "checkpoint.interval-ms": "500"}
    with LocalCluster(load(env={}, overrides=given), workers=1, slots=8, durable=True) as cluster:
        with cluster.submitted(app, overrides=settings) as running:
            time.sleep(_WARM_UP_S)
            before_s, before = time.process_time(), source.given
            time.sleep(seconds)
            used_s, given_then = time.process_time() - before_s, source.given - before
            running.shutdown()
        return used_s / given_then


def _add(kept: int, user: str, price: int) -> tuple[int, tuple[str, int]]:
    return kept + price, (user, kept + price)
