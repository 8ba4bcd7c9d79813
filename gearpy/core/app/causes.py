"""The ends of applications: the time limits of a drain, and texts for people that say why."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gearpy.core.app.clock import ClockHolder
from gearpy.core.dag.difference import graph_difference
from gearpy.core.dag.graph import Dag
from gearpy.core.epoch.epochs import Manifest
from gearpy.core.epoch.history import EpochHistory
from gearpy.ids import ProcessorId, TaskId
from gearpy.messages.app import (
    EpochUnstored,
    LongTurn,
    RegisterExecutor,
    SnapshotsDamaged,
    TaskClock,
)
from gearpy.messages.summaries import ErrorCard

#: Tasks that took too long have so long to stop.
_GRACE_MS: Final = 2_000


class Drain:
    """The time limits of a drain: when it has failed, and when the remaining executors are killed.

    Invariant: a drain is late before its executors are killed.
    """

    def __init__(self, *, now_ms: int, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._until_ms = now_ms + timeout_ms

    def is_late(self, now_ms: int) -> bool:
        return now_ms >= self._until_ms

    def has_had_grace(self, now_ms: int) -> bool:
        return now_ms >= self._until_ms + _GRACE_MS


def too_few_slots(*, wanted: int, missing: int, timeout_ms: int) -> ErrorCard:
    return ErrorCard(
        cause=f"got {wanted - missing} of {wanted} slots within {timeout_ms // 1000} s: "
        "add workers, raise worker.slots, lower the parallelism, or stop other applications"
    )


def trial_too_long(timeout_ms: int, store: str = "") -> ErrorCard:
    why = store or "it did not start, or its records do not move"
    return ErrorCard(
        cause=f"the new version has stored no epoch within {timeout_ms // 1000} s: {why}"
    )


def untried(dag: Dag, tried: Iterable[TaskId], reports: Mapping[TaskId, TaskClock]) -> str:
    """Say of which steps no task has had a record in a trial; empty if each step has had some."""
    tasks = [(task.processor, reports.get(task)) for task in tried]
    seen = {pid for pid, report in tasks if report is not None and not report.untried}
    unseen = sorted({pid for pid, _ in tasks} - seen)
    if not unseen:
        return ""
    names = ", ".join(dag.processors[ProcessorId(pid)].name for pid in unseen)
    of = f" of {names}" if seen else ""
    return f"its trial saw no records{of}: if one fails later, it does not go back"


def longest_call(turns: Iterable[LongTurn]) -> str:
    turn = max(turns, key=lambda each: (each.lasts_ms, each.task_id), default=None)
    if turn is None:
        return ""
    at = f" at {turn.source}" if turn.source else ""
    line = f": {turn.source_line}" if turn.source_line else ""
    return (
        f"{turn.step} (task {turn.task_id}), which has been in one call for "
        f"{turn.lasts_ms // 1000} s{at}{line}"
    )


def drain_too_long(
    chain: Sequence[ClockHolder], *, timeout_ms: int, outside: str = "", call: str = ""
) -> ErrorCard:
    """Describe why a drain did not end; ``chain`` leads to the task that holds the clock."""
    cause = f"the drain did not end within {timeout_ms // 1000} s"
    if waits_for := outside or call:
        cause += f": it waits for {waits_for}"
    elif chain:
        holder = chain[-1]
        cause += f": it waits for {holder.name} (task {holder.task_id}), {holder.waits_for}"
    return ErrorCard(
        cause=f"{cause}; what was read since the newest epoch is not committed. To go on from "
        "there, which reads it again: 'gear run --resume' or 'gear app submit --from-checkpoint'; "
        "raise application.drain-timeout-seconds if it is only slow"
    )


def other_graph(dag: Dag, message: RegisterExecutor) -> ErrorCard:
    difference = graph_difference(dag.description, message.graph)
    return ErrorCard(
        cause=f"executor {message.executor_id} built another graph than the app master "
        f"({difference}): the program must build the same graph in every process; look for "
        "what differs, such as arguments, environment, files that are read, random numbers, "
        "or another version of a library"
    )


def restart_after_damage(region: int, history: EpochHistory) -> str:
    newest, whole = history.newest, history.newest_whole
    if newest is not None and newest.changelog:
        return f"a restart of region {region} would rebuild its state from the changelog"
    if whole is not None:
        return f"a restart of region {region} would go back to epoch {whole.epoch}"
    return (
        f"a restart of region {region} could go on from none of its stored epochs: see what is "
        "damaged with 'gear checkpoint verify', and bring it back if you can"
    )


def damage_found(message: EpochUnstored, region: int, history: EpochHistory) -> str:
    needing = history.listing(message.damaged)
    epochs = ", ".join(str(each.epoch) for each in needing)
    tasks = {
        task
        for each in needing
        for file in each.snapshots
        if file.location == message.damaged
        for task in file.tasks
    }
    return (
        f"{message.reason}; stored epochs {epochs} need this file for task "
        f"{', '.join(map(str, sorted(tasks)))}; {restart_after_damage(region, history)}; all goes "
        f"on, and the epoch after {message.epoch} stores anew what the tasks of executor "
        f"{message.executor_id} have in memory: look for what harms files there"
    )


def nothing_left(
    region: int, damaged: SnapshotsDamaged, manifests: Iterable[Manifest]
) -> ErrorCard:
    """Say that no stored epoch can be gone on from; to begin anew is for people to decide."""
    epochs = ", ".join(str(each.epoch) for each in manifests)
    return ErrorCard(
        cause=f"region {region} can go on from none of its stored epochs ({epochs}), as "
        f"{damaged.location} is needed: {damaged.reason}; see what is damaged with "
        "'gear checkpoint verify', bring it back if you can, and submit the application again: "
        "to go on from a checkpoint that is whole, or from the beginning"
    )
