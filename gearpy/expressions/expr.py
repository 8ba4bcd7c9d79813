"""Expressions as users write them: ``gp.col("price") * 0.89``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from reprlib import repr as short_repr
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias

from gearpy.core.base.fields import Computed
from gearpy.errors import ConfigError
from gearpy.expressions.nodes import CallNode, ColumnNode, LiteralNode, Node, text_of

if TYPE_CHECKING:
    from gearpy.expressions.binding import Bound

#: What may stand where an expression does: one, or a plain value.
Operand: TypeAlias = "Expr | str | bytes | int | float | Decimal | date | time | timedelta | None"

_Text: TypeAlias = str  # `str` is a property of expressions.

_PLAIN: Final = (
    *(str, bytes, bool, int, float, Decimal, datetime, date, time, timedelta, type(None)),
)
_INT64_END: Final = 1 << 63
_JSON_STEP: Final = re.compile(r"([\w-]+)|\[(-?\d+)\]")
_JSON_PATH: Final = re.compile(r"\$?\.?(?:(?:[\w-]+|\[-?\d+\])\.?)+")


class Expr(Computed):
    """What is computed of a record: of columns as a whole, or of one row after the other.

    Made by `gp.col`, `gp.lit`, `gp.when` and `gp.coalesce`, and by operators and methods of
    expressions. It is data: the same expression runs in Arrow over columns, and as a Python
    function over rows, with the same results. A value that is missing (None) makes a missing one of
    what is computed of it, except where a method says otherwise.

    Operators: ``+ - * / // % **``, ``== != < <= > >=``, and ``& | ~`` for and, or, not. Whole
    numbers are of 64 bits: a result with more is refused, as is a division of whole numbers by 0.
    Use ``&`` and ``|`` with parentheses: ``(gp.col("a") > 1) & (gp.col("b") == "x")``.

    Example:
        >>> import gearpy as gp
        >>> net = gp.col("price") * 0.5
        >>> net
        price * 0.5
        >>> net({"price": 3})
        1.5
    """

    def __init__(self, node: Node, name: _Text = "") -> None:
        self.node: Final = node
        self._alias = name

    # -- what it is ----------------------------------------------------------------------------

    @property
    def name(self) -> _Text:
        """The name of the column that it makes: that of `alias`, or of the column it is."""
        if self._alias:
            return self._alias
        if isinstance(self.node, ColumnNode):
            return self.node.name.rpartition(".")[2]
        if isinstance(self.node, CallNode) and self.node.function == "field":
            key = dict(self.node.options)["key"]
            return key if isinstance(key, str) else text_of(self.node)
        return text_of(self.node)

    def __str__(self) -> _Text:
        """Return the expression as `gear plan` shows it."""
        text = text_of(self.node)
        return f"{text} as {self._alias}" if self._alias else text

    __repr__ = __str__

    def __hash__(self) -> int:
        """Return the hash of this object: of two that are equal, `node` tells."""
        return object.__hash__(self)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"the expression ({self}) is neither true nor false before it meets a record: use & "
            "for and, | for or, ~ for not, with parentheses around comparisons, and .is_in([...]) "
            "or .between(...) where Python would compare twice"
        )

    def __iter__(self) -> NoReturn:
        raise TypeError(f"the expression ({self}) has no parts before it meets a record")

    def __call__(self, record: Any) -> Any:
        """Return its value for one record: a dict, or an object with attributes."""
        return self._function(record)

    def row(self) -> Callable[[Any], Any]:
        """Return a function of one record that gives the value of the expression.

        Records are dicts, dataclasses, NamedTuples or other objects with attributes.

        Example:
            >>> import gearpy as gp
            >>> double = (gp.col("n") * 2).row()
            >>> double({"n": 4})
            8
        """
        return self._function

    @cached_property
    def _function(self) -> Callable[[Any], Any]:
        from gearpy.expressions.rows import row_function  # noqa: PLC0415 - when it first runs

        return row_function(self.node)

    def __getstate__(self) -> dict[_Text, Any]:
        return {"node": self.node, "_alias": self._alias}

    def bind(self, schema: Any) -> Bound:
        """Return the expression bound to one schema, which evaluates it over columns.

        Args:
            schema: a `pyarrow.Schema`, or another form of schema that streams take.

        Raises:
            ConfigError: there is no such column, or types do not fit.

        Example:
            >>> import gearpy as gp
            >>> import pyarrow as pa
            >>> bound = (gp.col("n") * 2).bind({"n": int})
            >>> bound.type
            DataType(int64)
            >>> bound.columns(pa.record_batch({"n": [1, None]})).to_pylist()
            [2, None]
        """
        from gearpy.expressions.binding import bound  # noqa: PLC0415 - loads Arrow

        return bound(self.node, schema)

    def alias(self, name: _Text) -> Expr:
        """Return the same with a name for the column that it makes.

        Raises:
            ConfigError: this is no name.
        """
        if type(name) is not str or not name:
            raise ConfigError(f"alias({short_repr(name)}): give a name, such as alias('net')")
        return Expr(self.node, name)

    # -- operators -----------------------------------------------------------------------------

    def __add__(self, other: Operand) -> Expr:
        return _call("+", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return _call("+", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return _call("-", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return _call("-", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return _call("*", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return _call("*", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return _call("/", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return _call("/", other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        return _call("//", self, other)

    def __rfloordiv__(self, other: Operand) -> Expr:
        return _call("//", other, self)

    def __mod__(self, other: Operand) -> Expr:
        return _call("%", self, other)

    def __rmod__(self, other: Operand) -> Expr:
        return _call("%", other, self)

    def __pow__(self, other: Operand) -> Expr:
        return _call("**", self, other)

    def __rpow__(self, other: Operand) -> Expr:
        return _call("**", other, self)

    def __eq__(self, other: Operand) -> Expr:  # type: ignore[override]
        return _call("==", self, other) if _is_operand(other) else NotImplemented

    def __ne__(self, other: Operand) -> Expr:  # type: ignore[override]
        return _call("!=", self, other) if _is_operand(other) else NotImplemented

    def __lt__(self, other: Operand) -> Expr:
        return _call("<", self, other)

    def __le__(self, other: Operand) -> Expr:
        return _call("<=", self, other)

    def __gt__(self, other: Operand) -> Expr:
        return _call(">", self, other)

    def __ge__(self, other: Operand) -> Expr:
        return _call(">=", self, other)

    def __and__(self, other: Operand) -> Expr:
        return _call("&", self, other)

    def __rand__(self, other: Operand) -> Expr:
        return _call("&", other, self)

    def __or__(self, other: Operand) -> Expr:
        return _call("|", self, other)

    def __ror__(self, other: Operand) -> Expr:
        return _call("|", other, self)

    def __invert__(self) -> Expr:
        return _call("~", self)

    def __neg__(self) -> Expr:
        return _call("negate", self)

    def __abs__(self) -> Expr:
        return self.abs()

    def __getitem__(self, key: int | _Text) -> Expr:
        """Return an item of a list by its place, from the end if negative; or a field by name."""
        if type(key) not in {int, str}:
            raise ConfigError(f"{self}[{key!r}]: give the place in a list, or the name of a field")
        return _call("field", self, key=key)

    # -- methods -------------------------------------------------------------------------------

    def field(self, name: _Text) -> Expr:
        """Return a field of a struct, or the value of a key of a map."""
        return self[name]

    def cast(self, to: Any, *, strict: bool = True) -> Expr:
        """Return the value as another type; one that does not fit is refused, never changed.

        Args:
            to: int, float, str, bool, datetime, date, or a type of Arrow, also by name: "int32".
            strict: False makes None of a value that does not fit.
        """
        from gearpy.expressions.casts import target_of  # noqa: PLC0415 - loads Arrow

        return _call("cast", self, to=target_of(to, strict=strict))

    def abs(self) -> Expr:
        """Return the number without its sign."""
        return _call("abs", self)

    def round(self, digits: int = 0, *, half: Literal["even", "away"] = "even") -> Expr:
        """Round to so many digits behind the point.

        Args:
            digits: how many; below 0 to tens, hundreds and so on.
            half: whether a half goes to the even number, as in Python, or away from 0, as in SQL.
        """
        return _call("round" if half == "even" else "round_away", self, digits=digits)

    def floor(self) -> Expr:
        """Return the largest whole number that is not above; a float stays one."""
        return _call("floor", self)

    def ceil(self) -> Expr:
        """Return the smallest whole number that is not below; a float stays one."""
        return _call("ceil", self)

    def sqrt(self) -> Expr:
        """Return the square root; of a number below 0 it is NaN."""
        return _call("sqrt", self)

    def exp(self) -> Expr:
        """Return e to the power of the number."""
        return _call("exp", self)

    def log(self, base: Literal[2, 10] | None = None) -> Expr:
        """Return the logarithm, the natural one without a base; of 0 it is -inf, below NaN."""
        return _call("log" if base is None else f"log{base}", self)

    def sin(self) -> Expr:
        """Return the sine of an angle in radians."""
        return _call("sin", self)

    def cos(self) -> Expr:
        """Return the cosine of an angle in radians."""
        return _call("cos", self)

    def tan(self) -> Expr:
        """Return the tangent of an angle in radians."""
        return _call("tan", self)

    def asin(self) -> Expr:
        """Return the angle in radians whose sine it is; NaN if there is none."""
        return _call("asin", self)

    def acos(self) -> Expr:
        """Return the angle in radians whose cosine it is; NaN if there is none."""
        return _call("acos", self)

    def atan(self) -> Expr:
        """Return the angle in radians whose tangent it is."""
        return _call("atan", self)

    def hash(self) -> Expr:
        """Return a number of 64 bits that depends on the value only, in all processes."""
        return _call("hash", self)

    def is_null(self) -> Expr:
        """Tell whether the value is missing."""
        return _call("is_null", self)

    def is_not_null(self) -> Expr:
        """Tell whether there is a value."""
        return ~self.is_null()

    def fill_null(self, value: Operand) -> Expr:
        """Return the value, or another where it is missing."""
        return _call("coalesce", self, value)

    def is_in(self, values: Iterable[Any]) -> Expr:
        """Tell whether the value is one of some plain values, none of which is None.

        Raises:
            ConfigError: one of them is None, or no plain value.
        """
        if isinstance(values, str | bytes | Expr):
            raise ConfigError(f"is_in({short_repr(values)}): give a list of plain values")
        listed = tuple(values)
        for value in listed:
            if value is None or value != value:  # noqa: PLR0124 - NaN
                raise ConfigError(f"is_in([..., {value}]): it equals nothing; use .is_null()")
            literal_of(value)
        return _call("is_in", self, values=listed)

    def between(self, low: Operand, high: Operand) -> Expr:
        """Tell whether the value is neither below ``low`` nor above ``high``."""
        return (self >= low) & (self <= high)

    # -- methods by theme ----------------------------------------------------------------------

    @property
    def str(self) -> TextMethods:
        """Functions of texts, such as ``.str.lower()``."""
        return TextMethods(self)

    @property
    def dt(self) -> TimeMethods:
        """Functions of times, such as ``.dt.year()``."""
        return TimeMethods(self)

    @property
    def list(self) -> ListMethods:
        """Functions of lists, such as ``.list.length()``."""
        return ListMethods(self)


class TextMethods:
    """Functions of an expression that is a text: ``gp.col("name").str.lower()``."""

    def __init__(self, expr: Expr) -> None:
        self._expr = expr

    def lower(self) -> Expr:
        """Return the text in lower case."""
        return _call("lower", self._expr)

    def upper(self) -> Expr:
        """Return the text in upper case."""
        return _call("upper", self._expr)

    def strip(self, chars: str | None = None) -> Expr:
        """Return the text without white space, or some characters, at its ends."""
        return _call("strip", self._expr, chars=chars)

    def strip_start(self, chars: str | None = None) -> Expr:
        """Return the text without white space, or some characters, at its start."""
        return _call("strip_start", self._expr, chars=chars)

    def strip_end(self, chars: str | None = None) -> Expr:
        """Return the text without white space, or some characters, at its end."""
        return _call("strip_end", self._expr, chars=chars)

    def contains(self, part: Operand) -> Expr:
        """Tell whether another text is in it."""
        return _call("contains", self._expr, part)

    def starts_with(self, part: Operand) -> Expr:
        """Tell whether it begins with another text."""
        return _call("starts_with", self._expr, part)

    def ends_with(self, part: Operand) -> Expr:
        """Tell whether it ends with another text."""
        return _call("ends_with", self._expr, part)

    def like(self, pattern: str) -> Expr:
        """Tell whether it is as a pattern of SQL: ``%`` is any text, ``_`` any character."""
        return _call("like", self._expr, pattern=pattern)

    def matches(self, pattern: str) -> Expr:
        """Tell whether a regular expression of Python is found in it.

        Raises:
            ConfigError: the pattern is none.
        """
        _check_pattern("matches", pattern)
        return _call("matches", self._expr, pattern=pattern)

    def extract(self, pattern: str, group: int = 1) -> Expr:
        """Return a group of a regular expression of Python where it is found; else None.

        Raises:
            ConfigError: the pattern is none, or has no such group.
        """
        groups = _check_pattern("extract", pattern)
        if type(group) is not int or not 0 <= group <= groups:
            raise ConfigError(f"extract({pattern!r}): there is no group {group!r}, but {groups}")
        return _call("extract", self._expr, pattern=pattern, group=group)

    def split(self, by: str) -> Expr:
        """Return the parts of the text between each two places of another one, as a list."""
        if not by:
            raise ConfigError("split(''): give the text between the parts, such as ','")
        return _call("split", self._expr, by=by)

    def replace_matches(self, pattern: str, by: str, *, count: int = 0) -> Expr:
        r"""Replace what a regular expression of Python finds.

        Args:
            pattern: the regular expression.
            by: what takes its place; "\\1" is the first group.
            count: how many at most, from the start; 0 for all.

        Raises:
            ConfigError: the pattern is none, or has no such group.
        """
        _check_pattern("replace_matches", pattern)
        try:
            re.sub(f"{pattern}|", by, "")
        except (re.error, IndexError) as error:
            raise ConfigError(f"replace_matches({pattern!r}, {by!r}): {error}") from None
        return _call("replace_matches", self._expr, pattern=pattern, by=by, count=count)

    def find(self, part: Operand) -> Expr:
        """Return the place of the first character of another text in it, from 0; else -1."""
        return _call("find", self._expr, part)

    def pad_start(self, width: int, fill: str = " ") -> Expr:
        """Return the text with others before it, so that it has so many characters at least."""
        return self._padded(width, fill, at_start=True)

    def pad_end(self, width: int, fill: str = " ") -> Expr:
        """Return the text with others behind it, so that it has so many characters at least."""
        return self._padded(width, fill, at_start=False)

    def _padded(self, width: int, fill: str, *, at_start: bool) -> Expr:
        if not fill:
            raise ConfigError("pad: give the text to fill with, such as '0'")
        return _call("pad", self._expr, width=width, fill=fill, at_start=at_start)

    def reverse(self) -> Expr:
        """Return its characters from the last one to the first."""
        return _call("reverse", self._expr)

    def repeat(self, times: int) -> Expr:
        """Return the text so many times, one behind the other."""
        return _call("repeat", self._expr, times=times)

    def digest(self, algorithm: Literal["md5", "sha1", "sha256"]) -> Expr:
        """Return the digest of its bytes in UTF-8, as hexadecimal digits."""
        return _call("digest", self._expr, algorithm=algorithm)

    def json(self, path: str, *, as_json: bool = False) -> Expr:
        """Return a value in JSON as text; None where there is none, or it is null.

        Args:
            path: to the value, such as "user.name" or "$.items[0].id".
            as_json: a text has its quotes.

        Raises:
            ConfigError: the path is none.
        """
        if not _JSON_PATH.fullmatch(path):
            raise ConfigError(f"json({path!r}): give a path such as '$.items[0].id'")
        keys = [int(at) if at else name for name, at in _JSON_STEP.findall(path)]
        return _call("json", self._expr, path=tuple(keys), as_json=as_json)

    def to_datetime(self, format: str | None = None, *, zone: str | None = None) -> Expr:  # noqa: A002 - as in Polars
        """Return the time that it says.

        Args:
            format: as of `datetime.strptime`; None for the ISO form.
            zone: of times that do not say theirs; None for UTC.
        """
        return _call("to_datetime", self._expr, format=format, zone=_zone(zone))

    def replace(self, old: str, new: str) -> Expr:
        """Replace each place where a text is found by another."""
        return _call("replace", self._expr, old=old, new=new)

    def length(self) -> Expr:
        """Count the characters."""
        return _call("length", self._expr)

    def slice(self, start: int, length: int | None = None) -> Expr:
        """Return a part of the text; a negative start counts from its end."""
        return _call("slice", self._expr, start=start, length=length)


class ListMethods:
    """Functions of an expression that is a list: ``gp.col("tags").list.length()``."""

    def __init__(self, expr: Expr) -> None:
        self._expr = expr

    def length(self) -> Expr:
        """Count the items."""
        return _call("length", self._expr)

    def get(self, place: int) -> Expr:
        """Return an item, from the end if negative; None where the list is shorter."""
        return self._expr[place]

    def contains(self, value: Operand) -> Expr:
        """Tell whether a value is one of its items."""
        return _call("list_contains", self._expr, value)

    def join(self, by: str) -> Expr:
        """Return its texts or numbers as one text, with another one between them."""
        return _call("list_join", self._expr, by=by)

    def sum(self) -> Expr:
        """Add up its numbers, but for those that are missing; None without any."""
        return _call("list_sum", self._expr)

    def mean(self) -> Expr:
        """Return the mean of its numbers, but for those that are missing; None without any."""
        return _call("list_mean", self._expr)

    def min(self) -> Expr:
        """Return the least item that is not missing; None without any."""
        return _call("list_min", self._expr)

    def max(self) -> Expr:
        """Return the greatest item that is not missing; None without any."""
        return _call("list_max", self._expr)

    def sort(self, *, descending: bool = False) -> Expr:
        """Return its items in order, those that are missing behind the others."""
        return _call("list_sort", self._expr, descending=descending)

    def unique(self) -> Expr:
        """Return its different items that are not missing, each where it comes first."""
        return _call("list_unique", self._expr)

    def reverse(self) -> Expr:
        """Return its items from the last one to the first."""
        return _call("list_reverse", self._expr)

    def slice(self, start: int, stop: int | None = None) -> Expr:
        """Return the items from a place up to another one, counted as Python does."""
        return _call("list_slice", self._expr, start=start, stop=stop)

    def find(self, value: Operand) -> Expr:
        """Return the place of the first item that is equal to a value, from 0; else -1."""
        return _call("list_find", self._expr, value)


class TimeMethods:
    """Functions of an expression that is a time or a date: ``gp.col("at").dt.hour()``.

    Times are of UTC. With ``zone``, such as "Europe/Berlin", its calendar and clock are meant.
    """

    def __init__(self, expr: Expr) -> None:
        self._expr = expr

    def year(self, *, zone: str | None = None) -> Expr:
        """Return the year."""
        return self._part("year", zone)

    def quarter(self, *, zone: str | None = None) -> Expr:
        """Return the quarter of the year, from 1 to 4."""
        return self._part("quarter", zone)

    def month(self, *, zone: str | None = None) -> Expr:
        """Return the month, from 1 to 12."""
        return self._part("month", zone)

    def day(self, *, zone: str | None = None) -> Expr:
        """Return the day of the month, from 1 to 31."""
        return self._part("day", zone)

    def week(self, *, zone: str | None = None) -> Expr:
        """Return the week of the year, from 1 to 53, as ISO 8601 counts them."""
        return self._part("week", zone)

    def iso_year(self, *, zone: str | None = None) -> Expr:
        """Return the year that the week belongs to, as ISO 8601 counts them."""
        return self._part("iso_year", zone)

    def weekday(self, *, zone: str | None = None) -> Expr:
        """Return the day of the week, from 1 for Monday to 7."""
        return self._part("weekday", zone)

    def day_of_year(self, *, zone: str | None = None) -> Expr:
        """Return the day of the year, from 1 to 366."""
        return self._part("day_of_year", zone)

    def hour(self, *, zone: str | None = None) -> Expr:
        """Return the hour, from 0 to 23."""
        return self._part("hour", zone)

    def minute(self, *, zone: str | None = None) -> Expr:
        """Return the minute, from 0 to 59."""
        return self._part("minute", zone)

    def second(self, *, zone: str | None = None) -> Expr:
        """Return the second, from 0 to 59."""
        return self._part("second", zone)

    def microsecond(self, *, zone: str | None = None) -> Expr:
        """Return the microseconds of the second, from 0 to 999,999."""
        return self._part("microsecond", zone)

    def date(self, *, zone: str | None = None) -> Expr:
        """Return the date."""
        return self._part("date", zone)

    def truncate(self, every: str, *, zone: str | None = None) -> Expr:
        """Return the start of the piece of time that it is in.

        Args:
            every: "day", "week" (from Monday), "month", "quarter", "year", or a duration of less
                than a day, such as "15m"; pieces of one begin at midnight of 1970-01-01.
            zone: whose days, or midnight.

        Raises:
            ConfigError: it is none of these.
        """
        from gearpy.expressions.time_functions import step_us  # noqa: PLC0415 - to check it

        step_us(every)
        return _call("truncate", self._expr, every=every, zone=_zone(zone))

    def add_months(self, months: int) -> Expr:
        """Return the time so many months later, on the last day of a month that is too short."""
        return _call("add_months", self._expr, months=months)

    def strftime(self, format: str, *, zone: str | None = None) -> Expr:  # noqa: A002 - as in Python
        """Return the text that `datetime.strftime` makes of it."""
        return _call("strftime", self._expr, format=format, zone=_zone(zone))

    def to_zone(self, zone: str) -> Expr:
        """Return the local time in a zone, as a time without a zone."""
        return _call("to_zone", self._expr, zone=_zone(zone))

    def epoch(self, unit: str = "ms") -> Expr:
        """Return the time since 1970 as a whole number of "s", "ms" or "us", rounded down."""
        return _call("epoch", self._expr, unit=_unit("epoch", unit))

    def from_epoch(self, unit: str = "ms") -> Expr:
        """Return the time that a whole number of "s", "ms" or "us" since 1970 is."""
        return _call("from_epoch", self._expr, unit=_unit("from_epoch", unit))

    def _part(self, name: str, zone: str | None) -> Expr:
        return _call(name, self._expr, zone=_zone(zone))


class When:
    """A choice that was begun by `gp.when`, before ``then``."""

    def __init__(self, args: tuple[Node, ...]) -> None:
        self._args = args

    def then(self, value: Operand) -> Then:
        """Give the value where the condition holds."""
        return Then((*self._args, node_of(value)))


class Then(Expr):
    """A choice with a value: None where no condition holds, unless `otherwise` gives another."""

    def __init__(self, args: tuple[Node, ...]) -> None:
        super().__init__(CallNode("when", (*args, literal_of(None))))
        self._args = args

    def when(self, condition: Operand) -> When:
        """Begin another case, for records for which no condition before it holds."""
        return When((*self._args, condition_of(condition)))

    def otherwise(self, value: Operand) -> Expr:
        """Give the value where no condition holds."""
        return Expr(CallNode("when", (*self._args, node_of(value))))


def col(name: str) -> Expr:
    """Return a column, or the field of a record, as an expression.

    Args:
        name: of the column; dots lead to fields of structs: "meta.user".

    Raises:
        ConfigError: this is no name.

    Example:
        >>> import gearpy as gp
        >>> app, results = gp.StreamApp("large"), []
        >>> sales = app.read(gp.rows([{"price": 3}, {"price": 5}]))
        >>> sales.filter(gp.col("price") > 4).write(gp.to_list(results))
        >>> _ = gp.run(app)
        >>> results
        [{'price': 5}]
    """
    if type(name) is not str or not name:
        raise ConfigError(f"col({short_repr(name)}): give the name of a column, such as 'price'")
    return Expr(ColumnNode(_checked_text(name)))


def lit(value: Any) -> Expr:
    """Return a plain value as an expression.

    Args:
        value: text, bytes, bool, a number, a time, or None.

    Raises:
        ConfigError: it is none of these, or a whole number of more than 64 bits.

    Example:
        >>> import gearpy as gp
        >>> (gp.lit(1) / gp.col("n"))({"n": 4})
        0.25
    """
    return Expr(literal_of(value))


def when(condition: Operand) -> When:
    """Begin a choice between values: ``gp.when(a).then(x).when(b).then(y).otherwise(z)``.

    A value is computed for those records only that it is chosen for, so a condition can keep a
    division by 0 away.

    Example:
        >>> import gearpy as gp
        >>> n = gp.col("n")
        >>> size = gp.when(n > 9).then("large").otherwise("small")
        >>> size({"n": 10}), size({"n": None})
        ('large', 'small')
    """
    return When((condition_of(condition),))


def coalesce(*values: Operand) -> Expr:
    """Return the first of some values that is not missing.

    Raises:
        ConfigError: there is none.

    Example:
        >>> import gearpy as gp
        >>> gp.coalesce(gp.col("a"), gp.col("b"), 0)({"a": None, "b": 2})
        2
    """
    if not values:
        raise ConfigError("coalesce(): give at least one expression or value")
    return _call("coalesce", *values)


def concat(*texts: Operand) -> Expr:
    """Join texts into one; it is missing if one of them is.

    Example:
        >>> import gearpy as gp
        >>> gp.concat(gp.col("first"), " ", gp.col("last"))({"first": "Ada", "last": "Lovelace"})
        'Ada Lovelace'
    """
    return _call("concat", *texts)


def greatest(*values: Operand) -> Expr:
    """Return the greatest of some values, without those that are missing.

    Example:
        >>> import gearpy as gp
        >>> gp.greatest(gp.col("a"), gp.col("b"), 3)({"a": 7, "b": None})
        7
    """
    return _call("greatest", *values)


def least(*values: Operand) -> Expr:
    """Return the least of some values, without those that are missing; see `greatest`."""
    return _call("least", *values)


def _is_operand(value: Any) -> bool:
    """Tell whether a value can be compared with. Others equal nothing, as code may ask for them."""
    return isinstance(value, Expr) or type(value) in _PLAIN


def literal_of(value: Any) -> LiteralNode:
    if type(value) not in _PLAIN:
        raise ConfigError(
            f"{short_repr(value)} is no value for an expression: give text, bytes, a bool, a "
            "number, a time, or None"
        )
    if type(value) is int and not -_INT64_END <= value < _INT64_END:
        raise ConfigError(f"{value} has more than the 64 bits of whole numbers in expressions")
    return LiteralNode(_checked_text(value), type(value))


def _checked_text(value: Any) -> Any:
    """Refuse a text that no column could have."""
    if type(value) is tuple:
        return tuple(map(_checked_text, value))
    if type(value) is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ConfigError(f"{value!r:.100} is no text: it has half of a character") from None
    return value


def node_of(value: Operand) -> Node:
    return value.node if isinstance(value, Expr) else literal_of(value)


def condition_of(value: Operand) -> Node:
    """Return a node that is true, false or missing, and refuses all else."""
    return CallNode("condition", (node_of(value),))


def expression_of(value: Any) -> Expr:
    """Return the column of a name, an expression as it is, or another value as a literal."""
    if isinstance(value, Expr):
        return value
    return col(value) if isinstance(value, str) else lit(value)


def _check_pattern(kind: str, pattern: str) -> int:
    """Return how many groups a regular expression has."""
    try:
        return re.compile(pattern).groups
    except (re.error, TypeError) as error:
        raise ConfigError(f"{kind}({pattern!r}) is no regular expression: {error}") from None


def _zone(zone: str | None) -> str | None:
    from gearpy.expressions.time_functions import zone_info  # noqa: PLC0415 - to check it

    return zone if zone is None else zone_info(zone).key


def _unit(kind: str, unit: str) -> str:
    if unit not in {"s", "ms", "us"}:
        raise ConfigError(f'{kind}({unit!r}): give "s", "ms" or "us"')
    return unit


def _call(function: str, *args: Operand, **options: Any) -> Expr:
    checked = tuple((name, _checked_text(value)) for name, value in options.items())
    return Expr(CallNode(function, tuple(map(node_of, args)), checked))
