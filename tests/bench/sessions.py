"""Sessions of a million keys that come and go: whether memory grows.

A steady stream by wall clock. Each session has the same number of records, at even distances, and
each key three sessions, far apart: what stays behind of a key or of a session would add up all the
time. An executor of its own, snapshots in a folder. How many sessions there must be, and how many
records in them, has a closed form.
"""

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from gearpy.cluster.boot.local import LocalCluster
from gearpy.config.load import from_overrides
from gearpy.core.window.windows import session
from gearpy.dsl.application import StreamApp
from gearpy.messages.client import Artifact
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Sink, SinkWriter, Source, SourceReader
from tests.bench.measure import rss_mb

#: What is submitted; the rest is imported from here in each process.
_PROGRAM: Final = "from tests.bench.sessions import main\n"

_TIMES: Final = 3  # Sessions of each key.
_GAP_STEPS: Final = 10  # The gap of the windows, by the distance of the records of a session.
_SAMPLE_S: Final = 10.0
_WARM_UP: Final = 0.25  # Share of the time after which memory must not grow much
_GROWTH_MAX: Final = 1.1  # beyond this.
_SHARES: Final = (0.1, 0.25, 0.5, 0.75, 1.0)
_MS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsOptions:
    """What a run does.

    Attributes:
        folder: for the figures.
        minutes: length of the stream.
        keys: how many come in all.
        rate: records per second.
        open: sessions that are open at a time.
    """

    folder: str
    minutes: float
    keys: int
    rate: float
    open: int

    def file(self, name: str) -> Path:
        return Path(self.folder) / name

    @property
    def length_ms(self) -> int:
        return round(self.minutes * 60 * _MS)

    @property
    def per_ms(self) -> float:
        return _TIMES * self.keys / self.length_ms

    @property
    def records(self) -> int:
        return max(2, round(self.rate / _MS / self.per_ms))

    @property
    def step_ms(self) -> int:
        return max(1, round(self.open / self.per_ms / (self.records + _GAP_STEPS)))

    @property
    def gap_ms(self) -> int:
        return _GAP_STEPS * self.step_ms

    def begun(self, at_ms: int) -> int:
        return max(0, -int(-at_ms * self.per_ms // 1))

    def given(self) -> int:
        return sum(self.begun(self.length_ms - place * self.step_ms) for place in self.places())

    def places(self) -> range:
        return range(self.records)


class _Records(Source):
    def __init__(self, options: SessionsOptions) -> None:
        self._options = options

    def partitions(self) -> list[str]:
        return ["records"]

    def open(self, partition: str, resume: Any | None) -> "_Reader":
        return _Reader(self._options, resume)


class _Reader(SourceReader):
    """Gives what is due by wall clock; event time is the time of the stream."""

    out_of_order_ms = 0

    def __init__(self, options: SessionsOptions, resume: tuple[int, int] | None) -> None:
        self._options = options
        self._begin_ms, self._next_ms = resume or (_now_ms(), 0)

    def read_batch(self, max_records: int) -> Batch | None:
        due_ms = min(_now_ms() - self._begin_ms, self._options.length_ms)
        keys: list[str] = []
        times: list[int] = []
        while self._next_ms < due_ms and len(keys) < max_records // 2:
            made = self._made(self._next_ms)
            keys += made
            times += [self._next_ms] * len(made)
            self._next_ms += 1
        if not keys:
            self.finished = self._next_ms >= self._options.length_ms
            return None
        return Batch(keys, times)

    def _made(self, at_ms: int) -> list[str]:
        options = self._options
        numbers: list[int] = []
        for place in options.places():
            from_ms = at_ms - place * options.step_ms
            numbers += range(options.begun(from_ms), options.begun(from_ms + 1))
        return [f"user{number % options.keys}" for number in numbers]

    def snapshot(self) -> tuple[int, int]:
        return self._begin_ms, self._next_ms

    @property
    def watermark_ms(self) -> int:
        return self._next_ms


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class _Results(Sink):
    def __init__(self, options: SessionsOptions) -> None:
        self._options = options

    def open(self, task_index: int, parallelism: int) -> "_ResultsWriter":
        return _ResultsWriter(self._options)


class _ResultsWriter(SinkWriter):
    def __init__(self, options: SessionsOptions) -> None:
        self._options = options
        self._counts = [0, 0, 0]
        options.file("pid").write_text(str(os.getpid()), encoding="ascii")

    def restore(self, state: Any) -> None:
        self._counts = list(state) if state else [0, 0, 0]

    def snapshot(self) -> list[int]:
        return list(self._counts)

    def write_batch(self, batch: Batch) -> None:
        counts = [result.value for result in batch.values]
        self._counts[0] += len(counts)
        self._counts[1] += sum(counts)
        self._counts[2] += counts.count(self._options.records)
        text = json.dumps([*self._counts, batch.timestamps[-1]])
        written = self._options.file("results.new")
        written.write_text(text, encoding="ascii")
        written.replace(self._options.file("results"))

    def close(self, *, completed: bool) -> None:
        """Nothing is open."""


def main(args: list[str]) -> StreamApp:
    options = SessionsOptions(**json.loads(args[0]))
    app = StreamApp("sessions")
    keyed = app.read(_Records(options)).key_by(_itself)
    keyed.window(session(f"{options.gap_ms}ms")).count().write(_Results(options))
    return app


def _itself(user: str) -> str:
    return user


@dataclass(frozen=True, slots=True)
class SessionsReport:
    """What was seen.

    Attributes:
        samples: second, MB of memory of the executor, and sessions that were open then.
        problems: what is wrong with the results.
    """

    samples: list[tuple[float, float, int]]
    problems: list[str]

    @property
    def settled(self) -> list[tuple[float, float]]:
        begin_s = _WARM_UP * self.samples[-1][0]
        return [(second, mb) for second, mb, _ in self.samples if second >= begin_s]

    @property
    def slope(self) -> float:
        """MB per hour, of the straight line that is nearest to the samples after the warm-up."""
        points = self.settled
        middle_s = sum(second for second, _ in points) / len(points)
        middle_mb = sum(mb for _, mb in points) / len(points)
        over = sum((second - middle_s) * (mb - middle_mb) for second, mb in points)
        return 3600 * over / (sum((second - middle_s) ** 2 for second, _ in points) or 1)

    @property
    def is_flat(self) -> bool:
        """What is left when Python has collected its garbage does not grow.

        The least of the last quarter of the time is compared with that of the quarter behind the
        warm-up: between two collections memory goes up and down.
        """
        end_s = self.samples[-1][0]
        before = [mb for second, mb in self.settled if second < 2 * _WARM_UP * end_s]
        after = [mb for second, mb in self.settled if second >= (1 - _WARM_UP) * end_s]
        return min(after) <= _GROWTH_MAX * min(before)

    def lines(self) -> list[str]:
        end_s = self.samples[-1][0]
        lines = [f"{'time':>6} {'second':>7} {'MB':>8} {'open sessions':>14}"]
        for share in _SHARES:
            second, mb, live = min(self.samples, key=lambda each: abs(each[0] - share * end_s))
            lines.append(f"{share:6.0%} {second:7.0f} {mb:8.1f} {live:14,}")
        most = max(mb for _, mb in self.settled)
        lines.append(
            f"after the warm-up {self.slope:+.1f} MB an hour, at most {most:.1f} MB: "
            + ("flat" if self.is_flat else "it grows")
        )
        return lines + self.problems


def measure_sessions(
    folder: Path, *, minutes: float, keys: int, rate: float, live: int, say: Callable[[str], None]
) -> SessionsReport:
    """Run the stream to its end; memory is looked at every ten seconds, and said.

    Args:
        folder: an empty one, for all that is written.
        minutes: how long.
        keys: how many come.
        rate: records per second.
        live: sessions that are open at a time.
        say: is given a line for each look.
    """
    options = SessionsOptions(
        folder=str(folder), minutes=minutes, keys=keys, rate=rate, open=min(live, keys // 4)
    )
    say(
        f"{options.begun(options.length_ms):,} sessions of {options.records} records, "
        f"{options.step_ms} ms apart, of {keys:,} keys; gap {options.gap_ms} ms"
    )
    program = folder / "sessions_program.py"
    program.write_text(_PROGRAM, encoding="utf-8")
    config = from_overrides(
        {"log.folder": str(folder), "checkpoint.folder": str(folder / "checkpoints")}
    )
    artifact = Artifact(kind="file", location=str(program), args=(json.dumps(asdict(options)),))
    watch = _Watch(options, say)
    with LocalCluster(config, executors="process") as cluster, watch:
        cluster.client.submit("sessions", artifact, executors=1).wait()
    return SessionsReport(watch.samples, _problems(options))


class _Watch:
    """Looks at the executor's memory from time to time, on a thread of its own."""

    def __init__(self, options: SessionsOptions, say: Callable[[str], None]) -> None:
        self.samples: list[tuple[float, float, int]] = []
        self._options = options
        self._say = say
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        begin_s = time.monotonic()
        pause_s = min(_SAMPLE_S, self._options.length_ms / _MS / 40)
        while not self._ended.wait(pause_s):
            sample = self._look(time.monotonic() - begin_s)
            if sample is not None:
                self.samples.append(sample)
                second, mb, live = sample
                self._say(f"{second:6.0f} s {mb:8.1f} MB {live:8,} open sessions")

    def _look(self, second: float) -> tuple[float, float, int] | None:
        try:
            pid = int(self._options.file("pid").read_text(encoding="ascii"))
            done, _, _, at_ms = json.loads(self._options.file("results").read_text("ascii"))
            memory_mb = rss_mb(pid)
        except (OSError, ValueError):  # Has not begun yet, or has ended.
            return None
        live = self._options.begun(at_ms + 1) - done
        return (second, memory_mb, live) if memory_mb else None


def _problems(options: SessionsOptions) -> list[str]:
    sessions, records, whole, _ = json.loads(options.file("results").read_text("ascii"))
    last = options.length_ms - (options.records - 1) * options.step_ms
    expected = {
        "sessions": (sessions, options.begun(options.length_ms)),
        "records": (records, options.given()),
        "whole sessions": (whole, options.begun(last)),
    }
    return [
        f"{got:,} {name}, and it must be {right:,}"
        for name, (got, right) in expected.items()
        if got != right
    ]
