"""The graph of one application as the cluster sees it: processors, edges, tasks.

A `Dag` holds no code, only names and numbers, so that app master and executors can each
build it from the program and compare `Dag.structural_hash`. Gearpump: `DAG`.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from gearpy.core.base import graph
from gearpy.errors import ConfigError, GraphError
from gearpy.ids import MAX_MS, MIN_MS, ExecutorId, ProcessorId, TaskId
from gearpy.messages.summaries import ScaleBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """The event times in ms, ``[birth_ms, death_ms)``, of a processor. Gearpump: `LifeTime`."""

    birth_ms: int = MIN_MS
    death_ms: int = MAX_MS

    def __post_init__(self) -> None:
        for name, given in (("birth_ms", self.birth_ms), ("death_ms", self.death_ms)):
            if type(given) is not int or not MIN_MS <= given <= MAX_MS:
                raise ConfigError(
                    f"Life: {name} is {given!r:.80}: give an event time as whole milliseconds "
                    "since 1970, such as int(moment.timestamp() * 1000)"
                )


#: Records that meet others of their source again: none, those of the other side of a join, any.
Meeting: TypeAlias = Literal["none", "other side", "any"]
#: Kinds of the steps that say of which side of a join their records are.
_SIDES: Final = frozenset({"left", "right"})

#: The life of a processor that was never replaced. Gearpump: `LifeTime.Immortal`.
IMMORTAL = Life()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSpec:
    """A step of a processor: described for people, and identified to find its state again.

    Attributes:
        id: names it over changes of the program; unique in a graph.
        keeps: what it keeps over restarts, and in which form; empty for nothing. What was kept
            under another text is of no use to it.
        key: the key by which its records come together; empty if that does not matter.
        takes, gives: "rows" or "columns".
        is_whole: it is the user's own task, and all that the task keeps is its.
        order: the order of records that it depends on, for people; empty if it does not.
        bounds: the tasks that autoscale may give it; None: as many as it has.
        note: what it does to values, for people, such as times that it cuts; empty if nothing.
    """

    id: str
    name: str = ""
    kind: str = ""
    keeps: str = ""
    key: str = ""
    takes: str = "rows"
    gives: str = "rows"
    is_whole: bool = False
    order: str = ""
    bounds: ScaleBounds | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorSpec:
    """One processor. ``kind`` names the task that it runs; the dag only compares it.

    ``partitions`` names the input of a source: each task takes its share of them by their order, so
    all processes must find the same. ``steps`` describe its parts; they do not count when graphs
    are compared. ``hosts`` are the machines that its tasks may be on, if not all; they do not
    count either, nor does ``leaves_open``: a task that dies has something open outside that others
    wait for, see `Sink.settle`; nor ``replays``, see `Source.replayable`. ``life`` has the event
    time at which it has taken the place of another one, see `birth_of_change`. Gearpump:
    `ProcessorDescription`.
    """

    id: ProcessorId
    name: str
    parallelism: int = 1
    kind: str = ""
    life: Life = IMMORTAL
    partitions: str = ""
    steps: tuple[StepSpec, ...] = ()
    hosts: tuple[str, ...] = ()
    leaves_open: bool = False
    replays: bool = False

    @property
    def partition_count(self) -> int:
        if self.partitions.startswith("["):
            return len(json.loads(self.partitions))
        return int(self.partitions.partition(" ")[0] or 0)

    def tasks(self) -> tuple[TaskId, ...]:
        return tuple(TaskId(self.id, index) for index in range(self.parallelism))


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSpec:
    """A stream from one processor to another, spread by the named partitioner."""

    source: ProcessorId
    target: ProcessorId
    partitioner: str = "hash"

    @property
    def ends(self) -> tuple[ProcessorId, ProcessorId]:
        return self.source, self.target


@dataclass(frozen=True)
class Dag:
    """An immutable, checked graph of processors with a version.

    Invariant: at least one processor, every one with at least one task; edges join known
    processors, at most one for each pair, without a cycle. Gearpump allows cycles; here
    they are refused, because a watermark could never pass one.
    """

    version: int
    processors: Mapping[ProcessorId, ProcessorSpec]
    edges: tuple[EdgeSpec, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "processors", MappingProxyType(dict(self.processors)))
        object.__setattr__(self, "edges", tuple(self.edges))
        mistakes = [
            f"processor {spec.name!r} has id {spec.id} but is filed under {pid}"
            for pid, spec in self.processors.items()
            if spec.id != pid
        ]
        mistakes += [
            f"processor {spec.name!r} has parallelism {spec.parallelism}: give it at least 1"
            for spec in self.processors.values()
            if spec.parallelism < 1
        ]
        if not self.processors:
            mistakes.append("the graph is empty: add at least one processor")
        ends = [edge.ends for edge in self.edges]
        mistakes += [
            f"an edge names processor {pid}, which is not in the graph: add the processor first"
            for pid in graph.unknown_vertices(self.processors, ends)
        ]
        mistakes += [
            f"there is more than one edge {self._names(pair)}: keep one"
            for pair in graph.duplicate_edges(ends)
        ]
        known = [pair for pair in ends if all(end in self.processors for end in pair)]
        if cycle := graph.find_cycle(list(self.processors), known):
            mistakes.append(f"the graph has a cycle: {self._names(cycle)}: remove one of its edges")
        if mistakes:
            raise GraphError(*mistakes)

    def _names(self, pids: Iterable[ProcessorId]) -> str:
        named = (self.processors[pid].name if pid in self.processors else str(pid) for pid in pids)
        return " -> ".join(named)

    @classmethod
    def build(
        cls, processors: Iterable[ProcessorSpec], edges: Iterable[EdgeSpec], *, version: int = 0
    ) -> "Dag":
        """Make a dag and number its processors in topological order from 0.

        The ids given only say which processors an edge joins; of several that could come next, the
        one given first does. Gearpump: `StreamApplication`.
        """
        given = tuple(processors)
        by_id = {spec.id: spec for spec in given}
        if len(by_id) < len(given):
            names: dict[ProcessorId, list[str]] = {}
            for spec in given:
                names.setdefault(spec.id, []).append(spec.name)
            raise GraphError(
                *(
                    f"processor id {pid} is used by {' and '.join(map(repr, users))}: give each "
                    "its own"
                    for pid, users in names.items()
                    if len(users) > 1
                )
            )
        return cls(version, by_id, tuple(edges)).renumbered()

    def __hash__(self) -> int:
        return hash((self.version, self.edges))

    @cached_property
    def order(self) -> tuple[ProcessorId, ...]:
        ends = [edge.ends for edge in self.edges]
        return tuple(graph.topological_order(list(self.processors), ends))

    @cached_property
    def renumbering(self) -> Mapping[ProcessorId, ProcessorId]:
        return MappingProxyType({pid: ProcessorId(place) for place, pid in enumerate(self.order)})

    def renumbered(self) -> "Dag":
        new = self.renumbering
        processors = {new[pid]: replace(self.processors[pid], id=new[pid]) for pid in self.order}
        edges = [
            replace(edge, source=new[edge.source], target=new[edge.target]) for edge in self.edges
        ]
        return Dag(self.version, processors, tuple(sorted(edges, key=lambda edge: edge.ends)))

    @cached_property
    def levels(self) -> Mapping[ProcessorId, int]:
        ends = [edge.ends for edge in self.edges]
        return MappingProxyType(graph.levels(list(self.processors), ends))

    @cached_property
    def _incoming(self) -> Mapping[ProcessorId, tuple[EdgeSpec, ...]]:
        return {
            pid: tuple(edge for edge in self.edges if edge.target == pid) for pid in self.processors
        }

    @cached_property
    def _outgoing(self) -> Mapping[ProcessorId, tuple[EdgeSpec, ...]]:
        return {
            pid: tuple(edge for edge in self.edges if edge.source == pid) for pid in self.processors
        }

    def upstream(self, pid: ProcessorId) -> tuple[ProcessorId, ...]:
        return tuple(edge.source for edge in self._incoming[pid])

    def downstream(self, pid: ProcessorId) -> tuple[ProcessorId, ...]:
        return tuple(edge.target for edge in self._outgoing[pid])

    def meets(self, source: ProcessorId, target: ProcessorId) -> Meeting:
        """Tell which records of the same source may come to the target by another edge, too.

        They come in no order then, as one path may be slower than the other. Only those of the
        other side of a join can be told from these.
        """
        others = {
            other
            for other in self.upstream(target)
            if other != source and self._read_from[other] & self._read_from[source]
        }
        if not others:
            return "none"
        sides = [self._side_of(pid) for pid in (source, *others)]
        return "other side" if all(sides) and sides.count(sides[0]) == 1 else "any"

    def _side_of(self, pid: ProcessorId) -> str:
        steps = self.processors[pid].steps
        return steps[-1].kind if steps and steps[-1].kind in _SIDES else ""

    @cached_property
    def _read_from(self) -> Mapping[ProcessorId, frozenset[ProcessorId]]:
        """The sources whose records may come to each processor; a source has its own."""
        found: dict[ProcessorId, frozenset[ProcessorId]] = {}
        for pid in self.order:
            above = self.upstream(pid)
            found[pid] = (
                frozenset().union(*(found[each] for each in above)) if above else frozenset({pid})
            )
        return found

    def sources(self) -> tuple[ProcessorId, ...]:
        return tuple(pid for pid in self.order if not self._incoming[pid])

    def sinks(self) -> tuple[ProcessorId, ...]:
        return tuple(pid for pid in self.order if not self._outgoing[pid])

    def tasks(self) -> tuple[TaskId, ...]:
        return tuple(task for pid in sorted(self.processors) for task in self.tasks_of(pid))

    def tasks_of(self, *pids: ProcessorId) -> tuple[TaskId, ...]:
        return tuple(task for pid in pids for task in self.processors[pid].tasks())

    @cached_property
    def task_count(self) -> int:
        return sum(spec.parallelism for spec in self.processors.values())

    def upstream_tasks(self, task: TaskId) -> tuple[TaskId, ...]:
        return self.tasks_of(*self.upstream(ProcessorId(task.processor)))

    def without(self, *pids: ProcessorId) -> "Dag":
        processors = {pid: spec for pid, spec in self.processors.items() if pid not in pids}
        edges = [edge for edge in self.edges if not {*edge.ends} & {*pids}]
        return Dag(self.version, processors, tuple(edges))

    def structural_hash(self) -> str:
        """Return a digest of processors and edges, alike in every process that built them.

        The version and the order in which things were given do not count.
        """
        content = {
            "processors": [
                [
                    *(spec.id, spec.name, spec.parallelism, spec.kind),
                    *(spec.life.birth_ms, spec.life.death_ms),
                    *([spec.partitions] if spec.partitions else []),
                ]
                for _, spec in sorted(self.processors.items())
            ],
            "edges": sorted([edge.source, edge.target, edge.partitioner] for edge in self.edges),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def description(self) -> tuple[str, ...]:
        """All that the structural hash is made of, as one line for each processor and edge.

        A line begins with the number of the processor, or the numbers that the edge joins; see
        `core.dag.difference`.
        """
        lines: list[str] = []
        for _, spec in sorted(self.processors.items()):
            born, dead = spec.life.birth_ms, spec.life.death_ms
            life = "" if spec.life == IMMORTAL else f" life {born}..{dead}"
            kind = f" ({spec.kind})" if spec.kind else ""
            reads = f" reads {spec.partitions}" if spec.partitions else ""
            lines.append(f"{spec.id} {spec.name} x{spec.parallelism}{kind}{life}{reads}")
        edges = sorted((*edge.ends, edge.partitioner) for edge in self.edges)
        return (*lines, *(f"{source} -> {target} {name}" for source, target, name in edges))


def birth_of_change(old: Dag, new: Dag) -> int | None:
    """Find the event time, in ms, at which a graph says itself that it takes another one's place.

    It is the birth of the processors that are born at a time at which none of the old graph was.
    """
    known = {MIN_MS, *(each.life.birth_ms for each in old.processors.values())}
    births = {each.life.birth_ms for each in new.processors.values()} - known
    if len(births) > 1:
        times = ", ".join(map(str, sorted(births)))
        raise ConfigError(
            f"its processors are born at several event times ({times} ms): a change is made at one "
            "time, so give all of them the same birth, or make one change after the other"
        )
    return next(iter(births), None)


def regions_of(dag: Dag) -> tuple[tuple[ProcessorId, ...], ...]:
    """Return the processors of each connected part, all in topological order.

    No record can get from one part to another. A part's number is its place here; it depends on
    the dag alone.
    """
    parts: list[set[ProcessorId]] = []
    for start in dag.order:
        if not any(start in part for part in parts):
            found: set[ProcessorId] = set()
            waiting = [start]
            while waiting:
                pid = waiting.pop()
                if pid not in found:
                    found.add(pid)
                    waiting += [*dag.upstream(pid), *dag.downstream(pid)]
            parts.append(found)
    return tuple(tuple(pid for pid in dag.order if pid in part) for part in parts)


def without_regions(dag: Dag, numbers: Collection[int]) -> Dag:
    parts = regions_of(dag)
    return dag.without(*(pid for number in numbers for pid in parts[number]))


def place(
    dag: Dag,
    executor_slots: Mapping[ExecutorId, int],
    hosts: Mapping[ExecutorId, tuple[str, ...]] = MappingProxyType({}),
) -> dict[TaskId, ExecutorId]:
    """Give every task an executor, by the executors' slots and the machines that they are bound to.

    Executors of the same ``hosts`` share the tasks of the processors that are bound to these; those
    without share all others. Raises `ConfigError` if none has a slot for some of the tasks.
    """
    executors_of: dict[tuple[str, ...], dict[ExecutorId, int]] = {}
    for executor_id, slots in executor_slots.items():
        executors_of.setdefault(hosts.get(executor_id, ()), {})[executor_id] = slots
    bound_to = {pid: spec.hosts for pid, spec in dag.processors.items()}
    placement: dict[TaskId, ExecutorId] = {}

    def turn(task: TaskId) -> tuple[Fraction, int]:
        # As far along as it is among those of its processor. By index alone the last tasks
        # would all be of the processor that has most, and so would be its records and state.
        parallelism = dag.processors[ProcessorId(task.processor)].parallelism
        return Fraction(2 * task.task_index + 1, 2 * parallelism), task.processor

    for machines in sorted(set(bound_to.values())):
        tasks = dag.tasks_of(*(pid for pid in sorted(bound_to) if bound_to[pid] == machines))
        placement |= _shared_out(sorted(tasks, key=turn), executors_of.get(machines, {}))
    return placement


def _shared_out(
    tasks: Sequence[TaskId], executor_slots: Mapping[ExecutorId, int]
) -> dict[TaskId, ExecutorId]:
    """Share tasks out among executors, each of which gets some that stand in a row.

    A record then often finds its next task in the same process. Each gets its share, rounded, and
    more tasks than slots only where there are more tasks than slots at all. Gearpump:
    `TaskScheduler`.
    """
    slots = {executor: executor_slots[executor] for executor in sorted(executor_slots)}
    total = sum(slots.values())
    if total <= 0:
        raise ConfigError(f"none of {len(slots)} executors has a slot: give one at least 1")
    # Rounding the running total keeps every share within one of what is due.
    ends = [len(tasks) * taken // total for taken in accumulate(slots.values())]
    starts = [0, *ends]
    return {
        task: executor
        for executor, start, end in zip(slots, starts, ends, strict=False)
        for task in tasks[start:end]
    }
