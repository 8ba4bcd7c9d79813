"""State of a window that slides over event time.

What records come to is kept for each piece of time between two boundaries of windows. A window is
some whole pieces, so it slides by taking away those that it leaves and adding those that it comes
to, without any record. Gearpump: `WindowState`, `Window`, `Interval`.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from gearpy.core.base.times import Duration, duration_ms
from gearpy.core.gearpump.monoid_state import MonoidState
from gearpy.core.gearpump.monoids import Group, Serializer
from gearpy.errors import ConfigError, ProtocolError
from gearpy.ids import MAX_MS, MIN_MS

T = TypeVar("T")

_VERSION: Final = 1


class Interval(NamedTuple):
    """A piece of event time ``[start_ms, end_ms)``. Gearpump: `Interval`."""

    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Window:
    """Windows of one size, one beginning every step; one of them is the current one.

    It is the first whose end the watermark has not reached. Before anything is known of event time
    it begins at the epoch; at the end of the stream it is empty. Gearpump: `Window`.
    """

    size_ms: int
    step_ms: int

    def __post_init__(self) -> None:
        mistakes = [
            f"window {name} is {value_ms} ms, must be more than 0"
            for name, value_ms in (("size", self.size_ms), ("step", self.step_ms))
            if value_ms <= 0
        ]
        if mistakes:
            raise ConfigError(*mistakes)

    @classmethod
    def of(cls, size: Duration, step: Duration) -> "Window":
        """Return windows given as people write durations: ``Window.of("1h", "5m")``.

        Raises:
            ConfigError: one is no duration, or no more than 0.
        """
        return cls(duration_ms(size), duration_ms(step))

    def at(self, watermark_ms: int) -> Interval:
        """Return the current window at a watermark. Gearpump: `Window.range`."""
        if watermark_ms == MIN_MS:
            return Interval(0, self.size_ms)
        if watermark_ms == MAX_MS:
            return Interval(MAX_MS, MAX_MS)
        return self.first_over(watermark_ms)

    def interval_of(self, timestamp_ms: int) -> Interval:
        """Return the piece of time that holds this one and has no boundary inside.

        Gearpump: `WindowState.getInterval`.
        """
        step, shift = self.step_ms, self.size_ms % self.step_ms
        # Windows begin at multiples of the step, and end as much later as the size tells.
        start = max(
            timestamp_ms - timestamp_ms % step, timestamp_ms - (timestamp_ms - shift) % step
        )
        end = min(_next(timestamp_ms, step), _next(timestamp_ms - shift, step) + shift)
        return Interval(max(start, MIN_MS), min(end, MAX_MS))

    def first_over(self, timestamp_ms: int) -> Interval:
        """Return the first window that ends later; if it begins later, none holds this time."""
        return self.starting_at(_next(timestamp_ms - self.size_ms, self.step_ms))

    def starting_at(self, start_ms: int) -> Interval:
        """Return a window; the last ones end with time itself, so that they close, too."""
        return Interval(start_ms, min(start_ms + self.size_ms, MAX_MS))


class WindowState(Generic[T]):
    """Value of the records of the current window. Implements `PersistentState`.

    ``value`` is a function of the records and the watermark: neither the order of the records nor
    how many steps a watermark slides at once makes a difference. A record older than the current
    window is late and does not count. Gearpump: `WindowState`, which slides one step at a record.

    Args:
        serializer: turns the sum of a piece of time into bytes.

    Invariant: each sum is that of the pieces in the current window, of the epochs of its side.
    """

    def __init__(self, group: Group[T], serializer: Serializer[T], window: Window) -> None:
        self.late_records = 0  #: Values that came too late to count.
        self._group = group
        self._serializer = serializer
        self._window = window
        self._watermark_ms = MIN_MS
        self.window = window.at(MIN_MS)  #: The current window.
        self._state = MonoidState(_SumsMonoid(group))

    def recover(self, data: bytes) -> None:
        """Go on from the bytes of `checkpoint`.

        Raises:
            ConfigError: it is of windows of another size or step.
            ProtocolError: it is nothing of the kind.
        """
        try:
            kept = _DECODER.decode(data)
        except (msgspec.DecodeError, ValueError) as error:
            raise ProtocolError(f"malformed state of a window: {error}") from error
        if kept.version != _VERSION:
            raise ProtocolError(f"state of a window of version {kept.version}, expected {_VERSION}")
        if (kept.size_ms, kept.step_ms) != (self._window.size_ms, self._window.step_ms):
            raise ConfigError(
                f"checkpoint is of windows of {kept.size_ms} ms every {kept.step_ms} ms, the "
                f"program's are of {self._window.size_ms} ms every {self._window.step_ms} ms"
            )
        self._watermark_ms = kept.watermark_ms
        self.window = self._window.at(kept.watermark_ms)
        for start_ms, value in kept.sums:
            self._add(start_ms, self._serializer.from_bytes(value))

    def set_next_checkpoint(self, epoch: int) -> None:
        """Set the epoch that `checkpoint` will end."""
        self._state.set_next_checkpoint(epoch)

    def enter(self, epoch: int) -> None:
        """Set the epoch of the record at hand."""
        self._state.enter(epoch)

    def update(self, timestamp_ms: int, value: T) -> bool:
        """Add a value to its piece of time, and to the current window if it is in there."""
        if timestamp_ms < self.window.start_ms and self._watermark_ms > MIN_MS:
            self.late_records += 1
            return False
        self._add(self._window.interval_of(timestamp_ms).start_ms, value)
        return True

    def on_watermark(self, watermark_ms: int) -> None:
        """Slide to the window that is current at a watermark, over as many steps as it takes."""
        if watermark_ms <= self._watermark_ms:
            return
        before, after = self.window, self._window.at(watermark_ms)
        for sums in self._state.parts:
            sums.slide(self._group, before, after)
        self._watermark_ms, self.window = watermark_ms, after

    def closing(self, watermark_ms: int) -> Iterator[tuple[Interval, T]]:
        """Yield the windows that end when `on_watermark` is called next, and hold records.

        Oldest first, each with its value. To be called before `on_watermark`.
        """
        window, is_known = self._window, self._watermark_ms > MIN_MS
        start_ms = self.window.start_ms if is_known else MIN_MS - window.size_ms
        for piece_ms in sorted({start for sums in self._state.visible for start in sums.starts}):
            start_ms = max(start_ms, window.first_over(piece_ms).start_ms)
            while start_ms <= piece_ms:
                closed = window.starting_at(start_ms)
                if closed.end_ms > watermark_ms:
                    return
                yield closed, self._sum_of(closed)
                start_ms += window.step_ms

    def checkpoint(self) -> bytes:
        """Return left as bytes, from the current window on; then the next epoch is part of it."""
        sums = self._state.left.sums
        data = msgspec.msgpack.encode(
            _Checkpoint(
                version=_VERSION,
                size_ms=self._window.size_ms,
                step_ms=self._window.step_ms,
                watermark_ms=self._watermark_ms,
                sums=[(at, self._serializer.to_bytes(sums[at])) for at in self._state.left.starts],
            )
        )
        self._state.set_next_checkpoint(self._state.epoch + 1)
        return data

    @property
    def value(self) -> T:
        """Value of the window's records of the entered epoch and older ones."""
        parts = self._state.visible
        return parts[0].total if len(parts) == 1 else self._totals(parts)

    @property
    def left(self) -> T:
        """Value of the window's records in the next checkpoint, so far."""
        return self._state.left.total

    @property
    def right(self) -> T:
        """Value of the window's records of later epochs."""
        return self._totals(self._state.parts[1:])

    def _add(self, start_ms: int, value: T) -> None:
        sums = self._state.part
        sums.add(self._group, start_ms, value)
        if self.window.start_ms <= start_ms < self.window.end_ms:
            sums.total = self._group.plus(sums.total, value)

    def _totals(self, parts: "list[_Sums[T]]") -> T:
        total = self._group.zero()
        for part in parts:
            total = self._group.plus(total, part.total)
        return total

    def _sum_of(self, window: Interval) -> T:
        total = self._group.zero()
        for sums in self._state.visible:
            for value in sums.between(window.start_ms, window.end_ms):
                total = self._group.plus(total, value)
        return total


class _Sums(Generic[T]):
    """Values of records: for each piece of time, by its start, and for the current window."""

    def __init__(self, total: T) -> None:
        self.total = total
        self.starts: list[int] = []  #: Sorted.
        self.sums: dict[int, T] = {}

    def add(self, group: Group[T], start_ms: int, value: T) -> None:
        if start_ms not in self.sums:
            insort(self.starts, start_ms)
            self.sums[start_ms] = group.zero()
        self.sums[start_ms] = group.plus(self.sums[start_ms], value)

    def between(self, start_ms: int, end_ms: int) -> list[T]:
        low, high = bisect_left(self.starts, start_ms), bisect_left(self.starts, end_ms)
        return [self.sums[start] for start in self.starts[low:high]]

    def slide(self, group: Group[T], before: Interval, after: Interval) -> None:
        """Let another window be the current one, and forget the pieces before it."""
        if before.start_ms <= after.start_ms < before.end_ms:
            for value in self.between(before.start_ms, after.start_ms):
                self.total = group.minus(self.total, value)
            entered_ms = before.end_ms
        else:
            self.total = group.zero()
            entered_ms = after.start_ms
        for value in self.between(entered_ms, after.end_ms):
            self.total = group.plus(self.total, value)
        before_ms = after.start_ms
        low = bisect_left(self.starts, before_ms)
        for start in self.starts[:low]:
            del self.sums[start]
        del self.starts[:low]


class _SumsMonoid(Generic[T]):
    """Adds up `_Sums` of different epochs, so that a window's state is a `MonoidState`."""

    def __init__(self, group: Group[T]) -> None:
        self._group = group

    def zero(self) -> _Sums[T]:
        return _Sums(self._group.zero())

    def plus(self, a: _Sums[T], b: _Sums[T]) -> _Sums[T]:
        """Put all of ``b`` into ``a``."""
        for start in b.starts:
            a.add(self._group, start, b.sums[start])
        a.total = self._group.plus(a.total, b.total)
        return a


class _Checkpoint(msgspec.Struct, array_like=True, kw_only=True):
    """Stored form of the state."""

    version: int
    size_ms: int
    step_ms: int
    watermark_ms: int
    sums: list[tuple[int, bytes]]


_DECODER: Final = msgspec.msgpack.Decoder(_Checkpoint)


def _next(time_ms: int, step_ms: int) -> int:
    return (time_ms // step_ms + 1) * step_ms
