"""The state of a task at the end of an epoch, from which it goes on after a restart.

Values are encoded as they are when they travel between tasks, so a snapshot holds plain data
and registered records only, and never code.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gearpy.errors import CannotTravel, ConfigError, OperatorError, ProtocolError
from gearpy.ids import MIN_MS
from gearpy.state.keyed import KeyedState
from gearpy.state.stores.store import Section, StateDelta
from gearpy.wire.values.payload import decode_value, encode_value
from gearpy.wire.values.pieces import Encoded, encode_pieces, joined
from gearpy.wire.values.records import DEFAULT_REGISTRY, RecordRegistry

_log = logging.getLogger(__name__)
_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """The state that a task goes on from, beside its keyed state.

    ``task`` is the result of `Task.snapshot`. ``timers`` are delays in ms and payloads, in their
    order. ``clock_ms`` and ``watermark_ms`` were promised: the restarted task must not fall behind
    them. ``promised_ms`` is the promise of its inputs.
    """

    task: Any
    counters: Mapping[str, int]
    watermark_ms: int
    clock_ms: int
    timers: Sequence[tuple[int, object]] = ()
    promised_ms: int = MIN_MS

    def encode(self, operator: str) -> Encoded:
        """Return the state as bytes.

        Raises:
            OperatorError: the state of the user's task is no plain data.
        """
        return encode_pieces(
            [
                _VERSION,
                state_pieces(operator, self.task),
                dict(self.counters),
                self.watermark_ms,
                self.clock_ms,
                [*_encodable_timers(operator, self.timers)],
                self.promised_ms,
            ]
        )

    @classmethod
    def decode(cls, data: Encoded, classes: RecordRegistry = DEFAULT_REGISTRY) -> "TaskState":
        """Return the state of the bytes of `encode`.

        Args:
            classes: of the records in it.

        Raises:
            ProtocolError: the bytes are of another version, or hold records not known here.
        """
        version, *rest = decode_value(joined(data), classes)
        if version != _VERSION:
            raise ProtocolError(f"snapshot has version {version}, this gearpy reads {_VERSION}")
        task, counters, watermark_ms, clock_ms, timers, promised_ms = rest
        return cls(
            task=decode_state(task, classes),
            counters=counters,
            watermark_ms=watermark_ms,
            clock_ms=clock_ms,
            timers=[(delay_ms, decode_value(payload, classes)) for delay_ms, payload in timers],
            promised_ms=promised_ms,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResume:
    """The whole state that a task goes on from: its `TaskState`, encoded, and its keyed state.

    ``offsets`` are places of partitions that count more than those in the state; decoded. ``state``
    has keyed state that was read before, to which ``sections`` come.
    """

    head: Encoded
    sections: Iterable[Section] = ()
    state: KeyedState | None = None
    offsets: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSnapshot:
    """The state of a task at the end of an epoch, without the keyed state that has not changed.

    ``head`` is its `TaskState`, encoded. ``delta`` is read on another thread, while the task goes
    on. Keyed state is that of all snapshots so far, put together. ``offsets`` are encoded; empty
    bytes stand for a partition that has finished. ``has_more``: see `Task.is_working`.
    ``is_whole``: it has all of the keyed state, and snapshots before it do not count.
    """

    epoch: int
    head: Encoded
    delta: StateDelta | None = None
    offsets: Mapping[str, bytes] = field(default_factory=dict)
    has_missed_cut: bool = False
    has_more: bool = False
    is_whole: bool = False

    def sections(self) -> Iterator[Section]:
        """Yield the changes of keyed state."""
        return iter(()) if self.delta is None else self.delta.sections()

    def resume(self, before: TaskResume | None = None) -> TaskResume:
        """Return the state to go on from, ``before`` being the snapshots before this one."""
        sections = [*before.sections] if before is not None and not self.is_whole else []
        return TaskResume(head=self.head, sections=[*sections, *self.sections()])


def encode_state(operator: str, state: Any) -> bytes:
    """Return the state of an operator as bytes; none for None.

    Raises:
        OperatorError: it is no plain data.
    """
    return joined(state_pieces(operator, state))


def state_pieces(operator: str, state: Any) -> Encoded:
    """Return the same for a state that holds it; large bytes are not copied yet.

    Raises:
        OperatorError: it is no plain data.
    """
    if state is None:
        return b""
    try:
        return encode_pieces(state)
    except ConfigError as error:
        raise OperatorError(
            operator=operator,
            cause=f"its snapshot cannot be stored: {error}",
            is_final=isinstance(error, CannotTravel),
        ) from error


def decode_state(data: bytes, classes: RecordRegistry = DEFAULT_REGISTRY) -> Any:
    """Return the state of the bytes of `encode_state`, with these classes of records."""
    return decode_value(data, classes) if data else None


def encode_offsets(operator: str, offsets: Mapping[str, Any]) -> dict[str, bytes]:
    """Return places of partitions as bytes.

    Raises:
        OperatorError: one is no plain data.
    """
    return {name: encode_state(operator, place) for name, place in offsets.items()}


def _encodable_timers(
    operator: str, timers: Sequence[tuple[int, object]]
) -> list[tuple[int, bytes]]:
    encoded = []
    for delay_ms, payload in timers:
        try:
            encoded.append((delay_ms, encode_value(payload)))
        except ConfigError as error:
            _log.warning(
                "operator %r: a timer will not be there after a restart: %s", operator, error
            )
    return encoded


#: The head of a task that has not ended any epoch, and begins somewhere else all the same.
NO_STATE: Final = TaskState(task=None, counters={}, watermark_ms=MIN_MS, clock_ms=MIN_MS).encode("")
