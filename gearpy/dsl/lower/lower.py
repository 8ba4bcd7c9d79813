"""From the plan to the graph that runs: chains of steps become one processor each.

A step joins the chain of its input unless its records must be redistributed first (by key, or
because its parallelism differs), or several steps read that input, or it reads a side output, or
either is a user's own task, or it asks for a thread of its own. Gearpump: `Planner`, whose
chaining rules refuse some orders; here any order chains.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gearpy.core.flow.partition import (
    CoLocationPartitioner,
    GroupByPartitioner,
    Partitioner,
    ShufflePartitioner,
)
from gearpy.dsl.lower.stages import stage_maker
from gearpy.dsl.plan.columns import unknown_fields
from gearpy.dsl.plan.nodes import (
    Key,
    Node,
    ProcessNode,
    ReadNode,
    RowsNode,
    SideNode,
    WriteNode,
    sources_of,
)
from gearpy.dsl.plan.operator_ids import operator_ids, step_ids
from gearpy.dsl.plan.order import waits_for_order
from gearpy.dsl.plan.physical import physical
from gearpy.dsl.plan.step_specs import step_specs
from gearpy.dsl.plan.table_mistakes import table_mistakes
from gearpy.errors import ConfigError, GraphError
from gearpy.task.api.application import Graph, Processor, StreamApplication, TaskFactory
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.sides import MAIN, SidePartitioner
from gearpy.task.chain.chain import ChainTask
from gearpy.task.sources.task import SourceTask
from gearpy.task.time.late import LATE

__all__ = ["lower"]


@dataclass(slots=True, eq=False)
class _Chain:
    """Steps that will run in one task; the first one says where its records come from."""

    steps: list[Node]
    parallelism: int
    #: Tags of the side outputs that somebody reads, by the step that makes them and its own tag.
    sides: dict[tuple[Node, str], str] = field(default_factory=dict)
    processor: Processor | None = field(default=None)

    def output(self, node: Node) -> str:
        """Return the tag under which a node's records leave the task."""
        if not isinstance(node, SideNode):
            return MAIN
        maker = node.inputs[0]
        is_own = isinstance(maker, ProcessNode)  # Its task says the tag itself.
        tag = node.tag if is_own else f"{node.tag}@{self.steps.index(maker)}"
        return self.sides.setdefault((maker, node.tag), tag)

    @property
    def may_set_aside(self) -> bool:
        """Whether what leaves the task may be of a side output."""
        return bool(self.sides) or isinstance(self.steps[0], ProcessNode)


@dataclass(slots=True, eq=False)
class _Edge:
    """An edge of the graph, for some of the outputs of its source."""

    source: _Chain
    target: _Chain
    tags: set[str]

    @property
    def partitioner(self) -> Partitioner:
        """Return how records are spread. Who makes no side outputs pays nothing for them."""
        partitioner = _partitioner(self.source, self.target)
        if self.source.may_set_aside:
            return SidePartitioner(partitioner, self.tags)
        return partitioner


def lower(
    name: str, nodes: Sequence[Node], *, parallelism: int, mistakes: Sequence[str] = ()
) -> StreamApplication:
    """Return the application that runs the plan.

    Args:
        name: of the application.
        nodes: the plan as it was written.
        parallelism: of steps that do not say otherwise.
        mistakes: those that are known already.

    Raises:
        ConfigError: it cannot run; all mistakes at once.
    """
    if not nodes:
        raise GraphError(f"application {name!r} has no steps: start with app.read(source)")
    mistakes = [
        *mistakes,
        *(mistake for node in nodes for mistake in unknown_fields(node)),
        *(mistake for node in nodes for mistake in table_mistakes(node)),
    ]
    try:
        application = StreamApplication(name, _graph(nodes, parallelism))
    except ConfigError as error:
        raise type(error)(*mistakes, *error.mistakes) from None
    if mistakes:
        raise ConfigError(*mistakes)
    return application


def _graph(nodes: Sequence[Node], parallelism: int) -> Graph:
    placed = physical(nodes, parallelism)
    ids = step_ids(placed, operator_ids(nodes))
    specs = step_specs(placed, ids)
    chain_of = _chains(placed, parallelism)
    chains = list(dict.fromkeys(chain_of.values()))
    edges = [edge for chain in chains for edge in _edges(chain, chain_of)]
    graph = Graph()
    for chain in chains:
        chain.processor = _processor(chain, ids)
        chain.processor.steps = [specs[step] for step in chain.steps]
        graph.add(chain.processor)
    for edge in edges:
        assert edge.source.processor is not None
        assert edge.target.processor is not None
        graph.connect(edge.source.processor, edge.target.processor, edge.partitioner)
    return graph


def _chains(nodes: Sequence[Node], default_parallelism: int) -> dict[Node, _Chain]:
    readers = Counter(source for node in nodes for source in node.inputs)
    chains: dict[Node, _Chain] = {}
    for node in nodes:
        source = chains[_maker(node.inputs[0])] if node.inputs else None
        wanted = _parallelism(node, source, default_parallelism)
        if source is not None and _joins(node, wanted, source, readers[node.inputs[0]]):
            source.steps.append(node)
            chains[node] = source
        else:
            chains[node] = _Chain([node], wanted)
    return chains


def _edges(chain: _Chain, chain_of: dict[Node, _Chain]) -> list[_Edge]:
    """Return the edges to a chain, one for all that it reads of another.

    Where it reads the same twice there are two, which is a mistake that the graph will tell.
    """
    edges: list[_Edge] = []
    for node in chain.steps[0].inputs:
        source = chain_of[_maker(node)]
        tag = source.output(node)
        for edge in edges:
            if edge.source is source and tag not in edge.tags:
                edge.tags.add(tag)
                break
        else:
            edges.append(_Edge(source, chain, {tag}))
    return edges


def _maker(node: Node) -> Node:
    """Return the step that makes the records of a node."""
    return node.inputs[0] if isinstance(node, SideNode) else node


def _parallelism(node: Node, source: _Chain | None, default: int) -> int:
    if node.parallelism is not None:
        return node.parallelism
    if isinstance(node, ReadNode):
        return _useful_parallelism(node, default)
    if source is None or (node.key is not None and not isinstance(node, ProcessNode)):
        return default
    return source.parallelism


def _useful_parallelism(node: ReadNode, default: int) -> int:
    """Return no more tasks than the source has partitions."""
    try:
        return min(default, max(1, len(node.source.partitions())))
    except ConfigError:
        return default  # Told with all other mistakes, when the application is made.


def _joins(node: Node, wanted: int, source: _Chain, readers: int) -> bool:
    if len(node.inputs) != 1 or readers > 1 or wanted != source.parallelism:
        return False
    if isinstance(node.inputs[0], SideNode):
        return False
    if isinstance(source.steps[0], ProcessNode) or isinstance(node, ProcessNode):
        return False
    if isinstance(node, WriteNode) and node.dispatcher != "default":
        return False
    return _key_to_come(node) is None


def _key_to_come(node: Node) -> Key | None:
    """Return the key by which the records of a step must still be spread."""
    before = node.inputs[0] if node.inputs else None
    if isinstance(before, RowsNode) and before.key is node.key:
        return None  # They were, as columns.
    return node.key


def _partitioner(source: _Chain, target: _Chain) -> Partitioner:
    key = _key_to_come(target.steps[0])
    if key is not None:
        return GroupByPartitioner(key.function)
    if source.parallelism == target.parallelism:
        return CoLocationPartitioner()
    return ShufflePartitioner()


def _processor(chain: _Chain, ids: Mapping[Node, str]) -> Processor:
    head = chain.steps[0]
    if isinstance(head, ProcessNode):
        return Processor(
            head.task,
            chain.parallelism,
            head.name,
            dispatcher=head.dispatcher,
            key=None if head.key is None else head.key.function,
            ordered=waits_for_order(head),
            sources=len(sources_of(head)),
        )
    name = " > ".join(step.name for step in chain.steps)
    last = chain.steps[-1]
    sink = last.sink if isinstance(last, WriteNode) else None
    if isinstance(head, ReadNode):
        return Processor(
            _source_task(head, chain, ids), chain.parallelism, name, source=head.source, sink=sink
        )
    dispatcher = head.dispatcher if isinstance(head, WriteNode) else "default"
    return Processor(
        _chain_task(chain, ids), chain.parallelism, name, dispatcher=dispatcher, sink=sink
    )


def _source_task(head: ReadNode, of: _Chain, ids: Mapping[Node, str]) -> TaskFactory:
    make_stages = stage_maker(of.steps[1:], of.sides, ids)
    sources = len(sources_of(of.steps[-1]))
    tag = of.sides.get((head, LATE))
    late = "drop" if head.late == "side" and tag is None else head.late

    def source(context: TaskContext) -> SourceTask:
        context.sources = sources
        return SourceTask(
            context,
            head.source,
            make_stages,
            late=late,
            late_tag=tag or LATE,
            idle_after_ms=head.idle_after_ms,
            when_idle=head.when_idle,
        )

    return source


def _chain_task(of: _Chain, ids: Mapping[Node, str]) -> TaskFactory:
    make_stages = stage_maker(of.steps, of.sides, ids)
    sources = len(sources_of(of.steps[-1]))

    def chain(context: TaskContext) -> ChainTask:
        context.sources = sources
        return ChainTask(context, make_stages)

    return chain
