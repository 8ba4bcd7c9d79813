"""The measurements that an application leaves behind when it ends, and answers made of them."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from gearpy.ids import AppId, TaskId
from gearpy.messages.metrics import (
    ExecutorSample,
    GetHistory,
    HistoryData,
    HistoryItem,
    HistoryPoint,
    HistoryPoints,
    ReadOption,
    SeriesData,
)
from gearpy.metrics.history import named, process_items
from gearpy.metrics.task_history import Values, task_items

#: Of the points of one message; a control frame holds more.
_BYTES_MAX: Final = 768 * 1024
_TASK_BYTES: Final = 16  # Of the name of a task.
_EXECUTOR_BYTES: Final = 200
_NO_COLUMNS: Final = frozenset({"app_id", "processors", "events", "more_from"})


class Past(NamedTuple):
    """The measurements of one time that are kept for longer than the last minutes."""

    executors: tuple[ExecutorSample, ...]
    tasks: Mapping[TaskId, Values]


def past_items(app_id: AppId, at_ms: int, past: Past) -> Iterator[HistoryItem]:
    app = f"app{app_id}"
    for each in sorted(past.executors, key=lambda each: each.executor_id):
        yield from process_items(f"{app}.executor{each.executor_id}", at_ms, each.process)
    yield from task_items(app, at_ms, past.tasks)


def history_points(
    app_id: AppId, option: ReadOption, points: Iterable[tuple[int, Past]]
) -> HistoryPoints:
    """Return points to be left behind: the newest, as many as fit into a message."""
    kept: list[HistoryPoint] = []
    size = 0
    for at_ms, past in reversed([*points]):
        point = HistoryPoint(
            at_ms=at_ms,
            executors=past.executors,
            tasks={task: values.tobytes() for task, values in past.tasks.items()},
        )
        size += _EXECUTOR_BYTES * len(past.executors)
        size += sum(_TASK_BYTES + len(each) for each in point.tasks.values())
        if size > _BYTES_MAX:
            break
        kept.append(point)
    return HistoryPoints(app_id=app_id, read_option=option, points=tuple(reversed(kept)))


def history_of(left: HistoryPoints, question: GetHistory) -> HistoryData:
    items = (item for each in left.points for item in _items_of(left.app_id, each))
    return named(question, items)


def series_since(data: SeriesData, since_ms: int) -> SeriesData:
    at = bisect_right(data.at_ms, since_ms)
    columns: dict[str, Any] = {
        name: getattr(data, name)[at:] for name in data.__struct_fields__ if name not in _NO_COLUMNS
    }
    processors = tuple(
        replace(
            each, rate=each.rate[at:], busy=each.busy[at:], backpressured=each.backpressured[at:]
        )
        for each in data.processors
    )
    events = tuple(each for each in data.events if each.at_ms > since_ms)
    return replace(data, **columns, processors=processors, events=events)


def _items_of(app_id: AppId, point: HistoryPoint) -> Iterator[HistoryItem]:
    tasks: dict[TaskId, Values] = {}
    for task, values in point.tasks.items():
        tasks[task] = array("d")
        tasks[task].frombytes(values)
    yield from past_items(app_id, point.at_ms, Past(point.executors, tasks))
