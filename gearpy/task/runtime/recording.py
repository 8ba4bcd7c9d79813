"""Records the input of a task, and digests of its output: enough to run it once more."""

from collections.abc import Callable, Sized
from functools import partial
from typing import Final, Literal, Protocol, TypeAlias

import msgspec

from gearpy.core.epoch.recorded import RecordedName
from gearpy.core.flow.alignment import EpochEnd
from gearpy.errors import ConfigError, ProtocolError
from gearpy.ids import MIN_MS, TaskId
from gearpy.late_dataclass import dataclass
from gearpy.messages.data import DataMessage, LinkMessage, Unmanaged
from gearpy.task.runtime.digest import NO_DIGEST, OutputDigest
from gearpy.task.runtime.inlet import Injected
from gearpy.wire.connection.frames import FrameDecoder, FrameLimits
from gearpy.wire.link_codec import LinkCodec

_LIMITS: Final = FrameLimits()

#: What stands in a recording: a message of a link, or a record that was given by hand.
_Taken: TypeAlias = DataMessage | Unmanaged | Injected
_Kind: TypeAlias = Literal["link", "injected"]
#: A message whose output is not known yet: its kind, wall time, frame and number of records.
_OpenEntry: TypeAlias = tuple[_Kind, int, bytes, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEntry:
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
        """Return the message again.

        Raises:
            ProtocolError: the entry is damaged.
        """
        if self.kind == "injected":
            return Injected(*_INJECTED.decode(self.body))
        (frame,) = FrameDecoder(_LIMITS).feed(self.body)
        message = _CODEC.decode(frame)
        assert isinstance(message, DataMessage | Unmanaged), message
        return message


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPlace:
    """The place of a link when a recording began."""

    source: int  #: Packed `TaskId`.
    watermark_ms: int
    idle: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
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
        """Return the recording as bytes to store."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> "Recording":
        """Return the recording that `encode` made.

        Raises:
            ProtocolError: it is none.
        """
        try:
            return _RECORDING.decode(data)
        except (msgspec.DecodeError, ValueError) as error:
            raise ProtocolError(f"malformed recording of a task: {error}") from error


class Recorder(Protocol):
    """Hears from a runner the input and output of its task, on the thread of the task."""

    @property
    def finished(self) -> list[Recording]:
        """Recordings to store; emptied by the owner of the runner."""
        ...

    @property
    def output(self) -> OutputDigest:
        """Takes the records that the task puts out."""
        ...

    @property
    def wants_epoch(self) -> bool:
        """Tell whether the epoch should end before its time."""
        ...

    def take(self, unsent: Sized, message: object) -> None:
        """Note a message that is processed next, or the end of an epoch.

        ``unsent`` has what the task has put out of the messages before and not sent yet.
        """
        ...

    def fail(self, epoch: int, cause: str) -> None:
        """Note that the task has failed in an epoch."""
        ...


class InputRecorder:
    """Records the input of a task, epoch by epoch, up to a number of bytes in each.

    Invariant: a recording has all entries from its beginning up to its `Recording.cut`.

    Args:
        epoch: the one that is open.
        bytes_max: of the messages of one epoch; those behind are left out.
        every: of so many epochs one is recorded.
        wall_ms: wall time.
    """

    def __init__(
        self, epoch: int, *, bytes_max: int, wall_ms: Callable[[], int], every: int = 1
    ) -> None:
        self.finished: list[Recording] = []  #: Emptied by the owner.
        self.output = OutputDigest()
        self._wall_ms = wall_ms
        self._bytes_max = bytes_max
        self._every = every
        self._links: dict[int, LinkPlace] = {}
        self._starts = True
        self._begin(epoch)

    @property
    def wants_epoch(self) -> bool:
        """Tell whether so much is recorded that the epoch should end before its time."""
        return self._bytes > self._bytes_max // 2

    def take(self, unsent: Sized, message: object) -> None:
        """Note a message that is processed next, or the end of an epoch."""
        if isinstance(message, EpochEnd):
            self._finish(message.epoch)
        elif isinstance(message, DataMessage | Unmanaged | Injected):
            self._close_entry(is_joined=len(unsent) > 0)
            if self._is_on and not self._cut:
                self._add(message)
            if isinstance(message, DataMessage):
                source = message.source.packed()
                self._links[source] = LinkPlace(
                    source=source,
                    watermark_ms=max(message.watermark_ms, self._watermark_ms(source)),
                    idle=message.idle,
                )

    def fail(self, epoch: int, cause: str) -> None:
        """End the recording of the open epoch: the task has failed."""
        self._finish(epoch, cause)

    def _begin(self, first: int) -> None:
        self._first = first
        self._begun = tuple(self._links[each] for each in sorted(self._links))
        self._entries: list[RecordedEntry] = []
        self._open: _OpenEntry | None = None
        self._bytes = 0
        self._is_on = first % self._every == 0
        self._leave_out("")

    def _leave_out(self, cut: str) -> None:
        """Record no more of this epoch, for a reason; with none, all of it."""
        self._cut = cut
        self.output.only_counts = bool(cut) or not self._is_on

    def _finish(self, epoch: int, failed: str = "") -> None:
        self._close_entry(is_joined=False)
        if self._is_on:
            recording = Recording(
                first=self._first,
                epoch=epoch,
                starts=self._starts,
                links=self._begun,
                entries=tuple(self._entries),
                cut=self._cut,
                failed=failed,
            )
            self.finished.append(recording)
        self._starts = False
        self._begin(epoch + 1)

    def _add(self, message: _Taken) -> None:
        try:
            kind, body = _encoded(message)
        except ConfigError as error:
            self._leave_out(str(error))
            return
        if self._bytes + len(body) > self._bytes_max:
            self._leave_out(f"{self._bytes_max} bytes were full")
            return
        self._bytes += len(body)
        records = len(message.batch) if isinstance(message, DataMessage) else 1
        self._open = kind, self._wall_ms(), body, records

    def _close_entry(self, *, is_joined: bool) -> None:
        outputs, digest = (0, 0) if is_joined else self.output.take()
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

    def _watermark_ms(self, source: int) -> int:
        known = self._links.get(source)
        return MIN_MS if known is None else known.watermark_ms


def recorder(
    bytes_max: int, wall_ms: Callable[[], int], *, every: int = 1
) -> Callable[[int], InputRecorder] | None:
    """Return a maker of recorders, from the first epoch of a task; None with no room for one."""
    if not bytes_max:
        return None
    return partial(InputRecorder, bytes_max=bytes_max, wall_ms=wall_ms, every=every)


def is_same_output(entry: RecordedEntry, outputs: int, digest: int) -> bool:
    """Tell whether a task has put out the same records as then, as far as that can be told."""
    return entry.outputs == outputs and (
        NO_DIGEST in {entry.digest, digest} or entry.digest == digest
    )


def _encoded(message: _Taken) -> tuple[_Kind, bytes]:
    if isinstance(message, Injected):
        return "injected", msgspec.msgpack.encode((message.value, message.event_time_ms))
    link: LinkMessage = message
    return "link", b"".join(_CODEC.encode(link))


_CODEC: Final = LinkCodec(limits=_LIMITS)
_RECORDING: Final = msgspec.msgpack.Decoder(Recording)
_INJECTED: Final = msgspec.msgpack.Decoder(tuple[bytes, int])
