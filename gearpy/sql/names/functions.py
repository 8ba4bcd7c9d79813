"""Functions and operators of SQL, by name, as expressions of streams. None is evaluated here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Final

from gearpy.errors import ConfigError
from gearpy.expressions.expr import Expr, coalesce, concat, greatest, least, lit, when
from gearpy.sql.parse.syntax import Expression, FunctionCall, Literal
from gearpy.sql.parse.tokens import SqlText, did_you_mean


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a function: an expression, or the literal that it is."""

    expr: Expr
    node: Expression
    text: SqlText

    def plain(self, kind: type, example: str) -> Any:
        """Return the literal.

        Raises:
            ConfigError: it is none, or of another kind.
        """
        if isinstance(self.node, Literal) and type(self.node.value) is kind:
            return self.node.value
        raise self.text.error(self.node.at, f"this argument is a plain value, such as {example}")


@dataclass(frozen=True, slots=True)
class Function:
    """A function by its name in SQL: how many arguments it takes, and the expression it makes."""

    build: Callable[..., Expr]
    least: int = 1
    most: int = 1

    def check(self, call: FunctionCall, text: SqlText) -> None:
        """Refuse another number of arguments, and what belongs to aggregates.

        Raises:
            ConfigError: there are more, or fewer; or the call is one of an aggregate.
        """
        count = len(call.arguments)
        if not self.least <= count <= self.most:
            least, most = self.least, self.most
            takes = (
                f"{least}"
                if least == most
                else f"{least} to {most}"
                if most < _MANY
                else f"at least {least}"
            )
            raise text.error(call.at, f"{call.name} takes {takes} arguments, not {count}")
        if call.is_distinct or call.where is not None:
            raise text.error(
                call.at, f"{call.name} is no aggregate: DISTINCT and FILTER are for those"
            )


_MANY: Final = 1000


def _one(function: Callable[[Expr], Expr]) -> Function:
    return Function(lambda a: function(a.expr))


def _two(function: Callable[[Expr, Expr], Expr]) -> Function:
    return Function(lambda a, b: function(a.expr, b.expr), 2, 2)


def _many(function: Callable[..., Expr], least: int = 1) -> Function:
    return Function(lambda *all_: function(*(each.expr for each in all_)), least, _MANY)


def _is_in(value: Argument, *items: Argument) -> Expr:
    plain = [each.node.value for each in items if isinstance(each.node, Literal)]
    if len(plain) == len(items) and None not in plain and len({*map(type, plain)}) == 1:
        return value.expr.is_in(plain)
    return reduce(or_, (value.expr == each.expr for each in items))


def _same(left: Expr, right: Expr) -> Expr:
    """Compare so that nulls are equal."""
    is_null = left.is_null() | right.is_null()
    return when(is_null).then(left.is_null() & right.is_null()).otherwise(left == right)


def _remainder(left: Expr, right: Expr) -> Expr:
    """Return the remainder with the sign of what is divided, as SQL has it."""
    size = left.abs() % right.abs()
    return when(left < 0).then(-size).otherwise(size)


def _quotient(left: Expr, right: Expr) -> Expr:
    """Return the whole quotient nearer to zero, as SQL has it."""
    size = left.abs() // right.abs()
    return when((left < 0) == (right < 0)).then(size).otherwise(-size)


def _round(value: Argument, digits: Argument | None = None) -> Expr:
    return value.expr.round(0 if digits is None else digits.plain(int, "2"))


def _like(value: Argument, pattern: Argument) -> Expr:
    return value.expr.str.like(pattern.plain(str, "'a%'"))


def _ilike(value: Argument, pattern: Argument) -> Expr:
    return value.expr.str.lower().str.like(pattern.plain(str, "'a%'").lower())


def _substring(value: Argument, start: Argument, length: Argument | None = None) -> Expr:
    first = start.plain(int, "1, the place of the first character")
    if first < 1:
        raise ConfigError(f"substring begins at the place 1, not {first}")
    return value.expr.str.slice(first - 1, None if length is None else length.plain(int, "3"))


def _left(value: Argument, count: Argument) -> Expr:
    return value.expr.str.slice(0, count.plain(int, "3"))


def _right(value: Argument, count: Argument) -> Expr:
    wanted = count.plain(int, "3")
    return value.expr.str.slice(-wanted) if wanted else value.expr.str.slice(0, 0)


def _replace(value: Argument, old: Argument, new: Argument) -> Expr:
    return value.expr.str.replace(old.plain(str, "'a'"), new.plain(str, "'b'"))


def _item(value: Argument, place: Argument) -> Expr:
    if isinstance(place.node, Literal) and type(place.node.value) is str:
        return value.expr.field(place.node.value)
    number = place.plain(int, "1, the place of the first item")
    if number == 0:
        raise ConfigError("places in lists begin with 1")
    return value.expr[number - 1 if number > 0 else number]


def _sign(value: Expr) -> Expr:
    return when(value > 0).then(1).when(value < 0).then(-1).when(value == 0).then(0).otherwise(None)


def _truncated(value: Expr) -> Expr:
    return when(value < 0).then(value.ceil()).otherwise(value.floor())


def _strip(method: str) -> Function:
    def build(value: Argument, characters: Argument | None = None) -> Expr:
        stripped = " " if characters is None else characters.plain(str, "'-'")
        found: Expr = getattr(value.expr.str, method)(stripped)
        return found

    return Function(build, 1, 2)


def _split_part(value: Argument, by: Argument, place: Argument) -> Expr:
    number = place.plain(int, "1, the place of the first part")
    if number == 0:
        raise ConfigError("places of parts begin with 1")
    parts = value.expr.str.split(by.plain(str, "'/'"))
    # Of a text with fewer parts it is the empty one, as SQL has it.
    found = coalesce(parts[number - 1 if number > 0 else number], "")
    return when(value.expr.is_null()).then(None).otherwise(found)


def _regexp_extract(value: Argument, pattern: Argument, group: Argument | None = None) -> Expr:
    number = 0 if group is None else group.plain(int, "1")
    found = value.expr.str.extract(pattern.plain(str, "'id=([0-9]+)'"), number)
    # Where nothing is found it is the empty text, as in DuckDB and Spark.
    return when(value.expr.is_null()).then(None).otherwise(coalesce(found, ""))


def _regexp_matches(value: Argument, pattern: Argument) -> Expr:
    return value.expr.str.matches(pattern.plain(str, "'^[a-z]+$'"))


def _part_of(name: str, value: Expr) -> Expr:
    if name not in _PARTS:
        raise ConfigError(
            f"there is no part {name!r} of a time{did_you_mean(name, _PARTS)} (there are: "
            f"{', '.join(_PARTS)})"
        )
    return _PARTS[name](value)


def _date_part(part: Argument, value: Argument) -> Expr:
    return _part_of(part.plain(str, "'hour'").lower(), value.expr)


def _date_trunc(unit: Argument, value: Argument) -> Expr:
    name = unit.plain(str, "'hour'").lower()
    if name not in _TRUNCATED:
        raise ConfigError(
            f"there is no unit {name!r}{did_you_mean(name, _TRUNCATED)} (there are: "
            f"{', '.join(_TRUNCATED)})"
        )
    return value.expr.dt.truncate(_TRUNCATED[name])


def _strftime(value: Argument, form: Argument) -> Expr:
    return value.expr.dt.strftime(form.plain(str, "'%Y-%m-%d'"))


def _strptime(value: Argument, form: Argument) -> Expr:
    return value.expr.str.to_datetime(form.plain(str, "'%Y-%m-%d'"))


#: What `extract` and others take of a time, of UTC.
_PARTS: Final[Mapping[str, Callable[[Expr], Expr]]] = {
    "year": lambda a: a.dt.year(),
    "quarter": lambda a: a.dt.quarter(),
    "month": lambda a: a.dt.month(),
    "day": lambda a: a.dt.day(),
    "hour": lambda a: a.dt.hour(),
    "minute": lambda a: a.dt.minute(),
    "second": lambda a: a.dt.second(),
    "doy": lambda a: a.dt.day_of_year(),
    "dow": lambda a: a.dt.weekday() % 7,  # From Sunday, which is 0.
    "isodow": lambda a: a.dt.weekday(),  # From Monday, which is 1.
    "epoch": lambda a: a.dt.epoch("us") / 1_000_000,
}
_TRUNCATED: Final = {
    **{unit: unit for unit in ("day", "week", "month", "quarter", "year")},
    "hour": "1h",
    "minute": "1m",
    "second": "1s",
}
_EQUAL: Final = _two(lambda a, b: a == b)
_LENGTH: Final = _one(lambda a: a.str.length())
_REMAINDER: Final = _two(_remainder)
_POWER: Final = _two(lambda a, b: a**b)
_COALESCE: Final = _many(coalesce)
_SUBSTRING: Final = Function(_substring, 2, 3)
_CEIL: Final = _one(lambda a: a.ceil())
_MATCHES: Final = Function(_regexp_matches, 2, 2)
_CONTAINS: Final = _two(lambda a, b: a.list.contains(b))
_IF: Final = Function(lambda c, a, b: when(c.expr).then(a.expr).otherwise(b.expr), 3, 3)

FUNCTIONS: Final[Mapping[str, Function]] = {
    # Operators.
    "or": _two(lambda a, b: a | b),
    "and": _two(lambda a, b: a & b),
    "not": _one(lambda a: ~a),
    "=": _EQUAL,
    "<>": _two(lambda a, b: a != b),
    "<": _two(lambda a, b: a < b),
    "<=": _two(lambda a, b: a <= b),
    ">": _two(lambda a, b: a > b),
    ">=": _two(lambda a, b: a >= b),
    "+": _two(lambda a, b: a + b),
    "-": _two(lambda a, b: a - b),
    "*": _two(lambda a, b: a * b),
    "/": _two(lambda a, b: a / b),
    "//": _two(_quotient),
    "%": _REMAINDER,
    "floor %": _two(lambda a, b: a % b),  # The planner's own.
    "negate": _one(lambda a: -a),
    "||": _two(concat),
    "in": Function(_is_in, 2, _MANY),
    "between": Function(lambda a, b, c: a.expr.between(b.expr, c.expr), 3, 3),
    "like": Function(_like, 2, 2),
    "ilike": Function(_ilike, 2, 2),
    "is null": _one(lambda a: a.is_null()),
    "is true": _one(lambda a: coalesce(a, lit(False))),
    "is false": _one(lambda a: coalesce(~a, lit(False))),
    "is not distinct": _two(_same),
    "[]": Function(_item, 2, 2),
    # Choices.
    "coalesce": _COALESCE,
    "ifnull": _COALESCE,
    "nvl": _COALESCE,
    "nullif": _two(lambda a, b: when(a == b).then(None).otherwise(a)),
    "if": _IF,
    "iff": _IF,
    "iif": _IF,
    "greatest": _many(greatest, 2),
    "least": _many(least, 2),
    # Numbers.
    "abs": _one(lambda a: a.abs()),
    "round": Function(_round, 1, 2),
    "floor": _one(lambda a: a.floor()),
    "ceil": _CEIL,
    "ceiling": _CEIL,
    "trunc": _one(_truncated),
    "sign": _one(_sign),
    "mod": _REMAINDER,
    "sqrt": _one(lambda a: a.sqrt()),
    "exp": _one(lambda a: a.exp()),
    "ln": _one(lambda a: a.log()),
    "power": _POWER,
    "pow": _POWER,
    "hash": _one(lambda a: a.hash()),
    # Texts.
    "lower": _one(lambda a: a.str.lower()),
    "upper": _one(lambda a: a.str.upper()),
    "length": _LENGTH,
    "len": _LENGTH,
    "char_length": _LENGTH,
    "trim": _strip("strip"),
    "ltrim": _strip("strip_start"),
    "rtrim": _strip("strip_end"),
    "replace": Function(_replace, 3, 3),
    "substring": _SUBSTRING,
    "substr": _SUBSTRING,
    "left": Function(_left, 2, 2),
    "right": Function(_right, 2, 2),
    "contains": _two(lambda a, b: a.str.contains(b)),
    "starts_with": _two(lambda a, b: a.str.starts_with(b)),
    "ends_with": _two(lambda a, b: a.str.ends_with(b)),
    "concat": _many(lambda *all_: concat(*(coalesce(each.cast(str), "") for each in all_))),
    "split_part": Function(_split_part, 3, 3),
    "regexp_extract": Function(_regexp_extract, 2, 3),
    "regexp_matches": _MATCHES,
    "regexp_like": _MATCHES,
    # Times.
    "date_part": Function(_date_part, 2, 2),
    "date_trunc": Function(_date_trunc, 2, 2),
    **{name: _one(part) for name, part in _PARTS.items() if name not in ("doy", "dow", "isodow")},
    "dayofweek": _one(_PARTS["dow"]),
    "weekday": _one(_PARTS["dow"]),
    "dayofyear": _one(_PARTS["doy"]),
    "epoch_ms": _one(lambda a: a.dt.epoch("ms")),
    "to_timestamp": _one(lambda a: a.dt.from_epoch("s")),
    "strftime": Function(_strftime, 2, 2),
    "strptime": Function(_strptime, 2, 2),
    # Lists.
    "list_contains": _CONTAINS,
    "array_contains": _CONTAINS,
    "array_to_string": Function(lambda a, b: a.expr.list.join(b.plain(str, "','")), 2, 2),
    "cardinality": _one(lambda a: a.list.length()),
    "array_length": _one(lambda a: a.list.length()),
}
