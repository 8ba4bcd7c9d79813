"""The stages of which the steps of a plan consist when they run."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from gearpy.core.window.aggregates import Aggregate
from gearpy.core.window.windows import GlobalWindows, SlidingWindows, TumblingWindows
from gearpy.dsl.plan.nodes import (
    AggregateNode,
    AsyncNode,
    BatchNode,
    BranchNode,
    DistinctNode,
    FoldNode,
    JoinNode,
    LogNode,
    MergeAggregateNode,
    MergeCountNode,
    Node,
    PartialAggregateNode,
    PartialCountNode,
    RowNode,
    RowsNode,
    StateNode,
    TableJoinNode,
    TableNode,
    WriteNode,
)
from gearpy.dsl.plan.order import waits_for_order
from gearpy.task.aggregates.fold import Fold, RunningFold
from gearpy.task.aggregates.row_count import PartialCount, key_of_part, merging_counts
from gearpy.task.aggregates.rows import RunningAggregate, fold_of, fold_of_one
from gearpy.task.aggregates.windows import window_stage
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.chain import Stage, StagesOfSteps
from gearpy.task.chain.event_gate import OrderedStage, Waits
from gearpy.task.chain.fused import fused_stages
from gearpy.task.joins.streams import JoinStage
from gearpy.task.joins.table import table_join_stage
from gearpy.task.stages.asynchronous import AsyncStage
from gearpy.task.stages.distinct import DistinctStage
from gearpy.task.stages.sink import sink_stage
from gearpy.task.stages.stateful import KeyedStage
from gearpy.task.stages.stateless import BranchStage, LogStage
from gearpy.task.stages.tables import MapBatchesStage, RowsStage, TableStage
from gearpy.task.time.late import LATE

__all__ = ["Sides", "stage_maker"]

#: Windows over which columns can be aggregated.
ColumnarWindows: TypeAlias = TumblingWindows | SlidingWindows | GlobalWindows
#: Tags of the side outputs that somebody reads, by the step that makes them and its own tag.
Sides: TypeAlias = Mapping[tuple[Node, str], str]


def stage_maker(
    steps: Sequence[Node], sides: Sides, ids: Mapping[Node, str]
) -> Callable[[TaskContext], Sequence[Stage]]:
    """Return what makes the stages of a chain for one task; ``ids`` name the steps."""

    def make(context: TaskContext) -> StagesOfSteps:
        stages: list[Stage] = []
        of: list[str] = []
        for is_row, run in groupby(steps, key=lambda step: isinstance(step, RowNode)):
            if is_row:
                rows = [step for step in run if isinstance(step, RowNode)]
                fused = fused_stages(
                    [step.operator for step in rows],
                    limit=context.limits.batch_records,
                    rejects=context.rejects,
                )
                stages += fused
                of += [ids[rows[0]]] * len(fused)  # They keep nothing.
                continue
            for step in run:
                made = _stages(step, sides, context)
                stages += made
                of += [ids[step]] * len(made)
        return StagesOfSteps(stages, of)

    return make


def _stages(step: Node, sides: Sides, context: TaskContext) -> list[Stage]:
    make = _MAKERS.get(type(step))
    return [] if make is None else [make(step, sides, context)]  # A merge passes records on.


def _key_of(step: Node) -> Callable[[Any], Any]:
    assert step.key is not None, f"{step.kind} is by key"
    return step.key.function


def _fold(step: FoldNode | AggregateNode, fold: Fold, sides: Sides, context: TaskContext) -> Stage:
    assert step.windows is not None
    tag = sides.get((step, LATE))
    return window_stage(
        context,
        step.name,
        step.windows,
        None if step.key is None else step.key.function,
        fold,
        limit=context.limits.batch_records,
        late="drop" if step.late == "side" and tag is None else step.late,
        late_tag=tag or LATE,
        waits=_waits(step),
    )


def _waits(step: Node) -> Waits:
    return "all" if waits_for_order(step) else "late"


def _in_order(step: Node, stage: Stage, context: TaskContext) -> Stage:
    """Return a stage that is given its records in the order of event time, if it is to be."""
    return OrderedStage(context, stage, _key_of(step)) if waits_for_order(step) else stage


def _fold_stage(step: FoldNode, sides: Sides, context: TaskContext) -> Stage:
    if step.windows is None:
        running = RunningFold(context, step.name, _key_of(step), step.fold)
        return _in_order(step, running, context)
    return _fold(step, step.fold, sides, context)


def _aggregate_stage(step: AggregateNode, sides: Sides, context: TaskContext) -> Stage:
    fold = _fold_of(step)
    if step.windows is not None:
        return _fold(step, fold, sides, context)
    is_plain = fold.result is None and not fold.timed
    running = (RunningFold if is_plain else RunningAggregate)(
        context, step.name, _key_of(step), fold
    )
    return _in_order(step, running, context)


def _fold_of(step: AggregateNode) -> Fold:
    return fold_of_one(*step.aggregates.values()) if step.is_single else fold_of(step.aggregates)


def _partial_stage(step: PartialAggregateNode, _: Sides, context: TaskContext) -> Stage:
    # Who has no tables needs no Arrow.
    from gearpy.task.aggregates.columns import PartialAggregateStage  # noqa: PLC0415

    return PartialAggregateStage(context, step.name, *_columnar(step.of))


def _merge_stage(step: MergeAggregateNode, _: Sides, context: TaskContext) -> Stage:
    from gearpy.task.aggregates.columns import MergeAggregateStage  # noqa: PLC0415 - the same

    return MergeAggregateStage(context, step.name, *_columnar(step.of))


def _partial_count(step: PartialCountNode, _: Sides, context: TaskContext) -> Stage:
    windows = step.of.windows
    assert isinstance(windows, TumblingWindows | GlobalWindows)
    limit = context.limits.batch_records
    return PartialCount(context, step.name, windows, _key_of(step.of), limit=limit)


def _merge_count(step: MergeCountNode, _: Sides, context: TaskContext) -> Stage:
    assert step.of.windows is not None
    fold = merging_counts(_fold_of(step.of))
    limit = context.limits.batch_records
    return window_stage(context, step.name, step.of.windows, key_of_part, fold, limit=limit)


def _columnar(
    of: AggregateNode,
) -> tuple[ColumnarWindows, tuple[str, ...], Aggregate | Mapping[str, Aggregate]]:
    """Return windows, columns of the key, and aggregates; one alone gives its value alone."""
    assert isinstance(of.windows, ColumnarWindows)
    columns = () if of.key is None else of.key.columns
    (first, *_) = of.aggregates.values()
    return of.windows, columns, first if of.is_single else of.aggregates


def _branch_stage(step: BranchNode, sides: Sides, context: TaskContext) -> Stage:
    routes = [(predicate, sides.get((step, tag), "")) for tag, predicate in step.predicates.items()]
    default = "" if step.default is None else sides.get((step, step.default), "")
    return BranchStage(context, step.name, routes, default)


_MAKERS: dict[type[Node], Callable[[Any, Sides, TaskContext], Stage]] = {
    AggregateNode: _aggregate_stage,
    AsyncNode: lambda step, _, context: AsyncStage(context, step.name, step.function),
    BatchNode: lambda step, _, context: MapBatchesStage(
        context, step.name, step.function, step.form, times=step.times, gives=step.gives
    ),
    BranchNode: _branch_stage,
    DistinctNode: lambda step, _, context: _in_order(
        step, DistinctStage(context, step.name, _key_of(step), step.within_ms), context
    ),
    FoldNode: _fold_stage,
    JoinNode: lambda step, _, context: JoinStage(context, step.name, step.spec, waits=_waits(step)),
    LogNode: lambda step, _, context: LogStage(
        context, step.name, level=step.level, every=step.every
    ),
    MergeAggregateNode: _merge_stage,
    MergeCountNode: _merge_count,
    PartialAggregateNode: _partial_stage,
    PartialCountNode: _partial_count,
    RowsNode: lambda step, _, context: RowsStage(context, step.name, step.schema),
    StateNode: lambda step, _, context: _in_order(
        step, KeyedStage(context, step.name, _key_of(step), step.function), context
    ),
    TableJoinNode: lambda step, _, context: table_join_stage(context, step.name, step.spec),
    TableNode: lambda step, _, context: TableStage(context, step.name, step.schema),
    WriteNode: lambda step, _, context: sink_stage(context, step.sink, step.name),
}
