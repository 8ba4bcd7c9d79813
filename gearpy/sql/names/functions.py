"""Functions and operators of SQL, by name, as expressions of streams. None is evaluated here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import methodcaller, or_
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.errors import ConfigError
from gearpy.expressions.expr import Expr, coalesce, concat, greatest, least, lit, when
from gearpy.sql.parse.syntax import Expression, FunctionCall, Literal, TimeSpan
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
    return value.expr.round(0 if digits is None else digits.plain(int, "2"), half="away")


def _like(value: Argument, pattern: Argument) -> Expr:
    return value.expr.str.like(pattern.plain(str, "'a%'"))


def _ilike(value: Argument, pattern: Argument) -> Expr:
    return value.expr.str.lower().str.like(pattern.plain(str, "'a%'").lower())


def _substring(value: Argument, start: Argument, length: Argument | None = None) -> Expr:
    first = start.plain(int, "1, the place of the first character")
    if not first:
        raise ConfigError("substring begins at the place 1, or -1 from the end, and not at 0")
    start_at = first - 1 if first > 0 else first
    return value.expr.str.slice(start_at, None if length is None else length.plain(int, "3"))


def _left(value: Argument, count: Argument) -> Expr:
    return value.expr.str.slice(0, count.plain(int, "3"))


def _right(value: Argument, count: Argument) -> Expr:
    wanted = count.plain(int, "3")
    return value.expr.str.slice(-wanted) if wanted else value.expr.str.slice(0, 0)


def _pad(side: str) -> Function:
    def build(value: Argument, width: Argument, fill: Argument | None = None) -> Expr:
        count, text = width.plain(int, "5"), value.expr.cast(str).str
        filling = " " if fill is None else fill.plain(str, "'0'")
        found: Expr = getattr(text, side)(count, filling)
        return found.str.slice(0, count)

    return Function(build, 2, 3)


def _concat_ws(by: Argument, *values: Argument) -> Expr:
    between = by.plain(str, "', '")
    parts = [
        when(v.is_null()).then("").otherwise(concat(between, v.cast(str)))
        for v in (each.expr for each in values)
    ]
    return concat(*parts).str.slice(len(between))


def _regexp_replace(
    value: Argument, pattern: Argument, by: Argument, flags: Argument | None = None
) -> Expr:
    said = "" if flags is None else flags.plain(str, "'g'")
    found = "(?i)" * ("i" in said) + pattern.plain(str, "'[0-9]+'")
    count = 0 if "g" in said else 1
    instead = by.plain(str, "'#'").replace("\\0", "\\g<0>")  # All of what was found.
    return value.expr.str.replace_matches(found, instead, count=count)


def _json(*, as_json: bool) -> Function:
    return Function(lambda value, path: value.expr.str.json(_path_of(path), as_json=as_json), 2, 2)


def _path_of(path: Argument) -> str:
    if isinstance(path.node, Literal) and type(path.node.value) is int:
        return f"[{path.node.value}]"
    said: str = path.plain(str, "'$.user.name'")
    return said


def _list_sort(value: Argument, direction: Argument | None = None) -> Expr:
    said = "asc" if direction is None else direction.plain(str, "'desc'").lower()
    return value.expr.list.sort(descending=said == "desc")


def _list_slice(value: Argument, start: Argument, stop: Argument) -> Expr:
    first, last = start.plain(int, "1"), stop.plain(int, "-1, the last one")
    end = last if last >= 0 else last + 1 or None
    return value.expr.list.slice(max(first - 1, 0) if first >= 0 else first, end)


def _date_diff(unit: Argument, first: Argument, second: Argument) -> Expr:
    """Count how many times a unit begins between two times, as SQL has it."""
    name = unit.plain(str, "'day'").lower().removesuffix("s")
    sides = [each.expr.cast(pa.timestamp("us", "UTC")) for each in (first, second)]
    if name in _MONTHS_OF:
        begins = [each.dt.year() * 12 + (each.dt.month() - 1) for each in sides]
        return (begins[1] // _MONTHS_OF[name]) - (begins[0] // _MONTHS_OF[name])
    if name == "week":  # Seven days, whichever is the first.
        return _quotient(_date_diff(replace(unit, node=Literal(0, "day")), first, second), lit(7))
    if name not in _SECONDS_OF:
        known = (*_SECONDS_OF, "week", *_MONTHS_OF)
        raise ConfigError(f"there is no unit {name!r}{did_you_mean(name, known)}")
    begins = [each.dt.epoch("s") // _SECONDS_OF[name] for each in sides]
    return begins[1] - begins[0]


def _time_bucket(width: Argument, value: Argument) -> Expr:
    node = width.node
    if not isinstance(node, TimeSpan) or node.months:
        raise ConfigError("time_bucket takes an interval of weeks or less, then a time")
    start_us = 946_857_600_000_000  # Monday, 2000-01-03, as DuckDB has it.
    since = value.expr.dt.epoch("us") - start_us
    return (since // node.microseconds * node.microseconds + start_us).dt.from_epoch("us")


def _replace(value: Argument, old: Argument, new: Argument) -> Expr:
    return value.expr.str.replace(old.plain(str, "'a'"), new.plain(str, "'b'"))


def _item(value: Argument, place: Argument) -> Expr:
    if isinstance(place.node, Literal) and type(place.node.value) is str:
        return value.expr.field(place.node.value)
    number = place.plain(int, "1, the place of the first item")
    if number == 0:
        raise ConfigError("places in lists begin with 1")
    return value.expr[number - 1 if number > 0 else number]


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
    name = name if name in _PARTS else name.removesuffix("s")
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
    "millisecond": lambda a: a.dt.second() * 1000 + a.dt.microsecond() // 1000,
    "microsecond": lambda a: a.dt.second() * 1_000_000 + a.dt.microsecond(),
    "week": lambda a: a.dt.week(),
    "isoyear": lambda a: a.dt.iso_year(),
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
_MONTHS_OF: Final = {"month": 1, "quarter": 3, "year": 12}
_SECONDS_OF: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_EQUAL: Final = _two(lambda a, b: a == b)
_LENGTH: Final = _one(lambda a: a.str.length())
_REMAINDER: Final = _two(_remainder)
_POWER: Final = _two(lambda a, b: a**b)
_COALESCE: Final = _many(coalesce)
_SUBSTRING: Final = Function(_substring, 2, 3)
_CEIL: Final = _one(lambda a: a.ceil())
_MATCHES: Final = Function(_regexp_matches, 2, 2)
_CONTAINS: Final = _two(lambda a, b: a.list.contains(b))
_FIND: Final = _two(lambda a, b: a.str.find(b) + 1)
_DATE_DIFF: Final = Function(_date_diff, 3, 3)
_SPLIT: Final = Function(lambda a, b: a.expr.str.split(b.plain(str, "','")), 2, 2)
_STRING: Final = _json(as_json=False)


def _of_list(method: str) -> Function:
    return _one(lambda a: getattr(a.list, method)())


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
    "greatest": _many(greatest, 2),
    "least": _many(least, 2),
    # Numbers.
    "abs": _one(lambda a: a.abs()),
    "round": Function(_round, 1, 2),
    "floor": _one(lambda a: a.floor()),
    "ceil": _CEIL,
    "ceiling": _CEIL,
    "mod": _REMAINDER,
    "sqrt": _one(lambda a: a.sqrt()),
    "exp": _one(lambda a: a.exp()),
    "ln": _one(lambda a: a.log()),
    "log": _one(lambda a: a.log(10)),
    "log10": _one(lambda a: a.log(10)),
    "log2": _one(lambda a: a.log(2)),
    **{name: _one(methodcaller(name)) for name in ("sin", "cos", "tan", "asin", "acos", "atan")},
    "power": _POWER,
    "pow": _POWER,
    "hash": _one(lambda a: a.hash()),
    # Texts.
    **dict.fromkeys(("lower", "lcase"), _one(lambda a: a.str.lower())),
    **dict.fromkeys(("upper", "ucase"), _one(lambda a: a.str.upper())),
    **dict.fromkeys(("length", "len", "char_length", "character_length", "strlen"), _LENGTH),
    **dict.fromkeys(("trim", "btrim"), _strip("strip")),
    "ltrim": _strip("strip_start"),
    "rtrim": _strip("strip_end"),
    "replace": Function(_replace, 3, 3),
    "substring": _SUBSTRING,
    "substr": _SUBSTRING,
    "left": Function(_left, 2, 2),
    "right": Function(_right, 2, 2),
    "contains": _two(lambda a, b: a.str.contains(b)),
    **dict.fromkeys(("starts_with", "prefix"), _two(lambda a, b: a.str.starts_with(b))),
    **dict.fromkeys(("ends_with", "suffix"), _two(lambda a, b: a.str.ends_with(b))),
    **dict.fromkeys(("position", "strpos", "instr"), _FIND),
    "lpad": _pad("pad_start"),
    "rpad": _pad("pad_end"),
    "reverse": _one(lambda a: a.str.reverse()),
    "repeat": Function(lambda a, n: a.expr.str.repeat(n.plain(int, "3")), 2, 2),
    "md5": _one(lambda a: a.str.digest("md5")),
    "sha256": _one(lambda a: a.str.digest("sha256")),
    "concat": _many(lambda *all_: concat(*(coalesce(each.cast(str), "") for each in all_))),
    "concat_ws": Function(_concat_ws, 2, _MANY),
    **dict.fromkeys(("string_split", "str_split", "split", "string_to_array"), _SPLIT),
    "regexp_replace": Function(_regexp_replace, 3, 4),
    "json_extract": _json(as_json=True),
    **dict.fromkeys(("json_extract_string", "json_value"), _STRING),
    "split_part": Function(_split_part, 3, 3),
    "regexp_extract": Function(_regexp_extract, 2, 3),
    "regexp_matches": _MATCHES,
    "regexp_like": _MATCHES,
    # Times.
    "date_part": Function(_date_part, 2, 2),
    **dict.fromkeys(("date_trunc", "datetrunc"), Function(_date_trunc, 2, 2)),
    **dict.fromkeys(("date_diff", "datediff"), _DATE_DIFF),
    "time_bucket": Function(_time_bucket, 2, 2),
    "timezone": Function(lambda z, a: a.expr.dt.to_zone(z.plain(str, "'Europe/Berlin'")), 2, 2),
    **{name: _one(part) for name, part in _PARTS.items() if name not in ("doy", "dow")},
    "dayofweek": _one(_PARTS["dow"]),
    "weekday": _one(_PARTS["dow"]),
    "dayofyear": _one(_PARTS["doy"]),
    "dayofmonth": _one(_PARTS["day"]),
    "weekofyear": _one(_PARTS["week"]),
    "epoch_us": _one(lambda a: a.dt.epoch("us")),
    "epoch_ms": _one(lambda a: a.dt.epoch("ms")),
    "to_timestamp": _one(lambda a: a.dt.from_epoch("s")),
    "strftime": Function(_strftime, 2, 2),
    "strptime": Function(_strptime, 2, 2),
    # Lists.
    **dict.fromkeys(("list_contains", "list_has", "array_contains", "array_has"), _CONTAINS),
    "list_find": _two(lambda a, b: a.list.find(b)),
    "list_sum": _of_list("sum"),
    "list_avg": _of_list("mean"),
    "list_min": _of_list("min"),
    "list_max": _of_list("max"),
    **dict.fromkeys(("list_distinct", "array_distinct"), _of_list("unique")),
    **dict.fromkeys(("list_reverse", "array_reverse"), _of_list("reverse")),
    **dict.fromkeys(("list_sort", "array_sort"), Function(_list_sort, 1, 2)),
    **dict.fromkeys(("list_slice", "array_slice"), Function(_list_slice, 3, 3)),
    "array_to_string": Function(lambda a, b: a.expr.list.join(b.plain(str, "','")), 2, 2),
    "cardinality": _one(lambda a: a.list.length()),
    "array_length": _one(lambda a: a.list.length()),
}
