"""Turns the messages that an app master gets into the events of its core."""

from collections.abc import Iterable
from typing import TypeAlias, assert_never

from gearpy.core.app.application import ApplicationCore
from gearpy.core.app.decisions import Command
from gearpy.core.app.deployment import StepAnswer
from gearpy.messages.app import (
    EpochCommitted,
    EpochStored,
    EpochUnstored,
    ExecutorFailed,
    LinkBroken,
    ReportClocks,
    StateReadAhead,
    TaskFailed,
)
from gearpy.messages.cluster import ExecutorExited, ExecutorLaunchRejected, ResourceAllocated

_OfTasks: TypeAlias = (
    ReportClocks
    | TaskFailed
    | ExecutorFailed
    | EpochStored
    | EpochUnstored
    | EpochCommitted
    | LinkBroken
    | StateReadAhead
)
_OfSlots: TypeAlias = ResourceAllocated | ExecutorLaunchRejected | ExecutorExited
CoreEvent: TypeAlias = StepAnswer | _OfTasks | _OfSlots


def decide(  # noqa: PLR0911 - an arm for each message
    core: ApplicationCore, message: CoreEvent, now_ms: int
) -> Iterable[Command]:
    if isinstance(message, StepAnswer):
        return core.on_answer(message, now_ms)
    match message:
        case ResourceAllocated():
            return core.on_allocated(message.allocations, now_ms)
        case ExecutorLaunchRejected() | ExecutorExited():
            cause = message.cause
            return core.on_executor_gone(message.executor_id, message.launch, cause, now_ms)
        case ReportClocks():
            core.on_long_turns(message.executor_id, message.long_turns)
            return core.on_clocks(message.clocks, now_ms)
        case TaskFailed():
            return core.on_task_failed(message, now_ms)
        case ExecutorFailed():
            return core.on_executor_failed(message, now_ms)
        case EpochStored():
            return core.on_epoch_stored(message, now_ms)
        case EpochUnstored():
            return core.on_epoch_unstored(message, now_ms)
        case EpochCommitted():
            return core.on_epoch_committed(message, now_ms)
        case LinkBroken():
            return core.on_link_broken(message, now_ms)
        case StateReadAhead():
            return core.on_read_ahead(message, now_ms)
        case _:
            assert_never(message)
