"""Turns the plan into the graph that runs: chains of steps become one processor each.

A step joins the chain of its input unless its records must be redistributed first (by key, or
because its parallelism differs), or it is scaled, or several steps read that input, or it reads a
side output, or either is a user's own task, or it asks for a thread of its own. Gearpump:
`Planner`, whose chaining rules refuse some orders; here any order chains.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

from gearpy.core.app.hosts import PROGRAM_PROCESS
from gearpy.core.dag.graph import StepSpec
from gearpy.core.flow.partition import (
    CoLocationPartitioner,
    GroupByPartitioner,
    Partitioner,
    ShufflePartitioner,
)
from gearpy.dsl.operators.keys import Key
from gearpy.dsl.operators.operator import (
    Kind,
    Operator,
    ReadOperator,
    Sides,
    sources_of,
    unfit_expressions,
    unknown_fields,
)
from gearpy.dsl.operators.records import ToRowsOperator
from gearpy.dsl.operators.routes import (
    ProcessOperator,
    RepartitionOperator,
    SideOperator,
    WriteOperator,
    maker_of,
)
from gearpy.dsl.plan.physical import physical
from gearpy.errors import ConfigError, GraphError
from gearpy.messages.data import Message
from gearpy.messages.summaries import ScaleBounds, Until
from gearpy.task.api.application import (
    Graph,
    Processor,
    StreamApplication,
    TaskFactory,
    steps_scaled,
)
from gearpy.task.api.interfaces import Source, Task, TaskContext
from gearpy.task.api.rejects import Rejects
from gearpy.task.api.sides import ERRORS, MAIN, SidePartitioner
from gearpy.task.chain.chain import ChainTask, StagesOfSteps
from gearpy.task.chain.fused import fused_stages
from gearpy.task.chain.stage import Stage
from gearpy.task.sources.task import SourceTask
from gearpy.task.time.late import LATE

_NO_BOUNDS: Final[Mapping[Operator, ScaleBounds]] = MappingProxyType({})
_MANY: Final = 1 << 31  #: More tasks than any application has.
_WORDS: Final[Mapping[Kind, str]] = {"rows": "rows", "table": "columns"}


@dataclass(slots=True, eq=False)
class _Chain:
    """Steps that will run in one task; the first one says where its records come from.

    Attributes:
        counts: its numbers of tasks in the application as it is, in one whose steps have one task
            unless they say otherwise, and in one of very many. Two chains whose numbers are equal
            have equal ones in each application.
    """

    steps: list[Operator]
    counts: tuple[int, ...]
    #: Tags of the side outputs that are read, by the step that makes them and its own tag.
    sides: dict[tuple[Operator, str], str] = field(default_factory=dict)
    processor: Processor | None = field(default=None)

    @property
    def parallelism(self) -> int:
        return self.counts[0]

    def output(self, step: Operator) -> str:
        if not isinstance(step, SideOperator):
            return MAIN
        maker = step.inputs[0]
        is_own = isinstance(maker, ProcessOperator)  # Its task says the tag itself.
        tag = step.tag if is_own else f"{step.tag}@{self.steps.index(maker)}"
        return self.sides.setdefault((maker, step.tag), tag)

    @property
    def may_set_aside(self) -> bool:
        """Whether records that leave the task may be of a side output."""
        return bool(self.sides) or isinstance(self.steps[0], ProcessOperator)


@dataclass(slots=True, eq=False)
class _Edge:
    """An edge of the graph, for some of the outputs of its source."""

    source: _Chain
    target: _Chain
    tags: set[str]

    @property
    def partitioner(self) -> Partitioner:
        """Return the partitioner of the edge. A task without side outputs pays nothing for them."""
        head, source = self.target.steps[0], self.source
        partitioner: Partitioner = ShufflePartitioner()
        if (key := _key_to_come(head)) is not None:
            partitioner = GroupByPartitioner(key.function)
        elif source.parallelism == self.target.parallelism and not isinstance(
            head, RepartitionOperator
        ):
            partitioner = CoLocationPartitioner(by_chance=source.counts != self.target.counts)
        if self.source.may_set_aside:
            return SidePartitioner(partitioner, self.tags)
        return partitioner


def lower(
    name: str,
    steps: Sequence[Operator],
    *,
    parallelism: int | None,
    processes: int = 1,
    mistakes: Sequence[str] = (),
    scale: Mapping[str, int] | None = None,
    bounds: Mapping[Operator, ScaleBounds] = _NO_BOUNDS,
    until: Until = "end",
) -> StreamApplication:
    """Return the application that runs the plan.

    Args:
        steps: the plan as it was written.
        parallelism: of steps that do not say otherwise; None: as many as processes, but one of a
            sink of one file.
        processes: that it runs on. With several, what is of the program's own gets tasks there.
        mistakes: the mistakes known already.
        scale: the tasks of steps, by id or name, that have others than they say.
        bounds: what autoscale may choose for steps as they were written.
        until: with "caught-up" sources are read up to what is there.

    Raises:
        ConfigError: it cannot run; all mistakes at once.
    """
    if not steps:
        raise GraphError(f"application {name!r} has no steps: start with app.read(source)")
    mistakes = [
        *mistakes,
        *(mistake for step in steps for mistake in unknown_fields(step)),
        *(mistake for step in steps for mistake in unfit_expressions(step)),
        *(mistake for step in steps for mistake in step.mistakes()),
    ]
    is_spread, defaults = processes > 1, (parallelism or processes, 1, _MANY)
    try:
        placed = physical(steps, defaults[0])
        ids = step_ids(placed, operator_ids(steps))
        specs = _step_specs(placed, ids, bounds)
        scaled = steps_scaled(scale or {}, [specs[step] for step in placed])
        own = {step for step in placed if ids[step] in scaled or specs[step].bounds is not None}
        wanted = {step: scaled.get(ids[step]) for step in placed}
        readers = Counter(source for step in placed for source in step.inputs)
        reads: dict[Operator, Source] = {
            step: step.source if until == "end" else step.source.up_to_now()
            for step in placed
            if isinstance(step, ReadOperator)
        }
        chain_of: dict[Operator, _Chain] = {}
        for step in placed:
            source = chain_of[maker_of(step.inputs[0])] if step.inputs else None
            alone = 1 if is_spread and parallelism is None and _is_one_file(step) else None
            counts = _counts(step, wanted[step] or alone, source, reads.get(step), defaults)
            # One that is scaled begins a chain: else it would come and go in the one before it.
            if (
                source is not None
                and step not in own
                and not (is_spread and (_is_of_program(step) or _is_of_program(source.steps[0])))
                and _joins(step, counts[0], source, readers[step.inputs[0]])
            ):
                source.steps.append(step)
                chain_of[step] = source
            else:
                chain_of[step] = _Chain([step], counts)
        chains = list(dict.fromkeys(chain_of.values()))
        edges = [edge for chain in chains for edge in _edges(chain, chain_of)]
        graph = Graph()
        for chain in chains:
            read = reads.get(chain.steps[0])
            chain.processor = _processor(chain, {step: ids[step] for step in chain.steps}, read)
            chain.processor.steps = [specs[step] for step in chain.steps]
            if is_spread and _is_of_program(chain.steps[0]):
                chain.processor.hosts = [PROGRAM_PROCESS]
            graph.add(chain.processor)
        for edge in edges:
            assert edge.source.processor is not None
            assert edge.target.processor is not None
            graph.connect(edge.source.processor, edge.target.processor, edge.partitioner)
        application = StreamApplication(name, graph)
        application.until = until
    except ConfigError as error:
        raise type(error)(*mistakes, *error.mistakes) from None
    if mistakes:
        raise ConfigError(*mistakes)
    return application


def _edges(chain: _Chain, chain_of: dict[Operator, _Chain]) -> list[_Edge]:
    """Return the edges to a chain, one for all that it reads of another.

    Where it reads the same twice there are two, which is a mistake that the graph will tell.
    """
    edges: list[_Edge] = []
    for step in chain.steps[0].inputs:
        source = chain_of[maker_of(step)]
        tag = source.output(step)
        for edge in edges:
            if edge.source is source and tag not in edge.tags:
                edge.tags.add(tag)
                break
        else:
            edges.append(_Edge(source, chain, {tag}))
    return edges


def _counts(
    step: Operator,
    scaled: int | None,
    source: _Chain | None,
    read: Source | None,
    defaults: tuple[int, ...],
) -> tuple[int, ...]:
    """Return the numbers of tasks of a step, for each default of the application."""
    own = scaled or step.parallelism
    if own is not None:
        return (own,) * len(defaults)
    if read is not None:
        most = _MANY  # No more tasks than partitions are of use, if those are known.
        if not read.discovers:
            with suppress(ConfigError):  # Told with all others, when the application is made.
                most = max(1, len(read.partitions()))
        return tuple(min(default, most) for default in defaults)
    if source is None or (step.key is not None and not isinstance(step, ProcessOperator)):
        return defaults
    return source.counts


def _joins(step: Operator, wanted: int, source: _Chain, readers: int) -> bool:
    if len(step.inputs) != 1 or readers > 1 or wanted != source.parallelism:
        return False
    if isinstance(step.inputs[0], SideOperator) or isinstance(step, RepartitionOperator):
        return False
    if isinstance(source.steps[0], ProcessOperator) or isinstance(step, ProcessOperator):
        return False
    if isinstance(step, WriteOperator) and step.dispatcher != "default":
        return False
    return _key_to_come(step) is None


def _is_one_file(step: Operator) -> bool:
    return isinstance(step, WriteOperator) and step.sink.one_task and step.parallelism is None


def _is_of_program(step: Operator) -> bool:
    if isinstance(step, ReadOperator):
        return step.source.of_program
    return isinstance(step, WriteOperator) and step.sink.of_program


def _key_to_come(step: Operator) -> Key | None:
    """Return the key by which the records of a step must still be spread."""
    before = step.inputs[0] if step.inputs else None
    if isinstance(before, ToRowsOperator) and before.key is step.key:
        return None  # They were, as columns.
    return step.key


def _processor(chain: _Chain, ids: Mapping[Operator, str], read: Source | None) -> Processor:
    head = chain.steps[0]
    if isinstance(head, ProcessOperator):
        return Processor(
            head.task if head.on_error is None else _process_task(head, chain.sides),
            chain.parallelism,
            head.name,
            dispatcher=head.dispatcher,
            key=None if head.key is None else head.key.function,
            ordered=head.waits,
            sources=len(sources_of(head)),
        )
    name = " > ".join(step.name for step in chain.steps)
    last = chain.steps[-1]
    sink = last.sink if isinstance(last, WriteOperator) else None
    if isinstance(head, ReadOperator) and read is not None:
        task = _source_task(head, chain, ids, read)
        return Processor(task, chain.parallelism, name, source=read, sink=sink)
    dispatcher = head.dispatcher if isinstance(head, WriteOperator) else "default"
    return Processor(
        _chain_task(chain, ids), chain.parallelism, name, dispatcher=dispatcher, sink=sink
    )


def _process_task(head: ProcessOperator, sides: Sides) -> TaskFactory:
    def process(context: TaskContext) -> Task[Any, Any]:
        context.rejects = _rejects_of(head, context, sides)
        return head.task(context)

    return process


def _source_task(
    head: ReadOperator, of: _Chain, ids: Mapping[Operator, str], read: Source
) -> TaskFactory:
    make_stages = _stage_maker(of.steps[1:], of.sides, ids)
    sources = len(sources_of(of.steps[-1]))
    tag = of.sides.get((head, LATE))
    late = "drop" if head.late == "side" and tag is None else head.late

    def source(context: TaskContext) -> SourceTask:
        context.sources = sources
        return SourceTask(
            context,
            read,
            make_stages,
            late=late,
            late_tag=tag or LATE,
            bad_tag=of.sides.get((head, ERRORS), ""),
            name=head.name,
            idle_after_ms=head.idle_after_ms,
            when_idle=head.when_idle,
            max_ahead_ms=head.max_ahead_ms,
            is_whole=head.source.bounded,
        )

    return source


def _chain_task(of: _Chain, ids: Mapping[Operator, str]) -> TaskFactory:
    make_stages = _stage_maker(of.steps, of.sides, ids)
    sources = len(sources_of(of.steps[-1]))

    def chain(context: TaskContext) -> ChainTask:
        context.sources = sources
        return ChainTask(context, make_stages)

    return chain


def _stage_maker(
    steps: Sequence[Operator], sides: Sides, ids: Mapping[Operator, str]
) -> Callable[[TaskContext], Sequence[Stage]]:
    """Return a function that makes the stages of a chain for one task; ``ids`` name the steps."""

    def make(context: TaskContext) -> StagesOfSteps:
        stages: list[Stage] = []
        of: list[str] = []
        of_task = context.rejects
        for is_fused, run in groupby(steps, key=lambda step: step.fused is not None):
            if is_fused:
                first, *more = run
                functions = [each for step in (first, *more) if (each := step.fused) is not None]
                limit = context.limits.batch_records
                fused = fused_stages(functions, limit=limit, rejects=of_task)
                stages += fused
                of += [ids[first]] * len(fused)  # They keep nothing.
                continue
            for step in run:
                context.rejects = _rejects_of(step, context, sides)
                made = step.make_stages(context, sides)
                context.rejects = of_task
                stages += made
                of += [ids[step]] * len(made)
        return StagesOfSteps(stages, of)

    return make


def _rejects_of(step: Operator, context: TaskContext, sides: Sides) -> Rejects:
    """Return the policy for records on which a step raises: its own, or that of its task."""
    if step.on_error is None:
        return context.rejects
    tag = sides.get((step, ERRORS))

    def aside(record: Any, time: int) -> None:
        assert tag is not None, "there is a tag where it is taken"
        context.output_to(tag, Message(record, time))

    return context.rejects.of_step(step.on_error, aside if tag else None)


def _step_specs(
    placed: Sequence[Operator], ids: Mapping[Operator, str], bounds: Mapping[Operator, ScaleBounds]
) -> dict[Operator, StepSpec]:
    gives: dict[Operator, Kind] = {}
    specs: dict[Operator, StepSpec] = {}
    for step in placed:
        kinds = {
            "rows" if isinstance(source, SideOperator) else gives[source] for source in step.inputs
        }
        taken: Kind = "table" if kinds == {"table"} else "rows"
        gives[step] = step.kind_given(taken)
        specs[step] = StepSpec(
            id=ids[step],
            name=step.name,
            kind=step.kind,
            keeps=step.keeps,
            key=step.shown_key,
            takes=_WORDS[taken if step.inputs else gives[step]],
            gives=_WORDS[gives[step]],
            is_whole=isinstance(step, ProcessOperator),
            order=step.order,
            bounds=None if step.part else bounds.get(step.origin or step),
            note=step.note,
        )
    return specs


_DIGEST_CHARS: Final = 8
_CHARS_MAX: Final = 60
#: A text that can be part of the name of a state as it is.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. ()<>=,:+*/-]*")


def operator_ids(steps: Sequence[Operator]) -> dict[Operator, str]:
    given = Counter(step.given for step in steps if step.given)
    twice = [
        f"{count} steps have the name {name!r}: what they keep is found by it, "
        "so give each a name of its own"
        for name, count in given.items()
        if count > 1
    ]
    if twice:
        raise ConfigError(*twice)
    taken = {_of_name(step.given) for step in steps if step.given}
    ids: dict[Operator, str] = {}
    from_: dict[Operator, str] = {}  # The origin of the records of a step, as text.
    times: Counter[str] = Counter()
    for step in steps:
        if step.given:
            ids[step] = _of_name(step.given)
        else:
            text = "\n".join((step.kind, step.structure, *_origins(step, from_)))
            derived = f"{step.kind}-{sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]}"
            name = ""
            while not name or name in taken:
                times[derived] += 1
                name = derived if times[derived] == 1 else f"{derived}-{times[derived]}"
            ids[step] = name
        from_[step] = ids[step] if step.keeps else " ".join(sorted(set(_origins(step, from_))))
    return ids


def step_ids(placed: Sequence[Operator], ids: Mapping[Operator, str]) -> dict[Operator, str]:
    """Return the id of each step of the plan that runs; the parts of one begin with its id."""
    found: dict[Operator, str] = {}
    times: Counter[str] = Counter()
    for step in placed:
        if step in ids:
            name = ids[step]
        elif step.origin is None:  # A conversion.
            (source,) = step.inputs
            name = f"{found[maker_of(source)]}.{step.kind}"
        else:
            name = ids[step.origin] + (f".{step.part}" if step.part else "")
        times[name] += 1
        found[step] = name if times[name] == 1 else f"{name}-{times[name]}"
    return found


def _origins(step: Operator, from_: Mapping[Operator, str]) -> list[str]:
    found = [
        f"{from_[maker_of(source)]}@{source.tag}"
        if isinstance(source, SideOperator)
        else from_[source]
        for source in step.inputs
    ]
    return found if step.keeps else sorted(found)


def _of_name(given: str) -> str:
    if len(given) <= _CHARS_MAX and _PLAIN.fullmatch(given):
        return given
    return f"name-{sha256(given.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
