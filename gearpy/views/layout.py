"""The places of processors in a drawing: columns as the data flows, with few crossings.

An edge over several columns has a bend in each between, so that it goes around what is there. The
places depend on the graph alone: they do not move while numbers change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from gearpy.core.base.graph import levels

WIDTH: Final = 190  #: Of the box of a processor.
HEIGHT: Final = 96
_GAP_X: Final = 72
_GAP_Y: Final = 26
_BEND_HEIGHT: Final = 12
_MARGIN: Final = 12
_SWEEPS: Final = 4

Point: TypeAlias = tuple[float, float]
#: A processor, or a bend: of the edge between the first two, in the column of the last number.
_Slot: TypeAlias = int | tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of a graph."""

    boxes: Mapping[int, Point]
    lines: Mapping[tuple[int, int], Sequence[Point]]
    width: float
    height: float


def layout_of(processors: Sequence[int], edges: Sequence[tuple[int, int]]) -> Layout:
    level = levels(processors, edges)
    columns: list[list[_Slot]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for each in processors:
        columns[level[each]].append(each)
    chains: dict[tuple[int, int], list[_Slot]] = {}
    for source, target in edges:
        bends = [(source, target, at) for at in range(level[source] + 1, level[target])]
        for bend in bends:
            columns[bend[2]].append(bend)
        chains[source, target] = [source, *bends, target]
    before: dict[_Slot, list[_Slot]] = {}
    behind: dict[_Slot, list[_Slot]] = {}
    for chain in chains.values():
        for left, right in pairwise(chain):
            behind.setdefault(left, []).append(right)
            before.setdefault(right, []).append(left)
    for sweep in range(_SWEEPS):
        ordered, joined = (columns[1:], before) if sweep % 2 == 0 else (columns[-2::-1], behind)
        for column in ordered:
            ranks = {slot: at / len(each) for each in columns for at, slot in enumerate(each)}
            near = {slot: joined.get(slot) or [slot] for slot in column}
            means = {slot: sum(ranks[e] for e in near[slot]) / len(near[slot]) for slot in column}
            column.sort(key=means.__getitem__)
    height = max((_height(column) for column in columns), default=0.0)
    places: dict[_Slot, Point] = {}
    for at, column in enumerate(columns):
        top = (height - _height(column)) / 2  # The column is in the middle.
        for slot in column:
            places[slot] = (_MARGIN + at * (WIDTH + _GAP_X), _MARGIN + top)
            top += _height_of(slot) + _GAP_Y
    lines: dict[tuple[int, int], list[Point]] = {}
    for edge, chain in chains.items():
        points = lines[edge] = []
        for slot in chain:
            x, top = places[slot]
            middle = top + _height_of(slot) / 2
            points += [(x, middle)] * (slot != chain[0])
            points += [(x + WIDTH, middle)] * (slot != chain[-1])
    return Layout(
        boxes={slot: place for slot, place in places.items() if isinstance(slot, int)},
        lines=lines,
        width=2 * _MARGIN + max(0, len(columns) * (WIDTH + _GAP_X) - _GAP_X),
        height=2 * _MARGIN + height,
    )


def _height(column: Sequence[_Slot]) -> float:
    return sum(_height_of(slot) + _GAP_Y for slot in column) - _GAP_Y


def _height_of(slot: _Slot) -> float:
    return HEIGHT if isinstance(slot, int) else _BEND_HEIGHT
