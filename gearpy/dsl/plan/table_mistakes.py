"""Mistakes in joins with tables that the schemas of both sides tell, before anything runs."""

from collections.abc import Iterator

from gearpy.core.base.column_values import same_kind
from gearpy.dsl.plan.columns import declared_schema
from gearpy.dsl.plan.nodes import Node, TableJoinNode
from gearpy.errors import ConfigError
from gearpy.task.columns.row_schema import RowSchema
from gearpy.task.joins.table import merged_schema

__all__ = ["table_mistakes"]


def table_mistakes(node: Node) -> Iterator[str]:
    """Yield the mistakes in a join with a table that can be found before it runs."""
    if not isinstance(node, TableJoinNode):
        return
    source = node.spec.table.source
    try:
        source.partitions()
        right = source.schema
    except ConfigError as error:
        yield from (f"{node.name}: {mistake}" for mistake in error.mistakes)
        return
    if right is None:
        return
    unknown = [name for name in node.right_key.columns if name not in right.arrow.names]
    for name in unknown:
        yield (
            f"{node.name}: there is no field {name!r} in the table {source.description}: there are "
            f"{', '.join(right.arrow.names)}"
        )
    left = declared_schema(node.inputs[0])
    if left is not None and not unknown:
        yield from _of_both(node, left, right)


def _of_both(node: TableJoinNode, left: RowSchema, right: RowSchema) -> Iterator[str]:
    for name, other in zip(node.left_key.columns, node.right_key.columns, strict=False):
        if name in left.arrow.names:
            one, two = left.arrow.field(name).type, right.arrow.field(other).type
            if not same_kind(one, two):
                yield (
                    f"{node.name}: {name!r} is {one} in the records, and {other!r} is {two} in the "
                    "table, so no row can ever be found: give one of them another type in its "
                    "schema="
                )
    if node.spec.merges:
        try:
            merged_schema(left.arrow, right.arrow, node.spec)
        except ConfigError as error:
            yield f"{node.name}: {error}"
