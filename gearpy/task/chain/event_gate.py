"""The gate before a step that judges by time, or sees in which order records come.

Records wait there until event time has passed their place in it. Then they come one after the other
by that, and with each late one how far event time was for it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, repeat
from operator import itemgetter
from typing import Any, Final, Literal, Protocol, TypeAlias

from gearpy.core.base.key_copy import PIECE, finish
from gearpy.core.base.one_key import one_key
from gearpy.core.window.event_order import EventOrder, Held
from gearpy.errors import ConfigError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch, Message
from gearpy.messages.late_time import LateTime, late_places, late_time, promise_of
from gearpy.messages.table import Table, Times
from gearpy.state.encoding.keys import encode_key
from gearpy.state.kinds.bulk import BulkState
from gearpy.task.api.failure import USER_ERRORS
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.stage import Stage, step_bulk
from gearpy.wire.values.payload import encode_value

#: Which records wait: late ones only, or all.
Waits: TypeAlias = Literal["late", "all"]

_FIELDS: Final = 6  #: Fields of a record that waits.
_HALF: Final = 1 << 63  #: Whole numbers below it are keys of one length.


class HeldRecords(Protocol):
    """Records that wait until event time has passed them; each is iterated as a `Held`."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    @property
    def first_ms(self) -> int: ...

    def load(self, records: Iterable[Held]) -> None:
        """Take back records that were held before; they may be of several tasks."""


class EventGate:
    """Lets records of a step wait for event time.

    Where one partition is all that there is, only late records wait for it; and if it is
    in order, nothing does. Records that have no order but that of their arrival pass.

    Args:
        context: of the task; has the state.
        key: of a record; None: the step has none.
        sides_of: of records, which kind each is; at one time smaller ones come first. Those of one
            kind that come from no partition, at one time, are in the order of their keys then.
    """

    def __init__(
        self,
        context: TaskContext,
        key: Callable[[Any], Any] | None,
        *,
        waits: Waits = "late",
        sides_of: Callable[[list[Any]], list[int]] | None = None,
    ) -> None:
        self._context = context
        self._key = key
        self._waits_all = waits == "all"
        self._has_one_source = context.sources == 1
        self._sides_of = sides_of
        has_sides = sides_of is not None and key is not None
        self._records = EventOrder(content_of, self._keys_of_sides if has_sides else _keys_of)
        self._order: HeldRecords = self._records
        self._kept: BulkState | None = None
        self._told: dict[Any, Any] = {}
        self._copying: Iterator[None] = iter(())
        self._is_alone = False  # All records that wait are of the only partition.

    def __len__(self) -> int:
        return len(self._order)

    @property
    def first_ms(self) -> int:
        return self._order.first_ms

    def take(self, batch: Batch) -> Batch:
        """Return the records that need not wait, in their order; let the others wait."""
        late, in_time = self._divided(batch)
        origin, is_alone = batch.origin, self._has_one_source and not len(self._order)
        is_sorted = is_alone and origin.is_sorted and late is None
        if self._waits_all and not (origin.is_by_arrival or is_sorted):
            self._hold(batch)
            return Batch([], [])
        if late is not None:
            self._hold(late)
        return in_time

    def due(self, watermark_ms: int) -> Iterator[tuple[int, Batch]]:
        """Yield the records whose turn has come, late ones one by one.

        With each late record comes how far event time is for it, `MIN_MS` with those in time.
        """
        values, times, places = self._records.due(watermark_ms, is_inclusive=self._is_alone)
        if times is places or times == places:  # None is late, as a rule.
            if values:
                yield MIN_MS, Batch(values, times)
            return
        in_time: tuple[list[Any], list[int]] = ([], [])
        for value, time_ms, place_ms in zip(values, times, places, strict=True):
            if time_ms >= place_ms:
                in_time[0].append(value)
                in_time[1].append(time_ms)
                continue
            if in_time[0]:
                yield MIN_MS, Batch(*in_time)
                in_time = ([], [])
            yield place_ms, Batch([value], [time_ms])
        if in_time[0]:
            yield MIN_MS, Batch(*in_time)

    def restore(self, place: int, operator: str) -> None:
        is_keyed = self._key is not None
        self._kept = step_bulk(
            self._context, "waiting", place, operator=operator, is_keyed=is_keyed
        )
        self._kept.holds(lambda: (self._order,), lambda: None)  # Each epoch tells all of it.
        for _, pairs in self._kept.restored():
            self._told |= dict.fromkeys(pairs)
            self._order.load(held for flat in pairs.values() for held in _records(flat))

    def tell(self) -> None:
        """Give the waiting records to keyed state, at the end of an epoch; many, in steps."""
        finish(self._copying)
        if not (self._told or len(self._order)):
            return
        assert self._kept is not None, "restore comes first"
        keys, values, gone = list[Any](), list[list[Any]](), list[Any]()
        waiting = [*self._order]
        self._copying = self._copied(waiting, keys, values, gone)
        self._kept.delete(gone)
        self._kept.put_all(keys, values)
        self._kept.go_on_with(self._copying, len(waiting) + len(self._told))

    def _copied(
        self, waiting: list[Any], keys: list[Any], values: list[list[Any]], gone: list[Any]
    ) -> Iterator[None]:
        """Sort the records that wait by key, and find the keys of which none waits any more."""
        place_of: dict[Any, int] = {}
        for at in range(0, len(waiting), PIECE):
            some = waiting[at : at + PIECE]
            for held in some:
                key = self._key_of(held[5])
                place = place_of.setdefault(key, len(keys))
                if place == len(keys):
                    keys.append(key)
                    values.append([])
                values[place] += held
            yield
        told, self._told = self._told, place_of
        while told:
            some = [told.popitem()[0] for _ in range(min(PIECE, len(told)))]
            gone += [key for key in some if key not in place_of]
            yield

    def _divided(self, batch: Batch) -> tuple[Batch | None, Batch]:
        """Return the late records, None if there are none, and those in time."""
        values, timestamps = batch.values, batch.timestamps
        late = late_places(timestamps) if batch.has_late else ()
        if not late:
            return None, batch
        in_time = [type(time) is not LateTime for time in timestamps]
        rest = list(compress(values, in_time)), list(compress(timestamps, in_time))
        held = batch.giving([values[at] for at in late], [timestamps[at] for at in late])
        return held, Batch(*rest, origin=batch.origin)

    def _hold(self, batch: Batch) -> None:
        if len(batch):
            self._is_alone = self._has_one_source and batch.origin.is_alone
            self._put(batch)

    def _put(self, batch: Batch) -> None:
        values, timestamps, origin = batch.values, batch.timestamps, batch.origin
        places = timestamps
        if batch.has_late and (late := late_places(timestamps)):
            places, timestamps = list(timestamps), list(map(int, timestamps))
            for at in late:
                places[at] = promise_of(places[at])
        sides = None if self._sides_of is None else self._sides_of(values)
        self._records.hold(values, timestamps, places, rank=origin.rank, sides=sides)

    def _keys_of_sides(self, values: list[Any]) -> list[Any]:
        assert self._key is not None, "a step with sides has keys"
        return _parts_of(list(map(self._key, values)))

    def _key_of(self, value: Any) -> Any:
        if self._key is None:
            return None
        try:
            key = one_key(self._key(value))
            hash(key)
        except USER_ERRORS:  # The step will say so, when it gets the record.
            return None
        return key


class PeersGate(EventGate):
    """Lets all records wait until no other one of their time can come."""

    def __init__(self, context: TaskContext, key: Callable[[Any], Any]) -> None:
        super().__init__(context, key, waits="all")
        self._has_one_source = False  # Even of one partition another one of the time may follow.

    def take(self, batch: Batch) -> Batch:
        self._hold(batch)
        return Batch([], [])


class OrderedOutput(list[Message]):
    """The output of a task that gets its records in the order of event time.

    A record older than event time was at its output is late for the stages behind.
    """

    def __init__(self, on_late: Callable[[], object]) -> None:
        super().__init__()
        self._on_late = on_late
        self.reached_ms = MIN_MS  #: How far event time is: at the record, or the timer, at hand.

    def reach(self, at_ms: int) -> None:
        """Let event time be so far; it never goes back."""
        if at_ms > self.reached_ms:  # noqa: PLR1730 - `max` is three times as slow
            self.reached_ms = at_ms

    def append(self, message: Message) -> None:
        if type(message) is Message and message.timestamp < self.reached_ms:
            message = late_message(message, self.reached_ms)
            self._on_late()
        super().append(message)

    def marked(self, batches: Iterator[Batch | None]) -> Iterator[Batch | None]:
        """Mark output that comes in batches as late where it is older than event time is here."""
        for batch in batches:
            if batch is not None and type(batch.values) is list:
                self._on_late()
                batch = marked_late(batch, self.reached_ms)  # noqa: PLW2901 - the same records
            yield batch


class OrderedStage(Stage):
    """A stage whose records come in the order of event time.

    Args:
        inner: the stage; nothing waits in it, and it need not be told of event time.
        gate: lets all records wait.
    """

    def __init__(self, context: TaskContext, inner: Stage, gate: EventGate) -> None:
        self.name = inner.name
        self._context = context
        self._inner = inner
        self._gate = gate
        self._watermark_ms = MIN_MS

    def process(self, batch: Batch) -> Iterator[Batch]:
        batch = self._gate.take(batch)
        if batch.values:
            yield from self._inner.process(batch)
        if len(self._gate):
            yield from self._due(self._watermark_ms)

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        self._watermark_ms = watermark_ms
        yield from self._due(watermark_ms)
        yield from self._inner.on_watermark(watermark_ms)

    def snapshot(self) -> Any:
        self._gate.tell()
        return self._inner.snapshot()

    def restore(self, state: Any) -> None:
        self._inner.restore(state)
        self._gate.restore(self.place, self.name)
        self._context.state.goes_by_records()

    def close(self, *, completed: bool) -> None:
        self._inner.close(completed=completed)

    @property
    def place(self) -> int:
        return self._inner.place

    @place.setter
    def place(self, place: int) -> None:
        self._inner.place = place

    @property
    def hold_ms(self) -> int:
        return min(self._inner.hold_ms, self._gate.first_ms)

    def _due(self, watermark_ms: int) -> Iterator[Batch]:
        for at_ms, batch in self._gate.due(watermark_ms):
            if at_ms == MIN_MS:
                yield from self._inner.process(batch)
                continue
            self._context.state.advance(at_ms)
            for results in self._inner.process(batch):
                yield marked_late(results, at_ms)


def late_times(timestamps: Sequence[int], at_ms: int) -> list[int]:
    return [late_time(time_ms, max(at_ms, promise_of(time_ms))) for time_ms in timestamps]


def marked_late(batch: Batch, at_ms: int) -> Batch:
    times = late_times(batch.timestamps, at_ms)
    if type(batch.values) is Table:
        times = Times.of(times)
    return Batch(batch.values, times, has_late=True)


def late_message(message: Any, at_ms: int) -> Any:
    if type(message) is not Message or type(message.timestamp) not in {int, LateTime}:
        return message
    return Message(message.value, late_time(message.timestamp, at_ms))


def _records(flat: list[Any]) -> Iterator[Held]:
    for at in range(0, len(flat), _FIELDS):
        place_ms, side, rank, turn, time_ms, value = flat[at : at + _FIELDS]
        yield Held(place_ms, side, tuple(rank), turn, time_ms, value)


def content_of(value: Any) -> bytes:
    """Describe a value; one that cannot travel by its own words."""
    try:
        return encode_value(value)
    except ConfigError:
        return repr(value).encode("utf-8", "surrogatepass")


def _keys_of(values: list[Any]) -> list[Any]:
    """Return the first parts of values, such as keys of results, in the order of their bytes."""
    while values and all(map(isinstance, values, repeat(tuple))) and all(values):
        values = list(map(itemgetter(0), values))
    kinds = set(map(type, values))
    if kinds == {str} or (kinds == {int} and -_HALF <= min(values) <= max(values) < _HALF):
        return values  # In this order anyway.
    return list(map(first_key_of, values))


def _parts_of(keys: list[Any]) -> list[Any]:
    """Return keys of records as `_keys_of` does, but all parts of those that have several."""
    widths = set(map(len, keys)) if set(map(type, keys)) == {tuple} else set()
    if len(widths) != 1 or not all(widths):
        return _keys_of(keys)
    return list(zip(*map(_keys_of, map(list, zip(*keys, strict=True))), strict=True))


def first_key_of(value: Any) -> bytes:
    while isinstance(value, tuple) and value:
        value = value[0]
    return encode_key(value) if type(value) in {str, int} else b""


def ordered_stage(
    context: TaskContext, stage: Stage, key: Callable[[Any], Any], *, waits: bool
) -> Stage:
    return OrderedStage(context, stage, EventGate(context, key, waits="all")) if waits else stage
