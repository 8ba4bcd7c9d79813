"""The questions of Nexmark in SQL of DuckDB, which has all events at once: what columns could cost.

Its answers are the rows of the loops. Events come from tables in memory, and answers are tables.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import duckdb

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

_LOW, _HIGH = 10_000, 100_000
_RANKS: Final = (
    "",
    f" filter (where price < {_LOW})",
    f" filter (where price >= {_LOW} and price < {_HIGH})",
    f" filter (where price >= {_HIGH})",
)
_COUNTS: Final = ", ".join(f"count(*){rank}" for rank in _RANKS)
_DIFFERENT: Final = ", ".join(
    f"count(distinct {column}){rank}" for column in ("bidder", "auction") for rank in _RANKS
)
_SALES: Final = """(
    select a.*, bidder, price from auctions a join bids b on a.id = b.auction
    and b.time_ms >= a.time_ms and b.time_ms < expires_ms and price >= reserve
    qualify row_number() over (partition by a.id order by price desc, b.time_ms, bidder) = 1
)"""

SQL: Final[Mapping[str, str]] = {
    "q0": "select * from bids",
    "q1": "select auction, bidder, price * 89 // 100, channel, time_ms, url from bids",
    "q2": "select auction, price from bids where auction % 123 = 0",
    "q3": """
        select name, city, state, a.id from auctions a join people p on a.seller = p.id
        where category = 10 and state in ('OR', 'ID', 'CA')
    """,
    "q4": "select category, avg(price) from {sales} group by category",
    "q5": """
        with counts as (
            select auction, count(*) as bids, unnest(range(5)) as part, time_ms // 2000 as pane
            from bids group by auction, pane
        ), sums as (
            select auction, sum(bids)::bigint as bids, pane + part as last from counts group by all
        )
        select auction, bids, (last - 4) * 2000, (last + 1) * 2000 from sums
        qualify row_number() over (partition by last order by bids desc, auction) = 1
    """,
    "q6": """
        with latest as (
            select seller, price from {sales}
            qualify row_number() over (partition by seller order by expires_ms desc, id desc) <= 10
        )
        select seller, avg(price) from latest group by seller
    """,
    "q7": """
        select max(price), time_ms // 10000 * 10000 as start, start + 10000
        from bids group by start
    """,
    "q8": """
        select p.id, name, a.id from people p join auctions a
        on p.id = a.seller and p.time_ms // 10000 = a.time_ms // 10000
    """,
    "q9": "select id, category, seller, bidder, price, expires_ms from {sales}",
    "q11": """
        with parts as (
            select bidder, time_ms, coalesce(time_ms - lag(time_ms) over who >= 10000, true)::int
            as begins from bids window who as (partition by bidder order by time_ms)
        ), numbered as (
            select bidder, time_ms, sum(begins) over (partition by bidder order by time_ms) as of
            from parts
        )
        select bidder, count(*), min(time_ms), max(time_ms) + 10000 from numbered
        group by bidder, of
    """,
    "q13": """
        select auction, bidder, price, time_ms, value
        from bids join (select range as place, 'value ' || range as value from range(1000)) side
        on auction % 1000 = place
    """,
    "q14": """
        select auction, bidder, price * 0.908::double as euros, case
            when hour between 8 and 18 then 'day' when hour < 7 or hour > 19 then 'night'
            else 'other' end, time_ms, length(url) - length(replace(url, 'c', ''))
        from (select *, time_ms // 3600000 % 24 as hour from bids)
        where euros > 10000 and euros < 500000
    """,
    "q15": "select {counts}, {different} from bids group by time_ms // 86400000",
    "q16": """
        select channel, {counts}, {different}, max(time_ms) from bids
        group by channel, time_ms // 86400000
    """,
    "q17": """
        select auction, {counts}, min(price), max(price), avg(price), sum(price)::bigint
        from bids group by auction, time_ms // 86400000
    """,
    "q18": "select bidder, auction, max(time_ms) from bids group by bidder, auction",
    "q19": """
        select auction, price from bids
        qualify row_number() over (partition by auction order by price desc) <= 10
    """,
    "q20": """
        select b.auction, bidder, price, channel, b.time_ms, item, seller, category
        from bids b join auctions a on b.auction = a.id where category = 10
    """,
    "q21": """
        select auction, bidder, price, channel, case lower(channel)
            when 'apple' then '0' when 'google' then '1' when 'facebook' then '2'
            when 'baidu' then '3' else regexp_extract(url, 'channel_id=([^&]*)', 1) end
        from bids
    """,
    "q22": """
        select auction, bidder, price, channel, split_part(url, '/', 4), split_part(url, '/', 5),
            split_part(url, '/', 6) from bids
    """,
}


def answer_of(query: str, tables: Mapping[str, Sequence[pa.RecordBatch]]) -> pa.Table:
    """Ask a question on one thread.

    Args:
        tables: "bids", "auctions" and "people" in pieces.
    """
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, batches in tables.items():
            connection.register(name, pa.Table.from_batches(batches))
        text = SQL[query].format(sales=_SALES, counts=_COUNTS, different=_DIFFERENT)
        return connection.sql(text).to_arrow_table()


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    # Two columns may have one name.
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
