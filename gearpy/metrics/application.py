"""The measurements of one application, as its app master keeps them."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from msgspec import Struct, field

from gearpy.ids import AppId, ExecutorId, SessionId, TaskId
from gearpy.messages.app import TaskClock
from gearpy.messages.metrics import (
    ApplicationEvent,
    ApplicationSample,
    EventKind,
    ExecutorSample,
    GetHistory,
    GetMetrics,
    GetSeries,
    HistogramSample,
    HistoryData,
    HistoryPoints,
    MetricsData,
    ProcessorSeries,
    ReadOption,
    ReportMetrics,
    SeriesData,
    SeriesSpan,
    TaskLoad,
)
from gearpy.metrics.histogram import merged, quantile_ms_of, since
from gearpy.metrics.history import History
from gearpy.metrics.past import Past, history_points, past_items
from gearpy.metrics.rings import Ring
from gearpy.metrics.samples import known_ms, page_of, sample_of
from gearpy.metrics.task_history import TaskMeters

#: How far apart the points of each span are, and how many there are; each rests on what was counted
#: since the point before, so that a mean over 5 minutes is of all of them.
_SPANS: Final[Mapping[SeriesSpan, tuple[int, int]]] = {
    "10m": (2000, 300),
    "1h": (20_000, 180),
    "24h": (300_000, 288),
}
_EVENTS_MAX: Final = 100
_EVENT_CHARS_MAX: Final = 500
#: Processors in one answer, each with columns of its own.
_PROCESSORS_PER_PAGE: Final = 40


class Outline(Struct, frozen=True, kw_only=True):
    """The processors of an application by their names, and which of them read and which show."""

    names: Mapping[int, str]
    sources: frozenset[int]
    sinks: frozenset[int]


class _Load(NamedTuple):
    """A task's newest load, and when its executor took it."""

    at_ms: int
    load: TaskLoad


class _Marks(NamedTuple):
    """Counts of a task at one point, which the next point is compared with."""

    session: SessionId
    taken: int
    written: int
    at_ms: int
    busy_ms: int
    backpressured_ms: int


class Flow(NamedTuple):
    """The flow through a processor since the point before; None is not known."""

    rate: float | None
    out_rate: float | None
    busy: float | None
    backpressured: float | None


_UNKNOWN: Final = Flow(None, None, None, None)


class FinePoint(Struct):
    """The measurements at one point of a span; flows by processor."""

    flows: dict[int, Flow]
    records_in_rate: float | None
    records_out_rate: float | None
    latency: HistogramSample
    watermark_lag_ms: float | None
    epoch_ms: float | None
    epoch_bytes: float | None
    state_bytes: float | None


class _Before(Struct):
    """The counts of the point before."""

    at_ms: int = 0
    marks: dict[TaskId, _Marks] = field(default_factory=dict)
    latencies: dict[TaskId, HistogramSample] = field(default_factory=dict)


class _Track:
    """The points of one span, and the counts at the newest of them."""

    def __init__(self, interval_ms: int, points: int) -> None:
        self.ring: Ring[FinePoint] = Ring(interval_ms=interval_ms, points=points)
        self.before = _Before()


class ApplicationMetrics:
    """Keeps the newest measurements of all tasks and executors, the last minutes, and events.

    Of the past it keeps what processors add up to, so that its size does not grow with tasks.
    Times are wall time.
    """

    def __init__(self, app_id: AppId, outline: Outline) -> None:
        self.app_id = app_id
        self._outline = outline
        self._loads: dict[TaskId, _Load] = {}
        self._executors: dict[ExecutorId, ExecutorSample] = {}
        self._events: deque[ApplicationEvent] = deque(maxlen=_EVENTS_MAX)
        self._tracks = {span: _Track(*sizes) for span, sizes in _SPANS.items()}
        self._newest: FinePoint | None = None
        self._meters = TaskMeters()
        self._history: History[Past] = History(partial(past_items, app_id))

    def on_outline(self, outline: Outline) -> None:
        self._outline = outline
        for track in self._tracks.values():
            track.before = _Before()
        self._loads.clear()

    def on_report(self, report: ReportMetrics) -> None:
        self._executors[report.executor_id] = ExecutorSample(
            executor_id=report.executor_id, launch=report.launch, process=report.process
        )
        for load in report.tasks:
            self._loads[load.task_id] = _Load(report.at_ms, load)

    def forget_gone(self, is_current: Callable[[ExecutorId, int], bool]) -> None:
        """Forget the processes of executors that do not count any more, by number and launch."""
        self._executors = {
            number: each
            for number, each in self._executors.items()
            if is_current(number, each.launch)
        }

    def note(self, at_ms: int, kind: EventKind, text: str) -> None:
        self._events.append(ApplicationEvent(at_ms=at_ms, kind=kind, text=text[:_EVENT_CHARS_MAX]))

    def is_due(self, at_ms: int) -> bool:
        return self._tracks["10m"].ring.is_due(at_ms)

    def on_tick(
        self, at_ms: int, clocks: Mapping[TaskId, TaskClock], application: ApplicationSample
    ) -> None:
        """Keep a point of each span that it is time for; only when it `is_due`."""
        for span, track in self._tracks.items():
            if not track.ring.is_due(at_ms):
                continue
            point = self._point(track, at_ms, clocks, application)
            track.ring.add(at_ms, point)
            if span == "10m":
                self._newest = point
        self._meters.on_tick(at_ms, clocks)
        self._history.on_tick(at_ms, self._past)

    def _point(
        self,
        track: _Track,
        at_ms: int,
        clocks: Mapping[TaskId, TaskClock],
        application: ApplicationSample,
    ) -> FinePoint:
        before, outline = track.before, self._outline
        marks = {task: self._marks(clock) for task, clock in clocks.items()}
        lasting_ms = at_ms - before.at_ms
        pairs: dict[int, list[tuple[_Marks, _Marks]]] = {pid: [] for pid in outline.names}
        for task, mark in marks.items():
            earlier = before.marks.get(task)
            if earlier is not None and earlier.session == mark.session and task.processor in pairs:
                pairs[task.processor].append((earlier, mark))
        flows = {pid: _flow(known, lasting_ms) for pid, known in pairs.items()}
        latencies = {
            task: self._loads[task].load.latency
            for task in clocks
            if task.processor in outline.sinks and task in self._loads
        }
        lately = merged(
            since(sample, before.latencies.get(task, HistogramSample()))
            for task, sample in latencies.items()
        )
        track.before = _Before(at_ms, marks, latencies)
        watermarks = [known_ms(each.watermark_ms) for each in clocks.values() if not each.idle]
        told = [each for each in watermarks if each is not None]
        return FinePoint(
            flows=flows,
            records_in_rate=_total(flows[pid].rate for pid in outline.sources),
            records_out_rate=_total(flow.out_rate for flow in flows.values()),
            latency=lately,
            watermark_lag_ms=float(at_ms - min(told)) if told else None,
            epoch_ms=float(application.epoch_ms) if application.epoch else None,
            epoch_bytes=float(application.epoch_bytes) if application.epoch else None,
            state_bytes=float(sum(each.load.state_bytes for each in self._loads.values())),
        )

    def take_newest(self) -> FinePoint | None:
        """Return the newest point of the last minutes; each once, then None."""
        newest, self._newest = self._newest, None
        return newest

    def load_of(self, task: TaskId) -> TaskLoad | None:
        known = self._loads.get(task)
        return None if known is None else known.load

    # -- answers ---------------------------------------------------------------------------

    def data(
        self,
        question: GetMetrics,
        at_ms: int,
        clocks: Mapping[TaskId, TaskClock],
        *,
        application: ApplicationSample,
        executor_of: Callable[[TaskId], ExecutorId | None],
    ) -> MetricsData:
        samples = [
            sample_of(clocks[task], self.load_of(task), executor_of(task))
            for task in sorted(clocks)
        ]
        tasks, more_from = page_of(samples, question.first)
        data = MetricsData(app_id=self.app_id, at_ms=at_ms, tasks=tasks, more_from=more_from)
        if question.first:
            return data
        return MetricsData(
            app_id=self.app_id,
            at_ms=at_ms,
            processors=dict(self._outline.names),
            application=application,
            tasks=tasks,
            executors=tuple(self._executors[each] for each in sorted(self._executors)),
            events=tuple(self._events),
            more_from=more_from,
        )

    def series(self, question: GetSeries) -> SeriesData:
        points = self._tracks[question.within].ring.since(question.since_ms)
        listed = sorted(self._outline.names)
        page = listed[question.first : question.first + _PROCESSORS_PER_PAGE]
        last = question.first + len(page)
        each = [point for _, point in points]
        processors = []
        for pid in page:
            flows = [point.flows.get(pid, _UNKNOWN) for point in each]
            processors.append(
                ProcessorSeries(
                    processor_id=pid,
                    rate=tuple(flow.rate for flow in flows),
                    busy=tuple(flow.busy for flow in flows),
                    backpressured=tuple(flow.backpressured for flow in flows),
                )
            )
        return SeriesData(
            app_id=self.app_id,
            at_ms=tuple(at_ms for at_ms, _ in points),
            records_in_rate=tuple(point.records_in_rate for point in each),
            records_out_rate=tuple(point.records_out_rate for point in each),
            latency_p50_ms=tuple(quantile_ms_of(point.latency, 0.5) for point in each),
            latency_p99_ms=tuple(quantile_ms_of(point.latency, 0.99) for point in each),
            watermark_lag_ms=tuple(point.watermark_lag_ms for point in each),
            epoch_ms=tuple(point.epoch_ms for point in each),
            epoch_bytes=tuple(point.epoch_bytes for point in each),
            state_bytes=tuple(point.state_bytes for point in each),
            processors=tuple(processors),
            events=tuple(event for event in self._events if event.at_ms > question.since_ms),
            more_from=last if last < len(listed) else 0,
        )

    def history(
        self, question: GetHistory, at_ms: int, clocks: Mapping[TaskId, TaskClock]
    ) -> HistoryData:
        self._meters.on_tick(at_ms, clocks)
        return self._history.answer(question, at_ms, self._past())

    def history_points(
        self, option: ReadOption, at_ms: int, clocks: Mapping[TaskId, TaskClock]
    ) -> HistoryPoints:
        self._meters.on_tick(at_ms, clocks)
        points = self._history.points(option, at_ms, self._past())
        return history_points(self.app_id, option, points)

    def _past(self) -> Past:
        loads = {task: known.load for task, known in self._loads.items()}
        return Past(tuple(self._executors.values()), self._meters.point(loads))

    # -- points ----------------------------------------------------------------------------

    def _marks(self, clock: TaskClock) -> _Marks:
        taken, written = clock.records_in, clock.written_records
        at_ms, load = self._loads.get(clock.task_id, (0, None))
        if load is None or load.session != clock.session:
            return _Marks(clock.session, taken, written, 0, 0, 0)
        return _Marks(clock.session, taken, written, at_ms, load.busy_ms, load.backpressured_ms)


def _flow(pairs: list[tuple[_Marks, _Marks]], lasting_ms: int) -> Flow:
    if not pairs or lasting_ms <= 0:
        return _UNKNOWN
    taken = sum(later.taken - earlier.taken for earlier, later in pairs)
    written = sum(later.written - earlier.written for earlier, later in pairs)
    rates = max(0.0, taken * 1000 / lasting_ms), max(0.0, written * 1000 / lasting_ms)
    measured = [(one, two) for one, two in pairs if 0 < one.at_ms < two.at_ms]
    time_ms = sum(later.at_ms - earlier.at_ms for earlier, later in measured)
    if not time_ms:
        return Flow(*rates, None, None)
    busy_ms = sum(later.busy_ms - earlier.busy_ms for earlier, later in measured)
    blocked_ms = sum(two.backpressured_ms - one.backpressured_ms for one, two in measured)
    return Flow(*rates, min(1.0, busy_ms / time_ms), min(1.0, blocked_ms / time_ms))


def _total(rates: Iterable[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None
