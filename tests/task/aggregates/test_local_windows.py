"""Totals of local days and months, over the changes of clocks, as plain Python has them."""

import copy
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.columns.log_columns import LogColumns
from gearpy.testing import Simulation
from gearpy.wire.values.payload import decode_value, encode_value

ZONES: Final = ["Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "America/Santiago"]
HOUR_MS: Final = 3_600_000


def sales(first: datetime, years: int, zone: str) -> list[dict[str, Any]]:
    """Return sales on a few days each month, and many on the days when clocks change."""
    rng, info = random.Random(zone), ZoneInfo(zone)
    days = [first + timedelta(days=day) for day in range(365 * years + 2)]
    offsets = [day.astimezone(info).utcoffset() for day in days]
    changed = {at for at, (one, two) in enumerate(pairwise(offsets)) if one != two}
    picked = {at for each in changed for at in range(each - 1, each + 3)}
    picked.update(rng.sample(range(len(days)), 30))
    moments = [
        int(day.timestamp() * 1000) + rng.randrange(24 * HOUR_MS)
        for at, day in enumerate(days)
        if at in picked
        for _ in range(6)
    ]
    return [
        {"at": at, "shop": rng.choice("ab"), "cents": rng.randrange(100, 999)}
        for at in sorted(moments)
    ]


def totals(
    rows: list[dict[str, Any]], zone: str, begun: Callable[[date], date]
) -> dict[tuple[str, str], tuple[int, int]]:
    found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row in rows:
        local = datetime.fromtimestamp(row["at"] / 1000, ZoneInfo(zone)).date()
        found[begun(local).isoformat(), row["shop"]].append(row["cents"])
    return {of: (sum(cents), len(cents)) for of, cents in found.items()}


def totalled(source: Any, windows: Any, tasks: int) -> dict[tuple[str, str], tuple[int, int]]:
    app = gp.StreamApp("daily")
    results: list[Any] = []
    sums = (
        app.read(source)
        .key_by("shop", parallelism=tasks)
        .window(windows)
        .aggregate(cents=gp.agg.sum("cents"), n=gp.agg.count())
    )
    sums.write(gp.to_list(results))
    Simulation(app).run()
    found = {
        (result.local_start[:10], result.key): (result.value["cents"], result.value["n"])
        for result in results
    }
    assert len(found) == len(results)
    return found


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("form", ["rows", "columns"])
def test_daily_totals_over_five_years_are_those_of_zoneinfo(zone: str, form: str) -> None:
    """Sao Paulo and Santiago change at midnight, Lord Howe by half an hour."""
    rows = sales(datetime(2014, 1, 1, tzinfo=UTC), 5, zone)
    source = gp.rows(pa.Table.from_pylist(rows) if form == "columns" else rows, time="at")

    found = totalled(source, gp.tumbling("1d", zone=zone), tasks=2)

    assert found == totals(rows, zone, lambda day: day)


@pytest.mark.parametrize("form", ["rows", "columns"])
def test_monthly_totals_over_leap_years_are_those_of_zoneinfo(form: str) -> None:
    rows = sales(datetime(1999, 1, 1, tzinfo=UTC), 6, "Europe/Berlin")
    source = gp.rows(pa.Table.from_pylist(rows) if form == "columns" else rows, time="at")

    found = totalled(source, gp.calendar("month", zone="Europe/Berlin"), tasks=1)

    assert found == totals(rows, "Europe/Berlin", lambda day: day.replace(day=1))


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize("every", ["1h", "12h"])
def test_sliding_days_over_a_change_hold_what_their_bounds_say(form: str, every: str) -> None:
    begin = int(datetime(2026, 10, 24, 1, tzinfo=UTC).timestamp() * 1000)
    rows = [{"at": begin + at * 1_000_007, "shop": "a", "cents": 1} for at in range(200)]
    app = gp.StreamApp("days")
    results: list[Any] = []
    source = gp.rows(pa.Table.from_pylist(rows) if form == "columns" else rows, time="at")
    windows = gp.sliding("1d", every, zone="Europe/Berlin")
    app.read(source).key_by("shop").window(windows).count().write(gp.to_list(results))
    Simulation(app).run()

    assert sum(result.value for result in results) > len(rows)
    for result in results:
        assert result.value == sum(result.start <= row["at"] < result.end for row in rows)
        one, other = map(datetime.fromisoformat, (result.local_start, result.local_end))
        assert other.replace(tzinfo=None) - one.replace(tzinfo=None) == timedelta(days=1)


def _late(rng: random.Random) -> Iterator[gp.Message]:
    """Yield records around the 25 hours of a Sunday, out of order by up to ten hours."""
    begin = int(datetime(2026, 10, 24, 20, tzinfo=UTC).timestamp() * 1000)
    for at in range(300):
        time_ms = begin + at * 600_000
        yield gp.Message({"k": at % 3, "n": 1 << at}, time_ms - rng.choice([0, 0, 10 * HOUR_MS]))


@pytest.mark.parametrize("accumulation", ["discarding", "accumulating", "retracting"])
def test_early_late_and_retracted_results_of_a_long_day_are_of_its_records(
    accumulation: str,
) -> None:
    records = list(_late(random.Random(7)))
    windows = gp.tumbling("1d", zone="Europe/Berlin").allowed_lateness("12h")
    windows = windows.triggering(gp.after_watermark(early=gp.every(count=7)))
    windows = getattr(windows, accumulation)()
    app = gp.StreamApp("long")
    results: list[Any] = []
    by_key = app.read(gp.collection(records, out_of_order="5m")).key_by("k")
    by_key.window(windows).sum("n").write(gp.to_list(results))
    Simulation(app).run()

    last: dict[tuple[int, str], int] = {}
    for result in results:
        at = result.key, result.local_start[:10]
        if accumulation == "discarding":
            last[at] = last.get(at, 0) + result.value
        elif not result.retracts:
            last[at] = result.value
    expected: defaultdict[tuple[int, str], int] = defaultdict(int)
    for record in records:
        day = datetime.fromtimestamp(record.timestamp / 1000, ZoneInfo("Europe/Berlin")).date()
        expected[record.value["k"], day.isoformat()] += record.value["n"]
    assert {result.timing for result in results} == {"early", "on-time", "late"}
    assert last == expected


def test_join_over_a_local_day_finds_what_is_of_the_same_date() -> None:
    begin = int(datetime(2026, 3, 28, 1, tzinfo=UTC).timestamp() * 1000)
    lefts = [gp.Message((0, at), begin + at * 4_000_000) for at in range(50)]
    rights = [gp.Message((0, -at), begin + at * 7_000_000) for at in range(30)]
    app = gp.StreamApp("dates")
    results: list[Any] = []
    left, right = (
        app.read(gp.collection(records)).key_by(lambda record: record[0])
        for records in (lefts, rights)
    )
    left.join(right, gp.tumbling("1d", zone="Europe/Berlin")).write(gp.to_list(results))
    Simulation(app).run()

    def day(record: gp.Message) -> date:
        return datetime.fromtimestamp(record.timestamp / 1000, ZoneInfo("Europe/Berlin")).date()

    expected = {(a.value, b.value) for a in lefts for b in rights if day(a) == day(b)}
    assert {(result.left, result.right) for result in results} == expected
    assert len(results) == len(expected)


@pytest.mark.parametrize("zone", ["Europe/Berlin", None])
def test_pairs_and_groups_of_a_join_have_the_bounds_of_their_zone(zone: str | None) -> None:
    day = datetime(2026, 3, 29, 12, tzinfo=UTC)
    rows = [{"k": 1, "at": int((day + timedelta(days=n)).timestamp() * 1000)} for n in range(2)]

    def joined(how: str) -> list[Any]:
        app, results = gp.StreamApp("joined"), list[Any]()
        left, right = (app.read(gp.rows(rows, time="at"), name=n).key_by("k") for n in "lr")
        windows = gp.tumbling("1d", zone=zone) if zone else gp.tumbling("1d")
        getattr(left, how)(right, windows).write(gp.to_list(results))
        Simulation(app).run()
        return results

    for result in (*joined("join"), *joined("cogroup")):
        if zone is None:
            with pytest.raises(AttributeError, match="these windows have no zone"):
                _ = result.local_start
            continue
        one, other = map(datetime.fromisoformat, (result.local_start, result.local_end))
        assert (one.timestamp() * 1000, other.timestamp() * 1000) == (result.start, result.end)
        assert (one.hour, other.hour) == (0, 0)
        assert result._replace(key=7)[:1] == (7,)
        assert copy.copy(result) == result
        assert decode_value(encode_value(result)) == result
        columns = LogColumns("pairs").batch_of([result], [0])
        assert columns.schema.names[-2:] == ["local_start", "local_end"]
    assert [len(joined("join")), len(joined("cogroup"))] == [2, 2]
