"""ProgramOutline: a loaded program as plain data, for those who have to do with it and run none."""

import json
import logging
from collections.abc import Callable, Iterator
from typing import Final, Literal, TypeAlias

from msgspec import Struct, to_builtins

from gearpy.cluster.programs.artifacts import Program, no_stream, other_kind, with_serializers
from gearpy.cluster.programs.compared import ComparedPrograms
from gearpy.config.schema import Config
from gearpy.core.app.hosts import localities_in, with_hosts
from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec
from gearpy.core.dag.state_moves import layout_of
from gearpy.core.scaling.bounds import bounds_in, with_bounds
from gearpy.errors import ConfigError
from gearpy.ids import ProcessorId
from gearpy.messages.client import Artifact
from gearpy.messages.cluster import SlotWishes
from gearpy.task.api.actor_app import ActorApp
from gearpy.task.api.application import StreamApplication
from gearpy.task.api.failure import USER_ERRORS
from gearpy.task.stages.guarantees import PathGuarantee, guarantees_of
from gearpy.task.stages.plan import physical_plan

_log = logging.getLogger(__name__)

#: The difference between a processor of one version and one of another, by their numbers; and
#: whether the processor itself is another one.
Difference: TypeAlias = tuple[ProcessorId, ProcessorId, str, bool]
_UNKNOWN: Final = "what runs is not known"


class ProgramOutline(Struct, frozen=True, kw_only=True):
    """The graph of a program and what it says of itself; none of its code."""

    name: str
    runs: Literal["streams", "actors"]
    processors: tuple[ProcessorSpec, ...] = ()
    edges: tuple[EdgeSpec, ...] = ()
    wishes: SlotWishes = SlotWishes()
    near: tuple[str, ...] = ()
    paths: tuple[PathGuarantee, ...] = ()
    plan: str = ""

    def dag(self, version: int = 0) -> Dag:
        return Dag(version, {each.id: each for each in self.processors}, self.edges)

    def check_stream(self, use: str) -> None:
        if self.runs == "actors":
            raise ConfigError(no_stream(self.name, use))

    def check_submitted(self) -> None:
        if self.runs == "actors":
            raise ConfigError(other_kind(self.name, ActorApp, StreamApplication))


class OutlineDifferences(Struct, frozen=True, kw_only=True):
    """The differences of a program from the one that runs, as both were loaded side by side.

    Attributes:
        before: the processors that the one that runs has when it is loaded now.
        found: of each pair of processors that may take each other's place, how they differ.
    """

    before: tuple[ProcessorSpec, ...] = ()
    found: tuple[Difference, ...] = ()
    why_unknown: str = ""

    def between(self, running: Dag, old: ProcessorId, new: ProcessorId) -> tuple[str, bool]:
        """Return how a processor of what runs differs from one of the new program, for people.

        Empty if both do the same; and whether the difference is its own, and not only that of one
        before it.
        """
        if self.why_unknown:
            return self.why_unknown, True
        kinds = {each.id: (each.name, each.kind) for each in self.before}
        spec = running.processors.get(old)
        if spec is None or kinds.get(old) != (spec.name, spec.kind):
            return _UNKNOWN, True  # It is loaded as another graph now.
        known = {(was, now): (text, is_own) for was, now, text, is_own in self.found}
        return known.get((old, new), (_UNKNOWN, True))


class LoadedProgram(Struct, frozen=True, kw_only=True):
    """A program as it was loaded in a process of its own, beside the one it is compared with."""

    artifact: Artifact
    outline: ProgramOutline
    compared: Artifact | None = None
    differences: OutlineDifferences = OutlineDifferences()


#: Loads a program, and another one to compare it with, elsewhere; raises `GearpyError`.
LoadProgram: TypeAlias = Callable[[Artifact, Artifact | None], LoadedProgram]


def outline_of(program: Program, artifact: Artifact, config: Config) -> ProgramOutline:
    if not isinstance(program, StreamApplication):
        return ProgramOutline(name=program.name, runs="actors")
    asked = config.application
    dag = with_hosts(program.dag, localities_in(asked.localities))
    program.dag = with_bounds(dag, [*map(bounds_in, asked.autoscale), *artifact.bounds])
    with_serializers(program, config)
    return ProgramOutline(
        name=program.name,
        runs="streams",
        processors=tuple(program.dag.processors.values()),
        edges=program.dag.edges,
        wishes=program.wishes,
        near=near_data(program),
        paths=tuple(guarantees_of(program)),
        plan=json.dumps(to_builtins(physical_plan(program))),
    )


def differences(old: StreamApplication, new: StreamApplication) -> OutlineDifferences:
    compared = ComparedPrograms(old, new)
    pairs = dict.fromkeys(_pairs(old.dag, new.dag))
    return OutlineDifferences(
        before=tuple(old.dag.processors.values()),
        found=tuple((was, now, *compared.compare(was, now)) for was, now in pairs),
    )


def _pairs(old: Dag, new: Dag) -> Iterator[tuple[ProcessorId, ProcessorId]]:
    yield from ((p, p) for p in new.order if old.processors.get(p) == new.processors[p])
    before = layout_of(old)
    for id_, place in layout_of(new).items():
        if id_ in before:
            yield before[id_].processor, place.processor


def near_data(application: StreamApplication) -> tuple[str, ...]:
    """Return the machines that have the data of an application; none if they cannot be told.

    A store may call a machine by its whole name, and the machine itself by the first part of it.
    """
    sources = [each.source for each in application.processors.values() if each.source]
    try:
        hosts = [host for source in sources for host in source.hosts()]
        return tuple(dict.fromkeys(name for each in hosts for name in (each, each.split(".")[0])))
    except USER_ERRORS as error:
        _log.warning("application %s: where its data is, is not known: %s", application.name, error)
        return ()
