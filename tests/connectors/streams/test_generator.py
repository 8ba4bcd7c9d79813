"""Records made by a function, and their pace."""

import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.connectors.streams.generator import GeneratorSource, Pace, generate
from gearpy.errors import ConfigError, OperatorError
from tests.connectors.reading import rest_of
from tests.eventually import eventually


def a_source(
    make: Callable[..., Iterable[Any]],
    *,
    rate: float | None = None,
    timestamp: Callable[[Any], int] | None = None,
    limit: int | None = None,
    parts: int = 1,
    now_ms: Callable[[], int] = lambda: 0,
) -> GeneratorSource:
    return GeneratorSource(
        make, rate=rate, timestamp=timestamp, limit=limit, parts=parts, bound_ms=0, now_ms=now_ms
    )


def test_the_limit_is_shared_by_the_partitions() -> None:
    source = a_source(count, limit=5, parts=3)

    shares = [len(rest_of(source.open(name, None))) for name in source.partitions()]

    assert source.bounded
    assert shares == [2, 2, 1]


def test_a_function_or_an_iterator_that_raises_is_blamed() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    with pytest.raises(OperatorError, match="TypeError"):
        a_source(lambda: 5).open("00000", None)  # type: ignore[arg-type, return-value]
    with pytest.raises(OperatorError, match="ValueError: no more"):
        a_source(broken).open("00000", None).read_batch(5)


def test_closing_ends_the_generator() -> None:
    ended = []

    def numbers() -> Iterator[int]:
        try:
            yield from count()
        finally:
            ended.append(True)

    reader = a_source(numbers).open("00000", None)
    reader.read_batch(2)

    reader.close()

    assert ended == [True]


def test_a_rate_is_kept() -> None:
    """The partitions share it; a turn without records is no end."""
    clock = [0]
    source = a_source(count, rate=20, parts=2, timestamp=lambda n: n, now_ms=lambda: clock[0])
    reader = source.open("00000", None)

    def read_at(now_ms: int) -> int:
        clock[0] = now_ms
        return len(reader.read_batch(10) or ())

    counts = [read_at(now_ms) for now_ms in (0, 50, 100, 400, 401)]

    assert counts == [1, 0, 1, 3, 0]
    assert not reader.finished


def test_a_reader_says_when_its_rate_allows_the_next_record() -> None:
    clock = [0]
    reader = a_source(count, rate=3, timestamp=lambda n: n, now_ms=lambda: clock[0]).open("0", None)

    for _ in range(20):
        assert len(reader.read_batch(10) or ()) == 1
        clock[0] += reader.pause_ms - 1
        assert reader.read_batch(10) is None
        clock[0] += 1


@pytest.mark.parametrize(
    ("takes_ms", "counts"),
    [(0, [100, 100]), (1, [5, 5]), (50, [1, 1])],
    ids=["at once: full batches", "1 ms each: what came in 5 ms", "50 ms each: one by one"],
)
def test_a_program_that_is_slow_to_give_records_is_not_waited_for(
    takes_ms: int, counts: list[int]
) -> None:
    now_ms = 0

    def numbers() -> Iterator[int]:
        nonlocal now_ms
        for number in range(200):
            now_ms += takes_ms
            yield number

    reader = a_source(numbers, now_ms=lambda: now_ms).open("00000", None)
    batches = [reader.read_batch(100) for _ in counts]

    assert [len(batch or ()) for batch in batches] == counts
    read = [message.value for batch in batches if batch for message in batch.messages()]
    assert read + [message.value for message in rest_of(reader)] == [*range(200)]


def test_a_program_that_has_waited_gives_records_one_by_one_for_a_while() -> None:
    now_ms, asked = 0, 0

    def bursts() -> Iterator[int]:
        nonlocal now_ms, asked
        for number in count():
            asked = number
            now_ms += 0 if number % 3 or number > 100 else 1_000
            yield number

    reader = a_source(bursts, now_ms=lambda: now_ms).open("00000", None)
    read = list[int]()
    while len(read) < 100:
        batch = reader.read_batch(100)
        read += [message.value for message in batch.messages()] if batch else []
        assert asked == read[-1], "none waits in the reader"
    later = [len(reader.read_batch(100) or ()) for _ in range(300)]

    assert read == [*range(100)]
    assert (later[0], later[-1]) == (1, 100)


def test_records_that_were_late_to_come_do_not_count_for_the_rate() -> None:
    now_ms = 0

    def numbers() -> Iterator[int]:
        nonlocal now_ms
        yield 0
        now_ms += 10
        yield from range(1, 100)

    reader = a_source(numbers, rate=1000, now_ms=lambda: now_ms).open("00000", None)
    reader.read_batch(10)
    now_ms = 20
    first, second = reader.read_batch(50), reader.read_batch(50)

    assert [len(first or ()), len(second or ())] == [1, 29]


def test_lost_time_is_made_up_for_a_second_of_it() -> None:
    pace = Pace(100)
    pace.take(0, 10)

    taken = [pace.take(3_600_000, 1000) for _ in range(5)]

    assert taken == [32, 32, 32, 4, 0], "in portions: the program may wait in one"
    assert pace.take(3_600_010, 1000) == 1


def test_a_clock_that_is_set_back_does_not_stop_the_pace() -> None:
    pace = Pace(10)
    pace.take(3_600_000, 10)

    taken = [pace.take(now_ms, 10) for now_ms in (0, 99, 100, 200)]

    assert taken == [0, 0, 1, 1]


@given(
    rate=st.floats(0.1, 5000),
    steps=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 4000)), max_size=40),
)
def test_a_pace_is_never_exceeded(rate: float, steps: list[tuple[int, int]]) -> None:
    """Property: in any span of time no more records go than the invariant allows."""
    pace = Pace(rate)
    now_ms, taken = 0, []

    for wait_ms, at_most in steps:
        now_ms += wait_ms
        taken.append((now_ms, pace.take(now_ms, at_most)))

    for first, (since_ms, _) in enumerate(taken):
        for last in range(first, len(taken)):
            span_s = (taken[last][0] - since_ms) / 1000
            assert sum(n for _, n in taken[first : last + 1]) <= rate * (span_s + 1) + 2


def test_wrong_arguments_are_all_reported_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        generate([1], rate=0, limit=-1, partitions=0)  # type: ignore[call-overload]

    assert len(refused.value.mistakes) == 4
    assert "use collection()" in refused.value.mistakes[0]


def test_a_message_that_a_generator_gives_is_refused() -> None:
    """It would be a value within a record, in silence."""
    app = gp.StreamApp("messages")
    app.read(gp.generate(lambda: [1, gp.Message(2, 5)], limit=2)).write(gp.to_list([]))

    with pytest.raises(gp.OperatorError, match="give values, and their event times with timestamp"):
        gp.run(app)


def test_a_program_that_waits_holds_up_no_other_step() -> None:
    """A record passes several exchanges, and another source is read, while it waits."""
    goes_on, results = threading.Event(), list[str]()

    def feed() -> Iterator[str]:
        yield "fed"
        goes_on.wait(60)

    class Passed(gp.Task[str, str]):
        def on_next(self, message: gp.Message[str]) -> None:
            self.context.output(message)

    app = gp.StreamApp("waiting", parallelism=2)
    stream = app.read(gp.generate(feed)).merge(app.read(gp.generate(lambda: ["other"])))
    for _ in range(3):
        stream = stream.key_by(str).process(Passed)
    stream.write(gp.to_list(results))
    with gp.start(app):
        eventually(lambda: len(results) == 2)
        goes_on.set()

    assert sorted(results) == ["fed", "other"]
