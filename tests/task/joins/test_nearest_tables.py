"""As-of joins and joins with the latest in columns: all is as with rows, also what is kept."""

from datetime import date
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gearpy.columns.row_schema import RowSchema
from gearpy.core.base.stable_hash import key_group
from gearpy.core.join.sides import LEFT, RIGHT
from gearpy.core.window.windows import SessionWindows
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import NOWHERE, Batch, Origin
from gearpy.messages.late_time import late_time
from gearpy.messages.table import Table, Times
from gearpy.state.stores.store import Section
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.stage import Stage
from gearpy.task.joins.join_schema import JoinSchema
from gearpy.task.joins.nearest_tables import NearestTablesStage
from gearpy.task.joins.session_tables import SessionTablesStage
from gearpy.task.joins.side_tables import SideStage
from gearpy.task.joins.streams import JoinSpec, JoinStage
from gearpy.task.joins.window_tables import WindowTablesStage
from tests.task.build import a_context
from tests.task.chain.test_event_gate import snapshot_of

LEFTS = RowSchema(pa.schema([("k", pa.string()), ("m", pa.date32()), ("n", pa.int64())]))
RIGHTS = RowSchema(pa.schema([("n", pa.int64()), ("m", pa.date32()), ("k", pa.string())]))
SIDES = (LEFTS, RIGHTS)
KEY = ("k", "m")
DAYS = (date(2026, 1, 1), None)

FAR = [MIN_MS, MIN_MS + 2, -(1 << 40), 0, 1, 1 << 40, (1 << 40) + 2, MAX_MS - 1]


def steps_of(times: st.SearchStrategy[int]) -> st.SearchStrategy[list[Any]]:
    """Return records of a side and partition, watermarks, and ends of epochs with a restart."""
    promises = st.sampled_from([MIN_MS] * 6) | times
    record = st.tuples(
        st.sampled_from(["a", "a", "b", None]), st.sampled_from(DAYS), times, promises
    )
    records = st.tuples(
        st.sampled_from((LEFT, RIGHT)),
        st.integers(-1, 1),
        st.lists(record, min_size=2, max_size=8),
    )
    rare = times | st.sampled_from(["epoch", "whole", "rescale", "other form"])
    return st.lists(records | records | rare, min_size=8, max_size=20)


#: Times are told from the watermark on, or as they are.
NEAR, FAR_AWAY = steps_of(st.integers(-2, 9)), steps_of(st.sampled_from(FAR))
STEPS = st.tuples(st.just(True), NEAR) | st.tuples(st.just(False), FAR_AWAY)
#: A record of each side that waits.
PENDING = [(side, 0, [("a", None, 3 + side, MIN_MS)]) for side in (RIGHT, LEFT)]
HOWS = st.sampled_from(["left", "inner"])
SPECS = st.builds(JoinSpec.latest, how=HOWS) | st.builds(
    JoinSpec.asof,
    how=HOWS,
    direction=st.sampled_from(["backward", "forward", "nearest"]),
    tolerance=st.none() | st.sampled_from(["0ms", "4ms", f"{1 << 42}ms"]),
)


class Tasks:
    """The tasks of a join, each of some of the keys; what they find."""

    def __init__(self, spec: JoinSpec, *, in_columns: bool, sources: int) -> None:
        self._spec = spec
        self._schema = JoinSchema.of(LEFTS, RIGHTS, [*map(LEFTS.arrow.field, KEY)], spec.how)
        self._sources = sources
        self.in_columns = in_columns
        self._kept: list[Section] = []
        self._snapshot: Any = None
        self._offset = 0
        self.found: list[Any] = []
        self.late = 0
        self.start(1)

    def start(self, count: int) -> None:
        self.stages = [self._stage(at, count) for at in range(count)]

    def _stage(self, at: int, count: int) -> tuple[Stage, TaskContext]:
        context = a_context()
        context.sources = self._sources
        assert context.keyed is not None
        context.keyed.load([each for each in self._kept if each.group % count == at])
        in_windows = (
            SessionTablesStage
            if isinstance(self._spec.windows, SessionWindows)
            else WindowTablesStage
        )
        made = in_windows if self._spec.kind == "window" else NearestTablesStage
        stage: Stage = (
            made(context, "join", self._spec, self._schema)
            if self.in_columns
            else JoinStage(context, "join", self._spec, waits="all", schema=self._schema)
        )
        stage.restore(self._snapshot)
        return stage, context

    def take(self, side: int, part: int, values: list[dict[str, Any]], times: list[int]) -> None:
        keys = [(each["k"], each["m"]) for each in values]
        wrap = SideStage("side", ("left", "right")[side], KEY, SIDES[side])
        is_alone = self._sources == 1
        origin = NOWHERE if part < 0 else Origin(0, part, self._offset, is_alone, is_alone)
        self._offset += len(values)
        for at, (stage, _) in enumerate(self.stages):
            mine = [n for n, key in enumerate(keys) if key_group(key) % len(self.stages) == at]
            some, stamps = [values[n] for n in mine], [times[n] for n in mine]
            if not mine:
                continue
            if self.in_columns:
                for wrapped in wrap.process(Batch(some, Times.of(stamps), True, origin)):
                    self._note(stage.process(wrapped))
            else:
                keyed = [(side, keys[n], values[n]) for n in mine]
                self._note(stage.process(Batch(keyed, stamps, True, origin)))

    def _note(self, results: Any) -> None:
        for batch in results:
            values = batch.values
            rows = self._schema.rows(values.batch) if type(values) is Table else values
            for row, time in zip(rows, batch.timestamps, strict=True):
                self.found.append((row, time, getattr(time, "promised_ms", None)))

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
            self.late += context.counters.late_records
            context.counters.late_records = 0


@settings(max_examples=25)
@given(STEPS, SPECS, st.integers(1, 2))
@example((True, [*PENDING, "other form"]), JoinSpec.asof(), 1)
@example((True, [*PENDING, 3, "other form", "rescale"]), JoinSpec.latest(), 2)
def test_results_are_those_of_rows(
    steps: tuple[bool, list[Any]], spec: JoinSpec, sources: int
) -> None:
    """Also behind restarts, of one task or of three, and in the other form."""
    sources = 2 if spec.kind == "latest" else sources  # It sees how records of one source came.
    in_columns, in_rows = both_forms(steps, spec, sources)

    assert sorted(in_columns.found, key=repr) == sorted(in_rows.found, key=repr)
    assert in_columns.late == in_rows.late


def both_forms(steps: tuple[bool, list[Any]], spec: JoinSpec, sources: int) -> tuple[Tasks, Tasks]:
    """Let tasks take steps to the end of time, each in columns and in rows."""
    tasks = [Tasks(spec, in_columns=form, sources=sources) for form in (True, False)]
    is_near, listed = steps
    number, watermark_ms = 0, 0 if is_near else MIN_MS
    for step in [*listed, MAX_MS, "epoch"]:
        base_ms = watermark_ms if is_near and step != MAX_MS else 0
        if isinstance(step, str):
            for each in tasks:
                each.epoch(is_whole=step == "whole")
                each.in_columns ^= step == "other form"
                each.start(3 if step == "rescale" else 1)
        elif isinstance(step, int):
            watermark_ms = max(base_ms + step, watermark_ms)
            for each in tasks:
                each.pass_to(watermark_ms)
        else:
            side, part, records = step
            part = 0 if sources == 1 else part
            made = [{"k": k, "m": m, "n": number + at} for at, (k, m, *_) in enumerate(records)]
            # Of one time and no partition they come in the order of what they are.
            names = SIDES[side].arrow.names
            values = [{name: each[name] for name in names} for each in made]
            times = [
                late_time(base_ms + time, max(base_ms + promised, MIN_MS))
                for *_, time, promised in records
            ]
            number += len(values)
            for each in tasks:
                each.take(side, part, values, times)
    return tasks[0], tasks[1]
