"""What conditions say of single columns, by which groups of rows are left out."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from gearpy.expressions.expr import Expr
from gearpy.expressions.nodes import CallNode, ColumnNode, LiteralNode, Node

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


class Comparison(NamedTuple):
    """A comparison of a column with a plain value; of "is_in" with several."""

    column: str
    name: str
    value: Any

    def may_have(self, low: Any, high: Any) -> bool:
        """Tell whether it may be true of a value that is neither below nor above two others."""
        low, high = (
            each.replace(tzinfo=UTC) if isinstance(each, datetime) and not each.tzinfo else each
            for each in (low, high)
        )
        values = self.value if self.name == "is_in" else (self.value,)
        try:
            match self.name[0]:
                case "<":
                    return bool(low < self.value or (low == self.value and self.name == "<="))
                case ">":
                    return bool(high > self.value or (high == self.value and self.name == ">="))
                case _:
                    return any(low <= value <= high for value in values)
        except TypeError:  # The file has another type than its rows get.
            return True

    def __str__(self) -> str:
        values = ", ".join(map(str, self.value)) if self.name == "is_in" else str(self.value)
        return f"{self.column} {self.name} {values}"


def comparisons_in(conditions: Iterable[Expr]) -> Iterator[Comparison]:
    """Yield what conditions, all of which are true, say of single columns."""
    for condition in conditions:
        yield from _comparisons(condition.node)


def _comparisons(node: Node) -> Iterator[Comparison]:
    if not isinstance(node, CallNode):
        return
    name, args = node.function, node.args
    if name in ("&", "condition"):
        for each in args:
            yield from _comparisons(each)
    elif name == "is_in" and isinstance(args[0], ColumnNode):
        yield Comparison(args[0].name, name, dict(node.options)["values"])
    elif name in _FLIPPED:
        first, second = args
        if isinstance(second, ColumnNode):
            first, second, name = second, first, _FLIPPED[name]
        value = second.value if isinstance(second, LiteralNode) else None
        if isinstance(first, ColumnNode) and value is not None:
            yield Comparison(first.name, name, value)
