"""The schema of the rows of a stream, and the way from rows to columns and back.

A row that does not fit is refused, with its column and its value, and never made to fit: Arrow
itself would cut a fraction off, or take the zone of a time away, without a word.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from operator import attrgetter
from reprlib import repr as short_repr
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from gearpy.columns.types import field_of, fields_of
from gearpy.columns.values import array_of, refuse_unknown
from gearpy.columns.workable import workable_schema
from gearpy.core.base.fields import compiled
from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.table import Table, cells_of, rows_of
from gearpy.messages.type_variables import Row

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

_MISSING: Final = object()
_OPERATOR: Final = "schema"


class ArrowSchema(Protocol):
    """A `pyarrow.Schema` as checkers see it: pyarrow has no types, and `Any` would hide all."""

    def with_metadata(self, metadata: Any, /) -> Any:
        """Return a copy with other metadata."""


#: What says what rows are: the class of the rows, a dict of names and types, or Arrow's schema.
SchemaLike: TypeAlias = type[Row] | Mapping[str, Any] | ArrowSchema


@dataclass(frozen=True)
class RowSchema:
    """The columns of a stream, and the type of its rows.

    Attributes:
        row_type: a dataclass or NamedTuple class; None for dicts.
    """

    arrow: "pa.Schema"
    row_type: type | None = None

    @property
    def may_refuse(self) -> bool:
        """Whether the class may refuse a row; else it has the fields set, and does nothing more."""
        made = self.row_type
        if made is None or made.__bases__ == (tuple,):
            return False
        own = made.__dict__
        is_written = "__init__" not in own or own["__init__"].__code__.co_filename != "<string>"
        return is_written or "__new__" in own or hasattr(made, "__post_init__")

    def table(self, values: Sequence[Any]) -> "pa.RecordBatch":
        """Return rows as columns. A dict may lack a column that can be null."""
        import pyarrow as pa  # noqa: PLC0415 - the schema is there, so Arrow is

        if self.row_type is None:
            names = frozenset(self.arrow.names)
            for row in values:
                if not isinstance(row, Mapping):
                    raise _refusal(
                        f"{type(row).__name__} is no dict: map it to one, or give the class of the "
                        "rows as the schema",
                        row,
                    )
                if not row.keys() <= names:
                    try:
                        refuse_unknown(row, names)
                    except ValueError as error:
                        raise _refusal(str(error), row) from None
        columns = [self._column(field, values) for field in self.arrow]
        if not columns:  # Nothing would tell how many rows there are.
            empty = pa.array([{}] * len(values), pa.struct([]))
            return pa.RecordBatch.from_struct_array(empty)
        return pa.RecordBatch.from_arrays(columns, schema=self.arrow)

    def records_in(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        """Return the columns of records, which may not be all that there are for a step."""
        return batch

    def rows(self, batch: "pa.RecordBatch") -> list[Any]:
        if self.row_type is None:
            return rows_of(batch)
        names = batch.schema.names
        for name in self.arrow.names:
            if name not in names:
                raise OperatorError(
                    operator=_OPERATOR,
                    cause=f"there is no column {name!r} for {self.row_type.__name__}: there are "
                    f"{', '.join(names) or 'none'}",
                )
        if not self.arrow.names:
            return [self.row_type() for _ in range(batch.num_rows)]
        columns = [cells_of(batch.column(name)) for name in self.arrow.names]
        if (maker := maker_of(self.row_type)) is not None:
            return maker(columns)
        make: Callable[..., Any] = self.row_type
        if dataclasses.is_dataclass(make) and any(
            each.kw_only for each in dataclasses.fields(make)
        ):
            row_type, own = make, self.arrow.names
            make = lambda *cells: row_type(**dict(zip(own, cells, strict=True)))  # noqa: E731
        return list(map(make, *columns))

    def _column(self, field: "pa.Field", values: Sequence[Any]) -> "pa.Array":
        cells = self._cells(field.name, values)
        try:
            return array_of(field, cells)
        except _arrow_errors() as error:
            for cell, row in zip(cells, values, strict=True):
                try:
                    array_of(field, [cell])
                except _arrow_errors() as why:
                    raise _refusal(
                        f"column {field.name!r} is {field.type}, which {short_repr(cell)} does "
                        f"not fit: {why}",
                        row,
                    ) from why
            raise _refusal(f"column {field.name!r} is {field.type}: {error}") from error

    def _cells(self, name: str, values: Sequence[Any]) -> list[Any]:
        if self.row_type is None:
            return [row.get(name) for row in values]
        try:
            return list(map(attrgetter(name), values))
        except AttributeError:
            for row in values:
                if getattr(row, name, _MISSING) is _MISSING:
                    expected = self.row_type.__name__
                    raise _refusal(
                        f"{type(row).__name__} has no field {name!r}: rows are {expected}", row
                    ) from None
            raise


@lru_cache(maxsize=256)
def maker_of(row_type: Any) -> Callable[[Sequence[list[Any]]], list[Any]] | None:
    """Return what makes instances of a frozen dataclass of the columns of their fields.

    It fills instances of a class that is laid out alike, but is not frozen, and then changes their
    class: a fifth of the time that calls of ``__init__`` take, each of which sets each field by a
    call. None where ``__init__`` does more than set the fields.
    """
    params = getattr(row_type, "__dataclass_params__", None)
    if params is None or not params.frozen or not params.init or row_type.__bases__ != (object,):
        return None
    fields = dataclasses.fields(row_type)
    own = row_type.__dict__
    if (
        not all(each.init and not each.kw_only for each in fields)
        or hasattr(row_type, "__post_init__")
        or own["__init__"].__code__.co_filename != "<string>"
        or "__new__" in own
        or not fields
    ):
        return None
    slots = {"__slots__": own["__slots__"]} if "__slots__" in own else {}
    twin: Any = type(row_type.__name__, (), slots)
    try:
        twin().__class__ = row_type
    except TypeError:  # It is laid out in another way.
        return None
    # The loop sets fields as it takes them. `dataclass` has put their names into source, too.
    cells = ", ".join(f"row.{each.name}" for each in fields)
    loop = [
        "def made(columns):",
        "    rows = list(map(new, repeat(twin, len(columns[0]))))",
        f"    for row, {cells} in zip(rows, *columns, strict=True):",
        "        row.__class__ = row_type",
        "    return rows",
    ]
    names = {"new": object.__new__, "repeat": repeat, "twin": twin, "row_type": row_type}
    return compiled(loop, names, what="rows")


def row_schema_of(schema: Any) -> RowSchema:
    """Return the schema that is meant.

    Args:
        schema: a `pyarrow.Schema`; a dataclass, NamedTuple or TypedDict class; a dict of names
            and types. Types are those of Python, or of Arrow, also by name: "int64".

    Raises:
        ConfigError: it is nothing of that kind, or a type has no column that keeps its values.

    Example:
        >>> row_schema_of({"user": str, "price": float | None}).arrow
        user: string not null
        price: double
    """
    import pyarrow as pa  # noqa: PLC0415 - who needs no columns needs no Arrow

    if isinstance(schema, RowSchema):
        return schema
    if isinstance(schema, pa.Schema):
        names = schema.names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ConfigError(f"the schema has two columns {twice!r}: a row could hold only one")
        return RowSchema(workable_schema(schema))
    if isinstance(schema, Mapping):
        fields = [field_of(str(name), kind) for name, kind in schema.items()]
        return RowSchema(workable_schema(pa.schema(fields)))
    if not isinstance(schema, type):
        raise ConfigError(
            f"{short_repr(schema)} is no schema: give a pyarrow.Schema, a dataclass, a NamedTuple "
            "or TypedDict class, or a dict of names and types"
        )
    return RowSchema(
        workable_schema(pa.schema(fields_of(schema))), None if issubclass(schema, dict) else schema
    )


def inferred_schema(values: Sequence[Any]) -> RowSchema:
    """Return a schema in which some dicts, dataclasses or NamedTuples fit."""
    import pyarrow as pa  # noqa: PLC0415 - who needs no columns needs no Arrow

    first = values[0]
    if dataclasses.is_dataclass(first) or hasattr(first, "_fields"):
        return row_schema_of(type(first))
    for row in values:
        if not isinstance(row, Mapping):
            raise _refusal(
                f"{type(row).__name__} has no fields: map it to a dict, dataclass or NamedTuple",
                row,
            )
    names = list(dict.fromkeys(name for row in values for name in row))
    fields = []
    for name in names:
        cells = [row.get(name) for row in values]
        try:
            fields.append(pa.field(str(name), pa.array(cells).type))
        except _arrow_errors() as error:
            raise _refusal(f"column {name!r}: values of one type are needed: {error}") from error
    return RowSchema(pa.schema(fields))


def as_table(values: list[Any], schema: RowSchema | None = None) -> Table:
    """Return records as a table; a table as it is.

    Rows come to a columnar step where one was given by hand, out of quarantine.

    Args:
        schema: what the rows should be; None: as they are.
    """
    if type(values) is Table:
        return values
    return Table((schema or inferred_schema(values)).table(values))


def _refusal(cause: str, row: Any = _MISSING) -> OperatorError:
    record = "" if row is _MISSING else short_repr(row)
    return OperatorError(operator=_OPERATOR, cause=cause, record=record)


def _arrow_errors() -> tuple[type[Exception], ...]:
    import pyarrow as pa  # noqa: PLC0415 - the schema is there, so Arrow is

    return (pa.ArrowException, TypeError, ValueError, ArithmeticError, AttributeError)
