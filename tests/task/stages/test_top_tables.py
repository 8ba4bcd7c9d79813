"""Of the largest records rows of columns are left out, and nothing else changes."""

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.columns.row_schema import RowSchema, as_table
from gearpy.core.base.fields import key_getter
from gearpy.core.window.windows import AlignedWindows
from gearpy.messages.data import Batch
from gearpy.messages.late_time import LateTime, late_time
from gearpy.messages.table import Table, Times
from gearpy.sql.plan.records import Rank
from gearpy.state.stores.store import Section
from gearpy.task.aggregates.rows import RunningAggregate, fold_of_one
from gearpy.task.aggregates.top_n import top_records
from gearpy.task.stages.top_tables import BestRowsStage, RunningTop
from tests.task.build import a_context
from tests.task.chain.test_event_gate import snapshot_of

SCHEMA = RowSchema(pa.schema([("k", pa.string()), ("v", pa.float64()), ("id", pa.int64())]))
KEY = key_getter("k")
NAN = float("nan")

VALUES = st.sampled_from([*map(float, range(6)), 2.5, 2.5, -float("inf"), None, NAN])
ROWS = st.lists(
    st.tuples(st.sampled_from("aab"), VALUES, st.integers(0, 40), st.just(0) | st.integers(0, 44)),
    min_size=1,
    max_size=12,
)
WINDOWS = [
    gp.tumbling("10ms"),
    gp.sliding("20ms", every="15ms"),
    gp.global_window(),
    gp.calendar("day"),
]


#: By the column alone, or by others where it is alike; None comes first or last.
RANKINGS = st.none() | st.builds(
    lambda *first: Rank((("v", *first), ("id", True, False))), st.booleans(), st.booleans()
)
#: Whole numbers that are compared, the least of which has no negative.
WHOLE = RowSchema(pa.schema([("k", pa.string()), ("v", pa.int64()), ("id", pa.int64())]))
LEAST = -(1 << 63)


def best(
    n: int, rows: list[tuple[Any, int]], windows: AlignedWindows, ranking: Rank | None
) -> dict[Any, Any]:
    """Return the ids of the largest records of each window and key, of some in their order."""
    found: dict[Any, Any] = {}
    top = top_records(n, ranking or "v")
    for row, time in rows:
        for start in windows.starts_of(time):
            kept = found.get((start, row["k"]), top.create())
            found[start, row["k"]] = top.add(kept, row)
    return {at: [row["id"] for row in top.result(kept)] for at, kept in found.items()}


@given(st.lists(ROWS, max_size=8), st.integers(1, 3), st.sampled_from(WINDOWS), RANKINGS)
def test_rows_that_are_left_out_are_not_among_the_largest(
    batches: list[Any], n: int, windows: AlignedWindows, ranking: Rank | None
) -> None:
    """Whether late records count or not, and in which order those of one time come."""
    stage = BestRowsStage(
        a_context(),
        "best",
        key=KEY,
        windows=windows,
        n=n,
        by="v",
        ranking=ranking,
        makes=False,
    )
    came, passed = list[tuple[Any, int]](), list[tuple[Any, int]]()
    for listed in batches:
        times = [late_time(time, promised) for *_, time, promised in listed]
        rows = [{"k": k, "v": v, "id": len(came) + at} for at, (k, v, *_) in enumerate(listed)]
        came += zip(rows, times, strict=True)
        batch = Batch(as_table(rows, SCHEMA), Times.of(times), has_late=True)
        for left in stage.process(batch):
            assert type(left.values) is Table
            passed += zip(SCHEMA.rows(left.values.batch), left.timestamps, strict=True)

    for turn in (1, -1):
        for takes_late in (True, False):
            all_of, some = (
                sorted(
                    [each for each in of if takes_late or type(each[1]) is not LateTime],
                    key=lambda each: (
                        getattr(each[1], "promised_ms", each[1]),
                        turn * each[0]["id"],
                    ),
                )
                for of in (came, passed)
            )
            assert best(n, some, windows, ranking) == best(n, all_of, windows, ranking)


@given(
    steps=st.lists(ROWS | st.just("epoch"), max_size=8),
    n=st.integers(1, 3),
    ranking=RANKINGS,
    are_whole=st.booleans(),
)
def test_changes_of_the_largest_are_those_of_rows(
    *, steps: list[Any], n: int, ranking: Rank | None, are_whole: bool
) -> None:
    """Also behind a restart in the other form."""
    fold = fold_of_one(top_records(n, ranking or "v"), only_changed=True)
    schema = WHOLE if are_whole else SCHEMA

    def stage_of(kept: list[Section], *, in_columns: bool) -> Any:
        context = a_context()
        assert context.keyed is not None
        context.keyed.load(kept)
        stage = (
            RunningTop(context, "top", KEY, fold, n=n, by="v", ranking=ranking, schema=schema)
            if in_columns
            else RunningAggregate(context, "top", KEY, fold)
        )
        stage.restore(None)
        return stage, context

    forms, kept = [True, False], [list[Section](), list[Section]()]
    stages = [stage_of([], in_columns=form) for form in forms]
    number = 0
    for step in steps:
        if step == "epoch":
            for at, (stage, context) in enumerate(stages):
                stage.snapshot()
                kept[at] += snapshot_of(context)
            forms.reverse()
            stages = [stage_of(of, in_columns=form) for of, form in zip(kept, forms, strict=True)]
            continue
        if are_whole:
            step = [(k, _whole(v), *times) for k, v, *times in step]  # noqa: PLW2901 - the same
        rows = [{"k": k, "v": v, "id": number + at} for at, (k, v, *_) in enumerate(step)]
        number += len(rows)
        times = [time for *_, time, _ in step]
        found = []
        for form, (stage, _) in zip(forms, stages, strict=True):
            batch = Batch(as_table(rows, schema), Times.of(times)) if form else Batch(rows, times)
            results = [
                each
                for out in stage.process(batch)
                for each in zip(out.values, out.timestamps, strict=True)
            ]
            found.append(repr(results))
        assert found[0] == found[1]


def _whole(value: float | None) -> int | None:
    """Return a whole number instead, the least one of all for what has none."""
    return value if value is None else int(value) if abs(value) < 6 else LEAST
