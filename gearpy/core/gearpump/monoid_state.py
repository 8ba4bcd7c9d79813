"""State that holds no record back: it is kept apart by the epoch of its records.

An epoch ends on one input before it ends on another. What came before its end is *left*, what
came after is *right*. A checkpoint is what is left; then right becomes part of left. A record is
told by the number of its epoch, whatever its event time. Gearpump: `MonoidState`, whose sides are
older and newer than an event time.
"""

from typing import Generic, Protocol, TypeVar

from gearpy.core.gearpump.monoids import Monoid, Serializer

T = TypeVar("T")


class PersistentState(Protocol[T]):
    """State of one task that survives its restarts. Gearpump: `PersistentState`.

    Calls come in this order: `recover` at most once; `set_next_checkpoint`; then `enter` before
    `update`, `value` and `on_watermark`, and `checkpoint` between records.

    Invariant: going on from what `checkpoint` gave for an epoch, with all records of later epochs
    in any order, leads to the same as going on without.
    """

    def recover(self, data: bytes) -> None:
        """Go on from the bytes of `checkpoint`."""
        ...

    def set_next_checkpoint(self, epoch: int) -> None:
        """Set the epoch that `checkpoint` will end: its records, and older ones, are left.

        Gearpump: `PersistentState.setNextCheckpointTime`.
        """
        ...

    def enter(self, epoch: int) -> None:
        """Set the epoch of the record at hand."""
        ...

    def update(self, timestamp_ms: int, value: T) -> bool:
        """Add a value with its event time; return False if it came too late to count."""
        ...

    def on_watermark(self, watermark_ms: int) -> None:
        """Learn how far event time has come, as told in the epochs up to the next checkpoint."""
        ...

    def checkpoint(self) -> bytes:
        """Return the left value as bytes; the next checkpoint is of the epoch that follows."""
        ...

    @property
    def value(self) -> T:
        """Value of all records of the entered epoch and older ones, so far.

        To be read before the next call, and not to be changed. Newer epochs are left out, since
        what is put out in an epoch must not depend on records that may be read again after it.
        """
        ...

    @property
    def late_records(self) -> int:
        """The number of values that came too late to count, since the start."""
        ...


class MonoidState(Generic[T]):
    """Values of the records left and right of the next checkpoint. Gearpump: `MonoidState`.

    Right is kept apart for each epoch, as an input may be several of them ahead.

    Invariant: ``left`` holds all of the epochs up to ``epoch`` and nothing of later ones, so that
    at the end of that epoch it is the checkpoint.
    """

    def __init__(self, monoid: Monoid[T]) -> None:
        self.epoch = 1  #: The next checkpoint ends it.
        self.left = monoid.zero()
        self._monoid = monoid
        self._later: dict[int, T] = {}
        self._entered = 1

    def set_next_checkpoint(self, epoch: int) -> None:
        """Set the epoch that ends next; older right values become part of left."""
        assert epoch >= self.epoch, f"epoch {epoch} after {self.epoch}"
        self.epoch = epoch
        for later in sorted(each for each in self._later if each <= epoch):
            self.left = self._monoid.plus(self.left, self._later.pop(later))

    def enter(self, epoch: int) -> None:
        self._entered = epoch

    def update(self, value: T) -> None:
        self.part = self._monoid.plus(self.part, value)

    @property
    def part(self) -> T:
        if self._entered <= self.epoch:
            return self.left
        if self._entered not in self._later:
            self._later[self._entered] = self._monoid.zero()
        return self._later[self._entered]

    @part.setter
    def part(self, value: T) -> None:
        if self._entered <= self.epoch:
            self.left = value
        else:
            self._later[self._entered] = value

    @property
    def parts(self) -> list[T]:
        return [self.left, *self._right_until(None)]

    @property
    def visible(self) -> list[T]:
        """The same, without epochs newer than the entered one."""
        return [self.left, *self._right_until(self._entered)] if self._later else [self.left]

    @property
    def right(self) -> T:
        return self._sum(self._right_until(None))

    @property
    def value(self) -> T:
        visible = self.visible
        return visible[0] if len(visible) == 1 else self._sum(visible)

    def _right_until(self, epoch: int | None) -> list[T]:
        return [self._later[e] for e in sorted(self._later) if epoch is None or e <= epoch]

    def _sum(self, parts: list[T]) -> T:
        total = self._monoid.zero()
        for part in parts:
            total = self._monoid.plus(total, part)
        return total


class NonWindowState(Generic[T]):
    """One value over all records. Implements `PersistentState`. Gearpump: `NonWindowState`.

    Invariant: a checkpoint is the sum of all values whose epochs it ends, and of nothing else.
    """

    late_records = 0  #: No value comes too late here.

    def __init__(self, monoid: Monoid[T], serializer: Serializer[T]) -> None:
        self._state = MonoidState(monoid)
        self._serializer = serializer

    def recover(self, data: bytes) -> None:
        """Go on from the bytes of `checkpoint`."""
        self._state.left = self._serializer.from_bytes(data)

    def set_next_checkpoint(self, epoch: int) -> None:
        """Set the epoch that `checkpoint` will end."""
        self._state.set_next_checkpoint(epoch)

    def enter(self, epoch: int) -> None:
        """Set the epoch of the record at hand."""
        self._state.enter(epoch)

    def update(self, timestamp_ms: int, value: T) -> bool:
        """Add a value; its event time makes no difference."""
        self._state.update(value)
        return True

    def on_watermark(self, watermark_ms: int) -> None:
        """Event time makes no difference."""

    def checkpoint(self) -> bytes:
        """Return left as bytes; then the next epoch is part of it."""
        data = self._serializer.to_bytes(self._state.left)
        self._state.set_next_checkpoint(self._state.epoch + 1)
        return data

    @property
    def value(self) -> T:
        """Value of all records of the entered epoch and older ones, so far."""
        return self._state.value

    @property
    def left(self) -> T:
        """Value of the next checkpoint, so far."""
        return self._state.left

    @property
    def right(self) -> T:
        """Value of later epochs."""
        return self._state.right
