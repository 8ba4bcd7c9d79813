"""The stage that keeps something for each key."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Message
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.rejects import Midway
from gearpy.task.chain.chain import ChainTask
from gearpy.task.stages.stateful import KeyedStage, StateFunction
from gearpy.wire.values.payload import decode_value
from tests.task.build import Bench, some_limits
from tests.task.stage_build import mapped


def a_bench(
    function: Callable[[Any, Any], Any],
    *,
    flat: bool = False,
    initial: Any = None,
    ttl_ms: int | None = None,
    key: Callable[[Any], Any] = lambda word: word[0],
    **kwargs: Any,
) -> Bench:
    """Return a chain of one function that keeps something; the key is the first letter."""
    kept = StateFunction(function=function, is_flat=flat, initial=initial, ttl_ms=ttl_ms)

    def make(context: TaskContext) -> ChainTask:
        return ChainTask(context, lambda c: [mapped(lambda n: n), KeyedStage(c, "kept", key, kept)])

    return Bench(make, **kwargs).open()


def numbered(count: int, word: str) -> tuple[int, tuple[str, int]]:
    return count + 1, (word, count)


def test_each_key_has_its_own() -> None:
    """One record finds what the one before it has left; event times stay."""
    bench = a_bench(numbered, initial=0)

    bench.send(Message("a1", 1), Message("b1", 2), Message("a2", 3))
    bench.send(Message("a3", 4))
    bench.run()

    assert bench.target.messages == [
        Message(("a1", 0), 1),
        Message(("b1", 0), 2),
        Message(("a2", 1), 3),
        Message(("a3", 2), 4),
    ]


def test_none_forgets_the_key() -> None:
    def pairs(first: str | None, word: str) -> tuple[str | None, Any]:
        return (word, None) if first is None else (None, (first, word))

    bench = a_bench(pairs)

    bench.send("a1", "a2", "a3", "a4")
    bench.run()

    assert bench.target.values == [None, ("a1", "a2"), None, ("a3", "a4")]
    context = bench.runner.context
    assert list(context.state.scope(context.step_ids[-1]).keys("kept")) == []


def test_any_number_of_results() -> None:
    def fill(count: int, word: str) -> tuple[int, list[str]]:
        return count + 1, [word] * count

    bench = a_bench(fill, flat=True, initial=0)

    bench.send(Message("a1", 1), Message("a2", 2), Message("a3", 3))
    bench.run()

    assert bench.target.messages == [Message("a2", 2), Message("a3", 3), Message("a3", 3)]


def test_endless_result_is_pulled_as_far_as_there_is_room() -> None:
    def endless(_: None, word: str) -> tuple[int, Iterator[int]]:
        return 1, itertools.count()

    bench = a_bench(endless, flat=True, limits=some_limits(window=20))

    bench.send("a")
    bench.turn()

    assert bench.runner.is_blocked
    assert bench.runner.clock().records_out < 2000


def test_what_is_kept_is_forgotten_after_its_time() -> None:
    bench = a_bench(numbered, initial=0, ttl_ms=10)

    bench.send(Message("a1", 5), watermark_ms=5)
    bench.send(Message("a2", 12), watermark_ms=12)
    bench.send(Message("a3", 21), watermark_ms=21)
    bench.send(Message("b1", 21), watermark_ms=60)
    bench.send(Message("a4", 61), watermark_ms=61)
    bench.run()

    assert bench.target.values == [("a1", 0), ("a2", 1), ("a3", 2), ("b1", 0), ("a4", 0)]


def picky(count: int, word: str) -> tuple[int, tuple[str, int]]:
    if "!" in word:
        raise ValueError(word)
    return numbered(count, word)


def test_bad_record_changes_nothing() -> None:
    bench = a_bench(picky, initial=0, on_error="quarantine")

    bench.send(Message("a1", 1), Message("a!", 2), Message("a2", 3))
    bench.run()

    assert bench.target.messages == [Message(("a1", 0), 1), Message(("a2", 1), 3)]
    (record,) = bench.runner.rejected
    assert decode_value(record.value) == Midway(1, "a!")


def test_results_of_a_bad_record_are_taken_back() -> None:
    def half(count: int, word: str) -> tuple[int, Iterator[str]]:
        def results() -> Iterator[str]:
            yield f"{word}.{count}"
            if "!" in word:
                raise StopIteration  # noqa: PLR1708 - what a careless `next` raises

        return count + 1, results()

    bench = a_bench(half, flat=True, initial=0, on_error="skip")

    bench.send("a1", "a!", "a2")
    bench.run()

    assert bench.target.values == ["a1.0", "a2.1"]
    assert bench.runner.clock().skipped_records == 1


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda _, word: f"{word}xx", "as a pair, not 'a1xx'"),
        (lambda _, __: None, "as a pair, not None"),
        (lambda _, word: (object(), word), "of class object"),
    ],
    ids=["text", "nothing", "object"],
)
@pytest.mark.parametrize("flat", [False, True])
def test_wrong_answer_is_told(
    function: Callable[[Any, str], Any], text: str, *, flat: bool
) -> None:
    bench = a_bench(function, flat=flat)
    bench.send("a1")

    with pytest.raises(OperatorError, match=text):
        bench.turn()


def test_key_that_raises_is_the_users_error() -> None:
    """It is called for each record, too; one that is no key as well."""
    no_key = a_bench(numbered, initial=0, key=lambda word: word[9], on_error="skip")
    bad_key = a_bench(numbered, initial=0, key=lambda _: object(), on_error="skip")

    for bench in (no_key, bad_key):
        bench.send("a1")
        bench.run()
        assert bench.target.values == []
        assert bench.runner.clock().skipped_records == 1


def test_stage_needs_keyed_state() -> None:
    bench = a_bench(numbered)
    context = bench.runner.context
    context.keyed = None
    function = StateFunction(function=numbered, is_flat=False)

    with pytest.raises(ConfigError, match="no keyed state"):
        KeyedStage(context, "kept", str, function).restore(None)


@given(
    words=st.lists(st.sampled_from(["a1", "a!", "b1", "b!", "c1"]), max_size=30),
    ends=st.sets(st.integers(0, 30), max_size=3),
)
def test_counts_are_those_of_the_good_records(words: list[str], ends: set[int]) -> None:
    """Invariant: whatever is bad, and wherever it restarts."""
    bench, epoch = a_bench(picky, initial=0, on_error="skip"), 1
    values: list[Any] = []
    for at, word in enumerate(words):
        if at in ends:
            bench.send(epoch=epoch + 1)
            bench.run()
            values += bench.target.values
            resume = bench.snapshot(epoch)
            epoch += 1
            bench = a_bench(picky, initial=0, on_error="skip", epoch=epoch, resume=resume)
        bench.send(Message(word, MIN_MS + at), epoch=epoch)
    bench.run()
    values += bench.target.values

    seen: Counter[str] = Counter()
    expected = []
    for word in words:
        if "!" not in word:
            expected.append((word, seen[word[0]]))
            seen[word[0]] += 1
    assert values == expected
