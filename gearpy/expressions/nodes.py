"""The nodes of an expression: a column, a literal, a call of a named function; and their text."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from msgspec import Struct


class ColumnNode(Struct, frozen=True):
    """A column; dots lead to fields of structs, unless a column has the whole as its name."""

    name: str


class LiteralNode(Struct, frozen=True):
    """A value; its class is kept, as 1, 1.0 and True are equal."""

    value: Any
    kind: type


class CallNode(Struct, frozen=True):
    """A call of a function of the table."""

    function: str
    args: "tuple[Node, ...]" = ()
    options: tuple[tuple[str, Any], ...] = ()


Node: TypeAlias = ColumnNode | LiteralNode | CallNode

#: How tight operators bind, the loosest first, as in Python.
_BINDING: Final = {
    **dict.fromkeys(("|",), 1),
    **dict.fromkeys(("&",), 2),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 0),
    **dict.fromkeys(("+", "-"), 3),
    **dict.fromkeys(("*", "/", "//", "%"), 4),
    "**": 6,
}
_NEGATED: Final = 5
_TIGHTEST: Final = 9
_PREFIXES: Final = {"negate": "-", "~": "~"}


def text_of(node: Node) -> str:
    """Return an expression as people read it, such as ``price * 0.89``."""
    return _text(node)[0]


def _text(node: Node) -> tuple[str, int]:  # The text, and how tight it binds.
    if isinstance(node, ColumnNode):
        return node.name, _TIGHTEST
    if isinstance(node, LiteralNode):
        value = node.value
        return (f'"{value}"' if type(value) is str and '"' not in value else repr(value)), _TIGHTEST
    name, args = node.function, node.args
    if name == "condition":
        return _text(args[0])
    if name in _BINDING:
        binds = _BINDING[name]
        left, right = (_text(arg) for arg in args)
        # Of comparisons no chain is made, of others the left one needs no parentheses.
        before = left[0] if left[1] > binds or (left[1] == binds != 0) else f"({left[0]})"
        behind = right[0] if right[1] > binds else f"({right[0]})"
        return f"{before} {name} {behind}", binds
    if name in _PREFIXES:
        inner, binds = _text(args[0])
        return f"{_PREFIXES[name]}{inner if binds > _NEGATED else f'({inner})'}", _NEGATED
    if name == "when":
        *pairs, otherwise = map(text_of, args)
        cases = [f"when {c} then {v}" for c, v in zip(pairs[::2], pairs[1::2], strict=True)]
        return f"({' '.join(cases)} else {otherwise})", _TIGHTEST
    if name == "field":
        inner, binds = _text(args[0])
        key = dict(node.options)["key"]
        shown = f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]"
        return (inner if binds == _TIGHTEST else f"({inner})") + shown, _TIGHTEST
    listed = [text_of(arg) for arg in args]
    listed += [
        f"{key}={getattr(value, '__name__', None) or _shown(value)}"
        for key, value in node.options
        if value is not None
    ]
    return f"{name}({', '.join(listed)})", _TIGHTEST


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(repr, value))}]"
    return repr(value) if isinstance(value, str | int | float) else str(value)


def columns_in(node: Node) -> Iterator[str]:
    if isinstance(node, ColumnNode):
        yield node.name
    elif isinstance(node, CallNode):
        for arg in node.args:
            yield from columns_in(arg)
