"""Records far ahead of the clock, and event times in the wrong unit."""

import logging
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.errors import OperatorError
from gearpy.task.sources.partition import unit_mistake
from gearpy.testing import MemoryTransactions, Simulation

NOW_MS = 1_772_355_600_000
FAR_MS = 253_370_764_800_000  # In the year 9999.


def counted(rows: list[dict[str, Any]], *, form: str = "rows", **options: Any) -> Any:
    """Return what windows of a minute hold, what was set aside, and the counts of the run."""
    app = gp.StreamApp("poison")
    results: list[Any] = []
    aside: list[Any] = []
    data = pa.Table.from_pylist(rows) if form == "columns" else rows
    read = app.read(gp.rows(data, time="at", partitions=2, out_of_order="5s"), **options)
    windows = read.key_by("k").window(gp.tumbling("1m")).count()
    windows.map(lambda result: (result.key, result.start, result.value)).write(gp.to_list(results))
    if options.get("late") == "side":
        read.late.map(lambda row: row["at"]).write(gp.to_list(aside))
    simulation = Simulation(app, seed=3)
    simulation.run()
    clocks = simulation.clocks()
    late, ahead = (
        sum(getattr(clock, name) for clock in clocks) for name in ("late_records", "ahead_records")
    )
    return sorted(results), sorted(aside), late, ahead


@st.composite
def rows_and_far_ones(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rows = [{"at": NOW_MS + at * 1000, "k": at % 3} for at in range(draw(st.integers(1, 150)))]
    mixed = list(rows)
    for _ in range(draw(st.integers(0, 4))):
        mixed.insert(draw(st.integers(0, len(mixed))), {"at": FAR_MS, "k": 0})
    return rows, mixed


@pytest.mark.parametrize("form", ["rows", "columns"])
@given(both=rows_and_far_ones())
def test_records_far_ahead_change_nothing_but_their_count(
    form: str, both: tuple[list[dict[str, Any]], list[dict[str, Any]]]
) -> None:
    rows, mixed = both

    plain, _, _, none = counted(rows, form=form)
    found, aside, late, ahead = counted(mixed, form=form, max_ahead="100000d", late="side")

    assert found == plain
    assert (late, none) == (0, 0)
    assert ahead == len(aside) == len(mixed) - len(rows)
    assert set(aside) <= {FAR_MS}


@pytest.mark.parametrize("form", ["rows", "columns"])
def test_without_a_limit_one_record_makes_others_late(form: str) -> None:
    rows = [{"at": NOW_MS + at * 1000, "k": 0} for at in range(300)]
    rows[50] = {"at": FAR_MS, "k": 0}

    _, _, late, ahead = counted(rows, form=form)

    assert late > 60
    assert ahead == 0


def test_restarts_change_nothing() -> None:
    """The reader's own promise is the year 9999; that of the partition is kept beside it."""
    rows = [{"at": NOW_MS + at * 1000, "n": at} for at in range(600)]
    rows[::40] = [{"at": FAR_MS, "n": -1} for _ in rows[::40]]
    for seed in range(5):
        app = gp.StreamApp("again")
        sink = MemoryTransactions()
        read = app.read(gp.rows(rows, time="at"), max_ahead="100000d")
        windows = read.window(gp.tumbling("10s")).aggregate(of=gp.agg.collect("n"))
        windows.flat_map(lambda result: result.value["of"]).write(sink)
        Simulation(app, seed=seed, cut_every_ms=5, crashes_after_epochs=1, read_records=8).run()
        assert sorted(sink.values) == sorted({row["n"] for row in rows} - {-1})


def test_source_of_arrival_has_no_future() -> None:
    app = gp.StreamApp("arrival")
    app.read(gp.generate(lambda: iter([1])), max_ahead="1d").write(gp.to_list([]))

    with pytest.raises(OperatorError, match="times of arrival, or promises event time by itself"):
        Simulation(app).run()


@pytest.mark.parametrize(
    ("time_ms", "advice"),
    [
        (1_772_355_600, "of the year 1970 if it is in ms, and looks like s: give time_unit='s'"),
        (1_772_355_600_000_000, "looks like us: give time_unit='us', or divide by 1,000"),
        (1_772_355_600_000_000_000, "looks like ns: give time_unit='ns', or divide by 1,000,000"),
        (1_772_355_600_000, ""),
        (0, ""),
        (5_000, ""),
        (FAR_MS, ""),
        (-5, ""),
    ],
)
def test_unit_that_a_time_looks_like_is_said(time_ms: int, advice: str) -> None:
    mistake = unit_mistake(time_ms)

    assert advice in mistake
    assert bool(mistake) == bool(advice)


def test_wrong_unit_is_said_once_for_a_source(caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"at": NOW_MS // 1000 + at} for at in range(300)]
    app = gp.StreamApp("seconds")
    app.read(gp.rows(rows, time="at", partitions=4), parallelism=2).write(gp.to_list([]))

    with caplog.at_level(logging.WARNING):
        Simulation(app).run()

    (line,) = [each.message for each in caplog.records if "looks like" in each.message]
    assert line.startswith("rows(300): its first event time, 1772355")
