"""Programs as plain data: what the stream language makes of them, and what must come out."""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from gearpy.columns.row_schema import row_schema_of
from gearpy.core.window import aggregates as agg
from gearpy.core.window import trigger
from gearpy.core.window import windows as window
from gearpy.core.window.accumulators import Aggregate
from gearpy.dsl.streams.keyed import KeyedStream
from gearpy.dsl.streams.stream import Stream
from gearpy.dsl.streams.windowed import WindowedStream
from tests.oracle.aggregates import batch_value
from tests.oracle.joins import JoinPlan
from tests.oracle.streams import COLUMNS, Row
from tests.oracle.windows import Arrival, Condition, WindowPlan

#: A result in a form that can be compared, and is the same for equal ones.
Shown: TypeAlias = tuple[Any, ...]

#: Name in the result, kind, and field of each aggregate.
Aggregates: TypeAlias = tuple[tuple[str, str, str | None], ...]
KeyForm: TypeAlias = Literal["none", "function", "name", "names"]

_DIGITS: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowProgram:
    """Sources, steps for each record, keys, windows, and what becomes of the records in them.

    Attributes:
        value: the word of the last step; "single" is that of its only aggregate.
    """

    plan: WindowPlan
    key: KeyForm = "function"
    change: Literal["none", "map", "filter", "flat_map"] = "none"
    value: Literal["count", "reduce", "fold", "single", "aggregate"] = "count"
    aggregates: Aggregates = ()
    columns: bool = False
    parallelism: int = 1
    sources: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinProgram:
    plan: JoinPlan
    key: KeyForm = "function"
    combines: bool = False
    columns: bool = False
    parallelism: int = 1
    partitions: int = 1


# -- what must come out ------------------------------------------------------------------------


def changed(program: WindowProgram, row: Row) -> list[Row]:
    match program.change:
        case "none":
            return [row]
        case "map":
            return [_changed(row)]
        case "filter":
            return [row] if _is_kept(row) else []
        case "flat_map":
            return _both(row)


def key_of(program: WindowProgram | JoinProgram, row: Row) -> Any:
    match program.key:
        case "none":
            return None
        case "names":
            return (row["k"], row["g"])
        case _:
            return row["k"]


def value_of(program: WindowProgram, arrivals: Sequence[Arrival]) -> Any:
    rows = [(each.time_ms, each.row) for each in arrivals]
    match program.value:
        case "count":
            return len(rows)
        case "reduce":
            newest = max((row for _, row in rows), key=operator.itemgetter("id"))
            total = sum(row["v"] or 0 for _, row in rows)
            return newest if len(rows) == 1 else {**newest, "v": total}
        case "fold":
            return sorted(row["id"] for _, row in rows)
        case "single":
            (_, kind, of), *_ = program.aggregates
            return batch_value(kind, of, rows)
        case "aggregate":
            return {name: batch_value(kind, of, rows) for name, kind, of in program.aggregates}


def plain(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return tuple(sorted((name, plain(each)) for name, each in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    return value


# -- in the stream language --------------------------------------------------------------------


def windowed_stream(
    program: WindowProgram, stream: Stream[Any], *, has_columns: bool = False
) -> Stream[Any]:
    rows = _in_steps(program, stream)
    if program.columns and not (has_columns and program.change == "none"):
        columns = row_schema_of(COLUMNS).arrow
        rows = rows.map_batches(_same, takes=columns, schema=columns)
    windows = windows_of(program.plan)
    late = program.plan.policy
    of: WindowedStream[Any, Any] = (
        rows.window(windows, late=late)
        if program.key == "none"
        else _keyed(program, rows).window(windows, late=late)
    )
    match program.value:
        case "count":
            return of.count()
        case "reduce":
            return of.reduce(_reduced)
        case "fold":
            return of.fold([], _with_id, merge=_with_ids)
        case "single":
            (_, kind, field), *_ = program.aggregates
            return of.top_n(2, field) if kind == "top" else getattr(of, kind)(field)
        case "aggregate":
            return of.aggregate(
                **{name: _aggregate(kind, field) for name, kind, field in program.aggregates}
            )


def joined_stream(program: JoinProgram, left: Stream[Any], right: Stream[Any]) -> Stream[Any]:
    plan = program.plan
    lefts: KeyedStream[Any, Any] = _keyed(program, left)
    rights: KeyedStream[Any, Any] = _keyed(program, right)
    how: Any = plan.how
    combine: Any = {"combine": _pair} if program.combines and plan.kind != "cogroup" else {}
    match plan.kind:
        case "window":
            return lefts.join(rights, _join_windows(plan), how=how, **combine)
        case "cogroup":
            return lefts.cogroup(rights, _join_windows(plan))
        case "interval":
            return lefts.join_interval(
                rights, before=f"{plan.before_ms}ms", after=f"{plan.after_ms}ms", how=how, **combine
            )
        case "asof":
            span_ms = plan.tolerance_ms
            tolerance = None if span_ms is None else f"{span_ms}ms"
            return lefts.join_asof(
                rights, tolerance=tolerance, direction=plan.direction, how=how, **combine
            )
        case "latest":
            return lefts.join_latest(rights, how=how, **combine)


def windows_of(plan: WindowPlan) -> window.Windows:
    windows = _kind_of(plan)
    if plan.is_bare and plan.early is not None:
        windows = windows.triggering(_repeat(plan.early))
    elif plan.early is not None or plan.late is not None:
        early = None if plan.early is None else _repeat(plan.early)
        late = None if plan.late is None else _repeat(plan.late)
        windows = windows.triggering(trigger.after_watermark(early, late))
    if plan.accumulation != "discarding":
        is_retracting = plan.accumulation == "retracting"
        windows = windows.retracting() if is_retracting else windows.accumulating()
    return windows.allowed_lateness(f"{plan.lateness_ms}ms") if plan.lateness_ms else windows


def _kind_of(plan: WindowPlan) -> window.Windows:
    match plan.kind:
        case "tumbling":
            return window.tumbling(f"{plan.size_ms}ms", f"{plan.offset_ms}ms", clock=plan.clock)
        case "sliding":
            return window.sliding(
                f"{plan.size_ms}ms", f"{plan.every_ms}ms", f"{plan.offset_ms}ms", clock=plan.clock
            )
        case "session":
            return window.session(f"{plan.gap_ms}ms", clock=plan.clock)
        case "count":
            return window.count_window(plan.records)
        case "global":
            return window.global_window(clock=plan.clock)


def _join_windows(plan: JoinPlan) -> window.Windows:
    match plan.windows:
        case "tumbling":
            return window.tumbling(f"{plan.size_ms}ms", f"{plan.offset_ms}ms")
        case "sliding":
            return window.sliding(f"{plan.size_ms}ms", f"{plan.every_ms}ms", f"{plan.offset_ms}ms")
        case "session":
            return window.session(f"{plan.gap_ms}ms")
        case "global":
            return window.global_window()


def _repeat(condition: Condition) -> trigger.Repeat:
    kind, *rest = condition
    match kind:
        case "count":
            return trigger.every(count=rest[0])
        case "event":
            return trigger.every(event=f"{rest[0]}ms")
        case "wall":
            return trigger.every(f"{rest[0]}ms")
        case "any":
            return trigger.any_of(*map(_repeat, rest))
        case _:
            return trigger.all_of(*map(_repeat, rest))


def _aggregate(kind: str, of: str | None) -> Aggregate:
    if kind == "count":
        return agg.count()
    if kind == "top":
        return agg.top(2, of)
    if kind == "heavy_hitters":
        return agg.heavy_hitters(2, of)
    make: Callable[[Any], Aggregate] = getattr(agg, kind)
    return make(of)


def _in_steps(program: WindowProgram, stream: Stream[Any]) -> Stream[Any]:
    match program.change:
        case "none":
            return stream
        case "map":
            return stream.map(_changed)
        case "filter":
            return stream.filter(_is_kept)
        case "flat_map":
            return stream.flat_map(_both)


def _keyed(program: WindowProgram | JoinProgram, stream: Stream[Any]) -> KeyedStream[Any, Any]:
    match program.key:
        case "names":
            return stream.key_by("k", "g", parallelism=program.parallelism)
        case "name":
            return stream.key_by("k", parallelism=program.parallelism)
        case _:
            return stream.key_by(_k, parallelism=program.parallelism)


_k = operator.itemgetter("k")


def _changed(row: Row) -> Row:
    return {**row, "v": None if row["v"] is None else row["v"] * 2 + 1}


def _is_kept(row: Row) -> bool:
    return bool(row["id"] % 3)


def _both(row: Row) -> list[Row]:
    return [row, _changed(row)] if row["id"] % 2 else []


def _same(batch: Any) -> Any:
    return batch


def _reduced(one: Row, other: Row) -> Row:
    newest = max(one, other, key=operator.itemgetter("id"))
    return {**newest, "v": (one["v"] or 0) + (other["v"] or 0)}


def _with_id(ids: list[int], row: Row) -> list[int]:
    return sorted([*ids, row["id"]])


def _with_ids(ids: list[int], others: list[int]) -> list[int]:
    return sorted(ids + others)


def _pair(left: Row | None, right: Row | None) -> tuple[Row | None, Row | None]:
    return left, right
