"""Queries made at random, by a seed: each as gearpy takes it, and as DuckDB does."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple


class Made(NamedTuple):
    """One query in both dialects, and whether its rows come in an order."""

    gearpy: str
    duckdb: str
    is_ordered: bool = False


class Maker:
    """Makes queries over ``t(id, k, v, f, b, l, j, ts)`` and ``u(k, w, name)``."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def query(self) -> Made:
        kinds: list[Callable[[], str | Made]] = [
            *[self._projection] * 3,
            *[self._grouped] * 3,
            *(self._total, self._windowed, self._hopped, self._joined, self._joined),
            *(self._distinct, self._union, self._ordered, self._ranked, self._nested),
            *(self._over, self._over, self._in_query, self._compared),
            *(self._unnested, self._first),
        ]
        made = self._random.choice(kinds)()
        return Made(made, made) if isinstance(made, str) else made

    # -- expressions -------------------------------------------------------------------------------

    def _one(self, *made: str) -> str:
        return self._random.choice(made)

    def number(self, depth: int = 2) -> str:
        if depth == 0:
            return self._one("v", "id", "v", str(self._random.randrange(-5, 12)))
        a, b = self.number(depth - 1), self.number(depth - 1)
        return self._one(
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"({a} % nullif({b}, 0))",
            f"({a} // nullif({b}, 0))",
            f"abs({a})",
            f"-({a})",
            f"coalesce({a}, {b})",
            f"length({self.text(depth - 1)})",
            f"case when {self.condition(depth - 1)} then {a} else {b} end",
            f"case {a} when 1 then {b} when 2 then 7 end",
            f"greatest({a}, {b})",
            f"least({a}, {b})",
            f"cast({a} as bigint)",
            f"sign({a})",
            "extract(second from ts)",
            "minute(ts) * 60 + second(ts)",
            f"cast(epoch_ms(ts) % {self._random.randrange(3, 9)} as bigint)",
            "dayofweek(ts)",
            f"if({self.condition(depth - 1)}, {a}, {b})",
            f"round({a}, {self._one('-1', '0', '1')})",
            f"list_{self._one('sum', 'min', 'max')}(l)",
            f"list_position(l, {self._random.randrange(4)})",
            "l[1] + coalesce(list_reverse(l)[1], 0)",
            f"strpos({self.text(depth - 1)}, 'e')",
            f"date_diff('{self._one('minute', 'hour', 'day', 'week', 'month')}', ts, '2026-03-02')",
            "(cast(ts + interval '40' day as date) - date '2026-01-30')",
            "week(ts) + isodow(ts) + millisecond(ts)",
            f"try_cast({self.text(depth - 1)} as bigint)",
            "try_cast(j->>'$.a' as bigint)",
            f"nullif({a}, {b})",
        )

    def fraction(self, depth: int = 1) -> str:
        a = self.number(depth - 1) if depth else "v"
        return self._one(
            "f",
            f"({a} / nullif({self.number(0)}, 0))",
            f"(f * {a})",
            f"floor(f + {a})",
            "ceil(f)",
            "sqrt(abs(f))",
            f"cast({a} as double)",
            "coalesce(f, 0.25)",
            "power(f, 2)",
            f"round(f * {a}, {self._random.randrange(3)})",
            "sin(f) + cos(f) * atan(f)",
            "degrees(log10(f + 1))",
            "list_avg(l)",
            "cast(f * 3 as bigint) / 2",
        )

    def text(self, depth: int = 1) -> str:
        if depth <= 0:
            return self._one("k", "k", "'Tea'", "'a_b%c'")
        a = self.text(depth - 1)
        return self._one(
            f"lower({a})",
            f"upper({a})",
            f"({a} || {self.text(depth - 1)})",
            f"substring({a}, {self._random.randrange(1, 4)}, {self._random.randrange(0, 4)})",
            f"left({a}, 2)",
            f"right({a}, 2)",
            f"replace({a}, 'e', '--')",
            f"coalesce({a}, 'none')",
            f"trim({a} || '  ')",
            f"concat({a}, '-', v)",
            f"split_part({a}, 'e', {self._one('1', '2', '-1')})",
            f"regexp_extract({a}, '[a-z]+')",
            f"regexp_extract({a}, '([A-Z]?)([a-z])', 2)",
            f"ltrim({a}, 'tT')",
            f"rtrim('  ' || {a} || '  ')",
            "strftime(ts, '%H:%M:%S')",
            f"cast({self.number(0)} as varchar)",
            f"regexp_replace({a}, '([ae])', '<\\1\\0>', '{self._one('', 'g', 'gi')}')",
            f"concat_ws('+', {a}, v, k)",
            f"{self._one('lpad', 'rpad')}({a}, {self._random.randrange(6)}, 'xy')",
            f"reverse({a}) || repeat(k, 2)",
            f"trim({self._one('leading', 'trailing', 'both')} 't' from {a})",
            f"array_to_string({self._one('l', 'list_sort(l)', 'list_slice(l, 2, -1)')}, '+')",
            f"string_split({a}, 'e')[1]",
            "j->>'$.b.c'",
            "json_extract_string(j, '$.l[1]')",
            f"left(md5({a}), 4)",
            "monthname(ts + interval '2 months') || dayname(ts)",
            f"substring({a}, -2)",
        )

    def condition(self, depth: int = 2) -> str:
        if depth <= 0:
            return self._one("b", "v > 3", "k = 'tea'", "f < 2.5", "v is null", "id <> 7")
        a, b = self.number(depth - 1), self.number(depth - 1)
        return self._one(
            f"{a} {self._one('=', '<>', '<', '<=', '>', '>=', '!=')} {b}",
            f"({self.condition(depth - 1)} and {self.condition(depth - 1)})",
            f"({self.condition(depth - 1)} or {self.condition(depth - 1)})",
            f"not {self.condition(depth - 1)}",
            f"{a} is {self._one('', 'not ')}null",
            f"{a} {self._one('', 'not ')}in (1, 2, 3, 10)",
            f"{a} {self._one('', 'not ')}between -2 and 8",
            f"{self.text(depth - 1)} like '{self._one('t%', '%e%', '_ea', 'T__')}'",
            f"{self.text(depth - 1)} not like '{self._one('t%', '_e_')}'",
            f"{self.text(depth - 1)} ilike 'T%'",
            f"{a} is {self._one('', 'not ')}distinct from {b}",
            f"({self.condition(depth - 1)}) is {self._one('', 'not ')}{self._one('true', 'false')}",
            f"starts_with({self.text(depth - 1)}, 't')",
            f"contains({self.text(depth - 1)}, 'e')",
            f"ts >= timestamp '2026-01-01 00:00:{self._random.randrange(10, 60)}'",
            f"k {self._one('<', '>=', '=')} 'jam'",
            f"regexp_matches({self.text(depth - 1)}, '^t.a')",
            "date_trunc('minute', ts) = timestamp '2026-01-01 00:00:00'",
            "ts - interval '30 seconds' > '2026-01-01'",
            "ts between '2026-01-01 00:00:05' and '2026-01-01 00:00:40'",
            "(id % 5, id % 3) in ((1, 1), (3, 0), (2, 1))",
            f"(id % 3, id // 20) {self._one('=', '<>')} ({self._random.randrange(3)}, 1)",
            f"{a} = any([1, 2, 3])",
            f"{a} <> all([1, 4])",
            "list_contains(l, 2)",
            f"{self.text(depth - 1)} like '%!%%' escape '!'",
            f"{a} isnull",
            "ts at time zone 'Europe/Berlin' >= '2026-01-01 01:00:20'",
            "time_bucket(interval '20 seconds', ts) = timestamp '2026-01-01 00:00:00'",
        )

    def aggregate(self) -> str:
        where = f" filter (where {self.condition(1)})" if self._random.random() < 0.3 else ""
        return (
            self._one(
                "count(*)",
                "count(v)",
                f"sum({self.number(1)})",
                "avg(v)",
                "avg(f)",
                "min(v)",
                "max(v)",
                "min(k)",
                "max(ts)",
                "sum(f)",
                f"min({self.number(1)})",
                f"max({self.text(1)})",
                "count(distinct k)",
                f"count(distinct {self.number(1)})",
                "stddev(v)",
                "var_pop(f)",
                "median(v)",
                "quantile_cont(f, 0.25)",
                "bool_or(b)",
                "count(f)",
                "arg_max(id, v * 100 + id)",
                "arg_min(ts, id * 7 % 40)",
                "string_agg(k, '-' order by k)",
                "string_agg(distinct v, ',' order by v desc)",
                "sum(distinct v)",
                "avg(distinct v)",
                "first(id order by id)",
                "last(id order by id desc)",
            )
            + where
        )

    def value(self) -> str:
        return self._one(
            *(self.number(), self.number(), self.text(), self.condition(), self.fraction()),
            *("cast(ts as date) + 3", "v ** 2", "cast(f + 0.126 as decimal(9, 2))"),
        )

    # -- queries -----------------------------------------------------------------------------------

    def _where(self) -> str:
        return f" where {self.condition()}" if self._random.random() < 0.6 else ""

    def _projection(self) -> str:
        items = [f"{self.value()} as c{n}" for n in range(self._random.randrange(1, 5))]
        star = self._one("", "", "*, ", "t.k, ", "* replace (v + 1 as v, 'x' as k), ")
        return f"select {star}{', '.join(items)} from t{self._where()}"

    def _aggregates(self) -> str:
        found = [f"{self.aggregate()} as a{n}" for n in range(self._random.randrange(1, 4))]
        return ", ".join(found)

    def _grouped(self) -> str:
        keys = [self._one("k", "v", "b", "v % 3", "lower(k)", "length(k)", "id // 10")]
        if self._random.random() < 0.4:
            keys.append(self._one("v > 4", "id % 2", "upper(k)"))
        named = ", ".join(f"{key} as g{n}" for n, key in enumerate(keys))
        by = self._one("all", ", ".join(keys), ", ".join(f"g{n}" for n in range(len(keys))))
        having = self._one(
            "",
            "",
            f" having count(*) > {self._random.randrange(1, 5)}",
            " having max(v) is not null",
        )
        return f"select {named}, {self._aggregates()} from t{self._where()} group by {by}{having}"

    def _total(self) -> str:
        return f"select {self._aggregates()}, count(*) + 1 as n from t{self._where()}"

    def _windowed(self) -> Made:
        seconds = self._one("5", "10", "60")
        key = self._one("", "k, ", "v % 2, ")
        named = key.replace("v % 2", "v % 2 as g")
        items = f"{named}window_start, window_end, {self._aggregates()}"
        where = self._where()
        table = f"tumble(table t, descriptor(ts), interval '{seconds}' seconds)"
        table = self._one(f"table({table})", table, f"tumble(t, ts, interval '{seconds} seconds')")
        buckets = (
            f"(select *, time_bucket(interval '{seconds} seconds', ts) as window_start, "
            f"window_start + interval '{seconds} seconds' as window_end from t)"
        )
        group = f" group by {key}window_start, window_end"
        return Made(
            f"select {items} from {table}{where}{group}",
            f"select {items} from {buckets}{where}{group}",
        )

    def _hopped(self) -> Made:
        items = f"k, window_start, {self._aggregates()}"
        where = self._where()
        group = " group by k, window_start, window_end"
        table = "hop(table t, descriptor(ts), interval '5' seconds, interval '10' seconds)"
        buckets = (
            "(select t.*, time_bucket(interval '5 seconds', ts) - n * interval '5 seconds' as "
            "window_start, window_start + interval '10 seconds' as window_end "
            "from t, range(0, 2) r(n))"
        )
        return Made(
            f"select {items} from {table}{where}{group}",
            f"select {items} from {buckets}{where}{group}",
        )

    def _joined(self) -> str:
        kind = self._one("join", "left join", "right join", "full join", "inner join")
        items = self._one("t.id, t.k, u.w, name", "t.id + coalesce(w, 0) as s, u.k", "*")
        more = self._one("", " and u.w < 5", " and t.v > 1")
        if kind not in ("join", "inner join"):
            more = ""
        where = self._one("", " where coalesce(w, 1) > 1", " where t.v is not null")
        if kind == "join" and self._random.random() < 0.5:
            where = where.replace("where", "and")
            tables = self._one("t, u", "t cross join u", "t, u, (values (3), (5)) as c(x)")
            more += " and u.w = c.x" if "(x)" in tables else ""
            items = items if items != "*" else "t.id, u.w"
            return f"select {items} from {tables} where t.k = u.k{more}{where}"
        return f"select {items} from t {kind} u on t.k = u.k{more}{where}"

    def _distinct(self) -> str:
        items = [
            f"{self._one('k', 'v', 'b', self.number(1), self.text(1))} as c{n}" for n in range(2)
        ]
        return f"select distinct {', '.join(items)} from t{self._where()}"

    def _union(self) -> str:
        a, b = (
            f"select {self.number(1)} as x, {self.text(1)} as y from t{self._where()}"
            for _ in range(2)
        )
        word = self._one("union all", "union", "union all")
        return f"select x, y, 1 as z from ({a} {word} {b}) as q"

    def _ordered(self) -> Made:
        by = self._one("id", "v desc, id", "k nulls first, id desc", "f desc, v, id", "-v, id")
        limit = self._one("", f" limit {self._random.randrange(1, 20)}", " limit 5 offset 3")
        text = f"select id, {self.value()} as c from t{self._where()} order by {by}{limit}"
        return Made(text, text, is_ordered=True)

    def _ranked(self) -> str:
        n = self._random.randrange(1, 4)
        by, order = self._one("k", "b", "v % 2"), self._one("v desc", "f", "k")
        over = f"row_number() over (partition by {by} order by {order}, id)"
        if self._random.random() < 0.5:
            return f"select id, k, {over} as rn from t{self._where()} qualify rn <= {n}"
        return (
            f"select * from (select id, v, {over} as rn from t{self._where()}) as q where rn <= {n}"
        )

    def _over(self) -> str:
        """Functions over rows; what depends on the order of peers has an order without any."""
        items = [f"{self._over_rows()} as c{n}" for n in range(self._random.randrange(1, 4))]
        kept = self._one("", "", " qualify c0 is not null", " qualify count(*) over () > 20")
        if self._random.random() < 0.3:
            items.append("sum(v) over w as c4, lag(id) over w as c5")
            kept = f" window w as (partition by b order by id rows 2 preceding){kept}"
        return f"select id, {', '.join(items)} from t{self._where()}{kept}"

    def _over_rows(self) -> str:
        by = self._one("", "partition by k ", "partition by b ", "partition by v % 2, b ")
        order = self._one("v", "k desc", "f nulls first", "ts desc", "lower(k)", "v % 3, b")
        near = self._random.randrange(1, 4)
        place = self._one("row_number()", f"lag({self.number(1)}, {near})", f"lead(k, {near}, 'x')")
        rows = self._one(
            "",
            f"rows {near} preceding",
            f"rows between {near} preceding and 1 following",
            "rows between current row and unbounded following",
            "rows between 3 preceding and 2 preceding",
        )
        aggregate = self._one(self.aggregate(), "first_value(v)", "last_value(v + id)")
        reach = self._one("2", "1 preceding and 3 following", "unbounded preceding and 1 following")
        reach = f"between {reach}" if "and" in reach else f"{reach} preceding"
        seconds = f"interval '{near * 4} seconds'"
        return self._one(
            f"{self._one('rank', 'dense_rank')}() over ({by}order by {order})",
            f"{self._one('percent_rank', 'cume_dist')}() over ({by}order by {order})",
            f"{place} over ({by}order by {order}, id)",
            f"ntile({near}) over ({by}order by {order}, id)",
            f"nth_value(v, {near}) over ({by}order by {order}, id {rows})",
            f"last_value(v ignore nulls) over ({by}order by {order}, id {rows})",
            self._one("string_agg(k)", "string_agg(k, '+')") + f" over ({by}order by id)",
            f"{aggregate} over ({by}order by {order}, id {rows})",
            f"{self._one('sum(v)', 'count(*)', 'max(k)', 'avg(f)')} over ({by}order by {order})",
            f"{self._one('sum(v)', 'count(*)', 'max(k)', 'avg(f)')} over ({by})",
            f"sum(id) over ({by}order by {self._one('v', 'v desc nulls first')} range {reach})",
            f"min(f) over ({by}order by ts range between {seconds} preceding and current row)",
            f"sum(f) over ({by}order by ts desc range between current row and {seconds} following)",
        )

    def _in_query(self) -> str:
        """Queries in the place of values, also such as look at the row around them."""
        kept = self._one("", " where w is not null", " where w > 3", " where w > 100")
        also = kept.replace("where", "and")
        inner = f"(select {self._one('w', 'w + 1', 'length(name)')} from u{kept})"
        value = self._one(
            f"v in {inner}",
            f"v not in {inner}",
            f"k in (select k from u{kept})",
            f"v in (select w from u where u.k = t.k{also})",
            f"v not in (select w from u where u.k = t.k{also})",
            f"v = any(select w from u{kept})",
            f"exists (select 1 from u{kept})",
            f"k in ('tea', (select max(k) from u{kept}), lower(k))",
            f"exists (select w from u where u.k = t.k{also})",
            f"not exists (select w from u where t.k = u.k and t.v + 1 = u.w{also})",
            f"v > (select avg(w) from u{kept})",
            "v < (select max(u2.w) from u as u2 where u2.k = t.k)",
            f"(select count(*) from u where u.k = t.k{also}) <> 1",
        )
        if self._random.random() < 0.5:
            return f"select id, k from t where {value} {self._one('and', 'or')} {self.condition(1)}"
        if self._random.random() < 0.2:
            return f"select id from t where (k, v) in (select k, w from u{kept})"
        if self._random.random() < 0.5:
            return f"select id, {value} as c, (select min(w) from u{kept}) as m from t"
        return (
            f"select k, sum(v) as s from t group by k having {self._one('not', '')} "
            f"(sum(v) in (select w from u{kept}))"
        )

    def _compared(self) -> str:
        """Rows of two tables that are in both, or only in the first."""
        a, b, c = (
            f"select {self._one('k, v', 'lower(k) as k, v', 'k, v % 3')} from t{self._where()}"
            for _ in range(3)
        )
        words = ["union", "intersect", "except"]
        return f"({a}) {self._one(*words)} ({b}) {self._one(*words)} ({c})"

    def _nested(self) -> str:
        inner = f"select k, {self.number(1)} as x, {self.condition(1)} as y from t{self._where()}"
        return self._one(
            f"with q as ({inner}) select k, sum(x) as s from q where y group by k",
            f"select x + 1 as x1, k from ({inner}) as q where x > 0",
            f"with q as ({inner}), r as (select k, count(*) as n from q group by k) "
            "select n, count(*) as m from r group by n",
        )

    def _unnested(self) -> str:
        return self._one(
            f"select id, x + 1 as y from t, unnest(l) as q(x){self._where()}",
            "select id, unnest(l) as x from t",
            "select id, k || v as x, x || '!' as y, from t order by y, id",
            "select t.id, u.w from t, u where t.v < u.w",
            "select t.id, u.name, k2 from t cross join u cross join (select k as k2 from u) as q",
            "select x, count(*) as n from t left join unnest(l) as q(x) on true group by x",
            "select t.id, x, w from t join u on t.k = u.k, unnest(l) as q(x) where x > 1",
        )

    def _first(self) -> Made:
        text = f"select distinct on ({self._one('k', 'v % 3', 'b, k')}) id, {self.value()} as c "
        text += f"from t{self._where()} order by {self._one('v, ', 'f desc, ', '')}id"
        return Made(text, text, is_ordered=True)
