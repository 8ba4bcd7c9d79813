"""Tasks, sources and sinks of one's own, and what they are given."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, assert_type

import gearpy as gp
from gearpy.testing import TaskDriver


class Row(NamedTuple):
    user: str
    n: int


class Name(gp.Task[Row, str]):
    def on_next(self, message: gp.Message[Row]) -> Iterable[gp.Message[str]]:
        assert_type(message.value, Row)
        self.context.output_to("numbers", gp.Message(message.value.n, message.timestamp))
        self.context.output(gp.Message(message.value.user, message.timestamp))
        self.context.output(gp.Message(message.value.n))  # expect: str | Side
        yield gp.Message(message.value.nope)  # expect: "nope"


class Numbered(gp.Task[Row, int]):
    def __init__(self, context: gp.TaskContext[int]) -> None:
        super().__init__(context)
        self.count = context.state.value("count", default=0)

    def on_next(self, message: gp.Message[Row]) -> Iterator[gp.Message[int]]:
        self.count.set(self.count.get() + 1)
        self.count.set(message.value.user)  # expect: "set"
        yield gp.Message(self.count.get(), message.timestamp)


class Plain(gp.Task):
    """Does not say what it takes and gives."""

    def on_next(self, message: gp.Message) -> Iterator[gp.Message]:
        yield message


class Wrong(gp.Task[Row, str]):
    """Does not do what it says."""

    def on_next(self, message: gp.Message[int]) -> Iterable[gp.Message[str]]:  # expect: "on_next"
        return []


class Reader(gp.SourceReader[Row]):
    def read_batch(self, max_records: int) -> gp.Batch[Row] | None:
        return gp.Batch.of(gp.Message(Row("a", 1), 5))

    def snapshot(self) -> Any:
        return None


class Rows(gp.Source[Row]):
    def partitions(self) -> Sequence[str]:
        return ["one"]

    def open(self, partition: str, resume: Any | None) -> gp.SourceReader[Row]:
        return Reader()


class Writer(gp.SinkWriter[Row]):
    def write_batch(self, batch: gp.Batch[Row]) -> None:
        print([row.user for row in batch.values])
        print([row.nope for row in batch.values])  # expect: "nope"


class Printer(gp.Sink[Row]):
    def open(self, task_index: int, parallelism: int) -> gp.SinkWriter[Row]:
        return Writer()


app = gp.StreamApp("typed")
rows = app.read(Rows())
numbers = app.read(gp.collection([1, 2]))

assert_type(rows, gp.Stream[Row])
assert_type(rows.process(Name), gp.Stream[str])
assert_type(rows.key_by("user").process(Name), gp.Stream[str])
assert_type(rows.process(lambda context: Name(context)), gp.Stream[str])
assert_type(rows.key_by("user").process(Numbered), gp.Stream[int])
assert_type(rows.process(Plain), gp.Stream[Any])
assert_type(rows.process(Name).side("numbers"), gp.Stream[Any])
rows.process(Name).map(lambda name: name.nope)  # expect: "nope"
numbers.process(Name)  # expect: "process"

driver = TaskDriver(Numbered)
assert_type(driver.task, Numbered)
driver.task.nope()  # expect: "nope"

# A message is of what its value is, and none of less.
assert_type(gp.Message(1, 5), gp.Message[int])
assert_type(gp.Message(1, 5).value, int)
anything: gp.Message[object] = gp.Message("a", 5)
fewer: gp.Message[int] = anything  # expect: "Message[object]"

# A sink takes what it says, or less.
names: list[str] = []
counts: list[tuple[str, int]] = []
times: list[gp.Message[int]] = []
whatever: list[object] = []
rows.write(Printer())
rows.write(gp.console())
rows.write(gp.parquet_folder("rows"))
rows.write(gp.to_list(whatever))
rows.map(lambda row: row.user).write(gp.to_list(names))
rows.key_by(lambda row: row.user).count().write(gp.to_list(counts))
numbers.write(gp.to_list(times, messages=True))
numbers.write(Printer())  # expect: "Sink[int]"
numbers.write(gp.to_list(names))  # expect: [str]"
numbers.write(print)  # expect: "Sink[int]"
