"""The end of a chain that writes in two phases."""

from collections.abc import Mapping
from typing import Any

import pytest

from gearpy.errors import OperatorError
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Sink, TransactionalWriter
from gearpy.task.chain.chain import ChainTask
from gearpy.task.stages.sink import SinkStage
from tests.task.build import Bench


class Ledger(Sink, TransactionalWriter):
    """Keeps what was prepared and what was shown; its own writer."""

    transactional = True

    def __init__(self) -> None:
        self.open_records: list[Any] = []
        self.calls: list[tuple[Any, ...]] = []
        self.incarnations: list[int] = []
        self.shown: list[Any] = []

    def open(self, task_index: int, parallelism: int) -> "Ledger":
        return self

    def recover(
        self, prepared: Mapping[int, Any], *, epoch: int, run: str, incarnation: int
    ) -> None:
        self.incarnations.append(incarnation)
        self.calls.append(("recover", dict(prepared), epoch, run))
        for each in prepared.values():
            self.shown += each
        self.open_records = []

    def write_batch(self, batch: Batch) -> None:
        self.open_records += batch.values

    def prepare(self, epoch: int) -> list[Any] | None:
        records, self.open_records = self.open_records, []
        self.calls.append(("prepare", epoch))
        return records or None

    def commit(self, epoch: int, prepared: Any) -> None:
        self.calls.append(("commit", epoch))
        self.shown += prepared

    def close(self, *, completed: bool) -> None:
        self.calls.append(("close", completed))


def a_bench(sink: Ledger, **kwargs: Any) -> Bench:
    def make(context: Any) -> ChainTask:
        return ChainTask(context, lambda of: [SinkStage(of, sink, "ledger")])

    return Bench(make, targets=(), **kwargs).open()


def test_records_are_shown_when_their_epoch_is_complete() -> None:
    sink = Ledger()
    bench = a_bench(sink)

    bench.send("a", "b")
    bench.send("c", epoch=2)
    bench.run()
    before = list(sink.shown)
    bench.runner.commit(1)
    bench.run()
    bench.runner.commit(1)
    bench.run()

    assert before == []
    assert sink.shown == ["a", "b"]
    assert sink.calls == [("recover", {}, 0, ""), ("prepare", 1), ("commit", 1)]
    assert bench.runner.committed == [1, 1]


def test_later_epoch_shows_those_before_it_in_their_order() -> None:
    sink = Ledger()
    bench = a_bench(sink)
    bench.send("a")
    bench.send("b", epoch=2)
    bench.send(epoch=3)
    bench.send("c", epoch=4)
    bench.run()

    bench.runner.commit(3)
    bench.run()

    assert sink.shown == ["a", "b"]
    assert [call for call in sink.calls if call[0] == "commit"] == [("commit", 1), ("commit", 2)]


def test_restart_finishes_what_was_prepared() -> None:
    """Whether or not it was told to commit; what came later was never prepared for it."""
    sink, again = Ledger(), Ledger()
    bench = a_bench(sink)
    bench.send("a")
    bench.send("b", epoch=2)
    bench.run()

    other = a_bench(again, epoch=2, resume=bench.snapshot(1))
    other.send("b", epoch=2)
    other.send(epoch=3)
    other.run()
    other.runner.commit(2)
    other.run()

    assert again.calls[0] == ("recover", {1: ["a"]}, 1, "")
    assert again.shown == ["a", "b"]
    assert again.incarnations == [other.runner.info.session]


def test_commit_that_fails_is_a_failure_of_the_operator() -> None:
    class Broken(Ledger):
        def commit(self, epoch: int, prepared: Any) -> None:
            raise OSError("no space left")

    bench = a_bench(Broken())
    bench.send("a")
    bench.send(epoch=2)
    bench.run()
    bench.runner.commit(1)

    with pytest.raises(OperatorError, match="no space left") as caught:
        bench.run()
    assert caught.value.operator == "ledger"
