"""What type checkers know of streams; mypy checks the assertions, and they run as well."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypedDict, TypeGuard, assert_type

import gearpy as gp
from gearpy import agg


@dataclass(frozen=True)
class Sale:
    user: str
    price: float


class Row(TypedDict):
    user: str


class Untyped(gp.Task):
    """Does not say what it takes and gives."""


def read() -> gp.Stream[Sale]:
    return gp.StreamApp("typed").read(gp.collection([]))


def user_of(sale: Sale) -> str:
    return sale.user


def price_of(sale: Sale) -> float:
    return sale.price


def by_user() -> gp.KeyedStream[str, Sale]:
    return read().key_by(user_of)


def windowed() -> gp.WindowedStream[str, Sale]:
    return by_user().window(gp.tumbling("1m"))


def is_named(name: str | None) -> TypeGuard[str]:
    return name is not None


def words(sale: Sale) -> Iterator[str]:
    yield sale.user


async def fetch(sale: Sale) -> int:
    return len(sale.user)


async def country_of(user: str) -> bytes:
    return user.encode()


def tagged(sale: Sale, country: bytes) -> bytes:
    return sale.user.encode() + country


def test_a_predicate_that_narrows_types_narrows_the_stream() -> None:
    names: gp.Stream[str | None] = gp.StreamApp("typed").read(gp.collection([]))

    assert_type(names.filter(is_named), gp.Stream[str])
    assert_type(names.filter(bool), gp.Stream[str | None])


def test_functions_of_records() -> None:
    sales = read()

    assert_type(sales.map(price_of), gp.Stream[float])
    assert_type(sales.map(lambda sale: sale.user), gp.Stream[str])
    assert_type(sales.filter(lambda sale: sale.price > 1), gp.Stream[Sale])
    assert_type(sales.flat_map(words), gp.Stream[str])
    assert_type(sales.inspect(print), gp.Stream[Sale])
    assert_type(sales.tap(print), gp.Stream[Sale])
    assert_type(sales.take(3), gp.Stream[Sale])
    assert_type(sales.skip(3, ordered=False), gp.Stream[Sale])
    assert_type(sales.map(lambda sale: [sale]).flatten(), gp.Stream[Sale])
    assert_type(sales.map(lambda sale: (sale, sale)).flatten(), gp.Stream[Sale])
    assert_type(sales.flatten(), gp.Stream[Any])
    assert_type(sales.key_by(user_of).enumerate(), gp.Stream[tuple[int, Sale]])
    assert_type(sales.key_by(user_of).pairwise(), gp.Stream[tuple[Sale, Sale]])
    assert_type(sales.key_by(user_of).rolling(3), gp.Stream[list[Sale]])
    assert_type(sales.log("info", every=10), gp.Stream[Sale])
    assert_type(sales.distinct("user", within="1h"), gp.Stream[Sale])
    assert_type(sales.unique(user_of), gp.Stream[Sale])
    assert_type(sales.map_async(fetch, concurrency=10), gp.Stream[int])
    assert_type(sales.process(Untyped), gp.Stream[Any])
    assert_type(sales.process(Untyped).side("bad"), gp.Stream[Any])


def test_functions_of_batches() -> None:
    sales = read()

    assert_type(sales.map_batches(lambda batch: batch), gp.Stream[dict[str, Any]])
    assert_type(sales.map_batches(lambda batch: batch, schema=Sale), gp.Stream[Sale])
    assert_type(
        sales.map_batches(lambda batch: batch, schema={"n": int}, form="pandas"),
        gp.Stream[dict[str, Any]],
    )
    assert_type(sales.map_batches(lambda batch: batch, schema=Row), gp.Stream[Row])


def test_lookup() -> None:
    sales = read()

    assert_type(sales.lookup(country_of, key="user"), gp.Stream[tuple[Sale, bytes]])
    assert_type(sales.lookup(country_of, key=user_of, combine=tagged), gp.Stream[bytes])


def test_streams_come_together_and_part() -> None:
    sales = read()

    assert_type(sales.merge(sales), gp.Stream[Sale])
    assert_type(sales.union(sales), gp.Stream[Sale])
    assert_type(sales.split(lambda sale: sale.price > 1), tuple[gp.Stream[Sale], gp.Stream[Sale]])
    branches = sales.branch(big=lambda sale: sale.price > 100, default="rest")
    assert_type(branches, gp.Branches[Sale])
    assert_type(branches.big, gp.Stream[Sale])
    assert_type(branches["rest"], gp.Stream[Sale])
    assert_type(sales.write(gp.to_list([])), None)


def test_keys() -> None:
    sales = read()

    assert_type(sales.key_by(user_of), gp.KeyedStream[str, Sale])
    assert_type(sales.key_by(lambda sale: len(sale.user)), gp.KeyedStream[int, Sale])
    assert_type(sales.key_by("user"), gp.KeyedStream[Any, Sale])
    assert_type(sales.group_by("user", "price"), gp.KeyedStream[tuple[Any, ...], Sale])


def test_running_aggregates() -> None:
    keyed = by_user()

    assert_type(keyed.count(), gp.Stream[tuple[str, int]])
    assert_type(keyed.sum("price"), gp.Stream[tuple[str, Any]])
    assert_type(keyed.sum(price_of), gp.Stream[tuple[str, float]])
    assert_type(keyed.min(), gp.Stream[tuple[str, Sale]])
    assert_type(keyed.max(lambda sale: sale.user), gp.Stream[tuple[str, str]])
    assert_type(keyed.mean("price"), gp.Stream[tuple[str, float]])
    assert_type(keyed.top_n(3, by="price"), gp.Stream[tuple[str, list[Sale]]])
    assert_type(keyed.reduce(max_price), gp.Stream[tuple[str, Sale]])
    assert_type(keyed.fold(0, lambda n, sale: n + len(sale.user)), gp.Stream[tuple[str, int]])
    assert_type(keyed.aggregate(n=agg.count()), gp.Stream[tuple[str, dict[str, Any]]])
    assert_type(keyed.distinct(), gp.Stream[Sale])


def max_price(a: Sale, b: Sale) -> Sale:
    return a if a.price >= b.price else b


def test_aggregates_in_windows() -> None:
    windows = windowed()

    assert_type(windows.count(), gp.Stream[gp.WindowResult[str, int]])
    assert_type(windows.sum(price_of), gp.Stream[gp.WindowResult[str, float]])
    assert_type(windows.sum("price"), gp.Stream[gp.WindowResult[str, Any]])
    assert_type(windows.min("price"), gp.Stream[gp.WindowResult[str, Any]])
    assert_type(windows.max(), gp.Stream[gp.WindowResult[str, Sale]])
    assert_type(windows.mean(price_of), gp.Stream[gp.WindowResult[str, float]])
    assert_type(windows.top_n(3, price_of), gp.Stream[gp.WindowResult[str, list[Sale]]])
    assert_type(windows.reduce(max_price), gp.Stream[gp.WindowResult[str, Sale]])
    assert_type(
        windows.fold(0.0, lambda total, sale: total + sale.price, merge=lambda a, b: a + b),
        gp.Stream[gp.WindowResult[str, float]],
    )
    assert_type(
        windows.aggregate("totals", n=agg.count(), most=agg.max("price")),
        gp.Stream[gp.WindowResult[str, dict[str, Any]]],
    )


def test_windows_without_key() -> None:
    windows = read().window(
        gp.tumbling("1m")
        .triggering(gp.after_watermark(early=gp.every("1s"), late=gp.every(count=1)))
        .accumulating()
        .allowed_lateness("5s"),
        late="side",
    )

    assert_type(windows, gp.WindowedStream[None, Sale])
    assert_type(windows.count(), gp.Stream[gp.WindowResult[None, int]])
    assert_type(windows.count().map(lambda result: result.value), gp.Stream[int])
    assert_type(windows.count().late, gp.Stream[Any])


def test_state() -> None:
    keyed = by_user()

    def number(count: int, sale: Sale) -> tuple[int, str]:
        return count + 1, sale.user

    def numbers(count: int, sale: Sale) -> tuple[int, list[str]]:
        return count + 1, [sale.user]

    assert_type(keyed.map_with_state(number, initial=0, ttl="1h"), gp.Stream[str])
    assert_type(keyed.flat_map_with_state(numbers, initial=0), gp.Stream[str])


def user_or_none(_: Sale, row: Row | None) -> str | None:
    return None if row is None else row["user"]


def test_joins() -> None:
    left = by_user()
    rows = left.process(Untyped).map_batches(len, schema=Row)
    right = rows.key_by(lambda row: row["user"])
    windows = gp.tumbling("1m")

    assert_type(left.join(right, windows), gp.Stream[gp.JoinResult[str, Sale, Row]])
    assert_type(
        left.join(right, windows, how="left"), gp.Stream[gp.JoinResult[str, Sale, Row | None]]
    )
    assert_type(
        left.join(right, windows, how="right"), gp.Stream[gp.JoinResult[str, Sale | None, Row]]
    )
    assert_type(
        left.join(right, windows, how="outer"),
        gp.Stream[gp.JoinResult[str, Sale | None, Row | None]],
    )
    assert_type(
        left.join(right, windows, combine=lambda sale, row: (sale.user, row["user"])),
        gp.Stream[tuple[str, str]],
    )
    assert_type(left.join(right, windows, how="left", combine=user_or_none), gp.Stream[str | None])
    assert_type(left.cogroup(right, windows), gp.Stream[gp.CoGroup[str, Sale, Row]])
    assert_type(
        left.join_interval(right, before="5s", after="5s", how="outer"),
        gp.Stream[gp.JoinResult[str, Sale | None, Row | None]],
    )
    assert_type(left.join_interval(right, after="5s"), gp.Stream[gp.JoinResult[str, Sale, Row]])
    assert_type(
        left.join_asof(right, tolerance="5s"), gp.Stream[gp.JoinResult[str, Sale, Row | None]]
    )
    assert_type(
        left.join_asof(right, how="inner", direction="nearest"),
        gp.Stream[gp.JoinResult[str, Sale, Row]],
    )
    assert_type(left.join_latest(right), gp.Stream[gp.JoinResult[str, Sale, Row | None]])
    assert_type(
        left.join_latest(right, how="inner", combine=lambda sale, _: sale.price), gp.Stream[float]
    )


def test_results_of_joins_go_on() -> None:
    sales = by_user()
    joined = sales.join(sales, gp.session("5m"))

    assert_type(joined.map(lambda found: found.right.price), gp.Stream[float])
