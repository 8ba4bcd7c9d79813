"""The parser of expressions: each method takes what binds more tightly than the one before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from gearpy.sql.parse.syntax import (
    Case,
    Cast,
    Expression,
    FunctionCall,
    Item,
    Literal,
    Name,
    Order,
    Over,
    QueryValue,
    RowFrame,
    Star,
    TimeSpan,
)
from gearpy.sql.parse.tokens import SqlText, Token

if TYPE_CHECKING:
    from gearpy.errors import ConfigError
    from gearpy.sql.parse.syntax import Query

_T = TypeVar("_T")

#: Words that end an expression or a table, so that none of them is a name without quotes.
_RESERVED_WORDS: Final = """
    all and as asof between by case cross distinct else emit end except exists for from full group
    having ilike in inner intersect is join left like limit natural not null offset on or order
    outer qualify right select then union using when where with
"""
#: Aggregates that join texts.
STRING_AGGREGATES: Final = frozenset({"string_agg", "group_concat", "listagg"})
RESERVED: Final = frozenset(_RESERVED_WORDS.split())
_COMPARISONS: Final = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", ">": ">", "<=": "<=", ">=": ">="}
_UNIT_NAMES: Final = {
    "microsecond": 1,
    "millisecond ms": 1000,
    "second s": 1_000_000,
    "minute m": 60_000_000,
    "hour h": 3_600_000_000,
    "day d": 86_400_000_000,
    "week w": 604_800_000_000,
}
_UNITS: Final = {name: us for names, us in _UNIT_NAMES.items() for name in names.split()}


class Tokens:
    """A place in the tokens of a text, which goes on as they are taken."""

    def __init__(self, text: SqlText) -> None:
        self.text = text
        self._tokens: Sequence[Token] = text.tokens()
        self._place = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._place]

    def is_done(self) -> bool:
        return self.next.kind == "end"

    def after(self, count: int = 1) -> Token:
        """Return the token so many places behind the next one."""
        return self._tokens[min(self._place + count, len(self._tokens) - 1)]

    def take(self) -> Token:
        token = self.next
        self._place += token.kind != "end"
        return token

    def at(self, *texts: str) -> bool:
        """Tell whether these words or symbols come next."""
        for count, text in enumerate(texts):
            token = self.after(count)
            if token.kind not in ("word", "symbol") or token.text != text:
                return False
        return True

    def accept(self, *texts: str) -> bool:
        """Take these words or symbols if they come next."""
        found = self.at(*texts)
        if found:
            self._place += len(texts)
        return found

    def expect(self, text: str, where: str) -> Token:
        if not self.at(text):
            self.fail(f"expected {text.upper()} {where}, not {self.shown()}")
        return self.take()

    def shown(self) -> str:
        return f"{self.next.raw}" if self.next.kind != "end" else "the end of the text"

    def fail(self, mistake: str) -> NoReturn:
        raise self.error(mistake)

    def error(self, mistake: str) -> ConfigError:
        return self.text.error(self.next.at, mistake)

    def name(self, what: str) -> str:
        token = self.next
        if token.kind == "quoted":
            return self.take().text
        if token.kind == "word" and token.text not in RESERVED:
            return self.take().raw
        hint = f': write it as "{token.raw}"' if token.kind == "word" else ""
        raise self.error(f"expected {what}, not {self.shown()}{hint}")

    def listed(self, one: Callable[[], _T]) -> tuple[_T, ...]:
        """Take one or more, with commas between them."""
        found = [one()]
        while self.accept(","):
            found.append(one())
        return tuple(found)


class ExpressionParser(Tokens):
    """Takes expressions."""

    def query(self) -> Query:
        raise NotImplementedError

    def expression(self) -> Expression:
        return self._chain(("or",), self._conjunction)

    def _conjunction(self) -> Expression:
        return self._chain(("and",), self._negation)

    def _chain(self, operators: Sequence[str], part: Callable[[], Expression]) -> Expression:
        """Take parts with operators between them, the first two together first."""
        left = part()
        while self.next.kind in ("word", "symbol") and self.next.text in operators:
            token = self.take()
            left = FunctionCall(token.at, token.text, (left, part()))
        return left

    def _negation(self) -> Expression:
        if self.at("not"):
            return FunctionCall(self.take().at, "not", (self._negation(),))
        return self._predicate()

    def _predicate(self) -> Expression:
        left = self._joined()
        while True:
            at = self.next.at
            if self.next.kind == "symbol" and self.next.text in _COMPARISONS:
                name = _COMPARISONS[self.take().text]
                left = FunctionCall(at, name, (left, self._joined()))
            elif self.accept("is"):
                left = self._is(at, left)
            elif self.at("not") and self.after().text in ("in", "between", "like", "ilike"):
                self.take()
                left = FunctionCall(at, "not", (self._member(at, left),))
            elif self.next.text in ("in", "between", "like", "ilike") and self.next.kind == "word":
                left = self._member(at, left)
            else:
                return left

    def _is(self, at: int, left: Expression) -> Expression:
        is_not = self.accept("not")
        if self.accept("null"):
            found = FunctionCall(at, "is null", (left,))
        elif self.accept("distinct"):
            self.expect("from", "behind IS DISTINCT")
            found = FunctionCall(at, "is not distinct", (left, self._joined()))
            is_not = not is_not
        elif self.at("true") or self.at("false"):
            found = FunctionCall(at, f"is {self.take().text}", (left,))
        else:
            self.fail(f"expected NULL, TRUE, FALSE or DISTINCT FROM behind IS, not {self.shown()}")
        return FunctionCall(at, "not", (found,)) if is_not else found

    def _member(self, at: int, left: Expression) -> Expression:
        word = self.take().text
        match word:
            case "in":
                self.expect("(", "behind IN")
                is_query = self.at("select") or self.at("with")
                items = (self._query(),) if is_query else self.listed(self.expression)
                self.expect(")", "behind the values of IN")
                return FunctionCall(at, "in", (left, *items))
            case "between":
                low = self._joined()
                self.expect("and", "between the bounds of BETWEEN")
                return FunctionCall(at, "between", (left, low, self._joined()))
            case _:
                return FunctionCall(at, word, (left, self._joined()))

    def _joined(self) -> Expression:
        return self._chain(("||",), self._sum)

    def _sum(self) -> Expression:
        return self._chain(("+", "-"), self._product)

    def _product(self) -> Expression:
        return self._chain(("*", "/", "%", "//"), self._signed)

    def _signed(self) -> Expression:
        if self.at("-"):
            at = self.take().at
            value = self._signed()
            if isinstance(value, Literal) and isinstance(value.value, int | float):
                return Literal(at, -value.value)
            return FunctionCall(at, "negate", (value,))
        if self.accept("+"):
            return self._signed()
        base = self._postfix()
        at = self.next.at
        if self.accept("**") or self.accept("^"):
            return FunctionCall(at, "power", (base, self._signed()))
        return base

    def _postfix(self) -> Expression:
        value = self._primary()
        while True:
            at = self.next.at
            if self.accept("::"):
                value = Cast(at, value, self.type_name())
            elif self.accept("["):
                value = FunctionCall(at, "[]", (value, self.expression()))
                self.expect("]", "behind a place in a list")
            else:
                return value

    def _primary(self) -> Expression:
        token = self.next
        match token.kind:
            case "number":
                self.take()
                is_whole = token.text.isdigit()
                return Literal(token.at, int(token.text) if is_whole else float(token.text))
            case "text":
                self.take()
                return Literal(token.at, token.text)
            case "symbol" if token.text == "(":
                self.take()
                is_query = self.at("select") or self.at("with")
                value = self._query() if is_query else self.expression()
                self.expect(")", "behind what stands in parentheses")
                return value
            case "symbol" if token.text == "*":
                return self._star(self.take().at, "")
            case "word":
                return self._worded(token)
            case "quoted":
                return self._named()
        raise self.error(f"expected an expression, not {self.shown()}")

    def _query(self) -> QueryValue:
        return QueryValue(self.next.at, self.query())

    def _worded(self, token: Token) -> Expression:
        match token.text:
            case "exists":
                self.take()
                self.expect("(", "behind EXISTS")
                exists = FunctionCall(token.at, "exists", (self._query(),))
                self.expect(")", "behind a query")
                return exists
            case "null" | "true" | "false":
                self.take()
                return Literal(token.at, {"null": None, "true": True, "false": False}[token.text])
            case "case":
                return self._case()
            case "cast" | "try_cast" if self.after().text == "(":
                self.take()
                self.take()
                value = self.expression()
                self.expect("as", "in a cast")
                found = Cast(token.at, value, self.type_name(), is_try=token.text == "try_cast")
                self.expect(")", "behind a cast")
                return found
            case "interval" if self.after().kind in ("text", "number"):
                return self.interval()
            case "date" | "timestamp" if self.after().kind == "text":
                return self._moment(self.take(), self.take())
            case "extract" if self.after().text == "(":
                self.take()
                self.take()
                part = self.take()
                self.expect("from", "behind the part in EXTRACT")
                value = self.expression()
                self.expect(")", "behind EXTRACT")
                return FunctionCall(token.at, "date_part", (Literal(part.at, part.text), value))
        if token.text in RESERVED and self.after().text != "(":
            self.fail(f'expected an expression, not {self.shown()}: as a name write "{token.raw}"')
        return self._call(self.take()) if self.after().text == "(" else self._named()

    def _named(self) -> Expression:
        at = self.next.at
        parts = [self.name("a column")]
        while self.accept("."):
            if self.accept("*"):
                return self._star(at, ".".join(parts))
            parts.append(self.name("a column or field"))
        return Name(at, tuple(parts))

    def _star(self, at: int, table: str) -> Star:
        without: tuple[str, ...] = ()
        if self.accept("exclude") or (self.at("except") and self.after().text == "("):
            self.accept("except")
            self.expect("(", "behind EXCLUDE")
            without = self.listed(lambda: self.name("a column"))
            self.expect(")", "behind the columns of EXCLUDE")
        changed: tuple[Item, ...] = ()
        if self.accept("replace", "("):
            changed = self.listed(self._changed)
            self.expect(")", "behind the columns of REPLACE")
        return Star(at, table, without, changed)

    def _changed(self) -> Item:
        value = self.expression()
        self.expect("as", "behind the value of REPLACE")
        return Item(value, self.name("a column"))

    def _case(self) -> Expression:
        at = self.take().at
        operand = None if self.at("when") else self.expression()
        cases: list[tuple[Expression, Expression]] = []
        while self.at("when"):
            place = self.take().at
            condition = self.expression()
            if operand is not None:
                condition = FunctionCall(place, "=", (operand, condition))
            self.expect("then", "behind the condition of a CASE")
            cases.append((condition, self.expression()))
        otherwise = self.expression() if self.accept("else") else None
        if not cases:
            self.fail(f"expected WHEN in a CASE, not {self.shown()}")
        self.expect("end", "behind a CASE")
        return Case(at, tuple(cases), otherwise)

    def _call(self, token: Token) -> Expression:
        self.take()
        is_distinct = self.accept("distinct")
        arguments: tuple[Expression, ...] = ()
        if not self.at(")"):
            # The IN of POSITION is none of a condition.
            first = self._joined() if token.text == "position" else self.expression()
            if token.text == "position" and self.accept("in"):
                arguments = (self.expression(), first)
            elif token.text == "substring" and self.accept("from"):
                arguments = (first, self.expression())
                arguments += (self.expression(),) if self.accept("for") else ()
            else:
                arguments = (first, *(self.listed(self.expression) if self.accept(",") else ()))
        if self.at("order"):
            self.fail(
                "an ORDER BY inside of an aggregate is no step of a stream: values come in the "
                "order of event time"
            )
        self.expect(")", f"behind the arguments of {token.text}")
        if token.text == "percentile_cont" and self.accept("within", "group", "("):
            arguments = (self.orders()[0].by, *arguments)
            self.expect(")", "behind the order of WITHIN GROUP")
        where = None
        if self.at("filter") and self.after().text == "(":
            self.take()
            self.take()
            self.expect("where", "in a FILTER")
            where = self.expression()
            self.expect(")", "behind a FILTER")
        over = self.over() if self.accept("over") else None
        if token.text in STRING_AGGREGATES and over is None and arguments:
            return self._joined_texts(token, arguments, where, is_distinct=is_distinct)
        return FunctionCall(token.at, token.text, arguments, is_distinct, where, over)

    def _joined_texts(
        self,
        token: Token,
        arguments: tuple[Expression, ...],
        where: Expression | None,
        *,
        is_distinct: bool,
    ) -> Expression:
        """Return the texts of a group in one, or null of none."""
        at, (value, *between) = token.at, arguments
        listed = FunctionCall(at, "list", (Cast(at, value, "text"),), is_distinct, where)
        joined = FunctionCall(at, "array_to_string", (listed, *(between or [Literal(at, ",")])))
        is_any = FunctionCall(
            at, ">", (FunctionCall(at, "count", (value,), False, where), Literal(at, 0))
        )
        return Case(at, ((is_any, joined),), None)

    def over(self) -> Over:
        """Take the rows of OVER in their parentheses, or the name of a window."""
        if not self.at("("):
            return Over((), (), RowFrame("range", None, None), self.name("( or a window").lower())
        self.take()
        partition: tuple[Expression, ...] = ()
        if self.accept("partition"):
            self.expect("by", "behind PARTITION")
            partition = self.listed(self.expression)
        order = self.orders()
        # What SQL says of none: up to the row and its peers; without an order all are peers.
        frame = RowFrame("range", None, 0 if order else None)
        if self.at("rows") or self.at("range"):
            unit = self.take().text
            is_pair = self.accept("between")
            frame = RowFrame(unit, self._frame_bound("preceding"), 0)
            if is_pair:
                self.expect("and", "between the bounds of a frame")
                frame = replace(frame, end=self._frame_bound("following"))
        self.expect(")", "behind the rows of OVER")
        return Over(partition, order, frame)

    def _frame_bound(self, far: str) -> int | TimeSpan | None:
        if self.accept("unbounded", far):
            return None
        if self.accept("current", "row"):
            return 0
        amount = self.interval() if self.at("interval") else self._number()
        sign = 1 if self.accept("following") else -1
        if sign < 0:
            self.expect("preceding", "or FOLLOWING behind the bound of a frame")
        if isinstance(amount, TimeSpan):
            return TimeSpan(amount.at, sign * amount.microseconds)
        return sign * amount

    def orders(self) -> tuple[Order, ...]:
        """Take what rows are ordered by, if anything is said."""
        if not self.accept("order"):
            return ()
        self.expect("by", "behind ORDER")
        return self.listed(self._order)

    def _order(self) -> Order:
        by = self.expression()
        is_descending = self.accept("desc") or (self.accept("asc") and False)
        nulls_first = False
        if self.accept("nulls"):
            nulls_first = self.accept("first")
            if not nulls_first and not self.accept("last"):
                self.fail(f"expected FIRST or LAST behind NULLS, not {self.shown()}")
        return Order(by, is_descending, nulls_first)

    def type_name(self) -> str:
        """Take the name of a type, such as ``decimal(10, 2)`` or ``int[]``."""
        name = self.name("a type").lower()
        for word in ("precision", "varying"):
            if self.accept(word):
                name += f" {word}"
        if self.accept("("):
            name += f"({', '.join(map(str, self.listed(self._number)))})"
            self.expect(")", "behind the size of a type")
        if self.accept("with", "time", "zone") or self.accept("without", "time", "zone"):
            pass
        while self.accept("["):
            self.expect("]", "in the type of a list")
            name += "[]"
        return name

    def _number(self) -> int:
        if self.next.kind != "number" or not self.next.text.isdigit():
            self.fail(f"expected a whole number, not {self.shown()}")
        return int(self.take().text)

    def interval(self) -> TimeSpan:
        """Take an interval: ``interval '10' seconds``, ``interval '10 seconds'`` or ``'10s'``."""
        at = self.next.at
        self.accept("interval")
        number = self.take()
        if number.kind not in ("text", "number"):
            raise self.text.error(
                number.at, f"expected an interval such as INTERVAL '10' SECONDS, not {number.raw}"
            )
        words = number.text.split()
        if len(words) == 1 and self.next.kind == "word" and _unit(self.next.text):
            words.append(self.take().text)
        if len(words) == 1:
            digits = words[0].rstrip("abcdefghijklmnopqrstuvwxyz")
            words = [digits, words[0][len(digits) :]]
        total = 0.0
        for amount, unit in zip(words[::2], words[1::2], strict=False):
            try:
                total += float(amount) * _UNITS[_unit(unit.lower())]
            except (ValueError, KeyError):
                words = []
        if not words or len(words) % 2:
            raise self.text.error(
                at,
                "this interval is not understood: write a number and a unit from microseconds to "
                "weeks, such as INTERVAL '10' SECONDS (months and years differ in length)",
            )
        return TimeSpan(at, round(total))

    def _moment(self, word: Token, text: Token) -> Literal:
        return as_time(Literal(text.at, text.text), self.text, is_date=word.text == "date")


def as_time(literal: Literal, text: SqlText, *, is_date: bool) -> Literal:
    """Return a text or date as the date or time that it says; a time without a zone is of UTC.

    Raises:
        ConfigError: it says none.
    """
    said = literal.value
    try:
        if is_date:
            of = said if isinstance(said, date) else date.fromisoformat(said)
            return Literal(literal.at, of)
        of = datetime.fromisoformat(said if isinstance(said, str) else said.isoformat())
    except ValueError:
        what = "date, such as '2026-01-31'" if is_date else "time, such as '2026-01-31 09:30:00'"
        raise text.error(literal.at, f"{said!r} is no {what}") from None
    return Literal(literal.at, of if of.tzinfo else of.replace(tzinfo=UTC))


def _unit(word: str) -> str:
    """Return the unit that a word names; empty if it is none."""
    return next((each for each in (word, word.removesuffix("s")) if each in _UNITS), "")


def as_duration(interval: TimeSpan) -> timedelta:
    return timedelta(microseconds=interval.microseconds)


def plain_value(value: Expression, text: SqlText) -> Any:
    """Return the value of a literal; of an interval its text as durations are given.

    Raises:
        ConfigError: it is none.
    """
    if isinstance(value, Literal):
        return value.value
    if isinstance(value, TimeSpan):
        return f"{value.ms}ms"
    raise text.error(value.at, "expected a text, number, truth value or interval")
