"""What is equal in Python but not the same, or the same and not equal: one key in every step.

The rule is written down here once more, in `form`, without gearpy.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.state.open import StateSettings, open_state
from gearpy.testing import MemoryTransactions, Simulation

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
RECORDS: Final = 150
FIRST = datetime(2023, 10, 29, 0, 30, tzinfo=UTC)


class Pair(NamedTuple):
    left: Any
    right: Any


class Level(IntEnum):
    LOW = 1


class Word(StrEnum):
    A = "a"


class Color(Enum):
    A = "a"


@dataclass(frozen=True)
class Call:
    when: Any


HOURS: Final = [FIRST, FIRST + timedelta(hours=1)]
LOCAL: Final = [hour.astimezone(BERLIN) for hour in HOURS]
GAP: Final = [datetime(2023, 3, 26, 2, 30, tzinfo=BERLIN, fold=fold) for fold in (0, 1)]
POOL: Final[list[Any]] = [
    *(1, 1.0, True, Decimal("1.00"), Fraction(1), np.float32(1), np.float64(1), np.bool_(True)),
    *(7, 7.0, np.int64(7), np.uint8(7), np.float32(7), np.float32("nan")),
    *(Level.LOW, 0, 0.0, -0.0, Decimal("-0"), 0.1, Decimal("0.1"), 2**70, float(2**70)),
    *(float("nan"), float("nan"), Decimal("NaN"), np.float64("nan"), None),
    *("a", Word.A, np.str_("a"), Color.A, b"a", UUID(int=1), date(2023, 10, 29)),
    *HOURS,
    *LOCAL,
    *[hour.astimezone(NEW_YORK) for hour in HOURS],
    *[hour.astimezone(timezone(timedelta(hours=5))) for hour in HOURS],
    *GAP,
    *[hour.astimezone(UTC) for hour in GAP],
    *[hour.replace(tzinfo=None) for hour in LOCAL],
    *[("x", hour) for hour in LOCAL],
    *[Pair("x", hour) for hour in HOURS],
    *[frozenset([hour, 1]) for hour in LOCAL],
    *[Call(hour) for hour in LOCAL],
    *[("x", float("nan")), Pair("x", Decimal("NaN"))],
    *(time(2, 30), time(2, 30, fold=1), time(2, 30, tzinfo=BERLIN), time(2, 30, tzinfo=UTC)),
    *(time(4, 30, tzinfo=timezone(timedelta(hours=2))), timedelta(days=1), timedelta(hours=24)),
]


def form(key: Any) -> Any:
    match key:
        case str():
            found: Any = str.__str__(key)
        case bool() | int() | float() | Decimal() | Fraction() | np.number() | np.bool_():
            number = float(key) if isinstance(key, np.generic) else key
            return "number", Fraction(number) if number == number else "nan"  # noqa: PLR0124
        case tuple() | frozenset():
            parts = list(map(form, key))
            found = tuple(parts) if isinstance(key, tuple) else frozenset(parts)
        case Call():
            found = form(key.when)
        case datetime() if key.tzinfo is not None:
            found = key.timestamp()
        case datetime():
            return "local", key.replace(fold=0)
        case time():
            offset = key.utcoffset()
            since = timedelta(hours=key.hour, minutes=key.minute)
            found = offset is None, since - (offset or timedelta())
        case _:
            found = key
    kinds = (str, tuple, frozenset, datetime, time)
    return next((kind.__name__ for kind in kinds if isinstance(key, kind)), type(key)), found


def key_of(number: int) -> Any:
    return POOL[number % len(POOL)]


def counted_by_state(kept: int | None, number: int) -> tuple[int, tuple[Any, int]]:
    total = (kept or 0) + 1
    return total, (key_of(number), total)


def of_result(result: Any) -> tuple[Any, Any]:
    return result.key, result.value


class Counting(gp.Task):
    def on_next(self, message: gp.Message) -> list[gp.Message]:
        state = self.context.state.value("n", default=0)
        state.set(state.get() + 1)
        return [gp.Message((key_of(message.value), state.get()), message.timestamp)]


ALL: Final = gp.global_window()
STEPS: Final[dict[str, Callable[[Any], Any]]] = {
    "count": lambda s: s.count(),
    "sum": lambda s: s.sum(lambda _: 1),
    "reduce": lambda s: s.reduce(lambda a, _: a).map(lambda pair: (pair[0], None)),
    "fold": lambda s: s.fold(0, lambda n, _: n + 1),
    "aggregate": lambda s: s.aggregate(n=gp.agg.count(), m=gp.agg.sum(lambda _: 1)).map(
        lambda pair: (pair[0], pair[1]["m"])
    ),
    "map_with_state": lambda s: s.map_with_state(counted_by_state),
    "process": lambda s: s.process(Counting),
    "enumerate": lambda s: s.enumerate(1).map(lambda pair: (key_of(pair[1]), pair[0])),
    "distinct": lambda s: s.distinct().map(lambda number: (key_of(number), None)),
    "window count": lambda s: s.window(ALL).count().map(of_result),
    "window fold": lambda s: s.window(ALL).fold(0, lambda n, _: n + 1).map(of_result),
    "window aggregate": lambda s: (
        s.window(ALL).aggregate(n=gp.agg.sum(lambda _: 1)).map(lambda r: (r.key, r.value["n"]))
    ),
    "sliding": lambda s: s.window(gp.sliding("10d", "5d")).count().map(of_result),
    "session": lambda s: s.window(gp.session("10d")).count().map(of_result),
    "top_n": lambda s: s.window(ALL).top_n(1000).map(lambda r: (r.key, len(r.value))),
}


def outcome(
    step: Callable[[Any], Any], numbers: list[int], *, tasks: int, seed: int, folder: Path | None
) -> dict[Any, Any]:
    """Return the largest value of each key, in a run with two crashes."""
    app, sink = gp.StreamApp("keys"), MemoryTransactions()
    source = gp.collection(
        [gp.Message(number, at) for at, number in enumerate(numbers)],
        partitions=2,
        out_of_order="1s",
    )
    stream = app.read(source, parallelism=2).key_by(key_of, parallelism=tasks)
    step(stream).write(sink)
    settings = StateSettings(backend="disk", folder=str(folder)) if folder else StateSettings()
    Simulation(
        app,
        seed=seed,
        cut_every_ms=40,
        crash_at_ms=[60, 120],
        may_miss=True,
        open_state=partial(open_state, settings),
    ).run(steps_max=200_000)
    found: dict[Any, Any] = {}
    for key, value in sink.values:
        place = form(key)
        found[place] = value if value is None else max(value, found.get(place, 0))
    return found


@pytest.mark.parametrize("place", ["heap", "disk"])
@pytest.mark.parametrize("name", STEPS)
def test_every_step_has_the_same_keys(name: str, place: str, tmp_path: Path) -> None:
    rng = Random(name + place)
    numbers = [rng.randrange(len(POOL)) for _ in range(RECORDS)]
    wanted = Counter(form(key_of(number)) for number in numbers)
    is_of_keys = name in {"reduce", "distinct"}
    expected: dict[Any, Any] = dict.fromkeys(wanted) if is_of_keys else dict(wanted)

    for tasks in (1, 3):
        folder = tmp_path / str(tasks) if place == "disk" else None
        found = outcome(STEPS[name], numbers, tasks=tasks, seed=tasks, folder=folder)
        assert found == expected, f"{tasks} tasks"


JOINS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "window": lambda left, right: left.join(right, ALL).map(lambda r: (r.left, r.right)),
    "cogroup": lambda left, right: left.cogroup(right, ALL).flat_map(
        lambda r: [(one, other) for one in r.left for other in r.right]
    ),
    "interval": lambda left, right: left.join_interval(right, before="1d", after="1d").map(
        lambda r: (r.left, r.right)
    ),
    "latest": lambda left, right: left.join_latest(right).map(lambda r: (r.left, r.right)),
}


@pytest.mark.parametrize("name", JOINS)
def test_every_join_has_the_same_keys(name: str) -> None:
    rng = Random(name)
    lefts, rights = ([rng.randrange(len(POOL)) for _ in range(40)] for _ in "ab")
    pairs: list[tuple[int, int | None]] = [
        (a, b) for a in lefts for b in rights if form(key_of(a)) == form(key_of(b))
    ]
    if name == "latest":  # The newest of each key on the right, which came before all of the left.
        newest = {form(key_of(number)): number for number in rights}
        pairs = [(a, newest.get(form(key_of(a)))) for a in lefts]

    for tasks in (1, 3):
        app, sink = gp.StreamApp("joined"), MemoryTransactions()
        sides = [
            app.read(
                gp.collection([gp.Message(n, begin + at) for at, n in enumerate(numbers)]),
                name=f"side{begin}",
            ).key_by(key_of, parallelism=tasks)
            for begin, numbers in ((1000, lefts), (0, rights))
        ]
        JOINS[name](*sides).write(sink)
        Simulation(app, seed=tasks, cut_every_ms=40, crash_at_ms=[50], may_miss=True).run(
            steps_max=200_000
        )
        assert Counter(sink.values) == Counter(pairs), f"{tasks} tasks"


#: Values of a column, and its type.
CELLS: Final[dict[str, tuple[list[Any], Any]]] = {
    "hours": ([*LOCAL, *GAP, None] * 5, pa.timestamp("us", "Europe/Berlin")),
    "numbers": ([0.0, -0.0, float("nan"), -float("nan"), None, 1.0] * 4, pa.float64()),
}
COLUMN_STEPS: Final[dict[str, Callable[[Any], Any]]] = {
    "count": lambda s: s.window(ALL).count().map(of_result),
    "aggregate": lambda s: (
        s.window(ALL).aggregate(n=gp.agg.sum("one")).map(lambda r: (r.key, r.value["n"]))
    ),
    "running": lambda s: s.count(),
    "state": lambda s: s.map_with_state(lambda n, row: ((n or 0) + 1, (row["key"], (n or 0) + 1))),
}


@pytest.mark.parametrize("step", COLUMN_STEPS)
@pytest.mark.parametrize("name", CELLS)
def test_columns_have_the_same_keys(name: str, step: str) -> None:
    cells, kind = CELLS[name]
    cells = cells[: len(cells) - 3]
    wanted = Counter(map(form, cells))
    table = pa.table({"key": pa.array(cells, kind), "one": [1] * len(cells)})
    pieces = [gp.rows(table.slice(at, 7)) for at in range(0, len(cells), 7)]

    for tasks in (1, 3):
        for is_columns in (True, False):
            app, sink = gp.StreamApp("columns"), MemoryTransactions()
            streams = [app.read(each, name=f"part{at}") for at, each in enumerate(pieces)]
            rows = streams[0].merge(*streams[1:])
            rows = rows if is_columns else rows.map(dict)
            COLUMN_STEPS[step](rows.key_by("key", parallelism=tasks)).write(sink)
            Simulation(app, seed=tasks, cut_every_ms=40, crash_at_ms=[50], may_miss=True).run(
                steps_max=200_000
            )
            found: Counter[Any] = Counter()
            for key, n in sink.values:
                found[form(key)] = max(n, found[form(key)])
            assert found == wanted, f"{tasks} tasks, {is_columns=}"


@pytest.mark.parametrize("is_columns", [True, False])
def test_the_first_and_the_last_time_are_those_of_the_instants(is_columns: bool) -> None:  # noqa: FBT001
    early, late = ((FIRST + timedelta(minutes=minutes)).astimezone(BERLIN) for minutes in (10, 65))
    assert late.replace(tzinfo=None) < early.replace(tzinfo=None)
    table = pa.table(
        {"when": pa.array([early, late, early] * 3, pa.timestamp("us", "Europe/Berlin"))}
    )
    app, out = gp.StreamApp("times"), []  # type: ignore[var-annotated]
    rows = app.read(gp.rows(table))
    rows = rows if is_columns else rows.map(dict)
    of_all = rows.window(ALL).aggregate(
        least=gp.agg.min("when"),
        most=gp.agg.max("when"),
        top=gp.agg.top(3, "when"),
        n=gp.agg.distinct("when"),
    )
    of_all.map(lambda r: r.value).write(gp.to_list(out))
    Simulation(app).run()

    (found,) = out
    assert found["least"].timestamp() == early.timestamp()
    assert found["most"].timestamp() == late.timestamp()
    assert [each.timestamp() for each in found["top"]] == [late.timestamp()] * 3
    assert found["n"] == 2
