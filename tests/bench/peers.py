"""The same programs on gearpy and on other stream processors, in turns on one machine.

The others live in an environment of their own, which is made on first use. Ratios count: each is of
two runs that followed each other, so that what else the machine does meets both.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from tests.bench.peer_jobs import Figures

PACKAGES: Final = ("bytewax==0.21.1", "pyspark==4.3.0", "pyarrow>=26,<27", "pandas>=2.2,<3")

_HERE: Final = Path(__file__).parent
_TIMEOUT_S: Final = 900.0
_VOCABULARY: Final = 5000
_WORDS_OF_LINE: Final = 10
_PORTION: Final = 1_000_000  # Records that are made at once.
_PER_MS: Final = 100  # Records of one ms of event time.
_STREAM_FILES: Final = 20  # As a job finds them that comes every now and then.
_STREAM_PER_MS: Final = 10
_DISORDER_MS: Final = 2000
_SHOWN_LEAST: Final = 0.95
_BEGIN_MS: Final = 1_767_225_600_000  # 2026-01-01.


@dataclass(frozen=True, slots=True, kw_only=True)
class PeersOptions:
    python: Path
    folder: Path
    words: int
    rows: int
    events: int
    seconds: float
    keys: int = 1000

    def text(self) -> list[Path]:
        """Return two files with half of the words each, made on first use."""
        files = [self.folder / f"words{part}.txt" for part in range(2)]
        for part, file in enumerate(files):
            if not file.exists():
                write_words(file, self.words // 2, random.Random(part))
        return files

    def parquet(self) -> list[Path]:
        files = [self.folder / "events" / f"part{part}.parquet" for part in range(2)]
        files[0].parent.mkdir(exist_ok=True)
        for part, file in enumerate(files):
            if not file.exists():
                _write_rows(file, self.rows // 2, self.keys, random.Random(part))
        return files

    def events_out_of_order(self) -> list[Path]:
        """Return files with a third as many rows, out of order by two seconds."""
        files = [self.folder / "stream" / f"part{part:02}.parquet" for part in range(_STREAM_FILES)]
        files[0].parent.mkdir(exist_ok=True)
        rows = self.rows // 3 // _STREAM_FILES
        for part, file in enumerate(files):
            if not file.exists():
                _write_events(file, part * rows, rows, self.keys, random.Random(part))
        return files


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two programs that do the same.

    Attributes:
        theirs: runs the other's; several, if it can be written in several ways.
    """

    name: str
    ours: Callable[[PeersOptions], Figures]
    theirs: Callable[[PeersOptions], Mapping[str, Figures]]
    aim: float


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of each; rates are records per second."""

    ours: float
    theirs: Mapping[str, float] = field(default_factory=dict)
    load: float = 0.0

    @property
    def ratio(self) -> float:
        return self.ours / max(self.theirs.values())


def compare_peers(comparison: Comparison, options: PeersOptions, *, runs: int) -> Iterator[Turn]:
    for _ in range(runs):
        ours = comparison.ours(options)
        theirs = comparison.theirs(options)
        yield Turn(
            ours["records"] / ours["seconds"],
            {name: each["records"] / each["seconds"] for name, each in theirs.items()},
            os.getloadavg()[0],
        )


def best_of(turns: list[Turn]) -> tuple[str, float]:
    names = list(turns[0].theirs)
    rates = {name: median(turn.theirs[name] for turn in turns) for name in names}
    best = max(names, key=lambda name: rates[name])
    return best, rates[best]


def environment(folder: Path, packages: Sequence[str] = PACKAGES) -> Path:
    python = folder / "bin" / "python"
    stamp = folder / "gearpy-peers"
    if not stamp.exists() or stamp.read_text(encoding="ascii") != "\n".join(packages):
        make = [sys.executable, "-m", "venv", str(folder)]
        install = [str(python), "-m", "pip", "install", "--quiet", *packages]
        for command in (make, install):
            subprocess.run(command, check=True)
        stamp.write_text("\n".join(packages), encoding="ascii")
    return python


# -- runs ------------------------------------------------------------------------------------


def _ours(*args: object) -> Figures:
    said = _run([sys.executable, "-P", "-m", "tests.bench.peer_jobs", *map(str, args)])
    return said["gearpy"]


def _peer(options: PeersOptions, program: str, *args: object) -> dict[str, Figures]:
    command = [str(options.python), str(_HERE / f"peer_{program}.py"), *map(str, args)]
    return _run(command, {"PYSPARK_PYTHON": str(options.python)})


def _run(command: list[str], environ: Mapping[str, str] | None = None) -> dict[str, Figures]:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
        env={**os.environ, **(environ or {})},
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
    said: dict[str, Figures] = json.loads(done.stdout.strip().splitlines()[-1])
    return said


def _counted(figures: Mapping[str, Figures], records: int) -> None:
    for name, each in figures.items():
        assert each["records"] == records, f"{name} has counted {each['records']} of {records}"


def _words_ours(options: PeersOptions, executors: int) -> Figures:
    figures = _ours("words", executors, *options.text())
    _counted({"gearpy": figures}, options.words)
    return figures


def _words_theirs(options: PeersOptions, program: str) -> dict[str, Figures]:
    figures = _peer(options, program, "words", *options.text())
    _counted(figures, options.words)
    return figures


def _windows_bytewax(options: PeersOptions) -> dict[str, Figures]:
    figures = _peer(options, "bytewax", "windows", options.events, options.keys)
    _counted(figures, options.events)
    return figures


def _parquet_ours(options: PeersOptions, executors: int) -> Figures:
    figures = _ours("windows", executors, *options.parquet())
    _counted({"gearpy": figures}, options.rows)
    return figures


def _parquet_spark(options: PeersOptions) -> dict[str, Figures]:
    figures = _peer(options, "spark", "windows", options.parquet()[0].parent)
    _counted(figures, options.rows)
    return figures


def _stream_ours(options: PeersOptions, executors: int) -> Figures:
    files = options.events_out_of_order()
    figures = _ours("stream", executors, *files)
    _counted({"gearpy": figures}, options.rows // 3 // _STREAM_FILES * _STREAM_FILES)
    return figures


def _stream_spark(options: PeersOptions) -> dict[str, Figures]:
    files = options.events_out_of_order()
    figures = _peer(options, "spark", "stream", files[0].parent)
    rows = options.rows // 3 // _STREAM_FILES * _STREAM_FILES
    for each in figures.values():  # What has not closed at the end it keeps to itself.
        assert _SHOWN_LEAST * rows < each["records"] <= rows, f"{each['records']} of {rows}"
        each["records"] = rows
    return figures


COMPARISONS: Final = {
    "bytewax-words": Comparison(
        "word count, one executor, and Bytewax",
        lambda options: _words_ours(options, 1),
        lambda options: _words_theirs(options, "bytewax"),
        3,
    ),
    "spark-words": Comparison(
        "word count, two executors, and PySpark local[2], warm",
        lambda options: _words_ours(options, 2),
        lambda options: _words_theirs(options, "spark"),
        1,
    ),
    "bytewax-rows": Comparison(
        "windows of 10 s, rows, and Bytewax",
        lambda options: _ours("rows", options.seconds, options.keys),
        _windows_bytewax,
        8,
    ),
    "bytewax-columns": Comparison(
        "windows of 10 s, columns, and Bytewax",
        lambda options: _ours("columns", options.seconds, options.keys),
        _windows_bytewax,
        60,
    ),
    "spark-stream": Comparison(
        "stream of Parquet files to Parquet, one executor, and PySpark local[2], warm",
        lambda options: _stream_ours(options, 1),
        _stream_spark,
        3,
    ),
    "spark-stream-2": Comparison(
        "stream of Parquet files to Parquet, two executors, and PySpark local[2], warm",
        lambda options: _stream_ours(options, 2),
        _stream_spark,
        3,
    ),
    "spark-batch-2": Comparison(
        "windows over Parquet, two executors, and a query of PySpark local[2], warm",
        lambda options: _parquet_ours(options, 2),
        _parquet_spark,
        1,
    ),
}


# -- what is read ----------------------------------------------------------------------------


def write_words(file: Path, count: int, rng: random.Random) -> None:
    """Write lines of words, of which few are frequent and many are not."""
    vocabulary = [f"word{number}" for number in range(_VOCABULARY)]
    weights = [1 / (1 + number) for number in range(_VOCABULARY)]
    unfinished = file.with_suffix(".new")
    with unfinished.open("w", encoding="ascii") as out:
        for begin in range(0, count, _PORTION):
            words = rng.choices(vocabulary, weights, k=min(_PORTION, count - begin))
            out.writelines(
                " ".join(words[at : at + _WORDS_OF_LINE]) + "\n"
                for at in range(0, len(words), _WORDS_OF_LINE)
            )
    unfinished.replace(file)


def _write_rows(file: Path, count: int, keys: int, rng: random.Random) -> None:
    """Write users, prices and times, the times in order; some rows come again, later."""
    portion = min(_PORTION, count)
    users = pa.array([f"user{rng.randrange(keys)}" for _ in range(portion)])
    prices = pa.array([rng.randrange(10_000) for _ in range(portion)], pa.int64())
    schema = pa.schema({"at": pa.timestamp("ms", "UTC"), "user": pa.string(), "price": pa.int64()})
    unfinished = file.with_suffix(".new")
    with pq.ParquetWriter(unfinished, schema) as writer:
        for begin in range(0, count, portion):
            rows = min(portion, count - begin)
            times = [_BEGIN_MS + number // _PER_MS for number in range(begin, begin + rows)]
            columns = [pa.array(times, pa.int64()).cast(schema.field("at").type)]
            columns += [users[:rows], prices[:rows]]
            writer.write_batch(pa.record_batch(columns, schema=schema))
    unfinished.replace(file)


def _write_events(file: Path, begin: int, count: int, keys: int, rng: random.Random) -> None:
    """Write times out of order, keys and values, from the place in the stream where it begins."""
    times = [
        _BEGIN_MS + number // _STREAM_PER_MS - rng.randrange(_DISORDER_MS)
        for number in range(begin, begin + count)
    ]
    columns = {
        "at": pa.array(times, pa.timestamp("ms", "UTC")),
        "key": pa.array([rng.randrange(keys) for _ in range(count)], pa.int64()),
        "value": pa.array([rng.random() for _ in range(count)]),
    }
    unfinished = file.with_suffix(".new")
    pq.write_table(pa.table(columns), unfinished)
    unfinished.replace(file)
