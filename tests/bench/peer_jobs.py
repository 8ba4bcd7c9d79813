"""The programs of `peers` for gearpy: words of a file, and windows over Parquet.

One executor is this process, and all is measured from handing the application in until it has
ended. Two are processes of their own, and measured from when the first file is opened: whoever they
are compared with has been warmed up.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, TypeAlias

from gearpy.cluster.boot.local import LocalCluster
from gearpy.columns.row_schema import RowSchema
from gearpy.config.load import from_overrides
from gearpy.connectors.files.datasets import parquet
from gearpy.connectors.files.lines_files import files
from gearpy.connectors.folders.tables import parquet_folder
from gearpy.core.window import aggregates as agg
from gearpy.core.window.windows import global_window, tumbling
from gearpy.dsl.application import StreamApp
from gearpy.messages.client import Artifact
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Sink, SinkWriter, Source, SourceReader
from tests.bench.windows import measure_throughput

#: What is submitted to executors that are processes; the rest is imported from here.
_PROGRAM: Final = "from tests.bench.peer_jobs import main\n"

JobKind: TypeAlias = Literal["words", "windows", "stream"]
#: Seconds, records and results of a run.
Figures: TypeAlias = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerJob:
    """What a run does.

    Attributes:
        executors: one, or two processes with a task of each kind in either.
    """

    kind: JobKind
    files: tuple[str, ...]
    folder: str
    executors: int


class _Noted(Source):
    """Another source; notes when the first file of a task is opened."""

    def __init__(self, source: Source, folder: str) -> None:
        self._source = source
        self._folder = folder

    def partitions(self) -> list[str]:
        return list(self._source.partitions())

    @property
    def schema(self) -> RowSchema | None:
        return self._source.schema

    def open(self, partition: str, resume: Any | None) -> SourceReader:
        file = Path(self._folder) / f"begun{os.getpid()}"
        if not file.exists():
            file.write_text(str(time.time()), encoding="ascii")
        return self._source.open(partition, resume)


class _Totals(Sink):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, task_index: int, parallelism: int) -> "_TotalsWriter":
        return _TotalsWriter(Path(self._folder) / f"totals{task_index}")


class _TotalsWriter(SinkWriter):
    def __init__(self, file: Path) -> None:
        self._file = file
        self._records = 0
        self._results = 0

    def write_batch(self, batch: Batch) -> None:
        self._results += len(batch)
        for result in batch.values:
            value = result.value
            self._records += value if isinstance(value, int) else value["n"]

    def close(self, *, completed: bool) -> None:
        self._file.write_text(json.dumps([self._records, self._results]), encoding="ascii")


def _words(job: PeerJob) -> StreamApp:
    app = StreamApp("words")
    lines = app.read(_Noted(files(*job.files), job.folder), parallelism=job.executors)
    words = lines.flat_map(lambda line: line.split())
    by_word = words.key_by(lambda word: word, parallelism=job.executors)
    by_word.window(global_window()).count().write(_Totals(job.folder))
    return app


def _windows(job: PeerJob) -> StreamApp:
    app = StreamApp("windows")
    rows = app.read(_Noted(parquet(*job.files, time="at"), job.folder), parallelism=job.executors)
    by_user = rows.key_by("user", parallelism=job.executors).window(tumbling("10s"))
    by_user.aggregate(total=agg.sum("price"), n=agg.count()).write(_Totals(job.folder))
    return app


def _stream(job: PeerJob) -> StreamApp:
    app = StreamApp("stream")
    source = parquet(*job.files, time="at", out_of_order="5s", partitions=job.executors)
    rows = app.read(_Noted(source, job.folder), parallelism=job.executors)
    windows = rows.key_by("key", parallelism=job.executors).window(tumbling("10s"))
    totals = windows.aggregate(n=agg.count(), total=agg.sum("value"))
    totals.write(_Totals(job.folder))
    columns = totals.map(lambda result: {"start": result.start, "key": result.key, **result.value})
    columns.write(parquet_folder(f"{job.folder}/results"))
    return app


_APPLICATIONS: Final[dict[JobKind, Callable[[PeerJob], StreamApp]]] = {
    "words": _words,
    "windows": _windows,
    "stream": _stream,
}


def main(args: list[str]) -> StreamApp:
    job = PeerJob(**json.loads(args[0]))
    return _APPLICATIONS[job.kind](job)


def run_job(kind: JobKind, paths: list[str], executors: int) -> Figures:
    """Run a program once in this process, or in two that it starts; check nothing."""
    with TemporaryDirectory(prefix="gearpy-peers-") as folder:
        job = PeerJob(kind=kind, files=tuple(paths), folder=folder, executors=executors)
        config = from_overrides({"log.folder": folder, "checkpoint.folder": f"{folder}/epochs"})
        options = json.dumps(asdict(job))
        if executors == 1:
            with LocalCluster(config) as cluster:
                begin_s = time.time()
                cluster.run(main([options]))
                end_s = time.time()
        else:
            program = Path(folder) / "peer_program.py"
            program.write_text(_PROGRAM, encoding="utf-8")
            artifact = Artifact(kind="file", location=str(program), args=(options,))
            with LocalCluster(config, workers=executors, executors="process") as cluster:
                cluster.client.submit(kind, artifact, executors=executors).wait()
                end_s = time.time()
            begun = Path(folder).glob("begun*")
            begin_s = min(float(each.read_text("ascii")) for each in begun)
        totals = [json.loads(each.read_text("ascii")) for each in Path(folder).glob("totals*")]
    records, results = (sum(column) for column in zip(*totals, strict=True))
    return {"seconds": end_s - begin_s, "records": records, "results": results}


def run_source(path: Literal["rows", "columns"], seconds: float, keys: int) -> Figures:
    """Sum and count in windows of ten seconds what a source in memory gives; see `windows`."""
    per_s, _ = measure_throughput(path, seconds=seconds, keys=keys)
    return {"seconds": 1.0, "records": per_s, "results": keys}


def _main() -> None:
    what, *args = sys.argv[1:]
    figures: Any
    if what in {"rows", "columns"}:
        figures = run_source("rows" if what == "rows" else "columns", float(args[0]), int(args[1]))
    else:
        (kind,) = (each for each in _APPLICATIONS if each == what)
        figures = run_job(kind, args[1:], int(args[0]))
    sys.stdout.write(json.dumps({"gearpy": figures}) + "\n")


if __name__ == "__main__":
    _main()
