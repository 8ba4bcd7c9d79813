"""The measurements of one task: times of its turns, and probes that tell how old records are."""

from collections.abc import Callable
from time import perf_counter_ns, time_ns
from typing import Final

from msgspec import Struct

from gearpy.messages.metrics import TaskLoad
from gearpy.metrics.histogram import Histogram
from gearpy.task.api.counters import TaskCounters
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.runtime.info import TaskInfo
from gearpy.task.runtime.inlet import Inlet
from gearpy.task.runtime.outlet import Outlet

_NS_PER_MS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000


class MeterSettings(Struct, frozen=True, kw_only=True):
    """The settings for measuring tasks: clocks in ns, and the time between probes of sources."""

    clock_ns: Callable[[], int] = perf_counter_ns
    wall_ns: Callable[[], int] = time_ns
    probe_interval_ms: int = 1000


class TaskMeter:
    """Measures the turns of a task.

    Time in turns is busy time; time between a turn that ended for want of room downstream and the
    next one is back-pressured time, in which little turns may take acknowledgements. The time of
    turns, divided by the records that they took, is the processing time of each of these.

    Latency is measured by probes: sources send one about every second, in the order of records;
    each task that has one at hand passes it on at once. So it is the time from a source to a task
    through all queues, and not the time that a record waits in a window or for a call. In a task
    that is source and sink at once it is the time of a turn.

    Runs on: the task's thread; `load` on any one.
    """

    def __init__(
        self,
        context: TaskContext,
        settings: MeterSettings,
        *,
        is_source: bool,
        is_sink: bool,
        send: Callable[[int], None],
    ) -> None:
        self._counters: TaskCounters = context.counters
        self._user = context.metrics
        self._wall_ns = settings.wall_ns
        self._clock_ns = settings.clock_ns
        self._interval_ms = settings.probe_interval_ms
        self._is_source = is_source
        self._is_alone = is_source and is_sink
        counters = context.counters
        self._restored = (
            counters.records_in,
            counters.records_out,
            counters.late_records,
            counters.skipped_records,
            counters.quarantined_records,
            counters.ahead_records,
        )
        self._records = self._counters.taken  # Those of earlier starts of the task are counted.
        self._send = send
        self._probe_at_ms = 0
        self._unspent_ns = 0  # Turns that took no records worked on those before.
        self.busy_ns = 0  #: The time of all turns that have ended.
        self._blocked_ns = 0
        self._began_ns = self._blocked_since_ns = 0
        self._told_ns = (0, 0)
        self._processing = Histogram()
        self._latency = Histogram()
        self.state_bytes = 0  #: When the last epoch ended.

    def begin_turn(self) -> None:
        now_ns = self._clock_ns()
        since_ns, self._blocked_since_ns = self._blocked_since_ns, 0
        if since_ns:
            self._blocked_ns += now_ns - since_ns
        self._began_ns = now_ns

    def end_turn(self, now_ms: int, *, is_blocked: bool) -> None:
        """Note that it has ended; a source sends a probe if one is due."""
        began_ns, now_ns = self._began_ns, self._clock_ns()
        spent_ns = now_ns - began_ns
        self._began_ns = 0  # Before it is added: nobody may see it twice.
        self.busy_ns += spent_ns
        if is_blocked:
            self._blocked_since_ns = now_ns
        records = self._counters.taken - self._records
        if records <= 0:
            self._unspent_ns += spent_ns
            return
        self._records += records
        self._processing.observe((spent_ns + self._unspent_ns) / records / _NS_PER_S, records)
        self._unspent_ns = 0
        if self._is_alone:
            self._latency.observe(spent_ns / _NS_PER_S)
        elif self._is_source and now_ms >= self._probe_at_ms:
            self._probe_at_ms = now_ms + self._interval_ms
            self._send(self._wall_ns())

    def take(self, sent_ns: int, now_ms: int) -> None:
        """Take a probe whose turn has come; pass it on unless there was one just now."""
        self._latency.observe(max(0, self._wall_ns() - sent_ns) / _NS_PER_S)
        if now_ms >= self._probe_at_ms:
            self._probe_at_ms = now_ms + self._interval_ms // 2
            self._send(sent_ns)

    def load(self, info: TaskInfo, inlet: Inlet, outlet: Outlet) -> TaskLoad:
        now_ns = self._clock_ns()
        busy_ns, blocked_ns = self.busy_ns, self._blocked_ns  # Before what is not in them yet.
        began_ns, since_ns = self._began_ns, self._blocked_since_ns
        busy_ns += now_ns - began_ns if began_ns else 0
        blocked_ns += now_ns - since_ns if since_ns else 0
        told = self._told_ns  # A turn that ends meanwhile must not turn time back.
        self._told_ns = busy_ns, blocked_ns = max(told[0], busy_ns), max(told[1], blocked_ns)
        return TaskLoad(
            task_id=info.task_id,
            session=info.session,
            bytes_in=inlet.bytes_taken,
            bytes_out=outlet.bytes_sent,
            busy_ms=busy_ns // _NS_PER_MS,
            backpressured_ms=blocked_ns // _NS_PER_MS,
            queue_records=inlet.records_queued,
            pending_records=outlet.records_pending,
            state_bytes=self.state_bytes,
            processing=self._processing.sample(),
            latency=self._latency.sample(),
            user=self._user.samples(),
            restored=self._restored,
        )
