"""Joins of whole streams, one record with all others; and streams to compare with them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from hypothesis import strategies as st

from gearpy.core.join.sides import LEFT, RIGHT, How, Join
from gearpy.core.window.windows import AlignedWindows
from gearpy.ids import MAX_MS, MIN_MS

__all__ = [
    "HOWS",
    "STEPS",
    "Given",
    "Run",
    "Step",
    "asof",
    "columns",
    "fed",
    "in_time",
    "in_windows",
    "interval",
    "latest",
    "sessions",
    "with_restarts",
    "without_late",
]

HOWS: tuple[How, ...] = ("inner", "left", "right", "outer")


class Given(NamedTuple):
    """A record that a join is given."""

    side: int
    key: Any
    value: Any
    time: int


#: A batch, or a watermark.
Step: TypeAlias = "list[Given] | int"
Result: TypeAlias = tuple[tuple[Any, Any, Any, int, int], int]


# -- streams ---------------------------------------------------------------------------------


def _numbered(steps: list[Any]) -> list[Step]:
    """Give each record a value of its own, and let watermarks only rise."""
    numbered: list[Step] = []
    number, watermark_ms = 0, MIN_MS
    for step in steps:
        if isinstance(step, list):
            batch = []
            for side, key, time in step:
                number += 1
                batch.append(Given(side, key, f"{'LR'[side]}{number}", time))
            numbered.append(batch)
        elif step > watermark_ms:
            watermark_ms = step
            numbered.append(step)
    return [*numbered, MAX_MS]


_RECORD = st.tuples(st.sampled_from([LEFT, RIGHT]), st.integers(0, 2), st.integers(-20, 60))
_BATCH = st.lists(_RECORD, min_size=1, max_size=8)

#: Batches of both sides, out of order and late, and watermarks between them.
STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(_BATCH, _BATCH, st.integers(-30, 70)), max_size=14
).map(_numbered)


def without_late(steps: list[Step]) -> list[Step]:
    """Return the steps without the records that are older than the watermark."""
    kept: list[Step] = []
    watermark_ms = MIN_MS
    for step in steps:
        if isinstance(step, int):
            watermark_ms = step
            kept.append(step)
        elif some := [given for given in step if given.time >= watermark_ms]:
            kept.append(some)
    return kept


def in_time(steps: Iterable[Step]) -> Iterator[tuple[Given, int]]:
    """Yield all records, each with the watermark that it comes behind."""
    watermark_ms = MIN_MS
    for step in steps:
        if isinstance(step, int):
            watermark_ms = step
        else:
            for given in step:
                yield given, watermark_ms


# -- a join at work --------------------------------------------------------------------------


@dataclass
class Run:
    """What a join has yielded, at which step; and that no clock was ahead of it."""

    results: list[Result] = field(default_factory=list)
    by_step: list[list[Result]] = field(default_factory=list)
    late: int = 0

    @property
    def counted(self) -> Counter[Result]:
        """The results in no order."""
        return Counter(self.results)


def columns(batch: list[Given]) -> tuple[list[Any], list[int]]:
    """Return a batch as a join takes it."""
    return [tuple(given[:3]) for given in batch], [given.time for given in batch]


def fed(join: Join, steps: Iterable[Step], *, is_promised: bool = True) -> Run:
    """Give a join all steps; see that no result is older than was promised."""
    run = Run()
    watermark_ms = least_ms = MIN_MS
    for step in steps:
        # What is passed on is the watermark, as far as it is not held. It never goes back.
        least_ms = max(least_ms, min(join.hold_ms, watermark_ms))
        if isinstance(step, int):
            watermark_ms = step
            portions = join.on_watermark(step)
        else:
            portions = join.on_records(*columns(step))
        out = [result for rows, times in portions for result in zip(rows, times, strict=True)]
        assert not is_promised or all(time >= least_ms for _, time in out)
        run.results += out
        run.by_step.append(out)
    run.late = join.late_records
    return run


def with_restarts(
    make: Callable[[], Join],
    steps: Iterable[Step],
    *,
    every: int,
    is_all_freed: bool = True,
    is_promised: bool = True,
) -> Run:
    """Do the same, but let it tell at each step what has changed, and now and then go on anew.

    The new one knows only what those before it have told. ``every`` so many steps there is one.
    """
    run = Run()
    cells: dict[Any, dict[Any, Any]] = {}
    join, watermark_ms = make(), MIN_MS
    join.resume(MIN_MS)
    for number, step in enumerate(steps):
        late = join.late_records
        one = fed(join, [step], is_promised=is_promised)
        run.results += one.results
        run.by_step += one.by_step
        run.late += one.late - late
        watermark_ms = step if isinstance(step, int) else watermark_ms
        _store(cells, join)
        if number % every:
            continue
        join = make()
        for namespace in sorted(cells, key=repr, reverse=True):  # In no order that helps.
            pairs = dict(reversed(cells[namespace].items()))
            join.load(namespace, {key: _copied(value) for key, value in pairs.items()})
        join.resume(watermark_ms)
    assert not is_all_freed or not cells, "all is freed at the end of the stream"
    return run


def _store(cells: dict[Any, dict[Any, Any]], join: Join) -> None:
    for namespace, pairs, is_deleted in join.changes():
        stored = cells.setdefault(namespace, {})
        if is_deleted:
            for key in pairs:
                stored.pop(key, None)
        else:
            stored.update((key, _copied(value)) for key, value in pairs.items())
        if not stored:
            del cells[namespace]


def _copied(value: Any) -> Any:
    return [_copied(each) for each in value] if isinstance(value, list) else value


# -- what it should yield --------------------------------------------------------------------


def _split(records: Iterable[Given], key: Any) -> tuple[list[Given], list[Given]]:
    mine = [given for given in records if given.key == key]
    return [g for g in mine if g.side == LEFT], [g for g in mine if g.side == RIGHT]


def _paired(
    lefts: list[Given], rights: list[Given], how: How, fits: Callable[[Given, Given], bool]
) -> Iterator[tuple[Given | None, Given | None]]:
    for left in lefts:
        partners = [right for right in rights if fits(left, right)]
        yield from ((left, right) for right in partners)
        if not partners and how in ("left", "outer"):
            yield left, None
    if how in ("right", "outer"):
        for right in rights:
            if not any(fits(left, right) for left in lefts):
                yield None, right


def _of_window(records: list[Given], how: How, start: int, end: int) -> Iterator[Result]:
    for key in {given.key for given in records}:
        for left, right in _paired(*_split(records, key), how, lambda _, __: True):
            yield (key, left and left.value, right and right.value, start, end), end - 1


def in_windows(windows: AlignedWindows, how: How, steps: list[Step]) -> Counter[Result]:
    """Return the pairs of each window, of the records that came before it closed."""
    held: dict[int, list[Given]] = {}
    for given, watermark_ms in in_time(steps):
        for start in windows.starts_of(given.time):
            if windows.end_of(start) > watermark_ms:
                held.setdefault(start, []).append(given)
    return Counter(
        result
        for start, records in held.items()
        for result in _of_window(records, how, start, windows.end_of(start))
    )


def sessions(gap_ms: int, how: How, steps: list[Step]) -> Counter[Result]:
    """Return the pairs of each session; no record is late."""
    found: Counter[Result] = Counter()
    records = sorted((given for given, _ in in_time(steps)), key=lambda given: given.time)
    for key in {given.key for given in records}:
        groups: list[list[Given]] = []
        for given in (given for given in records if given.key == key):
            if groups and given.time < groups[-1][-1].time + gap_ms:
                groups[-1].append(given)
            else:
                groups.append([given])
        for group in groups:
            found.update(_of_window(group, how, group[0].time, group[-1].time + gap_ms))
    return found


def interval(before_ms: int, after_ms: int, how: How, steps: list[Step]) -> Counter[Result]:
    """Return the pairs whose times are near each other; no record is late."""
    records = [given for given, _ in in_time(steps)]

    def fits(left: Given, right: Given) -> bool:
        return left.time - before_ms <= right.time <= left.time + after_ms

    return Counter(
        _result(key, left, right)
        for key in {given.key for given in records}
        for left, right in _paired(*_split(records, key), how, fits)
    )


def asof(direction: str, tolerance_ms: int | None, how: str, steps: list[Step]) -> Counter[Result]:
    """Return each left record with the nearest right one; no record is late."""
    records = [given for given, _ in in_time(steps)]
    found: Counter[Result] = Counter()
    for key in {given.key for given in records}:
        lefts, rights = _split(records, key)
        for left in lefts:
            nearest = _nearest(left, rights, direction, tolerance_ms)
            if nearest is not None or how == "left":
                found[_result(key, left, nearest)] += 1
    return found


def _nearest(
    left: Given, rights: list[Given], direction: str, tolerance_ms: int | None
) -> Given | None:
    """Of equal times the last one counts looking back, the first one looking ahead."""
    near = [
        right
        for right in rights
        if tolerance_ms is None or abs(left.time - right.time) <= tolerance_ms
    ]
    backward = max(
        ((right.time, at, right) for at, right in enumerate(near) if right.time <= left.time),
        default=None,
    )
    forward = min(
        ((right.time, at, right) for at, right in enumerate(near) if right.time >= left.time),
        default=None,
    )
    if direction == "backward" or forward is None:
        return backward[2] if backward is not None and direction != "forward" else None
    if direction == "forward" or backward is None:
        return forward[2]
    return min(backward, forward, key=lambda found: abs(found[0] - left.time))[2]


def _result(key: Any, left: Given | None, right: Given | None) -> Result:
    times = [given.time for given in (left, right) if given is not None]
    row = (key, left and left.value, right and right.value, min(times), max(times) + 1)
    return row, max(times)


def latest(how: str, steps: list[Step], *, gone: Callable[[Any], bool]) -> list[Result]:
    """Return each left record with the table as it is then; no right record is late."""
    results: list[Result] = []
    table: dict[Any, tuple[int, Any]] = {}
    for given, _ in in_time(steps):
        if given.side == RIGHT:
            value = None if gone(given.value) else given.value
            if given.time >= table.get(given.key, (MIN_MS, None))[0]:
                table[given.key] = (given.time, value)
        else:
            right = table.get(given.key, (MIN_MS, None))[1]
            if right is not None or how == "left":
                row = (given.key, given.value, right, given.time, given.time + 1)
                results.append((row, given.time))
    return results
