"""Which steps of a plan run on columns, and what records are made of; functions of the plan.

Columns begin at a source with a schema, or at a function over batches, and go on as far as every
step can take them. `physical` puts conversions where one cannot.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from gearpy.dsl.plan.nodes import (
    AggregateNode,
    BatchNode,
    BranchNode,
    DistinctNode,
    JoinNode,
    LogNode,
    MergeNode,
    Node,
    ProcessNode,
    ReadNode,
    RowNode,
    SideNode,
    TableJoinNode,
    WriteNode,
)
from gearpy.errors import ConfigError
from gearpy.task.columns.row_schema import RowSchema, row_schema_of
from gearpy.task.joins.table import merged_schema

__all__ = [
    "Kind",
    "aggregates_columns",
    "declared_schema",
    "kind_given",
    "kind_taken",
    "schema_of",
    "table_schema",
    "unknown_fields",
]

#: What the records of a batch are.
Kind: TypeAlias = Literal["rows", "table"]


def kind_taken(node: Node, given: list[Kind]) -> Kind:
    """Return what a step takes, if its inputs give this."""
    if isinstance(node, BatchNode) or aggregates_columns(node, given):
        return "table"
    if isinstance(node, TableJoinNode) and not _joins_columns(node):
        return "rows"
    takes_both = isinstance(node, MergeNode | TableJoinNode) or (
        isinstance(node, WriteNode) and getattr(node.sink, "columnar", False)
    )
    return "table" if takes_both and "rows" not in given else "rows"


def kind_given(node: Node, taken: Kind) -> Kind:
    """Return what a step gives, if it takes this."""
    if isinstance(node, ReadNode):
        return "rows" if schema_of(node) is None else "table"
    return taken if isinstance(node, BatchNode | MergeNode | TableJoinNode) else "rows"


def _joins_columns(node: TableJoinNode) -> bool:
    """Tell whether a join with a table can take columns: both are columns, and so is the result."""
    return node.spec.merges and bool(node.left_key.columns) and table_schema(node) is not None


def table_schema(node: TableJoinNode) -> RowSchema | None:
    """Return the columns of the table of a join; None where it has rows, or cannot be read yet."""
    try:
        return node.spec.table.source.schema
    except ConfigError:  # Told with all other mistakes, when the application is made.
        return None


def aggregates_columns(node: Node, given: list[Kind]) -> bool:
    """Tell whether a step aggregates columns, if its inputs give this.

    It does so in windows of event time that fire once and take nothing late, by names of columns or
    over all records, if every aggregate has a way of its own for columns of that type.
    """
    if not isinstance(node, AggregateNode) or given != ["table"]:
        return False
    if node.windows is None or not node.windows.is_plain or node.late != "drop":
        return False
    if node.key is not None and not node.key.columns:
        return False
    return not _mistakes_of_columns(node)


def _mistakes_of_columns(node: AggregateNode) -> list[str]:
    # Who has no tables needs no Arrow.
    from gearpy.task.aggregates.columns import columnar_mistakes  # noqa: PLC0415

    schema = schema_of(node.inputs[0])
    columns = () if node.key is None else node.key.columns
    return columnar_mistakes(
        node.windows, columns, node.aggregates, None if schema is None else schema.arrow
    )


def schema_of(node: Node) -> RowSchema | None:
    """Return the schema of what a step gives, where something says so.

    A source or a function over batches has one; a function over records, if it is annotated with
    a dataclass, a NamedTuple or a TypedDict.
    """
    if isinstance(node, RowNode) and not _passes_on(node):
        return _annotated(node.operator.function, is_flat=node.operator.kind == "flat_map")
    return _schema(node, schema_of)


def declared_schema(node: Node) -> RowSchema | None:
    """Return the same, but only where a schema was given, so that records can be nothing else."""
    return _schema(node, declared_schema)


def _schema(node: Node, of: Callable[[Node], RowSchema | None]) -> RowSchema | None:
    if isinstance(node, ReadNode):
        return node.source.schema
    if isinstance(node, BatchNode):
        return node.gives
    if isinstance(node, TableJoinNode):
        return _merged(node, of(node.inputs[0]))
    if not _passes_on(node):
        return None
    schemas = [of(source) for source in node.inputs]
    return schemas[0] if all(schema == schemas[0] for schema in schemas) else None


def _merged(node: TableJoinNode, left: RowSchema | None) -> RowSchema | None:
    """Return the schema of what a join with a table gives, if that has the fields of both."""
    right = table_schema(node)
    if not node.spec.merges or left is None or right is None:
        return None
    try:
        return RowSchema(merged_schema(left.arrow, right.arrow, node.spec))
    except ConfigError:  # A field is in both; told with all other mistakes.
        return None


def _passes_on(node: Node) -> bool:
    """Tell whether a step gives records that it has got, and no others."""
    if isinstance(node, RowNode):
        return node.operator.kind == "filter" or node.kind == "inspect"
    if isinstance(node, SideNode):
        return not isinstance(node.inputs[0], ProcessNode)
    return isinstance(node, LogNode | DistinctNode | MergeNode | BranchNode)


def unknown_fields(node: Node) -> list[str]:
    """Return which names of fields a step was given that its records have not."""
    return [
        f"{node.name}: there is no field {name!r} in what {source.name!r} gives: "
        f"there are {', '.join(schema.arrow.names)}"
        for source, names in _named(node)
        if names and (schema := declared_schema(source)) is not None
        for name in names
        if name not in schema.arrow.names and not hasattr(schema.row_type, name)
    ]


def _named(node: Node) -> Iterator[tuple[Node, Sequence[str]]]:
    """Yield the names of fields that a step was given, by the input of which they are."""
    if isinstance(node, JoinNode):
        keys = (node.left_key, node.right_key)
        yield from zip(node.inputs, (key.columns for key in keys), strict=True)
    elif isinstance(node, TableJoinNode):
        yield node.inputs[0], node.left_key.columns
    elif node.key is not None:
        yield node.inputs[0], node.key.columns
    if isinstance(node, AggregateNode):
        of = dict.fromkeys(each.of for each in node.aggregates.values())
        yield node.inputs[0], [name for name in of if isinstance(name, str)]


def _annotated(function: Callable[[Any], Any], *, is_flat: bool) -> RowSchema | None:
    """Return the schema of what a function returns, if its annotation has fields."""
    try:
        found = get_type_hints(function).get("return")
    except (NameError, TypeError, AttributeError):  # Names known to checkers only; no function.
        return None
    if is_flat:
        items = get_args(found)
        found = items[0] if len(items) >= 1 and get_origin(found) is not None else None
    if not isinstance(found, type) or not _has_fields(found):
        return None
    try:
        return row_schema_of(found)
    except ConfigError:  # Rows stay rows; nobody has asked for columns.
        return None


def _has_fields(kind: type) -> bool:
    return hasattr(kind, "__dataclass_fields__") or (
        issubclass(kind, tuple | dict) and bool(getattr(kind, "__annotations__", None))
    )
