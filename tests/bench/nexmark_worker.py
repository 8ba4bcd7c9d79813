"""Answers questions of Nexmark by gearpy or by a loop: a process that `nexmark` asks.

It is given a system, "rows", "columns", "sql", "loop" or "duckdb", and how many events it may be
asked about. A line "QUERY EVENTS measure|check" is answered with CPU seconds, and in a check with
the answer's rows.
"""

import gc
import json
import sys
import time
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

import gearpy as gp
from tests.bench.micro import Prepared
from tests.bench.nexmark_loops import LOOPS, Site, answer_rows, checksum, sql_rows

_EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "nexmark"
sys.path.insert(0, str(_EXAMPLE))
import columns  # type: ignore[import-not-found]  # noqa: E402 - a module of the example
import events as site_events  # type: ignore[import-not-found]  # noqa: E402 - the same
import queries  # type: ignore[import-not-found]  # noqa: E402 - the same
import sql  # type: ignore[import-not-found]  # noqa: E402 - the same

_LATE_MS: Final = 200
_PER_SECOND: Final = 1000
_TABLE_ROWS: Final = 65_536
_START_MS: Final = site_events.START_MS
#: Systems whose events come in tables.
_IN_TABLES: Final = frozenset({"columns", "sql", "duckdb"})
_KINDS: Final = {
    "people": site_events.Person,
    "auctions": site_events.Auction,
    "bids": site_events.Bid,
}
#: Queries about more than bids; the others read bids alone.
ALL_KINDS: Final = frozenset({"q3", "q4", "q6", "q8", "q9", "q20"})
#: Queries that are answered in columns, and so in SQL, once, at the end.
AT_THE_END: Final = frozenset({"q18", "q19"})
_LINES: Final = [
    " ".join(f"w{(line * 10 + word) * 7919 % 1000}" for word in range(10)) for line in range(100)
]


class _Counting(gp.Sink, gp.SinkWriter):
    idempotent = True

    def __init__(self, *, keeps: bool, is_columnar: bool) -> None:
        self.kept: list[Any] = []
        self._keeps = keeps
        self.columnar = is_columnar and not keeps

    def open(self, task_index: int, parallelism: int) -> gp.SinkWriter:
        return self

    def write_batch(self, batch: gp.Batch) -> None:
        if self._keeps:
            self.kept.extend(batch.values)


class PreparedStreams(queries.Streams):  # type: ignore[misc]
    """The streams of the example, of events that are in memory."""

    def __init__(self, app: gp.StreamApp, made: "MadeEvents", query: str, count: int) -> None:
        nexmark = site_events.Nexmark(
            events=count, per_second=_PER_SECOND, out_of_order_ms=_LATE_MS
        )
        super().__init__(app, nexmark, "columns" if made.form in _IN_TABLES else "rows")
        self._made, self._query, self._count = made, query, count

    def _read(self, kind: Any, name: str) -> gp.Stream[Any]:
        app: gp.StreamApp = self._app
        if self.form == "rows":
            values, times = self._made.rows(kind, self._count)
            return app.read(Prepared(values, times, _LATE_MS), name=name)
        return app.read(self._made.source(kind, self._count), name=name)

    @cached_property
    def events(self) -> Any:
        return self._read(None, "events")

    @cached_property
    def people(self) -> Any:
        return super().people if self.form == "rows" else self._read(site_events.Person, "people")

    @cached_property
    def auctions(self) -> Any:
        if self.form == "rows":
            return super().auctions
        return self._read(site_events.Auction, "auctions")

    @cached_property
    def bids(self) -> Any:
        if self.form == "rows" and self._query in ALL_KINDS:
            return super().bids
        return self._read(site_events.Bid, "bids")


class MadeEvents:
    """All events that may be asked for, as objects or as tables."""

    def __init__(self, form: str, count: int) -> None:
        self.form = form
        self.nexmark = nexmark = site_events.Nexmark(
            events=count, per_second=_PER_SECOND, out_of_order_ms=_LATE_MS
        )
        kinds = set(columns.PLACES) if form in _IN_TABLES else {site_events.Bid}
        self._tables = {
            kind: pa.Table.from_batches(list(columns.tables(kind, nexmark, 0))).combine_chunks()
            for kind in kinds
        }
        if form in _IN_TABLES:
            return
        each = self._tables.pop(site_events.Bid).to_pydict().values()
        bids = list(map(site_events.Bid, *each))
        share, first = columns.PLACES[site_events.Bid]
        group = site_events.GROUP
        events = chain.from_iterable(
            [
                *(nexmark.event(at * group + place) for place in range(first)),
                *bids[at * share : (at + 1) * share],
            ]
            for at in range(count // group)
        )
        self._rows: dict[Any, list[Any]] = {None: list(events), site_events.Bid: bids}
        self._times = {
            kind: [each.time_ms for each in values] for kind, values in self._rows.items()
        }

    def rows(self, kind: Any, count: int) -> tuple[list[Any], list[int]]:
        number = count if kind is None else count // site_events.GROUP * site_events.BIDS
        return self._rows[kind][:number], self._times[kind][:number]

    def tables(self, kind: Any, count: int) -> list[pa.RecordBatch]:
        share, _ = columns.PLACES[kind]
        table = self._tables[kind].slice(0, count // site_events.GROUP * share)
        batches: list[pa.RecordBatch] = table.to_batches(max_chunksize=_TABLE_ROWS)
        return batches

    def source(self, kind: Any, count: int, *, ends: bool = False) -> gp.Source:
        """Return a source; one that ``ends`` says so, and SQL has its last answer alone."""
        tables = self.tables(kind, count)
        return _prepared(
            tables,
            schema=kind,
            time="time_ms",
            out_of_order=f"{_LATE_MS}ms",
            limit=sum(map(len, tables)) if ends else None,
        )


def _prepared(tables: list[pa.RecordBatch], **options: Any) -> gp.Source:
    """Return a source of tables that are there, whose iterator never waits, as that of a file."""
    source = gp.generate_tables(lambda: iter(tables), **options)
    source.calls_program = False
    return source


def _words(app: gp.StreamApp, count: int) -> gp.Stream[Any]:
    """Count words as they come: a result for each."""
    lines = [_LINES[at % len(_LINES)] for at in range(count // 10)]
    read = app.read(Prepared(lines, [_START_MS] * len(lines)))
    return read.flat_map(lambda line: line.split()).key_by(lambda word: word).count()


def _windows(app: gp.StreamApp, form: str, count: int) -> gp.Stream[Any]:
    """Count in windows of ten seconds by 1,000 keys, 100 records each ms."""
    times = [_START_MS + at // 100 for at in range(count)]
    keys = [at % 1000 for at in range(count)]
    if form == "rows":
        read = app.read(Prepared(list(zip(keys, times, strict=True)), times))
        return read.key_by(lambda pair: pair[0]).window(gp.tumbling("10s")).count()
    table = pa.table({"key": keys, "time": times}).to_batches(max_chunksize=_TABLE_ROWS)
    source = _prepared(table, schema={"key": int, "time": int}, time="time")
    return app.read(source).key_by("key").window(gp.tumbling("10s")).count()


def _loop_of_words(count: int) -> None:
    counts: dict[str, int] = {}
    for at in range(count // 10):
        for word in _LINES[at % len(_LINES)].split():
            counts[word] = counts.get(word, 0) + 1


def _loop_of_windows(pairs: list[tuple[int, int]]) -> None:
    counts: dict[tuple[int, int], int] = {}
    for key, at in pairs:
        of = (key, at // 10_000)
        counts[of] = counts.get(of, 0) + 1


def ask_gearpy(made: MadeEvents, query: str, count: int, *, checks: bool) -> dict[str, Any]:
    app = gp.StreamApp(query)
    sink = _Counting(keeps=checks, is_columnar=made.form in _IN_TABLES)
    if made.form == "sql":
        ends = query in AT_THE_END
        sources = {name: made.source(kind, count, ends=ends) for name, kind in _KINDS.items()}
        answers = sql.asked(query, app, made.nexmark, sources)
    elif query in {"words", "windows"}:
        answers = _words(app, count) if query == "words" else _windows(app, made.form, count)
    else:
        answers = queries.QUERIES[query](PreparedStreams(app, made, query, count))
    answers.write(sink)
    gc.collect()
    begin_s = time.process_time()
    gp.run(app)
    cpu_s = time.process_time() - begin_s
    rows = sql_rows if made.form == "sql" else answer_rows
    return {"cpu": cpu_s} | (checksum(rows(query, sink.kept)) if checks else {})


def ask_duckdb(made: MadeEvents, query: str, count: int, *, checks: bool) -> dict[str, Any]:
    # It is no part of what a run of gearpy needs.
    from tests.bench import nexmark_duckdb  # noqa: PLC0415

    tables = {name: made.tables(kind, count) for name, kind in _KINDS.items()}
    begin_s = time.process_time()
    answer = nexmark_duckdb.answer_of(query, tables)
    cpu_s = time.process_time() - begin_s
    return {"cpu": cpu_s} | (checksum(nexmark_duckdb.rows_of(answer)) if checks else {})


def ask_loop(made: MadeEvents, query: str, count: int, *, checks: bool) -> dict[str, Any]:
    site = Site(made.rows(None, count)[0], made.rows(site_events.Bid, count)[0], site_events.Bid)
    pairs = [(at % 1000, at // 100) for at in range(count)] if query == "windows" else []
    begin_s = time.process_time()
    rows: Any = ()
    if query == "words":
        _loop_of_words(count)
    elif query == "windows":
        _loop_of_windows(pairs)
    else:
        rows = LOOPS[query](site)
    cpu_s = time.process_time() - begin_s
    return {"cpu": cpu_s} | (checksum(rows) if checks else {})


def main() -> None:
    form, most = sys.argv[1], int(sys.argv[2])
    made = MadeEvents(form, most)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        query, _, count, what = line.split()
        ask = {"loop": ask_loop, "duckdb": ask_duckdb}.get(form, ask_gearpy)
        try:
            said = ask(made, query, int(count), checks=what == "check")
        except Exception as error:  # noqa: BLE001 - the next question may be one it can answer
            said = {"error": f"{type(error).__name__}: {error}"[:300]}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
