"""The last records of a key beside plain lists, also over restarts."""

import statistics
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.core.window import aggregates as agg
from gearpy.core.window.accumulators import Aggregate
from gearpy.task.aggregates.rolling import RollingFold, RollingSpan, RollingWindow
from gearpy.task.aggregates.rows import fold_of
from gearpy.testing import MemoryTransactions, Simulation

#: What numbers come to, and the same in plain Python.
AGGREGATES: Final[dict[str, tuple[Aggregate, Callable[[list[int]], Any]]]] = {
    "n": (agg.count(), len),
    "total": (agg.sum(), sum),
    "list": (agg.collect(), list),
    "middle": (agg.median(), lambda ns: float(statistics.median(ns))),
    "most": (agg.max(), max),
    "last": (agg.last(), lambda ns: ns[-1]),
    "even": (agg.count_if(lambda n: n % 2 == 0), lambda ns: sum(n % 2 == 0 for n in ns)),
    "different": (agg.approx_distinct(), lambda ns: len(set(ns))),
    "frequent": (
        agg.heavy_hitters(1),
        lambda ns: [{"value": min(set(ns), key=lambda n: (-ns.count(n), n)), "count": max(
            Counter(ns).values())}],
    ),
}  # fmt: skip
CHOSEN: Final = {name: of for name, (of, _) in AGGREGATES.items()}


def is_in(span: RollingSpan, at: int, times: list[int], newest: int) -> bool:
    return newest - at < span.records if span.records else times[at] > times[newest] - span.time_ms


@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 3)), max_size=120),
    st.one_of(
        st.builds(RollingSpan, records=st.integers(1, 90)),
        st.builds(RollingSpan, time_ms=st.integers(1, 90)),
    ),
    st.sampled_from([{}, {"custom": agg.custom(int, max)}]),
)
def test_a_window_is_what_its_records_are(
    steps: list[tuple[int, int]], span: RollingSpan, more: dict[str, Aggregate]
) -> None:
    """Property: with parts that were folded before, and with a window that was just read again."""
    fold = RollingFold(fold_of(CHOSEN | more))  # A custom one has no way to merge.
    window, numbers, times = RollingWindow(0, [], [], {}), list[int](), list[int]()
    for number, step in steps:
        numbers.append(number)
        times.append((times[-1] if times else 0) + step)
        window.rows.append((number, times[-1]))
        window.times.append(times[-1])
        gone = span.gone(window.times)
        found = fold.value(window, gone)
        window.first += gone
        del window.rows[:gone], window.times[:gone]

        inside = [n for at, n in enumerate(numbers) if is_in(span, at, times, len(times) - 1)]
        found.pop("custom", None)
        assert found == {name: plain(inside) for name, (_, plain) in AGGREGATES.items()}
        again = RollingWindow(window.first, window.times, window.rows, {})
        assert fold.value(again, 0) == fold.value(window, 0)


RECORDS: Final = [
    gp.Message({"key": n % 3, "x": Random(n).random() * 10 ** (n % 9), "tags": [n]}, n * n % 7 + n)
    for n in range(300)
]


@pytest.mark.parametrize(
    ("span", "tasks"),
    [
        (40, 3),
        ("90ms", 1),
        pytest.param(40, 1, marks=pytest.mark.long),
        pytest.param("90ms", 3, marks=pytest.mark.long),
    ],
)
def test_crashes_and_tasks_change_no_digit(span: Any, tasks: int) -> None:
    """Records of several partitions, out of order; sums of floats that depend on their order."""
    found = list[Any]()
    for crashes in (0, 3):
        app = gp.StreamApp("rolling", parallelism=tasks)
        sink = MemoryTransactions()
        source = gp.collection(RECORDS, partitions=tasks, out_of_order="20ms")
        keyed = app.read(source).key_by("key")
        lists = keyed.rolling(span).map(lambda last: ("list", [each["x"] for each in last]))
        totals = keyed.rolling(span, total=gp.agg.sum("x"), tags=gp.agg.collect("tags"))
        lists.merge(totals).write(sink)
        Simulation(
            app, seed=tasks, delay_ms=2, read_records=1, cut_every_ms=2,
            crashes_after_epochs=crashes, may_miss=True,
        ).run()  # fmt: skip
        found.append(sorted(sink.values, key=repr))

    assert found[0] == found[1]
    of_keys: dict[int, list[gp.Message]] = {}
    for each in sorted(RECORDS, key=lambda message: message.timestamp):
        of_keys.setdefault(each.value["key"], []).append(each)
    size = RollingSpan(records=span) if isinstance(span, int) else RollingSpan(time_ms=90)
    sizes = Counter(
        sum(is_in(size, at, [m.timestamp for m in ms], newest) for at in range(newest + 1))
        for ms in of_keys.values()
        for newest in range(len(ms))
    )
    lengths = [len(value) for kind, value in found[0] if kind == "list"]
    assert Counter(lengths) == sizes
    assert len(found[0]) == 2 * len(lengths)


@pytest.mark.parametrize("span", [40, "30ms"])
def test_keys_that_are_not_at_hand_and_pauses_change_no_digit(
    span: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records are written in runs, read again, and taken out; after a pause all begins anew.

    Some records fail, when others of their key are not written yet.
    """
    bad, pause_ms = 101, 100
    records = [
        gp.Message(
            {"key": n * n % 5, "n": n, "x": Random(n).random() * 10 ** (n % 9)},
            n // 3 + n // 210 * pause_ms,
        )
        for n in range(630)
    ]

    def is_good(record: dict[str, Any]) -> bool:
        return bool(1 / (record["n"] % bad))

    found = list[Any]()
    for at_hand, crashes, cut_ms in [
        (9, 0, 9_999),
        (9, 3, 20),
        (1, 0, 9_999),
        (2, 0, 2),
        (3, 4, 3),
    ]:
        monkeypatch.setattr("gearpy.task.aggregates.rolling._UNWRITTEN_MAX", max(1, at_hand - 1))
        monkeypatch.setattr("gearpy.task.aggregates.rolling._AT_HAND_MAX", at_hand)
        app, sink = gp.StreamApp("rolling"), MemoryTransactions()
        app.read(gp.collection(records)).key_by("key").rolling(
            span, total=gp.agg.sum("x"), of=gp.agg.collect("n"), good=gp.agg.count(where=is_good)
        ).write(sink)
        Simulation(
            app, seed=5, delay_ms=2, read_records=1, cut_every_ms=cut_ms,
            crashes_after_epochs=crashes, may_miss=True, on_error="skip",
        ).run()  # fmt: skip
        found.append(list(sink.values))

    assert all(each == found[0] for each in found)
    size = RollingSpan(records=span) if isinstance(span, int) else RollingSpan(time_ms=30)
    expected = list[Any]()
    good = [each for each in records if each.value["n"] % bad]
    for at, newest in enumerate(good):
        same = [each for each in good[: at + 1] if each.value["key"] == newest.value["key"]]
        times = [each.timestamp for each in same]
        inside = [
            each.value["n"]
            for number, each in enumerate(same)
            if is_in(size, number, times, len(same) - 1)
        ]
        expected.append((newest.value["key"], inside, len(inside)))
    assert [(key, each["of"], each["good"]) for key, each in found[0]] == expected


def test_a_record_that_cannot_be_stored_is_refused_when_it_comes() -> None:
    app, results = gp.StreamApp("odd"), list[Any]()
    values = [1, [object()], [2], 3]
    app.read(gp.collection(values)).key_by(lambda _: "all").rolling("1m").write(gp.to_list(results))

    gp.run(app, config=gp.load_config(overrides={"application.on-error": "skip"}))

    assert results == [[1], [1, [2]], [1, [2], 3]]


def test_a_record_that_fails_is_in_no_window() -> None:
    app, results = gp.StreamApp("bad"), list[Any]()
    values = [1, "x", 2, None, 3]
    app.read(gp.collection(values)).key_by(lambda _: "all").rolling(
        2, total=gp.agg.sum(), all=gp.agg.collect()
    ).write(gp.to_list(results))

    config = gp.load_config(overrides={"application.on-error": "skip"})
    gp.run(app, config=config)

    assert [value for _, value in results] == [
        {"total": 1, "all": [1]},
        {"total": 3, "all": [1, 2]},
        {"total": 2, "all": [2]},
        {"total": 3, "all": [3]},
    ]


def test_what_was_put_out_is_nobody_elses() -> None:
    app, results = gp.StreamApp("own"), list[Any]()

    def spoilt(last: list[dict[str, Any]]) -> list[Any]:
        shown = [each["n"] for each in last]
        for each in last:
            each["n"] = None
        return shown

    records = [{"n": n, "key": "k"} for n in range(4)]
    app.read(gp.collection(records)).key_by("key").rolling("1h").map(spoilt).write(
        gp.to_list(results)
    )
    gp.run(app)

    assert results == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
