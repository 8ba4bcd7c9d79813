"""The classes that users derive from: tasks, sources and sinks.

A task is driven by one `TaskRunner` and never called by two threads at once. It sends by
`TaskContext.output`, or by returning its messages, lazily: a returned iterator is pulled only
while the tasks downstream can take more, so even an endless answer to one record stays within the
flow-control window.
"""

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple

from gearpy.config.schema import SparkConfig
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, AppId, ExecutorId, TaskId
from gearpy.messages.app import SourceProbe
from gearpy.messages.data import Batch, Message
from gearpy.messages.summaries import ConsumerReport
from gearpy.messages.type_variables import In_contra, Out_co, T_co, T_contra
from gearpy.metrics.user import UserMetrics
from gearpy.state.keyed import KeyedState
from gearpy.state.kinds.timers import KeyTimer
from gearpy.task.api.counters import TaskCounters
from gearpy.task.api.keyed import KeyedTask
from gearpy.task.api.readers import Discovery, SourceReader
from gearpy.task.api.rejects import Rejects
from gearpy.task.api.sides import Side
from gearpy.transport.loop.coroutines import NO_COROUTINES, Coroutines

if TYPE_CHECKING:
    from gearpy.columns.row_schema import RowSchema

__all__ = [
    "FINISHED",
    "Batch",
    "Discovery",
    "Message",
    "PacedWriter",
    "RefusedRecord",
    "Sink",
    "SinkContext",
    "SinkWriter",
    "Source",
    "SourceReader",
    "Task",
    "TaskContext",
    "TaskCounters",
    "TaskLimits",
    "TransactionalWriter",
]

#: `Task.produce` returns this when it will never produce again.
FINISHED: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """The bounds of a task's work at a time."""

    batch_records: int = 1024  #: Records of one output batch.
    read_batch_records: int = 1024  #: Records read from a source at a time.
    idle_poll_ms: int = 10  #: Wait before a source with nothing to give is asked again.
    brisk_poll_ms: int = 10  #: The same, where it has given something just now.
    woken_poll_ms: int = 10  #: The same, where it tells when there is more.
    held_records_max: int = 1_000_000  #: Held back by a source while an epoch ends by event time.
    columnar_batch_records: int = 65_536  #: Rows of a table, also of one read from a source.
    spark: SparkConfig = field(default_factory=SparkConfig)  #: Of a hand-off to Spark.
    until_caught_up: bool = False  #: Sources end at what is there when they are opened.


@dataclass(slots=True)
class TaskContext(Generic[Out_co]):
    """The surroundings of a task, and its means to act on them. Gearpump: `TaskContext`.

    Belongs to the task's own thread of work: use it only inside the task's methods.
    """

    task_id: TaskId
    parallelism: int  #: Number of tasks of this task's processor.
    operator: str  #: Name of the processor, for messages to people.
    app_id: AppId
    app_name: str
    executor_id: ExecutorId
    output: Callable[[Message[Out_co | Side]], None]
    """Send one message to every downstream processor. Gearpump: `TaskContext.output`."""
    schedule: Callable[[int, object], None]
    """``schedule(delay_ms, payload)``: call `Task.on_timer` with the payload after the delay."""
    update_watermark: Callable[[int], None]
    """Promise of a task without inputs: no later message is older than this (ms). `MAX_MS`
    ends its stream. Gearpump: `TaskContext.updateWatermark`."""
    set_idle: Callable[[bool], None]
    """A task without inputs says that it has nothing to give and holds no clock back."""
    send_unmanaged: Callable[[TaskId, Any], None]
    """Send a value outside of flow control: not counted, not replayed."""
    upstream_min_clock: Callable[[], int]
    """The watermark of the task's inputs, ms. Gearpump: `TaskContext.upstreamMinClock`."""
    now_ms: Callable[[], int]
    """Wall time in ms since the epoch (virtual in tests)."""
    log: logging.Logger
    limits: TaskLimits
    config: Mapping[str, Any] = field(default_factory=dict)
    resume: Any = None
    """What `Task.snapshot` returned as the epoch ended that it goes on from; None at first."""
    offsets: Mapping[str, Any] = field(default_factory=dict)
    """Places of partitions that count more than those in ``resume``; set by hand."""
    run: str = ""
    """Of this run of the application, alike in all tasks and after restarts; no other has it."""
    incarnation: int = 0
    """Number of this start of the task; in one run a later start has a greater one."""
    epoch: int = 1
    """The epoch that the records belong to which the task gets; in `Task.snapshot`, the one that
    has ended."""
    has_caught_up: bool = False
    """All sources have given what was there when they were opened, and the next epoch to end is the
    last one of this run."""
    worked_ms: Callable[[], int] = lambda: 0
    """The ms in which the task has worked, or waited for room, since it was started."""
    sources: int = 0
    """How many sources its records may come from; 0 if that is not known."""
    sees_late: bool = False
    """Whether messages that it puts out may have a `LateTime`; batches tell it of themselves."""
    in_any_order: bool = False
    """Whether results of several keys may come in another order when it goes on from state."""
    keyed: KeyedTask | None = None
    counters: TaskCounters = field(default_factory=TaskCounters)
    rejects: Rejects = field(default_factory=Rejects)
    """Where gearpy's own operators leave records on which user code raised."""
    wake: Callable[[], object] = lambda: None
    """Have the task look at `Task.wake_ms` soon. This one may be called on any thread."""
    metrics: UserMetrics = field(default_factory=UserMetrics)
    """Makes metrics of the program's own: ``context.metrics.counter("orders").add(1)``."""
    step_ids: Sequence[str] = ()
    """Ids of gearpy's own stages in a chain, by place."""
    coroutines: Coroutines = NO_COROUTINES
    """Runs user code that is asynchronous, for gearpy's own operators."""
    is_rerun: bool = False
    """The task runs again, alone, to look at what it did: nothing may be committed."""
    probe: SourceProbe | None = None
    """Set while an input is looked for that ends processes."""
    wants_epoch: bool = False  #: The epoch is to end before its time.
    shown: Callable[[Sequence[Any], Sequence[int]], None] | None = None
    """Is told of the records that sinks get, with their event times."""

    def output_to(self, tag: str, message: Message) -> None:
        """Send one message to the side output of this name; `Stream.side` returns its stream."""
        self.output(Message(Side(tag, message.value), message.timestamp))

    @property
    def state(self) -> KeyedState:
        """State for each key, which comes back after a restart, and timers.

        The key is that of the record, if the stream is grouped by key; without one there is one
        state for the task as a whole. That is also the one that `Task.on_watermark` finds.

        Raises:
            ConfigError: the task is not `Task.aligned`.
        """
        if self.keyed is None:
            raise ConfigError("this context has no keyed state: it was made by hand")
        return self.keyed.state


class Task(Generic[In_contra, Out_co]):
    """An operator: gets records of its inputs in order, sends records downstream.

    Override `on_next` (a message at a time) or `on_batch` (all at once, faster), or `produce`
    for a task without inputs. Made on the executor, at the start: the constructor may open
    nothing, `on_start` may. Gearpump: `Task`.

    A task that keeps something between messages overrides `snapshot`, and in `on_start` goes on
    from `TaskContext.resume`. Then a restart after a failure loses nothing: the sources go back
    to where they were at the same moment. A task without `snapshot` restarts empty.

    The rule for a record on which it raises is set by ``application.on-error``: the tasks are
    restarted, or the record is dropped. The output of `on_next` for it is then taken back, as
    far as it has not been sent; its changes in the task are not. When `on_batch` raises, the
    record is not known, unless it was one alone: more are always a failure.
    """

    #: Records of a later epoch wait until all inputs have ended the one before. Where this is false
    #: they do not: `TaskContext.epoch` is then that of the record, output for them waits
    #: instead, and `snapshot` must leave out the state of later epochs. If too much waits, links
    #: that are ahead do wait. There is no `TaskContext.state` then.
    aligned: ClassVar[bool] = True
    #: State expires by a watermark behind `on_watermark`, not before.
    keeps_state_until_told: ClassVar[bool] = False
    #: It counts the records that leave the stream here in `TaskCounters.records_out` itself. In
    #: another task without downstream, the records that it takes count.
    counts_output: ClassVar[bool] = False
    #: What it puts out for a record has the event time of that record. Where this is false nobody
    #: behind it takes records for ordered because those of the source are.
    keeps_times: bool = False
    #: Its batches say themselves which records are late, and of which origin they are. In another
    #: task all output for a late record is late, as far as it is older than what was promised
    #: before that record.
    marks_late: ClassVar[bool] = False

    #: `produce` is called before its time when `TaskContext.wake` was, and when an epoch has ended.
    is_woken: bool = False

    #: `produce` may not come back for long: what it put out before is sent first.
    produce_may_block: bool = False

    #: `has_room` or `may_end_epoch` may be false, `wake_ms` may be a time; asked behind `on_start`.
    may_wait: bool = True
    may_wake: bool = True

    def __init__(self, context: TaskContext[Out_co]) -> None:
        self.context = context

    def on_start(self, start_time_ms: int) -> None:
        """Start; sources go to ``start_time_ms`` (`MIN_MS` on a first start)."""

    def on_next(self, message: Message[In_contra]) -> Iterable[Message[Out_co | Side]] | None:
        """Take one message. The returned messages are sent, pulled as fast as downstream allows."""
        raise NotImplementedError(f"{type(self).__name__} has inputs but no on_next or on_batch")

    def on_batch(self, batch: Batch[In_contra]) -> Iterator[Batch[Out_co] | None] | None:
        """Take many messages. Not called for tasks that only have `on_next`.

        Their keys may differ: see `KeyedState.keys_of`, or set ``context.state.key`` for each.
        """
        raise NotImplementedError

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch[Out_co] | None] | None:
        """Learn that no older record will come (late ones excepted); `MAX_MS` is the end.

        The returned batches are sent before the watermark is passed on.
        Gearpump: `Task.onWatermarkProgress`.
        """
        return None

    def produce(self) -> int | Generator[Batch[Out_co] | None, None, int]:
        """Send some messages on one's own; called while downstream has room.

        A task without inputs ends its stream when this returned `FINISHED` and no timer is left.
        Its epochs end between two calls, so a generator must not go on for ever.

        Returns:
            0 to be called again at once, a number of ms to wait first, or `FINISHED`; or a
            generator that yields batches to send and returns such a number.
        """
        return FINISHED

    def on_timer(self, payload: object) -> Iterable[Message[Out_co | Side]] | None:
        """Take the payload given to `TaskContext.schedule`, when its time has come.

        The returned messages are sent.
        """

    def on_key_timer(self, timer: KeyTimer) -> Iterable[Message[Out_co | Side]] | None:
        """Take a timer of ``context.state.timers`` that is due; the state's key is the timer's.

        The returned messages are sent. Timers on event time come before `on_watermark`. Timers on
        wall time do not fire any more when the task's clock has come to the end of the stream; as
        long as `hold_ms` says that something is kept, it does not.
        """

    def before_snapshot(self) -> Iterable[Batch[Out_co]]:
        """Return the records to send before an epoch ends, rather than keep in its snapshot."""
        return ()

    def snapshot(self) -> Any:
        """Return all that the task keeps, to go on from it after a restart.

        Called between records, at the end of each epoch. Plain data: numbers, text, bytes,
        lists, dicts, tuples, sets, times and classes known to `gearpy.register_record`. It is
        encoded at once, so it need not be copied. With it goes what `TaskContext.schedule` was
        given and is not due yet: these timers are there again when `on_start` is called with a
        ``resume``. One whose payload is no such data is left out, and this is logged.
        """
        return None

    def on_commit(self, epoch: int) -> None:
        """Learn that an epoch, and all before it, are complete: no restart goes back before it.

        Called once for an epoch at most, some time after `snapshot`; not for every epoch, and
        after a restart not for the one that the task goes on from.
        """

    def begin_cut(self, cut_time_ms: int) -> bool:
        """Take an event time: records older than that end an epoch, newer ones are held back.

        For tasks without inputs; the epoch ends when `is_cut` has become true. A change at an event
        time also waits until the watermark is there: promise it where the task halts.

        Returns:
            False if a record that is not older was sent already.
        """
        return True

    @property
    def is_cut(self) -> bool:
        """Whether all records that belong to the epoch that `begin_cut` ends were sent."""
        return True

    def end_cut(self) -> None:
        """Go on behind the end of the epoch; send the records that were held back first."""

    def offsets(self) -> Mapping[str, Any]:
        """Return where a task that reads a source is, by partition; called after `snapshot`."""
        return {}

    def on_unmanaged(self, value: Any) -> Iterable[Message[Out_co | Side]] | None:
        """Take a value sent outside of flow control. The returned messages are sent.

        Gearpump: `receiveUnManagedMessage`.
        """

    def on_stop(self, *, completed: bool) -> None:
        """Release the resources of `on_start`; ``completed`` when the stream has ended well."""

    @property
    def hold_ms(self) -> int:
        """Oldest event time of records that this task keeps and still has to send, or `MAX_MS`."""
        return MAX_MS

    @property
    def wake_ms(self) -> int | None:
        """Wall time, in ms since the epoch, at which `on_wake` is to be called; None: not at all.

        Asked again and again, so this must be quick; a time that has passed means now. It may
        change from outside if `TaskContext.wake` is called then.
        """
        return None

    def on_wake(self, now_ms: int) -> Iterator[Batch[Out_co]] | None:
        """Learn that `wake_ms` has come. Returned batches are sent; at most one call in each ms."""
        return None

    @property
    def has_room(self) -> bool:
        """Whether the task takes records. If not, none is given to it.

        A job, the iterator that `on_batch` or `produce` returns, that yields None while there is no
        room is left until there is. `on_wake` makes room.
        """
        return True

    @property
    def is_at_rest(self) -> bool:
        """Whether watermarks and ends of epochs may come, though there may be no room for records.

        Else an application that is drained waits for the room, also if no record was read.
        """
        return self.has_room

    @property
    def may_end_epoch(self) -> bool:
        """Tell whether an epoch may end now: else it and all behind wait, as without `is_at_rest`.

        It must become true again without them.
        """
        return True

    @property
    def epoch_fill(self) -> float:
        """The share in use of the room for records that are kept until the epoch ends.

        Well before it reaches 1 the epoch ends early, and a source waits.
        """
        return 0.0

    @property
    def is_working(self) -> bool:
        """Whether results of records that it has taken will come without more input, and soon.

        Then an application that is drained waits for them.
        """
        return False

    @property
    def passes_ms(self) -> int:
        """The highest watermark that is passed on; `MAX_MS` if nothing holds one up."""
        return MAX_MS

    @property
    def is_delivered(self) -> bool:
        """Whether the end of the stream need not wait for consumers of committed records.

        Asked after `on_commit`; where it is false, the app master does not hear of the commit, and
        so does not end the application, until it has become true. `TaskContext.wake` has it asked
        again.
        """
        return True

    def consumers(self) -> Sequence[ConsumerReport]:
        """Return the consumers of a sink of this task, and how far they are."""
        return ()

    @property
    def waits_for(self) -> str:
        """The thing outside that this task waits for; see `SourceReader.waits_for`."""
        return ""

    @property
    def is_caught_up(self) -> bool:
        """Whether a task without inputs has given all that was there when it was started.

        Asked where the application ends "caught-up": it does so when all have, and
        goes on from their snapshots when it is started again.
        """
        return False


class Source(ABC, Generic[T_co]):
    """The origin of records: a number of partitions, each read by one task.

    After a restart a partition is opened at its last snapshot, or, if the source is not
    ``replayable``, with None: it gives the records that come from then on, and those read since
    the snapshot are lost. An exception of a source itself is a failure under any
    ``application.on-error``, as the next records are not known.

    Built with the graph, in every process, it opens nothing before `open`. Gearpump: `DataSource`.
    """

    replayable: bool = False  #: A partition opened at a snapshot gives the same records again.
    bounded: bool = False  #: Every partition finishes.
    is_by_arrival: bool = False  #: All readers will say so; see `SourceReader.is_by_arrival`.
    discovers: bool = False  #: Partitions are found while it is read: `discover` returns a finder.
    sets_bad_aside: bool = False  #: Readers give bad records apart, for `Stream.errors`.
    quarantines_bad: bool = False  #: Readers give bad records apart, for quarantine.
    of_program: bool = False  #: Of the program's own process, as `stdin` is: it is read there.
    #: To read calls code of a program, which may wait at any time: its tasks have threads of their
    #: own, and what was read is sent, and told of, before more is asked for.
    calls_program: bool = False
    time_column: str | None = None  #: Event times come from it; "": from none; None: unknown.

    @property
    def note(self) -> str:
        """What it does to values, for people who look at a plan; empty for nothing."""
        return ""

    @abstractmethod
    def partitions(self) -> Sequence[str]:
        """Return the names of the partitions, stable over restarts."""

    @abstractmethod
    def open(self, partition: str, resume: Any | None) -> SourceReader[T_co]:
        """Open a partition at the start, or where a snapshot of it was taken."""

    def discover(self, task_index: int, parallelism: int, resume: Sequence[Any]) -> Discovery[T_co]:
        """Return the finder of one task's partitions, where the source ``discovers`` them.

        `partitions` is then empty, and `open` is not called. A partition belongs to the task that
        `partition_number` says.

        Args:
            task_index: of the task.
            parallelism: number of tasks.
            resume: of all tasks that there were, the snapshots of their finders; empty at first.
        """
        raise NotImplementedError(f"{type(self).__name__} discovers, and has no discover")

    def narrowed(self, columns: Collection[str] | None, conditions: Sequence[Any]) -> "Source":
        """Return a source that may leave out what no step takes; places in it stay the same.

        The planner asks one that gives columns. What is left out is never missed: records are
        filtered again, and columns are taken by name.

        Args:
            columns: names of those that are taken; None: all.
            conditions: expressions that are true of each record that goes on.
        """
        return self

    def renewed(self) -> "Source":
        """Return a source that looks again for its input, such as new files; for a table."""
        return self

    def up_to_now(self) -> "Source":
        """Return a source of the same records whose partitions finish at what is there.

        For an application that ends when it has caught up, and is started again for what has come
        since. A reader finds out what is there when it is opened, and has ``finished`` when it has
        given that. The next run opens the same partition at its last `SourceReader.snapshot`, so
        that must not say where to end. By default that is a source that is ``bounded``, as it is.

        Raises:
            ConfigError: it has no end, and cannot tell what is there now.
        """
        if self.bounded:
            return self
        raise ConfigError(
            f"{self.description} cannot tell what is there now, so a run cannot end when it has "
            f"caught up: let {type(self).__name__} say it with up_to_now(), or give it an end"
        )

    def version(self) -> str | None:
        """Return a text that changes whenever the source's records have changed, at little cost.

        None: that is not known without reading it. A table that is refreshed is read again only if
        this is None, or has changed.
        """
        return None

    def hosts(self) -> Sequence[str]:
        """Return the names of the machines that have its data; none where nobody knows.

        Asked once, when an application starts on a cluster: its executors are better there.
        """
        return ()

    @property
    def schema(self) -> "RowSchema | None":
        """The columns of the tables that readers give; None where they give rows."""
        return None

    @property
    def description(self) -> str:
        """Short text for plans and messages."""
        return type(self).__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkContext:
    """The context of a writer: application, name and limits."""

    app_id: AppId
    app_name: str
    operator: str  #: The sink's name, for people.
    limits: TaskLimits
    wake: Callable[[], object]
    """Have the task ask its writer again soon. This one may be called on any thread."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """Of results of windows and joins: columns of the key, and their Arrow types; None if the
    program does not tell one."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Of records, and of the values of results: Arrow types of fields, as far as the program tells
    them. The first records may have other values all the same."""
    schema: "RowSchema | None" = None
    """Of records that come with one, or did at an earlier step: all of their fields."""


class SinkWriter(ABC, Generic[T_contra]):
    """Writes the records of one task.

    After a restart records are written again from the last complete epoch on: at least once.
    With `snapshot` and `restore` a writer can take back records written since then, and so
    write each record once. Calls come in this order: `begin` and `restore` once; `write_batch`,
    `on_watermark` and `snapshot`; `close`.
    """

    #: A `write_batch` that raises an `OperatorError`, which names a record, has written nothing.
    #: By ``application.on-error`` the records are then written one by one. Of another writer
    #: the bad record is not known, unless it was one alone: more are always a failure.
    atomic: ClassVar[bool] = False
    #: It goes on with a state of this run: the place that it writes to was there before.
    resumes: bool = False

    def begin(self, context: SinkContext) -> None:
        """Learn the context of the writer."""

    def restore(self, state: Any) -> None:
        """Go on from the return value of `snapshot`; with None begin afresh.

        None does not mean that nothing was written: a task may have failed before the end of
        the first epoch.
        """

    @abstractmethod
    def write_batch(self, batch: Batch[T_contra]) -> None:
        """Write the records; may block, which slows the stream down."""

    def on_watermark(self, watermark_ms: int) -> None:
        """Learn how far event time has come."""

    def snapshot(self) -> Any:
        """Make the records written so far durable, and return the position, as plain data.

        Called at the end of each epoch. Once it has returned, records written before are not
        written again; later ones may be.
        """
        return None

    def consumers(self) -> Sequence[ConsumerReport]:
        """Return the consumers of the written records, and how far they are; asked often."""
        return ()

    @property
    def epoch_fill(self) -> float:
        """The share in use of the room for records kept until the epoch ends: `Task.epoch_fill`."""
        return 0.0

    @property
    def waits_for(self) -> str:
        """The thing outside that it waits for; see `SourceReader.waits_for`."""
        return ""

    def close(self, *, completed: bool) -> None:
        """Flush and release; ``completed`` when the stream has ended well."""


class TransactionalWriter(SinkWriter[T_contra]):
    """Writes so that readers see a record when its epoch is complete, and not before.

    Calls come in this order: `restore`, then `recover` once; `write_batch`, `on_watermark`;
    `prepare`, then `snapshot` at the end of each epoch; `commit` some time later, when more may
    have been written; `close`. The end of a bounded stream is the end of an epoch: before `close`
    with ``completed`` all is committed. A writer that keeps nothing but what `prepare` returns
    needs neither `restore` nor `snapshot`.
    """

    @abstractmethod
    def recover(
        self, prepared: Mapping[int, Any], *, epoch: int, run: str, incarnation: int
    ) -> None:
        """Begin, or go on from the end of an epoch, no matter which process has written before.

        Args:
            prepared: the results of `prepare` for the epochs up to ``epoch`` that may not be
                committed yet, oldest first: commit them.
            epoch: everything of this run that was written by this task for later epochs must
                vanish, committed records too; 0 at the beginning.
            run: name of the run of the application; records of other runs stay.
            incarnation: number of this start of the task. In one run a later start has a greater
                one, so a task that finds a greater one was given up, and must not write; between
                runs the numbers tell nothing.
        """

    @abstractmethod
    def prepare(self, epoch: int) -> Any:
        """Make the records since the last call durable, so that `commit` cannot fail.

        Returns:
            Plain data that tells `commit` or `recover`, in any process, which records to
            commit; None when nothing was written.
        """

    @abstractmethod
    def commit(self, epoch: int, prepared: Any) -> None:
        """Make the records of `prepare` visible; doing so again changes nothing."""

    def leave(self) -> None:
        """Learn, behind `recover`, that this task is no more, as the sink has fewer now.

        Another task has opened the writer to commit what was prepared. No records follow, nor is
        `prepare` called; it is closed when all is committed.

        Raises:
            GearpyError: records come again that only this task can leave out.
        """


class RefusedRecord(NamedTuple):
    """A record that a consumer refuses for good, with its event time and the error."""

    value: Any
    timestamp: int
    error: Exception


class PacedWriter(TransactionalWriter[T_contra]):
    """Hands committed records to a consumer, on a thread of its own, as fast as that takes them.

    Its answers here may change at any time, on any thread; it calls `SinkContext.wake` then.
    """

    #: Records that the task takes out, and deals with by ``application.on-error``. Until it has
    #: done so the writer says that they are not delivered, and that no epoch may end.
    refused: deque[RefusedRecord] | tuple[()] = ()
    _failure: BaseException | None = None

    @property
    @abstractmethod
    def has_room(self) -> bool:
        """Whether the writer takes records; if not, the stream waits.

        It must become true again without them: only committed records may count.
        """

    def expect(self, batch: Batch[T_contra]) -> None:
        """Learn of the batch that comes next: from now on `has_room` tells of that one.

        A writer that has to ask others about its records does so on its own thread, and has no room
        meanwhile, so that the task can answer. Batches that must not wait come without this.
        """

    @property
    def may_end_epoch(self) -> bool:
        """Tell whether an epoch may end now, also without room; if not, the stream waits.

        A writer whose snapshot has much that is about to be handed over would store it once more.
        What `has_room` says of becoming true holds here, too.
        """
        return self.has_room

    @property
    @abstractmethod
    def is_delivered(self) -> bool:
        """Whether all that was committed was handed over; the end of the stream waits for it."""

    @property
    def failure(self) -> BaseException | None:
        """The error that has ended the hand-over, and so ends the task."""
        return self._failure


class Sink(ABC, Generic[T_contra]):
    """A place for records. Built with the graph, opened once for each of its tasks.

    Gearpump: `DataSink`.
    """

    idempotent: bool = False  #: Writing a record twice is the same as writing it once.
    transactional: bool = False  #: Its writers are `TransactionalWriter`s.
    columnar: bool = False  #: Takes a `Table` as it is, and writes it faster than its rows.
    takes_results: bool = True  #: If it takes tables: those of results of windows as well.
    takes_back: bool = False  #: `SinkWriter.restore` takes back records written after a snapshot.
    paced: bool = False  #: Its writers are `PacedWriter`s.
    #: Of a transactional sink that commits an epoch again after a failure: by what its readers can
    #: know the records again, such as "the same key". Empty: it commits each once.
    repeats: str = ""
    leaves_open: bool = False  #: A task that dies leaves something that `settle` closes.
    of_program: bool = False  #: Of the program's own process, as `to_list` is: written there.
    one_task: bool = False  #: One file: it has one task, unless the program says how many.
    waits_for_store: bool = False  #: After an `OSError` the store is away, full, or not writable.

    @abstractmethod
    def open(self, task_index: int, parallelism: int) -> SinkWriter[T_contra]:
        """Open the writer of one task."""

    def settle(self, task_index: int, *, run: str) -> None:
        """Close things that a task of a run left open, such as a transaction readers wait for.

        Its process is gone, or does not answer; this is another one, on a thread of its own. The
        task may begin again meanwhile, or go on: that must end as it would without this. What
        fails here is left to the task's next start.
        """

    @property
    def description(self) -> str:
        """Short text for plans and messages."""
        return type(self).__name__

    @property
    def writes(self) -> Sequence[str]:
        """The places that a transactional sink has for itself within the application."""
        return (self.description,)

    @property
    def pending_folders(self) -> Sequence[Path]:
        """Folders for prepared records, in files that have the run in their names.

        The next run clears away the files of a run that was killed and cannot be resumed.
        """
        return ()
