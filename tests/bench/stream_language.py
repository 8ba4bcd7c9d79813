"""Numbered records through the stream language's windows, joins and columns, and their answer.

Each operator writes into a folder of its own that readers see each record of once. What must be
there in the end is computed from the same numbers by plain loops. The module is also the program
that a cluster is given.
"""

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any, Final, TypeAlias

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

import gearpy as gp
from tests.bench.numbered import LOOK_EVERY, PARTITIONS, Line, Verdict, compare, numbers

#: Tasks of each step.
PARALLELISM: Final = 2

#: Folders of results; those of ``tables`` are Parquet files.
OUTPUTS: Final = (
    "records",
    "rested",
    "sessions",
    "sliding",
    "near",
    "together",
    "best",
    "different",
    "tables",
    "columns",
)
_KEYS: Final = 16  # Of each partition.
_OUT_OF_ORDER_MS: Final = 4
#: Every so many numbers one comes much later than its time.
_LATE_EVERY: Final = 10
#: Longer than any of them is late.
_LATENESS_MS: Final = 100
_BURST: Final = 40  # Numbers with one key of sessions, side by side.
_BURSTS: Final = 5
_GAP_MS: Final = 12
_EARLY: Final = 7
_SLIDING_MS: Final = (200, 50)
_WORDS: Final = 13
_NEAR_MS: Final = (3, 5)
_TOGETHER_MS: Final = 100
_BEST_MS: Final = 100
_BEST: Final = 3
_TIERS: Final = 3
_PER_DIFFERENT: Final = 20
_COLUMNS_MS: Final = 200
_GROUPS: Final = 7
_REST_S: Final = 0.05

#: A record of the source of rows: partition and number.
_Record: TypeAlias = tuple[int, int]
#: The same behind the first step, with its place in its key.
_Row: TypeAlias = dict[str, Any]
_Expected: TypeAlias = dict[tuple[str, int], Any]

_SCHEMA: Final = pa.schema(
    [("partition", pa.int64()), ("n", pa.int64()), ("at", pa.int64()), ("group", pa.int64())]
)


# -- the program ---------------------------------------------------------------------------------


def main(args: list[str]) -> gp.StreamApp:
    """Return the application; ``args`` are the folder of results and the records per second."""
    folder, rate = args
    return language_app(Path(folder), rate=float(rate))


def language_app(
    folder: Path,
    *,
    rate: float,
    parallelism: int = PARALLELISM,
    sink: Callable[[Path], gp.Sink] = gp.jsonl_folder,
    step: Callable[[_Record], _Record] = lambda record: record,
) -> gp.StreamApp:
    """Return the application; it ends where `numbered.set_end` says.

    Args:
        rate: records per second of all partitions together, of rows and of tables alike.
        step: called with each record behind the source; returns it, or raises.
    """
    app = gp.StreamApp("language", parallelism=parallelism)
    rows = _add_rows(app, folder, rate, sink, step)
    tables = _add_tables(app, folder, rate, sink)
    prompt = rows.filter(lambda row: not is_late(row["n"]))
    _add_prompt(prompt, folder, sink)
    _add_joins(prompt, tables, folder, sink)
    return app


def _add_rows(
    app: gp.StreamApp,
    folder: Path,
    rate: float,
    sink: Callable[[Path], gp.Sink],
    step: Callable[[_Record], _Record],
) -> gp.Stream[_Row]:
    """Add what takes late records; return all of them, each with its place in its key."""
    source = gp.generate(
        lambda partition: numbers(int(partition), folder),
        rate=rate,
        partitions=PARTITIONS,
        timestamp=lambda record: time_of(record[1]),
        out_of_order=f"{_OUT_OF_ORDER_MS}ms",
    )
    rested = app.read(source, parallelism=PARALLELISM).map(step).map_async(_rest)
    rested.map(_named).write(sink(folder / "rested"))
    rows = rested.key_by(_key).map_with_state(_number, initial=0)
    rows.write(sink(folder / "records"))
    sessions = gp.session(f"{_GAP_MS}ms").retracting().allowed_lateness(f"{_LATENESS_MS}ms")
    early = gp.after_watermark(early=gp.every(count=_EARLY), late=gp.every(count=2))
    bursts = rows.key_by(lambda row: _burst_of(row["n"])).window(sessions.triggering(early))
    bursts.aggregate(records=gp.agg.count(), sum=gp.agg.sum("n")).write(sink(folder / "sessions"))
    return rows


def _add_prompt(rows: gp.Stream[_Row], folder: Path, sink: Callable[[Path], gp.Sink]) -> None:
    size_ms, every_ms = _SLIDING_MS
    words = rows.key_by(lambda row: _word_of(row["n"])).window(
        gp.sliding(f"{size_ms}ms", f"{every_ms}ms")
    )
    words.aggregate(records=gp.agg.count(), sum=gp.agg.sum("n")).write(sink(folder / "sliding"))

    tiers = rows.key_by(lambda row: row["n"] % _TIERS).window(gp.tumbling(f"{_BEST_MS}ms"))
    tiers.top_n(_BEST, _rank).map(_best_named).write(sink(folder / "best"))
    different = rows.distinct(lambda row: row["n"] // _PER_DIFFERENT, within="2s")
    different.map(lambda row: {"of": row["n"] // _PER_DIFFERENT}).write(sink(folder / "different"))


def _add_joins(
    rows: gp.Stream[_Row], tables: gp.Stream[_Row], folder: Path, sink: Callable[[Path], gp.Sink]
) -> None:
    """Add joins, one of them of both sources, whose epochs so end together."""
    before, after = _NEAR_MS
    left = rows.filter(lambda row: _is_near_left(row["n"])).key_by(_near_key)
    right = tables.filter(lambda row: _is_near_right(row["n"])).key_by(_near_key)
    near = left.join_interval(
        right, before=f"{before}ms", after=f"{after}ms", how="outer", combine=_pair
    )
    near.write(sink(folder / "near"))

    ones = rows.filter(lambda row: _is_together_left(row["n"])).key_by(_together_key)
    others = rows.filter(lambda row: _is_together_right(row["n"])).key_by(_together_key)
    together = ones.join(others, gp.tumbling(f"{_TOGETHER_MS}ms"), how="outer")
    together.map(_pair_in_window).write(sink(folder / "together"))


def _add_tables(
    app: gp.StreamApp, folder: Path, rate: float, sink: Callable[[Path], gp.Sink]
) -> gp.Stream[_Row]:
    source = gp.generate_tables(
        lambda partition: number_tables(int(partition), folder, _columns),
        schema=_SCHEMA,
        time="at",
        rate=rate,
        partitions=PARTITIONS,
        out_of_order=f"{_OUT_OF_ORDER_MS}ms",
    )
    tables = app.read(source, parallelism=PARALLELISM)
    tables.write(gp.parquet_folder(folder / "tables", schema=_SCHEMA))
    groups = tables.key_by("group").window(gp.tumbling(f"{_COLUMNS_MS}ms"))
    groups.aggregate(records=gp.agg.count(), sum=gp.agg.sum("n"), most=gp.agg.max("n")).write(
        sink(folder / "columns")
    )
    return tables


async def _rest(record: _Record) -> _Record:
    await asyncio.sleep(random.random() * _REST_S)
    return record


def number_tables(
    partition: int, folder: Path, columns: Callable[[int, list[int]], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the numbers of a partition, a table between two looks for the end."""
    records = numbers(partition, folder)
    while taken := [n for _, n in islice(records, LOOK_EVERY)]:
        yield columns(partition, taken)


def _columns(partition: int, taken: list[int]) -> pa.RecordBatch:
    columns = {
        "partition": [partition] * len(taken),
        "n": taken,
        "at": [n ^ 3 for n in taken],
        "group": [n % _GROUPS for n in taken],
    }
    return pa.RecordBatch.from_pydict(columns, schema=_SCHEMA)


def is_late(n: int) -> bool:
    return n % _LATE_EVERY == _LATE_EVERY - 1


def time_of(n: int) -> int:
    """Return the event time of a number: near to it, or long before if it is a late one."""
    return max(0, n - 25 - n * 7 % 30) if is_late(n) else n ^ 3


def _named(record: _Record) -> dict[str, int]:
    partition, n = record
    return {"partition": partition, "n": n}


def _key(record: _Record) -> str:
    partition, n = record
    return f"{partition}-{n % _KEYS}"


def _number(seq: int, record: _Record) -> tuple[int, _Row]:
    """Give a record the number of records of its key that came before."""
    partition, n = record
    return seq + 1, {"key": _key(record), "seq": seq, "partition": partition, "n": n}


def _burst_of(n: int) -> str:
    return f"burst{n // _BURST % _BURSTS}"


def _word_of(n: int) -> str:
    return f"word{n * 5 % _WORDS}"


def _is_near_left(n: int) -> bool:
    return n % 6 == 0 and n // 12 % 5 != 1


def _is_near_right(n: int) -> bool:
    return n % 6 == 1 and n // 12 % 5 != 2 and not is_late(n)


def _near_key(row: _Row) -> tuple[int, int]:
    return row["partition"] // 2, row["n"] // 12 % 17


def _is_together_left(n: int) -> bool:
    return n % 25 == 0 and n // _TOGETHER_MS % 4 != 1


def _is_together_right(n: int) -> bool:
    return n % 25 == 7 and n // _TOGETHER_MS % 4 != 2


def _together_key(row: _Row) -> str:
    return f"half{row['partition'] // 2}"


def _name(row: _Row | None) -> str:
    return "nobody" if row is None else f"{row['partition']}-{row['n']}"


def _pair(left: _Row | None, right: _Row | None) -> dict[str, str]:
    return {"left": _name(left), "right": _name(right)}


def _pair_in_window(found: gp.JoinResult[str, _Row | None, _Row | None]) -> dict[str, Any]:
    return {"key": found.key, "start": found.start, **_pair(found.left, found.right)}


def _best_named(result: gp.WindowResult[int, list[_Row]]) -> dict[str, Any]:
    best = [_name(row) for row in result.value]
    return {"key": result.key, "start": result.start, "best": best}


# -- the answer ----------------------------------------------------------------------------------


def check(folder: Path, end: int) -> Verdict:
    """Compare the results in the folders with the answer for a stream up to ``end``."""
    verdict = Verdict()
    answer = expected_answer(end)
    for name in OUTPUTS:
        lines = _read_tables(folder / name) if name == "tables" else read_lines(folder / name)
        compare(name, _LINES_OF[name](lines), answer[name], verdict)
        verdict.pending += sum(1 for each in (folder / name / "_pending").glob("*"))
    return verdict


def read_lines(folder: Path) -> Iterator[Any]:
    for path in sorted(folder.glob("*.jsonl")):
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def _read_tables(folder: Path) -> Iterator[Any]:
    for path in sorted(folder.glob("*.parquet")):
        yield from pq.ParquetFile(path).read().to_pylist()


def _record_of(row: _Row) -> _Record:
    return row["partition"], row["n"]


def _each(line: Callable[[Any], Line]) -> Callable[[Iterable[Any]], Iterable[Line]]:
    return lambda found: map(line, found)


def last_sessions(found: Iterable[Any]) -> Iterator[Line]:
    """Yield the results of sessions that nothing has taken back; what takes back must fit."""
    standing: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for each in found:
        key = each["key"], json.dumps([each[name] for name in _SENT])
        line = Line(f"{each['key']} {each['start']}", 0, [each["end"], *each["value"].values()])
        if not each["retracts"]:
            standing[key].append(line)
        elif standing[key]:
            standing[key].pop()
        else:
            yield Line(f"taken back, but not there: {key}", 0, None)
    for lines in standing.values():
        yield from lines


_SENT: Final = ("start", "end", "value", "firing", "timing")
_TOGETHER: Final = ("key", "start", "left", "right")
_LINES_OF: Final[dict[str, Callable[[Iterable[Any]], Iterable[Line]]]] = {
    "records": _each(lambda each: Line(each["key"], each["seq"], each["n"])),
    # A cut by event time may let records of a partition change places that are less apart.
    "rested": _each(lambda each: Line(_key(_record_of(each)), each["n"], each["n"])),
    "sessions": last_sessions,
    "sliding": _each(lambda each: Line(each["key"], each["start"], [*each["value"].values()])),
    # Of pairs in one window, or in an interval, no order is promised.
    "near": _each(lambda each: Line(f"{each['left']} {each['right']}", 0, 1)),
    "together": _each(lambda each: Line(" ".join(str(each[name]) for name in _TOGETHER), 0, 1)),
    "best": _each(lambda each: Line(str(each["key"]), each["start"], each["best"])),
    "different": _each(lambda each: Line(str(each["of"]), 0, 1)),
    "tables": _each(
        lambda each: Line(_key(_record_of(each)), each["n"], [each["at"], each["group"]])
    ),
    "columns": _each(lambda each: Line(str(each["key"]), each["start"], [*each["value"].values()])),
}


def expected_answer(end: int) -> dict[str, _Expected]:
    rows = [{"partition": partition, "n": n} for n in range(end) for partition in range(PARTITIONS)]
    prompt = [row for row in rows if not is_late(row["n"])]
    return {
        "records": {
            (_key((row["partition"], row["n"])), row["n"] // _KEYS): row["n"] for row in rows
        },
        "rested": {(_key(_record_of(row)), row["n"]): row["n"] for row in rows},
        "sessions": dict(expected_sessions(((time_of(n), n) for n in range(end)), end)),
        "sliding": _expected_sliding(prompt),
        "near": dict.fromkeys(((pair, 0) for pair in _expected_near(prompt)), 1),
        "together": dict.fromkeys(_expected_together(prompt), 1),
        "best": _expected_best(prompt),
        "different": {(str(row["n"] // _PER_DIFFERENT), 0): 1 for row in prompt},
        "tables": {
            (_key(_record_of(row)), row["n"]): [row["n"] ^ 3, row["n"] % _GROUPS] for row in rows
        },
        "columns": _expected_columns(end),
    }


def expected_sessions(
    timed: Iterable[tuple[int, int]], end: int
) -> Iterator[tuple[tuple[str, int], list[int]]]:
    """Yield the sessions of numbers with their times, all of which are there in each partition."""
    bursts: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for each in timed:
        bursts[_burst_of(each[1])] += [each] * PARTITIONS
    for key, burst in bursts.items():
        session: list[tuple[int, int]] = []
        for each in [*sorted(burst), (end + 10 * _GAP_MS, 0)]:
            if session and each[0] >= session[-1][0] + _GAP_MS:
                total = sum(n for _, n in session)
                stop_ms = session[-1][0] + _GAP_MS
                yield (f"{key} {session[0][0]}", 0), [stop_ms, len(session), total]
                session = []
            session.append(each)


def _expected_sliding(prompt: list[_Row]) -> _Expected:
    size_ms, every_ms = _SLIDING_MS
    windows: _Expected = defaultdict(lambda: [0, 0])
    for row in prompt:
        time_ms = time_of(row["n"])
        for start_ms in range(time_ms // every_ms * every_ms, time_ms - size_ms, -every_ms):
            found = windows[_word_of(row["n"]), start_ms]
            found[0] += 1
            found[1] += row["n"]
    return windows


def _expected_near(prompt: list[_Row]) -> Iterator[str]:
    before, after = _NEAR_MS
    left = [row for row in prompt if _is_near_left(row["n"])]
    right = [row for row in prompt if _is_near_right(row["n"])]
    at: dict[Any, list[_Row]] = defaultdict(list)
    for row in right:
        at[_near_key(row), time_of(row["n"])].append(row)
    paired: set[str] = set()
    for row in left:
        time_ms = time_of(row["n"])
        near = range(time_ms - before, time_ms + after + 1)
        found = [each for near_ms in near for each in at.get((_near_key(row), near_ms), ())]
        partners = _names(found)
        paired.update(partners)
        yield from (f"{_name(row)} {partner}" for partner in partners)
    yield from (f"{_name(None)} {_name(row)}" for row in right if _name(row) not in paired)


def _expected_together(prompt: list[_Row]) -> Iterator[tuple[str, int]]:
    windows: dict[Any, tuple[list[_Row], list[_Row]]] = defaultdict(lambda: ([], []))
    for row in prompt:
        of = _together_key(row), time_of(row["n"]) // _TOGETHER_MS * _TOGETHER_MS
        for side, takes in enumerate((_is_together_left, _is_together_right)):
            if takes(row["n"]):
                windows[of][side].append(row)
    for (key, start_ms), (left, right) in windows.items():
        for one, other in product(_names(left), _names(right)):
            yield f"{key} {start_ms} {one} {other}", 0


def _names(side: list[_Row]) -> list[str]:
    """Return those of the records of one side of a join, or that nobody is there."""
    return [_name(row) for row in side] or [_name(None)]


def _expected_best(prompt: list[_Row]) -> _Expected:
    windows: dict[tuple[str, int], list[_Row]] = defaultdict(list)
    for row in prompt:
        start_ms = time_of(row["n"]) // _BEST_MS * _BEST_MS
        windows[str(row["n"] % _TIERS), start_ms].append(row)
    return {
        of: [_name(row) for row in sorted(rows, key=_rank, reverse=True)[:_BEST]]
        for of, rows in windows.items()
    }


def _rank(row: _Row) -> tuple[int, int]:
    return row["n"], row["partition"]


def _expected_columns(end: int) -> _Expected:
    windows: dict[tuple[str, int], list[int]] = {}
    for n in range(end):
        of = str(n % _GROUPS), (n ^ 3) // _COLUMNS_MS * _COLUMNS_MS
        records, total, most = windows.get(of, [0, 0, 0])
        windows[of] = [records + PARTITIONS, total + n * PARTITIONS, max(most, n)]
    return windows
