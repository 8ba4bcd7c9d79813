"""The bounds of the parallelism that autoscale may choose: from a text, and in a graph."""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from gearpy.core.dag.graph import Dag, ProcessorSpec
from gearpy.errors import ConfigError
from gearpy.messages.summaries import ScaleBounds

BUSY_MIN: Final = 0.1
BUSY_MAX: Final = 0.9
_TEXT: Final = re.compile(r"([0-9]{1,6})\.\.([0-9]{1,6})(?:@([0-9]{1,3})%?)?")


def checked_bounds(step: str, bounds: ScaleBounds) -> ScaleBounds:
    mistakes = []
    if bounds.least < 1:
        mistakes.append(f"step {step!r} cannot have {bounds.least} tasks: give it 1 or more")
    if bounds.most < bounds.least:
        mistakes.append(
            f"step {step!r}: at most {bounds.most} tasks are fewer than at least {bounds.least}"
        )
    if not BUSY_MIN <= bounds.busy <= BUSY_MAX:
        mistakes.append(
            f"step {step!r}: tasks cannot be aimed to be busy for {bounds.busy:.0%} of their time: "
            f"give from {BUSY_MIN:.0%} to {BUSY_MAX:.0%}, which is {BUSY_MIN} to {BUSY_MAX}"
        )
    if mistakes:
        raise ConfigError(*mistakes)
    return bounds


def bounds_in(text: str) -> tuple[str, ScaleBounds]:
    """Return a step and its bounds, from a text such as ``count=1..8`` or ``count=1..8@60%``."""
    step, _, rest = text.rpartition("=")
    found = _TEXT.fullmatch(rest.strip())
    if not step or found is None:
        raise ConfigError(f"{text}: write a step and its tasks, as in count=1..8 or count=1..8@60%")
    bounds = ScaleBounds(least=int(found[1]), most=int(found[2]))
    if found[3]:
        bounds = replace(bounds, busy=int(found[3]) / 100)
    return step.strip(), checked_bounds(step.strip(), bounds)


def tasks_and_bounds(
    steps: Mapping[str, int | str],
) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, ScaleBounds], ...]]:
    """Return steps that get a number of tasks, and those that get bounds, as texts such as 1..8."""
    tasks = tuple((step, each) for step, each in steps.items() if isinstance(each, int))
    texts = [f"{step}={each}" for step, each in steps.items() if not isinstance(each, int)]
    return tasks, tuple(map(bounds_in, texts))


def bounds_text(bounds: ScaleBounds) -> str:
    return f"{bounds.least}..{bounds.most}@{bounds.busy:.0%}"


def bounds_by_id(
    dag: Dag, given: Iterable[tuple[str, ScaleBounds]]
) -> tuple[tuple[str, ScaleBounds], ...]:
    """Return bounds of steps by their ids, so that a later one of a step takes its place."""
    processors = {
        pid: dataclasses.replace(
            spec, steps=tuple(dataclasses.replace(each, bounds=None) for each in spec.steps)
        )
        for pid, spec in dag.processors.items()
    }
    bound = with_bounds(Dag(dag.version, processors, dag.edges), given)
    if mistakes := [text for spec in bound.processors.values() for text in _too_many(spec)]:
        raise ConfigError(*mistakes)
    return tuple(
        (step.id, step.bounds)
        for spec in bound.processors.values()
        for step in spec.steps
        if step.bounds is not None
    )


def _too_many(spec: ProcessorSpec) -> Iterator[str]:
    count = spec.partition_count
    for step in spec.steps:
        if step.bounds is not None and step.bounds.most > count > 0:
            yield (
                f"step {step.id!r}: at most {step.bounds.most} tasks are more than the "
                f"partitions of its source: give {count} or fewer"
            )


def with_bounds(dag: Dag, given: Iterable[tuple[str, ScaleBounds]]) -> Dag:
    wanted = dict(given)
    if not wanted:
        return dag
    known = {
        name
        for spec in dag.processors.values()
        for step in spec.steps
        for name in (step.id, step.name)
    }
    if missing := [name for name in wanted if name not in known]:
        ids = ", ".join(step.id for spec in dag.processors.values() for step in spec.steps)
        raise ConfigError(
            *(f"autoscale: no step is called {each!r}: take one of {ids}" for each in missing)
        )
    processors = {pid: _bound(spec, wanted) for pid, spec in dag.processors.items()}
    return Dag(dag.version, processors, dag.edges)


def _bound(spec: ProcessorSpec, wanted: Mapping[str, ScaleBounds]) -> ProcessorSpec:
    steps = tuple(
        dataclasses.replace(step, bounds=wanted.get(step.id, wanted.get(step.name, step.bounds)))
        for step in spec.steps
    )
    return dataclasses.replace(spec, steps=steps)
