"""The place that the states of a task share: key, namespace, clocks, store."""

from collections.abc import Callable
from typing import Any, Final

from gearpy.ids import MAX_MS, MIN_MS
from gearpy.state.encoding.keys import decode_key, encode_key
from gearpy.state.stores.cells import namespace_part
from gearpy.state.stores.store import CellStore

#: Where state is that belongs to no namespace, as part of the name of a table.
NO_NAMESPACE: Final = namespace_part(b"")


class StateClock:
    """The times by which state expires.

    ``watermark_ms`` is how far event time has come: that of the timer that fires, else that of the
    watermark the task was given last. ``time_ms`` is the event time of the record that the task is
    at, `MIN_MS` if it is at none.
    """

    __slots__ = ("goes_by_records", "now_ms", "time_ms", "watermark_ms")

    def __init__(self, now_ms: Callable[[], int], watermark_ms: int = MIN_MS) -> None:
        self.now_ms = now_ms
        self.watermark_ms = MIN_MS
        self.time_ms = MIN_MS
        #: Records come in the order of event time, so that it is as far as the record at hand.
        self.goes_by_records = False
        self.advance(watermark_ms)

    def advance(self, watermark_ms: int) -> None:
        if self.watermark_ms < watermark_ms < MAX_MS:
            self.watermark_ms = watermark_ms

    @property
    def event_ms(self) -> int:
        if self.goes_by_records and self.time_ms > self.watermark_ms:
            return self.time_ms
        return self.watermark_ms

    @property
    def written_ms(self) -> int:
        return self.time_ms if self.time_ms > MIN_MS else self.watermark_ms


class Place:
    """The key and the namespace at which the states of a scope are at present.

    ``part`` is the namespace as part of the name of a table; it is another object whenever the
    namespace is another one.
    """

    __slots__ = ("key", "part", "store")

    def __init__(self, store: CellStore) -> None:
        self.store = store
        self.key = b""
        self.part = NO_NAMESPACE


def part_of(namespace: Any) -> bytes:
    """Return a namespace as part of the name of a table; None is no namespace."""
    return NO_NAMESPACE if namespace is None else namespace_part(encode_key(namespace))


def namespace_of(part: bytes) -> Any:
    return decode_key(part[len(NO_NAMESPACE) :]) if len(part) > len(NO_NAMESPACE) else None
