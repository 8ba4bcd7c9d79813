"""Chains, sources and sinks: what they go on from, and without which records they go on."""

from typing import Any

import pytest

from gearpy.errors import OperatorError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch, InitialAckRequest
from gearpy.task.api.interfaces import Sink, SinkWriter
from gearpy.task.api.rejects import Midway
from gearpy.task.chain.fused import FusedStage, RowOperator
from gearpy.wire.values.payload import encode_value
from tests.task.build import TASK, UPSTREAM_SESSION, Bench
from tests.task.stage_build import NotedSink, Written, chained_sink, mapped


class Durable(Written):
    def restore(self, state: Any) -> None:
        self._call("restore", state)

    def snapshot(self) -> Any:
        self._call("snapshot", None)
        return len(self.calls)


class DurableSink(NotedSink):
    def open(self, task_index: int, parallelism: int) -> SinkWriter:
        return Durable(self.calls, self.fails)


def test_writer_makes_durable_what_an_epoch_has() -> None:
    sink = DurableSink()
    bench = Bench(chained_sink(sink), targets=()).open()
    bench.send(1)
    bench.send(2, epoch=2)
    bench.run()
    first = list(sink.calls)
    sink.calls.clear()

    again = Bench(chained_sink(sink), targets=(), epoch=2, resume=bench.snapshot(1)).open()
    again.send(2, epoch=2)
    again.run()

    assert first == [("restore", None), ("write", (1,)), ("snapshot", None), ("write", (2,))]
    assert sink.calls == [("restore", 3), ("write", (2,))]


@pytest.mark.parametrize("fails", ["restore", "snapshot"])
def test_writer_that_cannot_is_the_users_error(fails: str) -> None:
    bench = Bench(chained_sink(DurableSink(fails)), targets=())
    bench.runner.receive(InitialAckRequest(UPSTREAM_SESSION, bench.sources[0], TASK))
    bench.send(epoch=2)

    def run() -> None:
        bench.runner.open(MIN_MS)
        bench.turn()

    with pytest.raises(OperatorError, match=f"OSError: cannot {fails}") as raised:
        run()

    assert raised.value.operator == "out"


class Refusing(SinkWriter):
    """Takes no negative numbers; the first words of its errors say why."""

    def __init__(self, taken: list[Any], *, atomic: bool, error: type[Exception]) -> None:
        self.taken = taken
        self.atomic = atomic  # type: ignore[misc] # of this object alone
        self.error = error

    def write_batch(self, batch: Batch) -> None:
        bad = [value for value in batch.values if value < 0]
        if bad and self.error is OperatorError:
            raise OperatorError(operator="refusing", cause="negative", record=repr(bad[0]))
        if bad:
            raise self.error("negative")
        self.taken += batch.values


class RefusingSink(Sink):
    def __init__(self, *, atomic: bool = False, error: type[Exception] = ValueError) -> None:
        self.taken: list[Any] = []
        self.atomic = atomic
        self.error = error

    def open(self, task_index: int, parallelism: int) -> SinkWriter:
        return Refusing(self.taken, atomic=self.atomic, error=self.error)


def test_record_given_again_goes_on_at_its_place() -> None:
    sink = RefusingSink()
    chain = chained_sink(sink, mapped(lambda n: n - 10))
    bench = Bench(chain, targets=()).open()

    bench.runner.inject(encode_value(Midway(1, 7)), 20)
    bench.run()

    assert sink.taken == [7]


def test_larger_batch_that_a_writer_refuses_is_a_failure() -> None:
    twice = FusedStage([RowOperator("flat_map", "twice", lambda n: [n, -n])], limit=4)
    bench = Bench(chained_sink(RefusingSink(), twice), targets=(), on_error="skip").open()
    bench.send(1)

    with pytest.raises(OperatorError, match="ValueError: negative"):
        bench.turn()


def test_writer_that_takes_all_or_nothing_is_given_one_by_one() -> None:
    """If it can name a record; else something else is wrong, such as a full disk."""
    sink = RefusingSink(atomic=True, error=OperatorError)
    bench = Bench(chained_sink(sink), targets=(), on_error="skip").open()
    broken = RefusingSink(atomic=True, error=OSError)
    other = Bench(chained_sink(broken), targets=(), on_error="skip").open()

    bench.send(1, -2, 3)
    bench.run()
    other.send(1, -2, 3)

    assert sink.taken == [1, 3]
    assert bench.runner.clock().skipped_records == 1
    with pytest.raises(OperatorError, match="OSError: negative"):
        other.turn()
