"""Sinks and sources of tables of databases: records per CPU second of this process."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa  # type: ignore[import-untyped]

import gearpy as gp


class TableRate(NamedTuple):
    """Records per CPU second, and per second."""

    name: str
    per_cpu_s: float
    per_s: float


def measure_tables(urls: Sequence[str], *, records: int, runs: int) -> Iterator[TableRate]:
    """Yield the best of some runs: of SQLite, DuckDB, Iceberg, and of servers at these URLs."""
    numbers = pa.table(
        {
            "id": pa.array(range(records)),
            "label": pa.array([f"label {n % 100}" for n in range(records)]),
            "share": pa.array([n / 7 for n in range(records)]),
        }
    )
    with TemporaryDirectory(prefix="gearpy-tables-") as folder:
        files = [f"{kind}:///{Path(folder, kind)}.db" for kind in ("sqlite", "duckdb")]
        for url in (*files, *urls):
            name, tables = url.partition(":")[0], [f"t{uuid4().hex[:12]}" for _ in range(runs)]
            yield _best(
                f"sql_sink {name}",
                [_into(numbers, gp.sql_sink(url, each, create=True)) for each in tables],
            )
            read = [gp.sql_source(url, each) for each in tables]
            yield _best(f"sql_source {name}", [_from(each, records) for each in read])
            if name == "postgresql":
                sinks = [gp.postgres_sink(url, f"{each}c", create=True) for each in tables]
                yield _best("postgres_sink", [_into(numbers, each) for each in sinks])
        catalog = {
            "type": "sql",
            "uri": f"sqlite:///{folder}/catalog.db",
            "warehouse": f"file://{folder}/warehouse",
        }
        lakes = [gp.iceberg_table(f"bench.t{run}", catalog=catalog) for run in range(runs)]
        yield _best("iceberg_table", [_into(numbers, each) for each in lakes])


class _Took(NamedTuple):
    records: int
    cpu_s: float
    seconds: float


def _best(name: str, runs: Sequence[_Took]) -> TableRate:
    cpu_s, seconds = min(run.cpu_s for run in runs), min(run.seconds for run in runs)
    return TableRate(name, runs[0].records / cpu_s, runs[0].records / seconds)


def _into(numbers: Any, sink: gp.Sink[Any]) -> _Took:
    return _run(gp.rows(numbers), sink, numbers.num_rows)


def _from(source: gp.Source[Any], records: int) -> _Took:
    return _run(source, gp.to_table(), records)


def _run(source: gp.Source[Any], sink: gp.Sink[Any], records: int) -> _Took:
    app = gp.StreamApp("tables")
    app.read(source).write(sink)
    cpu_s, seconds = time.process_time(), time.perf_counter()
    gp.run(app)
    return _Took(records, time.process_time() - cpu_s, time.perf_counter() - seconds)
