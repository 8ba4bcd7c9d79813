"""What joins give, by looking at all pairs of records."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from gearpy.ids import MAX_MS, MIN_MS

#: Key, left, right, start, end.
Joined: TypeAlias = tuple[Any, Any, Any, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinPlan:
    kind: Literal["window", "cogroup", "interval", "asof", "latest"]
    how: Literal["inner", "left", "right", "outer"] = "inner"
    windows: Literal["tumbling", "sliding", "session", "global"] = "tumbling"
    size_ms: int = 10
    every_ms: int = 5
    offset_ms: int = 0
    gap_ms: int = 5
    before_ms: int = 0
    after_ms: int = 0
    direction: Literal["backward", "forward", "nearest"] = "backward"
    tolerance_ms: int | None = None


class Side(NamedTuple):
    """A record of one side as it came: which side (0 is left), and the watermark then."""

    number: int
    side: int
    key: Any
    row: Any
    time_ms: int
    watermark_ms: int


def accepted(plan: JoinPlan, sides: Sequence[Side]) -> list[Side]:
    if plan.kind in {"window", "cogroup"}:
        if plan.windows == "session":
            return _accepted_by_sessions(plan, sides)
        return [
            each for each in sides if any(each.watermark_ms < end for _, end in _in(plan, each))
        ]
    return [
        each
        for each in sides
        if each.time_ms >= each.watermark_ms or (plan.kind == "latest" and each.side == 0)
    ]


def joined(plan: JoinPlan, sides: Sequence[Side]) -> list[Joined]:
    """Return all results, in no order; the records are those that were accepted."""
    match plan.kind:
        case "window" | "cogroup":
            return list(_by_windows(plan, sides))
        case "interval":
            return list(_by_interval(plan, sides))
        case "asof":
            return list(_by_nearest(plan, sides))
        case "latest":
            return list(_by_arrival(plan, sides))


def _by_windows(plan: JoinPlan, sides: Sequence[Side]) -> Iterator[Joined]:
    for (key, start, end), members in _groups(plan, sides).items():
        lefts = [each.row for each in members if each.side == 0]
        rights = [each.row for each in members if each.side == 1]
        if plan.kind == "cogroup":
            yield key, lefts, rights, start, end
        else:
            yield from ((key, *pair, start, end) for pair in _pairs(plan, lefts, rights))


def _groups(plan: JoinPlan, sides: Sequence[Side]) -> dict[tuple[Any, int, int], list[Side]]:
    if plan.windows == "session":
        return {(key, start, end): members for key, start, end, members in _sessions(plan, sides)}
    groups: dict[tuple[Any, int, int], list[Side]] = {}
    for each in sides:
        for start, end in _in(plan, each):
            if each.watermark_ms < end:
                groups.setdefault((each.key, start, end), []).append(each)
    return groups


def _pairs(plan: JoinPlan, lefts: list[Any], rights: list[Any]) -> Iterator[tuple[Any, Any]]:
    yield from ((left, right) for left in lefts for right in rights)
    if not rights and plan.how in {"left", "outer"}:
        yield from ((left, None) for left in lefts)
    if not lefts and plan.how in {"right", "outer"}:
        yield from ((None, right) for right in rights)


def _in(plan: JoinPlan, each: Side) -> list[tuple[int, int]]:
    if plan.windows == "global":
        return [(MIN_MS, MAX_MS)]
    every = plan.size_ms if plan.windows == "tumbling" else plan.every_ms
    newest = each.time_ms - (each.time_ms - plan.offset_ms) % every
    starts = range(newest, each.time_ms - plan.size_ms, -every)
    return [(start, start + plan.size_ms) for start in starts]


def _sessions(plan: JoinPlan, sides: Sequence[Side]) -> Iterator[tuple[Any, int, int, list[Side]]]:
    """Yield the sessions; what the watermark has closed goes on with nothing any more."""
    live: list[tuple[Any, int, int, list[Side]]] = []
    for each in sides:
        start, end, members = each.time_ms, each.time_ms + plan.gap_ms, [each]
        for one in [one for one in live if one[0] == each.key and one[2] > each.watermark_ms]:
            if one[1] < each.time_ms + plan.gap_ms and each.time_ms < one[2]:
                start, end = min(start, one[1]), max(end, one[2])
                members = one[3] + members
                live.remove(one)
        live.append((each.key, start, end, members))
    for key, start, end, members in live:
        yield key, start, end, sorted(members)


def _accepted_by_sessions(plan: JoinPlan, sides: Sequence[Side]) -> list[Side]:
    taken: list[Side] = []
    for each in sides:
        for _, _, end, members in _sessions(plan, [*taken, each]):
            if each in members and end > each.watermark_ms:
                taken.append(each)
    return taken


def _by_interval(plan: JoinPlan, sides: Sequence[Side]) -> Iterator[Joined]:
    alone = set(sides_ids := [each.number for each in sides])
    assert len(alone) == len(sides_ids)
    for left in (each for each in sides if each.side == 0):
        for right in (each for each in sides if each.side == 1 and each.key == left.key):
            if left.time_ms - plan.before_ms <= right.time_ms <= left.time_ms + plan.after_ms:
                alone -= {left.number, right.number}
                first, last = sorted((left.time_ms, right.time_ms))
                yield left.key, left.row, right.row, first, last + 1
    kept = {"inner": (), "left": (0,), "right": (1,), "outer": (0, 1)}[plan.how]
    for each in sides:
        if each.number in alone and each.side in kept:
            pair = (each.row, None) if each.side == 0 else (None, each.row)
            yield each.key, *pair, each.time_ms, each.time_ms + 1


def _by_nearest(plan: JoinPlan, sides: Sequence[Side]) -> Iterator[Joined]:
    for left in (each for each in sides if each.side == 0):
        rights = [
            each
            for each in sides
            if each.side == 1
            and each.key == left.key
            and _may_match(plan, each.time_ms - left.time_ms)
        ]
        if rights:
            right = min(rights, key=lambda each: _nearness(plan, left, each))
            first, last = sorted((left.time_ms, right.time_ms))
            yield left.key, left.row, right.row, first, last + 1
        elif plan.how == "left":
            yield left.key, left.row, None, left.time_ms, left.time_ms + 1


def _may_match(plan: JoinPlan, ahead_ms: int) -> bool:
    if plan.tolerance_ms is not None and abs(ahead_ms) > plan.tolerance_ms:
        return False
    if plan.direction == "backward":
        return ahead_ms <= 0
    return plan.direction == "nearest" or ahead_ms >= 0


def _nearness(plan: JoinPlan, left: Side, right: Side) -> tuple[int, bool, int]:
    """Order by distance; the older at the same distance, and the newest of the same time.

    What is looked for ahead is found when it comes first.
    """
    ahead_ms = right.time_ms - left.time_ms
    is_ahead = ahead_ms > 0 or plan.direction == "forward"
    return abs(ahead_ms), is_ahead, right.number if is_ahead else -right.number


def _by_arrival(plan: JoinPlan, sides: Sequence[Side]) -> Iterator[Joined]:
    for at, each in enumerate(sides):
        if each.side == 1:
            continue
        before = [right for right in sides[:at] if right.side == 1 and right.key == each.key]
        found = max(before, key=lambda right: (right.time_ms, right.number), default=None)
        row = None if found is None else found.row
        if row is not None or plan.how == "left":
            yield each.key, each.row, row, each.time_ms, each.time_ms + 1
