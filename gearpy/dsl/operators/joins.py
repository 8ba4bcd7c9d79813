"""Operators that join records of two streams, or of a stream and a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Final

from gearpy.columns.row_schema import RowSchema
from gearpy.columns.values import same_kind
from gearpy.core.base.fields import key_getter
from gearpy.core.window.windows import SessionWindows
from gearpy.dsl.operators.by_names import ByNames, by_names, computing, without_computed
from gearpy.dsl.operators.keys import Key
from gearpy.dsl.operators.operator import (
    ActsInside,
    GivesNewRecords,
    IgnoresOrder,
    KeepsNothing,
    Kind,
    NeverWritten,
    Operator,
    Order,
    Placing,
    SeesOrder,
    Sides,
    TakesRows,
    TakesTables,
    operator,
)
from gearpy.dsl.operators.records import FunctionOperator, ToRowsOperator
from gearpy.dsl.operators.signature import key_text
from gearpy.errors import ConfigError
from gearpy.expressions.expr import Expr
from gearpy.expressions.rows import advice_on
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.event_gate import Waits
from gearpy.task.chain.fused import RowOperator
from gearpy.task.chain.stage import Stage
from gearpy.task.joins.join_schema import JoinSchema, is_plain_key, key_numbers
from gearpy.task.joins.streams import JoinSpec, JoinStage, as_left, as_right, join_key
from gearpy.task.joins.table import TableJoinSpec, merged_schema, table_join_stage

#: Joins whose results tell in which order records of a key came.
_OF_ORDER: Final = ("window", "cogroup", "asof", "latest")


class _OfTwo(ActsInside):
    """The common answers of joins; their inputs are left and right, but for a table."""

    left_key: Key
    right_key: Key

    @property
    def shown_key(self) -> str:
        return " = ".join(dict.fromkeys((key_text(self.left_key), key_text(self.right_key))))

    def named_fields(self) -> Iterator[tuple[Operator, Sequence[str]]]:
        keys = (self.left_key, self.right_key)
        yield from zip(self.inputs, (key.columns for key in keys), strict=False)

    def named_expressions(self) -> Iterator[tuple[Operator, Sequence[Expr]]]:
        keys = (self.left_key, self.right_key)
        yield from zip(self.inputs, (key.expressions for key in keys), strict=False)


@operator
class JoinOperator(TakesRows, GivesNewRecords, SeesOrder, _OfTwo):
    """Records of two streams that belong together; its inputs are left and right.

    They come as ``(side, key, value)``, wrapped by steps that are put before it.
    """

    kind: str = "join"
    key: Key | None = field(default=Key(join_key))
    left_key: Key
    right_key: Key
    spec: JoinSpec

    @property
    def keeps(self) -> str:
        left, right = key_text(self.left_key), key_text(self.right_key)
        by = f"by {left}" if left == right else f"by {left} and {right}"
        return f"{self.spec.description}, {by}"

    @property
    def order(self) -> Order:
        if self.spec.kind not in _OF_ORDER:
            return ""
        return self._order_by(self.left_key, self.right_key)

    def kind_taken(self, given: Sequence[Kind]) -> Kind:
        return "table" if "rows" not in given and self._schema is not None else "rows"

    def kind_given(self, taken: Kind) -> Kind:
        return "rows" if self.spec.combine is not None else taken

    def schema_given(self, *, declared: bool) -> RowSchema | None:
        return None if declared or self.spec.combine is not None else self._schema

    @property
    def _schema(self) -> JoinSchema | None:
        """The schema of the pairs, if they can be found in columns; None if not."""
        left, right = (each.schema_given(declared=False) for each in self.inputs)
        if left is None or right is None or self.why_rows:
            return None
        names = self._by_names[0]
        keys = [names.schema(left).field(name) for name in names.key]
        return JoinSchema.of(left, right, keys, self.spec.how)

    @cached_property
    def _by_names(self) -> tuple[ByNames, ByNames]:
        return by_names(self.left_key), by_names(self.right_key)

    @property
    def why_rows(self) -> str:
        """Keys are of one type on both sides, whose values are told apart by Arrow as by Python."""
        if reason := self.spec.why_rows:
            return reason
        if self.spec.kind != "interval" and self.order == "arrival":
            return "its records come in the order of their arrival"
        if not all(names.key for names in self._by_names):
            return "a key is a function: a name or an expression keeps them"
        types = [
            [*map(names.types(schema).get, names.key)]
            for source, names in zip(self.inputs, self._by_names, strict=True)
            if (schema := source.schema_given(declared=False)) is not None
        ]
        if len(types) < len(self.inputs):
            return "the columns of an input are not known"
        if types[0] != types[1]:
            return "the keys of both sides have different types"
        if not all(map(is_plain_key, types[0])):
            return "a column of the key is neither of whole numbers, nor of text, nor of dates"
        return ""

    def _columnar_parts(self, placing: Placing, schema: JoinSchema) -> list[Operator]:
        assert schema.left is not None
        assert schema.right is not None
        before: list[Operator] = []
        sides: list[Operator] = []
        for kind, source, names, of in zip(
            ("left", "right"),
            placing.inputs,
            self._by_names,
            (schema.left, schema.right),
            strict=True,
        ):
            taken = source
            if names.computed:
                taken = computing(self, source, names.computed, part=f"columns {kind}")
                before.append(taken)
            side = JoinSideOperator(
                name=f"{kind} of {self.name}",
                kind=kind,
                inputs=(taken,),
                columns=names.key,
                schema=of,
                origin=self,
                part=kind,
            )
            sides.append(side)
        numbers = key_numbers(schema.key_columns)
        combine, is_by_interval = self.spec.combine, self.spec.kind == "interval"
        # Other joins go on from what they have kept in rows, and so has the same id.
        parts = ("pairs", "") if is_by_interval else ("", "combined")
        join = JoinTablesOperator(
            name=self.name,
            given=self.given,
            inputs=tuple(sides),
            parallelism=self.parallelism,
            key=Key(key_getter(*numbers), numbers),
            of=self,
            schema=schema,
            origin=self,
            part="" if combine is None else parts[0],
        )
        if combine is None:
            return [*before, *sides, join]
        rows = ToRowsOperator(
            name="rows", inputs=(join,), schema=schema, origin=self, part="rows of pairs"
        )
        combined = FunctionOperator(
            name=self.name,
            kind="map",
            inputs=(rows,),
            operator=RowOperator("map", self.name, lambda pair: combine(pair.left, pair.right)),
            origin=self,
            part=parts[1],
        )
        return [*before, *sides, join, rows, combined]

    def parts(self, placing: Placing) -> list[Operator]:
        schema = self._schema
        if schema is not None and "rows" not in placing.given:
            return self._columnar_parts(placing, schema)
        wraps = (as_left(self.left_key.function), as_right(self.right_key.function))
        wrapped = [
            FunctionOperator(
                name=f"{side} of {self.name}",
                kind=side,
                inputs=(source,),
                operator=RowOperator("map", f"{side} of {self.name}", wrap),
                origin=self,
                part=side,
            )
            for side, source, wrap in zip(("left", "right"), placing.inputs, wraps, strict=True)
        ]
        return [*wrapped, self.changed(inputs=tuple(wrapped), origin=self.origin or self)]

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        waits: Waits = "all" if self.waits else "late"
        return [JoinStage(context, self.name, self.spec, waits=waits, schema=self._schema)]

    no_twin = "it reads two streams, and the query goes from one source to one sink"


class _OfColumns(TakesTables, IgnoresOrder, GivesNewRecords, NeverWritten):
    """The common answers of the parts of a join in columns."""


@operator
class JoinSideOperator(_OfColumns, KeepsNothing):
    """Makes one column of the records of a side, beside those of the key."""

    columns: tuple[str, ...]
    schema: RowSchema

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        from gearpy.task.joins.side_tables import SideStage  # noqa: PLC0415 - NumPy

        return [SideStage(self.name, self.kind, self.columns, self.schema)]


@operator
class JoinTablesOperator(_OfColumns):
    """Records of two streams in columns that belong together."""

    kind: str = "join"
    of: JoinOperator
    schema: JoinSchema

    @property
    def keeps(self) -> str:
        return f"{self.of.keeps}, from columns" if self._is_by_interval else self.of.keeps

    @property
    def order(self) -> Order:
        return self.of.order

    @property
    def _is_by_interval(self) -> bool:
        return self.of.spec.kind == "interval"

    @property
    def shown_key(self) -> str:
        return self.of.shown_key

    def schema_given(self, *, declared: bool) -> RowSchema | None:
        return self.schema

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        from gearpy.task.joins.interval_tables import IntervalTablesStage  # noqa: PLC0415 - NumPy
        from gearpy.task.joins.nearest_tables import NearestTablesStage  # noqa: PLC0415 - NumPy
        from gearpy.task.joins.session_tables import SessionTablesStage  # noqa: PLC0415 - NumPy
        from gearpy.task.joins.window_tables import WindowTablesStage  # noqa: PLC0415 - NumPy

        spec = self.of.spec
        in_windows = (
            SessionTablesStage if isinstance(spec.windows, SessionWindows) else WindowTablesStage
        )
        made = {"interval": IntervalTablesStage, "window": in_windows}.get(
            spec.kind, NearestTablesStage
        )
        return [made(context, self.name, spec, self.schema)]


@operator
class TableJoinOperator(IgnoresOrder, _OfTwo):
    """Records, each with the row that a table has for its key."""

    kind: str = "join_table"
    left_key: Key
    right_key: Key
    spec: TableJoinSpec

    keeps = "which table it was"

    def kind_taken(self, given: Sequence[Kind]) -> Kind:
        return "rows" if "rows" in given or self.why_rows else "table"

    @property
    def why_rows(self) -> str:
        if not self.spec.merges:
            return 'combine="merge" keeps them'
        names, schema = by_names(self.left_key), self.inputs[0].schema_given(declared=False)
        if not names.key:
            return "its key is a function: a name or an expression keeps them"
        if self._table_schema is None:
            return "nothing tells the columns of the table"
        is_known = schema is not None and names.schema(schema) is not None
        return "" if is_known or not names.computed else "its key cannot be computed in columns"

    def kind_given(self, taken: Kind) -> Kind:
        return taken

    @property
    def _table_schema(self) -> RowSchema | None:
        """The columns of the table; None where it has rows, or cannot be read yet."""
        try:
            return self.spec.table.source.schema
        except ConfigError:  # Told with all other mistakes, when the application is made.
            return None

    def schema_given(self, *, declared: bool) -> RowSchema | None:
        left, right = self.inputs[0].schema_given(declared=declared), self._table_schema
        if not self.spec.merges or left is None or right is None:
            return None
        try:
            return RowSchema(merged_schema(left.arrow, right.arrow, self.spec))
        except ConfigError:  # A field is in both; told with all other mistakes.
            return None

    def parts(self, placing: Placing) -> list[Operator]:
        names, schema = by_names(self.left_key), self.schema_given(declared=False)
        if placing.taken == "rows" or not names.computed or schema is None:
            return super().parts(placing)
        columns = computing(self, placing.inputs[0], names.computed)
        spec = replace(self.spec, left=key_getter(*names.key))
        join = self.changed(inputs=(columns,), spec=spec, origin=self.origin or self)
        return [columns, join, without_computed(self, join, names, schema)]

    def mistakes(self) -> Iterator[str]:
        source = self.spec.table.source
        if source.discovers:
            yield (
                f"{self.name}: {source.description} cannot be a table, as its partitions are found "
                "while it is read: join it as a stream"
            )
            return
        try:
            source.partitions()
            right = source.schema
        except ConfigError as error:
            yield from (f"{self.name}: {mistake}" for mistake in error.mistakes)
            return
        if right is None:
            return
        unknown = [name for name in self.right_key.columns if name not in right.arrow.names]
        for name in unknown:
            yield (
                f"{self.name}: there is no field {name!r} in the table {source.description}"
                f"{advice_on(name, right.arrow.names)}"
            )
        left = self.inputs[0].schema_given(declared=True)
        if left is not None and not unknown:
            yield from self._mistakes_of_both(left, right)

    def _mistakes_of_both(self, left: RowSchema, right: RowSchema) -> Iterator[str]:
        for name, other in zip(self.left_key.columns, self.right_key.columns, strict=False):
            if name in left.arrow.names:
                one, two = left.arrow.field(name).type, right.arrow.field(other).type
                if not same_kind(one, two):
                    yield (
                        f"{self.name}: {name!r} is {one} in the records, and {other!r} is {two} in "
                        "the table, so no row can ever be found: give one of them another type in "
                        "its schema="
                    )
        if self.spec.merges:
            try:
                merged_schema(left.arrow, right.arrow, self.spec)
            except ConfigError as error:
                yield f"{self.name}: {error}"

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        return [table_join_stage(context, self.name, self.spec)]

    no_twin = "it reads a table beside the stream: join the frames in Spark"
