"""A change at an event time: where its sources halt, when its processes start, when it may be."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from gearpy.core.app.deployment import Send
from gearpy.ids import MAX_MS, MIN_MS, ExecutorId, TaskId
from gearpy.messages.app import HaltSources, HaltState, TaskClock

#: Processes of the new version start when event time will be there in so long.
_LEAD_MS: Final = 20_000
#: How fast event time goes is told by so long a time.
_SPAN_MS: Final = 10_000
#: An order that a source does not follow is repeated after so long.
_REPEAT_MS: Final = 2_000


class TimedHalt:
    """Halts all sources of a change at one event time, exactly, and tells when all are there.

    A source that was told too late, cannot hold records back, or comes long after another makes the
    change impossible. Silent partitions are not waited for, as for watermarks.

    Invariant: it `is_reached` only when all sources have heard, those that are not silent have
    promised the time, and one has.
    """

    def __init__(self, time_ms: int, names: Mapping[TaskId, str], *, timeout_ms: int) -> None:
        self.time_ms = time_ms
        self.is_reached = False  #: All sources are there.
        self.is_near = False  #: One will be there soon, or is.
        self.refusal = ""  #: Why the change cannot be; empty if it can.
        self.names = dict(names)
        self._timeout_ms = timeout_ms
        self._first_ms: int | None = None  # One is there since then, and others are not.
        self._progress: deque[tuple[int, int]] = deque()  # When event time was where.

    def has_passed(self, reports: Mapping[TaskId, TaskClock]) -> str:
        for clock in [reports[task] for task in self.names if task in reports]:
            if max(clock.newest_ms, self._watermark_ms(clock)) >= self.time_ms:
                return self._name(clock)
        return ""

    def on_reports(self, reports: Mapping[TaskId, TaskClock], now_ms: int) -> None:
        clocks = [reports[task] for task in self.names if task in reports]
        there: list[TaskClock] = []
        waited_for: list[TaskClock] = []
        for each in clocks:
            state = self._state(each)
            if state == "reached" and each.clock_ms < MAX_MS:
                there.append(each)
            elif state is None or not (each.idle or each.clock_ms == MAX_MS):
                waited_for.append(each)
        self.is_reached = bool(there) and not waited_for and len(clocks) == len(self.names)
        if not (there and waited_for):
            self._first_ms = None
        elif self._first_ms is None:
            self._first_ms = now_ms
        self.is_near = self.is_near or bool(there) or self._comes_soon(clocks, now_ms)
        self.refusal = self._why_never(clocks, waited_for, now_ms)

    def _state(self, clock: TaskClock) -> HaltState | None:
        return clock.halt.state if halt_ms_of(clock) == self.time_ms and clock.halt else None

    def _watermark_ms(self, clock: TaskClock) -> int:
        return clock.watermark_ms if clock.watermark_ms < MAX_MS else MIN_MS

    def _comes_soon(self, clocks: Iterable[TaskClock], now_ms: int) -> bool:
        furthest_ms = max(map(self._watermark_ms, clocks), default=MIN_MS)
        if furthest_ms == MIN_MS:
            return False
        self._progress.append((now_ms, furthest_ms))
        while self._progress[0][0] < now_ms - _SPAN_MS:
            self._progress.popleft()
        then_ms, was_ms = self._progress[0]
        passed_ms, moved_ms = now_ms - then_ms, max(0, furthest_ms - was_ms)
        return passed_ms > 0 and (self.time_ms - furthest_ms) * passed_ms <= moved_ms * _LEAD_MS

    def _why_never(
        self, clocks: Iterable[TaskClock], waited_for: Iterable[TaskClock], now_ms: int
    ) -> str:
        for each in clocks:
            name = self._name(each)
            match self._state(each):
                case "passed":
                    return f"{name} had sent records of that time before it was told"
                case "full":
                    return f"too many records of that time wait in {name} for older ones"
                case "unable":
                    return (
                        f"{name} is no Source, and has no begin_cut, by which it could hold "
                        "records of that time back"
                    )
        last = min(waited_for, key=self._watermark_ms, default=None)
        if last is None or self._first_ms is None or now_ms < self._first_ms + self._timeout_ms:
            return ""
        watermark_ms = self._watermark_ms(last)
        if watermark_ms == MIN_MS:
            lack = "it has promised no event time yet"
        elif watermark_ms >= self.time_ms:
            lack = "it has not sent all older records"
        else:
            lack = f"its watermark is {self.time_ms - watermark_ms} ms before that time"
        seconds = self._timeout_ms // 1000
        return f"{self._name(last)} is not there {seconds} s after the first source was: {lack}"

    def _name(self, clock: TaskClock) -> str:
        return f"{self.names[clock.task_id]} (task {clock.task_id})"


class HaltOrders:
    """Tells sources where to halt, or to go on, as long as their reports say something else."""

    def __init__(self) -> None:
        self.has_halted = False  #: A source has reported that it is to halt.
        self._again_ms: dict[tuple[int, int], int] = {}  # The key is an attempt and its order.

    def on_report(self, clock: TaskClock) -> None:
        self.has_halted = self.has_halted or clock.halt is not None

    def note(self, reports: Mapping[TaskId, TaskClock]) -> None:
        self.has_halted = any(each.halt is not None for each in reports.values())

    def orders(
        self,
        attempt: int,
        placement: Mapping[TaskId, ExecutorId],
        reports: Mapping[TaskId, TaskClock],
        halt: TimedHalt | None,
        now_ms: int,
    ) -> list[Send]:
        orders: list[Send] = []
        for time_ms in (MAX_MS, *([] if halt is None else [halt.time_ms])):
            wrong = {
                executor_id
                for task, executor_id in placement.items()
                if task in reports
                and halt_ms_of(reports[task])
                != time_ms
                == (halt.time_ms if halt is not None and task in halt.names else MAX_MS)
            }
            if wrong and now_ms >= self._again_ms.get((attempt, time_ms), MIN_MS):
                self._again_ms[attempt, time_ms] = now_ms + _REPEAT_MS
                message = HaltSources(attempt=attempt, time_ms=time_ms)
                orders += [Send(executor_id=each, message=message) for each in sorted(wrong)]
        self._again_ms = {each: at for each, at in self._again_ms.items() if at > now_ms}
        return orders


def halt_ms_of(clock: TaskClock) -> int:
    return MAX_MS if clock.halt is None else clock.halt.time_ms
