"""Whole applications in one thread, with messages that overtake each other, for many seeds.

A failing seed is in the text of the failure; `run_one(seed)` of a test repeats it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from random import Random
from typing import Any

import pytest

import gearpy as gp
from gearpy.core.flow.partition import BroadcastPartitioner, HashPartitioner, ShufflePartitioner
from gearpy.dsl.application import StreamApp
from gearpy.errors import ApplicationFailed, OperatorError
from gearpy.ids import MAX_MS, MIN_MS, TaskId
from gearpy.task.api.interfaces import FINISHED
from gearpy.testing.simulation import SMALL_LIMITS, Simulation
from tests.sim.random_flows import TINY_LIMITS
from tests.sim.words import some_words


def word_count(sources: list[list[gp.Message]], parallelism: int, results: list[Any]) -> StreamApp:
    app = StreamApp("wordcount", parallelism=parallelism)
    first, *others = [
        app.read(
            gp.collection(words, partitions=parallelism, out_of_order="20ms"), name=f"read{number}"
        )
        for number, words in enumerate(sources)
    ]
    (
        first.merge(*others)
        .flat_map(lambda word: [word, word.upper()])
        .key_by(str.lower)
        .window(gp.tumbling("50ms"))
        .count()
        .write(gp.to_list(results))
    )
    return app


def counted(sources: list[list[gp.Message]]) -> Counter[tuple[str, int]]:
    return Counter(
        {
            (word, start): 2 * count
            for (word, start), count in Counter(
                (message.value, message.timestamp // 50 * 50)
                for words in sources
                for message in words
            ).items()
        }
    )


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_word_count_is_right_in_every_order(parallelism: int) -> None:
    for seed in range(6):
        rng = Random(seed)
        sources = [some_words(rng, rng.randrange(40)) for _ in range(rng.randrange(1, 4))]
        results: list[gp.WindowResult[str, int]] = []
        simulation = Simulation(
            word_count(sources, parallelism, results),
            seed=seed,
            limits=rng.choice([SMALL_LIMITS, TINY_LIMITS]),
        ).run()

        found = {(result.key.lower(), result.start): result.value for result in results}
        assert len(found) == len(results), f"seed {seed}: a window was given twice"
        assert found == counted(sources), f"seed {seed}"
        assert sum(clock.late_records for clock in simulation.clocks()) == 0, f"seed {seed}"


class Relay(gp.Task):
    def on_start(self, start_time_ms: int) -> None:
        self.seen: list[tuple[int, int, int]] = []
        self.watermarks: list[int] = []

    def on_next(self, message: gp.Message) -> None:
        assert message.timestamp >= self.context.upstream_min_clock(), "it is late"
        self.seen.append(message.value)
        self.context.output(message)

    def on_watermark(self, watermark_ms: int) -> None:
        assert watermark_ms == self.context.upstream_min_clock()
        self.watermarks.append(watermark_ms)


class Numbers(gp.Task):
    def on_start(self, start_time_ms: int) -> None:
        self.sent = 0
        self.rng = Random(self.context.task_id.packed() + self.context.config["seed"])
        self.promised_ms = 0

    def produce(self) -> int:
        self.context.set_idle(False)
        for _ in range(self.rng.randrange(12)):
            self.sent += 1
            value = (self.context.task_id.processor, self.context.task_id.task_index, self.sent)
            self.context.output(gp.Message(value, self.promised_ms + self.rng.randrange(30)))
        self.promised_ms += self.rng.randrange(10)
        self.context.update_watermark(self.promised_ms)
        return FINISHED if self.sent > 80 else self.rng.choice([0, 0, 7])


def a_graph(seed: int) -> gp.StreamApplication:
    """Return a graph of random parallelism: two sources, a diamond, three partitioners."""
    rng = Random(seed)
    config = {"seed": seed}
    sources = [gp.Processor(Numbers, rng.randrange(1, 4), f"s{n}", config=config) for n in range(2)]
    left, right, last = (gp.Processor(Relay, rng.randrange(1, 4), name) for name in "lrz")
    graph = gp.Graph()
    for source in sources:
        graph.connect(source, left, HashPartitioner())
        graph.connect(source, right, ShufflePartitioner())
    graph.connect(left, last, BroadcastPartitioner())
    graph.connect(right, last, HashPartitioner())
    return gp.StreamApplication("graph", graph)


class Watched(Simulation):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.last = dict.fromkeys(self.runners, MIN_MS)
        self.next = cycle(self.runners)

    def step(self) -> bool:
        went_on = super().step()
        task = next(self.next)
        clock_ms = self.runners[task].clock().clock_ms
        assert clock_ms >= self.last[task], f"clock of {task} goes back"
        self.last[task] = clock_ms
        return went_on


def test_every_task_sees_each_record_once_and_in_order() -> None:
    for seed in range(2):
        simulation = Watched(a_graph(seed), seed=seed, limits=TINY_LIMITS).run()

        tasks = {task: runner.task for task, runner in simulation.runners.items()}
        sent = sum(task.sent for task in tasks.values() if isinstance(task, Numbers))
        seen: dict[str, Counter[Any]] = defaultdict(Counter)
        for task_id, task in tasks.items():
            if isinstance(task, Relay):
                name = simulation.runners[task_id].info.operator
                seen[name].update(task.seen)
                assert task.watermarks == sorted(set(task.watermarks)), f"seed {seed}"
                assert task.watermarks[-1] == MAX_MS, f"seed {seed}"
                if name in "lr":
                    assert_in_order(task.seen, seed)
        lasts = len(
            [runner for runner in simulation.runners.values() if runner.info.operator == "z"]
        )
        assert seen["l"] == seen["r"], f"seed {seed}"
        assert len(seen["l"]) == sum(seen["l"].values()) == sent, f"seed {seed}"
        assert set(seen["z"].values()) == {lasts + 1}, f"seed {seed}: broadcast and hash"


def assert_in_order(seen: list[tuple[int, int, int]], seed: int) -> None:
    last: dict[tuple[int, int], int] = {}
    for processor, index, number in seen:
        assert number > last.get((processor, index), 0), f"seed {seed}"
        last[processor, index] = number


def run_once(seed: int) -> tuple[int, int, int, list[Any]]:
    results: list[Any] = []
    sources = [some_words(Random(seed), 30) for _ in range(2)]
    simulation = Simulation(word_count(sources, 2, results), seed=seed).run()
    return simulation.now_ms, simulation.delivered, simulation.records_queued_max, results


def test_same_seed_gives_the_same_run() -> None:
    """Otherwise a seed would be of no use; and other seeds give other runs."""
    runs = [run_once(seed) for seed in (1, 1, 2)]

    assert runs[0] == runs[1]
    assert runs[0][:2] != runs[2][:2]


def fail_on(word: str, bad: str) -> str:
    if word == bad:
        raise ValueError(bad)
    return word


def test_failing_run_names_its_seed() -> None:
    app = StreamApp("failing")
    app.read(gp.collection(["a", "b"])).map(partial(fail_on, bad="b"))

    with pytest.raises(OperatorError, match="ValueError: b") as raised:
        Simulation(app, seed=77).run()

    assert "simulation of 'failing' with seed 77" in raised.value.__notes__


class Stuck(gp.Task):
    def produce(self) -> int:
        return 10


def test_run_that_does_not_end_names_its_seed_and_who_holds_it() -> None:
    app = gp.StreamApplication("endless", gp.Graph().add(gp.Processor(Stuck)))

    with pytest.raises(ApplicationFailed, match=r"seed 5: not finished: .*task_id=TaskId"):
        Simulation(app, seed=5).run(steps_max=100)


def explode(_: int) -> Iterator[int]:
    yield from range(10_000)


def test_exploding_record_stays_within_the_window() -> None:
    """1 -> 10,000, and a sink that is one task: memory is bounded in every queue."""
    app = StreamApp("explode")
    results: list[Any] = []
    app.read(gp.collection(range(3))).flat_map(explode).key_by(lambda n: n % 7).count().write(
        gp.to_list(results)
    )

    simulation = Simulation(app, seed=1).run()

    assert len(results) == 30_000
    assert simulation.records_queued_max <= SMALL_LIMITS.flow.window_records


def test_exploding_records_on_a_chain_of_tasks_stay_within_the_windows() -> None:
    app = StreamApp("chain", parallelism=2)
    total: list[Any] = []
    stream = app.read(gp.collection(range(4), partitions=2))
    for _ in range(3):
        stream = stream.flat_map(lambda n: range(n, n + 8)).process(Relay)
    stream.window(gp.global_window()).count().write(gp.to_list(total))

    simulation = Simulation(app, seed=3, limits=TINY_LIMITS).run()

    assert [result.value for result in total] == [4 * 8**3]
    assert simulation.records_queued_max <= 2 * TINY_LIMITS.flow.window_records


class Silent(gp.Task):
    """A source that says it is idle, for 100 ms."""

    def on_start(self, start_time_ms: int) -> None:
        self.context.set_idle(True)
        self.context.schedule(100, None)

    def on_timer(self, payload: object) -> None:
        """Give again: nothing of it may be late, since it is newer than all else."""
        self.context.set_idle(False)
        self.context.output(gp.Message((0, 0, 1), 10_000))


def test_idle_source_holds_nothing_back_and_its_records_are_not_late() -> None:
    for seed in range(8):
        silent, numbers = gp.Processor(Silent), gp.Processor(Numbers, config={"seed": seed})
        relay = gp.Processor(Relay)
        graph = gp.Graph().connect(silent, relay).connect(numbers, relay)

        simulation = Simulation(gp.StreamApplication("idle", graph), seed=seed).run()

        task = simulation.runners[TaskId(2, 0)].task
        assert isinstance(task, Relay)
        assert (0, 0, 1) in task.seen, f"seed {seed}"
        assert len(task.watermarks) > 3, f"seed {seed}"
