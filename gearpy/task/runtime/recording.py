"""Records the input of a task, and digests of its output: enough to run it once more."""

from collections.abc import Callable, Sequence, Sized
from functools import partial
from time import perf_counter_ns
from typing import Any, Final, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Struct, field

from gearpy.core.epoch.recorded import RecordedName
from gearpy.core.epoch.share import RecordingShare
from gearpy.core.flow.alignment import EpochEnd
from gearpy.errors import ConfigError, ProtocolError
from gearpy.ids import MIN_MS, TaskId
from gearpy.messages.data import Batch, DataMessage, LinkMessage, Unmanaged
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.runtime.digest import NO_DIGEST, OutputDigest
from gearpy.task.runtime.inlet import Injected, QueuedMessage
from gearpy.wire.connection.frames import FrameDecoder, FrameLimits
from gearpy.wire.link_codec import LinkCodec

_LIMITS: Final = FrameLimits()

#: What stands in a recording: a message of a link, or a record that was given by hand.
_Taken: TypeAlias = DataMessage | Unmanaged | Injected
_Kind: TypeAlias = Literal["link", "injected"]
#: A message whose output is not known yet: its kind, wall time, frame and number of records.
_OpenEntry: TypeAlias = tuple[_Kind, int, bytes, int]


class RecordedEntry(Struct, frozen=True, kw_only=True):
    """A message that the task took, as a frame, and its output until the next one.

    ``at_ms`` is wall time. ``digest`` is that of `OutputDigest`. ``is_joined``: the next message
    was taken before all of the output was sent, and has it with its own.
    """

    kind: _Kind
    at_ms: int
    body: bytes
    records: int
    outputs: int = 0
    digest: int = 0
    is_joined: bool = False

    def message(self) -> _Taken:
        if self.kind == "injected":
            return Injected(*_INJECTED.decode(self.body))
        (frame,) = FrameDecoder(_LIMITS).feed(self.body)
        message = _CODEC.decode(frame)
        assert isinstance(message, DataMessage | Unmanaged), message
        return message


class LinkPlace(Struct, frozen=True, kw_only=True):
    """The place of a link when a recording began."""

    source: int  #: Packed `TaskId`.
    watermark_ms: int
    idle: bool


class Recording(Struct, frozen=True, kw_only=True):
    """All that a task took in one epoch, in the order in which it was processed.

    Attributes:
        first: the epoch that was open at its beginning; it may have ended with later ones.
        epoch: the last one that is in it.
        starts: the task has started with it.
        links: where the inputs were at its beginning.
        cut: why the last entries are missing; empty if none are.
        failed: what the task has failed with, at the last entry.
    """

    first: int
    epoch: int
    starts: bool = False
    links: tuple[LinkPlace, ...] = ()
    entries: tuple[RecordedEntry, ...] = ()
    cut: str = ""
    failed: str = ""

    def name(self, task: TaskId, attempt: int) -> RecordedName:
        """Return its name, which no other recording of the application has."""
        return RecordedName(
            task=task,
            first=self.first,
            epoch=self.epoch,
            attempt=attempt,
            starts=self.starts,
            is_cut=bool(self.cut),
            has_failed=bool(self.failed),
        )

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> "Recording":
        """Return the recording that `encode` made."""
        try:
            return _RECORDING.decode(data)
        except (msgspec.DecodeError, ValueError) as error:
            raise ProtocolError(f"malformed recording of a task: {error}") from error


class TaskPorts(Struct, kw_only=True):
    """The two ends of a runner, messages in and records out: a recorder goes between.

    Attributes:
        take: gives the next message, or end of an epoch.
        put_out: sends a batch.
        unsent: what the task has put out and ``flush`` is to send.
        stored: tells the newest epoch that is known to be stored; 0: none.
        busy_ns: tells for how long the task was busy.
        recorded: recordings to store; emptied by the owner of the runner.
    """

    context: TaskContext
    take: Callable[[], QueuedMessage | EpochEnd | Injected | None]
    put_out: Callable[[Batch, int], None]
    unsent: Sized
    flush: Callable[[], None]
    stored: Callable[[], int]
    busy_ns: Callable[[], int]
    recorded: list[Recording] = field(default_factory=list)

    def listen(self, note: Callable[[Sequence[Any], Sequence[int]], None]) -> None:
        """Have the records noted that are put out, or that sinks get, with their event times."""
        put_out = self.put_out

        def noted(batch: Batch, now_ms: int) -> None:
            put_out(batch, now_ms)
            note(batch.values, batch.timestamps)

        self.put_out, self.context.shown = noted, note


class Recorder(Protocol):
    """Records what a task takes, on its thread; its runner does no more than to attach it."""

    @property
    def leads_here(self) -> bool:
        """Whether all is recorded that the task has taken since a stored epoch."""
        ...

    def attach(self) -> None:
        """Go between the task and its messages, before the first one."""
        ...

    def fail(self, epoch: int, cause: str) -> None: ...


#: From the first epoch of a task and its ports.
MakeRecorder: TypeAlias = Callable[[int, TaskPorts], Recorder]


class InputRecorder:
    """Records the input of a task, epoch by epoch, up to a number of bytes in each.

    Invariant: a recording has all entries from its beginning up to its `Recording.cut`.

    Args:
        epoch: the one that is open.
        bytes_max: of the messages of one epoch; those behind are left out.
        every: of so many epochs one is recorded; 0: as many as cost little, see `RecordingShare`.
        clock_ns: measures what it costs.
    """

    def __init__(
        self,
        epoch: int,
        ports: TaskPorts,
        *,
        bytes_max: int,
        wall_ms: Callable[[], int],
        every: int = 1,
        clock_ns: Callable[[], int] = perf_counter_ns,
    ) -> None:
        self._ports, self._take = ports, ports.take
        self._output = OutputDigest()
        self._wall_ms = wall_ms
        self._clock_ns = clock_ns
        self._bytes_max = bytes_max
        self._every = every
        self._share = None if every else RecordingShare(wall_ms())
        self._links: dict[int, tuple[int, bool]] = {}  # Watermarks, and whether they are idle.
        self._starts = True
        self._epoch = self._since = epoch  # All epochs from `_since` on are recorded.
        self._begin(epoch)

    @property
    def leads_here(self) -> bool:
        return self._is_on and self._since <= max(self._ports.stored() + 1, self._epoch)

    def attach(self) -> None:
        self._output.in_any_order = self._ports.context.in_any_order
        self._ports.take = self._next
        self._ports.listen(self._put_out)

    def _next(self) -> QueuedMessage | EpochEnd | Injected | None:
        message = self._take()
        if isinstance(message, EpochEnd):
            self._ports.flush()  # Later output belongs to the next epoch.
            self._finish(message.epoch)
        elif isinstance(message, DataMessage | Unmanaged | Injected):
            if self._is_on:
                began_ns = self._clock_ns()
                self._close_entry(is_joined=len(self._ports.unsent) > 0)
                if not self._cut:
                    self._add(message)
                self._cost_ns += self._clock_ns() - began_ns
            if isinstance(message, DataMessage):
                source = message.source.packed()
                before_ms, _ = self._links.get(source, (MIN_MS, False))
                self._links[source] = max(message.watermark_ms, before_ms), message.idle
        return message

    def _put_out(self, values: Sequence[Any], timestamps: Sequence[int]) -> None:
        if self._is_on:
            began_ns = self._clock_ns()
            self._output.add(values, timestamps)
            self._cost_ns += self._clock_ns() - began_ns

    def fail(self, epoch: int, cause: str) -> None:
        self._finish(epoch, cause)

    def _begin(self, first: int) -> None:
        self._first = first
        self._begun = tuple(
            LinkPlace(source=source, watermark_ms=watermark_ms, idle=idle)
            for source, (watermark_ms, idle) in sorted(self._links.items())
        )
        self._entries: list[RecordedEntry] = []
        self._open: _OpenEntry | None = None
        self._bytes = self._cost_ns = 0
        self._ports.context.wants_epoch = False
        self._began_ms, self._busy_before_ns = self._wall_ms(), self._ports.busy_ns()
        if self._share is None:
            self._is_on = first % self._every == 0
        else:
            self._is_on = self._share.takes(first, self._began_ms)
        if not self._is_on:
            self._since = first + 1
        self._leave_out("")

    def _leave_out(self, cut: str) -> None:
        """Record no more of this epoch, for a reason; with none, all of it."""
        self._cut = cut
        self._output.only_counts = bool(cut)

    def _finish(self, epoch: int, failed: str = "") -> None:
        if self._is_on:
            self._close_entry(is_joined=False)
            recording = Recording(
                first=self._first,
                epoch=epoch,
                starts=self._starts,
                links=self._begun,
                entries=tuple(self._entries),
                cut=self._cut,
                failed=failed,
            )
            self._ports.recorded.append(recording)
            if self._share is not None:
                self._share.on_recorded(
                    self._cost_ns,
                    busy_ns=self._ports.busy_ns() - self._busy_before_ns,
                    open_ms=self._wall_ms() - self._began_ms,
                )
        self._starts = False
        self._begin(epoch + 1)

    def _add(self, message: _Taken) -> None:
        try:
            if isinstance(message, Injected):
                kind: _Kind = "injected"
                body = msgspec.msgpack.encode((message.value, message.event_time_ms))
            else:
                link: LinkMessage = message
                kind, body = "link", b"".join(_CODEC.encode(link))
        except ConfigError as error:
            self._leave_out(str(error))
            return
        if self._bytes + len(body) > self._bytes_max:
            self._leave_out(f"{self._bytes_max} bytes were full")
            return
        self._bytes += len(body)
        self._ports.context.wants_epoch = self._bytes > self._bytes_max // 2
        records = len(message.batch) if isinstance(message, DataMessage) else 1
        self._open = kind, self._wall_ms(), body, records

    def _close_entry(self, *, is_joined: bool) -> None:
        outputs, digest = (0, 0) if is_joined else self._output.take()
        if self._open is not None:
            kind, at_ms, body, records = self._open
            self._open = None
            entry = RecordedEntry(
                kind=kind,
                at_ms=at_ms,
                body=body,
                records=records,
                outputs=outputs,
                digest=digest,
                is_joined=is_joined,
            )
            self._entries.append(entry)


def recorder(bytes_max: int, wall_ms: Callable[[], int], *, every: int = 1) -> MakeRecorder | None:
    """Return a maker of recorders; None with no room for one.

    ``every`` is that of `InputRecorder`.
    """
    if not bytes_max:
        return None
    return partial(InputRecorder, bytes_max=bytes_max, wall_ms=wall_ms, every=every)


def is_same_output(entry: RecordedEntry, outputs: int, digest: int) -> bool:
    return entry.outputs == outputs and (
        NO_DIGEST in {entry.digest, digest} or entry.digest == digest
    )


_CODEC: Final = LinkCodec(limits=_LIMITS)
_RECORDING: Final = msgspec.msgpack.Decoder(Recording)
_INJECTED: Final = msgspec.msgpack.Decoder(tuple[bytes, int])
