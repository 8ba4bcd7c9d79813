"""Aggregates in two halves give what plain loops give, however the records are parted."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gearpy as gp
from gearpy.core.base.fields import NAN
from gearpy.core.base.one_key import one_key
from gearpy.core.window.windows import SessionWindows, Windows
from gearpy.dsl.plan.linear import linear_plans
from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.spark.query.groups import Combiner, Merger
from gearpy.spark.query.plan import GroupStep
from gearpy.task.api.window_result import WindowResult
from tests.task.stage_build import columns_of

_BUCKETS: Final = 3
#: Key, value and time.
_Record = tuple[Any, int | None, int]

_WINDOWS: Final[dict[str, Windows]] = {
    "tumbling": gp.tumbling("10ms", offset="3ms"),
    "sliding": gp.sliding("10ms", "3ms", offset="1ms"),
    "session": gp.session("5ms"),
    "global": gp.global_window(),
}
_AGGREGATES: Final[dict[str, Callable[[Any], Any]]] = {
    "count": lambda windows: windows.count(),
    "sum": lambda windows: windows.sum(_value),
    "first": lambda windows: windows.aggregate(f=gp.agg.first(_value), n=gp.agg.count()),
    "last": lambda windows: windows.aggregate(v=gp.agg.last(_value)),
    "collect": lambda windows: windows.aggregate(v=gp.agg.collect(_value)),
    "distinct": lambda windows: windows.aggregate(v=gp.agg.distinct(_value)),
    "median": lambda windows: windows.aggregate(
        v=gp.agg.median(_value), n=gp.agg.count(where=_value), d=gp.agg.approx_distinct(_value)
    ),
    "top": lambda windows: windows.top_n(2, _value_or_0),
    "fold": lambda windows: windows.fold([], _added, merge=_joined),
    "reduce": lambda windows: windows.reduce(lambda a, b: max(a, b, key=_value_or_0)),
}
#: What these come to, of the values in the order in which they came, with their times.
_PLAIN: Final[dict[str, Callable[[Sequence[tuple[Any, int]]], Any]]] = {
    "count": len,
    "sum": lambda of: sum(_present(of)) if _present(of) else None,
    "first": lambda of: {"f": _end_of(of, min), "n": len(of)},
    "last": lambda of: {"v": _end_of(list(reversed(of)), max)},
    "collect": lambda of: {"v": _present(of)},
    "distinct": lambda of: {"v": len(set(_present(of)))},
    "median": lambda of: {
        "v": median(map(float, _present(of))) if _present(of) else None,
        "n": sum(map(bool, _present(of))),
        "d": len(set(_present(of))),
    },
}


def _value(record: _Record) -> int | None:
    return record[1]


def _value_or_0(record: _Record) -> tuple[int, int]:
    return record[1] or 0, record[2]


def _added(kept: list[int], record: _Record) -> list[int]:
    return [*kept, record[1] or 0]


def _joined(a: list[int], b: list[int]) -> list[int]:
    return sorted([*a, *b])


def _present(of: Sequence[tuple[Any, int]]) -> list[int]:
    return [value for value, _ in of if value is not None]


def _end_of(of: Sequence[tuple[Any, int]], which: Any) -> Any:
    present = [(time, value) for value, time in of if value is not None]
    return which(present, key=lambda pair: pair[0])[1] if present else None


_RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None, 1, 1.0, (1, "x"), math.nan]),
        st.none() | st.integers(-3, 3),
        st.integers(-40, 40),
    ),
    max_size=40,
)


def _step(windows: Windows, aggregate: Callable[[Any], Any], *, keyed: bool = True) -> GroupStep:
    app = gp.StreamApp("app")
    records = app.read(gp.collection([]))
    grouped: Any = records.key_by(lambda record: record[0]) if keyed else records
    aggregate(grouped.window(windows)).write(gp.to_list([]))
    (plan,) = linear_plans("app", app.plan)
    return plan.groups[0]


def _computed(step: GroupStep, parts: Sequence[Sequence[_Record]]) -> list[WindowResult[Any, Any]]:
    """Return what comes of some parts of the input, each bucket by itself."""
    mergers = [Merger(step) for _ in range(_BUCKETS)]
    for part in parts:
        combiner = Combiner(step, _BUCKETS)
        for at in range(0, len(part), 7):
            records = part[at : at + 7]
            combiner.add(records, [record[2] for record in records])
        for piece in combiner.pieces():
            mergers[piece.bucket].add(piece.entries, piece.body)
        assert not list(combiner.pieces())
    results = []
    for merger in mergers:
        for values, times in columns_of(merger.results()):
            assert times == [result.end - 1 for result in values]
            results += values
    return results


def _windows_of(windows: Windows, times: Sequence[int]) -> list[tuple[int, int]]:
    if isinstance(windows, SessionWindows):
        ordered = sorted(set(times))
        begins = [t for at, t in enumerate(ordered) if not at or t - ordered[at - 1] >= 5]
        return [
            (t, max(x for x in ordered if all(not t < b <= x for b in begins) and x >= t) + 5)
            for t in begins
        ]
    found = {
        "g": [(MIN_MS, MAX_MS)],
        "t": [(s, s + 10) for s in range(-87, 100, 10)],
        "s": [(s, s + 10) for s in range(-89, 100, 3)],
    }
    return found[type(windows).__name__[0].lower()]


def _expected(
    windows: Windows, records: Sequence[_Record], plain: Callable[[Any], Any]
) -> list[Any]:
    keys: list[Any] = []
    for key, _, _ in records:
        if not any(_same(key, known) for known in keys):
            keys.append(key)
    expected = []
    for key in keys:
        mine = [record for record in records if _same(record[0], key)]
        for start, end in _windows_of(windows, [record[2] for record in mine]):
            held = [(value, time) for _, value, time in mine if start <= time < end]
            if held:
                expected.append((key, plain(held), start, end))
    return expected


def _same(key: Any, other: Any) -> bool:
    return bool(one_key(key) is one_key(other) or key == other)


def _sorted(results: Sequence[Any]) -> list[str]:
    return sorted(repr(("nan" if one_key(r[0]) is NAN else hash(r[0]), *r[1:4])) for r in results)


@pytest.mark.parametrize("windows", _WINDOWS)
@pytest.mark.parametrize("aggregate", _PLAIN)
@settings(max_examples=8)
@given(records=_RECORDS, cuts=st.lists(st.integers(0, 40), max_size=3))
def test_parts_come_to_what_plain_loops_make_of_all(
    windows: str, aggregate: str, records: list[_Record], cuts: list[int]
) -> None:
    step = _step(_WINDOWS[windows], _AGGREGATES[aggregate])

    results = _computed(step, _cut(records, cuts))

    expected = _expected(_WINDOWS[windows], records, _PLAIN[aggregate])
    assert _sorted(results) == _sorted(expected)


@pytest.mark.parametrize("windows", _WINDOWS)
@pytest.mark.parametrize("aggregate", ["top", "fold", "reduce"])
@settings(max_examples=8)
@given(records=_RECORDS, cuts=st.lists(st.integers(0, 40), max_size=3))
def test_parts_come_to_what_all_together_come_to(
    windows: str, aggregate: str, records: list[_Record], cuts: list[int]
) -> None:
    step = _step(_WINDOWS[windows], _AGGREGATES[aggregate])
    makes_sorted = aggregate == "fold"

    parted = [_plain(each, makes_sorted) for each in _computed(step, _cut(records, cuts))]
    whole = [_plain(each, makes_sorted) for each in _computed(step, [records])]

    assert _sorted(parted) == _sorted(whole)


@settings(max_examples=8)
@given(records=_RECORDS, cuts=st.lists(st.integers(0, 40), max_size=3))
def test_an_aggregate_that_cannot_merge_gets_the_records_in_order(
    records: list[_Record], cuts: list[int]
) -> None:
    listed = gp.agg.custom(list, lambda kept, value: [*kept, value], of=_value)
    step = _step(_WINDOWS["sliding"], lambda windows: windows.aggregate(v=listed))

    results = _computed(step, _cut(records, cuts))

    expected = _expected(_WINDOWS["sliding"], records, lambda of: {"v": _present(of)})
    assert _sorted(results) == _sorted(expected)


def test_a_stream_without_keys_has_one_result_for_each_window() -> None:
    step = _step(gp.tumbling("10ms"), lambda windows: windows.count(), keyed=False)

    results = _computed(step, [[("a", 1, 3)], [("b", 2, 4), ("b", 2, 14)]])

    assert sorted(results, key=lambda r: r.start) == [
        WindowResult(None, 2, 0, 10),
        WindowResult(None, 1, 10, 20),
    ]


@pytest.mark.parametrize("aggregate", ["count", "sum", "fold"])
@pytest.mark.parametrize("windows", _WINDOWS)
def test_what_the_user_raises_names_the_step(windows: str, aggregate: str) -> None:
    step = _step(_WINDOWS[windows], _AGGREGATES[aggregate])
    combiner = Combiner(step, _BUCKETS)

    def fold() -> None:
        combiner.add([()], [0])
        list(combiner.pieces())

    with pytest.raises(OperatorError, match=r"IndexError|index"):
        fold()


def test_the_result_of_the_user_may_raise_too() -> None:
    broken = gp.agg.custom(int, lambda kept, _: kept, result=lambda _: 1 // 0, merge=max)
    step = _step(gp.tumbling("10ms"), lambda windows: windows.aggregate(v=broken))

    with pytest.raises(OperatorError, match="ZeroDivisionError"):
        _computed(step, [[("a", 1, 3)]])


def test_windows_at_the_end_of_time_end_there() -> None:
    records: list[_Record] = [("a", 1, MAX_MS - 2)]

    ends = {
        name: [r.end for r in _computed(_step(windows, _AGGREGATES["count"]), [records])]
        for name, windows in _WINDOWS.items()
    }

    assert all(end <= MAX_MS for of in ends.values() for end in of)
    assert ends["session"] == [MAX_MS]


def _plain(result: WindowResult[Any, Any], makes_sorted: bool) -> WindowResult[Any, Any]:  # noqa: FBT001
    return result._replace(value=sorted(result.value)) if makes_sorted else result


def _cut(records: list[_Record], cuts: list[int]) -> list[list[_Record]]:
    bounds = [0, *sorted(min(cut, len(records)) for cut in cuts), len(records)]
    return [records[a:b] for a, b in pairwise(bounds)]
