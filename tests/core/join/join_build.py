"""Streams for joins of cores, which run with and without restarts; and the definition of joins."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from hypothesis import strategies as st

from gearpy.core.base.key_copy import finish
from gearpy.core.join.changes import CellChange
from gearpy.core.join.sides import LEFT, RIGHT, Join
from gearpy.ids import MAX_MS, MIN_MS
from tests.oracle.joins import JoinPlan, Side, accepted, joined


class Given(NamedTuple):
    side: int
    key: Any
    value: Any
    time: int


#: A batch, or a watermark.
Step: TypeAlias = "list[Given] | int"
Result: TypeAlias = tuple[tuple[Any, Any, Any, int, int], int]


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


@dataclass
class Run:
    """What a join has yielded, at which step; and that no clock was ahead of it."""

    results: list[Result] = field(default_factory=list)
    by_step: list[list[Result]] = field(default_factory=list)
    late: int = 0

    @property
    def counted(self) -> Counter[Result]:
        return Counter(self.results)


def columns(batch: list[Given]) -> tuple[list[Any], list[int]]:
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
        store(cells, list(join.changes()))
        if number % every:
            continue
        join = make()
        for namespace in sorted(cells, key=repr, reverse=True):  # In no order that helps.
            pairs = dict(reversed(cells[namespace].items()))
            join.load(namespace, {key: _copied(value) for key, value in pairs.items()})
        join.resume(watermark_ms)
    assert not is_all_freed or not cells, "all is freed at the end of the stream"
    return run


def store(cells: dict[Any, dict[Any, Any]], changes: list[CellChange]) -> None:
    """Take changes that are whole over into cells by namespace and key."""
    for change in changes:
        finish(change.steps or ())
    for namespace, keys, values, _ in changes:
        stored = cells.setdefault(namespace, {})
        if values is None:
            for key in keys:
                del stored[key]
        else:
            stored.update(zip(keys, map(_copied, values), strict=True))
        if not stored:
            del cells[namespace]


def _copied(value: Any) -> Any:
    return [_copied(each) for each in value] if isinstance(value, list) else value


def expected(plan: JoinPlan, steps: Iterable[Step]) -> tuple[Counter[Result], int]:
    """Return the results by the definition of a join, and the number of late records."""
    sides: list[Side] = []
    watermark_ms = MIN_MS
    for step in steps:
        if isinstance(step, int):
            watermark_ms = step
            continue
        for side, key, value, time_ms in step:
            sides.append(Side(len(sides), side, key, value, time_ms, watermark_ms))
    good = accepted(plan, sides)
    # The time of a result is the last ms of what it spans.
    return Counter((row, row[4] - 1) for row in joined(plan, good)), len(sides) - len(good)
