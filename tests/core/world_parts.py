"""What the world around an `ApplicationCore` is made of; see `app_world`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gearpy.core.app.application import (
    ApplicationCore,
    Ended,
    Launch,
    RecoveryLimits,
)
from gearpy.core.base.restart import RestartPolicy
from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec
from gearpy.core.epoch.cut import EpochCut
from gearpy.core.epoch.epochs import Manifest
from gearpy.core.epoch.pace import PacePolicy
from gearpy.ids import ActorPath, ExecutorId, ProcessorId, TaskId
from gearpy.messages.app import (
    LaunchTasks,
    SnapshotFile,
)
from gearpy.messages.summaries import ErrorCard

__all__ = [
    "AppMaster",
    "Attempt",
    "Cells",
    "Group",
    "Process",
    "StoredFile",
    "Worker",
    "a_dag",
    "attempt_of",
    "cells_at",
    "some_limits",
    "works",
]

#: What a task keeps, by key; in a file None stands for what was deleted.
Cells: TypeAlias = dict[int, int | None]


def a_dag(*regions: tuple[int, int]) -> Dag:
    """Return a dag with a source and a sink for each pair of parallelisms."""
    processors, edges = [], []
    for number, parallelisms in enumerate(regions):
        source, sink = ProcessorId(2 * number), ProcessorId(2 * number + 1)
        for pid, parallelism in zip((source, sink), parallelisms, strict=True):
            processors.append(ProcessorSpec(id=pid, name=f"p{pid}", parallelism=parallelism))
        edges.append(EdgeSpec(source=source, target=sink))
    return Dag.build(processors, edges)


def some_limits(
    *,
    restarts: int = 5,
    backoff_ms: int = 100,
    cut: EpochCut = "position",
    pace: PacePolicy = "fixed",
    epoch_timeout_ms: int = 60_000,
    retained: int = 2,
) -> RecoveryLimits:
    """Return limits that are short enough for tests."""
    return RecoveryLimits(
        restarts=RestartPolicy(
            max_restarts=restarts, window_ms=600_000, backoff_ms=backoff_ms, backoff_max_ms=1000
        ),
        poison_attempts=3,
        step_timeout_ms=2000,
        start_timeout_ms=3000,
        allocation_timeout_ms=60_000,
        epoch_cut=cut,
        epoch_pace=pace,
        epoch_interval_ms=300,
        max_overhead_percent=10,
        max_replay_ms=700,
        epoch_timeout_ms=epoch_timeout_ms,
        epochs_retained=retained,
        stall_after_ms=60_000,
    )


@dataclass(eq=False)
class Worker:
    """Slots, and the processes in them."""

    number: int
    slots: int
    is_alive: bool = True
    lost_at_ms: int = 0
    processes: "list[Process]" = field(default_factory=list)

    @property
    def path(self) -> ActorPath:
        """Where it is told what to do."""
        return ActorPath(f"host:{self.number}#{self.number:016x}", "worker")

    def at(self, executor_id: ExecutorId) -> "Process | None":
        """Return the process of an executor."""
        return next((each for each in self.processes if each.executor_id == executor_id), None)


@dataclass(frozen=True)
class StoredFile:
    """A file of snapshots: what has changed of each task since the file before."""

    region: int
    epoch: int
    attempt: int
    cells: dict[TaskId, Cells]


def cells_at(progress: int) -> Cells:
    """Return all that a task keeps that has come so far; it forgets what it had before."""
    return {progress % 3: progress} if progress else {}


@dataclass(eq=False)
class Group:
    """The tasks of one attempt in one process."""

    launch: LaunchTasks
    is_started: bool = False
    is_stopped: bool = False
    is_failed: bool = False
    is_asked: bool = False
    errors: tuple[ErrorCard, ...] = ()
    successor: LaunchTasks | None = None
    is_keyed: bool = True  #: Stores what has changed; else all, each time.
    chain: tuple[SnapshotFile, ...] = ()
    stored: dict[TaskId, Cells] = field(default_factory=dict)  #: What the chain amounts to.
    begun: set[int] = field(default_factory=set)  #: Epochs that it was told to end.
    newest: int = 0  #: The newest epoch that is stored.
    saved: set[int] = field(default_factory=set)  #: Of them, those on their way to the disk.
    aborted: int = 0  #: The newest epoch that was given up.
    committed: int = 0  #: The newest epoch that its sinks show.


@dataclass(eq=False)
class Process:
    """One launch of an executor."""

    app_master: "AppMaster"
    executor_id: ExecutorId
    launch: int
    slots: int
    worker: Worker
    successor: Launch | None = None
    is_alive: bool = True
    is_frozen: bool = False
    is_fenced: bool = False  # The app master has given it up, and hears it no more.
    loses_output: bool = False
    inbox: list[Callable[[], None]] = field(default_factory=list)
    groups: dict[int, Group] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Its data listener."""
        return f"data:{self.executor_id}-{self.launch}"

    def group_of(self, attempt: int) -> Group | None:
        """Return its tasks of an attempt."""
        groups = self.groups.values()
        return next((each for each in groups if each.launch.attempt == attempt), None)


@dataclass(eq=False)
class Attempt:
    """How far the tasks of one attempt are; they move together."""

    number: int
    region: int
    processes: list[Process]
    progress: int
    last_session: int  #: Of the attempts before it.
    is_broken: bool = False
    is_spoiled: bool = False
    wanted: dict[int, int | None] = field(default_factory=dict)  #: Cut time of each epoch.
    missed: set[int] = field(default_factory=set)  #: Epochs whose cut time came too late.
    cuts: dict[int, int] = field(default_factory=dict)  #: Progress at the end of each epoch.
    last: int | None = None  #: The epoch behind which nothing is read.
    has_read_all: bool = False  #: That one has ended.

    @property
    def event_time_ms(self) -> int:
        """Of the newest record that was read."""
        return 10 * self.progress

    def try_to_end(self, epoch: int, *, is_at_end: bool) -> None:
        """End an epoch if all that belongs to it was read."""
        cut_time_ms = self.wanted[epoch]
        if epoch not in self.cuts and (
            cut_time_ms is None or self.event_time_ms + 10 >= cut_time_ms or is_at_end
        ):
            self.cuts[epoch] = self.progress
            self.has_read_all |= epoch == self.last

    @property
    def is_moving(self) -> bool:
        """Whether all its tasks work."""
        groups = [each.group_of(self.number) for each in self.processes]
        return not self.is_broken and all(
            process.is_alive and not process.is_frozen and group is not None and works(group)
            for process, group in zip(self.processes, groups, strict=True)
        )


def works(group: Group) -> bool:
    """Tell whether tasks run."""
    return group.is_started and not group.is_stopped and not group.is_failed


@dataclass(eq=False)
class AppMaster:
    """One launch of the app master, and what is expected of it."""

    launch: int
    manager: ApplicationCore
    newest: dict[int, Manifest]  #: What each region must begin from.
    cut_times: dict[int, int]  #: The latest one of each region.
    is_alive: bool = True
    is_active: bool = False
    faults: int = 0  #: That may each cost one restart.
    processes: dict[ExecutorId, Process] = field(default_factory=dict)
    lost_workers: list[Worker] = field(default_factory=list)
    announced: dict[int, tuple[int, int]] = field(default_factory=dict)  #: Attempt and epoch.
    reported: dict[int, int] = field(default_factory=dict)  #: Newest event time of each attempt.
    ended: Ended | None = None


def attempt_of(message: Any) -> int | str:
    """Return the attempt that a message is about, if any, for the log."""
    return getattr(message, "attempt", "")
