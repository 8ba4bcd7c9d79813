"""Applications, workers and failures as people see them: parts of reports and of answers."""

from typing import Final, Literal, TypeAlias

from msgspec import field

from gearpy.ids import AppId, ExecutorId, WorkerId
from gearpy.messages.served import Served

#: The end of an application: that of its input, or when it has read what was there as it began.
Until: TypeAlias = Literal["end", "caught-up"]
#: Gearpump: `ApplicationStatus`. The last three are final.
ApplicationStatus: TypeAlias = Literal["pending", "active", "succeeded", "failed", "terminated"]
DeploymentState: TypeAlias = Literal["waiting", "starting", "running", "stopping", "done"]


class ErrorCard(Served, frozen=True, kw_only=True):
    """A failure, for people: its cause, its place, and its record. See `OperatorError`.

    ``epoch`` is the one in which it happened, if the task can be run again up to there; else 0.
    ``is_away``: a store cannot be used at present; see `StoreAway`.
    """

    cause: str
    operator: str = ""
    task: str = ""
    source: str = ""
    source_line: str = ""
    record: str = ""
    event_time_ms: int | None = None
    traceback: str = ""
    epoch: int = 0
    is_away: bool = False


#: `ApplicationProgress.waits_for` says so first of a store that is away, full, or fails.
STORE: Final = "its store: "


class ApplicationProgress(Served, frozen=True, kw_only=True):
    """The progress of an application. Counts are since its start; ``done`` of ``total`` if known.

    ``stall`` tells what holds the application clock when it has stood still for too long;
    ``waits_for`` what a source or sink waits for outside of the application, such as a server
    that is away, or with `STORE` what keeps its epochs from being stored.
    ``drained``: its sources were stopped before their end, and all that they had read is shown.
    ``caught_up``: it has read all that was there, as ``until`` of its `Artifact` asks for, and can
    go on; ``open_windows`` have stayed open. ``records_before`` of ``records_in`` were read before
    its app master was started, such as by an earlier run.
    ``savepoint`` is the name that its last epoch got then. ``last_failure`` tells why tasks are
    being started again, until all run.
    """

    records_in: int = 0
    records_out: int = 0
    late_records: int = 0
    skipped_records: int = 0
    quarantined_records: int = 0
    ahead_records: int = 0
    restarts: int = 0  # The master adds those under app masters before this one.
    epoch: int = 0  # Newest epoch that a restart would go back to; 0: none yet.
    watermark_ms: int | None = None
    done: int = 0
    total: int = 0
    stall: str = ""
    waits_for: str = ""
    drained: bool = False
    savepoint: str = ""
    last_failure: str = ""
    caught_up: bool = False
    open_windows: int = 0
    records_before: int = 0

    @property
    def left_out(self) -> dict[str, int]:
        """The numbers of records that were left out, by the reason, without zeros."""
        counts = {
            "ahead": self.ahead_records,
            "skipped": self.skipped_records,
            "quarantined": self.quarantined_records,
        }
        return {why: count for why, count in counts.items() if count}


class ApplicationSummary(Served, frozen=True, kw_only=True):
    """One application as `gear info` shows it. Times are wall time in ms since the epoch.

    ``app_master`` is the path of its app master, and ``worker_id`` the worker of its newest launch.
    """

    app_id: AppId
    name: str
    status: ApplicationStatus
    user: str = ""
    submitted_ms: int = 0
    started_ms: int = 0
    finished_ms: int = 0
    progress: ApplicationProgress = field(default_factory=ApplicationProgress)
    cause: ErrorCard | None = None
    app_master: str = ""
    worker_id: WorkerId | None = None

    @property
    def outcome(self) -> str:
        """Its status for people, who want to know more of some ends."""
        progress = self.progress
        return "caught up" if progress.caught_up else "drained" if progress.drained else self.status

    @property
    def can_go_on(self) -> bool:
        """Whether it keeps what it has stored, so that it goes on from there when started again."""
        return self.status != "succeeded" or self.progress.caught_up

    def __repr__(self) -> str:
        done = self.progress
        why = "" if self.cause is None else f": {self.cause.cause}"
        less = "".join(f", {count:,} {reason}" for reason, count in done.left_out.items())
        return (
            f"<{self.name!r} {self.outcome}: {done.records_in:,} "
            f"records in, {done.records_out:,} out, {done.late_records:,} late{less}{why}>"
        )

    def _repr_html_(self) -> str:
        from html import escape  # noqa: PLC0415 - only in notebooks

        name, rest = escape(self.name), escape(repr(self).partition("' ")[2].removesuffix(">"))
        return f"<div><b>{name}</b> {rest}</div>"


class WorkerSummary(Served, frozen=True, kw_only=True):
    """One worker as `gear info` shows it."""

    worker_id: WorkerId
    slots: int
    free_slots: int
    address: str = ""  # Its control listener; empty within the master's process.
    executors: int = 0
    hosts: tuple[str, ...] = ()  # Names of its machine.
    rack: str = ""
    is_leaving: bool = False  # It takes nothing new, and ends when what runs there has stopped.
    aside_until_ms: int = 0  # Wall time until which it gets nothing new, as it came and went.
    version: str = ""  # Its gearpy's; empty if that is too old to say it.

    def __repr__(self) -> str:
        place = f" at {self.address}" if self.address else ""
        return (
            f"<worker {self.worker_id}{place}: {self.slots - self.free_slots:,} of {self.slots:,} "
            f"slots in use, {self.executors} executors{', leaving' * self.is_leaving}>"
        )


class ExecutorSummary(Served, frozen=True, kw_only=True):
    """One executor of an application; ``metrics_address`` is empty without a page of metrics."""

    executor_id: ExecutorId
    launch: int
    worker_id: WorkerId
    slots: int
    status: Literal["launching", "running"]
    pid: int = 0
    data_address: str = ""
    tasks: tuple[str, ...] = ()
    metrics_address: str = ""

    def __repr__(self) -> str:
        return (
            f"<executor {self.executor_id} on worker {self.worker_id}: {self.status}, process "
            f"{self.pid}, {self.slots} slots, tasks {', '.join(self.tasks) or 'none'}>"
        )


class ProcessorSummary(Served, frozen=True, kw_only=True):
    """One processor of an application, counts over all its tasks.

    ``steps`` are the names of its steps, in the order in which a record meets them. ``birth_ms`` is
    the event time from which on it takes the place of another one; None: of none. ``idle_tasks`` is
    how many of its tasks have nothing to give at present, and hold no clock back; ``idle_ms`` for
    how long that is so of all of them, 0 if it is not.
    """

    processor_id: int
    name: str
    parallelism: int
    clock_ms: int | None
    records_in: int = 0
    records_out: int = 0
    late_records: int = 0
    skipped_records: int = 0
    quarantined_records: int = 0
    steps: tuple[str, ...] = ()
    birth_ms: int | None = None
    idle_tasks: int = 0
    idle_ms: int = 0

    def __repr__(self) -> str:
        return (
            f"<processor {self.processor_id} {self.name!r}: {self.parallelism} tasks, "
            f"{self.records_in:,} records in, {self.records_out:,} out, {self.late_records:,} late>"
        )


class EdgeSummary(Served, frozen=True, kw_only=True):
    """A stream from one processor to another, spread by the named partitioner."""

    source: int
    target: int
    partitioner: str


class RegionSummary(Served, frozen=True, kw_only=True):
    """A part of the graph that restarts as a whole, and whether its tasks run.

    Attributes:
        state: *waiting* for executors, or for the end of a pause; *starting*; *running*;
            *stopping*, to start again or to end; *done*.
        from_epoch: the epoch that its present or next start goes on from; 0: the beginning.
    """

    region: int
    state: DeploymentState
    from_epoch: int = 0
    tasks: int = 0
    executors_missing: int = 0
    pause_ms: int = 0


class Failure(Served, frozen=True, kw_only=True):
    """Something that went wrong and was survived, or not. ``at_ms`` is wall time."""

    at_ms: int
    what: str
    error: ErrorCard


class ClockHolderSummary(Served, frozen=True, kw_only=True):
    """One link of the chain from a source to the holder of the clock; see `ClockService.why`."""

    task: str
    name: str
    clock_ms: int | None
    watermark_ms: int | None
    waits_for: str


class LongTurnSummary(Served, frozen=True, kw_only=True):
    """A task has been in one call for so long, in a step, at a line of user code."""

    task: str
    step: str
    lasts_ms: int
    source: str
    source_line: str


class EpochsSummary(Served, frozen=True, kw_only=True):
    """The epochs of one region: the newest complete one, and counts of those that failed.

    ``stored_ms`` is wall time; like ``epoch`` it is 0 when there is none. Epochs that were given
    up, or gone back behind, are counted from the launch of the app master on.
    """

    region: int
    epoch: int
    stored_ms: int
    size_bytes: int
    kept: int
    aborted: int = 0
    last_abort: str = ""
    fallbacks: int = 0


class ConsumerReport(Served, frozen=True, kw_only=True):
    """A consumer of the output of a sink, and its progress, as the task of the sink knows it.

    Attributes:
        batch_id: the last batch that it has taken; 0 for none.
        waiting_since_ms: wall time since when it has taken nothing though there is something; 0
            if there is nothing.
    """

    name: str
    batch_id: int = 0
    rows: int = 0
    rows_per_s: float = 0.0
    waiting_rows: int = 0
    waiting_since_ms: int = 0
    trouble: str = ""


class ConsumerSummary(Served, frozen=True, kw_only=True):
    """The sink of a consumer, and the last report of the task of that sink."""

    sink: str
    task: str
    report: ConsumerReport


class ScaleBounds(Served, frozen=True, kw_only=True):
    """The bounds within which autoscale chooses how many tasks a step has.

    Attributes:
        least: the fewest tasks.
        most: the most tasks.
        busy: the share of its time that a task should work, from 0.1 to 0.9.
    """

    least: int
    most: int
    busy: float = 0.7


class ScaledStep(Served, frozen=True, kw_only=True):
    """A step whose tasks autoscale chooses, or the executors, which have an empty id.

    Attributes:
        tasks: how many there are.
        work: how many tasks would be busy all the time with what there is to do; None: not known.
        text: the last decision about it, or the reason why there is none, for people.
        at_ms: when that was decided, as wall time; 0 if there was no decision.
    """

    step: str
    tasks: int
    bounds: ScaleBounds
    work: float | None = None
    text: str = ""
    at_ms: int = 0


class ChangeSummary(Served, frozen=True, kw_only=True):
    """A change of the program that is not over: its version is to come, or on trial.

    Attributes:
        version: the number of that version.
        change: the kind of the change, for people, such as "scale visits=8".
        doing: the part of it that is under way, for people.
        at_event_ms: the event time at which it is made; None: as soon as it can be.
        may_be_called_off: it can still be given up.
    """

    version: int
    change: str
    doing: str
    by: str = ""
    at_ms: int = 0
    at_event_ms: int | None = None
    may_be_called_off: bool = False


class ApplicationDetail(Served, frozen=True, kw_only=True):
    """The details of an application, beside its summary, as its app master knows them.

    ``guarantees`` says for each path from a source to a sink what is promised; ``lag_ms`` how long
    ago the sources had read what the slowest task has processed, open windows apart. One
    ``of_actors`` has executors and no processors. ``known_ms`` is above 0 if its app master went
    without a word: it is the wall time at which this was so. ``has_savepoints``: its last epoch
    can be given a name. ``unstored``: which executors cannot store the present epoch, and why.
    ``change``: the change of its program that is under way, or waits for its event time.
    """

    app_id: AppId
    executors: tuple[ExecutorSummary, ...] = ()
    processors: tuple[ProcessorSummary, ...] = ()
    failures: tuple[Failure, ...] = ()  # The latest, oldest first.
    restarts: int = 0
    epoch: int = 0
    why: tuple[ClockHolderSummary, ...] = ()
    lag_ms: int = 0
    long_turns: tuple[LongTurnSummary, ...] = ()
    guarantees: tuple[str, ...] = ()
    epochs: tuple[EpochsSummary, ...] = ()
    consumers: tuple[ConsumerSummary, ...] = ()
    edges: tuple[EdgeSummary, ...] = ()
    regions: tuple[RegionSummary, ...] = ()
    scaled: tuple[ScaledStep, ...] = ()
    of_actors: bool = False
    known_ms: int = 0
    has_savepoints: bool = True
    unstored: tuple[str, ...] = ()
    change: ChangeSummary | None = None

    def __repr__(self) -> str:
        lines = [f"application {self.app_id}: epoch {self.epoch}, {self.restarts} restarts"]
        lines += [repr(each)[1:-1] for each in (*self.processors, *self.executors)]
        lines += [f"failure: {each.error.cause}" for each in self.failures]
        return "<" + "\n  ".join(lines) + ">"
