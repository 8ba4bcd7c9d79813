"""Consumers of sinks outside of the application, and whether they are stuck."""

from collections.abc import Iterable, Mapping
from typing import Final

from gearpy.core.dag.graph import Dag
from gearpy.ids import ProcessorId, TaskId
from gearpy.messages.app import TaskClock
from gearpy.messages.summaries import ConsumerSummary

#: A consumer that has taken nothing for so long, though it could, is worth a word.
STALLED_MS: Final = 10_000


def consumers_of(dag: Dag, reports: Mapping[TaskId, TaskClock]) -> list[ConsumerSummary]:
    return [
        ConsumerSummary(
            sink=dag.processors[ProcessorId(task.processor)].name, task=str(task), report=report
        )
        for task in sorted(reports)
        if ProcessorId(task.processor) in dag.processors
        for report in reports[task].consumers
    ]


def stalled(consumers: Iterable[ConsumerSummary], now_ms: int) -> list[ConsumerSummary]:
    found = [
        each
        for each in consumers
        if each.report.waiting_since_ms and now_ms - each.report.waiting_since_ms >= STALLED_MS
    ]
    return sorted(found, key=lambda each: each.report.waiting_since_ms)
