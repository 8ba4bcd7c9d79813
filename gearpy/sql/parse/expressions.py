"""The parser of expressions: each method takes what binds more tightly than the one before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from gearpy.sql.parse.macros import IN_MACROS, MACROS
from gearpy.sql.parse.syntax import (
    Case,
    Cast,
    Expression,
    FunctionCall,
    Item,
    Literal,
    MacroCall,
    Name,
    Order,
    Over,
    QueryValue,
    RowFrame,
    Star,
    TimeSpan,
    rewritten,
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
_TRIMS: Final = {"leading": "ltrim", "trailing": "rtrim", "both": "trim"}
_OF_JSON: Final = {"->": "json_extract", "->>": "json_extract_string"}
_LISTS: Final = ("list", "array_agg")
_OF_DIFFERENT: Final = {"sum": "list_sum", "avg": "list_avg", "mean": "list_avg"}
#: Aggregates of one value, and whether it is the first one.
_EDGES: Final = {"first": True, "first_value": True, "any_value": True} | dict.fromkeys(
    ("last", "last_value"), False
)
RESERVED: Final = frozenset(_RESERVED_WORDS.split())
_COMPARISONS: Final = {
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    ">": ">",
    "<=": "<=",
    ">=": ">=",
}
_UNIT_NAMES: Final = {
    "microsecond": 1,
    "millisecond ms": 1000,
    "second s": 1_000_000,
    "minute m": 60_000_000,
    "hour h": 3_600_000_000,
    "day d": 86_400_000_000,
    "week w": 604_800_000_000,
}
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
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

    def inside(self, one: Callable[[], _T], of: str) -> _T:
        """Take something in parentheses."""
        self.expect("(", f"before {of}")
        found = one()
        self.expect(")", f"behind {of}")
        return found

    def names(self, of: str) -> tuple[str, ...]:
        """Take names of columns in parentheses."""
        return self.inside(lambda: self.listed(lambda: self.name("a column")), of)

    def listed(self, one: Callable[[], _T]) -> tuple[_T, ...]:
        """Take one or more, with commas between them."""
        found = [one()]
        while self.accept(",") and not self.at("from"):
            found.append(one())
        return tuple(found)


class ExpressionParser(Tokens):
    """Takes expressions."""

    def query(self) -> Query:
        raise NotImplementedError

    def expression(self) -> Expression:
        return self._chain((("or",), ("and",)), self._negation)

    def _chain(
        self, levels: Sequence[Sequence[str]], inner: Callable[[], Expression]
    ) -> Expression:
        """Take what has operators between it: the last ones bind most, of alike ones the first."""
        if not levels:
            return inner()
        left = self._chain(levels[1:], inner)
        while self.next.kind in ("word", "symbol") and self.next.text in levels[0]:
            token = self.take()
            left = FunctionCall(token.at, token.text, (left, self._chain(levels[1:], inner)))
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
                left = self._comparison(at, name, left)
            elif self.accept("isnull"):
                left = FunctionCall(at, "is null", (left,))
            elif self.accept("notnull"):
                left = FunctionCall(at, "not", (FunctionCall(at, "is null", (left,)),))
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
        if self.accept("null") or self.accept("unknown"):
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
                return self._in(at, left, self.inside(self._values_or_query, "the values of IN"))
            case "between":
                low = self._joined()
                self.expect("and", "between the bounds of BETWEEN")
                return FunctionCall(at, "between", (left, low, self._joined()))
            case _:
                pattern = self._joined()
                if self.accept("escape"):
                    pattern = self._escaped(pattern, self.take())
                return FunctionCall(at, word, (left, pattern))

    def _escaped(self, pattern: Expression, by: Token) -> Literal:
        """Return a pattern whose special characters are escaped by a backslash, as here."""
        if not isinstance(pattern, Literal) or by.kind != "text" or len(by.text) != 1:
            raise self.text.error(by.at, "ESCAPE takes one character, behind a plain pattern")
        plain = str(pattern.value)
        plain = plain if by.text == "\\" else plain.replace("\\", "\\\\")
        found = re.sub(f"{re.escape(by.text)}(.)", lambda each: f"\\{each[1]}", plain)
        return Literal(pattern.at, found)

    def _comparison(self, at: int, name: str, left: Expression) -> Expression:
        if self.next.text in ("any", "some", "all") and self.after().text == "(":
            return self._any_or_all(at, name, left)
        right = self._joined()
        if not _is_row(left) and not _is_row(right):
            return FunctionCall(at, name, (left, right))
        if name not in ("=", "<>"):
            raise self.text.error(at, "rows in parentheses are equal or not: compare their values")
        found = self._equal_rows(at, left, right)
        return found if name == "=" else FunctionCall(at, "not", (found,))

    def _any_or_all(self, at: int, name: str, left: Expression) -> Expression:
        is_all = self.take().text == "all"
        found = self.inside(lambda: self._any_of(at, left), "the values of ANY or ALL")
        if (name, is_all) not in (("=", False), ("<>", True)):
            raise self.text.error(
                at, "this is = ANY or <> ALL; else compare with (SELECT min(...)) or max"
            )
        return FunctionCall(at, "not", (found,)) if is_all else found

    def _any_of(self, at: int, left: Expression) -> Expression:
        if self.accept("array", "[") or self.accept("["):
            items = self.listed(self.expression)
            self.expect("]", "behind the values of a list")
            return self._in(at, left, items)
        items = self._values_or_query()
        if len(items) > 1 or isinstance(items[0], QueryValue):
            return self._in(at, left, items)
        return FunctionCall(at, "list_contains", (*items, left))

    def _in(self, at: int, left: Expression, items: tuple[Expression, ...]) -> Expression:
        if not _is_row(left) or isinstance(items[0], QueryValue):
            return FunctionCall(at, "in", (left, *items))
        rows = (self._equal_rows(at, left, each) for each in items)
        return reduce(lambda a, b: FunctionCall(at, "or", (a, b)), rows)

    def _equal_rows(self, at: int, left: Expression, right: Expression) -> Expression:
        sides = [each.arguments if isinstance(each, FunctionCall) else () for each in (left, right)]
        if not (_is_row(left) and _is_row(right) and len(sides[0]) == len(sides[1])):
            raise self.text.error(at, "both sides are rows of as many values in parentheses")
        pairs = (FunctionCall(at, "=", pair) for pair in zip(*sides, strict=True))
        return reduce(lambda a, b: FunctionCall(at, "and", (a, b)), pairs)

    def _joined(self) -> Expression:
        return self._chain((("||",), ("+", "-"), ("*", "/", "%", "//")), self._signed)

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
            elif self.next.text in _OF_JSON and self.next.kind == "symbol":
                name = _OF_JSON[self.take().text]
                value = FunctionCall(at, name, (value, self._primary()))
            elif self.accept("at", "time", "zone"):
                value = FunctionCall(at, "timezone", (self._primary(), value))
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
                values = self.inside(self._values_or_query, "what stands in parentheses")
                return values[0] if len(values) == 1 else FunctionCall(token.at, "row", values)
            case "symbol" if token.text == "*":
                return self._star(self.take().at, "")
            case "word":
                return self._worded(token)
            case "quoted":
                return self._named()
        raise self.error(f"expected an expression, not {self.shown()}")

    def _values_or_query(self) -> tuple[Expression, ...]:
        is_query = self.at("select") or self.at("with")
        return (self._query(),) if is_query else self.listed(self.expression)

    def _query(self) -> QueryValue:
        return QueryValue(self.next.at, self.query())

    def _worded(self, token: Token) -> Expression:
        match token.text:
            case "exists":
                self.take()
                return FunctionCall(token.at, "exists", (self.inside(self._query, "a query"),))
            case "null" | "true" | "false":
                self.take()
                return Literal(token.at, {"null": None, "true": True, "false": False}[token.text])
            case "case":
                return self._case()
            case "cast" | "try_cast" if self.after().text == "(":
                self.take()
                return self.inside(lambda: self._cast(token), "what is cast")
            case "interval" if self.after().kind in ("text", "number"):
                return self.interval()
            case "date" | "timestamp" if self.after().kind == "text":
                is_date, said = self.take().text == "date", self.take()
                return as_time(Literal(said.at, said.text), self.text, is_date=is_date)
            case "extract" if self.after().text == "(":
                self.take()
                parts = self.inside(self._extracted, "the part and the time of EXTRACT")
                return FunctionCall(token.at, "date_part", parts)
        if token.text in RESERVED and self.after().text != "(":
            self.fail(f'expected an expression, not {self.shown()}: as a name write "{token.raw}"')
        return self._call(self.take()) if self.after().text == "(" else self._named()

    def _cast(self, token: Token) -> Cast:
        value = self.expression()
        self.expect("as", "in a cast")
        return Cast(token.at, value, self.type_name(), is_try=token.text == "try_cast")

    def _extracted(self) -> tuple[Expression, ...]:
        part = self.take()
        self.expect("from", "behind the part in EXTRACT")
        return Literal(part.at, part.text), self.expression()

    def _named(self) -> Expression:
        at = self.next.at
        if self.at("current_date") or self.at("current_timestamp"):
            return FunctionCall(at, self.take().text, ())
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
            without = self.names("the columns of EXCLUDE")
        changed: tuple[Item, ...] = ()
        if self.at("replace", "("):
            self.take()
            changed = self.inside(lambda: self.listed(self._changed), "the columns of REPLACE")
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
        name, arguments = (token.text, ()) if self.at(")") else self._arguments(token.text)
        order = self.orders()
        name += self._nulls()
        self.expect(")", f"behind the arguments of {token.text}")
        if self.accept("within", "group"):
            order = self.inside(self.orders, "the order of WITHIN GROUP")
            if name == "percentile_cont" and order:
                arguments, order = (order[0].by, *arguments), ()
        name += self._nulls()
        where = None
        if self.at("filter", "("):
            self.take()
            where = self.inside(self._filter, "a FILTER")
        over = self.over() if self.accept("over") else None
        call = FunctionCall(token.at, name, arguments, is_distinct, where, over)
        found = self._in_order(call, order) if name in MACROS else self._ordered(call, order)
        return found if found is call else MacroCall(token.at, token.text, found)

    def _filter(self) -> Expression:
        self.expect("where", "in a FILTER")
        return self.expression()

    def _nulls(self) -> str:
        self.accept("respect", "nulls")
        return " ignore nulls" if self.accept("ignore", "nulls") else ""

    def _arguments(self, name: str) -> tuple[str, tuple[Expression, ...]]:
        """Take arguments, also with words between them; return what is called with them."""
        if name == "trim":
            if self.next.text in _TRIMS and self.after().text not in (")", ",", "."):
                name = _TRIMS[self.take().text]
            if self.accept("from"):
                return name, (self.expression(),)
        # The IN of POSITION is none of a condition.
        first = self._joined() if name == "position" else self.expression()
        if name == "position" and self.accept("in"):
            return name, (self.expression(), first)
        if name in _TRIMS.values() and self.accept("from"):
            return name, (self.expression(), first)
        if name == "substring" and self.accept("from"):
            start = self.expression()
            return name, (first, start, *((self.expression(),) if self.accept("for") else ()))
        return name, (first, *(self.listed(self.expression) if self.accept(",") else ()))

    def _in_order(self, call: FunctionCall, order: tuple[Order, ...]) -> Expression:
        """Return the expression of a macro, whose aggregates are called as it is."""
        macro = MACROS[call.name]
        count, known = len(call.arguments), len(macro.parameters)
        if not known - len(macro.defaults) <= count <= known:
            takes = ", ".join(macro.parameters)
            raise self.text.error(call.at, f"{call.name} takes {takes or 'nothing'}, not {count}")
        defaults = (self._parsed(each, call.at) for each in macro.defaults[count - known :])
        given = dict(zip(macro.parameters, (*call.arguments, *defaults), strict=False))
        are_alike = True

        def changed(part: Expression) -> Expression | None:
            nonlocal are_alike
            if isinstance(part, Name):
                return given[str(part)]
            if isinstance(part, FunctionCall) and part.name in IN_MACROS:
                are_alike = False
                arguments = tuple(rewritten(each, changed) for each in part.arguments)
                part = replace(call, name=part.name, arguments=arguments)
                return self._ordered(part, order) if part.name == "list" else part
            return None

        found = rewritten(self._parsed(macro.body, call.at), changed)
        if are_alike and (call.is_distinct or call.where is not None or call.over is not None):
            raise self.text.error(
                call.at, f"{call.name} is no aggregate: DISTINCT, FILTER and OVER are for those"
            )
        return found

    def _parsed(self, body: str, at: int) -> Expression:
        parser = type(self)(SqlText(body))
        parser._tokens = [replace(each, at=at) for each in parser._tokens]
        return parser.expression()

    def _ordered(self, call: FunctionCall, order: tuple[Order, ...]) -> Expression:
        """Return an aggregate whose values come in an order, or once, as functions of a list."""
        found: Expression = call
        if call.name in _LISTS and call.arguments:
            if call.is_distinct:
                found = FunctionCall(call.at, "list_distinct", (replace(call, is_distinct=False),))
            if order and [each.by for each in order] == [call.arguments[0]]:
                downwards = Literal(call.at, "desc" if order[0].is_descending else "asc")
                return FunctionCall(call.at, "list_sort", (found, downwards))
        if call.is_distinct and call.name in _OF_DIFFERENT:
            listed = self._ordered(replace(call, name="list"), ())
            return FunctionCall(call.at, _OF_DIFFERENT[call.name], (listed,))
        if len(order) == 1 and call.name in _EDGES:
            # The first one in an order is that of the least of it.
            is_least = _EDGES[call.name] != order[0].is_descending
            name = "arg_min" if is_least else "arg_max"
            return replace(call, name=name, arguments=(*call.arguments, order[0].by))
        if order:
            raise self.text.error(
                order[0].by.at,
                "values come in the order of event time: lists and texts are sorted by their own "
                "value, as in string_agg(x, ',' ORDER BY x), and first and last take one ORDER BY",
            )
        return found

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
        amount = self.length() if self.at("interval") else self._number()
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
        if self.at("("):
            sizes = self.inside(lambda: self.listed(self._number), "the size of a type")
            name += f"({', '.join(map(str, sizes))})"
        any(self.accept(word, "time", "zone") for word in ("with", "without"))
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
        total, months = 0.0, 0
        for amount, word in zip(words[::2], words[1::2], strict=False):
            unit = _unit(word.lower())
            try:
                if unit in _MONTHS:
                    months += int(amount) * _MONTHS[unit]
                else:
                    total += float(amount) * _UNITS[unit]
            except (ValueError, KeyError):
                words = []
        if not words or len(words) % 2:
            raise self.text.error(
                at,
                "this interval is not understood: write a number and a unit from microseconds to "
                "years, such as INTERVAL '10' SECONDS",
            )
        return TimeSpan(at, round(total), months)

    def length(self) -> TimeSpan:
        """Take an interval whose length is known."""
        found = self.interval()
        if found.months:
            raise self.text.error(
                found.at,
                "months and years differ in length: they are added to a time or date, and else an "
                "interval is of weeks or less",
            )
        return found


def as_time(literal: Literal, text: SqlText, *, is_date: bool, is_local: bool = False) -> Literal:
    """Return a text or date as the date or time that it says; a time without a zone is of UTC.

    Args:
        is_local: it stays without a zone.

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
    return Literal(literal.at, of if of.tzinfo or is_local else of.replace(tzinfo=UTC))


def _unit(word: str) -> str:
    """Return the unit that a word names; empty if it is none."""
    known = {**_UNITS, **_MONTHS}
    return next((each for each in (word, word.removesuffix("s")) if each in known), "")


def _is_row(node: Expression) -> bool:
    return isinstance(node, FunctionCall) and node.name == "row"


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
