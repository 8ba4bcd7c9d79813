"""Expressions over rows: a tree becomes the source of one Python function of a record.

A loop over rows calls it once for a record, which costs about what a lambda costs. A value is
None where one that it is made of is; what is not chosen is not computed.
"""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from keyword import iskeyword
from typing import Any, Final

from gearpy.core.base.fields import WITH_ATTRIBUTES, compiled, fields_of_pair, indented
from gearpy.expressions.functions import (
    FUNCTIONS,
    INT64_MAX,
    INT64_MIN,
    TAKES_NULL,
    both,
    either,
    floating,
    mixed,
    not_bool,
    whole,
)
from gearpy.expressions.nodes import CallNode, ColumnNode, LiteralNode, Node

_ARITHMETIC: Final = frozenset({"+", "-", "*", "/"})
_COMPARED: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
#: Methods of texts that need no call of ours.
_OF_TEXTS: Final = {
    "lower": "{}.lower()",
    "upper": "{}.upper()",
    "contains": "{1} in {0}",
    "starts_with": "{}.startswith({})",
    "ends_with": "{}.endswith({})",
}
#: Functions whose values are true, false or None.
_TRUTHS: Final = frozenset(
    {*_COMPARED, "&", "|", "~", "condition", "is_null", "is_in", "contains", "starts_with"}
    | {"ends_with", "like"}
)


def row_function(node: Node) -> Callable[[Any], Any]:
    writer = _Writer()
    result = writer.write(node)
    lines = ["def made(r):", *indented(writer.lines, 1), f"    return {result}"]
    return compiled(lines, writer.names, what="expression")


def columns_function(
    named: Sequence[tuple[str, Node]], *, keeps: bool
) -> Callable[[Any], dict[str, Any]]:
    """Return a function of a record that makes a dict of some columns.

    Args:
        keeps: the fields that there are stay, where none of the new ones has their name.
    """
    writer = _Writer()
    pairs = [f"{name!r}: {writer.write(node)}" for name, node in named]
    start = ["**(r if type(r) is dict else fields(r))"] if keeps else []
    lines = [f"    return {{{', '.join([*start, *pairs])}}}"]
    names = {**writer.names, "fields": fields_of}
    return compiled(["def made(r):", *indented(writer.lines, 1), *lines], names, what="expressions")


def fields_of(record: Any) -> Mapping[str, Any]:
    if isinstance(record, Mapping):
        return record
    if (pair := fields_of_pair(record)) is not None:
        return pair
    if names := names_in(record):
        return {name: getattr(record, name) for name in names}
    raise TypeError(f"a record with fields is needed, not {record!r:.100}: map it to a dict")


class _Writer:
    """Writes the lines that compute a node, and gives the name of the variable that has it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "attribute": _attribute,
            "both": both,
            "direct": WITH_ATTRIBUTES,
            "either": either,
            "floating": floating,
            "mixed": mixed,
            "not_bool": not_bool,
            "whole": whole,
        }
        self._known: dict[Node, str] = {}  # What was computed already, where it always is.
        self._depth = 0
        self._count = 0

    def write(self, node: Node) -> str:
        if isinstance(node, LiteralNode):
            return self._named(node.value)
        if node in self._known:
            return self._known[node]
        known = dict(self._known)
        if isinstance(node, ColumnNode):
            found = self._column(node.name)
        elif node.function == "when":
            found = self._when(node)
            self._like_each_other([*node.args[1::2], node.args[-1]], found)
        elif node.function == "coalesce":
            found = self._coalesce(node)
            self._like_each_other(node.args, found)
        elif node.function in {"&", "|"}:
            found = self._both(node)
        elif node.function == "condition":
            found = self._condition(node.args[0])
        else:
            found = self._call(node)
        self._known = {**known, **self._known, node: found}
        return found

    def _new(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _add(self, *lines: str) -> None:
        self.lines += indented(lines, self._depth)

    def _named(self, value: Any) -> str:
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def _column(self, name: str) -> str:
        found = self._new()
        if "." in name:
            self._add(f"{found} = {self._named(_path_getter(name))}(r)")
            return found
        other = f"attribute(r, {name!r})"
        if name.isidentifier() and not iskeyword(name):
            other = f"r.{name} if type(r) in direct else {other}"
        self._add(
            "try:",
            f"    {found} = r[{name!r}] if type(r) is dict else {other}",
            "except (KeyError, AttributeError):",
            f"    {found} = attribute(r, {name!r})",
        )
        return found

    def _when(self, node: CallNode) -> str:
        found = self._new()
        *pairs, otherwise = node.args
        depth, known = self._depth, None
        for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
            holds = self.write(condition)
            known = known or dict(self._known)  # The first condition is always computed.
            self._add(f"if {holds} is True:")
            self._branch(value, found)
            self._add("else:")
            self._depth += 1
        self._add(f"{found} = {self._alone(otherwise)}")
        self._depth, self._known = depth, known or self._known
        return found

    def _like_each_other(self, values: Sequence[Node], found: str) -> None:
        """Make one of several values a float where others are: so is the column of them."""
        if any(map(_is_float, values)):
            self._add(f"if type({found}) is not float: {found} = floating({found})")

    def _branch(self, node: Node, into: str) -> None:
        self._depth += 1
        self._add(f"{into} = {self._alone(node)}")
        self._depth -= 1

    def _alone(self, node: Node) -> str:
        """Write what is computed in some cases only, so that nothing else may rely on it."""
        known = dict(self._known)
        found = self.write(node)
        self._known = known
        return found

    def _coalesce(self, node: CallNode) -> str:
        found = self._new()
        depth = self._depth
        first, *others = node.args
        self._add(f"{found} = {self.write(first)}")
        for each in others:
            self._add(f"if {found} is None:")
            self._depth += 1
            self._add(f"{found} = {self._alone(each)}")
        self._depth = depth
        return found

    def _both(self, node: CallNode) -> str:
        """Write ``and`` or ``or``: the second is not computed where the first decides."""
        found, first = self._new(), self.write(node.args[0])
        decides, joins = ("False", "both") if node.function == "&" else ("True", "either")
        self._add(f"if {first} is {decides}: {found} = {decides}", "else:")
        self._depth += 1
        second = self._alone(node.args[1])
        if _is_truth(node.args[0]) and _is_truth(node.args[1]):
            goes_on = "True" if node.function == "&" else "False"
            self._add(
                f"{found} = {second} if {first} is {goes_on} or {second} is {decides} else None"
            )
        else:
            self._add(f"{found} = {joins}({first}, {second})")
        self._depth -= 1
        return found

    def _condition(self, node: Node) -> str:
        found = self.write(node)
        if not _is_truth(node):
            self._add(
                f"if {found} is not True and {found} is not False and {found} is not None: "
                f"not_bool({found})"
            )
        return found

    def _call(self, node: CallNode) -> str:
        args = [self.write(arg) for arg in node.args]
        found = self._new()
        if node.function in TAKES_NULL:
            self._add(*self._applied(node, args, found))
            if node.function != "is_null":
                self._like_each_other(node.args, found)
            return found
        may_miss = [arg for arg, each in zip(args, node.args, strict=True) if not _has_value(each)]
        missing = " or ".join(f"{arg} is None" for arg in dict.fromkeys(may_miss))
        if not missing:
            self._add(*self._applied(node, args, found))
            return found
        self._add(f"if {missing}: {found} = None", "else:")
        self._depth += 1
        self._add(*self._applied(node, args, found))
        self._depth -= 1
        return found

    def _applied(self, node: CallNode, args: list[str], found: str) -> list[str]:
        name = node.function
        listed = ", ".join(args)
        if name in _ARITHMETIC:
            other = f"{found} = whole({name!r}, {listed}, {found})"
            return [
                f"try: {found} = {args[0]} {name} {args[1]}",
                f"except (TypeError, ArithmeticError): {found} = mixed({name!r}, {listed})",
                *_checked(found, other, is_float=any(map(_is_float, node.args))),
            ]
        if name in _COMPARED:
            return [f"{found} = {args[0]} {name} {args[1]}"]
        if name == "is_null":
            return [f"{found} = {args[0]} is None"]
        if name == "~":
            (truth,) = args
            return [
                f"if {truth} is not True and {truth} is not False: not_bool({truth})",
                f"{found} = not {truth}",
            ]
        if name == "is_in":
            return [
                f"{found} = {args[0]} in {self._named(frozenset(dict(node.options)['values']))}"
            ]
        given = [*args, *(f"{key}={self._named(value)}" for key, value in node.options)]
        call = f"{self._named(FUNCTIONS[name])}({', '.join(given)})"
        if name in _OF_TEXTS:
            are_texts = " and ".join(f"type({arg}) is str" for arg in args)
            call = f"{_OF_TEXTS[name].format(*args)} if {are_texts} else {call}"
        return [f"{found} = {call}"]


def _checked(found: str, other: str, *, is_float: bool) -> list[str]:
    """Return the lines that look at a result: first for the type that it most likely has."""
    if is_float:
        return [f"if type({found}) is not float: {other}"]
    return [
        f"if type({found}) is int:",
        f"    if not {INT64_MIN} <= {found} <= {INT64_MAX}: {other}",
        f"elif type({found}) is not float: {other}",
    ]


def _is_float(node: Node) -> bool:
    if isinstance(node, LiteralNode):
        return node.kind is float
    return isinstance(node, CallNode) and node.function == "/"


def _is_truth(node: Node) -> bool:
    if isinstance(node, LiteralNode):
        return node.kind is bool
    return isinstance(node, CallNode) and node.function in _TRUTHS


def _has_value(node: Node) -> bool:
    return isinstance(node, LiteralNode) and node.value is not None


def _attribute(record: Any, name: str) -> Any:
    """Return a field of a record that is no plain dict, nor of a class that is known."""
    record = fields_of_pair(record) or record
    try:
        if isinstance(record, Mapping):
            return record[name]
        if type(record) is not tuple:  # Some of them are pairs.
            WITH_ATTRIBUTES.add(type(record))
        return getattr(record, name)
    except (KeyError, AttributeError):
        raise LookupError(_missing(record, name)) from None


def _missing(record: Any, name: str) -> str:
    there = sorted(map(str, record) if isinstance(record, Mapping) else names_in(record))
    return f"there is no field {name!r} in a {type(record).__name__}{advice_on(name, there)}"


def names_in(record: Any) -> list[str]:
    for attribute in ("__dataclass_fields__", "_fields", "__struct_fields__", "__dict__"):
        if found := getattr(record, attribute, None):
            return list(found)
    return []


def advice_on(name: str, there: list[str]) -> str:
    """Return the nearest name, and all names."""
    nearest = get_close_matches(name, there, n=1)
    meant = f": did you mean {nearest[0]!r}?" if nearest else ""
    return f"{meant or ':'} there are {', '.join(there) or 'none'}"


def _path_getter(path: str) -> Callable[[Any], Any]:
    """Return a function that follows dots into fields, unless a field has the whole as its name."""
    names = path.split(".")

    def get(record: Any) -> Any:
        if isinstance(record, Mapping) and path in record:
            return record[path]
        for name in names:
            if record is None:
                return None
            record = _attribute(record, name)
        return record

    return get
