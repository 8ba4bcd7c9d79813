"""What cannot be done is refused with its place in the text, the reason and a remedy."""

import re
from typing import Any

import pytest

import gearpy as gp
from gearpy.errors import ConfigError
from tests.sql.test_streams import sources

_MISTAKES = [
    # What is wrong, from where on; and what is said of it.
    ("selct item from bids", 1, "expected SELECT at the beginning of a query"),
    ("select itm from bids", 8, "no column 'itm': did you mean item?"),
    ("select b.prise from bids b", 8, "no column 'prise' in 'b': did you mean price?"),
    ("select x.* from bids b", 8, "no table 'x'"),
    ("select lowr(item) from bids", 8, "no function 'lowr': did you mean lower?"),
    ("select lower(item, 1) from bids", 8, "lower takes 1 arguments, not 2"),
    ("select lower(upper(item, 1)) from bids", 14, "upper takes 1 arguments, not 2"),
    ("select price::decimal(50, 2) from bids", 13, "a decimal has 1 to 38 digits"),
    ("select price::decimal(2, 5) from bids", 13, "a decimal has 1 to 38 digits"),
    ("select item from bid", 18, "no table 'bid': did you mean bids?"),
    ("select item from bids wher price > 1", 23, "did you mean where?"),
    ("select item from bids where price", 29, "a condition is true or false"),
    ("select item + at from bids", 13, "+ takes"),
    ("select lower(price) from bids", 8, "lower takes"),
    ("select item, price from bids group by item", 14, "neither grouped nor aggregated"),
    ("select price as p, q as q from bids where p > 1", 20, "no column 'q'"),
    ("select a.item from items a, items b where id = 1", 43, "write a.id or b.id"),
    ("select id from items, items", 8, "give each a name"),
    ("select sum(sum(price)) from bids", 12, "inside of another aggregate"),
    ("select item from bids where sum(price) > 1", 29, "put it into HAVING"),
    ("select median(distinct price) from bids", 8, "SELECT DISTINCT"),
    ("select cast(item as strng) from bids", 8, "did you mean string?"),
    ("select item, item as item from bids", 14, "two columns are called 'item'"),
    ("select 'a from bids", 8, "the quote ' is not closed"),
    ("select item from bids;;; select", 23, "not expected"),
    ("select item from bids where item in (select item from asks)", 34, "a source that ends"),
    ("select item from bids where item not in (select id from items)", 34, "NOT EXISTS for NOT IN"),
    ("select item from bids where exists (select 1 from items)", 29, "looks at the row around it"),
    ("select id from items where id in (select item from bids)", 31, "no end: join by time"),
    ("select id from items where id in (select id, name from items)", 31, "2 columns"),
    (
        "select id from items i where id in (select max(x.id) from items x where x.name = i.name)",
        33,
        "compare an aggregate with =",
    ),
    ("select (select id from items) from items", 9, "may give several rows"),
    (
        "select id from items i where 1 = (select max(id) from items x where x.id < i.id)",
        74,
        "equal",
    ),
    ("select id from items order by (select 1 from items)", 32, "cannot stand here"),
    ("select id from items except all select id from items", 22, "EXCEPT ALL counts rows"),
    ("select sum(price) over w from bids", 8, "WINDOW w AS (...)"),
    ("select item from bids, unnest(item) as t(x)", 31, "takes a list, and this is int64"),
    ("select item from unnest(item)", 18, "FROM t, UNNEST(t.tags) AS x"),
    ("select item from bids where unnest(item) > 1", 29, "in SELECT, or in FROM"),
    ("select ntile(2) over (order by at) from bids", 8, "rows that are still to come"),
    ("select ntile(0) over (order by id) from items", 8, "a number of rows"),
    ("select nth_value(id) over (order by id) from items", 8, "takes two arguments, not 1"),
    ("select id from items where (id, name) in (select id from items)", 39, "2 are compared"),
    ("select name like 'a' escape 'ab' from items", 29, "takes one character"),
    ("select date_diff('dag', at, at) from bids", 8, "did you mean day?"),
    ("select json_value(name, 'a b') from items", 8, "give a path such as"),
    ("select item, count(*) from bids group by rollup (item)", 42, "UNION ALL"),
    ("pivot bids on item using sum(price)", 1, "FILTER (WHERE shop = 'north')"),
    ("select now() as n from bids", 8, "does not depend on when it is asked"),
    ("select * replace (1 as nothing) from bids", 8, "there is no column 'nothing'"),
    ("values (1, 2), (3)", 1, "as many values"),
    ("select item from bids, asks", 22, "equal on both sides"),
    ("select item from bids order by item", 32, "row_number()"),
    ("select item from bids limit 3", 1, "this input has no end"),
    ("select count(*) from bids emit final", 1, "this input has none"),
    ("select count(*) from bids emit often", 1, "CHANGES, PER BATCH or FINAL, not often"),
    (
        "select count(*) from tumble(bids, at, interval '1s') group by window_start emit per batch",
        1,
        "for groups without windows",
    ),
    ("select max(n) from (select count(*) n from bids)", 1, "give the inner query windows"),
    ("select * from tumble(bids, at, interval '10s')", 1, "GROUP BY window_start"),
    ("select count(*) from tumble(bids, at, interval '10s')", 1, "add window_start to GROUP BY"),
    ("select 1 from tumble(bids, item, interval '1s') group by window_start", 28, "from at"),
    ("select 1 from tumble(bids, at, interval '1' month) group by 1", 32, "differ in length"),
    ("select 1 from hop(bids, at, interval '1s') group by 1", 15, "hop takes"),
    ("select b.item from bids b join asks a on b.item = a.item", 27, "add a bound in time"),
    ("select b.item from bids b join asks a on b.at <= a.at", 27, "equal on both sides"),
    ("select b.item from bids b full join items i on b.item = i.id", 27, "inner or left"),
    (
        "select b.item from bids b left join asks a on b.item = a.item and b.price > a.ask",
        75,
        "take it into an inner join",
    ),
    ("select item, row_number() over (order by price) from bids", 14, "as in QUALIFY row_number()"),
    ("select sum(price) over (order by price) from bids", 8, "or ORDER BY at"),
    ("select sum(price) over (partition by item) from bids", 8, "rows that are still to come"),
    ("select lead(price) over (order by at) from bids", 8, "take lag(...)"),
    ("select rank() over (order by at) from bids", 8, "take row_number()"),
    ("select lag(price) over (partition by item) from bids", 8, "lag() needs an order"),
    ("select lagg(price) over (order by at) from bids", 8, "did you mean lag?"),
    ("select rank(price) over (order by at) from bids", 8, "rank takes no argument"),
    ("select lag(distinct price) over (order by at) from bids", 8, "lag is no aggregate"),
    ("select lag(price, 1, 0.5) over (order by at) from bids", 22, "cast one"),
    ("select lag(price, at) over (order by at) from bids", 19, "expected a text, number"),
    ("select sum(lag(price) over (order by at)) over () from bids", 12, "inside of another"),
    ("select sum(price) over (order by at rows interval '1s' preceding) from bids", 8, "a RANGE"),
    ("select sum(price) over (order by at range 1 preceding) from bids", 34, "has no bound of"),
    ("select sum(price) over (order by at, item range 1 preceding) from bids", 8, "one ORDER BY"),
    ("select sum(price) over (order by at rows 1 behind) from bids", 44, "expected PRECEDING"),
    ("select item from bids where lag(price) over (order by at) > 1", 29, "not known yet here"),
    ("select item from bids union select item, ask from asks", 23, "as many columns"),
    ("select item from bids union all select at from asks", 23, "cast one"),
    ("select item from bids intersect select item from asks", 23, "no end: join the two by time"),
    ("with recursive x as (select 1 from bids) select 1 from x", 6, "has no end"),
    (
        "select item from tumble(bids, at, interval '1s') where item in (select item from asks)",
        61,
        "among such of the same windows",
    ),
    ("select current_date from bids", 8, "does not depend on when it is asked"),
    ("select sign(distinct price) from bids", 8, "sign is no aggregate"),
    ("select nullif(price) from bids", 8, "nullif takes a, b, not 1"),
    ("select list(item order by price) from bids group by item", 27, "sorted by their own value"),
    ("select item from bids where (item, price) > (1, 2)", 43, "equal or not"),
    ("select item from bids where (item, price) = (1, 2, 3)", 43, "as many values"),
    ("select item from bids where price > any([1, 2])", 35, "SELECT min(...)"),
    ("select item from bids where at > interval '1' month", 34, "differ in length"),
    ("select item from 'sales.xls'", 18, "files end with .parquet"),
    ("select order from bids", 8, 'as a name write "order"'),
]


@pytest.mark.parametrize(("query", "column", "words"), _MISTAKES)
def test_mistakes_have_their_place_and_a_remedy(query: str, column: int, words: str) -> None:
    """The line of the text is shown, with a mark below the place."""
    with pytest.raises(ConfigError) as caught:
        gp.StreamApp("wrong").sql(query, **sources())

    found = re.findall(r"line 1, column (\d+)", str(caught.value))
    assert words in str(caught.value)
    assert found == [str(column)], str(caught.value)


def test_the_line_of_a_longer_text_is_shown() -> None:
    """The mark is below the place."""
    with pytest.raises(ConfigError) as caught:
        gp.StreamApp("wrong").sql("select item -- why\nfrom bids\nwhere prize > 3", **sources())

    assert str(caught.value).splitlines()[1:] == [
        "  at line 3, column 7:",
        "  where prize > 3",
        "        ^",
    ]


def test_a_table_is_a_stream_of_the_application_or_a_source() -> None:
    """Others are named."""
    app = gp.StreamApp("own")
    other_kind: Any = [1]
    other: Any = gp.StreamApp("other").read(gp.rows([{"a": 1}]))
    for table, words in ((other_kind, "t is list"), (other, "takes streams of one application")):
        with pytest.raises(ConfigError, match=words):
            app.sql("select 1 from t", t=table)


def test_a_stream_needs_columns_that_are_known() -> None:
    """The remedy is a schema."""
    app = gp.StreamApp("unknown")
    with pytest.raises(ConfigError, match="give its source a schema"):
        app.read(gp.collection([{"a": 1}])).sql("select a from this")


def test_a_function_says_what_it_returns() -> None:
    """Else nothing knows the type of the column."""
    with pytest.raises(ConfigError, match="f does not say what it returns: annotate it"):
        gp.StreamApp("untyped").sql(
            "select f(a) from t", functions={"f": lambda a: a}, t=gp.rows([{"a": 1}])
        )
