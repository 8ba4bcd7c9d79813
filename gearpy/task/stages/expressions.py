"""Steps of expressions over columns: records are kept or not, columns are made."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.row_schema import as_table
from gearpy.errors import ConfigError, OperatorError
from gearpy.expressions.binding import Bound, BoundColumns, bound, bound_columns
from gearpy.expressions.expr import Expr
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.api.failure import USER_ERRORS
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.stage import Stage
from gearpy.task.stages.tables import ColumnsStage


class _ExpressionStage(ColumnsStage):
    """What the steps share: they know the schema, and look for the row that has no value."""

    finds_bad = True

    def __init__(self, context: TaskContext, name: str, expressions: Sequence[Expr]) -> None:
        super().__init__(context, name)
        self._expressions = expressions
        self._schema: pa.Schema = None  # That of the last table.

    def _is_other(self, schema: pa.Schema) -> bool:
        if self._schema is not None and schema.equals(self._schema):
            return False
        self._schema = schema
        return True

    def _cause(self, error: BaseException, record: Any) -> BaseException:
        """Return what the same expression says over rows, which names the values."""
        for expression in self._expressions:
            try:
                expression(record)
            except USER_ERRORS as plainer:
                return plainer
        return error


class FilterColumnsStage(_ExpressionStage):
    """Keeps the records of which an expression is true."""

    def __init__(self, context: TaskContext, name: str, condition: Expr) -> None:
        super().__init__(context, name, [condition])
        self._condition = condition
        self._bound: Bound

    def _called(self, table: Table, times: Times) -> tuple[Table, Times] | None:
        if self._is_other(table.batch.schema):
            self._bound = _bound(self.name, bound, self._condition.node, table.batch.schema)
        mask = self._bound.columns(table.batch)
        kept = mask.true_count
        if kept == len(table):
            return table, times
        return (table.filter(mask), times.filter(mask)) if kept else None


class DropColumnsStage(Stage):
    """Leaves out columns, of whichever there are.

    Args:
        metadata: of the schema of the tables that are left.
    """

    def __init__(
        self, name: str, names: Collection[str], metadata: Mapping[bytes, bytes] | None
    ) -> None:
        self.name = name
        self._names = names
        self._metadata = metadata

    def process(self, batch: Batch) -> Iterator[Batch]:
        table = as_table(batch.values).batch
        left = table.select([name for name in table.schema.names if name not in self._names])
        yield batch.giving(Table(left.replace_schema_metadata(self._metadata)), batch.timestamps)


class SelectColumnsStage(_ExpressionStage):
    """Makes columns, beside those that there are or in place of them.

    Args:
        keeps: the columns that there are stay.
        metadata: of the schema of the tables.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        columns: Sequence[Expr],
        *,
        keeps: bool,
        metadata: Mapping[bytes, bytes] | None = None,
    ) -> None:
        super().__init__(context, name, columns)
        self._keeps = keeps
        self._metadata = metadata
        self._bound: BoundColumns

    def _called(self, table: Table, times: Times) -> tuple[Table, Times]:
        if self._is_other(table.batch.schema):
            named = [(each.name, each.node) for each in self._expressions]
            self._bound = _bound(
                self.name, bound_columns, named, table.batch.schema, keeps=self._keeps
            )
        found = self._bound.columns(table.batch)
        if self._metadata is not None:
            found = found.replace_schema_metadata(self._metadata)
        return Table(found), times


def _bound(operator: str, bind: Any, *args: Any, **options: Any) -> Any:
    """Bind, and name the step in a mistake: of all rows, not of one."""
    try:
        return bind(*args, **options)
    except ConfigError as error:
        raise OperatorError(operator=operator, cause=str(error), is_final=True) from error
