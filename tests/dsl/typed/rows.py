"""Records of sources, and functions of one record."""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, TypeGuard, assert_type

import gearpy as gp


class Row(NamedTuple):
    user: str
    n: int


class Click(TypedDict):
    user: str
    at: int


@dataclass(frozen=True)
class Sale:
    user: str
    price: float


app = gp.StreamApp("typed")
rows = app.read(gp.csv("x.csv", schema=Row, time="at"))

# What is read is of the class that the schema is ...
assert_type(rows, gp.Stream[Row])
assert_type(app.read(gp.csv("x.csv", schema=Click)), gp.Stream[Click])
assert_type(app.read(gp.jsonl("x.jsonl", schema=Sale)), gp.Stream[Sale])
assert_type(app.read(gp.parquet("x", schema=Row)), gp.Stream[Row])
assert_type(app.read(gp.arrow("x", schema=Sale)), gp.Stream[Sale])
assert_type(app.read(gp.window_log("x", schema=Row)), gp.Stream[Row])
assert_type(app.read(gp.rows([Row("a", 1)], schema=Row)), gp.Stream[Row])
assert_type(app.read(gp.collection([Sale("a", 1.0)], schema=Sale)), gp.Stream[Sale])
assert_type(app.read(gp.generate(lambda: [Row("a", 1)], schema=Row)), gp.Stream[Row])
assert_type(app.read(gp.generate_tables(list, schema=Row)), gp.Stream[Row])

# ... and a dict without one, or with one that is no class.
assert_type(app.read(gp.csv("x.csv")), gp.Stream[dict[str, Any]])
assert_type(app.read(gp.jsonl("x", schema={"n": int})), gp.Stream[dict[str, Any]])
assert_type(app.read(gp.csv("x.csv", columns=["n"])), gp.Stream[dict[str, Any]])
assert_type(app.read(gp.csv("x.csv", rows=True)), gp.Stream[dict[str, Any]])
assert_type(app.read(gp.generate_tables(list, schema={"n": int})), gp.Stream[dict[str, Any]])

# Values are of their own type, without their event times.
assert_type(app.read(gp.collection([1, 2])), gp.Stream[int])
assert_type(app.read(gp.collection([gp.Message("a", 1)])), gp.Stream[str])
assert_type(app.read(gp.collection([Sale("a", 1.0)], timestamp=lambda sale: 5)), gp.Stream[Sale])
assert_type(app.read(gp.generate(lambda: iter([1.5]))), gp.Stream[float])
assert_type(app.read(gp.rows([Row("a", 1)])), gp.Stream[Row])
assert_type(app.read(gp.files("*.txt")), gp.Stream[str])
assert_type(app.read(gp.stdin()), gp.Stream[str])
assert_type(app.read(gp.tcp_lines("localhost", 9)), gp.Stream[str])

gp.collection([Row("a", 1)], timestamp=lambda row: row.nope)  # expect: "nope"
gp.csv("x.csv", time=lambda row: row.nope)  # expect: "nope"
gp.csv("x.csv", schema=3)  # expect: schema
gp.jsonl("x.jsonl", folow=True)  # expect: folow
gp.parquet("x.parquet", follow="yes")  # expect: follow
gp.csv_folder("x", prefx="x")  # expect: prefx


def is_text(value: str | None) -> TypeGuard[str]:
    return value is not None


async def country(user: str) -> bytes:
    return user.encode()


texts: gp.Stream[str | None] = app.read(gp.collection(["a", None]))
assert_type(rows.map(lambda row: row.n * 2), gp.Stream[int])
assert_type(rows.filter(lambda row: row.n > 2), gp.Stream[Row])
assert_type(texts.split(is_text), tuple[gp.Stream[str], gp.Stream[str | None]])
assert_type(texts.split(bool), tuple[gp.Stream[str | None], gp.Stream[str | None]])
assert_type(rows.merge(texts), gp.Stream[Row | str | None])
assert_type(rows.lookup(country, key=lambda row: row.user), gp.Stream[tuple[Row, bytes]])

rows.map(lambda row: row.nope)  # expect: "nope"
rows.filter(lambda row: row.nope > 1)  # expect: "nope"
rows.filter(lambda row: row.user.nope())  # expect: "nope"
rows.split(lambda row: row.nope)  # expect: "nope"
rows.branch(big=lambda row: row.nope)  # expect: "nope"
rows.flat_map(lambda row: row.nope)  # expect: "nope"
rows.inspect(lambda row: print(row.nope))  # expect: "nope"
rows.distinct(lambda row: row.nope)  # expect: "nope"
rows.lookup(country, key=lambda row: row.nope)  # expect: "nope"
rows.lookup(country, key=lambda row: row.n)  # expect: "lookup"
rows.lookup(country, key="user", combine=lambda row, found: found.nope)  # expect: "nope"
rows.map_async(country)  # expect: "map_async"
rows.map(str.upper)  # expect: Row
rows.window("1m")  # expect: "Windows"
rows.mapp(lambda row: row.n)  # expect: "mapp"
rows.count()  # expect: "count"
app.read(gp.csv("x.csv", schema=Click)).map(lambda click: click["nope"])  # expect: nope
