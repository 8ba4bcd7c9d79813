"""The records of a whole batch <-> bytes.

A batch body is ``u32 size of the values | values | timestamps``. Values are stored by the shape
they share, which the first byte names: a plain list; tuples of one length, turned into one
column for each position; instances of one class, turned into one column for each field. Columns
are stored the same way, and one of which all values are the same as that value. So the cost of a
class or tuple is paid once a batch.

A `Table` is stored by the module beside this one, with its timestamps in it.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final

from gearpy.errors import CannotTravel, ConfigError, ProtocolError
from gearpy.messages.data import Batch
from gearpy.messages.late_time import LateTime, late_places, late_time
from gearpy.messages.table import Table
from gearpy.wire.values.arrow_payload import decode_table, encode_table
from gearpy.wire.values.extensions import (
    MALFORMED,
    EncoderPool,
    ValueDecoder,
    ValueEncoder,
    located,
)
from gearpy.wire.values.forms import NotAllowed
from gearpy.wire.values.records import DEFAULT_REGISTRY, RecordRegistry

#: How deep columns may nest; deeper tuples and records are stored one by one.
COLUMN_DEPTH_MAX: Final = 8

_PLAIN: Final = 0
_TUPLES: Final = 1
_RECORDS: Final = 2
_TABLE: Final = 3  # Only of a whole batch.
_SAME: Final = 4  # At least one column is another, which bounds the count.

#: Values of these types that are equal, and of one type, are the same.
_SAMEABLE: Final = frozenset({str, int, bool, type(None)})
#: Fewer values are not worth the look.
_SAME_MIN: Final = 8

_CONSTANT: Final = 0  # Timestamps: one for all ...
_EACH: Final = 8  # ... or so many bytes for each. A table has them inside, and nothing here.
_SOME_LATE: Final = 9  # The same, then the places of late ones, and what was promised before each.

_U32: Final = struct.Struct("<I")
_ONE_TIME: Final = struct.Struct("<Bq")

_DEFAULT_ENCODERS: Final = EncoderPool(DEFAULT_REGISTRY)


def encode_batch(
    values: list[Any],
    timestamps: list[int],
    encoders: EncoderPool = _DEFAULT_ENCODERS,
    *,
    lead: int = 0,
    has_late: bool = True,
) -> list[bytes | memoryview]:
    """Return the records of a batch as buffers to join; their number travels beside them.

    Args:
        lead: so many bytes will stand before these. Columns are then at places where they can
            be used as they are.
        has_late: whether a time may be a `LateTime`. Where it is known that none is, that saves a
            look at each.

    Raises:
        CannotTravel: a value cannot, with its place in the record.
        ConfigError: a timestamp is no int64.
    """
    assert len(values) == len(timestamps), "one timestamp for each value"
    if not values:
        return []
    if type(values) is Table:
        table = encode_table(values, timestamps, lead=lead + _U32.size + 1)
        return [_U32.pack(1 + sum(map(len, table))), bytes((_TABLE,)), *table]
    try:
        column = _Encoder(encoders).column(values, 0)
    except (CannotTravel, NotAllowed) as error:
        # One value after the other is encoded again, to find the one that cannot travel.
        for value in values:
            try:
                encode_value(value, encoders.registry, where="a record")
            except CannotTravel as found:
                raise found from error
        raise CannotTravel(str(error), "a record") from error
    times = _encode_times(timestamps, late_places(timestamps) if has_late else ())
    return [_U32.pack(sum(map(len, column))), *column, times]


def decode_batch(
    body: bytes | memoryview, count: int, registry: RecordRegistry = DEFAULT_REGISTRY
) -> Batch:
    """Return the ``count`` records that `encode_batch` made into ``body``."""
    if not count:
        if len(body):
            raise ProtocolError(f"a batch without records has a body of {len(body)} bytes")
        return Batch([], [])
    try:
        size = 4 + _U32.unpack_from(body)[0]
        view = memoryview(body)
        if view[4] == _TABLE:
            if size != len(view):
                raise ProtocolError(f"a table of {size} bytes in a body of {len(view)}")
            return decode_table(view[5:], count)
        # Values first: they bound the count by the size of the body, timestamps do not.
        values = _Decoder(registry, count).column(view[4:size], 0)
        times = _decode_times(view[size:], count)
        return Batch(values, times, has_late=view[size] == _SOME_LATE)
    except MALFORMED as error:
        raise ProtocolError(f"malformed batch of {count} records: {error}") from error


def encode_value(
    value: Any, registry: RecordRegistry = DEFAULT_REGISTRY, *, where: str = "a value"
) -> bytes:
    try:
        return ValueEncoder(registry).pack(value)
    except CannotTravel as error:
        raise located(error, value, registry, where) from error


def holds_table(body: bytes | memoryview) -> bool:
    return len(body) > _U32.size and body[_U32.size] == _TABLE


def decode_value(body: bytes | memoryview, registry: RecordRegistry = DEFAULT_REGISTRY) -> Any:
    try:
        return ValueDecoder(registry).unpack(body)
    except MALFORMED as error:
        raise ProtocolError(f"malformed value: {error}") from error


class _Encoder:
    """Encodes the columns of one batch."""

    def __init__(self, encoders: EncoderPool) -> None:
        self._encoders = encoders

    def column(self, values: list[Any], depth: int) -> list[bytes]:
        cls = type(values[0])
        record = self._encoders.registry.of_class(cls)
        # All are looked at only where the first one says that it may be worth it.
        if (record is not None or cls is tuple) and depth < COLUMN_DEPTH_MAX:
            alike = len(set(map(type, values))) == 1
            if alike and record is not None and record.fields:
                columns = record.columns(values)
                name = record.name.encode()
                head = bytes((_RECORDS,)) + _U32.pack(len(name)) + name
                head += _U32.pack(record.fingerprint)
                return [head, *self._columns(columns, depth)]
            # () is stored one by one, as it has no column that would bound the count.
            if alike and cls is tuple and values[0] and len(set(map(len, values))) == 1:
                columns = list(map(list, zip(*values, strict=True)))
                return [bytes((_TUPLES,)), *self._columns(columns, depth)]
        return [bytes((_PLAIN,)), self._encoders.pack(values)]

    def _columns(self, columns: list[list[Any]], depth: int) -> list[bytes]:
        buffers = [_U32.pack(len(columns))]
        is_bound = False
        for left, values in zip(reversed(range(len(columns))), columns, strict=True):
            if (left or is_bound) and _are_same(values):
                column = [bytes((_SAME,)), self._encoders.pack(values[0])]
            else:
                column = self.column(values, depth + 1)
                is_bound = True
            buffers += [_U32.pack(sum(map(len, column))), *column]
        return buffers


def _are_same(values: list[Any]) -> bool:
    """Tell whether all values are the same. Most columns are told apart by two of them."""
    first = values[0]
    return (
        type(first) in _SAMEABLE
        and first == values[-1]
        and len(values) >= _SAME_MIN
        and values.count(first) == len(values)
        and len(set(map(type, values))) == 1
    )


class _Decoder:
    """Decodes the columns of one batch, each of ``count`` values."""

    def __init__(self, registry: RecordRegistry, count: int) -> None:
        self._registry = registry
        self._count = count
        self._values = ValueDecoder(registry)

    def column(self, view: memoryview, depth: int) -> list[Any]:
        if depth > COLUMN_DEPTH_MAX:
            raise ProtocolError(f"columns nested deeper than {COLUMN_DEPTH_MAX} levels")
        kind, rest = view[0], view[1:]
        if kind == _PLAIN:
            values = self._values.unpack(rest)
            if type(values) is not list or len(values) != self._count:
                raise ProtocolError(f"a column does not hold {self._count} values")
            return values
        if kind == _TUPLES:
            return list(zip(*self._columns(rest, depth), strict=True))
        if kind == _RECORDS:
            size = 4 + _U32.unpack_from(rest)[0]
            record = self._registry.find(
                str(rest[4:size], "utf-8"), _U32.unpack_from(rest, size)[0]
            )
            return record.build(self._columns(rest[size + 4 :], depth), self._count)
        raise ProtocolError(f"unknown column kind {kind} in a batch")

    def _columns(self, view: memoryview, depth: int) -> list[list[Any]]:
        width, start = _U32.unpack_from(view)[0], 4
        if not 0 < width <= len(view):
            raise ProtocolError(f"{width} columns in {len(view)} bytes")
        columns: list[list[Any]] = []
        same: list[int] = []
        for at in range(width):
            end = start + 4 + _U32.unpack_from(view, start)[0]
            column = view[start + 4 : end]
            if column[0] == _SAME:
                columns.append([self._values.unpack(column[1:])])
                same.append(at)
            else:
                columns.append(self.column(column, depth + 1))
            start = end
        if start != len(view):
            raise ProtocolError(f"columns end at byte {start} of {len(view)}")
        if len(same) == width:
            raise ProtocolError(f"no column has the {self._count} values of its own")
        for at in same:  # Others have shown that there are so many.
            columns[at] *= self._count
        return columns


# -- timestamps ----------------------------------------------------------------------------


def _encode_times(timestamps: list[int], late: Sequence[int]) -> bytes:
    """Store one time where all are the same, else each as it is."""
    first, count = timestamps[0], len(timestamps)
    try:
        if late:
            promised = [time.promised_ms for at in late if type(time := timestamps[at]) is LateTime]
            shape = f"<B{count}qI{len(late)}I{len(late)}q"
            return struct.pack(shape, _SOME_LATE, *timestamps, len(late), *late, *promised)
        if first == timestamps[-1] and timestamps.count(first) == count:
            return _ONE_TIME.pack(_CONSTANT, first)
        return struct.pack(f"<B{count}q", _EACH, *timestamps)
    except struct.error as error:
        raise ConfigError(f"timestamps must be int64 milliseconds: {error}") from error


def _decode_times(view: memoryview, count: int) -> list[int]:
    if view[0] == _CONSTANT:
        return [_ONE_TIME.unpack(view)[1]] * count
    if view[0] == _SOME_LATE:
        times = list(struct.unpack_from(f"<{count}q", view, 1))
        start = 1 + _EACH * count
        late = _U32.unpack_from(view, start)[0]
        if late > count or len(view) != start + _U32.size + late * (_U32.size + _EACH):
            raise ProtocolError(
                f"{len(view) - 1} bytes of timestamps, {late} of them late, for {count}"
            )
        places = struct.unpack_from(f"<{late}I", view, start + _U32.size)
        promises = struct.unpack_from(f"<{late}q", view, start + _U32.size * (1 + late))
        for at, promised_ms in zip(places, promises, strict=True):
            times[at] = late_time(times[at], promised_ms)  # Raises what malformed places deserve.
        return times
    if view[0] != _EACH or len(view) != 1 + _EACH * count:
        raise ProtocolError(f"{len(view)} bytes of timestamps of kind {view[0]} for {count}")
    return list(struct.unpack_from(f"<{count}q", view, 1))
