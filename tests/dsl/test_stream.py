"""What the stream language computes, run in virtual time."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import gearpy as gp
from gearpy.dsl.stream import Stream, StreamApp
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.testing.simulation import Simulation

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
    """Return what a stream of the values comes to."""
    app = StreamApp("test", parallelism=parallelism)
    results: list[Any] = []
    source = gp.collection(values, partitions=partitions)
    build(app.read(source)).write(gp.memory(results))
    Simulation(app).run()
    return results


def test_rows_are_mapped_filtered_and_flattened() -> None:
    """In the order they are written."""
    results = run(
        ["a b", "c", ""],
        lambda lines: lines.flat_map(str.split).filter(lambda word: word != "b").map(str.upper),
    )

    assert results == ["A", "C"]


def test_event_time_stays_with_the_record() -> None:
    """Through rows, and to the end of the window through windows."""
    app, results = StreamApp("times"), []  # type: ignore[var-annotated]
    numbers = app.read(gp.collection(TIMED[:2])).flat_map(lambda n: [n, n])
    numbers.write(gp.memory(results, messages=True))

    Simulation(app).run()

    assert results == [gp.Message(0, 0), gp.Message(0, 0), gp.Message(1, 3), gp.Message(1, 3)]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_running_count_gives_every_step(parallelism: int) -> None:
    """The last of each key is the total."""
    results = run(
        WORDS, lambda words: words.key_by(str).count(), partitions=3, parallelism=parallelism
    )

    assert sorted(results) == sorted(
        [("to", 1), ("be", 1), ("or", 1), ("not", 1), ("to", 2), ("be", 2)]
    )
    assert dict(sorted(results)) == Counter(WORDS)


def test_running_reduce_and_sum() -> None:
    """The first record begins; `sum` adds what its function gives."""
    longest = run(["a", "bb", "b"], lambda words: words.key_by(lambda word: word[0]).reduce(max))
    lengths = run(["a", "bb", "b"], lambda words: words.key_by(lambda word: word[0]).sum(len))
    numbers = run([1, 2, 3], lambda values: values.key_by(lambda n: n % 2).sum())

    assert longest == [("a", "a"), ("b", "bb"), ("b", "bb")]
    assert lengths == [("a", 1), ("b", 2), ("b", 3)]
    assert numbers == [(1, 1), (0, 2), (1, 4)]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_windows_by_key(parallelism: int) -> None:
    """One result for each key and window, when it closes."""
    results = run(
        TIMED,
        lambda numbers: numbers.key_by(lambda n: n % 2).window(gp.tumbling(10)).sum(),
        partitions=2,
        parallelism=parallelism,
    )

    expected: defaultdict[tuple[int, int], int] = defaultdict(int)
    for number, time_ms in TIMED:
        expected[number % 2, time_ms // 10 * 10] += number
    assert sorted(results) == sorted(
        gp.WindowResult(key, total, start, start + 10) for (key, start), total in expected.items()
    )


def test_windows_over_all_records() -> None:
    """Their key is None, and they run in one task, whatever the parallelism."""
    results = run(
        TIMED,
        lambda numbers: numbers.window(gp.tumbling(20)).count(),
        partitions=3,
        parallelism=3,
    )

    assert results == [
        gp.WindowResult(None, 7, 0, 20),
        gp.WindowResult(None, 5, 20, 40),
    ]


def test_window_over_everything_closes_at_the_end() -> None:
    """Reduce makes one of all."""
    results = run(
        ["a", "b", "c"], lambda words: words.window(gp.global_window()).reduce(lambda a, b: a + b)
    )

    assert results == [gp.WindowResult(None, "abc", MIN_MS, MAX_MS)]


def test_windows_of_window_results() -> None:
    """A result has an event time and can be counted on."""
    results = run(
        TIMED,
        lambda numbers: (
            numbers.key_by(lambda n: n % 2)
            .window(gp.tumbling(10))
            .count()
            .key_by(lambda result: result.key)
            .window(gp.tumbling(20))
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


def test_merge_has_the_records_of_all() -> None:
    """Of one source on two ways, too: a diamond."""

    def build(numbers: Stream[Any]) -> Stream[Any]:
        even = numbers.filter(lambda n: n % 2 == 0)
        odd = numbers.filter(lambda n: n % 2).map(lambda n: -n)
        return even.merge(odd, numbers.map(lambda n: n * 100))

    results = run(range(5), build)

    assert sorted(results) == sorted([0, 2, 4, -1, -3, 0, 100, 200, 300, 400])


def test_stream_may_be_written_and_used() -> None:
    """Several sinks, at several places."""
    app = StreamApp("sinks")
    all_words: list[str] = []
    upper: list[str] = []
    words = app.read(gp.collection(WORDS))
    words.write(gp.memory(all_words))
    words.map(str.upper).write(gp.memory(upper))

    Simulation(app).run()

    assert all_words == WORDS
    assert upper == [word.upper() for word in WORDS]


class Numbered(gp.Task):
    """Sends what it gets with the index of its task and a number of its own."""

    count = 0

    def on_next(self, message: gp.Message) -> None:
        """Send it."""
        self.count += 1
        index = self.context.task_id.task_index
        self.context.output(message._replace(value=(index, self.count, message.value)))


def test_own_task_takes_part() -> None:
    """What it sends goes on downstream."""
    results = run("abc", lambda letters: letters.process(Numbered).map(lambda triple: triple[1:]))

    assert results == [(1, "a"), (2, "b"), (3, "c")]


def test_own_task_with_a_key_sees_all_records_of_it() -> None:
    """In one of its tasks."""
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


def test_streams_of_two_applications_do_not_merge() -> None:
    """Told at the line where it is written."""
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
        (
            lambda lines: lines.key_by(len).window(gp.tumbling("1s")).sum(int),
            "window_sum",
            "'{'",
        ),
    ],
    ids=["map", "filter", "named", "key", "window-key", "partition-key", "sum"],
)
def test_step_that_raises_is_named(
    build: Callable[[Stream[Any]], Stream[Any]], operator: str, record: str
) -> None:
    """With the record; steps are called as they are written."""
    with pytest.raises(OperatorError) as raised:
        run(["{"], build)

    assert (raised.value.operator, raised.value.record) == (operator, record)
    assert raised.value.event_time_ms == 0
