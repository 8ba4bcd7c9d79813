"""Counts the instructions and calls of Python that a record, a batch and an epoch take.

Unlike times, they are the same in each run, whatever else the machine does: tasks run in one
thread, on a clock that is told, and text hashes the same. `python -m tests.bench.work` is one
measurement, in a process of its own; `measure_work` starts it.

A path runs with batches of two sizes, and with some batches and then with twice as many. The
differences are the costs of one more batch, and of one more record in it. Imports, the compilation
of steps and first batches come before, and count nowhere. The functions of programs, sources and
sinks in this folder count as calls alone.
"""

import gc
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple, Self, TypeAlias

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

import gearpy as gp
from gearpy.columns.row_schema import RowSchema
from gearpy.messages.table import Table, Times
from tests.bench.one_thread import OneThread

_HERE: Final = str(Path(__file__).parent)
_ROOT: Final = Path(__file__).parents[2]
#: Paths of files take work by the number of their parts.
_ENVIRONMENT: Final = {"PYTHONHASHSEED": "0", "TMPDIR": "/tmp"}  # noqa: S108 - never a file of it
_BATCHES: Final = 4
_RECORDS: Final = 128  # Of a batch; and half of them.
_WARM_UP: Final = 16  # Batches, the first of which are smaller.
_POLLS_MS: Final = 40  # In which a source that has given nothing is asked again.
_RECORDS_OF_FILE: Final = (_WARM_UP + 4 * _BATCHES) * _RECORDS
_KEYS: Final = 16
_WORDS_OF_LINE: Final = 8
_START_MS: Final = 1_767_225_600_000
_SPAN_MS: Final = 1000  # The event time of a batch: as much as a window has.


class Cost(NamedTuple):
    """Instructions and calls of Python; of functions written in C, too."""

    instructions: float
    calls: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PathWork:
    """The costs of a path.

    Attributes:
        epoch: of one of few batches; None: the path keeps nothing.
    """

    record: Cost
    batch: Cost
    epoch: Cost | None = None
    functions: Mapping[str, float] = field(default_factory=dict)
    epoch_functions: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> "PathWork":
        epoch = found.get("epoch")
        return cls(
            record=Cost(*found["record"]),
            batch=Cost(*found["batch"]),
            epoch=epoch and Cost(*epoch),
            functions=found["functions"],
            epoch_functions=found.get("epoch_functions", {}),
        )

    def figures(self) -> Iterator[tuple[str, float]]:
        for of in ("record", "batch", "epoch"):
            cost: Cost | None = getattr(self, of)
            for unit, value in () if cost is None else zip(Cost._fields, cost, strict=True):
                yield f"{unit} of a {of}" if of != "epoch" else f"{unit} of an {of}", value


# -- programs ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trade:
    key: int
    price: int


class _Paced(gp.Source):
    """Gives batches as long as they are allowed, each of the next second of event time."""

    bounded = replayable = True

    def __init__(self, records: int, path: "MeasuredPath", folder: Path) -> None:
        table, self.records = path.table, records
        self._values = [path.value(at) for at in range(records)]
        self._files = None if path.files is None else path.files(folder)
        self._schema = None if table is None else RowSchema(table)
        if table is not None:
            self._table = Table(pa.RecordBatch.from_pylist(self._values, table))
        self.allowed = self.given = 0  # Batches.

    @property
    def schema(self) -> RowSchema | None:
        return self._schema

    def partitions(self) -> list[str]:
        return ["all"]

    def open(self, partition: str, resume: Any) -> gp.SourceReader:
        if self._files is not None:
            return _FilesReader(self, self._files.open(self._files.partitions()[0], None))
        return _PacedReader(self)

    def batch(self, number: int, count: int) -> gp.Batch:
        first_ms = _START_MS + number * _SPAN_MS
        times = [first_ms + at * _SPAN_MS // count for at in range(count)]
        if self.schema is None:
            return gp.Batch(self._values[:count], times)
        return gp.Batch(self._table[:count], Times(pa.array(times, pa.int64())))


class _PacedReader(gp.SourceReader):
    out_of_order_ms = 0

    def __init__(self, source: _Paced) -> None:
        self._source = source
        self._newest_ms = gp.MIN_MS

    def read_batch(self, max_records: int) -> gp.Batch | None:
        if self._source.given == self._source.allowed:
            return None
        batch = self._source.batch(self._source.given, min(max_records, self._source.records))
        self._source.given += 1
        self._newest_ms = batch.timestamps[-1]
        return batch

    @property
    def watermark_ms(self) -> int:
        return self._newest_ms

    def snapshot(self) -> int:
        return self._source.given


class _FilesReader(gp.SourceReader):
    def __init__(self, source: _Paced, files: gp.SourceReader) -> None:
        self._source = source
        self._files = files

    def read_batch(self, max_records: int) -> gp.Batch | None:
        if self._source.given == self._source.allowed:
            return None
        self._source.given += 1
        return self._files.read_batch(min(max_records, self._source.records))

    def snapshot(self) -> Any:
        return self._files.snapshot()


class _Nowhere(gp.Sink, gp.SinkWriter):
    idempotent = True

    def open(self, task_index: int, parallelism: int) -> "_Nowhere":
        return self

    def write_batch(self, batch: Any) -> None:
        pass


class _Best(gp.Task):
    def on_start(self, start_time_ms: int) -> None:
        self.best = self.context.state.value("best")

    def on_next(self, message: gp.Message) -> None:
        best = self.best.get()
        if best is None or message.value.price >= best.price:
            self.best.set(message.value)


def _row(at: int) -> dict[str, Any]:
    return {"user": f"user{at % _KEYS}", "price": at * 7919 % 1000}


def _trade(at: int) -> Trade:
    return Trade(at % _KEYS, at * 7919 % 1000)


def _word(at: int) -> str:
    return f"word{at % _KEYS}"


def _line(at: int) -> str:
    return " ".join(f"word{(at + word) % _KEYS}" for word in range(_WORDS_OF_LINE))


def _last(before: Trade | None, trade: Trade) -> tuple[Trade, int]:
    return trade, trade.price - (before.price if before else 0)


_Steps: TypeAlias = Callable[..., Any]
_SECOND: Final = gp.tumbling("1s")
_SCHEMA: Final = pa.schema({"user": pa.string(), "price": pa.int64()})


class MeasuredPath(NamedTuple):
    """A program: ``steps`` takes a stream of each source, and a folder, and returns the last one.

    It writes to a sink of its own, or nowhere. With ``files`` it reads a source
    of those.
    """

    steps: _Steps
    value: Callable[[int], Any] = _trade
    sources: int = 1
    table: pa.Schema | None = None
    is_coded: bool = False
    has_epochs: bool = False
    files: Callable[[Path], gp.Source] | None = None


def _words(s: Any, _: Path) -> Any:
    return s.key_by(lambda word: word).window(gp.global_window()).count()


def _windows(s: Any, _: Path) -> Any:
    return s.key_by("user").window(_SECOND).aggregate(total=gp.agg.sum("price"), n=gp.agg.count())


def _window_log(s: Any, folder: Path) -> None:
    s.key_by("user").window(_SECOND).count().write(gp.window_log_folder(str(folder)))


def _lines_of(folder: Path) -> gp.Source:
    file = folder / "lines.txt"
    file.write_text("".join(f"{_line(at)}\n" for at in range(_RECORDS_OF_FILE)), encoding="ascii")
    return gp.files(str(file))


def _json_of(folder: Path) -> gp.Source:
    file = folder / "rows.jsonl"
    lines = (json.dumps(_row(at)) + "\n" for at in range(_RECORDS_OF_FILE))
    file.write_text("".join(lines), encoding="ascii")
    return gp.jsonl(str(file))


#: Name of each path to its program.
PATHS: Final[dict[str, MeasuredPath]] = {
    "rows": MeasuredPath(lambda s, _: s.map(lambda t: t.price).filter(lambda price: price >= 0)),
    "words": MeasuredPath(_words, _word),
    "words from lines": MeasuredPath(lambda s, _: _words(s.flat_map(str.split), _), _line),
    "running count": MeasuredPath(lambda s, _: s.key_by(lambda word: word).count(), _word),
    "windows": MeasuredPath(_windows, _row, has_epochs=True),
    "sliding windows": MeasuredPath(
        lambda s, _: s.key_by("user").window(gp.sliding("4s", "1s")).sum("price"), _row
    ),
    "map_with_state": MeasuredPath(
        lambda s, _: s.key_by("key").map_with_state(_last), has_epochs=True
    ),
    "process": MeasuredPath(lambda s, _: s.key_by("key").process(_Best), has_epochs=True),
    "interval join": MeasuredPath(
        lambda a, b, _: a.key_by("key").join_interval(b.key_by("key"), before="10ms", after="0ms"),
        sources=2,
    ),
    "window join": MeasuredPath(
        lambda a, b, _: a.key_by("price").join(b.key_by("price"), _SECOND), sources=2
    ),
    "lines read": MeasuredPath(lambda s, _: s, files=_lines_of),
    "JSON read": MeasuredPath(lambda s, _: s, files=_json_of),
    "JSON written": MeasuredPath(
        lambda s, folder: s.write(gp.jsonl_folder(str(folder))), _row, has_epochs=True
    ),
    "window log": MeasuredPath(_window_log, _row, has_epochs=True),
    "wire": MeasuredPath(_windows, _row, is_coded=True),
    "columns": MeasuredPath(_windows, _row, table=_SCHEMA),
    "columns by wire": MeasuredPath(_windows, _row, table=_SCHEMA, is_coded=True),
}


# -- counting ------------------------------------------------------------------------------


class _Count:
    """Counts while it is entered; the functions of this folder only as calls of them."""

    def __init__(self) -> None:
        self.instructions: Counter[str] = Counter()
        self.calls = 0
        self._counts: dict[int, list[int]] = {}  # By identity: codes are compared by content.
        self._codes: list[CodeType] = []

    def __enter__(self) -> Self:
        sys.setprofile(self._on_call)
        sys.settrace(self._on_entry)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        sys.setprofile(None)
        for code in self._codes:
            self.instructions[_name(code)] += self._counts[id(code)][0]

    def _on_call(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "c_call" and not frame.f_code.co_filename.startswith(_HERE):
            self.calls += 1

    def _on_entry(self, frame: FrameType, _: str, __: Any) -> Any:
        code = frame.f_code
        if code.co_filename.startswith(_HERE):
            # Those that count are called by what is measured.
            self.calls += frame.f_back is not None and id(frame.f_back.f_code) in self._counts
            return None
        self.calls += 1
        count = self._counts.get(id(code))
        if count is None:
            count = self._counts[id(code)] = [0]
            self._codes.append(code)
        frame.f_trace_opcodes, frame.f_trace_lines = True, False

        def on_instruction(_: FrameType, event: str, __: Any) -> Any:
            if event == "opcode":
                count[0] += 1
            return on_instruction

        return on_instruction

    def cost(self) -> Cost:
        return Cost(self.instructions.total(), self.calls)


def _name(code: CodeType) -> str:
    path = Path(code.co_filename)
    file = path.relative_to(_ROOT) if path.is_relative_to(_ROOT) else path.name
    return f"{file}:{code.co_qualname}"


class _Run(NamedTuple):
    batch: Cost
    epoch: Cost | None
    functions: dict[str, float]
    epoch_functions: dict[str, int]


def _run(path: MeasuredPath, records: int, folder: Path) -> _Run:
    sources = [_Paced(records, path, folder) for _ in range(path.sources)]
    app = gp.StreamApp("work")
    last = path.steps(*(app.read(source) for source in sources), folder)
    if last is not None:
        last.write(_Nowhere())
    flow = OneThread(app.build(), batch_records=_RECORDS, is_coded=path.is_coded)

    def go_on(batches: int) -> None:
        for source in sources:
            source.allowed += batches
        flow.rest(within_ms=_POLLS_MS)
        assert all(each.given == each.allowed for each in sources), "all were read"

    go_on(_WARM_UP)
    few, many, of_epoch = _Count(), _Count(), _Count()
    for number, (count, batches) in enumerate(((few, _BATCHES), (many, 2 * _BATCHES)), 1):
        if path.has_epochs:
            flow.end_epoch(2 * number - 1)  # Those before have other batches.
        with count:
            go_on(batches)
        if path.has_epochs and count is few:
            with of_epoch:
                flow.end_epoch(2 * number)
    flow.stop()
    batch = [(b - a) / _BATCHES for a, b in zip(few.cost(), many.cost(), strict=True)]
    functions = {
        name: (total - few.instructions[name]) / _BATCHES
        for name, total in many.instructions.items()
    }
    epoch = of_epoch.cost() if path.has_epochs else None
    return _Run(Cost(*batch), epoch, functions, dict(of_epoch.instructions))


def work_of(path: MeasuredPath, folder: Path) -> PathWork:
    """Count the work of a path, in this process; the folder is made."""
    (folder / "full").mkdir(parents=True)
    (folder / "half").mkdir()
    full = _run(path, _RECORDS, folder / "full")
    half = _run(path, _RECORDS // 2, folder / "half")
    record = Cost(*(2 * (f - h) / _RECORDS for f, h in zip(full.batch, half.batch, strict=True)))
    batch = Cost(*(2 * h - f for f, h in zip(full.batch, half.batch, strict=True)))
    return PathWork(
        record=record,
        batch=batch,
        epoch=full.epoch,
        functions=full.functions,
        epoch_functions=full.epoch_functions,
    )


def _main(names: Sequence[str]) -> None:
    gc.disable()  # What it would call comes at moments that depend on what is imported.
    found: dict[str, Any] = {}
    with TemporaryDirectory(prefix="gearpy-work-") as folder:
        for name in names or PATHS:
            found[name] = asdict(work_of(PATHS[name], Path(folder) / name))
    sys.stdout.write("\n" + json.dumps(found) + "\n")


def measure_work(names: Sequence[str] = ()) -> dict[str, PathWork]:
    """Count the work of these paths, or of all, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tests.bench.work", *names],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=_ROOT,
        env={**os.environ, **_ENVIRONMENT, "PYTHONPATH": str(_ROOT)},
    )
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return {name: PathWork.of(each) for name, each in found.items()}


if __name__ == "__main__":
    _main(sys.argv[1:])
