"""The parser of queries and statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from gearpy.sql.parse.expressions import (
    RESERVED,
    ExpressionParser,
    plain_value,
)
from gearpy.sql.parse.syntax import (
    Body,
    CreateConnector,
    CreateView,
    Describe,
    Explain,
    Expression,
    FunctionCall,
    Insert,
    Item,
    JoinTable,
    Literal,
    Over,
    Query,
    Select,
    Star,
    Statement,
    SubQuery,
    Table,
    TableName,
    TimeSpan,
    Union,
    Unnest,
    Values,
    WindowTable,
    rewritten,
)
from gearpy.sql.parse.tokens import SqlText, did_you_mean

#: The time of windows that are cut by the clock on the wall.
PROCTIME: Final = "proctime()"
#: Functions of other databases that read a file.
_READERS: Final = frozenset(
    f"read_{kind}" for kind in ("csv", "csv_auto", "parquet", "json", "json_auto", "ndjson")
)
_ENDS: Final = (";", ")", "union", "except", "intersect", "where", "order", "limit")
_QUERIES: Final = ("select", "with", "values", "(", "pivot", "unpivot")
#: How many intervals windows of a kind take at least, and at most.
_WINDOWS: Final = {"tumble": (1, 1), "hop": (2, 2), "session": (1, 1)}


def parse_query(text: SqlText) -> Query:
    """Return the tree of a text that is one query.

    Raises:
        ConfigError: it is none, and where.
    """
    parser = Parser(text)
    query = parser.query()
    parser.accept(";")
    if not parser.is_done():
        raise parser.unexpected()
    return query


def parse_statements(text: SqlText) -> list[Statement]:
    """Return the trees of a text of statements with semicolons between them.

    Raises:
        ConfigError: it is none, and where.
    """
    parser = Parser(text)
    found: list[Statement] = []
    while not parser.is_done():
        if parser.accept(";"):
            continue
        found.append(parser.statement())
        if not parser.is_done() and not parser.at(";"):
            raise parser.unexpected()
    return found


class Parser(ExpressionParser):
    """Takes queries and statements."""

    def statement(self) -> Statement:
        at = self.next.at
        if self.accept("create"):
            return self._create(at)
        if self.accept("insert"):
            self.expect("into", "behind INSERT")
            return Insert(at, self.name("the name of a sink"), self.query())
        if self.accept("explain"):
            return Explain(at, self.query())
        if self.accept("show", "tables"):
            return Describe(at, None)
        if self.accept("describe") or self.accept("desc"):
            if any(map(self.at, _QUERIES)):
                return Describe(at, self.query())
            every = (Item(Star(at), ""),)
            select = Select(at, every, self._table(), None, (), None, None, False)
            return Describe(at, Query(at, (), select, (), None, 0, ""))
        if any(map(self.at, _QUERIES)):
            return self.query()
        words = ("select", "with", "create", "insert", "explain", "describe", "show tables")
        raise self.error(
            f"a statement begins with SELECT, WITH, CREATE, INSERT, EXPLAIN or DESCRIBE, not "
            f"{self.shown()}" + did_you_mean(self.next.text, words)
        )

    def query(self) -> Query:
        at = self.next.at
        views: list[tuple[str, Query]] = []
        if self.accept("with"):
            if self.at("recursive"):
                self.fail("a recursive query has no end on a stream")
            while not views or self.accept(","):
                name = self.name("a name for the query")
                self.expect("as", "behind the name of a query")
                views.append((name, self.inside(self.query, "a query")))
        body = self._united()
        order = self.orders()
        limit = self._number() if self.accept("limit") else None
        offset = self._number() if self.accept("offset") else 0
        emit = ""
        if self.accept("emit"):
            emit = "per batch" if self.accept("per", "batch") else self.take().text
            if emit not in ("changes", "final", "per batch"):
                raise self.text.error(
                    at, f"EMIT takes CHANGES, PER BATCH or FINAL, not {emit or 'nothing'}"
                )
        return Query(at, tuple(views), body, order, limit, offset, emit)

    def _united(self) -> Body:
        body = self._intersected()
        while self.at("union") or self.at("except"):
            token, is_all = self.take(), self.accept("all")
            body = Union(token.at, body, self._intersected(), token.text, is_all)
        return body

    def _intersected(self) -> Body:
        body = self._body()
        while self.at("intersect"):
            token, is_all = self.take(), self.accept("all")
            body = Union(token.at, body, self._body(), token.text, is_all)
        return body

    def unexpected(self) -> Exception:
        """Return the error of a text that goes on where it should end."""
        clauses = ("where", "group", "having", "qualify", "order", "limit", "union", "join", "emit")
        for token in (self.next, self.after(-1)):  # A clause that is none was taken for a name.
            if token.kind == "word" and (near := did_you_mean(token.text, clauses)):
                return self.text.error(token.at, f"{token.raw} is not expected here{near}")
        return self.error(f"{self.shown()} is not expected here")

    # -- selects -----------------------------------------------------------------------------------

    def _body(self) -> Body:
        if self.at("("):
            return self.inside(self.query, "a query")
        at = self.next.at
        if self.accept("values"):
            item = Item(Star(at), "")
            return Select(at, (item,), self._values(at), None, (), None, None, False)
        if self.at("pivot") or self.at("unpivot"):
            self.fail(
                "PIVOT makes columns of values, which are known when all is read: write each of "
                "them, as in sum(price) FILTER (WHERE shop = 'north') AS north"
            )
        self.expect("select", "at the beginning of a query")
        is_distinct = self.accept("distinct") or (self.accept("all") and False)
        distinct_on: tuple[Expression, ...] = ()
        if is_distinct and self.accept("on"):
            is_distinct = False
            distinct_on = self.inside(self._listed, "what is DISTINCT ON")
        items = self.listed(self._item)
        table: Table = Values(at, ((Literal(at, 0),),))  # Without a table there is one row.
        if self.accept("from"):
            table = self._tables()
        elif not self.is_done() and not any(map(self.at, _ENDS)):
            self.fail(
                f"expected FROM behind what is selected, not {self.shown()}: a query reads a "
                "stream or a file, such as FROM 'sales/*.parquet'"
            )
        where = self.expression() if self.accept("where") else None
        group: tuple[Expression, ...] = ()
        if self.accept("group"):
            self.expect("by", "behind GROUP")
            place = self.next.at
            is_all = self.accept("all")
            if self.at("grouping", "sets") or (
                self.next.text in ("rollup", "cube") and self.after().text == "("
            ):
                self.fail(
                    f"{self.shown().upper()} groups the same rows several times: write a query for "
                    "each GROUP BY, with UNION ALL between them"
                )
            group = (Star(place),) if is_all else self.listed(self.expression)
        having = self.expression() if self.accept("having") else None
        windows = dict(self.listed(self._window)) if self.accept("window") else {}
        qualify = self.expression() if self.accept("qualify") else None
        items = tuple(Item(self._with(windows, each.value), each.alias) for each in items)
        qualify = None if qualify is None else self._with(windows, qualify)
        return Select(at, items, table, where, group, having, qualify, is_distinct, distinct_on)

    def _window(self) -> tuple[str, Over]:
        name = self.name("a name for a window").lower()
        self.expect("as", "behind the name of a window")
        return name, self.over()

    def _with(self, windows: Mapping[str, Over], node: Expression) -> Expression:
        """Put the windows in the place of their names."""

        def changed(part: Expression) -> Expression | None:
            if not isinstance(part, FunctionCall) or part.over is None or not part.over.window:
                return None
            if part.over.window not in windows:
                near = did_you_mean(part.over.window, windows) or ": WINDOW w AS (...) has one"
                raise self.text.error(part.at, f"there is no window {part.over.window!r}{near}")
            return replace(part, over=windows[part.over.window])

        return rewritten(node, changed)

    def _values(self, at: int) -> Values:
        rows = self.listed(lambda: self.inside(self._listed, "a row of VALUES"))
        if len({*map(len, rows)}) > 1:
            raise self.text.error(at, "rows of VALUES have as many values as each other")
        return Values(at, rows)

    def _listed(self) -> tuple[Expression, ...]:
        return self.listed(self.expression)

    def _item(self) -> Item:
        return Item(self.expression(), self._alias("a name for a column"))

    def _alias(self, what: str) -> str:
        if self.accept("as"):
            return self.name(what)
        token = self.next
        is_window = token.text == "window" and self.after(2).text == "as"
        if token.kind == "quoted" or (
            token.kind == "word" and token.text not in RESERVED and not is_window
        ):
            return self.name(what)
        return ""

    # -- tables ------------------------------------------------------------------------------------

    def _tables(self) -> Table:
        left = self._table()
        while True:
            at = self.next.at
            if self.accept(",") or self.accept("cross", "join"):
                left = JoinTable(at, left, self._table(), "cross", None, (), False)
                continue
            if any(map(self.at, ("natural", "semi", "anti"))):
                self.fail(
                    f"write JOIN ... ON with what is equal, or IN and NOT IN, instead of "
                    f"{self.shown()} JOIN"
                )
            is_asof = self.accept("asof")
            kind = "inner"
            for word in ("inner", "left", "right", "full"):
                if self.accept(word):
                    kind = word
                    self.accept("outer")
            if not self.accept("join"):
                if is_asof or kind != "inner":
                    self.fail(f"expected JOIN, not {self.shown()}")
                return left
            right = self._table()
            if isinstance(right, Unnest) and kind in ("inner", "left"):
                if self.accept("on"):
                    self.expect("true", "behind UNNEST")
                left = JoinTable(at, left, right, kind, None, (), False)
                continue
            on, using = None, cast("tuple[str, ...]", ())
            if self.accept("using"):
                using = self.names("the columns of USING")
            else:
                self.expect("on", "behind the tables of a join")
                on = self.expression()
            left = JoinTable(at, left, right, kind, on, using, is_asof)

    def _table(self) -> Table:
        token = self.next
        if self.at("("):
            return self._sub_query()
        if self.at("table", "("):
            self.take()
            found = self.inside(self._window_table, "what stands in TABLE(...)")
            return replace(found, alias=self._alias("a name for the table") or found.alias)
        if self.accept("unnest"):
            value = self.inside(self.expression, "a list")
            alias = self._alias("a name for the items")
            names = self.names("the name of the items") if alias and self.at("(") else (alias,)
            return Unnest(token.at, value, alias, names[0] or "unnest")
        if token.text in _WINDOWS and self.after().text == "(":
            return self._window_table()
        if token.text in _READERS and self.after().text == "(" and self.after(2).kind == "text":
            self.take()
            file = self.inside(self.take, "the name of a file, whose end says what it holds")
            return TableName(token.at, file.text, self._alias("a name for the file"), is_file=True)
        if token.kind == "text":
            self.take()
            return TableName(token.at, token.text, self._alias("a name for the file"), is_file=True)
        return self._named_table()

    def _sub_query(self) -> SubQuery:
        at, query = self.next.at, self.inside(self.query, "a query")
        alias = self._alias("a name for the query")
        names = self.names("the names of columns") if alias and self.at("(") else ()
        return SubQuery(at, query, alias, names)

    def _named_table(self) -> TableName:
        at = self.next.at
        name = self.name("the name of a table")
        as_of = None
        if self.accept("for", "system_time"):
            self.expect("as", "behind SYSTEM_TIME")
            self.expect("of", "behind SYSTEM_TIME AS")
            as_of = self.expression()
        return TableName(at, name, self._alias("a name for the table"), as_of=as_of)

    def _window_table(self) -> WindowTable:
        token = self.take()
        kind = token.text
        self.expect("(", f"behind {kind}")
        self.accept("table")
        table = self._inner_table()
        self.expect(",", "behind the table")
        time_at = self.next.at
        if self.accept("descriptor", "("):
            time = self._time()
            self.expect(")", "behind the column of the time")
        elif self.next.kind == "text":
            time = self.take().text
        else:
            time = self._time()
        sizes: list[TimeSpan] = []
        while self.accept(","):
            sizes.append(self.length())
        self.expect(")", f"behind the arguments of {kind}")
        least, most = _WINDOWS[kind]
        if not least <= len(sizes) <= most:
            wanted = "a step and a size" if kind == "hop" else "one interval"
            raise self.text.error(
                token.at,
                f"{kind} takes a table, the column of its times and {wanted}, such as "
                f"{kind}(TABLE bids, DESCRIPTOR(at), INTERVAL '10' SECONDS"
                + (", INTERVAL '1' MINUTE)" if kind == "hop" else ")"),
            )
        alias = self._alias("a name for the table")
        return WindowTable(token.at, kind, table, time, time_at, tuple(sizes), alias)

    def _time(self) -> str:
        name = self.name("the column of the time")
        return PROCTIME if self.accept("(", ")") and name.lower() == "proctime" else name

    def _inner_table(self) -> TableName | SubQuery:
        if self.at("("):
            return self._sub_query()
        if self.next.kind == "text":
            file = self.take()
            return TableName(file.at, file.text, "", is_file=True)
        return self._named_table()

    # -- connectors and views ----------------------------------------------------------------------

    def _create(self, at: int) -> Statement:
        if self.accept("view"):
            name = self.name("a name for the view")
            self.expect("as", "behind the name of a view")
            return CreateView(at, name, self.query())
        if not self.at("source") and not self.at("sink"):
            self.fail(
                f"expected SOURCE, SINK or VIEW behind CREATE, not {self.shown()}"
                + did_you_mean(self.next.text, ("source", "sink", "view"))
            )
        what = self.take().text
        name = self.name(f"a name for the {what}")
        columns: tuple[tuple[str, str, int], ...] = ()
        if self.at("("):
            columns = self.inside(lambda: self.listed(self._column), "the columns")
        self.expect("with", f"behind the name of a {what}, with its connector")
        options = self.inside(lambda: self.listed(self._option), "the options")
        return CreateConnector(at, what, name, dict(options), columns)

    def _column(self) -> tuple[str, str, int]:
        name, at = self.name("a column"), self.next.at
        return name, self.type_name(), at

    def _option(self) -> tuple[str, Any]:
        name = self.take().text
        self.expect("=", "behind the name of an option")
        return name, plain_value(self.expression(), self.text)
