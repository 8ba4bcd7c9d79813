"""`take`, `skip`, `enumerate`, `pairwise`, `rolling`: their results, also over restarts."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import pytest

import gearpy as gp
from gearpy.dsl.plan.linear import linear_plans
from gearpy.errors import ConfigError
from gearpy.testing import MemoryTransactions, Simulation

RECORDS: Final = [gp.Message(n, n * 10) for n in range(60)]

#: A step, and its results in the order of event time.
STEPS: Final[dict[str, tuple[Callable[[gp.Stream[int]], gp.Stream[Any]], list[Any]]]] = {
    "take": (lambda s: s.take(7), [*range(7)]),
    "take none": (lambda s: s.take(0), []),
    "take all": (lambda s: s.take(100), [*range(60)]),
    "skip": (lambda s: s.skip(51), [*range(51, 60)]),
    "skip all": (lambda s: s.skip(60), []),
    "both": (lambda s: s.skip(20).take(3), [20, 21, 22]),
    "union": (
        lambda s: s.filter(lambda n: n < 2).union(
            s.filter(lambda n: n == 30), s.filter(lambda n: n > 57)
        ),
        [0, 1, 30, 58, 59],
    ),
    "flatten": (lambda s: s.take(3).map(lambda n: [n] * n).flatten(), [1, 2, 2]),
    "enumerate": (
        lambda s: s.key_by(lambda n: n % 3).enumerate(start=1).filter(lambda pair: pair[0] > 19),
        [(20, 57), (20, 58), (20, 59)],
    ),
    "pairwise": (
        lambda s: s.key_by(lambda n: n % 25).pairwise().filter(lambda pair: pair[1] > 50),
        [(n - 25, n) for n in range(51, 60)],
    ),
    "rolling": (
        lambda s: s.key_by(lambda n: n % 25).rolling(2).filter(lambda last: last[-1] % 25 == 1),
        [[1], [1, 26], [26, 51]],
    ),
    "rolling time": (
        lambda s: (
            s.key_by(lambda n: n % 2).rolling("30ms").filter(lambda last: last[-1] in {0, 59})
        ),
        [[0], [57, 59]],
    ),
    "debounce": (
        lambda s: s.key_by(lambda n: n // 10).debounce("1s"),
        [9, 19, 29, 39, 49, 59],
    ),
    "debounce few": (lambda s: s.key_by(lambda n: n % 2).debounce("1ms").take(4), [0, 1, 2, 3]),
}


def crashed(app: gp.StreamApp, *, seed: int, crashes: int) -> None:
    """Run with little at a time, so that crashes find epochs with records before and behind."""
    Simulation(
        app,
        seed=seed,
        delay_ms=2,
        read_records=1,
        cut_every_ms=2,
        crashes_after_epochs=crashes,
        may_miss=True,
    ).run()


@pytest.mark.parametrize("crashes", [0, 2], ids=["", "crashes"])
@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize(("build", "expected"), STEPS.values(), ids=STEPS)
def test_results_depend_on_the_records_alone(
    build: Callable[[gp.Stream[int]], gp.Stream[Any]], expected: list[Any], tasks: int, crashes: int
) -> None:
    """However many tasks there are before, and when all tasks go on from an epoch."""
    app, sink = gp.StreamApp("small", parallelism=tasks), MemoryTransactions()
    build(app.read(gp.collection(RECORDS, partitions=tasks))).write(sink)

    crashed(app, seed=tasks, crashes=crashes)

    assert sorted(sink.values) == expected


#: Many records of each millisecond, none of them where its bytes would put it.
TIES: Final = [gp.Message(n * 7 % 30, n // 10) for n in range(30)]

AFTER: Final[dict[str, Callable[[gp.Stream[Any]], gp.Stream[Any]]]] = {
    "skip": lambda s: s.skip(3),
    "again": lambda s: s.skip(1).skip(1).skip(1),
    "both": lambda s: s.take(100).skip(3),
    "between": lambda s: s.skip(2).map(lambda n: n).skip(1),
}


@pytest.mark.parametrize("crashes", [0, 2], ids=["", "crashes"])
@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize("build", AFTER.values(), ids=AFTER)
def test_records_of_one_time_stay_in_order_behind_first_records(
    build: Callable[[gp.Stream[Any]], gp.Stream[Any]],
    form: str,
    partitions: int,
    tasks: int,
    crashes: int,
) -> None:
    parts = [TIES[at::partitions] for at in range(partitions)]
    read = sorted((m.timestamp, at, turn) for at, p in enumerate(parts) for turn, m in enumerate(p))
    values = [parts[at][turn].value for _, at, turn in read][3:]

    app, sink = gp.StreamApp("small", parallelism=tasks), MemoryTransactions()
    records = [gp.Message({"n": n}, time_ms) for n, time_ms in TIES]
    schema = {"n": int} if form == "columns" else None
    rows = build(app.read(gp.collection(records, partitions=partitions, schema=schema)))
    stream = rows.map(lambda row: int(row["n"]))
    stream.key_by(lambda n: n % 2).pairwise().write(sink)
    crashed(app, seed=tasks, crashes=crashes)

    of_keys = ([n for n in values if n % 2 == key] for key in (0, 1))
    assert sorted(sink.values) == sorted(pair for each in of_keys for pair in pairwise(each))


def test_first_records_as_they_come_wait_for_nothing() -> None:
    app = gp.StreamApp("small")
    one = app.read(gp.collection(RECORDS)).take(3)
    other = app.read(gp.collection(RECORDS)).take(3, ordered=False)
    one.merge(other).write(gp.to_list([]))

    assert [step.order for step in app.plan if step.kind == "take"] == ["event time", "arrival"]


@pytest.mark.parametrize(
    ("build", "mistake"),
    [
        (lambda s: s.take(-1), "take: n is -1, must be a whole number from 0, such as 10"),
        (lambda s: s.skip(True), "skip: n is True"),
        (lambda s: s.key_by(str).rolling(0), "rolling: n is 0, must be a whole number from 1"),
        (lambda s: s.key_by(str).rolling("0s"), "rolling is '0s', must be more than 0"),
        (lambda s: s.key_by(str).rolling("5x"), "rolling: duration '5x' is not understood"),
        (lambda s: s.key_by(str).rolling(2, n=3), "n=3.: give an aggregate, such as agg.sum"),
        (lambda s: s.key_by(str).enumerate(-1), "enumerate: start is -1"),
        (lambda s: s.rolling(3), r"write .key_by\(...\).rolling\(...\)"),
    ],
    ids=["take", "skip", "rolling", "no time", "unit", "no aggregate", "enumerate", "no key"],
)
def test_mistakes_are_told(build: Callable[[Any], Any], mistake: str) -> None:
    with pytest.raises(ConfigError, match=mistake):
        build(gp.StreamApp("small").read(gp.collection([1])))


@pytest.mark.parametrize("kind", ["take", "pairwise"])
def test_spark_has_no_such_order(kind: str) -> None:
    app = gp.StreamApp("small")
    build, _ = STEPS[kind]
    build(app.read(gp.collection(RECORDS))).write(gp.to_list([]))

    with pytest.raises(ConfigError, match=f"{kind} .* has no Spark query: .* depends on the order"):
        linear_plans("small", app.plan)
