"""Cells of keyed state as the columns of an Arrow table."""

import json
import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, repeat
from operator import attrgetter, itemgetter
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias, cast

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.cluster.checkpoints.reading import plain
from gearpy.columns.values import check_column, field_names, has_fields
from gearpy.core.base.stable_hash import KEY_GROUPS
from gearpy.errors import ProtocolError
from gearpy.state.encoding.keys import NO_KEY, decode_key
from gearpy.state.kinds.expiry import LIST_SIZE
from gearpy.state.kinds.place import NO_NAMESPACE
from gearpy.state.stores.cells import Run, Tag, expires_ms_of, is_collection, split_head, value_of
from gearpy.state.stores.many import WITH_KEY
from gearpy.wire.values.extensions import MALFORMED, ValueDecoder
from gearpy.wire.values.forms import RecordType
from gearpy.wire.values.records import RecordRegistry

_INT: Final = Struct(">Q")
_INT_TAG: Final = b"i"
_TEXT_TAG: Final = b"s"
_TAG: Final = itemgetter(slice(1))
_END: Final = (1 << 31) - 1  # It lies behind each cell.
_HALF: Final = 1 << 63
_ARRAY: Final = Struct(">BI")
_ARRAY_TAG: Final = 0xDD  # It stands for a list of any size.
_JOINED: Final = frozenset({"msgpack", "int", "float", "str"})  # Coders whose values are msgpack.
_NONE: Final = type(None)
_PLAIN: Final = frozenset({str, int, bytes, bool, float, _NONE})
#: Bulk state whose namespaces are starts of windows.
_OF_WINDOWS: Final = frozenset({"windows", "panes"})


#: A key group, and cells of it of one table.
Part: TypeAlias = tuple[int, Run]


class ShownClasses(RecordRegistry):
    """Registry that knows every class: instances of others than ``known`` are their fields.

    These have the names ``f0``, ``f1``, as only the program knows better ones.
    """

    def __init__(self, known: RecordRegistry) -> None:
        super().__init__(finds_classes=False)
        self._known = known

    def find(self, name: str, fingerprint: int) -> RecordType:
        try:
            return self._known.find(name, fingerprint)
        except ProtocolError:
            return _Unknown(dict, name, (), fingerprint)


class _Unknown(RecordType):
    """Form of a class that is not here."""

    def columns(self, values: Sequence[Any]) -> list[list[Any]]:
        raise NotImplementedError("it is only read")

    def build(self, columns: Sequence[Sequence[Any]], count: int) -> list[Any]:
        return self._build(columns, count)

    def _build(self, columns: Sequence[Sequence[Any]], count: int) -> list[Any]:
        rows = zip(*columns, strict=True) if columns else repeat((), count)
        return [row[0] if len(row) == 1 else row for row in rows]


class _Part(NamedTuple):
    """Cells of one key group in one namespace."""

    group: int
    namespace: bytes
    size: int


class StateColumns:
    """Gathers the cells of one state, and makes a table of them."""

    def __init__(self, tag: Tag, classes: RecordRegistry) -> None:
        self.tag = tag
        self._classes = classes
        self._parts: list[_Part] = []
        # Keys and values, if it is no collection: a million objects would take much memory.
        self._cell_keys: list[pa.Array] = []
        self._cell_values: list[pa.Array] = []
        # Those of a collection:
        self._keys: list[bytes] = []
        self._entries: list[bytes] = []
        self._values: list[bytes] = []

    def __len__(self) -> int:
        return sum(each.size for each in self._parts)

    @property
    def size_bytes(self) -> int:
        stored = (self._keys, self._entries, self._values)
        of_entries = sum(sum(map(len, each)) for each in stored)
        of_cells = sum(_end_of(each) for each in chain(self._cell_keys, self._cell_values))
        return of_entries + of_cells

    def add(self, group: int, run: Run) -> None:
        before, size = len(self._values), len(run.cells)
        values = cast("Sequence[bytes]", run.values)
        if is_collection(run.table):
            rests = run.rests
            is_list = self.tag.kind == "list"
            for rest, value in zip(rests, values, strict=True):
                key, entry = split_head(rest)
                if not (is_list and entry == LIST_SIZE):
                    self._keys.append(key)
                    self._entries.append(entry)
                    self._values.append(value)
            size = len(self._values) - before
        else:
            self._cell_keys += _compact(run.rests)
            self._cell_values += _compact(values)
        namespace = run.table[1 + run.table[0] :]
        self._parts.append(_Part(group, namespace, size))

    def table(self) -> pa.Table:
        """Return the cells as columns: key, namespace, entry, value, when it expires, key group.

        A column that says the same of all is left out: a namespace where there is none, an entry
        of a value.
        """
        try:
            keys, values, expires = self._keys_and_values()
            columns = {**_named("key", keys), **self._namespaces()}
            columns |= self._entries_and_values(values)
            if expires:
                columns["expires_ms"] = pa.array(expires, pa.int64())
            parts = [each for each in self._parts if each.size]
            groups = [None if each.group >= KEY_GROUPS else each.group for each in parts]
            ends = pa.array(accumulate(each.size for each in parts), pa.int64())
            runs = pa.RunEndEncodedArray.from_arrays(ends, pa.array(groups, pa.int32()))
            columns["key_group"] = pc.run_end_decode(runs)
            return pa.table(columns)
        except MALFORMED as error:
            raise ProtocolError(f"state {self.tag.name!r} is malformed: {error}") from error

    def _keys_and_values(self) -> tuple[Any, Any, list[int]]:
        """Return keys, values and when they expire; at once, if their form allows it."""
        is_bulk = self.tag.kind == "bulk"
        if not (self._values or self.tag.expires) and self.tag.coder in _JOINED:
            with_key = (pc.starts_with(each, WITH_KEY[:1]) for each in self._cell_values)
            if not (is_bulk and any(pc.any(each).as_py() for each in with_key)):
                head = _ARRAY.pack(_ARRAY_TAG, len(self))
                bodies = [memoryview(v.buffers()[2])[: _end_of(v)] for v in self._cell_values]
                found = ValueDecoder(self._classes).unpack(b"".join([head, *bodies]))
                return self._stored_keys(), list(found), []
        stored, expires = self._values or _listed(self._cell_values), list[int]()
        if self.tag.expires:
            expires = list(map(expires_ms_of, stored))
            stored = list(map(value_of, stored))
        if not is_bulk or WITH_KEY[:1] not in set(map(_TAG, stored)):
            return self._stored_keys(), self._decoded(stored), expires
        # Keys that their bytes do not give back exactly stand before the values.
        pairs = [each[:1] == WITH_KEY[:1] for each in stored]
        decoded = self._decoded(
            [each[1:] if is_pair else each for each, is_pair in zip(stored, pairs, strict=True)]
        )
        keys, values, rests = list[Any](), list[Any](), self._keys or _listed(self._cell_keys)
        for key, each, is_pair in zip(rests, decoded, pairs, strict=True):
            keys.append(each[0] if is_pair else decode_key(key, self._classes))
            values.append(each[1] if is_pair else each)
        return keys, values, expires

    def _stored_keys(self) -> Any:
        if self._cell_keys:
            column = _column_of(pa.chunked_array(self._cell_keys))
            if column is not None:
                return column
        return self._decoded_keys(self._keys or _listed(self._cell_keys))

    def _namespaces(self) -> dict[str, pa.Array]:
        if all(each.namespace == NO_NAMESPACE for each in self._parts):
            return {}
        size = len(NO_NAMESPACE)
        namespaces = [
            None
            if each.namespace == NO_NAMESPACE
            else decode_key(each.namespace[size:], self._classes)
            for each in self._parts
        ]
        sizes = [each.size for each in self._parts]
        name = "namespace"
        if self.tag.kind == "bulk" and self.tag.path[-1] in _OF_WINDOWS:
            name = "window_start_ms"
        every = chain.from_iterable(map(repeat, namespaces, sizes))
        return _named(name, list(every))

    def _entries_and_values(self, values: list[Any]) -> dict[str, pa.Array]:
        match self.tag.kind:
            case "map":
                return {**_named("entry", self._decoded_keys(self._entries)), **self._value(values)}
            case "list":
                positions = [_INT.unpack(each)[0] for each in self._entries]
                return {"position": pa.array(positions, pa.int64()), **self._value(values)}
            case "timers":
                tags = [each.decode("utf-8", "surrogatepass") for each in self._entries]
                return {**_named("tag", tags), "at_ms": pa.array(values, pa.int64())}
            case "set":
                decoder = ValueDecoder(self._classes)
                members = [
                    decoder.unpack(kept[1:]) if kept else decode_key(entry, self._classes)
                    for entry, kept in zip(self._entries, values, strict=True)
                ]
                return _named("value", members)
            case _:
                return self._value(values)

    def _value(self, values: list[Any]) -> dict[str, pa.Array]:
        is_known = self.tag.coder in _JOINED | {"json", "bytes"}
        return _named("value" if is_known else "value_bytes", values)

    def _decoded(self, stored: list[bytes]) -> list[Any]:
        if self.tag.kind == "set" or self.tag.coder not in _JOINED:
            if self.tag.coder == "json" and self.tag.kind != "set":
                return list(json.loads(b"[" + b",".join(stored) + b"]"))
            return list(stored)
        data = _ARRAY.pack(_ARRAY_TAG, len(stored)) + b"".join(stored)
        return list(ValueDecoder(self._classes).unpack(data))

    def _decoded_keys(self, keys: list[bytes]) -> Any:
        if keys and (column := _column_of(pa.chunked_array(_compact(keys)))) is not None:
            return column
        found = (decode_key(key, self._classes) for key in keys)
        return [None if key is NO_KEY else key for key in found]


def _compact(cells: Sequence[bytes]) -> list[pa.Array]:
    stored = pa.array(cells, pa.binary())
    return [stored] if isinstance(stored, pa.Array) else stored.chunks


def _end_of(stored: pa.Array) -> int:
    return memoryview(stored.buffers()[1]).cast("i")[len(stored)] if len(stored) else 0


def _listed(stored: Iterable[pa.Array]) -> list[bytes]:
    return list(chain.from_iterable(each.to_pylist() for each in stored))


def _column_of(stored: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray | None:
    """Return keys as a column, without a Python object for each."""
    tag = next(
        (tag for tag in (_TEXT_TAG, _INT_TAG) if bool(pc.all(pc.starts_with(stored, tag)).as_py())),
        None,
    )
    if tag is None:
        return None
    rests = pc.binary_slice(stored, len(tag), _END)
    if tag == _INT_TAG:
        stored = rests.combine_chunks()
        data = stored.buffers()[2][: len(stored) * _INT.size]
        raised = array("Q", data.to_pybytes())
        if sys.byteorder == "little":
            raised.byteswap()
        buffers = [None, pa.py_buffer(raised)]
        column = pa.Array.from_buffers(pa.uint64(), len(raised), buffers)
        return pc.bit_wise_xor(column, pa.scalar(_HALF, pa.uint64())).view(pa.int64())
    try:
        return rests.cast(pa.string()).combine_chunks()
    except pa.ArrowInvalid:  # There are lone surrogates.
        return None


def _named(name: str, cells: Sequence[Any] | pa.Array) -> dict[str, pa.Array]:
    """Return cells as a column; if there is no type for all of them, as text, named so."""
    if isinstance(cells, pa.Array | pa.ChunkedArray):
        return {name: cells}
    try:
        return {name: _array(cells)}
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        texts = [None if e is None else json.dumps(plain(e), ensure_ascii=False) for e in cells]
        return {f"{name}_json": pa.array(texts, pa.string())}


def _array(cells: Sequence[Any]) -> pa.Array:
    kinds = set(map(type, cells)) - {_NONE}
    if len(kinds) > 1:
        raise TypeError(f"a column has values of {len(kinds)} types")
    kind = next(iter(kinds), _NONE)
    if kind in _PLAIN:
        return pa.array(cells)
    if kind in {list, set, frozenset}:
        rows = [sorted(each) if isinstance(each, set | frozenset) else each for each in cells]
        ends = list(accumulate((len(each or ()) for each in rows), initial=0))
        starts = [None if row is None else at for row, at in zip(rows, ends, strict=False)]
        items = _array(list(chain.from_iterable(filter(None, rows))))
        return pa.ListArray.from_arrays(pa.array([*starts, ends[-1]], pa.int32()), items)
    first = next(each for each in cells if each is not None)
    if kind in {tuple, dict} or has_fields(first):
        return _structs([first if each is None else each for each in cells], cells)
    array = pa.array(cells)
    check_column(array.type, cells)
    return array


def _structs(rows: list[Any], cells: Sequence[Any]) -> pa.Array:
    """Return a column of records; rows are the cells, with another one where there is none."""
    first = rows[0]
    fields: Iterable[Sequence[Any]]
    if type(first) is tuple:
        fields = zip(*rows, strict=True)  # A ValueError if they are not of one length.
        names = [f"f{at}" for at in range(len(first))]
    elif type(first) is dict:
        names = list(first)
        if not names or any(each.keys() != first.keys() for each in rows):
            raise TypeError("dicts with several sets of keys have no common fields")
        fields = (list(map(itemgetter(name), rows)) for name in names)
    else:
        names = list(field_names(first))
        fields = (list(map(attrgetter(name), rows)) for name in names)
    arrays = list(map(_array, fields))
    if not all(type(name) is str for name in names) or not arrays:
        raise TypeError("a record without fields, or with such that have no names")
    mask = pa.array([each is None for each in cells]) if None in cells else None
    return pa.StructArray.from_arrays(arrays, names, mask=mask)


def tables_of(parts: Iterable[Part], classes: RecordRegistry) -> list[StateColumns]:
    found = dict[bytes, StateColumns]()
    for group, run in parts:
        head = run.table[: 1 + run.table[0]]
        if head not in found:
            found[head] = StateColumns(Tag.decode(head), classes)
        found[head].add(group, run)
    return [found[head] for head in sorted(found)]
