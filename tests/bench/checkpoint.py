"""What epochs cost: in throughput, in pauses while much is stored, and in time to get it back.

Executors are processes, so that what stores and what processes share one interpreter, and nobody
else does. Checkpoints go to a folder and are synced to disk.
"""

import json
import os
import random
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from gearpy.cluster.boot.local import LocalCluster
from gearpy.config.load import from_overrides
from gearpy.core.window.windows import tumbling
from gearpy.dsl.application import StreamApp
from gearpy.ids import AppId
from gearpy.messages.client import Artifact
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Sink, SinkWriter, Source, SourceReader
from tests.bench.process_cluster import ProcessCluster

#: What is submitted; the rest is imported from here in each process.
_PROGRAM: Final = "from tests.bench.checkpoint import main\n"
#: Pipelines with the number of their keys.
PIPELINES: Final = (
    ("count", 10_000),
    ("count", 1_000_000),
    ("map_with_state", 10_000),
    ("map_with_state", 1_000_000),
    ("window", 10_000),
    ("window", 1_000_000),
)
#: Time from one epoch to the next of a run without epochs.
NEVER_MS: Final = 86_400_000

_BATCH: Final = 1024
_WORDS_MAX: Final = 2_000_000  # Then they come again.
_WARM_UP_S: Final = 2.0
_BEAT_S: Final = 0.01
_GAPS_KEPT: Final = 5
_LONG_GAP_S: Final = 0.005
_WAIT_S: Final = 300.0
_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointOptions:
    """What a run does.

    Attributes:
        value_bytes: what is kept for a key; 0 for a number.
    """

    folder: str
    pipeline: str
    keys: int
    seconds: float
    value_bytes: int = 0
    fill: bool = False

    def file(self, name: str) -> Path:
        return Path(self.folder) / name


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """The longest times without a batch, in ms, longest first; and records a second."""

    gaps_ms: tuple[float, ...]
    rate: float


class _WordSource(Source):
    def __init__(self, options: CheckpointOptions) -> None:
        self._options = options

    def partitions(self) -> list[str]:
        return ["words"]

    def open(self, partition: str, resume: Any | None) -> "_WordReader":
        return _WordReader(self._options, is_filled=bool(resume))


class _WordReader(SourceReader):
    """Makes all words before the clock starts; at the end leaves how many it gave in a second."""

    out_of_order_ms = 0

    def __init__(self, options: CheckpointOptions, *, is_filled: bool) -> None:
        keys = [f"word{number}" for number in range(options.keys)]
        # A task that is restarted shall not spend its time here.
        count = min(_WORDS_MAX // 8 if options.fill else _WORDS_MAX, 4 * options.keys)
        self._portions = _portions(random.Random(1).choices(keys, k=count))
        self._fill = iter(_portions(keys) if options.fill and not is_filled else [])
        self._options = options
        self._given = 0
        self._is_filled = is_filled
        self._begin_s = 0.0

    def read_batch(self, max_records: int) -> Batch | None:
        now_s = time.time()
        values = next(self._fill, None)
        if values is None:
            self._is_filled = True
            self._begin_s = self._begin_s or now_s + _WARM_UP_S
            if now_s > self._begin_s + self._options.seconds:
                rate = self._given * _BATCH / (now_s - self._begin_s)
                self._options.file("rate").write_text(str(rate), encoding="ascii")
                self.finished = True
                return None
            values = self._portions[self._given % len(self._portions)]
            self._given = self._given + 1 if now_s > self._begin_s else 0
        return Batch(values, [int(now_s * 1000)] * len(values))

    def snapshot(self) -> bool:
        return self._is_filled


def _portions(words: list[str]) -> list[list[str]]:
    left = iter(words)
    return list(iter(lambda: list(islice(left, _BATCH)), []))


class _Clock(Sink):
    def __init__(self, options: CheckpointOptions) -> None:
        self._options = options

    def open(self, task_index: int, parallelism: int) -> "_ClockWriter":
        return _ClockWriter(self._options)


class _ClockWriter(SinkWriter):
    """Runs in the task that keeps the state: notes when a batch was processed.

    Leaves the longest gaps at the end, and beats and long gaps, for those who look from outside.
    """

    def __init__(self, options: CheckpointOptions) -> None:
        self._options = options
        self._left = options.keys if options.fill else 0  # Until all keys are there.
        self._begin_s = 0.0
        self._last_s = 0.0
        self._beat_s = 0.0
        self._gaps: list[float] = []
        self._beats = options.file("beats").open("a", buffering=1, encoding="ascii")
        self._long = options.file("long_gaps").open("a", buffering=1, encoding="ascii")

    def restore(self, state: Any) -> None:
        if state:
            self._left = 0

    def snapshot(self) -> bool:
        return self._left <= 0

    def write_batch(self, batch: Batch) -> None:
        now_s = time.time()
        self._left -= len(batch)
        if now_s - self._beat_s > _BEAT_S:
            self._beat_s = now_s
            self._beats.write(f"{now_s} {int(self._left <= 0)}\n")
        if self._left > 0:
            return
        self._begin_s = self._begin_s or now_s + _WARM_UP_S
        if now_s > self._begin_s:
            if now_s - self._last_s > _LONG_GAP_S:
                self._long.write(f"{now_s} {now_s - self._last_s}\n")
            self._gaps = sorted([*self._gaps, now_s - self._last_s])[-_GAPS_KEPT:]
        self._last_s = now_s

    def close(self, *, completed: bool) -> None:
        self._beats.close()
        self._long.close()
        self._options.file("gaps").write_text(json.dumps(self._gaps), encoding="ascii")


def checkpoint_application(options: CheckpointOptions) -> StreamApp:
    app = StreamApp("checkpoint")
    words = app.read(_WordSource(options)).key_by(_itself)
    clock = _Clock(options)
    if options.pipeline == "count":
        words.count().write(clock)
    elif options.pipeline == "window":
        words.window(tumbling("5s")).count().write(clock)
    elif options.value_bytes:
        words.map_with_state(_Padded(options.value_bytes)).write(clock)
    else:
        words.map_with_state(_one_more).write(clock)
    return app


def main(args: list[str]) -> StreamApp:
    return checkpoint_application(CheckpointOptions(**json.loads(args[0])))


def _itself(word: str) -> str:
    return word


def _one_more(kept: int | None, _: str) -> tuple[int, int]:
    return (kept or 0) + 1, 0


class _Padded:
    def __init__(self, size: int) -> None:
        self._padding = bytes(size - 8)

    def __call__(self, kept: bytes | None, _: str) -> tuple[bytes, int]:
        number = int.from_bytes((kept or bytes(8))[:8], "big") + 1
        return number.to_bytes(8, "big") + self._padding, 0


# -- measuring -------------------------------------------------------------------------------


def measure_overhead(
    pipeline: str, keys: int, *, seconds: float, runs: int
) -> Iterator[tuple[float, float]]:
    """Yield records a second with epochs of one second and without any, in turns."""
    for _ in range(runs):
        with_epochs = _run(pipeline, keys, seconds, {}).rate
        yield with_epochs, _run(pipeline, keys, seconds, {"checkpoint.interval-ms": NEVER_MS}).rate


def measure_pauses(
    settings: Mapping[str, Any], *, keys: int, value_bytes: int, seconds: float
) -> Pauses:
    """Let each key have a value of this size; return the pauses while values change at random."""
    return _run("map_with_state", keys, seconds, settings, value_bytes=value_bytes, fill=True)


def _run(
    pipeline: str, keys: int, seconds: float, settings: Mapping[str, Any], **more: Any
) -> Pauses:
    with TemporaryDirectory(prefix="gearpy-checkpoint-") as name:
        folder = Path(name)
        options = CheckpointOptions(
            folder=name, pipeline=pipeline, keys=keys, seconds=seconds, **more
        )
        config = from_overrides(
            {"log.folder": name, "checkpoint.folder": f"{name}/checkpoints"}
            | {key: str(value) for key, value in settings.items()}
        )
        artifact = Artifact(
            kind="file", location=str(program_of(folder)), args=(json.dumps(asdict(options)),)
        )
        with LocalCluster(config, executors="process") as cluster:
            cluster.client.submit("checkpoint", artifact, executors=1).wait()
        gaps = json.loads(options.file("gaps").read_text(encoding="ascii"))
        return Pauses(
            gaps_ms=tuple(gap * 1000 for gap in reversed(gaps)),
            rate=float(options.file("rate").read_text(encoding="ascii")),
        )


def program_of(folder: Path) -> Path:
    program = folder / "checkpoint_program.py"
    program.write_text(_PROGRAM, encoding="utf-8")
    return program


def measure_state_recovery(
    folder: Path, *, keys: int, value_bytes: int, times: int
) -> Iterator[float]:
    """Kill the executor that keeps all state, several times; yield the seconds until it goes on."""
    settings = {
        "application.total-retries": "1000",
        "application.retry-window-seconds": "1",
        "checkpoint.max-overhead-percent": "100",  # So that it need not be waited for.
    }
    options = CheckpointOptions(
        folder=str(folder),
        pipeline="map_with_state",
        keys=keys,
        seconds=NEVER_MS / 1000,
        value_bytes=value_bytes,
        fill=True,
    )
    with ProcessCluster(folder, workers=1, slots=4, settings=settings) as cluster:
        app_id = cluster.submit(program_of(folder), json.dumps(asdict(options)), executors=1)
        beats = options.file("beats")
        for _ in range(times):
            wait_stored(cluster, app_id, beats)
            yield _killed(cluster, app_id, beats)


def wait_stored(cluster: ProcessCluster, app_id: AppId, beats: Path) -> None:
    """Wait until two epochs have ended and were stored since all keys are there."""
    until_s = time.monotonic() + _WAIT_S
    first: int | None = None
    while time.monotonic() < until_s:
        time.sleep(_POLL_S)
        if _last_beat(beats)[1]:
            detail = cluster.detail(app_id)
            epoch = detail.epoch if detail is not None else None
            first = epoch if first is None else first
            if epoch is not None and first is not None and epoch >= first + 2:
                return
    raise TimeoutError(f"no epoch was stored within {_WAIT_S:.0f} s")


def _killed(cluster: ProcessCluster, app_id: AppId, beats: Path) -> float:
    """Kill the executor; return how long it was until the task had processed a batch again."""
    detail = cluster.detail(app_id)
    assert detail is not None, "healthy"
    killed_s = time.time()
    os.kill(detail.executors[0].pid, signal.SIGKILL)
    until_s = time.monotonic() + _WAIT_S
    while time.monotonic() < until_s:
        time.sleep(_POLL_S)
        after = [beat for beat, _ in _beats(beats) if beat > killed_s + _POLL_S]
        if after:
            return after[0] - killed_s
    raise TimeoutError(f"nothing was processed within {_WAIT_S:.0f} s")


def _beats(path: Path) -> list[tuple[float, bool]]:
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 200_000))
        lines = file.read().split(b"\n")[:-1]
    pairs = [line.split() for line in lines if line.count(b" ") == 1]
    return [(float(beat), filled == b"1") for beat, filled in pairs]


def _last_beat(path: Path) -> tuple[float, bool]:
    beats = _beats(path)
    return beats[-1] if beats else (0.0, False)
