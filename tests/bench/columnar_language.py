"""Numbered tables through every step that works in columns, and their answer.

Each step writes into a folder of its own that readers see each record of once. What must be there
in the end is computed from the same numbers by plain loops. The module is also the program that a
cluster is given.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

import gearpy as gp
from tests.bench.numbered import PARTITIONS, Line, Verdict, compare
from tests.bench.stream_language import (
    expected_sessions,
    is_late,
    last_sessions,
    number_tables,
    read_lines,
    time_of,
)

#: Tasks of each step.
PARALLELISM: Final = 2
_OUT_OF_ORDER_MS: Final = 4
_LATENESS_MS: Final = 100
_GAP_MS: Final = 12
_EARLY: Final = 7
_SLIDING_MS: Final = (200, 50)
_BEST_MS: Final = 100
_BEST: Final = 3
_NEAR_MS: Final = (3, 5)
_APART_MS: Final = 4
_LAST: Final = 5
_PER_DIFFERENT: Final = 20

_Row: TypeAlias = dict[str, Any]
_Expected: TypeAlias = dict[tuple[str, int], Any]

_SCHEMA: Final = pa.schema(
    [(name, pa.int64()) for name in ("partition", "n", "at", "late_at", "group", "word", "near")]
    + [("burst", pa.string())]
)


# -- the program ---------------------------------------------------------------------------------


def main(args: list[str]) -> gp.StreamApp:
    """Return the application; ``args`` are the folder of results and the records per second."""
    folder, rate = args
    return columnar_app(Path(folder), rate=float(rate))


def columnar_app(
    folder: Path,
    *,
    rate: float,
    parallelism: int = PARALLELISM,
    sink: Callable[[Path], gp.Sink] = gp.jsonl_folder,
) -> gp.StreamApp:
    """Return the application; it ends where `numbered.set_end` says."""
    app = gp.StreamApp("columnar", parallelism=parallelism)
    source = gp.generate_tables(
        lambda partition: number_tables(int(partition), folder, _columns),
        schema=_SCHEMA,
        time="late_at",
        rate=rate,
        partitions=PARTITIONS,
        out_of_order=f"{_OUT_OF_ORDER_MS}ms",
    )
    tables = app.read(source, parallelism=PARALLELISM)
    tables.select("partition", "n").write(sink(folder / "records"))  # Tells epochs.
    late, prompt = tables.split(gp.col("late_at") != gp.col("at"))
    late.select("partition", "n").write(sink(folder / "late"))

    sessions = gp.session(f"{_GAP_MS}ms").retracting().allowed_lateness(f"{_LATENESS_MS}ms")
    early = gp.after_watermark(early=gp.every(count=_EARLY), late=gp.every(count=2))
    bursts = tables.key_by("burst").window(sessions.triggering(early))
    bursts.aggregate(records=gp.agg.count(), sum=gp.agg.sum("n")).write(sink(folder / "corrected"))

    mended = gp.tumbling(f"{_BEST_MS}ms").retracting().allowed_lateness(f"{_LATENESS_MS}ms")
    early = gp.after_watermark(early=gp.every(event="30ms"))
    words = tables.key_by("word").window(mended.triggering(early))
    words.aggregate(records=gp.agg.count(), sum=gp.agg.sum("n")).write(sink(folder / "mended"))

    bursts = prompt.key_by("burst").window(gp.session(f"{_GAP_MS}ms"))
    bursts.aggregate(records=gp.agg.count(), sum=gp.agg.sum("n")).write(sink(folder / "sessions"))

    size_ms, every_ms = _SLIDING_MS
    words = prompt.key_by("word").window(gp.sliding(f"{size_ms}ms", f"{every_ms}ms"))
    words.aggregate(
        records=gp.agg.count(),
        sum=gp.agg.sum(gp.col("n") * 2),
        odd=gp.agg.count(where=gp.col("n") % 2 == 1),
    ).write(sink(folder / "sliding"))

    running = prompt.key_by("word").aggregate(records=gp.agg.count(), sum=gp.agg.sum("n"))
    running.write(sink(folder / "running"))

    ranked = prompt.with_columns(rank=gp.col("n") * PARTITIONS + gp.col("partition"))
    best = ranked.key_by("group").window(gp.tumbling(f"{_BEST_MS}ms"))
    best.top_n(_BEST, "rank").write(sink(folder / "best"))
    leading = ranked.key_by("group").top_n(_BEST, "rank", when="changed")
    leading.write(sink(folder / "leading"))

    last = prompt.key_by("partition", "word").rolling(
        _LAST, records=gp.agg.count(), sum=gp.agg.sum("n"), newest=gp.agg.last("n")
    )
    last.write(sink(folder / "last"))

    different = prompt.with_columns(of=gp.col("n") // _PER_DIFFERENT).distinct("of", within="2s")
    different.select("of").write(sink(folder / "different"))

    steps = prompt.key_by("partition", "word").pairwise()
    steps.map(lambda pair: {"before": pair[0], "after": pair[1]}).write(sink(folder / "steps"))
    _add_joins(prompt, folder, sink)
    return app


def _add_joins(prompt: gp.Stream[_Row], folder: Path, sink: Callable[[Path], gp.Sink]) -> None:
    left = prompt.filter(gp.col("n") % 6 == 0).key_by("partition", "near")
    right = prompt.filter(gp.col("n") % 6 == 1).key_by("partition", "near")
    before, after = _NEAR_MS
    near = left.join_interval(right, before=f"{before}ms", after=f"{after}ms", how="outer")
    near.map(_pair).write(sink(folder / "near"))
    left.join_asof(right, tolerance="1s").map(_pair).write(sink(folder / "asof"))
    left.join_latest(right).map(_pair).write(sink(folder / "latest"))
    together = left.join(right, gp.tumbling(f"{_BEST_MS}ms"), how="outer")
    together.map(_pair).write(sink(folder / "together"))
    awake = left.join(right, gp.session(f"{_APART_MS}ms"), how="outer")
    awake.map(_pair).write(sink(folder / "awake"))


def _columns(partition: int, numbers: list[int]) -> pa.RecordBatch:
    columns = {
        "partition": [partition] * len(numbers),
        "n": numbers,
        "at": [n ^ 3 for n in numbers],
        "late_at": [time_of(n) for n in numbers],
        "group": [_group_of(n) for n in numbers],
        "word": [_word_of(n) for n in numbers],
        "near": [_near_of(n) for n in numbers],
        "burst": [f"burst{n // 40 % 5}" for n in numbers],
    }
    return pa.RecordBatch.from_pydict(columns, schema=_SCHEMA)


def _key(partition: int, n: int) -> str:
    return f"{partition}-{n % 16}"


def _group_of(n: int) -> int:
    return n % 7


def _word_of(n: int) -> int:
    return n * 5 % 13


def _near_of(n: int) -> int:
    return n // 12 % 17


def _name(row: _Row | None) -> str:
    return "nobody" if row is None else f"{row['partition']}-{row['n']}"


def _pair(found: gp.JoinResult[Any, _Row | None, _Row | None]) -> dict[str, Any]:
    return {"left": _name(found.left), "right": _name(found.right)}


# -- the answer ----------------------------------------------------------------------------------


def check(folder: Path, end: int) -> Verdict:
    """Compare the results in the folders with the answer for a stream up to ``end``."""
    verdict = Verdict()
    for name, expected in expected_answer(end).items():
        compare(name, _LINES_OF[name](read_lines(folder / name)), expected, verdict)
        verdict.pending += sum(1 for each in (folder / name / "_pending").glob("*"))
    return verdict


def _each(line: Callable[[Any], Line]) -> Callable[[Iterable[Any]], Iterable[Line]]:
    return lambda found: map(line, found)


def _of_window(each: _Row) -> Line:
    return Line(str(each["key"]), each["start"], [*each["value"].values()])


# A cut by event time may let records of a partition change places that are less apart.
_OF_NUMBER: Final = _each(lambda each: Line(_key(each["partition"], each["n"]), each["n"], 1))
_OF_PAIR: Final = _each(lambda each: Line(f"{each['left']} {each['right']}", 0, 1))
_LINES_OF: Final[dict[str, Callable[[Iterable[Any]], Iterable[Line]]]] = {
    "records": _OF_NUMBER,
    "late": _OF_NUMBER,
    "corrected": last_sessions,
    "mended": last_sessions,
    "sessions": _each(_of_window),
    "sliding": _each(_of_window),
    "running": _each(lambda each: Line(str(each[0]), each[1]["records"], each[1]["sum"])),
    "best": _each(
        lambda each: Line(str(each["key"]), each["start"], [_name(row) for row in each["value"]])
    ),
    "leading": _each(
        lambda each: Line(" ".join([str(each[0]), *map(_name, each[1])]), 0, len(each[1]))
    ),
    "last": _each(
        lambda each: Line(
            " ".join(map(str, each[0])), each[1]["newest"], [each[1]["records"], each[1]["sum"]]
        )
    ),
    "different": _each(lambda each: Line(str(each["of"]), 0, 1)),
    "steps": _each(
        lambda each: Line(
            f"{each['after']['partition']} {each['after']['word']}",
            each["after"]["n"],
            each["before"]["n"],
        )
    ),
    "near": _OF_PAIR,
    "asof": _OF_PAIR,
    "latest": _OF_PAIR,
    "together": _OF_PAIR,
    "awake": _OF_PAIR,
}
#: Folders of results.
OUTPUTS: Final = tuple(_LINES_OF)


def expected_answer(end: int) -> dict[str, _Expected]:
    prompt = sorted(n ^ 3 for n in range(end) if not is_late(n))  # Times, and the other way round.
    numbers = [time_ms ^ 3 for time_ms in prompt]
    return {
        "records": {
            (_key(partition, n), n): 1 for partition in range(PARTITIONS) for n in range(end)
        },
        "late": {
            (_key(partition, n), n): 1
            for partition in range(PARTITIONS)
            for n in range(end)
            if time_of(n) != n ^ 3
        },
        "corrected": dict(expected_sessions(((time_of(n), n) for n in range(end)), end)),
        "mended": _expected_mended(end),
        "sessions": {
            (key.split()[0], int(key.split()[1])): value[1:]
            for (key, _), value in expected_sessions(((n ^ 3, n) for n in numbers), end)
        },
        "sliding": _expected_sliding(numbers),
        "running": _expected_running(numbers),
        "best": _expected_best(numbers),
        "leading": _expected_leading(numbers),
        "last": dict(_expected_last(numbers)),
        "different": {(str(n // _PER_DIFFERENT), 0): 1 for n in numbers},
        "steps": dict(_expected_steps(numbers)),
        **{name: {(pair, 0): 1 for pair in pairs(numbers)} for name, pairs in _PAIRS.items()},
    }


def _expected_mended(end: int) -> _Expected:
    windows: _Expected = {}
    for n in range(end):
        start_ms = time_of(n) // _BEST_MS * _BEST_MS
        empty = [start_ms + _BEST_MS, 0, 0]
        found = windows.setdefault((f"{_word_of(n)} {start_ms}", 0), empty)
        found[1] += PARTITIONS
        found[2] += n * PARTITIONS
    return windows


def _expected_sliding(numbers: list[int]) -> _Expected:
    size_ms, every_ms = _SLIDING_MS
    windows: _Expected = defaultdict(lambda: [0, 0, 0])
    for n in numbers:
        time_ms = n ^ 3
        for start_ms in range(time_ms // every_ms * every_ms, time_ms - size_ms, -every_ms):
            found = windows[str(_word_of(n)), start_ms]
            found[0] += PARTITIONS
            found[1] += 2 * n * PARTITIONS
            found[2] += n % 2 * PARTITIONS
    return windows


def _expected_running(numbers: list[int]) -> _Expected:
    """Add up in order of time; of records of one time, one is as good as another."""
    running: _Expected = {}
    totals: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for n in numbers:
        total = totals[_word_of(n)]
        for _ in range(PARTITIONS):
            total[0] += 1
            total[1] += n
            running[str(_word_of(n)), total[0]] = total[1]
    return running


def _expected_best(numbers: list[int]) -> _Expected:
    windows: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for n in numbers:
        start_ms = (n ^ 3) // _BEST_MS * _BEST_MS
        windows[str(_group_of(n)), start_ms] += [(n, partition) for partition in range(PARTITIONS)]
    return {
        of: [f"{partition}-{n}" for n, partition in sorted(ranked, reverse=True)[:_BEST]]
        for of, ranked in windows.items()
    }


def _expected_leading(numbers: list[int]) -> _Expected:
    """Rank in order of time, records of one time in that of their partitions."""
    found: _Expected = {}
    leaders: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for n in numbers:
        for partition in range(PARTITIONS):
            kept = leaders[_group_of(n)]
            ranked = sorted([*kept, (n, partition)], reverse=True)[:_BEST]
            if (n, partition) in ranked:
                kept[:] = ranked
                names = (f"{of}-{number}" for number, of in ranked)
                found[" ".join([str(_group_of(n)), *names]), 0] = len(ranked)
    return found


def _expected_last(numbers: list[int]) -> Iterator[tuple[tuple[str, int], list[int]]]:
    words: dict[int, list[int]] = defaultdict(list)
    for n in numbers:
        last = words[_word_of(n)] = [*words[_word_of(n)], n][-_LAST:]
        for partition in range(PARTITIONS):
            yield (f"{partition} {_word_of(n)}", n), [len(last), sum(last)]


def _expected_steps(numbers: list[int]) -> Iterator[tuple[tuple[str, int], int]]:
    words: dict[int, list[int]] = defaultdict(list)
    for n in numbers:
        words[_word_of(n)].append(n)
    for word, found in words.items():
        for before, after in pairwise(found):
            for partition in range(PARTITIONS):
                yield (f"{partition} {word}", after), before


def _sides(numbers: list[int]) -> dict[int, tuple[list[int], list[int]]]:
    """Return the times of both sides of joins by key, in order."""
    sides: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for n in numbers:
        if n % 6 < 2:
            sides[_near_of(n)][n % 6].append(n ^ 3)
    return sides


def _everywhere(pairs: Iterable[tuple[int | None, int | None]]) -> Iterator[str]:
    """Name pairs of times in all partitions, whose keys are apart."""
    for pair in pairs:
        for partition in range(PARTITIONS):
            yield " ".join("nobody" if of is None else f"{partition}-{of ^ 3}" for of in pair)


def _outer(
    left: list[int], right: list[int], fits: Callable[[int, int], bool]
) -> Iterator[tuple[int | None, int | None]]:
    found = [(one, other) for one in left for other in right if fits(one, other)]
    yield from found
    yield from ((one, None) for one in sorted({*left} - {one for one, _ in found}))
    yield from ((None, other) for other in sorted({*right} - {other for _, other in found}))


def _expected_near(numbers: list[int]) -> Iterator[str]:
    before, after = _NEAR_MS
    for left, right in _sides(numbers).values():
        yield from _everywhere(
            _outer(left, right, lambda one, other: -before <= other - one <= after)
        )


def _expected_together(numbers: list[int]) -> Iterator[str]:
    for left, right in _sides(numbers).values():
        yield from _everywhere(
            _outer(left, right, lambda one, other: one // _BEST_MS == other // _BEST_MS)
        )


def _expected_awake(numbers: list[int]) -> Iterator[str]:
    for left, right in _sides(numbers).values():
        times = sorted([*left, *right])
        session = dict.fromkeys(times, 0)
        for before, after in pairwise(session):
            session[after] = session[before] + (after - before >= _APART_MS)
        yield from _everywhere(
            _outer(left, right, lambda one, other: session[one] == session[other])  # noqa: B023
        )


def _expected_before(numbers: list[int], tolerance_ms: float) -> Iterator[str]:
    for left, right in _sides(numbers).values():
        for one in left:
            place = bisect_right(right, one) - 1
            is_near = place >= 0 and one - right[place] <= tolerance_ms
            yield from _everywhere([(one, right[place] if is_near else None)])


_PAIRS: Final[dict[str, Callable[[list[int]], Iterator[str]]]] = {
    "near": _expected_near,
    "asof": lambda numbers: _expected_before(numbers, 1_000),
    "latest": lambda numbers: _expected_before(numbers, float("inf")),
    "together": _expected_together,
    "awake": _expected_awake,
}
