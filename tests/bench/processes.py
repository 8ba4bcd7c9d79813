"""Work in Python on one process and on several: wall time, and CPU time of all."""

import time
from collections.abc import Iterator
from itertools import cycle
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

import gearpy as gp
from tests.bench.probe import cpu_s

_PARTS: Final = 4


class Spread(NamedTuple):
    """One run of a program on a number of processes."""

    program: str
    processes: int
    records: int
    seconds: float
    cpu_seconds: float


def measure_spread(folder: Path, *, processes: int, scale: float, runs: int) -> Iterator[Spread]:
    """Yield runs of each program, on one process and on several in turns."""
    programs = {
        "burn": (_burning, int(60_000 * scale)),
        "words": (_counting, int(1_000_000 * scale)),
    }
    for name, (make, records) in programs.items():
        for run in range(runs):
            for number in (1, processes):
                app = make(records, folder / f"{name}-{run}-{number}")
                began, used = time.perf_counter(), cpu_s()
                summary = gp.run(app, processes=number)
                took = time.perf_counter() - began
                assert summary.progress.records_in == records, summary
                yield Spread(name, number, records, took, cpu_s() - used)


def _burning(records: int, out: Path) -> gp.StreamApp:
    app = gp.StreamApp("burn")
    numbers = app.read(gp.collection(range(records), partitions=_PARTS))
    numbers.map(_burnt).write(gp.jsonl_folder(out))
    return app


def _burnt(number: int) -> int:
    for _ in range(4_000):
        number = (number * 31 + 7) & 0xFFFF
    return number


def _counting(records: int, out: Path) -> gp.StreamApp:
    """Return an application that counts the words of lines, which have twenty each."""
    words = [f"word{number * 7 % 1_009}" for number in range(1_280)]
    lines = [" ".join(words[at : at + 20]) for at in range(0, len(words), 20)]

    app = gp.StreamApp("words")
    read = app.read(
        gp.generate(
            lambda part: cycle(lines[part:] + lines[:part]),
            limit=records,
            partitions=_PARTS,
            timestamp=lambda _: 0,
        )
    )
    split = read.flat_map(str.split).map(lambda word: (word.strip(".,").lower(), len(word)))
    split.key_by(itemgetter(0)).window(gp.tumbling("1d")).count().write(gp.jsonl_folder(out))
    return app
