"""Makes the columns of a window log from results of windows and joins, and other records."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from operator import attrgetter, itemgetter
from reprlib import repr as short_repr
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.columns.results import (
    BEFORE,
    BEHIND,
    LOCAL,
    TIME,
    WINDOW_END,
    WINDOW_START,
    pair_keys,
    result_columns,
)
from gearpy.columns.spark_types import exact_schema
from gearpy.columns.values import (
    array_of,
    cast_column,
    field_names,
    has_fields,
    is_utf8,
    plain_cells,
    refuse_unknown,
)
from gearpy.columns.widening import settled_type, told_type, wider_schema
from gearpy.core.base.fields import rows_of_pairs
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.table import Table, Times

#: So many of the first records may wait until all of an epoch have told the schema.
FIRST_ROWS_MAX: Final = 1 << 14

#: So many rows are made columns at once.
GATHERED_ROWS_MAX: Final = 4096
#: Longer texts are worth a column of their own, and would make much of that many rows.
TEXT_MAX: Final = 1024

_DOUBLE_MAX: Final = 1 << 53  # Up to there all whole numbers are doubles.
_INTEGERS: Final = {
    pa.int8(): 1 << 7,
    pa.int16(): 1 << 15,
    pa.int32(): 1 << 31,
    pa.int64(): 1 << 63,
}

_Test: TypeAlias = Callable[[Sequence[Any]], bool]

EVENT_TIME: Final = "event_time"

_US_PER_MS: Final = 1000
_ENDS: Final = (MIN_MS, MAX_MS)
_ENDS_SET: Final = frozenset(_ENDS)
#: The years 0001 to 9999: neither Python nor Spark have others.
_FIRST_MS: Final = -62_135_596_800_000
_LAST_MS: Final = 253_402_300_799_999
_RECORD_CHARS_MAX: Final = 500
#: The column that the log adds to records that are no results.
_STAMP: Final = (pa.field(EVENT_TIME, TIME),)
#: Fields of `WindowResult`; of `JoinResult` and `CoGroup`. The task layer has these classes.
_WINDOW_RESULT: Final = ("key", "value", "start", "end", "firing", "timing", "retracts")
_LOCAL_RESULT: Final = (*_WINDOW_RESULT, "local_start", "local_end")
_RESULTS: Final = frozenset({_WINDOW_RESULT, _LOCAL_RESULT})
_JOINED: Final = ("key", "left", "right", "start", "end")
_JOINS: Final = frozenset({_JOINED, (*_JOINED, "local_start", "local_end")})
#: Columns of all that a key or a value is, where it has no fields.
_WHOLE: Final = frozenset({"key", "value", "left", "right"})
_ERRORS: Final = (pa.ArrowException, TypeError, ValueError, ArithmeticError, AttributeError)

#: Fewer records are gathered; to make columns of more takes less time than to look at each cell.
_FEW_ROWS_MAX: Final = 64
#: What belongs to more records than that does not stay in the caches of a processor.
_CHUNK_ROWS: Final = 4096
#: So many of the first records may be bad until no others are asked what the columns are.
_BLAMED_MAX: Final = 16

_NO_FIELDS: Final[Mapping[str, Any]] = MappingProxyType({})
_Cells = dict[str, Any]  # By column: a list of values, an array, or `_Added`.


class LogColumns:
    """Makes columns of records, all with one schema, whose types Spark takes as they are.

    Results of windows have ``window_start``, ``window_end``, the key, the fields of the value,
    ``firing``, ``timing`` and ``retracts``; those of joins the window, the key and the fields of
    both sides; with a zone both have ``local_start`` and ``local_end``, too. Other records have
    their fields, and ``event_time``. The key of one part is ``key``, that of several ``key_1``,
    ``key_2`` ...; a value without fields is ``value``. A stream without keys has no column for
    them.

    Without a schema it has that of all records so far: it grows with what comes, until `settle`
    or `adopt` says that it may not any more.

    Args:
        operator: name to blame for a record that does not fit.
        schema: of the columns with keys and values; may have all. None to find it out.
        key: names of the columns for the parts of the key.
        keys: the columns of the key, as far as the program tells them; None for a type that it
            does not tell.

    Raises:
        ConfigError: Spark has nothing like a type of the schema.
    """

    def __init__(
        self,
        operator: str,
        *,
        schema: pa.Schema | None = None,
        key: Sequence[str] = (),
        keys: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._operator = operator
        self._given = None if schema is None else exact_schema(schema, name=operator)
        self._key = tuple(key)
        self.keys = keys
        #: Types of fields of values and records, as far as the program tells them.
        self.fields: Mapping[str, Any] = {}
        self.may_grow = schema is None  #: Whether the schema gets what records bring.
        self._around: tuple[Sequence[pa.Field], ...] | None = (
            None  # The columns around those of records.
        )
        self._gathered: GatheredCells | None = None  # None as long as there is no schema.
        self.schema: pa.Schema | None = None  #: Of all columns; None before the first records.
        #: Columns that tell rows apart; empty if only all of them do.
        self.identity: tuple[str, ...] = ()
        # For its first column Arrow imports pandas where that is installed, for half a second and
        # more. Better now than with the first records, when a stream would stand.
        pa.array([], pa.null())

    def adopt(
        self, schema: pa.Schema, identity: Sequence[str] = (), *, may_grow: bool = False
    ) -> None:
        self.may_grow = may_grow
        self._have(schema, identity)

    def settle(self) -> None:
        """Keep to the schema from now on; what nothing has told so far is text."""
        self.adopt(self.settled_schema(), self.identity)

    def settled_schema(self) -> pa.Schema:
        """Return the schema that `settle` would keep to now."""
        assert self.schema is not None, "records come first"
        fields = [field.with_type(settled_type(field.type)) for field in self.schema]
        return exact_schema(pa.schema(fields), name=self._operator)

    def _have(self, schema: pa.Schema, identity: Sequence[str]) -> None:
        self.schema = schema
        self.identity = tuple(identity)
        self._gathered = GatheredCells(schema)

    def batch_of(self, values: Sequence[Any], timestamps: Sequence[int] = ()) -> pa.RecordBatch:
        """Return the columns of some records, or of a table.

        Args:
            timestamps: their event times, for records that are no results of windows.

        Raises:
            OperatorError: a record does not fit; names it.
            ConfigError: Spark has nothing like what is in the records.
        """
        before = self.schema, self.identity
        try:
            if self.may_grow or len(values) <= _CHUNK_ROWS or type(values) is Table:
                return self._converted(values, timestamps)
            chunks = [slice(at, at + _CHUNK_ROWS) for at in range(0, len(values), _CHUNK_ROWS)]
            return pa.concat_batches(
                [self._converted(values[chunk], timestamps[chunk]) for chunk in chunks]
            )
        except _ERRORS as error:
            self._restore(*before)
            self._blame(values, timestamps)
            raise OperatorError(operator=self._operator, cause=str(error)) from error

    def fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return columns that were made before the schema has grown, or was settled."""
        assert self.schema is not None
        own = {field.name for field in batch.schema if not pa.types.is_null(field.type)}
        refuse_unknown(own, self.schema.names)
        cells = {name: batch.column(name) for name in own}
        columns = [_column(field, cells.get(field.name), len(batch)) for field in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    # -- few records -----------------------------------------------------------------------

    def gather(self, values: Sequence[Any], timestamps: Sequence[int] = ()) -> bool:
        """Keep a few records until `gathered`; False if they are better made columns now.

        They are what they were, whatever their owner changes in them later.

        Args:
            timestamps: their event times, for records that are no results of windows.
        """
        gathered, rows = self._gathered, len(values)
        if gathered is None or rows > _FEW_ROWS_MAX or type(values) is Table:
            return False
        try:
            cells, _ = self._cells_of(values, timestamps)
            plain, times = {}, []
            for name, column in cells.items():
                is_added = type(column) is _Added
                plain[name] = column.plain() if is_added else column
                if is_added and column.is_time:
                    times.append(name)
        except _ERRORS:
            return False  # To make columns of them says what is wrong.
        return gathered.add(plain, rows, moments=times)

    @property
    def gathered_rows(self) -> int:
        return 0 if self._gathered is None else self._gathered.rows

    def gathered(self) -> pa.RecordBatch:
        assert self._gathered is not None
        assert self.schema is not None
        cells = self._gathered.take()
        columns = [pa.array(cells[field.name], field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    # -- columns ---------------------------------------------------------------------------

    def _converted(self, values: Sequence[Any], timestamps: Sequence[int]) -> pa.RecordBatch:
        cells, around = self._cells_of(values, timestamps)
        if self.schema is None:
            self._begin(cells, around)
        try:
            return self._filled(cells, len(values))
        except _ERRORS:
            if not (self.may_grow and self._grown(cells, around)):
                raise
        return self._filled(cells, len(values))

    def _filled(self, cells: _Cells, rows: int) -> pa.RecordBatch:
        schema = self.schema
        assert schema is not None
        refuse_unknown(cells, schema.names)
        columns = [_column(field, cells.get(field.name), rows) for field in schema]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    # -- who is to blame -------------------------------------------------------------------

    def _blame(self, values: Sequence[Any], timestamps: Sequence[int]) -> None:
        """Raise for the first record that does not fit."""
        try:
            records = list(values)
        except _ERRORS:
            return  # A table with what Python has nothing like.
        if self.schema is not None:
            for place, value in enumerate(records):
                at = timestamps[place : place + 1]
                error = self._failure([value], at)
                if error is not None:
                    raise self._blaming(value, at, error) from error
            return
        # The records that fit to those before them give the schema, so that it is the same when
        # they are tried one by one.
        times, first = list(timestamps), None
        for _ in range(_BLAMED_MAX):
            error = self._failure(records, times) if records else None
            if error is None:
                break
            fits, end = 0, len(records)
            while end - fits > 1:
                half = (fits + end) // 2
                found = self._failure(records[:half], times[:half])
                fits, end, error = (half, end, error) if found is None else (fits, half, found)
            first = first or self._blaming(records[fits], times[fits : fits + 1], error)
            del records[fits], times[fits : fits + 1]
        if first is not None:
            if type(values) is not Table and records:
                with suppress(ConfigError, *_ERRORS):
                    self._begin(*self._cells_of(records, times))
            raise first

    def _failure(self, values: Sequence[Any], timestamps: Sequence[int]) -> Exception | None:
        before = self.schema, self.identity
        try:
            self._converted(values, timestamps)
        except _ERRORS as error:
            return error
        finally:
            self._restore(*before)
        return None

    def _blaming(self, value: Any, times: Sequence[int], error: Exception) -> OperatorError:
        return OperatorError(
            operator=self._operator,
            cause=str(error),
            record=repr(value)[:_RECORD_CHARS_MAX],
            event_time_ms=next(iter(times), None),
        )

    def _restore(self, schema: pa.Schema | None, identity: Sequence[str]) -> None:
        """Have a schema again: the records that made it another one were not taken."""
        if schema is None:
            self.schema, self.identity, self._gathered = None, (), None
        elif schema is not self.schema:
            self._have(schema, identity)

    # -- the schema ------------------------------------------------------------------------

    def _begin(self, cells: _Cells, around: "_Around") -> None:
        """Take the schema that was given, or that of these records, with what the log adds."""
        names = {field.name for part in around[:2] for field in part}
        own = [] if self._given is not None else self._own(cells, names, self.fields)
        if self._given is not None:
            refuse_unknown(cells, {*self._given.names, *names})
            own = [field for field in self._given if field.name not in names]
            given = {field.name: field for field in self._given}
            around = _Around(
                [given.get(field.name, field) for field in around.before],
                [given.get(field.name, field) for field in around.behind],
                around.identity,
            )
        self._around = around[:2]
        self._have(self._exact([*around.before, *own, *around.behind]), around.identity)

    def _grown(self, cells: _Cells, around: "_Around") -> bool:
        """Let the schema have room for these records, too; False if it has, or cannot have."""
        assert self.schema is not None
        self._around = self._around or around[:2]
        names = {field.name for part in self._around for field in part}
        fresh = cells.keys() - {*self.schema.names}
        if self._around != around[:2] or not fresh.isdisjoint(_WHOLE - {"key"}):
            return False  # Records of windows and others, or values with fields and without.
        there = [field for field in self.schema if field.name not in names]
        try:
            wide = wider_schema(pa.schema(there), pa.schema(self._own(cells, names)))
        except ValueError:
            return False
        # A column for a whole record goes when one comes that has parts.
        own = [
            field
            for field in wide
            if field.name in cells or field.name not in _WHOLE or not pa.types.is_null(field.type)
        ]
        schema = self._exact([*around.before, *own, *around.behind])
        if schema.equals(self.schema):
            return False
        self._have(schema, max(self.identity, around.identity, key=len))
        return True

    def _own(
        self, cells: _Cells, added: Collection[str], fields: Mapping[str, Any] = _NO_FIELDS
    ) -> list[pa.Field]:
        told = dict(zip(self._key or self.keys, self.keys.values(), strict=False))
        if WINDOW_START not in added:
            told = {}
        return [
            pa.field(name, told.get(name) or told_type(name, cells[name], fields.get(name)))
            for name in cells
            if name not in added
        ]

    def _exact(self, fields: Sequence[pa.Field]) -> pa.Schema:
        return exact_schema(pa.schema(fields), name=self._operator, is_settled=not self.may_grow)

    # -- what is in the records --------------------------------------------------------------

    def _cells_of(
        self, values: Sequence[Any], timestamps: Sequence[int]
    ) -> tuple[_Cells, "_Around"]:
        if type(values) is Table:
            batch = values.batch
            cells: _Cells = dict(zip(batch.schema.names, batch.columns, strict=True))
            found = self._of_results(batch) or self._of_pairs(batch)
            return found or _stamped(cells, timestamps)
        fields = getattr(values[0], "_fields", None)
        if fields in _RESULTS or fields in _JOINS:
            if len(set(map(type, values))) > 1:
                kinds = ", ".join(sorted(kind.__name__ for kind in set(map(type, values))))
                raise TypeError(f"records of one type are needed, these are {kinds}")
            return self._of_windows(values) if fields in _RESULTS else self._of_joins(values)
        return _stamped(self._fields(rows_of_pairs(values)), timestamps)

    def _of_results(self, batch: pa.RecordBatch) -> tuple[_Cells, "_Around"] | None:
        columns = result_columns(batch.schema)
        if columns is None:
            return None
        key = self._key_names(columns.key)
        names = dict(zip(columns.key, key, strict=True))
        cells = _merged(
            *(
                {names.get(name, name): column}
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            )
        )
        identity = (WINDOW_START, WINDOW_END, *key, "firing", "retracts")
        return cells, _Around(BEFORE, columns.behind, identity)

    def _of_pairs(self, batch: pa.RecordBatch) -> tuple[_Cells, "_Around"] | None:
        names = pair_keys(batch.schema)
        if names is None:
            return None
        whole = [
            name
            for name in ("left", "right")
            if self._known is not None
            and self._has(name)
            and pa.types.is_nested(self._known.field(name).type)
        ]
        return columns_of_pairs(batch, self._key_names(names), whole), _Around(BEFORE)

    def _key_names(self, names: Sequence[str]) -> Sequence[str]:
        key = self._key or names
        if len(key) != len(names):
            raise ValueError(
                f"the key has {len(names)} parts, and the names {', '.join(key)} are for "
                f"{len(key)}: give one name for each part"
            )
        return key

    def _of_windows(self, values: Sequence[Any]) -> tuple[_Cells, "_Around"]:
        key, value, start, end, *behind = map(list, zip(*values, strict=True))
        added = (*BEHIND, *LOCAL)[: len(behind)]
        keys = self._keys(key)
        cells = _merged(
            {WINDOW_START: _Added(start, is_time=True), WINDOW_END: _Added(end, is_time=True)},
            keys,
            self._side("value", value),
            {field.name: _Added(each) for field, each in zip(added, behind, strict=True)},
        )
        identity = (WINDOW_START, WINDOW_END, *keys, "firing", "retracts")
        return cells, _Around(BEFORE, added, identity)

    def _of_joins(self, values: Sequence[Any]) -> tuple[_Cells, "_Around"]:
        key, left, right, start, end, *bounds = map(list, zip(*values, strict=True))
        added = LOCAL[: len(bounds)]
        cells = _merged(
            {WINDOW_START: _Added(start, is_time=True), WINDOW_END: _Added(end, is_time=True)},
            self._keys(key),
            self._side("left", left, prefix="left_"),
            self._side("right", right, prefix="right_"),
            {field.name: _Added(each) for field, each in zip(added, bounds, strict=True)},
        )
        return cells, _Around(BEFORE, added)

    def _keys(self, keys: list[Any]) -> _Cells:
        first = next((key for key in keys if key is not None), None)
        if first is None and (told := self._key or tuple(self.keys)):
            names = told if self.may_grow or self.schema is None else filter(self._has, told)
            return {name: [None] * len(keys) for name in names}
        if first is None and not self._has("key"):
            return {}
        if type(first) is tuple:
            return _parts(keys, self._key)
        if is_record(first):
            return fields_of(keys)
        if len(self._key) > 1:
            raise ValueError(
                f"the key is {short_repr(first)}, for which there are the names "
                f"{', '.join(self._key)}: give one name, or make the key a tuple"
            )
        return {(self._key or ("key",))[0]: plain_cells(keys)}

    def _side(self, name: str, cells: list[Any], *, prefix: str = "") -> _Cells:
        """Return the columns of the fields of values; one column of values that have none."""
        first = next((cell for cell in cells if cell is not None), None)
        has_fields = is_record(first)
        if has_fields and self._known is not None and self._has(name):
            # The column may be that of a field of theirs.
            is_nested = pa.types.is_nested(self._known.field(name).type)
            has_fields = not is_nested and name in fields_of([first])
        if has_fields:
            return {prefix + field: column for field, column in self._fields(cells).items()}
        if first is None and self._known is not None and not self._has(name):
            return {}
        return {name: plain_cells(cells)}

    def _fields(self, records: Sequence[Any]) -> _Cells:
        found: _Cells = fields_of(records)
        if not found and self._known is None:
            raise ValueError("there are no fields in it")
        return found

    def _has(self, name: str) -> bool:
        if self._known is None or name not in self._known.names:
            return False
        return not (self.may_grow and pa.types.is_null(self._known.field(name).type))

    @property
    def _known(self) -> pa.Schema | None:
        return self._given if self.schema is None else self.schema


def columns_of_pairs(
    batch: pa.RecordBatch, key: Sequence[str], whole: Collection[str] = ()
) -> dict[str, pa.Array]:
    """Return the columns that a log has of a table of pairs, with a column for each field.

    Args:
        key: the names of the columns of the key.
        whole: the sides whose records have one column.
    """
    *keys, left, right, start, end = batch.columns
    sides = [
        {name: records}
        if name in whole
        else {
            f"{name}_{field.name}": column
            for field, column in zip(records.type, records.flatten(), strict=True)
        }
        for name, records in (("left", left), ("right", right))
    ]
    return _merged(
        {WINDOW_START: moments(start), WINDOW_END: moments(end)},
        dict(zip(key, keys, strict=True)),
        *sides,
    )


class _Added(NamedTuple):
    """The cells of a column that a log adds: often all alike; times are in ms."""

    cells: Sequence[Any]
    is_time: bool = False

    def plain(self) -> list[Any]:
        if not self.is_time:
            return list(self.cells)
        if set(map(type, self.cells)) != {int}:
            raise TypeError("times are whole milliseconds")
        if min(self.cells) < _FIRST_MS or max(self.cells) > _LAST_MS:
            _check_years(at for at in self.cells if at not in _ENDS)
        return [None if at in _ENDS else at * _US_PER_MS for at in self.cells]

    def column(self, kind: Any) -> pa.Array:
        even = _even(self.cells)
        found = moments(even) if self.is_time else even
        return cast_column(found, kind) if isinstance(found, pa.Array) else pa.array(found, kind)


class _Around(NamedTuple):
    """The columns that a log adds around fields of records, and the ones that tell rows apart."""

    before: Sequence[pa.Field] = ()
    behind: Sequence[pa.Field] = ()
    identity: tuple[str, ...] = ()


def moments(times_ms: Sequence[int] | pa.Array) -> pa.Array:
    """Return times in ms as Spark's timestamps; the ends of time as null."""
    array = times_ms if isinstance(times_ms, pa.Array) else pa.array(times_ms, pa.int64())
    ends = pc.min_max(array).as_py().values()
    if not _ENDS_SET.isdisjoint(ends):
        is_end = pc.or_(pc.equal(array, MIN_MS), pc.equal(array, MAX_MS))
        array = pc.if_else(is_end, pa.scalar(None, pa.int64()), array)
        ends = pc.min_max(array).as_py().values()
    _check_years(at for at in ends if at is not None)
    return pc.multiply_checked(array, _US_PER_MS).view(TIME)


def _check_years(times_ms: Iterable[int]) -> None:
    """Refuse times that neither Python nor Spark can show."""
    for at in times_ms:
        if not _FIRST_MS <= at <= _LAST_MS:
            raise ValueError(
                f"{at} ms is in no year from 1 to 9999: times are in ms, so divide what has "
                "microseconds or nanoseconds"
            )


def _stamped(cells: _Cells, timestamps: Sequence[int]) -> tuple[_Cells, _Around]:
    if EVENT_TIME in cells or not len(timestamps):
        return cells, _Around()
    return {**cells, EVENT_TIME: _Added(timestamps, is_time=True)}, _Around(behind=_STAMP)


def _even(cells: Sequence[Any]) -> Any:
    """Return cells; as an array at once if all are alike, as columns about windows often are."""
    if isinstance(cells, Times):
        return cells.array
    listed = cells if isinstance(cells, list) else list(cells)
    if listed.count(listed[0]) < len(listed):
        return listed
    return pa.repeat(pa.scalar(listed[0]), len(listed))


def _parts(keys: list[Any], names: Sequence[str]) -> _Cells:
    for key in keys:
        if key is not None and not isinstance(key, tuple):
            raise TypeError(f"the key is {short_repr(key)}, where other keys are tuples")
    lengths = {len(key) for key in keys if key is not None}
    count = lengths.pop()
    if lengths or (names and len(names) != count):
        wanted = f"the {len(names)} names {', '.join(names)}" if names else "one length"
        raise ValueError(f"keys are tuples of {count} and other lengths, need {wanted}")
    parts = [[None if key is None else key[place] for key in keys] for place in range(count)]
    columns = names or [f"key_{place + 1}" for place in range(count)]
    return {name: plain_cells(part) for name, part in zip(columns, parts, strict=True)}


def _merged(*several: _Cells) -> _Cells:
    merged: _Cells = {}
    for cells in several:
        for name in cells:
            if name in merged:
                raise ValueError(
                    f"there are two columns {name!r}: rename the field, or name the key otherwise "
                    f"with key=..."
                )
        merged |= cells
    return merged


def _column(field: pa.Field, cells: Any, length: int) -> pa.Array:
    if cells is None:
        return pa.nulls(length, field.type)
    try:
        if type(cells) is _Added:
            return cells.column(field.type)
        if isinstance(cells, pa.Array):
            array = cast_column(cells, field.type)
        else:
            array = array_of(field, cells)
        if pa.types.is_timestamp(field.type):
            ends = pc.min_max(array.view(pa.int64())).as_py().values()
            _check_years(at // _US_PER_MS for at in ends if at is not None)
    except _ERRORS as error:
        raise ValueError(f"column {field.name!r} is {field.type}: {error}") from error
    return array


class GatheredCells:
    """The cells of rows that come few at a time, until they are worth to be made columns.

    To make arrays of two records takes as long as to make them of a hundred. But who brings a
    record that does not fit must hear of it at once, and what was written must not change when a
    program changes a value that it has handed over. So only values are kept that fit for sure, and
    that cannot change; whatever else comes is not for here.

    Invariant: all columns have `rows` cells, and Arrow takes each as it is.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._tests = {field.name: _test_of(field.type) for field in schema}
        self._moments = self._tests | {
            field.name: _integers(_INTEGERS[pa.int64()])
            for field in schema
            if pa.types.is_timestamp(field.type)
        }
        self._columns: dict[str, list[Any]] = {name: [] for name in schema.names}
        self.rows = 0

    def add(
        self, cells: Mapping[str, Sequence[Any]], rows: int, *, moments: Collection[str] = ()
    ) -> bool:
        """Keep the cells of some rows; False if one may not fit, and none was kept.

        Args:
            cells: by column; of one that is not there all are None.
            moments: columns whose cells are microseconds, as Arrow takes them for times. Numbers
                are no times otherwise: nobody knows their unit.
        """
        for name, column in cells.items():
            test = (self._moments if name in moments else self._tests).get(name)
            if test is None or not test(column):
                return False
        for name, kept in self._columns.items():
            kept.extend(cells[name] if name in cells else [None] * rows)
        self.rows += rows
        return True

    def take(self) -> dict[str, list[Any]]:
        taken, self.rows = self._columns, 0
        self._columns = {name: [] for name in taken}
        return taken


def _test_of(kind: Any) -> _Test:
    """Return a test that passes only cells from which Arrow surely makes this type, each alone."""
    if kind in _INTEGERS:
        return _integers(_INTEGERS[kind])
    if pa.types.is_timestamp(kind):
        zone = None if kind.tz is None else UTC

        def test(cells: Sequence[Any]) -> bool:
            for cell in cells:
                if cell is not None and not (type(cell) is datetime and cell.tzinfo is zone):
                    return False
            return True

        return test
    return _TESTS.get(kind, lambda _: False)


def _integers(end: int) -> _Test:
    def test(cells: Sequence[Any]) -> bool:
        for cell in cells:
            if cell is not None and not (type(cell) is int and -end <= cell < end):
                return False
        return True

    return test


def _floats(cells: Sequence[Any]) -> bool:
    for cell in cells:
        if cell is None or type(cell) is float:
            continue
        if type(cell) is not int or not -_DOUBLE_MAX <= cell <= _DOUBLE_MAX:
            return False
    return True


def _texts(cells: Sequence[Any]) -> bool:
    for cell in cells:
        if cell is None:
            continue
        if type(cell) is not str or len(cell) > TEXT_MAX:
            return False
        if not (cell.isascii() or is_utf8(cell)):
            return False
    return True


def _all_of(kind: type) -> _Test:
    def test(cells: Sequence[Any]) -> bool:
        for cell in cells:  # noqa: SIM110 - three times as fast for a few cells
            if cell is not None and type(cell) is not kind:
                return False
        return True

    return test


def _bytes(cells: Sequence[Any]) -> bool:
    for cell in cells:
        if cell is not None and not (type(cell) is bytes and len(cell) <= TEXT_MAX):
            return False
    return True


_TESTS: Final[Mapping[Any, _Test]] = {
    pa.bool_(): _all_of(bool),
    pa.date32(): _all_of(date),
    pa.float64(): _floats,
    pa.string(): _texts,
    pa.binary(): _bytes,
}


def is_record(value: Any) -> bool:
    return isinstance(value, Mapping) or has_fields(value)


def fields_of(records: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the fields of records, or of None, by name; as Arrow takes them."""
    kinds = set(map(type, records))
    has_none = type(None) in kinds
    kinds.discard(type(None))
    if len(kinds) > 1 and not all(issubclass(kind, Mapping) for kind in kinds):
        listed = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise TypeError(f"records of one type are needed, these are {listed}")
    first = next(record for record in records if record is not None)
    cells: dict[Any, list[Any]] = {}
    if isinstance(first, Mapping):
        is_even = not has_none and set(map(len, records)) == {len(first)}
        if is_even:
            try:  # Those that have the names of the first, and as many, have no others.
                cells = {name: list(map(itemgetter(name), records)) for name in first}
            except KeyError:
                is_even = False
        if not is_even:
            names = dict.fromkeys(name for record in records for name in record or ())
            cells = {
                name: [None if record is None else record.get(name) for record in records]
                for name in names
            }
        for name in cells:
            if not isinstance(name, str):
                raise TypeError(f"{name!r:.100} names a field: only a text can name a column")
    elif has_none:
        cells = {
            name: [None if record is None else getattr(record, name) for record in records]
            for name in field_names(first)
        }
    else:
        is_tuple = isinstance(first, tuple)
        for at, name in enumerate(field_names(first)):
            get = itemgetter(at) if is_tuple else attrgetter(name)
            cells[name] = list(map(get, records))
    return {name: plain_cells(column) for name, column in cells.items()}
