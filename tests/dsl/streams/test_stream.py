"""What the stream language computes, run in virtual time."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

import pytest

import gearpy as gp
from gearpy.dsl.application import StreamApp
from gearpy.dsl.streams.stream import Stream
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MIN_MS
from gearpy.task.time.late import SourceLate
from gearpy.testing.simulation import Simulation
from tests.task.stage_build import Bounded, BoundedSource

WORDS = ["to", "be", "or", "not", "to", "be"]
#: Numbers with their event times, three of each ten ms.
TIMED = [gp.Message(number, 3 * number) for number in range(12)]


def run(
    values: Iterable[Any],
    build: Callable[[Stream[Any]], Stream[Any]],
    *,
    parallelism: int = 1,
    partitions: int = 1,
) -> list[Any]:
    app = StreamApp("test", parallelism=parallelism)
    results: list[Any] = []
    source = gp.collection(values, partitions=partitions)
    build(app.read(source)).write(gp.to_list(results))
    Simulation(app).run()
    return results


def test_what_people_see_of_a_stream_is_how_it_came_to_be() -> None:
    """In a notebook, where its address would say nothing."""
    app = StreamApp("seen")
    words = app.read(gp.collection(WORDS)).filter(bool)
    by_word = words.key_by(lambda word: word)
    windows = by_word.window(gp.tumbling("1s"))
    both = words.merge(windows.count(name="counts"), name="both")

    assert repr(words) == "<Stream: collection(6 values) > filter(bool)>"
    assert repr(by_word) == "<KeyedStream: collection(6 values) > filter(bool)>"
    assert repr(windows) == "<WindowedStream: collection(6 values) > filter(bool)>"
    assert repr(both.map(str)) == "<Stream: both > map(str)>"
    assert repr(app) == "<StreamApp 'seen': 5 steps>"


def test_windows_over_all_records() -> None:
    results = run(
        TIMED,
        lambda numbers: numbers.window(gp.tumbling("20ms")).count(),
        partitions=3,
        parallelism=3,
    )

    assert results == [gp.WindowResult(None, 7, 0, 20), gp.WindowResult(None, 5, 20, 40)]


def test_windows_of_window_results() -> None:
    results = run(
        TIMED,
        lambda numbers: (
            numbers.key_by(lambda n: n % 2)
            .window(gp.tumbling("10ms"))
            .count()
            .key_by(lambda result: result.key)
            .window(gp.tumbling("20ms"))
            .sum(lambda result: result.value)
        ),
        partitions=2,
        parallelism=2,
    )

    assert sorted((result.start, result.key, result.value) for result in results) == [
        (0, 0, 4),
        (0, 1, 3),
        (20, 0, 2),
        (20, 1, 3),
    ]


class Numbered(gp.Task):
    """Sends what it gets with the index of its task and a number of its own."""

    count = 0

    def on_next(self, message: gp.Message) -> None:
        self.count += 1
        index = self.context.task_id.task_index
        self.context.output(message._replace(value=(index, self.count, message.value)))


def test_own_task_with_a_key_sees_all_records_of_it() -> None:
    results = run(
        WORDS * 3,
        lambda words: words.key_by(str).process(Numbered, parallelism=3),
        partitions=2,
        parallelism=2,
    )

    tasks = defaultdict(set)
    for index, _, word in results:
        tasks[word].add(index)
    assert {word: len(indexes) for word, indexes in tasks.items()} == dict.fromkeys(WORDS, 1)
    assert len(results) == 3 * len(WORDS)


# -- keyed state -------------------------------------------------------------------------------


def numbered(count: int, word: str) -> tuple[int, tuple[str, int]]:
    return count + 1, (word, count)


def test_state_may_have_a_time_to_live() -> None:
    """Up to the watermark; written as all durations are."""
    app = StreamApp("ttl")
    results: list[tuple[str, int]] = []
    records = [("a", 0), ("a", 900), ("b", 5000), ("b", 5500), ("a", 5500)]
    letters = app.read(Portioned(records, size=1))
    letters.key_by(str).map_with_state(numbered, initial=0, ttl="1s").write(gp.to_list(results))

    Simulation(app).run()

    assert results == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("a", 0)]


class Kept(gp.Task):
    def on_start(self, start_time_ms: int) -> None:
        self.count = self.context.state.value("count", default=0)

    def on_next(self, message: gp.Message) -> None:
        self.count.set(self.count.get() + 1)
        self.context.output(message._replace(value=(message.value, self.count.get())))


def test_own_task_has_the_state_of_the_key() -> None:
    results = run(WORDS, lambda words: words.key_by(str).process(Kept, parallelism=2))

    assert sorted(results) == [("be", 1), ("be", 2), ("not", 1), ("or", 1), ("to", 1), ("to", 2)]


class KeptOfBatches(gp.Task):
    keeps_times = True

    def on_start(self, start_time_ms: int) -> None:
        self.count = self.context.state.value("count")

    def on_batch(self, batch: gp.Batch) -> Iterator[gp.Batch]:
        read, write = self.count.accessors()
        results: list[Any] = []
        for key, value in zip(self.context.state.keys_of(batch), batch.values, strict=True):
            write(key, (read(key) or 0) + 1)
            results.append((value, read(key), len(batch) > 1))
        yield gp.Batch(results, batch.timestamps)


def test_own_task_gets_whole_batches_with_the_state_of_their_keys() -> None:
    words = [gp.Message(word, 3 * at) for at, word in enumerate(WORDS * 50)]

    results = run(words, lambda words: words.key_by(str).process(KeptOfBatches, parallelism=2))

    counts = Counter[str]()
    for word, count, _ in results:
        counts[word] += 1
        assert count == counts[word]
    assert counts == Counter(WORDS * 50)
    assert any(is_whole for _, _, is_whole in results)


def test_own_task_of_whole_batches_cannot_set_timers_that_would_fire_in_between() -> None:
    class Sets(gp.Task):
        keeps_times = True

        def on_batch(self, batch: gp.Batch) -> None:
            self.context.state.timers.event_time(5)

    with pytest.raises(OperatorError, match="set keeps_times = False, or override on_next"):
        run(WORDS, lambda words: words.key_by(str).process(Sets))


@pytest.mark.parametrize("seed", range(8))
def test_state_is_the_same_after_crashes(seed: int) -> None:
    app = StreamApp("crashes", parallelism=2)
    words = [gp.Message(f"{word}{at}", 3 * at) for at, word in enumerate(WORDS * 50)]
    results: list[Any] = []
    by_letter = app.read(gp.collection(words)).key_by(lambda word: word[0])
    by_letter.map_with_state(numbered, initial=0).write(gp.to_list(results))
    simulation = Simulation(app, seed=seed, cut_every_ms=8, crashes_after_epochs=3)

    simulation.run()

    seen: Counter[str] = Counter()
    expected = set()
    for message in words:
        expected.add((message.value, seen[message.value[0]]))
        seen[message.value[0]] += 1
    assert set(results) == expected
    assert simulation.restored > 0


# -- late records ------------------------------------------------------------------------------

#: The third and the last are late, if records are at most 5 ms out of order.
UNORDERED = [
    gp.Message("a", 10),
    gp.Message("b", 30),
    gp.Message("c", 12),
    gp.Message("d", 27),
    gp.Message("e", 55),
    gp.Message("f", 30),
]


def late_source(*, batch: int) -> BoundedSource:
    return Portioned([tuple(message) for message in UNORDERED], out_of_order_ms=5, size=batch)


class Portioned(BoundedSource):
    def __init__(self, records: list[Any], *, size: int, out_of_order_ms: int = 0) -> None:
        super().__init__(records, out_of_order_ms=out_of_order_ms)
        self.size = size

    def open(self, partition: str, resume: Any | None) -> Bounded:
        reader = super().open(partition, resume)
        reader.batch_records = self.size
        return reader


@pytest.mark.parametrize("batch", [1, 2, 3, 6])
def test_late_records_of_a_source_are_a_stream(batch: int) -> None:
    """They go around what is done with the others, however many are read at a time."""
    app = StreamApp("late", parallelism=2)
    results: list[str] = []
    late: list[gp.Message] = []
    letters = app.read(late_source(batch=batch), late="side")
    letters.map(str.upper).write(gp.to_list(results))
    letters.late.write(gp.to_list(late, messages=True))

    simulation = Simulation(app).run()

    assert results == ["A", "B", "D", "E"]
    assert late == [gp.Message("c", 12), gp.Message("f", 30)]
    assert sum(clock.late_records for clock in simulation.clocks()) == 2


@pytest.mark.parametrize("batch", [1, 2, 3, 6])
@pytest.mark.parametrize(
    ("policy", "expected"),
    [("drop", {10: 1, 20: 1, 30: 1, 50: 1}), ("restamp", {10: 1, 20: 2, 30: 1, 50: 2})],
)
def test_late_records_never_come_to_a_window(
    policy: SourceLate, expected: dict[int, int], batch: int
) -> None:
    """They are gone, or have another time; so results do not depend on what is read when."""
    app = StreamApp("late")
    results: list[gp.WindowResult[None, int]] = []
    letters = app.read(late_source(batch=batch), late=policy)
    letters.window(gp.tumbling("10ms")).count().write(gp.to_list(results))

    Simulation(app).run()

    assert {window.start: window.value for window in results} == expected


def test_late_records_of_windows_are_a_stream() -> None:
    app = StreamApp("late")
    results: list[Any] = []
    late: list[gp.Message] = []
    counts = app.read(late_source(batch=1)).window(gp.tumbling("10ms"), late="side").count()
    counts.map(lambda result: (result.start, result.value)).write(gp.to_list(results))
    counts.late.write(gp.to_list(late, messages=True))

    Simulation(app).run()

    assert results == [(10, 1), (20, 1), (30, 1), (50, 1)]
    assert late == [gp.Message("c", 12), gp.Message("f", 30)]


@pytest.mark.parametrize("seed", range(6))
def test_late_records_are_the_same_after_crashes(seed: int) -> None:
    rng = Random(seed)
    records = [(at, 3 * at + rng.randrange(40)) for at in range(80)]
    expected, newest = set(), MIN_MS
    for value, time in records:
        if time < newest - 5:
            expected.add(value)
        newest = max(newest, time)
    app = StreamApp("late", parallelism=2)
    on_time: list[int] = []
    late: list[int] = []
    numbers = app.read(Portioned(records, out_of_order_ms=5, size=7), late="side")
    numbers.key_by(str).map_with_state(numbered, initial=0).map(lambda pair: int(pair[0])).write(
        gp.to_list(on_time)
    )
    numbers.late.write(gp.to_list(late))

    simulation = Simulation(
        app, seed=seed, delay_ms=3, read_records=1, cut_every_ms=3, crashes_after_epochs=2
    ).run()

    assert simulation.restored > 0
    assert set(late) == expected
    assert set(on_time) == {value for value, _ in records} - expected


@pytest.mark.parametrize("idle_after", [None, "100ms"])
def test_silent_partition_holds_nothing_back(idle_after: str | None) -> None:
    """After the time that was given; here one gives nothing at all."""
    app = StreamApp("silent")
    results: list[Any] = []
    often = [(at, at) for at in range(5000)]
    source = BoundedSource([], often, ends=False)
    numbers = app.read(source, idle_after=idle_after)
    numbers.window(gp.tumbling("10ms")).count().write(gp.to_list(results))

    Simulation(app).advance(2000)

    assert bool(results) == (idle_after is not None)


@pytest.mark.parametrize(("when_idle", "windows"), [("hold", [0, 10]), ("advance", [0, 10, 20])])
@pytest.mark.parametrize("crashes", [[], [150]])
def test_silent_input_closes_windows_if_it_is_to(
    when_idle: Any, windows: list[int], crashes: list[int]
) -> None:
    app = StreamApp("silent")
    results: list[Any] = []
    source = BoundedSource([(at, at) for at in range(25)], ends=False)
    numbers = app.read(source, idle_after="100ms", when_idle=when_idle)
    numbers.window(gp.tumbling("10ms")).count().write(gp.to_list(results))

    Simulation(app, cut_every_ms=20, crash_at_ms=crashes).advance(2000)

    assert sorted({result.start for result in results}) == windows


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda app: app.read(gp.collection([1]), late="ignore"), "late='ignore' is unknown"),
        (lambda app: app.read(gp.collection([1]), idle_after="soon"), "duration 'soon'"),
        (
            lambda app: app.read(gp.collection([1])).window(gp.tumbling("1ms"), late="keep"),
            "late='keep' is unknown",
        ),
        (
            lambda app: (
                app.read(gp.collection([1])).key_by(str).window(gp.tumbling("1ms"), late="")
            ),
            "late='' is unknown",
        ),
        (lambda app: app.read(gp.collection([1]), name="numbers").late, "'numbers' sets no late"),
        (
            lambda app: app.read(gp.collection([1]), late="side").map(str).late,
            r"'map\(str\)' sets no late records aside: ask for it by late=\"side\"",
        ),
        (
            lambda app: app.read(gp.collection([1])).key_by(str).map_with_state(numbered, ttl="x"),
            "duration 'x'",
        ),
    ],
)
def test_what_is_not_understood_is_told_where_it_is_written(
    ask: Callable[[StreamApp], Any], text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        ask(StreamApp("wrong"))


def test_streams_of_two_applications_do_not_merge() -> None:
    one = StreamApp("one").read(gp.collection([1]))
    other = StreamApp("other").read(gp.collection([2]))

    with pytest.raises(ConfigError, match="one is of 'one' and one of 'other'"):
        one.merge(other)


@pytest.mark.parametrize(
    ("build", "operator", "record"),
    [
        (lambda lines: lines.map(json.loads), "map(loads)", "'{'"),
        (lambda lines: lines.map(str).filter(lambda _: 1 / 0), "filter(lambda)", "'{'"),
        (lambda lines: lines.map(int, name="to number"), "to number", "'{'"),
        (lambda lines: lines.key_by(json.loads).count(), "count", "'{'"),
        (
            lambda lines: lines.key_by(json.loads).window(gp.tumbling("1s")).count(),
            "window_count",
            "'{'",
        ),
        (lambda lines: lines.key_by(json.loads, parallelism=2).count(), "key_by(loads)", "'{'"),
        (lambda lines: lines.key_by(len).window(gp.tumbling("1s")).sum(int), "window_sum", "'{'"),
    ],
    ids=["map", "filter", "named", "key", "window-key", "partition-key", "sum"],
)
def test_step_that_raises_is_named(
    build: Callable[[Stream[Any]], Stream[Any]], operator: str, record: str
) -> None:
    with pytest.raises(OperatorError) as raised:
        run(["{"], build)

    assert (raised.value.operator, raised.value.record) == (operator, record)
    assert raised.value.event_time_ms == 0
