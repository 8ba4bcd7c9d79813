"""App master and executors: start-up, clocks, failures, end.

Every step of the start-up names the DAG version and the attempt; an executor or app master
ignores what belongs to another attempt, so that each step may be sent again.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

from gearpy.ids import FIRST_SESSION, MAX_MS, MIN_MS, ActorPath, ExecutorId, SessionId, TaskId
from gearpy.messages.summaries import ConsumerReport, ErrorCard


class RegisterExecutor(Struct, frozen=True, kw_only=True):
    """An executor is up and built the graph. ``data_address`` is its transport's listener.

    ``launch`` is that of its `LaunchExecutor`; another than the app master waits for is a zombie.
    """

    executor_id: ExecutorId
    launch: int
    executor: ActorPath
    data_address: str
    slots: int
    graph_hash: str
    graph: tuple[str, ...] = ()  # `Dag.description`: a line for each processor and edge.
    pid: int = 0
    metrics_address: str = ""  # Its page for Prometheus, if it has one.


class TaskLaunch(Struct, frozen=True, kw_only=True):
    """A task to create and the session number of its new incarnation.

    ``partition`` is that of the changelog to which its keyed state goes, too; None: there is none.
    """

    task_id: TaskId
    session: SessionId
    partition: int | None = None


class TakenGroups(Struct, frozen=True, kw_only=True):
    """Key groups in a file that a task has taken over, from ``first`` to ``last``.

    ``source`` is the task of an earlier graph that has stored them, and ``via`` the task of the
    graph just before, which had them at last.
    """

    task: TaskId
    source: TaskId
    via: TaskId
    first: int
    last: int


class SnapshotFile(Struct, frozen=True, kw_only=True):
    """A file with the state of one executor's tasks at the end of an epoch, or with its changes.

    Files of one epoch are in the order in which they are read: if two of them have the same head or
    cell, the later one counts. With a ``partition`` it is a segment of that partition of the
    changelog, and stands beside those files: read only if one of them is damaged. If something is
    ``taken``, nothing else of the file counts: it was stored by tasks of an earlier graph.
    """

    location: str
    sha256: str
    tasks: tuple[TaskId, ...]
    size_bytes: int = 0
    partition: int | None = None
    taken: tuple[TakenGroups, ...] = ()


class TaskOffsets(Struct, frozen=True, kw_only=True):
    """The places of a source task's partitions, by name: encoded `SourceReader.snapshot` results.

    A partition that has finished has empty bytes.
    """

    task_id: TaskId
    offsets: dict[str, bytes]


#: What a source leaves out before it reads on: nothing; the next record; without reading it,
#: the smallest part of a file that can be stepped over, or the rest of the file.
LeftOut: TypeAlias = Literal["", "record", "block", "file"]


class SourceProbe(Struct, frozen=True, kw_only=True):
    """How a source task reads while an input is looked for that ends processes.

    Nothing until an epoch is complete; then so many ``records`` an epoch, or so many of each of
    these ``partitions``; see `gearpy.core.app.deadly.probing`. With ``leaves_out`` it does that
    with its one partition, because of this ``cause``, and reads nothing else.
    """

    task_id: TaskId
    records: int
    partitions: tuple[str, ...] | None = None
    leaves_out: LeftOut = ""
    cause: str = ""


class LaunchTasks(Struct, frozen=True, kw_only=True):
    """Create these tasks; answered by `StepDone`. Gearpump: `LaunchTasks`.

    Tasks of an earlier attempt of the same region are stopped first. ``epoch`` is the one that
    the first records belong to. ``snapshots`` hold what the tasks go on from; empty: from the
    beginning. ``overrides`` are places of sources that count more than those in the snapshots.
    Sessions of the region before ``first_session`` are over, also where it is not known yet.
    """

    region: int
    version: int
    attempt: int
    tasks: tuple[TaskLaunch, ...]
    epoch: int = 1
    snapshots: tuple[SnapshotFile, ...] = ()
    overrides: tuple[TaskOffsets, ...] = ()
    first_session: SessionId = FIRST_SESSION
    probes: tuple[SourceProbe, ...] = ()


#: The steps of a start-up: all tasks exist; each executor can reach all of them; they run.
StartStep: TypeAlias = Literal["launching", "locating", "starting"]


class StepDone(Struct, frozen=True, kw_only=True):
    """An executor has done a step of the start-up, for all of its tasks."""

    executor_id: ExecutorId
    version: int
    attempt: int
    step: StartStep


class ReadAhead(Struct, frozen=True, kw_only=True):
    """Read the state of these tasks at an epoch; answered by `StateReadAhead`.

    They will go on from a later one, as tasks of ``version``: then only files that are not among
    ``snapshots`` are left to be read.
    """

    version: int
    region: int
    epoch: int
    tasks: tuple[TaskId, ...]
    snapshots: tuple[SnapshotFile, ...]


class StateReadAhead(Struct, frozen=True, kw_only=True):
    """The state named by `ReadAhead` is read, as far as it can be.

    ``damaged`` names a file that is missing, or not as it was stored, and ``reason`` says how that
    is seen. A reason alone: these tasks cannot read what is stored.
    """

    executor_id: ExecutorId
    version: int
    region: int
    epoch: int
    damaged: str = ""
    reason: str = ""


class TaskLocation(Struct, frozen=True, kw_only=True):
    """The tasks that an executor hosts, and the address of its data listener."""

    executor_id: ExecutorId
    data_address: str
    tasks: tuple[TaskId, ...]


class TaskLocationsReady(Struct, frozen=True, kw_only=True):
    """All tasks exist; here is where. Answered by `StepDone`."""

    version: int
    attempt: int
    locations: tuple[TaskLocation, ...]


class StartAllTasks(Struct, frozen=True, kw_only=True):
    """Run. Sources open at ``start_time_ms``, and halt at ``halt_ms``. Answered by `StepDone`.

    See `HaltSources`.
    """

    version: int
    attempt: int
    start_time_ms: int
    halt_ms: int = MAX_MS


#: "open": older records may come; "reached": none will, but late ones; "passed": records of that
#: time, or later ones, were sent before it was told; "full": too many of them wait for older ones;
#: "unable": it cannot hold records back.
HaltState: TypeAlias = Literal["open", "reached", "passed", "full", "unable"]


class SourceHalt(Struct, frozen=True, kw_only=True):
    """The event time at which a source is to halt, and whether it has come there."""

    time_ms: int
    state: HaltState


class TaskClock(Struct, frozen=True, kw_only=True):
    """The report of one task. ``clock_ms`` never moves backwards within a session.

    ``watermark_ms`` is what the task promises downstream, ``hold_ms`` the oldest event time that it
    keeps, `MAX_MS` if none. Counts are since the task's start; ``written_records`` of
    ``records_out`` left the program here.
    ``done`` of ``total`` is a source's progress in its own units; 0 of 0 where unknown.
    ``newest_ms`` is the newest event time that a source has read, ``span_ms`` how far that has been
    ahead of what it promised at most. ``consumers`` take what a sink of the task has shown.
    ``waits_for`` names something outside of the application, such as a server that is away.
    ``wants_epoch``: the task keeps so much until an epoch ends that one should end now.
    ``halt``: a source was told to halt, and has not been told to go on. ``untried``: no record has
    come to it since it was started. ``caught_up``: a source that ends at what is there has given
    all of it, or the task is none. ``open_windows`` were so many when the newest epoch ended, in
    an application that ends so. ``records_before`` had come when the task was started.
    """

    task_id: TaskId
    session: SessionId
    clock_ms: int
    watermark_ms: int
    hold_ms: int = MAX_MS
    idle: bool = False
    records_in: int = 0
    records_out: int = 0
    late_records: int = 0
    skipped_records: int = 0
    quarantined_records: int = 0
    ahead_records: int = 0
    done: int = 0
    total: int = 0
    newest_ms: int = MIN_MS
    span_ms: int = 0
    consumers: tuple[ConsumerReport, ...] = ()
    waits_for: str = ""
    wants_epoch: bool = False
    halt: SourceHalt | None = None
    untried: bool = False
    written_records: int = 0
    caught_up: bool = False
    open_windows: int = 0
    records_before: int = 0


class LongTurn(Struct, frozen=True, kw_only=True):
    """A task has been in one call for long: in which step, at which line of user code."""

    task_id: TaskId
    lasts_ms: int
    step: str = ""
    source: str = ""
    source_line: str = ""


class ReportClocks(Struct, frozen=True, kw_only=True):
    """The clocks of one executor's tasks that changed since the last report.

    ``long_turns`` are all that there are at the moment; a clock does not change meanwhile.
    """

    executor_id: ExecutorId
    clocks: tuple[TaskClock, ...]
    long_turns: tuple[LongTurn, ...] = ()


class BeginEpoch(Struct, frozen=True, kw_only=True):
    """Sources of this attempt: end epoch ``epoch``. Answered by `EpochStored`.

    They end it where they are, or, with ``cut_time_ms``, so that records older than that event
    time belong to it, wherever they stand. With ``is_last`` they read nothing more from then on.
    With ``keeps_files`` only what has changed is stored, as another version reads it soon, or
    somebody waits for it: no file is written anew. ``caught_up``: all sources had given what was
    there. Sent again when it was not answered; sources
    that have ended the epoch ignore it.
    """

    version: int
    attempt: int
    epoch: int
    cut_time_ms: int | None = None
    is_last: bool = False
    keeps_files: bool = False
    caught_up: bool = False


class HaltSources(Struct, frozen=True, kw_only=True):
    """Sources of this attempt: send nothing of this event time, or later; `MAX_MS`: go on.

    Older records go on, and so do epochs. At `MIN_MS` nothing more is read. Sent again while a
    `TaskClock` says another time.
    """

    attempt: int
    time_ms: int


class AbortEpoch(Struct, frozen=True, kw_only=True):
    """Gives up an epoch that took too long. Its snapshots are part of the next one."""

    version: int
    attempt: int
    epoch: int


class CommitEpoch(Struct, frozen=True, kw_only=True):
    """Tells that an epoch, and all before it, are complete for ever: sinks may commit them.

    Answered by `EpochCommitted`, and sent again when it was not.
    """

    version: int
    attempt: int
    epoch: int


class EpochCommitted(Struct, frozen=True, kw_only=True):
    """All sinks of the executor have committed the epoch and all before it."""

    executor_id: ExecutorId
    attempt: int
    epoch: int


class SnapshotsDamaged(Struct, frozen=True, kw_only=True):
    """Answer to `LaunchTasks` in place of `StepDone`: the tasks cannot go on from there.

    ``is_away``: the store is, and nothing is known to be damaged.
    """

    executor_id: ExecutorId
    version: int
    attempt: int
    location: str
    reason: str
    is_away: bool = False


class EpochStored(Struct, frozen=True, kw_only=True):
    """The snapshots of all tasks of the executor and attempt for an epoch are on disk.

    ``snapshots`` are all files that a restart needs, also those that earlier epochs have stored.
    ``offsets`` are where the sources among the tasks had come to. ``has_missed_cut``: a source had
    passed the event time of the cut before it was told. ``has_more``: a task has taken records
    whose results belong to a later epoch, such as those that wait for a call. Of the time since
    the epoch began to end, writing them took ``storing_ms``; None: it is not known.
    """

    executor_id: ExecutorId
    attempt: int
    epoch: int
    snapshots: tuple[SnapshotFile, ...]
    offsets: tuple[TaskOffsets, ...] = ()
    has_missed_cut: bool = False
    has_more: bool = False
    storing_ms: int | None = None


class EpochUnstored(Struct, frozen=True, kw_only=True):
    """The executor could not store an epoch, as its disk is full; it tries again when it is asked.

    Nothing is lost by that: what was not stored is part of the next epoch. With ``damaged`` it was
    to go on from this file, and the file is not what was stored: only the next epoch can be stored,
    with all that the tasks have in memory.
    """

    executor_id: ExecutorId
    attempt: int
    epoch: int
    reason: str
    damaged: str = ""


class LinkBroken(Struct, frozen=True, kw_only=True):
    """The connection to another executor's data listener is lost."""

    executor_id: ExecutorId
    address: str
    reason: str


class RecordQuarantined(Struct, frozen=True, kw_only=True):
    """An operator could not take a record; the application goes on without it."""

    executor_id: ExecutorId
    processor_id: int
    value: bytes
    event_time_ms: int
    error: ErrorCard


class InjectRecord(Struct, frozen=True, kw_only=True):
    """Give a record to a task once more, beside the records of its links.

    Answered by `RecordInjected` if the task is one of this attempt; else nothing happens.
    """

    task_id: TaskId
    attempt: int
    number: int
    value: bytes
    event_time_ms: int


class RecordInjected(Struct, frozen=True, kw_only=True):
    """The task has taken the record of this number, in this epoch.

    0, of an executor of before: it does before the end of any epoch that begins later.
    """

    executor_id: ExecutorId
    attempt: int
    number: int
    epoch: int = 0


#: Why a task has failed.
FailureKind: TypeAlias = Literal["raised", "final", "lost"]


class TaskFailed(Struct, frozen=True, kw_only=True):
    """A task raised, or lost messages; it does nothing more.

    ``kind``: after a "final" failure no restart would help; "lost" messages are the fault of the
    network, and not of the process.
    """

    executor_id: ExecutorId
    task_id: TaskId
    session: SessionId
    error: ErrorCard
    kind: FailureKind = "raised"


class ExecutorFailed(Struct, frozen=True, kw_only=True):
    """Tells that an executor cannot go on, though it lives: another one has to take its place.

    Not ``is_replaceable`` are threads of the process that all of the application runs in.
    """

    executor_id: ExecutorId
    launch: int
    error: ErrorCard
    is_replaceable: bool = True


class StopAllTasks(Struct, frozen=True, kw_only=True):
    """Call `on_stop` of every task, then answer `TasksStopped`.

    ``completed`` tells sinks that the stream has ended well.
    """

    version: int
    attempt: int
    completed: bool


class TasksStopped(Struct, frozen=True, kw_only=True):
    """All tasks have stopped. ``errors`` holds the errors raised by `on_stop`."""

    executor_id: ExecutorId
    version: int
    attempt: int
    errors: tuple[ErrorCard, ...] = ()


class SettleTasks(Struct, frozen=True, kw_only=True):
    """Settle the transactions that these tasks left open, as their process is gone; no answer.

    See `Sink.settle`.
    """

    tasks: tuple[TaskId, ...]


ExecutorMessage: TypeAlias = (
    LaunchTasks
    | ReadAhead
    | TaskLocationsReady
    | StartAllTasks
    | StopAllTasks
    | SettleTasks
    | BeginEpoch
    | HaltSources
    | AbortEpoch
    | CommitEpoch
    | InjectRecord
)
