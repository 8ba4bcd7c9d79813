"""Promises of Gearpump's `PersistentTask`: its class comment, and flaws that were found in it.

There the task reads its store and reports checkpoint times; here the epochs of the runtime do.
"""

from gearpy.core.gearpump.monoid_state import NonWindowState
from gearpy.core.gearpump.monoids import SumGroup
from gearpy.ids import MAX_MS
from gearpy.messages.data import Message
from gearpy.task.api.persistent import PersistentTask, ValueSerializer
from gearpy.testing import TaskDriver


class Count(PersistentTask[NonWindowState[int]]):
    """Counts messages. Gearpump: `CountProcessor` of the example `state`."""

    def persistent_state(self) -> NonWindowState[int]:
        """Return a sum."""
        return NonWindowState(SumGroup(), ValueSerializer())

    def process_message(self, state: NonWindowState[int], message: Message) -> None:
        """Count it, and send it on."""
        state.update(message.timestamp, 1)
        self.context.output(message)


def test_state_is_recovered_when_the_task_starts() -> None:
    """`PersistentTask.onStart`: before the first message."""
    driver = TaskDriver(Count)
    driver.send_all(Message("a", 1), Message("b", 2))

    restarted = TaskDriver(Count, resume=driver.cut()).task

    assert isinstance(restarted, Count)
    assert restarted.state.value == 2


def test_messages_are_processed_with_the_state() -> None:
    """`PersistentTask.onNext`."""
    driver = TaskDriver(Count)

    driver.send("a")

    assert isinstance(driver.task, Count)
    assert driver.task.state.value == 1
    assert driver.take() == [Message("a", 0)]


def test_messages_behind_a_checkpoint_are_in_the_next_one() -> None:
    """`PersistentTask.onWatermarkProgress`: left is stored, right becomes part of left."""
    driver = TaskDriver(Count)
    driver.send("a")
    driver.cut()
    driver.send("b")

    restarted = TaskDriver(Count, resume=driver.cut()).task

    assert isinstance(restarted, Count)
    assert restarted.state.value == 2


def test_watermark_goes_on() -> None:
    """In Gearpump it stands still here, and with it the clock of the whole application."""
    driver = TaskDriver(Count)

    driver.watermark(10)
    driver.cut()
    first = driver.clock.watermark_ms
    driver.end()

    assert (first, driver.clock.watermark_ms) == (10, MAX_MS)


def test_epochs_without_messages_end_too() -> None:
    """In Gearpump an idle task never takes a checkpoint, and the others wait for it."""
    driver = TaskDriver(Count)

    for _ in range(3):
        resume = driver.cut()

    restarted = TaskDriver(Count, resume=resume).task
    assert isinstance(restarted, Count)
    assert restarted.state.value == 0
