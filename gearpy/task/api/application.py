"""The low-level graph: processors, edges, and the application made of them.

Holds the user's code; the cluster itself passes only the `Dag` made from it around.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, TypeAlias

from gearpy.core.app.hosts import PROGRAM_PROCESS, slot_wishes
from gearpy.core.dag.graph import IMMORTAL, Dag, EdgeSpec, Life, ProcessorSpec, StepSpec
from gearpy.core.flow.partition import HashPartitioner, Partitioner
from gearpy.errors import ConfigError, GraphError
from gearpy.ids import MAX_MS, ProcessorId
from gearpy.messages.cluster import SlotPriority, SlotRelaxation
from gearpy.messages.summaries import Until
from gearpy.task.api.interfaces import Sink, Source, Task, TaskContext
from gearpy.wire.values.class_names import without_package

TaskFactory: TypeAlias = Callable[[TaskContext], Task]
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_PARTITIONS_CHARS_MAX: Final = 200


@dataclass(eq=False, slots=True)
class Processor:
    """An operator: a `Task` class (or a function that makes one) and how many of them run.

    Two processors are the same only if they are the same object. Gearpump: `Processor`.

    Args:
        task: called with the `TaskContext` on the executor, once for each task.
        parallelism: number of tasks.
        name: for people; derived from the class if not given.
        config: plain values the task finds in `TaskContext.config`.
        dispatcher: "pinned" gives each task a thread of its own, for code that blocks.
        source: the source it reads, if any; checked when the application is built.
        key: gives the key of a record, for keyed state; the records must come by this key.
        ordered: the task gets its records in the order of event time, and key timers between them.
        sources: how many sources they may come from; 0 if that is not known.
        sink: the sink it writes to, if any; for the guarantee that people are told.
        steps: the steps in it; if not given, it is one step, found again by its name.
        hosts: the machines that its tasks may be on, as `application.hosts` names them; none: all.
        life: the event times that are its own, if `ReplaceProcessor` gives none.

    Raises:
        ConfigError: ``life`` has a death, or is no `Life`.
    """

    task: TaskFactory
    parallelism: int = 1
    name: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    dispatcher: Literal["default", "shared", "pinned"] = "default"
    source: Source | None = None
    key: Callable[[Any], Any] | None = None
    ordered: bool = False
    sources: int = 0
    sink: Sink | None = None
    steps: Sequence[StepSpec] = ()
    hosts: Sequence[str] = ()
    life: Life = IMMORTAL

    def __post_init__(self) -> None:
        self.name = self.name or getattr(self.task, "__name__", type(self.task).__name__)
        _check_life(self.name, self.life)


@dataclass(frozen=True, slots=True)
class ReplaceProcessor:
    """A processor that takes the place of another one in a graph. Gearpump: `ReplaceProcessor`.

    It is for a program that takes the place of one that runs: records from the birth on, in event
    time, are of the new processor, older ones of the old one. Without a birth the change is made as
    soon as it can be. Submitted as a new application, the program has the new processor only.

    Args:
        old: a processor of the graph.
        new: gets its edges. If it has the same name and task, it also has what that kept.
        life: ``Life(birth_ms=...)``; it ends when another one takes its place.

    Raises:
        ConfigError: ``life`` has a death, or something is of another type.
    """

    old: Processor
    new: Processor
    life: Life = IMMORTAL

    def __post_init__(self) -> None:
        for each in (self.old, self.new):
            if not isinstance(each, Processor):
                raise ConfigError(f"ReplaceProcessor: {each!r:.80} is no Processor: give two")
        _check_life(self.new.name, self.life)


def _check_life(name: str, life: object) -> None:
    if not isinstance(life, Life):
        raise ConfigError(
            f"processor {name!r} has {life!r:.80} as life: give gp.Life(birth_ms=...)"
        )
    if life.death_ms != MAX_MS:
        raise ConfigError(
            f"processor {name!r} has a death: it ends when another one takes its "
            "place, so leave death_ms out, and replace it at that event time"
        )


class Graph:
    """Processors and the edges between them. Gearpump: `Graph`."""

    def __init__(self) -> None:
        self._processors: list[Processor] = []
        self._edges: list[tuple[Processor, Processor, Partitioner]] = []

    def add(self, processor: Processor) -> "Graph":
        """Add a processor; adding it again changes nothing."""
        if not any(known is processor for known in self._processors):
            self._processors.append(processor)
        return self

    def connect(
        self, source: Processor, target: Processor, partitioner: Partitioner | None = None
    ) -> "Graph":
        """Send the output of one processor to another, spread by ``partitioner`` (hash)."""
        self.add(source).add(target)
        self._edges.append((source, target, partitioner or HashPartitioner()))
        return self

    def replace(self, change: ReplaceProcessor) -> "Graph":
        """Put one processor in the place of another, with the edges of that.

        Raises:
            ConfigError: the old one is not in the graph, or the new one is already.
        """
        if not isinstance(change, ReplaceProcessor):
            raise ConfigError(
                f"Graph.replace: {change!r:.80} is no change: give gp.ReplaceProcessor(old, new)"
            )
        old, new = change.old, change.new
        if not any(known is old for known in self._processors):
            names = ", ".join(known.name for known in self._processors)
            raise ConfigError(
                f"processor {old.name!r} is not in the graph, which has {names or 'none'}: "
                "give the object that was added"
            )
        if old is not new and any(known is new for known in self._processors):
            raise ConfigError(
                f"processor {new.name!r} is in the graph already, and cannot be in the place of "
                f"{old.name!r}, too: make another one of the same task"
            )
        new.life = new.life if change.life == IMMORTAL else change.life
        self._processors = [new if each is old else each for each in self._processors]
        self._edges = [
            (new if source is old else source, new if target is old else target, partitioner)
            for source, target, partitioner in self._edges
        ]
        return self

    @property
    def processors(self) -> list[Processor]:
        """The processors in the order they were added."""
        return list(self._processors)

    @property
    def edges(self) -> list[tuple[Processor, Processor, Partitioner]]:
        """The edges in the order they were added."""
        return list(self._edges)


class Buildable(Protocol):
    """A maker of a `StreamApplication`; the stream language has one, too."""

    def build(self) -> "StreamApplication":
        """Return the application, checked.

        Raises:
            ConfigError: it cannot run; all mistakes at once.
        """
        ...


class StreamApplication:
    """A named graph, ready to run. Gearpump: `StreamApplication`.

    Attributes:
        dag: the graph without code; processors are numbered in topological order.
        processors: the processor of each number.
        partitioners: the partitioner of each edge (source number, target number).
        wishes: where and when it wants its slots, by the arguments; see `StreamApp`.
        near: names of machines that have the data it reads; its slots are better there.
        of_no_use: the text for the user, if a run would give nothing; empty otherwise.
        until: where it ends; with "caught-up" its sources are read up to what is there.
        program: the package of the modules that made it, where several programs share a process.
        folder: where its files are, which never change; empty if it was not uploaded.
        plan_spread: plans it anew for a number of processes; None for a graph by hand.

    Raises:
        ConfigError: name, graph or a source is wrong; all mistakes at once.
    """

    def __init__(
        self,
        name: str,
        graph: Graph,
        *,
        hosts: Sequence[str] = (),
        priority: SlotPriority = "",
        relaxation: SlotRelaxation = "",
    ) -> None:
        self.name = name
        self.wishes = slot_wishes(hosts=hosts, priority=priority, relaxation=relaxation)
        self.near: tuple[str, ...] = ()
        self.of_no_use = ""
        self.until: Until = "end"
        self.program = self.folder = ""
        self.plan_spread: Callable[[int], StreamApplication] | None = None
        mistakes = name_mistakes(name)
        if no_numbers := [m for p in graph.processors for m in _number_mistakes(p)]:
            raise ConfigError(*mistakes, *no_numbers)  # Nothing else could be compared with them.
        mistakes += [m for p in graph.processors for m in _source_mistakes(p)]
        mistakes += _sink_mistakes(graph.processors)
        mistakes += [m for edge in graph.edges for m in _edge_mistakes(*edge)]
        try:
            self._number(graph)
        except GraphError as error:
            raise GraphError(*mistakes, *error.mistakes) from None
        if mistakes:
            raise ConfigError(*mistakes)

    def build(self) -> "StreamApplication":
        """Return the application itself, as it is a `Buildable`, too."""
        return self

    def scaled(self, scale: Mapping[str, int], *, until: Until = "end") -> "StreamApplication":
        """Return the application with other numbers of tasks of steps, by id or name.

        Args:
            scale: the tasks.
            until: "caught-up": it ends when it has read what is there; see `Source.up_to_now`.

        Raises:
            ConfigError: it cannot run, or there is no such step.
        """
        specs = {pid: self.dag.processors[pid].steps for pid in self.dag.order}
        tasks = steps_scaled(scale, [step for steps in specs.values() for step in steps])
        if until != self.until and any(each.source for each in self.processors.values()):
            raise ConfigError(
                f"{self.name} was built before, so it is too late to say until={until!r}: give the "
                "StreamApp itself, not what its build() returns"
            )
        scaled = self._copy(
            {
                pid: replace(
                    self.processors[pid],
                    parallelism=next(
                        (tasks[step.id] for step in specs[pid] if step.id in tasks),
                        self.processors[pid].parallelism,
                    ),
                )
                for pid in self.dag.order
            }
        )
        scaled.until = until
        return scaled

    def spread(self, processes: int) -> "StreamApplication":
        """Return the application as it runs on so many processes of one machine.

        Steps have as many tasks as processes, unless the program says how many. What is in the
        memory of the program, such as a list that it fills, has its tasks there.

        Raises:
            ConfigError: it cannot run.
        """
        if processes == 1:
            return self
        if self.plan_spread is not None:
            return self.plan_spread(processes)
        return self._copy(
            {
                pid: replace(each, hosts=[PROGRAM_PROCESS])
                if any(end is not None and end.of_program for end in (each.source, each.sink))
                else replace(each)
                for pid, each in self.processors.items()
            }
        )

    def _copy(self, copies: Mapping[ProcessorId, Processor]) -> "StreamApplication":
        graph = Graph()
        for pid in self.dag.order:
            graph.add(copies[pid])
        for (source, target), partitioner in self.partitioners.items():
            graph.connect(copies[source], copies[target], partitioner)
        scaled = StreamApplication(self.name, graph)
        scaled.wishes, scaled.near = self.wishes, self.near
        scaled.of_no_use, scaled.until = self.of_no_use, self.until
        scaled.program, scaled.folder = self.program, self.folder
        return scaled

    def _number(self, graph: Graph) -> None:
        given = graph.processors
        number = {id(processor): ProcessorId(i) for i, processor in enumerate(given)}
        specs = {
            number[id(p)]: ProcessorSpec(
                id=number[id(p)],
                name=p.name,
                parallelism=p.parallelism,
                kind=_kind(p),
                partitions=_partitions(p),
                steps=steps,
                hosts=tuple(p.hosts),
                leaves_open=p.sink is not None and p.sink.leaves_open,
                replays=p.source is not None and p.source.replayable,
                life=p.life,
            )
            for p, steps in zip(given, _steps(given), strict=True)
        }
        edges = [
            EdgeSpec(source=number[id(a)], target=number[id(b)], partitioner=partitioner.name)
            for a, b, partitioner in graph.edges
        ]
        provisional = Dag(0, specs, tuple(edges))
        place = provisional.renumbering
        self.dag = provisional.renumbered()
        self.processors = {place[number[id(p)]]: p for p in given}
        self.partitioners = {
            (place[number[id(a)]], place[number[id(b)]]): partitioner
            for a, b, partitioner in graph.edges
        }


def steps_scaled(scale: Mapping[str, int], steps: Sequence[StepSpec]) -> dict[str, int]:
    """Return the wanted tasks of steps by id, from those by id or name.

    Raises:
        ConfigError: there is no such step, or several; or the number is none. All at once.
    """
    found: dict[str, int] = {}
    mistakes: list[str] = []
    for name, tasks in scale.items():
        ids = {step.id for step in steps if step.id == name} or {
            step.id for step in steps if step.name == name
        }
        if ids & found.keys():
            mistakes.append(f"step {name!r} is given twice, by its id and by its name")
        elif len(ids) == 1 and tasks >= 1:
            found[ids.pop()] = tasks
        elif tasks < 1:
            mistakes.append(f"step {name!r} cannot have {tasks} tasks: give it 1 or more")
        else:
            known = ", ".join(sorted(ids or {step.id for step in steps}))
            what = "several steps are" if ids else "no step is"
            mistakes.append(f"{what} called {name!r}: take one of {known}")
    if mistakes:
        raise ConfigError(*mistakes)
    return found


def _kind(processor: Processor) -> str:
    task = processor.task
    module = without_package(getattr(task, "__module__", None) or "")
    return f"{module}.{getattr(task, '__qualname__', type(task).__name__)}"


def _steps(processors: Sequence[Processor]) -> Iterator[tuple[StepSpec, ...]]:
    """Yield the steps of each processor; one without steps is a step itself, numbered by name."""
    times: Counter[str] = Counter()
    for each in processors:
        if each.steps:
            yield tuple(each.steps)
            continue
        times[each.name] += 1
        number = "" if times[each.name] == 1 else f"-{times[each.name]}"
        yield (
            StepSpec(
                id=f"{each.name}{number}",
                name=each.name,
                kind="task",
                keeps=f"what its task keeps, {_kind(each)}",
                key="a function" if each.key is not None else "",
                is_whole=True,
            ),
        )


def _partitions(processor: Processor) -> str:
    """Return the partitions in the order by which tasks share them; many in short."""
    if processor.source is None:
        return ""
    try:
        names = sorted(processor.source.partitions())
    except ConfigError:
        return ""  # Told with all other mistakes.
    text = json.dumps(names)
    if len(text) <= _PARTITIONS_CHARS_MAX:
        return text
    ends = f"{json.dumps(names[0])} to {json.dumps(names[-1])}"
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{len(names)} partitions, {ends}, SHA-256 {digest}"


def name_mistakes(name: str) -> list[str]:
    """Return the mistakes in the name of an application; an empty list if there are none."""
    if _NAME.fullmatch(name):
        return []
    return [
        (
            f"application name {name!r}: start with a letter or underscore, "
            "go on with letters, digits, '_', '-' or '.'"
        )
    ]


def _number_mistakes(processor: Processor) -> list[str]:
    given = processor.parallelism
    if type(given) is int:
        return []
    return [f"processor {processor.name!r} has parallelism {given!r}: give a whole number from 1"]


def _source_mistakes(processor: Processor) -> list[str]:
    if processor.source is None:
        return []
    try:
        found = len(processor.source.partitions())
    except ConfigError as error:
        return list(error.mistakes)
    if processor.parallelism > found > 0:
        return [
            (
                f"processor {processor.name!r} has parallelism {processor.parallelism} "
                f"but its source has {found} partitions: lower the parallelism"
            )
        ]
    return []


def _sink_mistakes(processors: Sequence[Processor]) -> list[str]:
    """Find places that two transactional sinks write to: each would remove the other's files."""
    sinks = [p.sink for p in processors if p.sink and p.sink.transactional]
    places = [place for sink in sinks for place in sink.writes]
    return [
        f"{count} sinks write to {place}: give each a folder, prefix, writer or name of its own"
        for place, count in Counter(places).items()
        if count > 1
    ]


def _edge_mistakes(source: Processor, target: Processor, partitioner: Partitioner) -> list[str]:
    reason = partitioner.check(
        source_parallelism=source.parallelism, target_parallelism=target.parallelism
    )
    return [f"edge {source.name} -> {target.name}: {reason}"] if reason else []
