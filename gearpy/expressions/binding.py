"""Expressions over columns: a tree and a schema become what evaluates it over batches."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.types as at  # type: ignore[import-untyped]

from gearpy.columns.row_schema import row_schema_of
from gearpy.errors import ConfigError
from gearpy.expressions.arrow_types import Datum, plain, plain_type
from gearpy.expressions.functions import TAKES_NULL
from gearpy.expressions.kernels import RULES, UnknownField, as_type, common_type
from gearpy.expressions.nodes import CallNode, ColumnNode, LiteralNode, Node, text_of
from gearpy.expressions.rows import advice_on

_BOOL: Final = pa.bool_()
_Run: TypeAlias = Callable[[Any], Datum]


class _Shared:
    """What parts of expressions give that several of them have, for the batch at hand."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        found = Counter(chain.from_iterable(map(_calls_in, nodes)))
        self._nodes = {node for node, count in found.items() if count > 1}
        self._batch: pa.RecordBatch | None = None
        self._given: dict[Node, Datum] = {}

    @contextmanager
    def of(self, batch: pa.RecordBatch) -> Iterator[None]:
        self._batch = batch
        try:
            yield
        finally:
            self._batch = None
            self._given.clear()

    def once(self, node: Node, run: _Run) -> _Run:
        """Return what computes a part once for a batch; for some rows of it, as it is asked."""
        if node not in self._nodes:
            return run

        def shared(batch: pa.RecordBatch) -> Datum:
            if batch is not self._batch:
                return run(batch)
            if node not in self._given:
                self._given[node] = run(batch)
            return self._given[node]

        return shared


def _calls_in(node: Node) -> Iterator[Node]:
    if isinstance(node, CallNode):
        yield node
        for each in node.args:
            yield from _calls_in(each)


@dataclass(frozen=True)
class Bound:
    """An expression that knows the columns it is computed of.

    Attributes:
        type: of the column that it makes, a `pyarrow.DataType`.
    """

    type: Any
    _run: _Run

    def columns(self, batch: Any) -> Any:
        """Return its column for a `pyarrow.RecordBatch` of the schema.

        Raises:
            pyarrow.ArrowInvalid, ArithmeticError, ValueError: some row has no value, as its
                number would have more than 64 bits.
        """
        if not batch.num_rows:
            return pa.array([], self.type)
        found = self._run(batch)
        if isinstance(found, pa.Scalar):
            return pa.repeat(found, batch.num_rows)
        return found


def bound(node: Node, schema: Any, shared: _Shared | None = None) -> Bound:
    arrow = row_schema_of(schema).arrow
    if isinstance(node, ColumnNode) and node.name in arrow.names:  # As it is.
        place = arrow.names.index(node.name)
        return Bound(arrow.types[place], lambda batch: batch.column(place))
    kind, run = _bound(node, arrow, shared or _Shared(()))
    return Bound(kind, run)


@dataclass(frozen=True)
class BoundColumns:
    """Several expressions, and perhaps the columns there are, as the columns of a table.

    Attributes:
        schema: of the table that they make, a `pyarrow.Schema`.
    """

    schema: Any
    _bounds: Sequence[Bound]
    _shared: _Shared

    def columns(self, batch: Any) -> Any:
        """Return the table for a `pyarrow.RecordBatch`; raises as `Bound.columns`."""
        with self._shared.of(batch):
            arrays = [each.columns(batch) for each in self._bounds]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def bound_columns(named: Sequence[tuple[str, Node]], schema: Any, *, keeps: bool) -> BoundColumns:
    """Return the expressions bound to one schema, which make columns of a table.

    Args:
        keeps: the columns that there are stay, where none of the new ones has their name.
    """
    arrow = row_schema_of(schema).arrow
    made: dict[str, tuple[pa.Field, Bound]] = {}
    nodes = {**({name: ColumnNode(name) for name in arrow.names} if keeps else {}), **dict(named)}
    shared = _Shared(nodes.values())
    for name, node in nodes.items():
        found = bound(node, arrow, shared)
        if isinstance(node, ColumnNode) and node.name in arrow.names:
            field = arrow.field(node.name).with_name(name)
        else:
            field = pa.field(name, found.type)
        made[name] = field, found
    fields, bounds = zip(*made.values(), strict=True)
    return BoundColumns(pa.schema(fields), bounds, shared)


def _bound(node: Node, schema: pa.Schema, shared: _Shared) -> tuple[pa.DataType, _Run]:
    if isinstance(node, LiteralNode):
        scalar = _scalar(node.value)
        return scalar.type, lambda _: scalar
    if isinstance(node, ColumnNode):
        return _column(node.name, schema)
    kind, run = _bound_call(node, [_bound(arg, schema, shared) for arg in node.args])
    return kind, shared.once(node, run)


def _bound_call(
    node: CallNode, bounds: Sequence[tuple[pa.DataType, _Run]]
) -> tuple[pa.DataType, _Run]:
    kinds, runs = [kind for kind, _ in bounds], [run for _, run in bounds]
    try:
        match node.function:
            case "condition":
                return _BOOL, _condition(kinds[0], runs[0])
            case "&" | "|":
                conditions = [_condition(kind, run) for kind, run in bounds]
                return _BOOL, _both(conditions, decides=node.function == "|")
            case "when":
                kind = common_type("when", [*kinds[1::2], kinds[-1]])
                return kind, _choice(kind, runs)
            case "coalesce":
                kind = common_type("coalesce", kinds)
                return kind, _first(kind, runs)
        return _call(node, kinds, runs)
    except TypeError as error:
        raise ConfigError(f"{text_of(node)}: {error}") from None
    except UnknownField as error:
        raise ConfigError(
            f"{text_of(node)}: there is no field {error.name!r}{advice_on(error.name, error.there)}"
        ) from None


def _scalar(value: Any) -> pa.Scalar:
    scalar = pa.scalar(value)
    return scalar.cast(plain_type(scalar.type))


def _column(name: str, schema: pa.Schema) -> tuple[pa.DataType, _Run]:
    if name in schema.names:
        place = schema.names.index(name)
        return plain_type(schema.types[place]), lambda batch: plain(batch.column(place))
    first, *rest = name.split(".")
    if first not in schema.names:
        raise ConfigError(f"there is no column {name!r}{advice_on(name, schema.names)}")
    node: Node = ColumnNode(first)
    for each in rest:
        node = CallNode("field", (node,), (("key", each),))
    return _bound(node, schema, _Shared(()))


def _call(
    node: CallNode, kinds: list[pa.DataType], runs: Sequence[_Run]
) -> tuple[pa.DataType, _Run]:
    name, options = node.function, dict(node.options)
    rule = RULES[name]
    known = next((kind for kind in kinds if not at.is_null(kind)), None)
    if any(map(at.is_null, kinds)) and name not in TAKES_NULL:
        # Nothing but None: so is the result, of the type that it would have otherwise.
        try:
            kind = rule(*(known if at.is_null(each) else each for each in kinds), **options)[0]
        except (TypeError, AttributeError):
            kind = pa.null()
        missing = pa.scalar(None, kind)
        return kind, lambda _: missing
    kind, kernel = rule(*kinds, **options)
    if len(runs) == 1:
        only = runs[0]
        return kind, lambda batch: kernel(only(batch))
    if len(runs) == 2:  # noqa: PLR2004 - by far the most
        left, right = runs
        return kind, lambda batch: kernel(left(batch), right(batch))
    return kind, lambda batch: kernel(*[run(batch) for run in runs])


def _condition(kind: pa.DataType, run: _Run) -> _Run:
    if at.is_null(kind):
        return lambda batch: as_type(_BOOL, run(batch))
    if not at.is_boolean(kind):
        raise TypeError(f"{kind} is neither true nor false: compare it with something")
    return run


# -- what is computed for some rows only -----------------------------------------------------------

#: Errors of a value that a row has, or has not. What it was not chosen for does not count.
ROW_ERRORS: Final = (pa.ArrowException, ArithmeticError, ValueError, LookupError, TypeError)


def _both(runs: Sequence[_Run], *, decides: bool) -> _Run:
    """Return ``and`` or ``or``; the second is computed where the first does not decide."""
    first, second = runs
    joined = pc.or_kleene if decides else pc.and_kleene

    def run(batch: pa.RecordBatch) -> Datum:
        left = first(batch)
        try:
            return joined(left, second(batch))
        except ROW_ERRORS:
            left = _spread(left, batch)
            is_open = pc.invert(pc.equal(left, decides).fill_null(False))
            return joined(left, _where(is_open, second, _BOOL, batch))

    return run


def _choice(kind: pa.DataType, runs: Sequence[_Run]) -> _Run:
    *pairs, otherwise = runs
    conditions, values = pairs[::2], pairs[1::2]

    def run(batch: pa.RecordBatch) -> Datum:
        try:
            cases = [_holds(condition(batch)) for condition in conditions]
            given = [as_type(kind, value(batch)) for value in (*values, otherwise)]
        except ROW_ERRORS:
            return by_rows(batch)
        found = given[-1]
        for case, value in zip(reversed(cases), reversed(given[:-1]), strict=True):
            found = pc.if_else(case, value, found)
        return found

    def by_rows(batch: pa.RecordBatch) -> Datum:
        is_open, found = pa.repeat(pa.scalar(True), batch.num_rows), pa.nulls(batch.num_rows, kind)
        for condition, value in zip(conditions, values, strict=True):
            case = _holds(_where(is_open, condition, _BOOL, batch))
            found = pc.if_else(case, _where(case, value, kind, batch), found)
            is_open = pc.and_not(is_open, case)
        return pc.if_else(is_open, _where(is_open, otherwise, kind, batch), found)

    return run


def _first(kind: pa.DataType, runs: Sequence[_Run]) -> _Run:
    def run(batch: pa.RecordBatch) -> Datum:
        try:
            return pc.coalesce(*(as_type(kind, each(batch)) for each in runs))
        except ROW_ERRORS:
            found = _spread(as_type(kind, runs[0](batch)), batch)
            for each in runs[1:]:
                found = pc.coalesce(found, _where(pc.is_null(found), each, kind, batch))
            return found

    return run


def _holds(datum: Datum) -> Datum:
    return pc.fill_null(datum, False)


def _spread(datum: Datum, batch: pa.RecordBatch) -> pa.Array:
    return pa.repeat(datum, batch.num_rows) if isinstance(datum, pa.Scalar) else datum


def _where(mask: pa.Array, run: _Run, kind: pa.DataType, batch: pa.RecordBatch) -> pa.Array:
    """Compute for the rows of a mask only; the others are missing."""
    part = batch.filter(mask)
    if not part.num_rows:
        return pa.nulls(batch.num_rows, kind)
    values = _spread(as_type(kind, run(part)), part)
    places = pc.subtract(pc.cumulative_sum(mask.cast(pa.int64())), 1)
    return values.take(pc.if_else(mask, places, pa.scalar(None, pa.int64())))
