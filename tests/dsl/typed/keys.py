"""Keys, windows, state and joins."""

from typing import Any, NamedTuple, assert_type

import gearpy as gp


class Row(NamedTuple):
    user: str
    n: int


class Paid(NamedTuple):
    payer: str
    amount: float


app = gp.StreamApp("typed")
rows = app.read(gp.csv("x.csv", schema=Row))
by_user = rows.key_by(lambda row: row.user)
minutes = by_user.window(gp.tumbling("1m"))
paid = app.read(gp.csv("y.csv", schema=Paid)).key_by(lambda found: found.payer)

rows.key_by(lambda row: row.nope)  # expect: "nope"
rows.key_by(gp.col("user").str.upper(), "n")
rows.key_by(1, "n")  # expect: "key_by"
rows.distinct(gp.col("user").str.upper())
by_user.filter(bool)  # expect: "filter"

# Running aggregates.
by_user.sum(lambda row: row.nope)  # expect: "nope"
by_user.top_n(3, lambda row: row.nope)  # expect: "nope"
by_user.fold(0, lambda sum_, row: sum_ + row.nope)  # expect: "nope"
by_user.reduce(lambda one, other: one if one.nope else other)  # expect: "nope"
by_user.count().map(lambda pair: pair[0].nope)  # expect: "nope"

# State: what is kept is None at first, where nothing else is said.
assert_type(by_user.map_with_state(lambda n, row: (n + 1, row.n), initial=0), gp.Stream[int])
assert_type(
    by_user.flat_map_with_state(lambda n, row: (n + 1, [row.user]), initial=0), gp.Stream[str]
)
by_user.map_with_state(lambda n, row: (n + 1, row.nope), initial=0)  # expect: "nope"
by_user.flat_map_with_state(lambda n, row: (n + 1, [row.nope]), initial=0)  # expect: "nope"
by_user.map_with_state(lambda kept, row: (row.n, kept + 1))  # expect: None


def changed(kept: int | None, row: Row) -> tuple[int, bool]:
    return row.n, kept != row.n


assert_type(by_user.map_with_state(changed), gp.Stream[bool])

# Windows.
minutes.max(lambda row: row.nope)  # expect: "nope"
minutes.fold(0, lambda sum_, row: sum_ + row.nope)  # expect: "nope"
minutes.count().map(lambda result: result.nope)  # expect: "nope"
minutes.count().map(lambda result: result.value.nope)  # expect: "nope"
minutes.count().window(gp.global_window()).top_n(3, lambda each: each.nope)  # expect: "nope"
minutes.map(str)  # expect: "map"

# Joins.
by_user.join_latest(paid).map(lambda pair: pair.left.nope)  # expect: "nope"
by_user.join_asof(paid, how="inner").map(lambda pair: pair.right.nope)  # expect: "nope"
by_user.join_latest(paid).map(lambda pair: pair.right.amount)  # expect: "None"
by_user.join_latest(paid, combine=lambda row, found: row.nope)  # expect: "nope"
by_user.join(paid, gp.session("1m"), combine=lambda row, found: found.nope)  # expect: "nope"
table = gp.csv("y.csv", schema=Paid)
assert_type(by_user.join_table(table, on="payer"), gp.Stream[gp.JoinResult[str, Row, Paid]])
assert_type(rows.join_table(table, ("user", "payer")), gp.Stream[gp.JoinResult[Any, Row, Paid]])
by_user.join_table(table, on=lambda found: found.nope)  # expect: "nope"
rows.join_table(table, on=(lambda row: row.user, lambda found: found.nope))  # expect: "nope"
rows.join_table(table, ("user", "payer")).map(lambda pair: pair.right.nope)  # expect: "nope"
by_user.join_latest(rows.key_by(lambda row: row.n))  # expect: "str"

# Joins with a table.
names = gp.csv("z.csv", schema=Paid)
rows.join_table(names, "user").map(lambda found: found.right.nope)  # expect: "nope"
rows.join_table(names, "user", combine=lambda row, found: found.nope)  # expect: "nope"
rows.join_table(names, "user", how="left").map(lambda it: it.right.amount)  # expect: "None"
rows.join_table(paid, "user")  # expect: join_table
assert_type(by_user.join_table(names, "payer"), gp.Stream[gp.JoinResult[str, Row, Paid]])
assert_type(rows.join_table(names, "user", combine="merge"), gp.Stream[dict[str, Any]])
pairs = rows.join_table(names, "user", how="left", combine=lambda row, it: (row.n, it))
assert_type(pairs, gp.Stream[tuple[int, Paid | None]])
