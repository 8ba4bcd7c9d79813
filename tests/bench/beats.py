"""A sink that writes the wall time of every batch that arrives at the end of a stream."""

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

#: How programs begin that have such sinks.
BEATS: Final = """\
import os
import time
from itertools import count

import gearpy as gp


class BeatWriter(gp.SinkWriter):
    def __init__(self, path):
        self.file = open(path, "a", buffering=1)

    def write_batch(self, batch):
        self.file.write(f"{time.time()}\\n")

    def close(self, *, completed):
        self.file.close()


class Beats(gp.Sink):
    def __init__(self, folder, name):
        self.folder, self.name = folder, name

    def open(self, task_index, parallelism):
        return BeatWriter(os.path.join(self.folder, f"{self.name}-{task_index}.txt"))
"""
_BLOCK_BYTES: Final = 200_000


def gaps_between(folder: Path, name: str, since_s: float) -> Iterator[tuple[float, float]]:
    """Yield all times without a batch at any sink of a name since then: begin and end, in s."""
    beats = sorted(
        beat for path in folder.glob(f"{name}-*.txt") for beat in _last_beats(path, since_s)
    )
    return pairwise(beat for beat in beats if beat > since_s)


def _last_beats(path: Path, since_s: float) -> list[float]:
    """Return the times in the last part of a file, which reaches back so far."""
    with path.open("rb") as file:
        size, read = file.seek(0, os.SEEK_END), 0
        while True:
            read = min(size, 2 * read + _BLOCK_BYTES)
            file.seek(size - read)
            lines = file.read(read).split(b"\n")[:-1]
            beats = [float(line) for line in lines[read < size :]]
            if read == size or (beats and beats[0] < since_s):
                return beats
