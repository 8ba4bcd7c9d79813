"""From the plan to the graph that runs: chains of steps become one processor each.

A step joins the chain of its input unless its records must be redistributed first (by key, or
because its parallelism differs), or several steps read that input, or either is a user's own
task, or it asks for a thread of its own. Gearpump: `Planner`, whose chaining rules refuse some
orders; here any order chains.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from gearpy.core.partition import (
    CoLocationPartitioner,
    GroupByPartitioner,
    Partitioner,
    ShufflePartitioner,
)
from gearpy.dsl.plan import FoldNode, Node, ProcessNode, ReadNode, RowNode, WriteNode
from gearpy.errors import ConfigError, GraphError
from gearpy.task.aggregate import RunningFold, WindowFold
from gearpy.task.api import TaskContext
from gearpy.task.application import Graph, Processor, StreamApplication, TaskFactory
from gearpy.task.fused import fused_stages
from gearpy.task.operators import ChainTask, SinkStage, SourceTask, Stage

__all__ = ["lower"]


@dataclass(slots=True, eq=False)
class _Chain:
    """Steps that will run in one task; the first one says where its records come from."""

    steps: list[Node]
    parallelism: int
    processor: Processor | None = field(default=None)


def lower(name: str, nodes: Sequence[Node], *, parallelism: int) -> StreamApplication:
    """Return the application that runs the plan.

    Raises:
        ConfigError: it cannot run; all mistakes at once.
    """
    if not nodes:
        raise GraphError(f"application {name!r} has no steps: start with app.read(source)")
    chains = _chains(nodes, parallelism)
    graph = Graph()
    for chain in dict.fromkeys(chains.values()):
        chain.processor = _processor(chain)
        graph.add(chain.processor)
    for chain in dict.fromkeys(chains.values()):
        for source in (chains[node] for node in chain.steps[0].inputs):
            assert source.processor is not None
            assert chain.processor is not None
            graph.connect(source.processor, chain.processor, _partitioner(source, chain))
    return StreamApplication(name, graph)


def _chains(nodes: Sequence[Node], default_parallelism: int) -> dict[Node, _Chain]:
    readers = Counter(source for node in nodes for source in node.inputs)
    chains: dict[Node, _Chain] = {}
    for node in nodes:
        source = chains[node.inputs[0]] if node.inputs else None
        wanted = _parallelism(node, source, default_parallelism)
        if source is not None and _joins(node, wanted, source, readers[node.inputs[0]]):
            source.steps.append(node)
            chains[node] = source
        else:
            chains[node] = _Chain([node], wanted)
    return chains


def _parallelism(node: Node, source: _Chain | None, default: int) -> int:
    if node.parallelism is not None:
        return node.parallelism
    if isinstance(node, ReadNode):
        return _useful_parallelism(node, default)
    return default if source is None or isinstance(node, FoldNode) else source.parallelism


def _useful_parallelism(node: ReadNode, default: int) -> int:
    """Return no more tasks than the source has partitions."""
    try:
        return min(default, max(1, len(node.source.partitions())))
    except ConfigError:
        return default  # Told with all other mistakes, when the application is made.


def _joins(node: Node, wanted: int, source: _Chain, readers: int) -> bool:
    if len(node.inputs) != 1 or readers > 1 or wanted != source.parallelism:
        return False
    if isinstance(source.steps[0], ProcessNode) or isinstance(node, ProcessNode):
        return False
    if isinstance(node, WriteNode) and node.dispatcher != "default":
        return False
    return not (isinstance(node, FoldNode) and node.key is not None)


def _partitioner(source: _Chain, target: _Chain) -> Partitioner:
    head = target.steps[0]
    if isinstance(head, (FoldNode, ProcessNode)) and head.key is not None:
        return GroupByPartitioner(head.key)
    if source.parallelism == target.parallelism:
        return CoLocationPartitioner()
    return ShufflePartitioner()


def _processor(chain: _Chain) -> Processor:
    head = chain.steps[0]
    if isinstance(head, ProcessNode):
        return Processor(head.task, chain.parallelism, head.name, dispatcher=head.dispatcher)
    name = " > ".join(step.name for step in chain.steps)
    if isinstance(head, ReadNode):
        make = _source_task(head, chain.steps[1:])
        return Processor(make, chain.parallelism, name, source=head.source)
    dispatcher = head.dispatcher if isinstance(head, WriteNode) else "default"
    return Processor(_chain_task(chain.steps), chain.parallelism, name, dispatcher=dispatcher)


def _source_task(head: ReadNode, steps: Sequence[Node]) -> TaskFactory:
    def source(context: TaskContext) -> SourceTask:
        return SourceTask(context, head.source, _stage_maker(steps))

    return source


def _chain_task(steps: Sequence[Node]) -> TaskFactory:
    def chain(context: TaskContext) -> ChainTask:
        return ChainTask(context, _stage_maker(steps))

    return chain


def _stage_maker(steps: Sequence[Node]) -> Callable[[TaskContext], Sequence[Stage]]:
    def make(context: TaskContext) -> list[Stage]:
        stages: list[Stage] = []
        for is_row, run in groupby(steps, key=lambda step: isinstance(step, RowNode)):
            if is_row:
                operators = [step.operator for step in run if isinstance(step, RowNode)]
                stages += fused_stages(
                    operators, limit=context.limits.batch_records, rejects=context.rejects
                )
            else:
                stages += [stage for step in run for stage in _stage(step, context)]
        return stages

    return make


def _stage(step: Any, context: TaskContext) -> list[Stage]:
    if isinstance(step, WriteNode):
        return [SinkStage(context, step.sink, step.name)]
    if isinstance(step, FoldNode):
        return [_fold_stage(step, context)]
    return []  # A merge passes its records on.


def _fold_stage(step: FoldNode, context: TaskContext) -> Stage:
    if step.windows is not None:
        return WindowFold(
            context,
            step.name,
            step.windows,
            step.key,
            step.fold,
            limit=context.limits.batch_records,
        )
    assert step.key is not None, "a running fold is by key"
    return RunningFold(step.name, step.key, step.fold, context.rejects)
