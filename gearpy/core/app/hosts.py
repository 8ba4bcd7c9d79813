"""The machines that the tasks of a processor may be on, and what a program wishes for all."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, get_args

from gearpy.core.dag.graph import Dag, ProcessorSpec
from gearpy.core.master.slots import equal_parts
from gearpy.errors import ConfigError
from gearpy.messages.cluster import SlotPriority, SlotRelaxation, SlotWishes

#: The only place for tasks whose source or sink is in the memory of the program that runs them.
PROGRAM_PROCESS: Final = "the process of the program"


class BoundSlots(NamedTuple):
    """The slots of one executor that may be on these machines only."""

    slots: int
    hosts: tuple[str, ...]


def bound_slots(dag: Dag) -> list[BoundSlots]:
    """Return the executors for the tasks that are bound to machines; one a machine at most."""
    tasks = Counter[tuple[str, ...]]()
    for spec in dag.processors.values():
        if spec.hosts:
            tasks[spec.hosts] += spec.parallelism
    return [
        BoundSlots(slots, hosts)
        for hosts, count in sorted(tasks.items())
        for slots in equal_parts(count, len(hosts))
    ]


def localities_in(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    parts = (line.partition("=") for line in lines)
    return {step.strip(): tuple(hosts.split("|")) for step, _, hosts in parts}


def with_hosts(dag: Dag, localities: Mapping[str, tuple[str, ...]]) -> Dag:
    """Return a dag whose processors are bound to the machines that are named for their steps.

    A processor is found by its name, or by the name or id of one of its steps. Gearpump:
    `TaskLocator`.
    """
    bound: dict[ProcessorSpec, str] = {}
    if not localities:
        return dag
    mistakes = []
    for name in localities:
        found = [
            spec
            for spec in dag.processors.values()
            if name in {spec.name, *(name for step in spec.steps for name in (step.id, step.name))}
        ]
        if not found:
            known = ", ".join(repr(spec.name) for spec in dag.processors.values())
            mistakes.append(f"localities: no step is called {name!r}; there are: {known}")
        for spec in found:
            other = bound.setdefault(spec, name)
            if localities[other] != localities[name]:
                mistakes.append(
                    f"localities: {other!r} and {name!r} run in the same tasks: name "
                    "the same machines for both"
                )
    if mistakes:
        raise ConfigError(*mistakes)
    processors = {
        pid: replace(spec, hosts=localities[bound[spec]]) if spec in bound else spec
        for pid, spec in dag.processors.items()
    }
    return Dag(dag.version, processors, dag.edges)


def slot_wishes(
    *, hosts: Sequence[str], priority: SlotPriority, relaxation: SlotRelaxation
) -> SlotWishes:
    """Return the places and times of a program's slots; an empty one is as configured."""
    mistakes = [
        f"{name} is {given!r}, must be one of {', '.join(known)}"
        for name, given, known in (
            ("priority", priority, [each for each in get_args(SlotPriority) if each]),
            ("relaxation", relaxation, [each for each in get_args(SlotRelaxation) if each]),
        )
        if given and given not in known
    ]
    if isinstance(hosts, str):
        mistakes.append(f"hosts is the text {hosts!r}: give a list, [{hosts!r}]")
    if mistakes:
        raise ConfigError(*mistakes)
    return SlotWishes(priority=priority, relaxation=relaxation, hosts=tuple(hosts))
