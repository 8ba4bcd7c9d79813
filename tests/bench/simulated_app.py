"""The application that simulations run, and what must come out of it, in plain Python.

It reads numbered words from a source that can be read again, out of order a little, and keeps state
in every way there is: for each key, with timers on event time and wall time, in windows, and apart
for each epoch in a persistent task. All results go to transactional sinks.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import gearpy as gp
from gearpy.dsl.application import StreamApp
from gearpy.dsl.streams.stream import Stream
from gearpy.state.kinds.timers import KeyTimer
from gearpy.testing.transactions import MemoryTransactions

_WORDS: Final = 7
_WINDOW_MS: Final = 100
_OUT_OF_ORDER_MS: Final = 12
_READ_RECORDS: Final = 8
_MET_AFTER_MS: Final = 3

#: A word and its number, unlike that of all others.
_Record: TypeAlias = tuple[str, int]
_Model: TypeAlias = Callable[["SimulatedApp"], Counter[Any]]
#: Results that are too much, and that are missing.
_Difference: TypeAlias = tuple[Counter[Any], Counter[Any]]


@dataclass(slots=True)
class SimulatedApp:
    """One run: how large it is, which branches it has, and what their sinks show.

    Attributes:
        by_bound: the source says how far its records are out of order, and not only what it
            promises.
    """

    records: int
    branches: Sequence[str]
    partitions: int = 2
    parallelism: int = 2
    by_bound: bool = False
    sinks: dict[str, MemoryTransactions] = field(default_factory=dict)

    def build(self) -> StreamApp:
        """Return the application; called in every process, and all write to the same sinks."""
        app = StreamApp("simulated", parallelism=self.parallelism)
        source = Words(self.records, self.partitions, by_bound=self.by_bound)
        words = app.read(source).map(upper).key_by(word_of)
        for name in self.branches:
            sink = self.sinks.setdefault(name, MemoryTransactions(name))
            BRANCHES[name].flow(words).write(sink)
        return app

    def numbered(self) -> Iterable[tuple[_Record, int]]:
        """Return all records as the source gives them, and their event times."""
        return ((upper(_record(n)), event_time_of(n)) for n in range(self.records))

    @property
    def retracted(self) -> int:
        return sum(len(sink.retracted) for sink in self.sinks.values())

    def problem(self, *, is_whole: bool = True, is_even: bool = False) -> str:
        """Return what is wrong with what the sinks show; empty when nothing is.

        Of an application that has not come to the end of its input, no result may be missing
        between others; the last ones may. Where the ends are even, no window is shown of some words
        and not of others.
        """
        for name in self.branches:
            shown = Counter(self.sinks[name].values)
            too_much, missing = BRANCHES[name].compare(shown, BRANCHES[name].model(self))
            if not is_whole and name == "numbered":
                missing = self._gaps(shown)
            elif not is_whole:
                last = max(map(_start_of, shown), default=-1) if is_even else -1
                missing = Counter(
                    {each: missing[each] for each in missing if _start_of(each) <= last}
                )
            if too_much or missing:
                return f"{name}: too much: {_some(too_much)}, missing: {_some(missing)}"
        return ""

    def _gaps(self, shown: Counter[Any]) -> Counter[Any]:
        numbers = {number for _, _, number in shown}
        ends = [
            max(numbers & {*range(part, self.records, self.partitions)}, default=0)
            for part in range(self.partitions)
        ]
        # The newest wait for each other, so that those of a key come in order.
        return Counter(
            number
            for part, end in enumerate(ends)
            for number in range(part, end - 2 * _OUT_OF_ORDER_MS, self.partitions)
            if number not in numbers
        )


# -- records -----------------------------------------------------------------------------------


def _record(number: int) -> _Record:
    return f"w{number * number % _WORDS}", number


def event_time_of(number: int) -> int:
    """Return the event time of a record: its number, but some come too late."""
    return number - number * 7919 % _OUT_OF_ORDER_MS if number >= _OUT_OF_ORDER_MS else number


def _window(time_ms: int) -> int:
    return time_ms // _WINDOW_MS * _WINDOW_MS


def upper(record: _Record) -> _Record:
    return record[0].upper(), record[1]


def word_of(record: _Record) -> str:
    return record[0]


class _Reader(gp.SourceReader):
    """Every n-th number, a few at a time, with pauses, so that virtual time passes."""

    def __init__(self, source: "Words", part: int, at: int) -> None:
        self._source, self._part, self._at = source, part, at
        self._reads = 0
        self.out_of_order_ms = _OUT_OF_ORDER_MS if source.by_bound else None
        times = map(event_time_of, self._numbers(0, at))
        self._newest_ms = max(times, default=gp.MIN_MS + _OUT_OF_ORDER_MS)

    def read_batch(self, max_records: int) -> gp.Batch | None:
        self._reads += 1
        if self._reads % self._source.pause:
            return None
        end = min(self._at + min(max_records, _READ_RECORDS), self._source.records)
        numbers = self._numbers(self._at, end)
        times = [event_time_of(n) for n in numbers]
        self._at = end
        self._newest_ms = max([self._newest_ms, *times])
        self.finished = end == self._source.records
        return gp.Batch([_record(n) for n in numbers], times)

    def snapshot(self) -> int:
        return self._at

    @property
    def watermark_ms(self) -> int:
        return self._newest_ms - _OUT_OF_ORDER_MS

    def _numbers(self, begin: int, end: int) -> list[int]:
        parts = self._source.parts
        return [n for n in range(begin, end) if n % parts == self._part]


class Words(gp.Source):
    replayable = True
    bounded = True

    def __init__(self, records: int, parts: int, *, by_bound: bool, pause: int = 2) -> None:
        self.records = records
        self.pause = pause
        self.parts = parts
        self.by_bound = by_bound

    def partitions(self) -> Sequence[str]:
        return [str(part) for part in range(self.parts)]

    def open(self, partition: str, resume: Any | None) -> _Reader:
        return _Reader(self, int(partition), resume or 0)


# -- branches ----------------------------------------------------------------------------------


def _number(before: int, record: _Record) -> tuple[int, tuple[str, int, int]]:
    return before + 1, (record[0], before + 1, record[1])


class _Gather(gp.Task):
    """Gathers the numbers of each word in windows of its own: lists, namespaces, timers."""

    def __init__(self, context: gp.TaskContext) -> None:
        super().__init__(context)
        self._numbers = context.state.list("numbers", coder="int")
        self._is_known = context.state.value("known", default=False)

    def on_next(self, message: gp.Message) -> None:
        state, now_ms = self.context.state, self.context.now_ms()
        if not self._is_known.get():
            self._is_known.set(value=True)
            state.timers.processing_time(now_ms + _MET_AFTER_MS, "met")
        start_ms = _window(message.timestamp)
        state.namespace = start_ms
        self._numbers.add(message.value[1])
        state.timers.event_time(start_ms + _WINDOW_MS, "closed")
        state.namespace = None

    def on_key_timer(self, timer: KeyTimer) -> Iterable[gp.Message]:
        if timer.tag == "met":
            return [gp.Message((timer.key, "met", ()), gp.MIN_MS)]
        numbers = tuple(sorted(self._numbers))
        self._numbers.clear()
        return [gp.Message((timer.key, timer.namespace, numbers), timer.at_ms - 1)]


class _Totals(gp.PersistentTask[gp.WindowState[int]]):
    """Adds numbers up in windows; holds no record back, as its state knows of epochs."""

    def persistent_state(self) -> gp.WindowState[int]:
        return gp.WindowState(
            gp.SumGroup(), gp.ValueSerializer(), gp.Window(_WINDOW_MS, _WINDOW_MS)
        )

    def process_message(self, state: gp.WindowState[int], message: gp.Message) -> None:
        state.update(message.timestamp, message.value[1] + 1)

    def process_watermark(
        self, state: gp.WindowState[int], watermark_ms: int
    ) -> Iterable[gp.Message]:
        for window, total in state.closing(watermark_ms):
            value = (self.context.task_id.task_index, window.start_ms, total)
            yield gp.Message(value, window.end_ms - 1)


@dataclass(frozen=True, slots=True)
class _Branch:
    """A part of the flow, what it must give, and how that is compared."""

    flow: Callable[[Any], Stream[Any]]
    model: _Model
    compare: Callable[[Counter[Any], Counter[Any]], _Difference]


def _difference(shown: Counter[Any], expected: Counter[Any]) -> _Difference:
    return shown - expected, expected - shown


def _repeated(shown: Counter[Any]) -> Counter[Any]:
    return Counter({each: n for each, n in shown.items() if n > 1})


def _start_of(result: Any) -> int:
    """Return the start of the window of a result, or of a total; -1 of what has none."""
    start = result if isinstance(result, int) else result[1]
    return start if isinstance(start, int) else -1


def _some(records: Counter[Any]) -> list[tuple[Any, int]]:
    return sorted(records.items(), key=repr)[:3]


def _compare_numbered(shown: Counter[Any], expected: Counter[Any]) -> _Difference:
    """Records of two inputs may come in any order; each has one number, each number one record."""
    places = Counter((word, place) for word, place, _ in shown.elements())
    records = Counter((word, number) for word, _, number in shown.elements())
    return _difference(places + records, expected)


def _numbered_model(app: SimulatedApp) -> Counter[Any]:
    records = Counter(record for record, _ in app.numbered())
    totals = Counter(word for word, _ in records)
    return records + Counter((word, n + 1) for word in totals for n in range(totals[word]))


def _compare_gathered(shown: Counter[Any], expected: Counter[Any]) -> _Difference:
    """Who is known at the very end may not be greeted any more; nobody is twice."""
    met = Counter(each for each in shown.elements() if each[1] == "met")
    too_much, missing = _difference(shown - met, expected)
    return too_much + _repeated(met), missing


def _gathered_model(app: SimulatedApp) -> Counter[Any]:
    gathered: dict[tuple[str, int], list[int]] = {}
    for (word, number), time_ms in app.numbered():
        gathered.setdefault((word, _window(time_ms)), []).append(number)
    return Counter((*key, tuple(sorted(numbers))) for key, numbers in gathered.items())


def _windows_model(app: SimulatedApp) -> Counter[Any]:
    windows = Counter((word, _window(time_ms)) for (word, _), time_ms in app.numbered())
    return Counter((word, start_ms, n) for (word, start_ms), n in windows.items())


def _compare_totals(shown: Counter[Any], expected: Counter[Any]) -> _Difference:
    totals = Counter[Any]()
    for _, start_ms, total in shown:
        totals[start_ms] += total
    too_much, missing = _difference(totals, expected)
    return too_much + _repeated(shown), missing


def _totals_model(app: SimulatedApp) -> Counter[Any]:
    totals = Counter[Any]()
    for (_, number), time_ms in app.numbered():
        totals[_window(time_ms)] += number + 1
    return totals


#: What the application may consist of, by name.
BRANCHES: Final[dict[str, _Branch]] = {
    "numbered": _Branch(
        lambda words: words.map_with_state(_number, initial=0), _numbered_model, _compare_numbered
    ),
    "gathered": _Branch(lambda words: words.process(_Gather), _gathered_model, _compare_gathered),
    "windows": _Branch(
        lambda words: (
            words.window(gp.tumbling(f"{_WINDOW_MS}ms"))
            .count()
            .map(lambda result: (result.key, result.start, result.value))
        ),
        _windows_model,
        _difference,
    ),
    "totals": _Branch(lambda words: words.process(_Totals), _totals_model, _compare_totals),
}
