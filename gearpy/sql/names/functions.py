"""Functions and operators of SQL, by name, as expressions of streams. None is evaluated here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import (
    add,
    and_,
    attrgetter,
    eq,
    ge,
    gt,
    invert,
    le,
    lt,
    mul,
    ne,
    neg,
    or_,
    sub,
    truediv,
)
from operator import pow as power
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.errors import ConfigError
from gearpy.expressions.expr import Expr, coalesce, concat, greatest, least, lit, when
from gearpy.sql.parse.syntax import Expression, FunctionCall, Literal, TimeSpan
from gearpy.sql.parse.tokens import SqlText, did_you_mean

_PLAIN: Final = {
    "text": (str, "a plain text, such as 'abc'"),
    "number": (int, "a plain whole number, such as 3"),
    "key": (str | int, "a plain text or whole number"),
    "span": (TimeSpan, "an interval of weeks or less, such as INTERVAL '15 minutes'"),
}


@dataclass(frozen=True, slots=True)
class Function:
    """A function by its name in SQL.

    Attributes:
        build: makes an expression of its arguments; or the name of a method of the first one.
        takes: what each argument is: "value" for an expression, else a kind of plain value. With
            "?" behind it, it may be left out; "*" stands for any number of values.
    """

    build: Callable[..., Expr] | str
    takes: str

    def made(self, call: FunctionCall, value: Callable[[Expression], Expr], text: SqlText) -> Expr:
        """Return the expression of a call.

        Raises:
            ConfigError: there are more arguments, or fewer, or others; or the call is one of an
                aggregate.
        """
        takes = self.takes.split()
        least = sum(not each.endswith(("?", "*")) for each in takes)
        count, is_open = len(call.arguments), takes[-1] == "*"
        if count < least or (count > len(takes) and not is_open):
            wanted = f"{least}" if least == len(takes) else f"{least} to {len(takes)}"
            wanted = f"at least {least}" if is_open else wanted
            raise text.error(call.at, f"{call.name} takes {wanted} arguments, not {count}")
        if call.is_distinct or call.where is not None:
            raise text.error(
                call.at, f"{call.name} is no aggregate: DISTINCT and FILTER are for those"
            )
        takes += ["*"] * (count - len(takes))
        arguments: list[Any] = []
        for node, kind in zip(call.arguments, takes, strict=False):
            if kind in ("value", "*"):
                arguments.append(value(node))
                continue
            wanted_type, shown = _PLAIN[kind.rstrip("?")]
            plain: Any = node.value if isinstance(node, Literal) else node
            if not isinstance(plain, wanted_type) or isinstance(plain, bool):
                raise text.error(node.at, f"this argument is {shown}")
            arguments.append(plain)
        if callable(self.build):
            return self.build(*arguments)
        first, *others = arguments
        found: Expr = attrgetter(self.build)(first)(*others)
        return found


def _same(left: Expr, right: Expr) -> Expr:
    """Compare so that nulls are equal."""
    is_null = left.is_null() | right.is_null()
    return when(is_null).then(left.is_null() & right.is_null()).otherwise(left == right)


def _place(number: int) -> int:
    """Return a place that begins with 1, or with -1 from the end, as Python counts it."""
    if not number:
        raise ConfigError("places begin with 1, and with -1 from the end: there is none that is 0")
    return number - 1 if number > 0 else number


def _pad(side: str) -> Callable[..., Expr]:
    def build(value: Expr, width: int, fill: str = " ") -> Expr:
        padded: Expr = getattr(value.cast(str).str, side)(width, fill)
        return padded.str.slice(0, max(0, width))

    return build


def _concat_ws(by: str, *values: Expr) -> Expr:
    texts = (when(v.is_null()).then("").otherwise(concat(by, v.cast(str))) for v in values)
    return concat(*texts).str.slice(len(by))


def _or_empty(found: Expr, of: Expr) -> Expr:
    """Return the part of a text that was found, or the empty text, as SQL has it."""
    return when(of.is_null()).then(None).otherwise(coalesce(found, ""))


def _regexp_replace(value: Expr, pattern: str, by: str, flags: str = "") -> Expr:
    by = by.replace("\\0", "\\g<0>")  # All of what was found.
    found = "(?i)" * ("i" in flags) + pattern
    return value.str.replace_matches(found, by, count=0 if "g" in flags else 1)


def _json(*, as_json: bool) -> Callable[[Expr, str | int], Expr]:
    return lambda value, path: value.str.json(
        f"[{path}]" if isinstance(path, int) else path, as_json=as_json
    )


def _list_slice(value: Expr, start: int, stop: int) -> Expr:
    end = stop if stop >= 0 else stop + 1 or None
    return value.list.slice(max(start - 1, 0) if start >= 0 else start, end)


def _one_of(table: Mapping[str, Any], what: str, name: str) -> Any:
    name = name.lower()
    for each in (name, name.removesuffix("s")):
        if each in table:
            return table[each]
    there = ", ".join(table)
    raise ConfigError(
        f"there is no {what} {name!r}{did_you_mean(name, table)} (there are: {there})"
    )


def _date_diff(unit: str, first: Expr, second: Expr) -> Expr:
    """Count how many times a unit begins between two times, as SQL has it."""
    kind, length = _one_of(_UNITS, "unit", unit)
    sides = [each.cast(pa.timestamp("us", "UTC")) for each in (first, second)]
    if kind == "months":
        counts = [each.dt.year() * 12 + (each.dt.month() - 1) for each in sides]
    else:
        counts = [each.dt.epoch("s") for each in sides]
    begun, ended = (each // length for each in counts)
    between: Expr = ended - begun
    return between.quotient(7) if kind == "weeks" else between


def _time_bucket(width: TimeSpan, value: Expr) -> Expr:
    if width.months:
        raise ConfigError("months differ in length: write date_trunc('month', at)")
    start_us = 946_857_600_000_000  # Monday, 2000-01-03, as DuckDB has it.
    since = value.dt.epoch("us") - start_us
    return (since // width.microseconds * width.microseconds + start_us).dt.from_epoch("us")


#: What `extract` and others take of a time, of UTC.
_PARTS: Final[Mapping[str, Callable[[Expr], Expr]]] = {
    **{
        name: lambda a, name=name: getattr(a.dt, name)()  # type: ignore[misc]
        for name in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    },
    "millisecond": lambda a: a.dt.second() * 1000 + a.dt.microsecond() // 1000,
    "microsecond": lambda a: a.dt.second() * 1_000_000 + a.dt.microsecond(),
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
#: Units between times: what is counted, and how many of them, or of seconds, one has.
_UNITS: Final = {
    "second": ("", 1),
    "minute": ("", 60),
    "hour": ("", 3600),
    "day": ("", 86_400),
    "week": ("weeks", 86_400),  # Seven days, whichever is the first.
    "month": ("months", 1),
    "quarter": ("months", 3),
    "year": ("months", 12),
}

#: Names with commas between them, what is taken, and what is made of it.
_TABLE: Final[tuple[tuple[str, str, Callable[..., Expr] | str], ...]] = (
    ("or", "value value", or_),
    ("and", "value value", and_),
    ("not", "value", invert),
    ("=", "value value", eq),
    ("<>", "value value", ne),
    ("<", "value value", lt),
    ("<=", "value value", le),
    (">", "value value", gt),
    (">=", "value value", ge),
    ("+", "value value", add),
    ("-", "value value", sub),
    ("*", "value value", mul),
    ("/", "value value", truediv),
    ("//", "value value", "quotient"),
    ("%, mod", "value value", "remainder"),
    ("negate", "value", neg),
    ("||", "value value", concat),
    ("in", "value value *", lambda a, *items: reduce(or_, (a == each for each in items))),
    ("between", "value value value", "between"),
    ("like", "value text", "str.like"),
    ("ilike", "value text", lambda a, b: a.str.lower().str.like(b.lower())),
    ("is null", "value", "is_null"),
    ("is true", "value", lambda a: coalesce(a, lit(False))),
    ("is false", "value", lambda a: coalesce(~a, lit(False))),
    ("is not distinct", "value value", _same),
    ("[]", "value key", lambda a, key: a[key if isinstance(key, str) else _place(key)]),
    # Choices.
    ("coalesce", "value *", coalesce),
    ("greatest", "value value *", greatest),
    ("least", "value value *", least),
    # Numbers.
    *((name, "value", name) for name in ("abs", "floor", "sqrt", "exp", "hash")),
    *((name, "value", name) for name in ("sin", "cos", "tan", "asin", "acos", "atan")),
    ("ceil, ceiling", "value", "ceil"),
    ("round", "value number?", lambda a, digits=0: a.round(digits, half="away")),
    ("ln", "value", "log"),
    ("log, log10", "value", lambda a: a.log(10)),
    ("log2", "value", lambda a: a.log(2)),
    ("power, pow", "value value", power),
    # Texts.
    ("lower, lcase", "value", "str.lower"),
    ("upper, ucase", "value", "str.upper"),
    ("length, len, char_length, character_length, strlen", "value", "str.length"),
    ("trim, btrim", "value text?", lambda a, characters=" ": a.str.strip(characters)),
    ("ltrim", "value text?", lambda a, characters=" ": a.str.strip_start(characters)),
    ("rtrim", "value text?", lambda a, characters=" ": a.str.strip_end(characters)),
    ("replace", "value text text", "str.replace"),
    (
        "substring, substr",
        "value number number?",
        lambda a, start, count=None: a.str.slice(_place(start), count),
    ),
    ("left", "value number", lambda a, count: a.str.slice(0, count)),
    ("right", "value number", lambda a, n: a.str.slice(-n) if n else a.str.slice(0, 0)),
    ("contains", "value value", "str.contains"),
    ("starts_with, prefix", "value value", "str.starts_with"),
    ("ends_with, suffix", "value value", "str.ends_with"),
    ("position, strpos, instr", "value value", lambda a, b: a.str.find(b) + 1),
    ("lpad", "value number text?", _pad("pad_start")),
    ("rpad", "value number text?", _pad("pad_end")),
    ("reverse", "value", "str.reverse"),
    ("repeat", "value number", "str.repeat"),
    *(
        (name, "value", lambda a, name=name: a.str.digest(name))
        for name in ("md5", "sha1", "sha256")
    ),
    ("concat", "*", lambda *all_: concat(*(coalesce(each.cast(str), "") for each in all_))),
    ("concat_ws", "text value *", _concat_ws),
    ("string_split, str_split, split, string_to_array", "value text", "str.split"),
    (
        "split_part",
        "value text number",
        lambda a, by, number: _or_empty(a.str.split(by)[_place(number)], a),
    ),
    (
        "regexp_extract",
        "value text number?",
        lambda a, pattern, group=0: _or_empty(a.str.extract(pattern, group), a),
    ),
    ("regexp_matches, regexp_like", "value text", "str.matches"),
    ("regexp_replace", "value text text text?", _regexp_replace),
    ("json_extract", "value key", _json(as_json=True)),
    ("json_extract_string, json_value", "value key", _json(as_json=False)),
    # Times.
    ("date_part", "text value", lambda name, a: _one_of(_PARTS, "part", name)(a)),
    *((name, "value", part) for name, part in _PARTS.items() if name not in ("doy", "dow")),
    ("dayofweek, weekday", "value", _PARTS["dow"]),
    ("dayofyear", "value", _PARTS["doy"]),
    ("dayofmonth", "value", _PARTS["day"]),
    ("weekofyear", "value", _PARTS["week"]),
    (
        "date_trunc, datetrunc",
        "text value",
        lambda unit, a: a.dt.truncate(_one_of(_TRUNCATED, "unit", unit)),
    ),
    ("date_diff, datediff", "text value value", _date_diff),
    ("time_bucket", "span value", _time_bucket),
    ("timezone", "text value", lambda zone, a: a.dt.to_zone(zone)),
    ("epoch_ms", "value", lambda a: a.dt.epoch("ms")),
    ("epoch_us", "value", lambda a: a.dt.epoch("us")),
    ("to_timestamp", "value", lambda a: a.dt.from_epoch("s")),
    ("strftime", "value text", "dt.strftime"),
    ("strptime", "value text", "str.to_datetime"),
    # Lists.
    ("list_contains, list_has, array_contains, array_has", "value value", "list.contains"),
    ("list_find", "value value", "list.find"),
    ("list_sum", "value", "list.sum"),
    ("list_avg", "value", "list.mean"),
    ("list_min", "value", "list.min"),
    ("list_max", "value", "list.max"),
    ("list_distinct, array_distinct", "value", "list.unique"),
    ("list_reverse, array_reverse", "value", "list.reverse"),
    (
        "list_sort, array_sort",
        "value text?",
        lambda a, order="asc": a.list.sort(descending=order.lower() == "desc"),
    ),
    ("list_slice, array_slice", "value number number", _list_slice),
    ("array_to_string", "value text", "list.join"),
    ("cardinality, array_length", "value", "list.length"),
)
FUNCTIONS: Final[Mapping[str, Function]] = {
    name: Function(build, takes) for names, takes, build in _TABLE for name in names.split(", ")
}
