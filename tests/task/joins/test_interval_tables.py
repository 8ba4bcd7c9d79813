"""Joins by intervals in columns: the pairs are those of `IntervalJoin`."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.columns.row_schema import RowSchema
from gearpy.core.base.stable_hash import key_group
from gearpy.core.join.interval import IntervalJoin
from gearpy.core.join.sides import LEFT, RIGHT, How
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.state.stores.store import Section
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.joins.interval_tables import IntervalTablesStage
from gearpy.task.joins.join_schema import JoinSchema
from gearpy.task.joins.side_tables import SideStage
from gearpy.task.joins.streams import JoinSpec
from tests.task.build import a_context
from tests.task.chain.test_event_gate import snapshot_of

LEFTS = RowSchema(pa.schema([("k", pa.string()), ("m", pa.int32()), ("n", pa.int64())]))
RIGHTS = RowSchema(pa.schema([("n", pa.int64()), ("m", pa.int32()), ("k", pa.string())]))
SIDES = (LEFTS, RIGHTS)
KEY = ("k", "m")

FAR = [MIN_MS, MIN_MS + 2, -(1 << 40), 0, 1, 1 << 40, (1 << 40) + 2, MAX_MS - 1]


def steps_of(times: st.SearchStrategy[int]) -> st.SearchStrategy[list[Any]]:
    """Return records of a side, watermarks, and ends of epochs with a restart."""
    record = st.tuples(st.sampled_from("ab"), st.integers(0, 1), times)
    records = st.tuples(st.sampled_from((LEFT, RIGHT)), st.lists(record, min_size=1, max_size=8))
    rare = times | st.sampled_from(["epoch", "whole", "rescale"])
    return st.lists(records | records | rare, max_size=20)


STEPS = steps_of(st.integers(0, 30)) | steps_of(st.sampled_from(FAR))
BOUNDS = st.sampled_from([0, 1, 3, 50, 1 << 42])


class Tasks:
    """The tasks of a join, each of some of the keys; what they find."""

    def __init__(self, spec: JoinSpec) -> None:
        self._spec = spec
        self._schema = JoinSchema.of(LEFTS, RIGHTS, [*map(LEFTS.arrow.field, KEY)], spec.how)
        self._kept: list[Section] = []
        self._snapshot: Any = None
        self._watermark_ms = MIN_MS
        self.found: list[Any] = []
        self.start(1)

    def start(self, count: int) -> None:
        self.stages = [self._stage(at, count) for at in range(count)]

    def _stage(self, at: int, count: int) -> tuple[IntervalTablesStage, TaskContext]:
        context = a_context()
        assert context.keyed is not None
        context.keyed.load([each for each in self._kept if each.group % count == at])
        stage = IntervalTablesStage(context, "join", self._spec, self._schema)
        stage.restore(self._snapshot)
        return stage, context

    def take(self, side: int, values: list[dict[str, Any]], times: Sequence[int]) -> None:
        groups = [key_group((each["k"], each["m"])) for each in values]
        wrap = SideStage("side", ("left", "right")[side], KEY, SIDES[side])
        for at, (stage, _) in enumerate(self.stages):
            mine = [n for n, group in enumerate(groups) if group % len(self.stages) == at]
            if mine:
                batch = Batch([values[n] for n in mine], Times.of([times[n] for n in mine]))
                for wrapped in wrap.process(batch):
                    self._note(stage.process(wrapped))

    def _note(self, results: Any) -> None:
        schema = self._schema
        for batch in results:
            assert type(batch.values) is Table
            rows = schema.rows(batch.values.batch)
            assert schema.rows(schema.table(rows)) == rows
            self.found += zip(rows, batch.timestamps, strict=True)

    def pass_to(self, watermark_ms: int) -> None:
        for stage, _ in self.stages:
            self._note(stage.on_watermark(watermark_ms))

    def epoch(self, *, is_whole: bool = False) -> None:
        """Store an epoch; a whole one has all that is kept, and nothing before it counts."""
        if is_whole:
            self._kept = []
        for stage, context in self.stages:
            assert context.keyed is not None
            if is_whole:
                assert context.keyed.tell_again()
            self._snapshot = stage.snapshot()
            self._kept += snapshot_of(context)

    @property
    def size_bytes(self) -> int:
        return sum(context.keyed.size_bytes for _, context in self.stages if context.keyed)

    @property
    def late(self) -> int:
        return sum(context.counters.late_records for _, context in self.stages)


def _with_columns_in_order(found: Any) -> Any:
    (key, left, right, start, end), time_ms = found
    of_right = right and {name: right[name] for name in RIGHTS.arrow.names}
    return (key, left, of_right, start, end), time_ms


@settings(max_examples=50)
@given(STEPS, BOUNDS, BOUNDS, st.sampled_from(["inner", "left", "right", "outer"]))
def test_results_are_those_of_rows(
    steps: list[Any], before_ms: int, after_ms: int, how: How
) -> None:
    """Also behind restarts, of one task or of three."""
    spec = JoinSpec.interval(before=f"{before_ms}ms", after=f"{after_ms}ms", how=how)
    tasks, core = (
        Tasks(spec),
        IntervalJoin(before_ms=before_ms, after_ms=after_ms, how=how, limit=100),
    )
    right, number, late = list[Any](), 0, 0
    for step in [*steps, MAX_MS]:
        if isinstance(step, str):
            late += tasks.late
            tasks.epoch(is_whole=step == "whole")
            tasks.start(3 if step == "rescale" else 1)
        elif isinstance(step, int):
            watermark_ms = max(step, core._watermark_ms)  # noqa: SLF001 - the same for both
            for rows, times in core.on_watermark(watermark_ms):
                right += zip(rows, times, strict=True)
            tasks.pass_to(watermark_ms)
        else:
            side, records = step
            values = [{"k": k, "m": m, "n": number + at} for at, (k, m, _) in enumerate(records)]
            times = [time_ms for _, _, time_ms in records]
            number += len(values)
            keyed = [(side, (each["k"], each["m"]), each) for each in values]
            for rows, at in core.on_records(keyed, times):
                right += zip(rows, at, strict=True)
            tasks.take(side, values, times)

    found = [(tuple(row), time_ms) for row, time_ms in tasks.found]
    assert sorted(found, key=repr) == sorted(map(_with_columns_in_order, right), key=repr)
    assert late + tasks.late == core.late_records


def test_keys_without_records_are_forgotten() -> None:
    tasks = Tasks(JoinSpec.interval(before="0ms", after="50ms"))
    tasks.take(LEFT, [{"k": f"{n}", "m": 0, "n": n} for n in range(9)], [0] * 9)
    tasks.take(LEFT, [{"k": "kept", "m": 0, "n": 9}], [100])

    tasks.pass_to(60)
    tasks.take(RIGHT, [{"k": "kept", "m": 0, "n": 7}], [120])

    assert [(row.left["n"], row.right["n"]) for row, _ in tasks.found] == [(9, 7)]
    assert tasks.size_bytes < 500
