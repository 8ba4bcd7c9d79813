"""The stage that lets the first record of each key pass."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import OperatorError
from gearpy.messages.data import Message
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.chain import ChainTask
from gearpy.task.stages.stateful import DistinctStage
from tests.task.build import Bench
from tests.task.stage_build import mapped


def first(word: str) -> str:
    return word[0]


def a_bench(
    *, key: Callable[[Any], Any] = first, within_ms: int | None = None, **kwargs: Any
) -> Bench:
    """Return a chain with the stage; the key is the first letter."""

    def make(context: TaskContext) -> ChainTask:
        return ChainTask(
            context, lambda c: [mapped(lambda n: n), DistinctStage(c, "distinct", key, within_ms)]
        )

    return Bench(make, **kwargs).open()


def test_the_first_record_of_each_key_passes() -> None:
    bench = a_bench()

    bench.send(Message("a1", 5), Message("b1", 1), Message("a2", 900), watermark_ms=900)
    bench.send(Message("a3", 10**9), watermark_ms=10**9)
    bench.run()

    assert bench.target.messages == [Message("a1", 5), Message("b1", 1)]


def test_a_key_passes_again_after_its_time() -> None:
    bench = a_bench(within_ms=10)

    bench.send(*(Message(f"a{time}", time) for time in (0, 9, 10, 15, 19, 20)))
    bench.run()

    assert bench.target.values == ["a0", "a10", "a20"]


def test_what_is_kept_is_freed_when_its_time_is_over() -> None:
    """Else a stream of ever new keys would fill the memory."""
    bench = a_bench(within_ms=10)

    bench.send(Message("a0", 0), watermark_ms=0)
    bench.send(Message("b50", 50), watermark_ms=50)
    bench.send(Message("a5", 5), watermark_ms=50)  # Late: it would be dropped, were a0 known.
    bench.run()

    assert bench.target.values == ["a0", "b50", "a5"]


def test_a_late_record_does_not_have_its_key_forgotten_early() -> None:
    bench = a_bench(within_ms=10)

    bench.send(Message("a100", 100), watermark_ms=100)
    bench.send(Message("a50", 50), watermark_ms=100)
    bench.send(Message("a105", 105), watermark_ms=105)
    bench.run()

    assert bench.target.values == ["a100", "a50"]


def test_it_is_known_after_a_restart() -> None:
    bench = a_bench()
    bench.send("a1")
    bench.send("b1", epoch=2)
    bench.run()

    again = a_bench(epoch=2, resume=bench.snapshot(1))
    again.send("a2", "b1", epoch=2)
    again.run()

    assert again.target.values == ["b1"]


def test_a_bad_key_is_the_users_error() -> None:
    bench = a_bench()
    bench.send(Message("", 7))

    with pytest.raises(OperatorError, match="IndexError") as raised:
        bench.turn()

    assert (raised.value.operator, raised.value.record) == ("distinct", "''")


def test_it_goes_on_without_a_bad_record() -> None:
    bench = a_bench(on_error="skip")

    bench.send("a1", "", "b1", "a2")
    bench.run()

    assert bench.target.values == ["a1", "b1"]
    assert bench.runner.clock().skipped_records == 1


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), max_size=20), st.integers(1, 20)
)
def test_those_that_pass_are_apart(events: list[tuple[str, int]], within_ms: int) -> None:
    bench = a_bench(within_ms=within_ms)
    records = [Message(f"{key}{at}", time) for at, (key, time) in enumerate(events)]
    expected: list[Message] = []
    newest: dict[str, int] = {}
    for record in records:
        key = record.value[0]
        if key not in newest or abs(record.timestamp - newest[key]) >= within_ms:
            expected.append(record)
            newest[key] = max(record.timestamp, newest.get(key, 0))

    if records:
        bench.send(*records)
    bench.run()

    assert bench.target.messages == expected
