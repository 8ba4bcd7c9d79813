"""Aggregators of measurements by Gearpump's names: tasks to processors, or some of the tasks.

Gearpump: `ProcessorAggregator`, `TaskFilterAggregator`.
"""

from collections.abc import Iterable, Iterator
from re import compile as regex
from typing import Final

from gearpy.messages.metrics import GetHistory, HistoryItem

#: The names of aggregators, without the package of Gearpump's class.
AGGREGATORS: Final = ("ProcessorAggregator", "TaskFilterAggregator")
_TASK: Final = regex(r"(?P<of>app\d+\.processor(?P<processor>\d+))\.task(?P<task>\d+):(?P<name>.*)")


def aggregated(question: GetHistory, items: Iterable[HistoryItem]) -> Iterator[HistoryItem]:
    """Yield the items that the aggregator of a question makes; none if there is no such one.

    It may be named with the package of Gearpump's class.
    """
    match question.aggregator.rpartition(".")[2]:
        case "":
            yield from items
        case "ProcessorAggregator":
            # Meters add up; of histograms it is the mean.
            groups: dict[tuple[int, str], list[HistoryItem]] = {}
            for item in items:
                if found := _TASK.fullmatch(item.name):
                    key = item.at_ms, f"{found['of']}:{found['name']}"
                    groups.setdefault(key, []).append(item)
            for (at_ms, name), members in groups.items():
                kind = members[0].kind
                parts = len(members) if kind == "histogram" else 1
                values = {
                    field: sum(member.values[field] for member in members) / parts
                    for field in members[0].values
                }
                yield HistoryItem(at_ms=at_ms, name=name, kind=kind, values=values)
        case "TaskFilterAggregator":
            for item in items:
                found = _TASK.fullmatch(item.name)
                if (
                    found
                    and _is_within(
                        found["processor"], question.start_processor, question.end_processor
                    )
                    and _is_within(found["task"], question.start_task, question.end_task)
                ):
                    yield item


def _is_within(number: str, first: int, last: int) -> bool:
    return first <= int(number) and (last < 0 or int(number) <= last)
