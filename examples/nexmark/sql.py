"""The queries of Nexmark in SQL, over events in columns.

bin/gear run examples/nexmark/sql.py -- q5 --events 100000

In q6 a sale has the time of its last bid: by that the last ten of a seller are found.
"""

import argparse
from collections.abc import Mapping
from typing import Any, Final

from columns import tables_of
from events import Auction, Bid, Nexmark, Person

import gearpy as gp

__all__ = ["SQL", "answers_of", "asked"]

#: How many bids, bidders and auctions there are, in all and by rank of the price.
_REPORT: Final = """
    count(*) as bids,
    count(*) filter (where price < 10000) as low,
    count(*) filter (where price >= 10000 and price < 100000) as middle,
    count(*) filter (where price >= 100000) as high
"""
_DIFFERENT: Final = """
    count(distinct bidder) as bidders,
    count(distinct bidder) filter (where price < 10000) as low_bidders,
    count(distinct bidder) filter (where price >= 10000 and price < 100000) as middle_bidders,
    count(distinct bidder) filter (where price >= 100000) as high_bidders,
    count(distinct auction) as auctions,
    count(distinct auction) filter (where price < 10000) as low_auctions,
    count(distinct auction) filter (where price >= 10000 and price < 100000) as middle_auctions,
    count(distinct auction) filter (where price >= 100000) as high_auctions
"""

#: By the names of the queries. How long people and auctions matter is put in.
SQL: Final[Mapping[str, str]] = {
    "q0": "select * from bids",
    "q1": "select * exclude (price), price * 89 // 100 as price from bids",
    "q2": "select auction, price from bids where auction % 123 = 0",
    "q3": """
        select name, city, state, a.id as auction
        from (select * from auctions where category = 10) as a
        join (select * from people where state in ('OR', 'ID', 'CA')) as p on a.seller = p.id
        and p.time_ms between a.time_ms - interval '{active}' and a.time_ms + interval '{late}'
    """,
    "q4": """
        with winners as (
            select category, max(price) as price
            from session((
                select a.id, category, price, b.time_ms as time_ms
                from auctions as a join bids as b on a.id = b.auction
                and b.time_ms between a.time_ms - interval '0s' and a.time_ms + interval '{longest}'
                where b.time_ms < expires_ms and price >= reserve
            ), time_ms, interval '{longest}')
            group by id, category, window_start
        )
        select category, avg(price) as average from winners group by category
    """,
    "q5": """
        with counts as (
            select auction, count(*) as bids, window_start, window_end
            from hop(table bids, descriptor(time_ms), interval '2' seconds, interval '10' seconds)
            group by auction, window_start, window_end
        )
        select auction, bids, window_start, window_end from counts
        qualify row_number() over (
            partition by window_start, window_end order by bids desc, auction
        ) = 1
    """,
    "q6": """
        with winners as (
            select seller, max(price) as price, window_end
            from session((
                select a.id, seller, price, b.time_ms as time_ms
                from auctions as a join bids as b on a.id = b.auction
                and b.time_ms between a.time_ms - interval '0s' and a.time_ms + interval '{longest}'
                where b.time_ms < expires_ms and price >= reserve
            ), time_ms, interval '{longest}')
            group by id, seller, window_start
        )
        select seller, avg(price) over lately as average from winners
        window lately as (
            partition by seller order by window_end rows between 9 preceding and current row
        )
    """,
    "q7": """
        select max(price) as price, window_start, window_end
        from tumble(table bids, descriptor(time_ms), interval '10' seconds)
        group by window_start, window_end
    """,
    "q8": """
        select p.id as person, name, a.id as auction
        from tumble(table people, descriptor(time_ms), interval '10' seconds) as p
        join tumble(table auctions, descriptor(time_ms), interval '10' seconds) as a
        on p.id = a.seller and p.window_start = a.window_start
    """,
    "q9": """
        select a.id as auction, category, seller, bidder, price, expires_ms
        from auctions as a join bids as b on a.id = b.auction
        and b.time_ms between a.time_ms - interval '0s' and a.time_ms + interval '{longest}'
        where b.time_ms < expires_ms and price >= reserve
        qualify row_number() over (
            partition by auction order by price desc, b.time_ms, bidder
        ) = 1
    """,
    "q11": """
        select bidder, count(*) as bids, window_start, window_end
        from session(table bids, descriptor(time_ms), interval '10' seconds)
        group by bidder, window_start, window_end
    """,
    "q12": """
        select bidder, count(*) as bids, window_start, window_end
        from tumble(table bids, descriptor(proctime()), interval '10' seconds)
        group by bidder, window_start, window_end
    """,
    "q13": """
        select auction, bidder, price, time_ms, value
        from (select *, auction % 1000 as place from bids) as b join side using (place)
    """,
    "q14": """
        select auction, bidder, price * 0.908 as price,
            case when hour between 8 and 18 then 'day'
                 when hour < 7 or hour > 19 then 'night' else 'other' end as part_of_day,
            time_ms, length(url) - length(replace(url, 'c', '')) as letters
        from (select *, time_ms // 3600000 % 24 as hour from bids) as b
        where price * 0.908 > 10000 and price * 0.908 < 500000
    """,
    "q15": f"""
        select {_REPORT}, {_DIFFERENT}
        from tumble(table bids, descriptor(time_ms), interval '1' day) group by window_start
    """,
    "q16": f"""
        select channel, {_REPORT}, {_DIFFERENT}, max(time_ms) as last
        from tumble(table bids, descriptor(time_ms), interval '1' day)
        group by channel, window_start
    """,
    "q17": f"""
        select auction, {_REPORT}, min(price) as least, max(price) as most,
            avg(price) as mean, sum(price) as total
        from tumble(table bids, descriptor(time_ms), interval '1' day)
        group by auction, window_start
    """,
    "q18": "select bidder, auction, last(time_ms) as last from bids group by bidder, auction",
    "q19": """
        select auction, price, row_number() over (partition by auction order by price desc) as place
        from bids qualify place <= 10
    """,
    "q20": """
        select b.auction, bidder, price, channel, b.time_ms, item, seller, category
        from bids as b join (select * from auctions where category = 10) as a on b.auction = a.id
        and a.time_ms between b.time_ms - interval '{longest}' and b.time_ms + interval '{late}'
    """,
    "q21": """
        select auction, bidder, price, channel,
            case lower(channel) when 'apple' then '0' when 'google' then '1'
                 when 'facebook' then '2' when 'baidu' then '3'
                 else regexp_extract(url, 'channel_id=([^&]*)', 1) end as number
        from bids
    """,
    "q22": """
        select auction, bidder, price, channel, split_part(url, '/', 4) as folder,
            split_part(url, '/', 5) as item, split_part(url, '/', 6) as page
        from bids
    """,
}


def answers_of(query: str, app: gp.StreamApp, nexmark: Nexmark) -> gp.Stream[dict[str, Any]]:
    """Ask a query."""
    kinds = {"people": Person, "auctions": Auction, "bids": Bid}
    return asked(query, app, nexmark, {name: tables_of(kinds[name], nexmark) for name in kinds})


def asked(
    query: str, app: gp.StreamApp, nexmark: Nexmark, tables: Mapping[str, Any]
) -> gp.Stream[dict[str, Any]]:
    """Ask a query of tables that are there: people, auctions and bids."""
    late_ms = nexmark.out_of_order_ms
    text = SQL[query].format(
        active=f"{nexmark.active_ms + late_ms}ms",
        late=f"{late_ms}ms",
        longest=f"{nexmark.longest_ms + 2 * late_ms}ms",
    )
    side = gp.rows([{"place": place, "value": f"value {place}"} for place in range(1000)])
    return app.sql(text, **tables, side=side)


def main(args: list[str]) -> gp.StreamApp:
    """Build the application from command-line arguments."""
    parser = argparse.ArgumentParser(prog="sql.py", description="Ask a question of Nexmark in SQL.")
    parser.add_argument("query", choices=SQL, metavar="QUERY", help=", ".join(SQL))
    parser.add_argument("--events", type=int, default=100_000, metavar="N", help="how many")
    options = parser.parse_args(args)
    app = gp.StreamApp(f"nexmark-sql-{options.query}")
    answers_of(options.query, app, Nexmark(events=options.events)).write(gp.console())
    return app


if __name__ == "__main__":
    gp.run(main)
