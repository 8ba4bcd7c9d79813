"""Windows that are in Spark's tables once, whichever process is killed, and when.

``bin/bench spark-crash`` does the same a hundred times and more.
"""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from tests.bench.crash import Blow, CrashReport, Struck, crash
from tests.bench.spark_crash import TablesVerdict, spark_target
from tests.bench.spark_plan import READER, SINK, again, plan_of
from tests.bench.spark_program import EXACT, NAIVE, TableVerdict, check_table, expected_windows

#: The second one is struck between the write of the function and its note.
_PLAN: Final = (
    Blow("executor SIGKILL", "prepare"),
    Blow("executor SIGKILL", "written"),
    Blow(READER, "intent"),
    Blow(SINK, "written"),
)
_END: Final = 400


@pytest.mark.long
def test_windows_are_in_every_table_once_whoever_is_killed(tmp_path: Path) -> None:
    """Executors and JVMs, in the middle of an epoch and of a call; what is only appended is not."""
    report = crash(tmp_path, spark_target(), _PLAN, seed=1, rate=800)

    assert report.is_good, [*report.lines()]
    assert Counter(each.kind for each in report.struck) == Counter(each.kind for each in _PLAN)


def test_a_plan_has_every_phase() -> None:
    plan = plan_of(100, 30, random.Random(1))

    kinds = Counter(blow.kind for blow in plan)
    phases = Counter(blow.phase for blow in plan if blow.kind == "executor SIGKILL")
    assert (kinds["executor SIGKILL"], kinds[SINK] + kinds[READER]) == (100, 30)
    assert kinds.total() == 150
    assert len(phases) == 8
    assert min(phases.values()) == 12
    assert plan == plan_of(100, 30, random.Random(1))


def _table(rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(rows)


def _right_rows() -> list[dict[str, object]]:
    return [
        {
            "word": window.word,
            "shard": window.shard,
            "window_start": window.start_ms,
            "window_end": window.start_ms + 100,
            "records": records,
            "total": total,
            "retracts": False,
        }
        for window, (records, total) in expected_windows(_END).items()
    ]


_FAILINGS: Final[dict[str, tuple[Callable[[list[dict[str, object]]], object], tuple[int, ...]]]] = {
    "right": (lambda _: None, (0, 0, 0)),
    "lost": (lambda rows: rows.pop(), (1, 0, 0)),
    "twice": (lambda rows: rows.append(rows[0]), (0, 1, 0)),
    "wrong": (lambda rows: rows[0].update(total=-1), (0, 0, 1)),
    "taken back": (lambda rows: rows[0].update(retracts=True), (0, 0, 1)),
    "too long": (lambda rows: rows[0].update(window_end=10**6), (0, 0, 1)),
    "no window": (lambda rows: rows.append({**rows[0], "word": "another"}), (0, 0, 1)),
}


@pytest.mark.parametrize("failing", _FAILINGS)
def test_the_checker_finds_each_failing(failing: str) -> None:
    harm, counts = _FAILINGS[failing]
    rows = _right_rows()
    harm(rows)

    verdict = check_table("table", _table(rows), expected_windows(_END))

    assert (verdict.lost, verdict.twice, verdict.wrong) == counts
    assert verdict.is_exact == (failing == "right")
    assert bool(verdict.samples) == (failing not in {"right", "twice"})


def test_times_are_taken_as_spark_writes_them() -> None:
    rows = _table(_right_rows())
    for name in ("window_start", "window_end"):
        at = rows.schema.get_field_index(name)
        times = rows.column(name).cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
        rows = rows.set_column(at, name, times)
    shards = rows.column("shard").cast(pa.string())
    rows = rows.set_column(rows.schema.get_field_index("shard"), "shard", shards)

    assert check_table("table", rows, expected_windows(_END)).is_exact


def test_a_plan_is_done_again_in_another_order() -> None:
    plan = plan_of(10, 4, random.Random(1))
    endless = again(plan, random.Random(1), minutes=1000)

    first, second = [next(endless) for _ in plan], [next(endless) for _ in plan]

    assert [*again(plan, random.Random(1), minutes=0)] == plan == first
    assert second != plan
    assert Counter(second) == Counter(plan)


def _tables() -> list[TableVerdict]:
    exact = [TableVerdict(name, rows=2, expected=2) for name in EXACT]
    return [*exact, TableVerdict(NAIVE, twice=1)]


_BAD: Final[dict[str, Callable[[list[TableVerdict]], object]]] = {
    "no table": lambda tables: tables.pop(0),
    "twice": lambda tables: setattr(tables[0], "twice", 1),
    "lost from naive": lambda tables: setattr(tables[-1], "lost", 1),
    "no repetition": lambda tables: setattr(tables[-1], "twice", 0),
}


@pytest.mark.parametrize("bad", _BAD)
def test_a_run_is_good_only_if_all_tables_are(bad: str) -> None:
    tables = _tables()
    assert TablesVerdict(tables).is_exact

    _BAD[bad](tables)

    assert not TablesVerdict(tables).is_exact


def test_a_report_has_a_row_for_each_table() -> None:
    report = CrashReport(
        struck=[Struck(1.0, "executor SIGKILL", "commit"), Struck(2.0, SINK, "written")],
        status="succeeded",
        outcome=TablesVerdict(_tables()),
    )
    lines = [*report.lines()]

    assert report.is_good
    assert sum("exact" in line for line in lines) == len(EXACT)
    assert "repeats, as it must" in lines[-1]
