"""How much a task works through: the work of about a second is what may be under way to it."""

from typing import Final

from gearpy.ids import TaskId

#: The work that may be under way to a task, of all that send to it.
_ROOM_MS: Final = 1000
#: The work that is remembered; older work counts half, then a quarter.
_REMEMBERED_MS: Final = 2000


class WorkPace:
    """Measures what a record costs a task; tells those who send to it how many fit in a second.

    The end of an epoch waits behind all that is under way. Time counts in which the task works, or
    waits for room or calls; time in which others have the thread does not, or the task would seem
    slower with each smaller turn.
    """

    def __init__(self) -> None:
        self._worked_ms = 0  # The time of its whole life.
        self._spent_ms = 0
        self._taken = 0  # Credit of the records that this time has taken.
        self._since_ms: int | None = None  # It works, or cannot go on, since then.
        self._heard: set[TaskId] = set()  # Senders since it was last halved ...
        self._links = 1  # ... and how many there were before.

    def begin(self, now_ms: int) -> None:
        if self._since_ms is not None:
            self._spent_ms += now_ms - self._since_ms
            self._worked_ms += now_ms - self._since_ms
        self._since_ms = now_ms

    def end(self, now_ms: int, *, is_waiting: bool) -> None:
        """Note that it has stopped; time in which it cannot take more counts, too."""
        self.begin(now_ms)
        if not is_waiting:
            self._since_ms = None
        if self._spent_ms > _REMEMBERED_MS:
            self._spent_ms //= 2
            self._taken = (self._taken + 1) // 2
            self._links, self._heard = max(1, len(self._heard)), set()

    def on_taken(self, sender: TaskId, credit: int) -> None:
        if credit:
            self._taken += credit
            self._heard.add(sender)

    def worked_ms(self, now_ms: int) -> int:
        return self._worked_ms + (0 if self._since_ms is None else now_ms - self._since_ms)

    def room(self, now_ms: int) -> int:
        running_ms = 0 if self._since_ms is None else now_ms - self._since_ms
        spent_ms = self._spent_ms + running_ms
        if not (spent_ms and self._taken):
            return 0
        links = max(self._links, len(self._heard))
        return max(1, self._taken * _ROOM_MS // spent_ms // links)
