"""Whole applications that are cut into epochs and killed, for many seeds: the answer stays right.

A failing seed is in the text of the failure; the same run again is `Simulation(..., seed=seed)`.
"""

import gc
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

import gearpy as gp
from gearpy.core.flow.partition import (
    BroadcastPartitioner,
    CoLocationPartitioner,
    HashPartitioner,
    Partitioner,
    ShufflePartitioner,
)
from gearpy.dsl.application import StreamApp
from gearpy.ids import MAX_MS, MIN_MS, TaskId
from gearpy.task.api.interfaces import FINISHED
from gearpy.task.api.rejects import OnError
from gearpy.task.api.snapshots import TaskState
from gearpy.testing.simulation import SMALL_LIMITS, Simulation
from tests.sim.random_flows import TINY_LIMITS
from tests.sim.words import WORDS, some_words

#: A batch is larger than the window, so what an epoch has gathered may have to wait.
LARGE_BATCHES = replace(TINY_LIMITS, batch_records=8)


class Watched(Simulation):
    """A simulation with random limits, cuts and crashes; holds clocks to what was promised.

    It crashes now and then, more often when there is a new epoch to go back to.
    """

    def __init__(self, app: Any, *, seed: int, rng: Random, on_error: OnError = "fail") -> None:
        self.resumed = 0
        self.crashes_left = rng.randrange(4)
        self.rng = rng
        super().__init__(
            app,
            seed=seed,
            delay_ms=rng.choice([1, 5, 20]),
            limits=rng.choice([SMALL_LIMITS, SMALL_LIMITS, TINY_LIMITS, LARGE_BATCHES]),
            cut_every_ms=rng.choice([4, 10, 30]),
            on_error=on_error,
        )
        self.crashed_at_epoch = 0

    def step(self) -> bool:
        went_on = super().step()
        is_new = self.complete_epoch > self.crashed_at_epoch
        if self.crashes_left and self.rng.random() < (0.02 if is_new else 0.0007):
            self.crashes_left -= 1
            self.crashed_at_epoch = self.complete_epoch
            self.crash()
        return went_on

    def crash(self) -> None:
        """Count; no task may begin behind what its snapshot says it had promised."""
        self.resumed += self.complete_epoch > 0
        super().crash()
        for task, resume in self.resumes.items():
            state, clock = TaskState.decode(resume.head), self.runners[task].clock()
            assert clock.clock_ms >= state.clock_ms, f"clock of {task}"
            assert clock.watermark_ms >= state.watermark_ms, f"watermark of {task}"


class Slow(gp.Source):
    """Gives what another source gives, some records at a time and with pauses."""

    replayable = True

    def __init__(self, source: gp.Source) -> None:
        self.source = source

    def partitions(self) -> Sequence[str]:
        return self.source.partitions()

    def open(self, partition: str, resume: Any | None) -> gp.SourceReader:
        return SlowReader(self.source.open(partition, resume))


class SlowReader(gp.SourceReader):
    def __init__(self, reader: gp.SourceReader) -> None:
        self.reader = reader
        self.reads = 0

    def read_batch(self, max_records: int) -> gp.Batch | None:
        self.reads += 1
        batch = self.reader.read_batch(self.reads % 4) if self.reads % 4 else None
        self.finished = self.reader.finished
        return batch

    def snapshot(self) -> Any:
        return self.reader.snapshot()

    @property
    def watermark_ms(self) -> int:
        return self.reader.watermark_ms

    @property
    def progress(self) -> tuple[int, int]:
        return self.reader.progress


# -- sinks -----------------------------------------------------------------------------------


class Cut(gp.Sink):
    """A list for each task, cut back to what it was when a snapshot was taken."""

    def __init__(self) -> None:
        self.parts: defaultdict[int, list[Any]] = defaultdict(list)
        self.restored: list[Any] = []

    def open(self, task_index: int, parallelism: int) -> gp.SinkWriter:
        return CutWriter(self.parts[task_index], self.restored)

    @property
    def values(self) -> list[Any]:
        return [value for part in self.parts.values() for value in part]


class CutWriter(gp.SinkWriter):
    def __init__(self, part: list[Any], restored: list[Any]) -> None:
        self.part = part
        self.restored = restored

    def restore(self, state: int | None) -> None:
        self.restored.append(state)
        del self.part[state or 0 :]

    def snapshot(self) -> int:
        return len(self.part)

    def write_batch(self, batch: gp.Batch) -> None:
        self.part += batch.values


# -- the stream language -----------------------------------------------------------------------


def word_count(sources: list[list[gp.Message]], parallelism: int, sink: gp.Sink) -> StreamApp:
    app = StreamApp("wordcount", parallelism=parallelism)
    first, *others = [
        app.read(
            Slow(gp.collection(words, partitions=parallelism + 1, out_of_order="20ms")),
            name=f"read{number}",
        )
        for number, words in enumerate(sources)
    ]
    (
        first.merge(*others)
        .flat_map(lambda word: [word, word.upper()])
        .key_by(str.lower)
        .window(gp.tumbling("50ms"))
        .count()
        .map(lambda result: (result.key.lower(), result.start, result.value))
        .write(sink)
    )
    return app


def counted(sources: list[list[gp.Message]]) -> Counter[tuple[str, int, int]]:
    windows = Counter(
        (message.value, message.timestamp // 50 * 50) for words in sources for message in words
    )
    return Counter((word, start, 2 * count) for (word, start), count in windows.items())


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_word_count_survives_crashes(parallelism: int) -> None:
    crashes = resumed = 0
    for seed in range(5):
        rng = Random(seed)
        sources = [some_words(rng, rng.randrange(60)) for _ in range(rng.randrange(1, 4))]
        sink = Cut()
        simulation = Watched(word_count(sources, parallelism, sink), seed=seed, rng=rng)
        simulation.run()

        assert Counter(sink.values) == counted(sources), f"seed {seed}"
        records = sum(len(words) for words in sources)
        clocks = simulation.clocks()
        assert sum(clock.late_records for clock in clocks) == 0, f"seed {seed}"
        reads = [clock for clock in clocks if clock.total]
        assert sum(clock.done for clock in reads) == sum(c.total for c in reads) == records
        crashes += simulation.crashes
        resumed += simulation.resumed
    assert crashes > 3, "the test has crashes"
    assert resumed > 1, "and some of them after a complete epoch"


def test_plain_sink_has_everything_at_least_once() -> None:
    for seed in range(4):
        rng = Random(seed)
        sources = [some_words(rng, 40) for _ in range(2)]
        results: list[Any] = []
        Watched(word_count(sources, 2, gp.to_list(results)), seed=seed, rng=rng).run()

        assert set(results) == set(counted(sources)), f"seed {seed}"


@pytest.mark.filterwarnings("ignore:unclosed file")  # Who is killed closes nothing.
def test_files_have_each_line_once(tmp_path: Path) -> None:
    resumed = 0
    for seed in range(5):
        rng = Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        words = [[rng.choice(WORDS) for _ in range(rng.randrange(80))] for _ in range(3)]
        for number, lines in enumerate(words):
            (folder / f"in{number}.txt").write_text("".join(f"{line}\n" for line in lines))
        app = StreamApp("files", parallelism=2)
        stream = app.read(Slow(gp.files(folder / "in*.txt"))).key_by(lambda word: word)
        stream.count().write(gp.text_file(folder / "out.txt"))

        simulation = Watched(app, seed=seed, rng=rng)
        simulation.run()

        written = [line for path in folder.glob("out-*") for line in path.read_text().splitlines()]
        totals = Counter(word for lines in words for word in lines)
        expected = [str((word, n + 1)) for word, count in totals.items() for n in range(count)]
        assert sorted(written) == sorted(expected), f"seed {seed}"
        resumed += simulation.resumed
    assert resumed > 2
    del simulation
    gc.collect()


# -- bad records -------------------------------------------------------------------------------


BAD = {"to", "be", "or"}


def refuse(bad: set[str], kind: str, word: str) -> str:
    if word.lower() == kind and kind in bad:
        raise ValueError(word)
    return word


def join_unless_bad(total: str, word: str) -> str:
    return total + refuse(BAD, "or", word)


def test_bad_records_are_left_out_and_come_when_they_are_good() -> None:
    """In a loop, at a partitioner, at a fold; counted once over crashes; then given again.

    A record in quarantine is told of at least once: who keeps it may get it twice.
    """
    resumed = 0
    for seed in range(6):
        rng = Random(seed)
        words = [rng.choice(WORDS) for _ in range(60)]
        sink = Cut()
        app = StreamApp("bad", parallelism=rng.randrange(1, 4))
        (
            app.read(Slow(gp.collection(words, partitions=3)))
            .map(partial(refuse, BAD, "to"))
            .flat_map(lambda word: [word, word.upper()])
            .key_by(partial(refuse, BAD, "be"))
            .reduce(join_unless_bad)
            .map(lambda update: update[1])
            .write(sink)
        )
        simulation = Watched(app, seed=seed, rng=rng, on_error="quarantine")
        simulation.run()

        clocks = simulation.clocks()
        left_out = sum(clock.quarantined_records for clock in clocks)
        assert len(simulation.quarantined) >= left_out
        # Of each "be" both copies have no place; of "or" each task takes its first of each key.
        firsts = 2 if "or" in words else 0
        expected = words.count("to") + 2 * words.count("be") + 2 * words.count("or") - firsts
        assert left_out == expected, f"seed {seed}"
        good = Counter(word for word in words if word not in BAD)
        expected_values = [
            form * (n + 1)
            for word, count in good.items()
            for form in (word, word.upper())
            for n in range(count)
        ] + [form for form in ("or", "OR") if firsts]
        assert sorted(sink.values) == sorted(expected_values), f"seed {seed}"
        resumed += simulation.resumed
    assert resumed > 3


def test_quarantine_is_emptied_by_giving_records_again() -> None:
    for seed in range(8):
        rng = Random(seed)
        words = [rng.choice(WORDS) for _ in range(60)]
        bad = {"to", "be"}
        sink = Cut()
        app = StreamApp("again", parallelism=2)
        (
            app.read(gp.collection(words, partitions=2))
            .map(partial(refuse, bad, "to"))
            .key_by(partial(refuse, bad, "be"))
            .count()
            .write(sink)
        )
        simulation = Simulation(app, seed=seed, on_error="quarantine")
        while not simulation.is_finished:
            assert simulation.step()

        bad.clear()
        for task, record in simulation.quarantined:
            simulation.inject(task, record)
        simulation.advance(1000)

        totals = Counter(words)
        expected = [(word, n + 1) for word, count in totals.items() for n in range(count)]
        assert sorted(sink.values) == sorted(expected), f"seed {seed}"
        assert len(simulation.quarantined) == words.count("to") + words.count("be")


# -- graphs ------------------------------------------------------------------------------------


class Numbers(gp.Task):
    """Sends numbers that say where they come from; goes on where it was."""

    def on_start(self, start_time_ms: int) -> None:
        self.sent = self.context.resume or 0
        self.rng = Random(self.sent + self.context.task_id.packed())

    def produce(self) -> int:
        for _ in range(min(self.rng.randrange(12), 30 - self.sent)):
            self.sent += 1
            task = self.context.task_id
            value = (self.context.operator, task.task_index, self.sent)
            self.context.output(gp.Message(value, self.sent))
        self.context.update_watermark(self.sent)
        return FINISHED if self.sent == 30 else self.rng.choice([0, 4, 7])

    def snapshot(self) -> int:
        return self.sent


class Relay(gp.Task):
    """Sends what it gets; keeps how often it got it."""

    def on_start(self, start_time_ms: int) -> None:
        self.seen: dict[Any, int] = self.context.resume or {}

    def on_next(self, message: gp.Message) -> Iterable[gp.Message]:
        self.seen[message.value] = self.seen.get(message.value, 0) + 1
        return [message]

    def snapshot(self) -> dict[Any, int]:
        return self.seen


def a_graph(rng: Random) -> tuple[gp.StreamApplication, dict[str, Counter[str]]]:
    """Return a random graph in layers, and how often each processor gets what each source sends."""
    copies: dict[gp.Processor, Counter[str]] = {}
    graph = gp.Graph()
    for number in range(rng.randrange(1, 3)):
        source = gp.Processor(Numbers, rng.randrange(1, 4), f"source{number}")
        graph.add(source)
        copies[source] = Counter({source.name: 1})
    for number in range(rng.randrange(1, 6)):
        relay = gp.Processor(Relay, rng.randrange(1, 4), f"relay{number}")
        upstream = rng.sample(list(copies), rng.randrange(1, min(3, len(copies)) + 1))
        copies[relay] = Counter()
        for source in upstream:
            partitioner = a_partitioner(rng, source, relay)
            graph.connect(source, relay, partitioner)
            is_broadcast = isinstance(partitioner, BroadcastPartitioner)
            for _ in range(relay.parallelism if is_broadcast else 1):
                copies[relay] += copies[source]
    return gp.StreamApplication("graph", graph), {p.name: n for p, n in copies.items()}


def a_partitioner(rng: Random, source: gp.Processor, target: gp.Processor) -> Partitioner:
    """Return any that is allowed; broadcasts are rare, as they multiply."""
    kinds: list[Partitioner] = [HashPartitioner(), ShufflePartitioner()] * 3
    if source.parallelism == target.parallelism:
        kinds += [CoLocationPartitioner()] * 2
    return rng.choice([*kinds, BroadcastPartitioner()])


def test_state_of_any_graph_survives_crashes() -> None:
    """Diamonds, wide shuffles, broadcasts, small windows: no record is lost or counted twice."""
    crashes = resumed = 0
    for seed in range(8):
        rng = Random(seed)
        app, copies = a_graph(rng)
        simulation = Watched(app, seed=seed, rng=rng)
        simulation.run()

        seen: defaultdict[str, Counter[Any]] = defaultdict(Counter)
        for runner in simulation.runners.values():
            if isinstance(runner.task, Relay):
                seen[runner.info.operator].update(runner.task.seen)
            assert runner.clock().clock_ms == MAX_MS
        for name, counts in seen.items():
            expected = {value: copies[name][value[0]] for value in counts}
            assert counts == expected, f"seed {seed}: {name}"
            tasks = {value[:2] for value in counts}
            assert len(counts) == 30 * len(tasks), f"seed {seed}: {name} lacks records"
            assert {value[0] for value in counts} == set(copies[name]), f"seed {seed}: {name}"
        crashes += simulation.crashes
        resumed += simulation.resumed
    assert crashes > 3
    assert resumed > 2


def test_epochs_end_also_when_all_sources_have_finished() -> None:
    for seed in range(8):
        app, _ = a_graph(Random(seed))
        simulation = Simulation(app, seed=seed)
        while not simulation.is_finished:
            assert simulation.step()

        simulation.cut()
        simulation.advance(1000)

        assert simulation.complete_epoch == 1, f"seed {seed}"
        simulation.crash()
        assert all(clock.clock_ms == MAX_MS for clock in simulation.clocks())
        simulation.run()


def test_same_seed_gives_the_same_recovery() -> None:
    """Otherwise a seed would be of no use."""

    def run_once() -> tuple[Any, ...]:
        sink = Cut()
        app = word_count([some_words(Random(3), 50)], 2, sink)
        simulation = Simulation(app, seed=5, cut_every_ms=10, crash_at_ms=[50, 120]).run()
        return simulation.now_ms, simulation.delivered, simulation.complete_epoch, sink.values

    first, second = run_once(), run_once()

    assert first == second
    assert first[2] > 0


class Ticking(gp.Task):
    """Lives by timers: each sends its number and sets the next."""

    def on_start(self, start_time_ms: int) -> None:
        """Set the first timer; after a restart it is there already."""
        if self.context.resume is None:
            self.context.schedule(10, 1)

    def on_timer(self, payload: object) -> None:
        assert isinstance(payload, int)
        self.context.output(gp.Message(payload))
        if payload < 20:
            self.context.schedule(10, payload + 1)

    def snapshot(self) -> str:
        return "ticking"


def test_timers_survive_crashes() -> None:
    for seed in range(12):
        relay = gp.Processor(Relay)
        app = gp.StreamApplication("timers", gp.Graph().connect(gp.Processor(Ticking), relay))
        rng = Random(seed)

        simulation = Watched(app, seed=seed, rng=rng)
        simulation.run()

        task = simulation.runners[TaskId(1, 0)].task
        assert isinstance(task, Relay)
        assert task.seen == dict.fromkeys(range(1, 21), 1), f"seed {seed}"
        assert simulation.clocks()[0].clock_ms > MIN_MS
