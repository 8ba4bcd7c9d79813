"""The kit that users test their programs with."""

import doctest
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import gearpy as gp
import gearpy.testing
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS, TaskId
from gearpy.testing import FlowDriver, ManualSource, TaskDriver, driver


class Recorder(gp.Task):
    def on_start(self, start_time_ms: int) -> None:
        self.calls: list[Any] = []

    def on_next(self, message: gp.Message) -> None:
        self.calls.append(message)
        if message.value == "schedule":
            self.context.schedule(100, "alarm")
        if message.value == "whisper":
            self.context.send_unmanaged(TaskId(2, 0), "psst")

    def on_watermark(self, watermark_ms: int) -> None:
        self.calls.append(watermark_ms)

    def on_timer(self, payload: object) -> None:
        self.context.output(gp.Message(payload, self.context.now_ms()))

    def on_stop(self, *, completed: bool) -> None:
        self.calls.append(("stop", completed))


def calls_of(task_driver: TaskDriver) -> list[Any]:
    assert isinstance(task_driver.task, Recorder)
    return task_driver.task.calls


def test_examples_run() -> None:
    result = doctest.testmod(driver)

    assert (result.failed, result.attempted > 15) == (0, True)


def test_kit_is_loaded_when_it_is_used() -> None:
    assert dir(gearpy.testing) == [
        "EpochFaults",
        "FlowDriver",
        "ManualSource",
        "MemoryTransactions",
        "Simulation",
        "TaskDriver",
        "check_sink",
        "check_source",
    ]
    assert gearpy.testing.TaskDriver is TaskDriver
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        gearpy.testing.Nothing  # noqa: B018


# -- one task --------------------------------------------------------------------------------


def test_task_gets_messages_and_watermarks() -> None:
    task = TaskDriver(Recorder)

    task.send("a", 5)
    task.send("b", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    task.watermark(2000)
    task.end()
    task.stop()

    assert calls_of(task) == [
        gp.Message("a", 5),
        gp.Message("b", 1000),
        2000,
        MAX_MS,
        ("stop", True),
    ]


def test_stop_tells_how_it_came_about() -> None:
    task = TaskDriver(Recorder)

    task.stop(completed=False)

    assert calls_of(task) == [("stop", False)]


def test_timers_fire_when_their_time_has_come() -> None:
    """Virtual time: nobody waits, and sending takes none."""
    task = TaskDriver(Recorder)
    task.send("schedule")
    task.send("a")

    task.advance("99ms")
    before = task.take()
    task.advance("1ms")

    assert before == []
    assert task.take() == [gp.Message("alarm", 100)]
    assert task.outputs == []


def test_task_sees_the_context_that_was_asked_for() -> None:
    class Where(gp.Task):
        def on_next(self, message: gp.Message) -> None:
            context = self.context
            place = (context.task_id.task_index, context.parallelism, context.config["rate"])
            context.output(gp.Message(place))

    task = TaskDriver(Where, parallelism=3, task_index=2, config={"rate": 5})
    task.send("a")

    assert [message.value for message in task.take()] == [(2, 3, 5)]


def test_values_outside_of_flow_control_are_kept_apart() -> None:
    task = TaskDriver(Recorder)

    task.send("whisper")

    assert task.unmanaged == [(TaskId(2, 0), "psst")]
    assert task.outputs == []


def test_large_output_passes_the_window() -> None:
    class Many(gp.Task):
        def on_next(self, message: gp.Message) -> Iterator[gp.Message]:
            return (gp.Message(n) for n in range(5000))

    task = TaskDriver(Many)
    task.send_all(gp.Message("a"), gp.Message("b"))
    task.watermark(7)

    assert [message.value for message in task.outputs] == [*range(5000), *range(5000)]
    assert (task.clock.records_in, task.clock.records_out) == (2, 10_000)
    assert task.clock.watermark_ms == 7


@pytest.mark.slow
def test_endless_output_is_an_error_not_a_hang() -> None:
    class Endless(gp.Task):
        def on_next(self, message: gp.Message) -> Iterator[gp.Message]:
            return (gp.Message(n) for n in itertools.count())

    with pytest.raises(GearpyError, match="sends without an end"):
        TaskDriver(Endless).send("a")


def test_task_that_raises_is_shown_as_in_an_application() -> None:
    class Divide(gp.Task):
        def on_next(self, message: gp.Message) -> None:
            self.context.output(gp.Message(1 // message.value))

    task = TaskDriver(Divide)

    with pytest.raises(OperatorError, match="operator 'Divide': ZeroDivisionError") as raised:
        task.send(0)

    assert raised.value.record == "0"


class Counting(gp.Task):
    """Produces a number at a time, every 10 ms or without a pause."""

    sent = 0

    def produce(self) -> int:
        self.sent += 1
        self.context.output(gp.Message(self.sent))
        return int(self.context.config["pause_ms"])


def test_source_task_produces_as_time_passes() -> None:
    task = TaskDriver(Counting, is_source=True, config={"pause_ms": 10})
    before = task.take()

    task.advance("35ms")

    assert before == []
    assert [message.value for message in task.take()] == [1, 2, 3, 4]


def test_source_task_without_a_pause_comes_to_a_rest() -> None:
    task = TaskDriver(Counting, is_source=True, config={"pause_ms": 0})

    task.advance("5ms")

    assert 5 < len(task.take()) < 1000
    assert task.now_ms < 20


def test_source_task_takes_nothing() -> None:
    task = TaskDriver(Counting, is_source=True)

    with pytest.raises(ConfigError, match=r"let it produce by advance\(\)"):
        task.send("a")


# -- one application -------------------------------------------------------------------------


def two_sources() -> tuple[FlowDriver, ManualSource, ManualSource, list[Any]]:
    app = gp.StreamApp("app")
    left, right = ManualSource("left"), ManualSource("right")
    results: list[Any] = []
    app.read(left).merge(app.read(right)).key_by(str).window(gp.tumbling("10ms")).count().write(
        gp.to_list(results)
    )
    return FlowDriver(app), left, right, results


def test_window_closes_when_both_sources_have_passed_it() -> None:
    flow, left, right, results = two_sources()
    flow.send(left, "a", 1)
    flow.send(right, "a", 2)

    flow.watermark(left, 10)
    early = list(results)
    flow.watermark(right, 15)

    assert early == []
    assert results == [gp.WindowResult("a", 2, 0, 10)]


def test_idle_source_holds_no_window() -> None:
    flow, left, right, results = two_sources()
    flow.send(left, "a", 1)

    flow.idle(right)
    flow.watermark(left, 10)
    flow.send(right, "b", 12)
    flow.watermark(left, 20)

    assert results == [gp.WindowResult("a", 1, 0, 10)]


def test_late_records_are_counted() -> None:
    flow, left, right, results = two_sources()
    for source in (left, right):
        flow.watermark(source, 10)

    flow.send(left, "late", 9)
    flow.send(left, "in time", 10)
    for source in (left, right):
        flow.watermark(source, 11)

    assert flow.late_records == 1
    assert results == []


def test_application_ends_with_its_sources() -> None:
    flow, left, right, results = two_sources()
    flow.send_all(left, gp.Message("a", 1), gp.Message("b", 2))

    flow.end(left)
    one = flow.is_finished
    flow.end(right)
    flow.stop()

    assert (one, flow.is_finished) == (False, True)
    assert [(result.key, result.value) for result in results] == [("a", 1), ("b", 1)]


def test_timers_of_an_application_fire_in_virtual_time() -> None:
    app, source, results = gp.StreamApp("timers"), ManualSource(), []  # type: ignore[var-annotated]
    app.read(source).process(Recorder).map(lambda payload: payload).write(gp.to_list(results))
    flow = FlowDriver(app)
    flow.send(source, "schedule")
    before = list(results)

    flow.advance("1h")

    assert (before, results) == ([], ["alarm"])


def test_source_that_never_rests_does_not_hang_the_driver() -> None:
    app, source, results = gp.StreamApp("busy"), ManualSource(), []  # type: ignore[var-annotated]
    app.read(source).write(gp.to_list(results))
    graph = gp.Graph()
    for processor in app.build().processors.values():
        graph.add(processor)
    graph.add(gp.Processor(Counting, config={"pause_ms": 0}))

    flow = FlowDriver(gp.StreamApplication("busy", graph))
    flow.send(source, "a")

    assert results == ["a"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_large_answer_is_complete_when_the_call_returns(seed: int) -> None:
    app, source, results = gp.StreamApp("large"), ManualSource(), []  # type: ignore[var-annotated]
    app.read(source).flat_map(range).key_by(lambda n: n % 3).count().write(gp.to_list(results))
    flow = FlowDriver(app, seed=seed)

    flow.send(source, 5000)

    assert len(results) == 5000


def test_user_code_that_raises_is_told_by_the_call() -> None:
    app, source = gp.StreamApp("raising"), ManualSource()
    app.read(source).map(int, name="to number")
    flow = FlowDriver(app)

    with pytest.raises(OperatorError, match="operator 'to number': ValueError"):
        flow.send(source, "x", timestamp=MIN_MS + 1)


def test_wrong_source_is_told() -> None:
    flow, left, right, _ = two_sources()
    other, other_source, _, _ = two_sources()
    flow.end(right)

    with pytest.raises(ConfigError, match="'new' is not read by the application"):
        flow.send(ManualSource("new"), 1)
    with pytest.raises(ConfigError, match="'left' is no source of the driver's application"):
        flow.send(other_source, 1)
    with pytest.raises(ConfigError, match="source 'right' has ended"):
        flow.send(right, 1)
    assert not other.is_finished
    flow.send(left, 1)


class Total(gp.Task):
    def on_start(self, start_time_ms: int) -> None:
        self.total: int = self.context.resume or 0

    def on_next(self, message: gp.Message) -> None:
        self.total += message.value
        self.context.output(gp.Message(self.total, message.timestamp))

    def snapshot(self) -> int:
        return self.total


def test_task_can_be_restarted_from_where_it_was() -> None:
    driver = TaskDriver(Total)
    driver.send(1)
    driver.send(2)
    snapshot = driver.cut()
    driver.send(100)

    again = TaskDriver(Total, resume=snapshot)
    again.send(3)

    assert [message.value for message in driver.take()] == [1, 3, 103]
    assert [message.value for message in again.take()] == [6]
    assert again.clock.records_in == 3


def test_source_can_be_restarted_from_where_it_was() -> None:
    class Counting(Total):
        def produce(self) -> int:
            self.total += 1
            self.context.output(gp.Message(self.total))
            return 10

    driver = TaskDriver(Counting, is_source=True)
    driver.advance("15ms")
    snapshot = driver.cut()

    again = TaskDriver(Counting, is_source=True, resume=snapshot)
    again.advance("0s")

    sent = [message.value for message in driver.take()]
    assert [message.value for message in again.take()] == [sent[-1] + 1]
