"""Expressions as users write them: ``gp.col("price") * 0.89``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from reprlib import repr as short_repr
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias

from gearpy.core.base.fields import Computed
from gearpy.errors import ConfigError
from gearpy.expressions.methods import ListMethods, TextMethods, TimeMethods
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
        return call("+", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return call("+", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return call("-", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return call("-", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return call("*", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return call("*", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return call("/", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return call("/", other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        return call("//", self, other)

    def __rfloordiv__(self, other: Operand) -> Expr:
        return call("//", other, self)

    def __mod__(self, other: Operand) -> Expr:
        return call("%", self, other)

    def __rmod__(self, other: Operand) -> Expr:
        return call("%", other, self)

    def __pow__(self, other: Operand) -> Expr:
        return call("**", self, other)

    def __rpow__(self, other: Operand) -> Expr:
        return call("**", other, self)

    def __eq__(self, other: Operand) -> Expr:  # type: ignore[override]
        return call("==", self, other) if _is_operand(other) else NotImplemented

    def __ne__(self, other: Operand) -> Expr:  # type: ignore[override]
        return call("!=", self, other) if _is_operand(other) else NotImplemented

    def __lt__(self, other: Operand) -> Expr:
        return call("<", self, other)

    def __le__(self, other: Operand) -> Expr:
        return call("<=", self, other)

    def __gt__(self, other: Operand) -> Expr:
        return call(">", self, other)

    def __ge__(self, other: Operand) -> Expr:
        return call(">=", self, other)

    def __and__(self, other: Operand) -> Expr:
        return call("&", self, other)

    def __rand__(self, other: Operand) -> Expr:
        return call("&", other, self)

    def __or__(self, other: Operand) -> Expr:
        return call("|", self, other)

    def __ror__(self, other: Operand) -> Expr:
        return call("|", other, self)

    def __invert__(self) -> Expr:
        return call("~", self)

    def __neg__(self) -> Expr:
        return call("negate", self)

    def __abs__(self) -> Expr:
        return self.abs()

    def __getitem__(self, key: int | _Text) -> Expr:
        """Return an item of a list by its place, from the end if negative; or a field by name."""
        if type(key) not in {int, str}:
            raise ConfigError(f"{self}[{key!r}]: give the place in a list, or the name of a field")
        return call("field", self, key=key)

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

        return call("cast", self, to=target_of(to, strict=strict))

    def abs(self) -> Expr:
        """Return the number without its sign."""
        return call("abs", self)

    def round(self, digits: int = 0, *, half: Literal["even", "away"] = "even") -> Expr:
        """Round to so many digits behind the point.

        Args:
            digits: how many; below 0 to tens, hundreds and so on.
            half: whether a half goes to the even number, as in Python, or away from 0, as in SQL.
        """
        return call("round" if half == "even" else "round_away", self, digits=digits)

    def floor(self) -> Expr:
        """Return the largest whole number that is not above; a float stays one."""
        return call("floor", self)

    def ceil(self) -> Expr:
        """Return the smallest whole number that is not below; a float stays one."""
        return call("ceil", self)

    def quotient(self, other: Operand) -> Expr:
        """Return the whole quotient that is nearer to 0, as SQL has it; ``//`` rounds down."""
        return call("quotient", self, other)

    def remainder(self, other: Operand) -> Expr:
        """Return the remainder with the sign of this number, as SQL has it; see ``%``."""
        return call("remainder", self, other)

    def sqrt(self) -> Expr:
        """Return the square root; of a number below 0 it is NaN."""
        return call("sqrt", self)

    def exp(self) -> Expr:
        """Return e to the power of the number."""
        return call("exp", self)

    def log(self, base: Literal[2, 10] | None = None) -> Expr:
        """Return the logarithm, the natural one without a base; of 0 it is -inf, below NaN."""
        return call("log" if base is None else f"log{base}", self)

    def sin(self) -> Expr:
        """Return the sine of an angle in radians."""
        return call("sin", self)

    def cos(self) -> Expr:
        """Return the cosine of an angle in radians."""
        return call("cos", self)

    def tan(self) -> Expr:
        """Return the tangent of an angle in radians."""
        return call("tan", self)

    def asin(self) -> Expr:
        """Return the angle in radians whose sine it is; NaN if there is none."""
        return call("asin", self)

    def acos(self) -> Expr:
        """Return the angle in radians whose cosine it is; NaN if there is none."""
        return call("acos", self)

    def atan(self) -> Expr:
        """Return the angle in radians whose tangent it is."""
        return call("atan", self)

    def hash(self) -> Expr:
        """Return a number of 64 bits that depends on the value only, in all processes."""
        return call("hash", self)

    def is_null(self) -> Expr:
        """Tell whether the value is missing."""
        return call("is_null", self)

    def is_not_null(self) -> Expr:
        """Tell whether there is a value."""
        return ~self.is_null()

    def fill_null(self, value: Operand) -> Expr:
        """Return the value, or another where it is missing."""
        return call("coalesce", self, value)

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
        return call("is_in", self, values=listed)

    def between(self, low: Operand, high: Operand) -> Expr:
        """Tell whether the value is neither below ``low`` nor above ``high``."""
        return (self >= low) & (self <= high)

    # -- methods by theme ----------------------------------------------------------------------

    @property
    def str(self) -> TextMethods[Expr]:
        """Functions of texts, such as ``.str.lower()``."""
        return TextMethods(self, call)

    @property
    def dt(self) -> TimeMethods[Expr]:
        """Functions of times, such as ``.dt.year()``."""
        return TimeMethods(self, call)

    @property
    def list(self) -> ListMethods[Expr]:
        """Functions of lists, such as ``.list.length()``."""
        return ListMethods(self, call)


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
    return call("coalesce", *values)


def concat(*texts: Operand) -> Expr:
    """Join texts into one; it is missing if one of them is.

    Example:
        >>> import gearpy as gp
        >>> gp.concat(gp.col("first"), " ", gp.col("last"))({"first": "Ada", "last": "Lovelace"})
        'Ada Lovelace'
    """
    return call("concat", *texts)


def greatest(*values: Operand) -> Expr:
    """Return the greatest of some values, without those that are missing.

    Example:
        >>> import gearpy as gp
        >>> gp.greatest(gp.col("a"), gp.col("b"), 3)({"a": 7, "b": None})
        7
    """
    return call("greatest", *values)


def least(*values: Operand) -> Expr:
    """Return the least of some values, without those that are missing; see `greatest`."""
    return call("least", *values)


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


def call(function: str, *args: Operand, **options: Any) -> Expr:
    checked = tuple((name, _checked_text(value)) for name, value in options.items())
    return Expr(CallNode(function, tuple(map(node_of, args)), checked))
