"""Where the boxes of a layered drawing stand, and the corners of the lines between them.

Layers go from top to bottom. A line that passes a layer has a gap of its own there; in each layer
boxes and gaps are ordered by where their neighbours in the other layers stand.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

__all__ = ["Layout", "Placed", "Point", "layered"]

#: A box by its number, or the gap of an edge (by its place among the edges) in a layer.
_Slot: TypeAlias = tuple[str, int, int]
Point: TypeAlias = tuple[float, float]

_GAP_WIDTH: Final = 24.0
_BETWEEN: Final = 32.0
_SWEEPS: Final = 6


@dataclass(frozen=True, slots=True)
class Placed:
    """A box: its left upper corner, and its size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """The boxes by number, the corners of each edge, and the size of all."""

    boxes: Mapping[int, Placed]
    lines: Sequence[Sequence[Point]]
    width: float
    height: float


def layered(
    levels: Mapping[int, int],
    edges: Sequence[tuple[int, int]],
    sizes: Mapping[int, Point],
    *,
    between_layers: float,
) -> Layout:
    """Return where everything stands.

    Args:
        levels: the layer of each box.
        edges: numbers of boxes, each from a layer to a later one.
        sizes: width and height of each box.
        between_layers: room for what stands at edges.
    """
    layers, ways = _slots(levels, edges)
    _order(layers, ways)
    widths = {slot: _width(slot, sizes) for layer in layers for slot in layer}
    totals = [sum(widths[slot] for slot in each) + _BETWEEN * (len(each) - 1) for each in layers]
    whole = max(totals, default=0.0)
    boxes: dict[int, Placed] = {}
    gaps: dict[_Slot, tuple[float, float, float]] = {}
    y = 0.0
    for layer, total in zip(layers, totals, strict=True):
        height = max((sizes[number][1] for kind, number, _ in layer if kind == "box"), default=0.0)
        x = (whole - total) / 2
        for slot in layer:
            if slot[0] == "box":
                boxes[slot[1]] = Placed(x, y, widths[slot], sizes[slot[1]][1])
            else:
                gaps[slot] = (x + widths[slot] / 2, y, y + height)
            x += widths[slot] + _BETWEEN
        y += height + between_layers
    lines = [_line(way, boxes, gaps) for way in ways]
    return Layout(boxes, lines, whole, max(0.0, y - between_layers))


def _slots(
    levels: Mapping[int, int], edges: Sequence[tuple[int, int]]
) -> tuple[list[list[_Slot]], list[list[_Slot]]]:
    """Return what is in each layer, and through what each edge goes."""
    layers: list[list[_Slot]] = [[] for _ in range(max(levels.values(), default=-1) + 1)]
    for number, level in levels.items():
        layers[level].append(("box", number, level))
    ways: list[list[_Slot]] = []
    for place, (source, target) in enumerate(edges):
        passed: list[_Slot] = [
            ("gap", place, level) for level in range(levels[source] + 1, levels[target])
        ]
        for slot in passed:
            layers[slot[2]].append(slot)
        ways.append([("box", source, levels[source]), *passed, ("box", target, levels[target])])
    return layers, ways


def _order(layers: list[list[_Slot]], ways: Sequence[Sequence[_Slot]]) -> None:
    """Sort each layer by the middle of its neighbours above, then below, and so on."""
    above: dict[_Slot, list[_Slot]] = {}
    below: dict[_Slot, list[_Slot]] = {}
    for way in ways:
        for one, other in pairwise(way):
            above.setdefault(other, []).append(one)
            below.setdefault(one, []).append(other)
    for sweep in range(_SWEEPS):
        near, order = (above, layers) if sweep % 2 == 0 else (below, layers[::-1])
        for layer in order:
            place = {
                slot: (at + 0.5) / len(each) for each in layers for at, slot in enumerate(each)
            }
            middle = {slot: _middle(slot, near.get(slot, ()), place) for slot in layer}
            layer.sort(key=middle.__getitem__)


def _middle(slot: _Slot, near: Sequence[_Slot], place: Mapping[_Slot, float]) -> float:
    return sum(place[each] for each in near) / len(near) if near else place[slot]


def _width(slot: _Slot, sizes: Mapping[int, Point]) -> float:
    return sizes[slot[1]][0] if slot[0] == "box" else _GAP_WIDTH


def _line(
    way: Sequence[_Slot],
    boxes: Mapping[int, Placed],
    gaps: Mapping[_Slot, tuple[float, float, float]],
) -> list[Point]:
    source, target = boxes[way[0][1]], boxes[way[-1][1]]
    points = [(source.x + source.width / 2, source.y + source.height)]
    for slot in way[1:-1]:
        x, top, bottom = gaps[slot]
        points += [(x, top), (x, bottom)]
    return [*points, (target.x + target.width / 2, target.y)]
