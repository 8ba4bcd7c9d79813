"""What a task is at the end of an epoch, as bytes.

Values are encoded as they are when they travel between tasks, so a snapshot holds plain data
and registered records only, and never code.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gearpy.errors import ConfigError, OperatorError, ProtocolError
from gearpy.wire.payload import decode_value, encode_value

__all__ = ["TaskState", "decode_state", "encode_state"]

_log = logging.getLogger(__name__)
_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """What a task goes on from.

    ``timers`` are delays in ms and payloads, in their order. ``clock_ms`` and ``watermark_ms``
    were promised: the restarted task must not fall behind them.
    """

    task: Any
    counters: Mapping[str, int]
    watermark_ms: int
    clock_ms: int
    timers: Sequence[tuple[int, object]] = ()

    def encode(self, operator: str) -> bytes:
        """Return the state as bytes.

        Raises:
            OperatorError: what the user's task keeps is no plain data.
        """
        return encode_value(
            [
                _VERSION,
                encode_state(operator, self.task),
                dict(self.counters),
                self.watermark_ms,
                self.clock_ms,
                [*_encodable_timers(operator, self.timers)],
            ]
        )

    @classmethod
    def decode(cls, data: bytes) -> "TaskState":
        """Return what `encode` made into bytes.

        Raises:
            ProtocolError: the bytes are of another version, or hold records not known here.
        """
        version, *rest = decode_value(data)
        if version != _VERSION:
            raise ProtocolError(f"snapshot has version {version}, this gearpy reads {_VERSION}")
        task, counters, watermark_ms, clock_ms, timers = rest
        return cls(
            task=decode_state(task),
            counters=counters,
            watermark_ms=watermark_ms,
            clock_ms=clock_ms,
            timers=[(delay_ms, decode_value(payload)) for delay_ms, payload in timers],
        )


def encode_state(operator: str, state: Any) -> bytes:
    """Return what an operator keeps as bytes; none for None.

    Raises:
        OperatorError: it is no plain data.
    """
    if state is None:
        return b""
    try:
        return encode_value(state)
    except ConfigError as error:
        raise OperatorError(
            operator=operator,
            cause=f"its snapshot cannot be stored: {error}",
        ) from error


def decode_state(data: bytes) -> Any:
    """Return what `encode_state` made into bytes."""
    return decode_value(data) if data else None


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
