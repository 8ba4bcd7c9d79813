"""What comes out is a function of the records of each partition, and of nothing else."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from msgspec.structs import replace

import gearpy as gp
from gearpy.core.window.windows import Windows
from gearpy.task.time.late import WindowLate
from gearpy.testing import FlowDriver, ManualSource, Simulation
from gearpy.testing.simulation import SMALL_LIMITS
from tests.sim.random_flows import Event, RandomFlow, numbered

SECOND = 1000


def events(count: int = 600) -> list[Event]:
    """Return records of three users; most are a little out of order, some are far too late."""
    made: list[Event] = []
    for at in range(count):
        delay = 40 * SECOND if at % 23 == 0 else (at * 7919) % (3 * SECOND)
        made.append(Event(f"u{at % 3}", at % 11, max(0, at * 300 - delay)))
    return made


def config(batch: int) -> Any:
    room = max(20_000, batch)
    return gp.load_config(
        overrides={
            "streaming.batch-max-records": str(batch),
            "streaming.columnar-batch-records": str(batch),
            "streaming.max-pending-message-count-per-connection": str(room),
            "source.read-batch-size": str(batch),
        }
    )


def simulate(app: gp.StreamApp, batch: int) -> None:
    room = replace(SMALL_LIMITS.flow, window_records=max(50, batch))
    limits = replace(SMALL_LIMITS, flow=room, batch_records=batch)
    Simulation(app, seed=batch, read_records=batch, limits=limits).run()


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize("kind", ["tumbling", "sliding"])
def test_the_size_of_batches_decides_nothing(kind: str, form: str) -> None:
    windows = gp.tumbling("10s") if kind == "tumbling" else gp.sliding("10s", every="5s")
    schema = Event if form == "columns" else None
    found = set()
    for batch, parallelism in ((1, 3), (100, 1), (65_536, 3)):
        app, out = gp.StreamApp("same", parallelism=parallelism), list[Any]()
        source = gp.collection(
            events(300), timestamp=lambda each: each.at, out_of_order="2s", schema=schema
        )
        by_user = app.read(source).key_by("user").window(windows)
        by_user.aggregate(n=gp.agg.count(), total=gp.agg.sum("amount")).write(gp.to_list(out))
        summary = gp.run(app, config=config(batch))
        rows = Counter((r.key, r.start, r.value["n"], r.value["total"]) for r in out)
        found.add((summary.progress.late_records, frozenset(rows.items())))

    assert len(found) == 1
    assert min(late for late, _ in found) > 0


@pytest.mark.parametrize("form", ["rows", "columns"])
def test_sketches_are_the_same(form: str) -> None:
    """Many more values than are kept as they are; also of what forgets some of them, in order."""
    chance = Random(3)
    made = [
        Event(f"u{n % 2}", chance.choice((n, 7, 8, int(chance.lognormvariate(6, 3)))), n * 10)
        for n in range(12_000)
    ]
    found = set()
    for batch, parallelism in ((97, 3), (65_536, 1)):
        app, out = gp.StreamApp("sketches", parallelism=parallelism), list[Any]()
        source = gp.collection(
            made,
            timestamp=lambda each: each.at,
            partitions=3,
            out_of_order="1s",
            schema=Event if form == "columns" else None,
        )
        by_user = app.read(source).key_by("user").window(gp.sliding("120s", every="60s"))
        frequent = {"frequent": gp.agg.heavy_hitters(5, "amount")} if form == "rows" else {}
        by_user.aggregate(
            tail=gp.agg.quantile([0.5, 0.99], "amount"),
            different=gp.agg.approx_distinct("amount"),
            usual=gp.agg.mode("amount"),
            latest=gp.agg.arg_max("amount", by="at"),
            some=gp.agg.median("amount", where="amount"),
            **frequent,
        ).write(gp.to_list(out))
        gp.run(app, config=config(batch))
        found.add(tuple(sorted(map(repr, out))))

    assert len(found) == 1
    assert max(result.value["different"] for result in out) > 1000


LATE_WINDOWS: dict[str, Callable[[], Windows]] = {
    "tumbling": lambda: gp.tumbling("5s").allowed_lateness("20s").accumulating(),
    "session": lambda: gp.session("500ms").allowed_lateness("60s").accumulating(),
    "sliding": lambda: gp.sliding("10s", every="5s").allowed_lateness("20s").discarding(),
}


@pytest.mark.parametrize("late", ["side", "drop", "restamp"])
@pytest.mark.parametrize("windows", LATE_WINDOWS.values(), ids=LATE_WINDOWS)
def test_late_firings_are_the_same(windows: Callable[[], Windows], late: WindowLate) -> None:
    for partitions in (1, 3):
        found = set()
        for batch, parallelism in ((1, 2), (65_536, 1)):
            app = gp.StreamApp("late", parallelism=parallelism)
            out, aside = list[Any](), list[Any]()
            source = gp.collection(
                events(300),
                timestamp=lambda each: each.at,
                out_of_order="2s",
                partitions=partitions,
            )
            by_user = app.read(source).key_by("user").window(windows(), late=late)
            sums = by_user.sum("amount")
            sums.write(gp.to_list(out))
            if late == "side":
                sums.late.write(gp.to_list(aside, messages=True))
            summary = gp.run(app, config=config(batch))
            found.add(
                (
                    summary.progress.late_records,
                    frozenset(Counter(out).items()),
                    frozenset(Counter(aside).items()),
                )
            )

        assert len(found) == 1, partitions
        assert any(result.timing == "late" for result, _ in next(iter(found))[1])


@pytest.mark.parametrize("accumulation", ["discarding", "accumulating", "retracting"])
def test_early_results_by_event_time_are_the_same(accumulation: str) -> None:
    found = set()
    for batch, parallelism in ((1, 1), (7, 3), (1000, 1)):
        app, out = gp.StreamApp("early", parallelism=parallelism), list[Any]()
        numbers = app.read(gp.collection([gp.Message(n, n * 700) for n in range(40)]))
        windows = gp.tumbling("10s").triggering(gp.after_watermark(early=gp.every(event="3s")))
        by_two = numbers.key_by(lambda n: n % 2).window(getattr(windows, accumulation)())
        by_two.aggregate(all=gp.agg.collect()).write(gp.to_list(out))
        simulate(app, batch)
        found.add(tuple(sorted(map(repr, out))))
        of_first = [result for result in out if result.key == 0 and result.start == 0]
        assert of_first[0].value["all"] == [0, 2, 4], "older than 3 s behind the first"

    assert len(found) == 1


@pytest.mark.parametrize("way", ["apart", "twice", "asof"])
def test_paths_that_meet_again_are_in_order(way: str) -> None:
    """One partition in order goes two ways, one of them longer: who sees order still sees it."""
    found = set()
    for batch, parallelism in ((1, 1), (7, 3), (1000, 1)):
        app, out = gp.StreamApp("paths", parallelism=parallelism), list[Any]()
        numbers = app.read(gp.collection([gp.Message(n, n // 2) for n in range(500)]))
        if way == "apart":
            thirds, others = numbers.split(lambda n: n % 3 == 0)
            both = thirds.map(lambda n: n).merge(others)
            both.key_by(lambda n: n % 5).pairwise().write(gp.to_list(out))
        elif way == "twice":
            both = numbers.map(lambda n: -n).merge(numbers)
            both.key_by(lambda n: abs(n) % 5).rolling(3).map(tuple).write(gp.to_list(out))
        else:
            same = numbers.map(lambda n: -n).key_by(lambda n: -n % 5)
            keyed = numbers.key_by(lambda n: n % 5)
            keyed.join_asof(same).map(lambda pair: (pair.left, pair.right)).write(gp.to_list(out))
        simulate(app, batch)
        found.add(tuple(sorted(out, key=repr)))
        if way == "apart":
            assert sorted(out) == [(n, n + 5) for n in range(495)]
        if way == "asof":
            assert sorted(out) == [(n, -n) for n in range(500)]

    assert len(found) == 1


@pytest.mark.parametrize("tasks", [1, 2])
def test_records_without_event_times_wait_for_nothing_behind_repartition(tasks: int) -> None:
    app, source, out = gp.StreamApp("arrival"), ManualSource(), list[Any]()
    spread = app.read(source).repartition(tasks).map(lambda n: n).repartition(2)
    spread.key_by(lambda n: n % 2).enumerate().write(gp.to_list(out))
    flow = FlowDriver(app)
    for number in range(5):
        flow.send(source, number, timestamp=number)

    assert out == [(0, 0), (0, 1), (1, 2), (1, 3), (2, 4)]
    flow.stop()


class Later(gp.Task[int, int]):
    def on_next(self, message: gp.Message[int]) -> Iterator[gp.Message[int]]:
        yield gp.Message(message.value, later(message.value))


def later(number: int) -> int:
    return number * 10 + number * 7919 % 500


def all_later(batch: pa.RecordBatch) -> pa.RecordBatch:
    times = pa.array([later(number) for number in batch.column("n").to_pylist()], pa.int64())
    return batch.set_column(batch.schema.get_field_index("ms"), "ms", times)


@pytest.mark.parametrize("partitions", [(1, 2), (2, 1), (2, 2)])
def test_ties_of_merged_sources_are_the_same_with_any_number_of_tasks(
    partitions: tuple[int, int],
) -> None:
    found = set()
    for parallelism in (1, 2, 3):
        app, out = gp.StreamApp("ties", parallelism=parallelism), list[Any]()
        first, second = (
            app.read(gp.collection([gp.Message(m - n, n // 4) for n in range(200)], partitions=k))
            for m, k in zip((1000, 0), partitions, strict=True)
        )
        first.merge(second).key_by(lambda n: n % 3).pairwise().write(gp.to_list(out))
        Simulation(app).run()
        found.add(tuple(sorted(out)))

    assert len(found) == 1


@pytest.mark.parametrize("step", ["process", "map_batches"])
def test_records_with_new_times_are_in_their_order(step: str) -> None:
    right = sorted(range(500), key=lambda n: (n % 5, later(n)))
    for batch, parallelism in ((1, 1), (7, 3), (1000, 1)):
        app, out = gp.StreamApp("new-times", parallelism=parallelism), list[Any]()
        if step == "process":
            numbers = gp.collection([gp.Message(n, n * 10) for n in range(500)])
            shifted: Any = app.read(numbers).process(Later)
        else:
            table = gp.rows([{"n": n, "at": n * 10} for n in range(500)], time="at")
            batches = app.read(table).map_batches(all_later, times="ms")
            shifted = batches.map(lambda row: row["n"])
        shifted.key_by(lambda n: n % 5).pairwise().write(gp.to_list(out))
        simulate(app, batch)

        pairs = pairwise(right)
        assert sorted(out) == sorted(pair for pair in pairs if pair[0] % 5 == pair[1] % 5)


class Postponed(gp.Task[Event, Event]):
    def on_next(self, message: gp.Message[Event]) -> Iterator[gp.Message[Event]]:
        yield gp.Message(message.value, message.timestamp + 5 * SECOND)


@pytest.mark.parametrize("step", ["process", "map_batches"])
def test_late_records_are_late_behind_a_step_that_gives_times(step: str) -> None:
    found = set()
    for batch, parallelism in ((1, 1), (10, 3), (1000, 1)):
        app, out = gp.StreamApp("late-times", parallelism=parallelism), list[Any]()
        source = gp.collection(
            events(400), timestamp=lambda each: each.at, out_of_order="2s", schema=Event
        )
        read: Any = app.read(source)
        some = (
            read.process(Postponed)
            if step == "process"
            else read.map_batches(lambda given: given.slice(0), times="ms", schema=Event)
        )
        some.key_by("user").map_with_state(numbered).write(gp.to_list(out))
        simulate(app, batch)
        found.add(tuple(sorted(out)))

    assert len(found) == 1


def one_run(flow: RandomFlow, rng: Random, *, crashes: bool = True) -> str:
    """Run a flow in the simulator as chance has it; return what was chosen."""
    size, parallelism = rng.choice([1, 7, 100, 1024]), rng.randrange(1, 5)
    seed = rng.randrange(1 << 30)
    room = replace(SMALL_LIMITS.flow, window_records=max(50, size))
    simulation = Simulation(
        flow.build(parallelism),
        seed=seed,
        read_records=size,
        limits=replace(SMALL_LIMITS, flow=room, batch_records=max(1, size // rng.choice([1, 4]))),
        cut_every_ms=rng.choice([10, 25]),
        crash_at_ms=[rng.randrange(20, 200) for _ in range(rng.randrange(3))] if crashes else (),
        may_miss=True,
    )
    simulation.run()
    return f"batches of {size}, {parallelism} tasks, {simulation.crashes} crashes, seed {seed}"


def check_flow(seed: int, runs: int) -> None:
    rng, form = Random(seed), Random(seed).choice(["rows", "columns"])
    flow = RandomFlow(seed, form)
    chosen = one_run(flow, rng, crashes=False)
    right = flow.shown()
    for _ in range(runs - 1):
        other = one_run(flow, rng)
        assert flow.shown() == right, f"{seed}: {flow!r} of {form}: {chosen}; {other}"


@pytest.mark.parametrize("block", [0, pytest.param(1, marks=pytest.mark.long)])
def test_random_flows_show_the_same_whatever_happens(block: int) -> None:
    """Batches, tasks, interleaving and crashes decide nothing; order within a key is the same."""
    for seed in range(block * 4, block * 4 + 4):
        check_flow(seed, runs=3)


KINDS_IN_COLUMNS = (
    *("distinct", "pairwise", "top", "top of windows", "interval", "interval, outer"),
    *("asof", "asof, nearest", "latest"),
)


@pytest.mark.parametrize(
    ("kind", "block"),
    [
        ("distinct", 0),
        ("interval", 0),
        ("interval, outer", 0),
        ("pairwise", 0),
        ("top of windows", 0),
        ("asof", 0),
        ("latest", 0),
        *(
            pytest.param(kind, block, marks=pytest.mark.long)
            for kind in KINDS_IN_COLUMNS
            for block in (1, 2)
        ),
    ],
)
def test_columns_show_the_same_as_rows_whatever_happens(kind: str, block: int) -> None:
    for seed in range(block * 3, block * 3 + 3):
        rng = Random(seed)
        flow = RandomFlow(seed, "rows", kind)
        one_run(flow, rng, crashes=False)
        right = flow.shown()
        for _ in range(2):
            columns = RandomFlow(seed, "columns", kind)
            other = one_run(columns, rng)
            assert columns.shown() == right, f"{seed}: {columns!r}: {other}"


@pytest.mark.long
@pytest.mark.parametrize("block", range(40))
def test_many_random_flows_show_the_same(block: int) -> None:
    for seed in range(1000 + block * 25, 1025 + block * 25):
        check_flow(seed, runs=5)
