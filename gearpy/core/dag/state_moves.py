"""The moves of the state of each step when one graph replaces another.

State is found by the id of its step, wherever in the new graph that is. What was kept in another
form, or by a step that is no more, has no place there.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec, StepSpec, regions_of
from gearpy.ids import ProcessorId

Fate: TypeAlias = Literal["kept", "moved", "changed", "dropped", "new"]


class StepPlace(NamedTuple):
    """The place of a step: its processor, the tasks of that, and its number in the chain."""

    processor: ProcessorId
    parallelism: int
    place: int
    step: StepSpec


#: All steps of a graph, by id.
Layout: TypeAlias = Mapping[str, StepPlace]


class StateMove(Struct, frozen=True, kw_only=True):
    """The move of a step.

    ``fate``: "kept" where it was; "moved" to another processor, with all that it keeps; "changed",
    so that what was kept is of no use; "dropped"; or "new", which begins empty.
    """

    id: str
    fate: Fate
    old: StepPlace | None = None
    new: StepPlace | None = None

    @property
    def name(self) -> str:
        place = self.new or self.old
        return "" if place is None else place.step.name

    @property
    def is_lost(self) -> bool:
        return self.fate in {"changed", "dropped"} and bool(self.old and self.old.step.keeps)

    @property
    def keeps_something(self) -> bool:
        place = self.new or self.old
        return place is not None and bool(place.step.keeps)

    @property
    def is_spread_anew(self) -> bool:
        return (
            self.fate in {"kept", "moved"}
            and self.old is not None
            and self.new is not None
            and self.old.parallelism != self.new.parallelism
            and bool(self.new.step.keeps)
        )

    def __str__(self) -> str:
        where = keeps = ""
        if self.old is not None and self.new is not None:
            if self.fate == "moved":
                where = f": processor {self.old.processor} to {self.new.processor}"
            if self.old.parallelism != self.new.parallelism:
                where += f": x{self.old.parallelism} to x{self.new.parallelism}"
        if self.fate == "changed" and self.old is not None and self.new is not None:
            was, now = self.old.step.keeps or "nothing", self.new.step.keeps or "nothing"
            keeps = f": kept {was}; now {now}"
        elif (place := self.old or self.new) is not None and place.step.keeps:
            keeps = f": {place.step.keeps}"
        return f"{self.fate} {self.name} [{self.id}]{where}{keeps}"


def layout_of(dag: Dag) -> Layout:
    return {
        step.id: StepPlace(pid, dag.processors[pid].parallelism, at, step)
        for pid in dag.order
        for at, step in enumerate(dag.processors[pid].steps)
    }


def state_moves(old: Layout, new: Layout) -> list[StateMove]:
    """Return the move of each step, in the order of the new graph; dropped steps are last."""
    # A processor is the same whose first step that both graphs have is in both.
    same: dict[ProcessorId, ProcessorId] = {}
    for name, place in new.items():
        before = old.get(name)
        taken = before is None or before.processor in same or place.processor in same.values()
        if before is not None and not taken:
            same[before.processor] = place.processor
    found: list[StateMove] = []
    for name, place in new.items():
        fate: Fate = "new"
        if (before := old.get(name)) is not None:
            was, now = before.step, place.step
            if (was.keeps, was.is_whole) != (now.keeps, now.is_whole):
                fate = "changed"
            else:
                fate = "kept" if same.get(before.processor) == place.processor else "moved"
        found.append(StateMove(id=name, fate=fate, old=before, new=place))
    gone = [
        StateMove(id=name, fate="dropped", old=place)
        for name, place in old.items()
        if name not in new
    ]
    return [*found, *gone]


def untouched_regions(
    old: Dag, new: Dag, is_same_code: Callable[[ProcessorId], bool]
) -> frozenset[int]:
    """Return the numbers of the regions that are the same in both graphs, under these numbers.

    None is if there is no other one: then the whole application begins anew.
    """
    before, after = regions_of(old), regions_of(new)
    same = frozenset(
        number
        for number, (was, now) in enumerate(zip(before, after, strict=False))
        if was == now and _part(old, was) == _part(new, now) and all(map(is_same_code, now))
    )
    return same if len(same) < len(after) else frozenset()


def lost(moves: Iterable[StateMove]) -> list[StateMove]:
    return [each for each in moves if each.is_lost]


def _part(dag: Dag, pids: tuple[ProcessorId, ...]) -> tuple[list[ProcessorSpec], list[EdgeSpec]]:
    edges = [each for each in dag.edges if each.source in pids]
    return [dag.processors[pid] for pid in pids], sorted(edges, key=lambda each: each.ends)
