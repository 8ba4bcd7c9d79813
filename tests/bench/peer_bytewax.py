"""The programs of `peers` for Bytewax; run as a script by a Python that has it, without gearpy.

``peer_bytewax.py words FILES`` counts the words of files; ``peer_bytewax.py windows RECORDS KEYS``
counts records by key in windows of ten seconds. Says seconds, records and results as JSON.
"""

import json
import random
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

# Is not there where gearpy is checked.
import bytewax.operators as op  # type: ignore[import-not-found]
from bytewax.connectors.files import FileSource  # type: ignore[import-not-found]
from bytewax.dataflow import Dataflow  # type: ignore[import-not-found]
from bytewax.inputs import (  # type: ignore[import-not-found]
    DynamicSource,
    StatelessSourcePartition,
)
from bytewax.operators.windowing import (  # type: ignore[import-not-found]
    EventClock,
    TumblingWindower,
    count_window,
)
from bytewax.outputs import (  # type: ignore[import-not-found]
    DynamicSink,
    StatelessSinkPartition,
)
from bytewax.testing import run_main  # type: ignore[import-not-found]

_ROWS = 1024  # Of a batch.
_PER_MS = 100  # Records of one ms of event time.
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class _Totals(DynamicSink):  # type: ignore[misc]
    def __init__(self, count_of: Callable[[Any], int]) -> None:
        self.count_of = count_of
        self.records = 0
        self.results = 0

    def build(self, step_id: str, worker_index: int, worker_count: int) -> "_TotalsPart":
        return _TotalsPart(self)


class _TotalsPart(StatelessSinkPartition):  # type: ignore[misc]
    def __init__(self, totals: _Totals) -> None:
        self._totals = totals

    def write_batch(self, items: list[Any]) -> None:
        self._totals.results += len(items)
        self._totals.records += sum(map(self._totals.count_of, items))


class _Batches(DynamicSource):  # type: ignore[misc]
    def __init__(self, batches: list[list[Any]]) -> None:
        self._batches = batches

    def build(self, step_id: str, worker_index: int, worker_count: int) -> "_BatchesPart":
        return _BatchesPart(self._batches)


class _BatchesPart(StatelessSourcePartition):  # type: ignore[misc]
    def __init__(self, batches: list[list[Any]]) -> None:
        self._left = iter(batches)

    def next_batch(self) -> list[Any]:
        try:
            return next(self._left)
        except StopIteration as error:
            raise StopIteration from error


def _words(files: list[str]) -> tuple[Dataflow, _Totals]:
    flow, totals = Dataflow("words"), _Totals(lambda item: item[1])
    parts = [op.input(f"lines{at}", flow, FileSource(Path(file))) for at, file in enumerate(files)]
    lines = op.merge("lines", *parts)
    words = op.flat_map("split", lines, lambda line: line.split())
    op.output("totals", op.count_final("count", words, lambda word: word), totals)
    return flow, totals


def _windows(records: int, keys: int) -> tuple[Dataflow, _Totals]:
    flow, totals = Dataflow("windows"), _Totals(lambda item: item[1][1])
    made = op.input("records", flow, _Batches(_made(records, keys)))
    # Event time comes slower than wall time on a slow machine, which would make records late.
    clock = EventClock(lambda record: record[1], timedelta(seconds=60))
    windower = TumblingWindower(timedelta(seconds=10), _BEGIN)
    counted = count_window("count", made, clock, windower, lambda record: record[0])
    op.output("totals", counted.down, totals)
    return flow, totals


def _made(records: int, keys: int) -> list[list[Any]]:
    rng = random.Random(1)
    users = [f"user{number}" for number in range(keys)]
    times = [_BEGIN + timedelta(milliseconds=ms) for ms in range(records // _PER_MS + 1)]
    rows = [(rng.choice(users), times[number // _PER_MS]) for number in range(records)]
    return [rows[at : at + _ROWS] for at in range(0, records, _ROWS)]


def main() -> None:
    what, *args = sys.argv[1:]
    flow, totals = _words(args) if what == "words" else _windows(int(args[0]), int(args[1]))
    begin_s = time.perf_counter()
    run_main(flow)
    took_s = time.perf_counter() - begin_s
    said = {"seconds": took_s, "records": totals.records, "results": totals.results}
    sys.stdout.write(json.dumps({"bytewax": said}) + "\n")


if __name__ == "__main__":
    main()
