"""A table of PostgreSQL, the real one, is read row by row, each once."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from typing import Any, Final, LiteralString

import psycopg
import pytest
from psycopg import sql

import gearpy as gp
from gearpy.errors import ConfigError, OperatorError
from gearpy.testing import check_source
from tests.eventually import eventually
from tests.servers.postgres import Postgres, PostgresAddress

#: Whoever is killed closes nothing.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

_NUMBERS = count()
TABLE: Final = """create table {} (id int primary key, name varchar(20), price numeric(8,2),
    at timestamptz, flag bool, raw bytea, doc jsonb, share float8)"""
FILL: Final = """insert into {0} select n, 'n' || n, n,
    timestamptz '2026-01-01Z' + n * interval '1s', n % 2 = 0, null, '[1]', n / 2.0
    from generate_series(1, 60) n"""


@pytest.fixture
def database(postgres: PostgresAddress) -> Iterator["psycopg.Connection[Any]"]:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def name(database: "psycopg.Connection[Any]") -> str:
    name = f"source{next(_NUMBERS)}"
    do(database, TABLE, name)
    do(database, FILL, name)
    return name


def do(database: "psycopg.Connection[Any]", text: LiteralString, name: str) -> None:
    database.execute(sql.SQL(text).format(sql.Identifier(name)))


@pytest.mark.parametrize(
    ("options", "records"),
    [
        ({}, None),
        ({"time": "at"}, None),
        ({"partitions": 3, "split": (0, 60)}, None),
        ({"follow": True, "time": "at", "interval": "20ms"}, 60),
    ],
)
def test_the_contract_of_a_source_holds(
    postgres: PostgresAddress, name: str, options: dict[str, Any], records: int | None
) -> None:
    check_source(
        lambda: gp.postgres(postgres.url, name, by="id", **options), records=records, seeds=1
    )


def test_values_come_as_they_are(
    postgres: PostgresAddress, database: "psycopg.Connection[Any]", name: str
) -> None:
    do(database, "delete from {}", name)
    row = (1, "a,\"b'\\\n", Decimal("12.50"), datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC))
    insert = sql.SQL("insert into {} values (%s, %s, %s, %s, %s, %s, %s, %s)").format(
        sql.Identifier(name)
    )
    database.execute(insert, (*row, True, b"\x00\xff", '{"a": 1}', 0.1))
    database.execute(insert, (2, "", *[None] * 6))
    app, results = gp.StreamApp("read"), list[Any]()
    app.read(gp.postgres(postgres.url, name, by="id")).write(gp.to_list(results))
    gp.run(app)

    first, second = (list(each.values()) for each in results)
    assert first == [*row, True, b"\x00\xff", '{"a": 1}', 0.1]
    assert second == [2, "", *[None] * 6]


def test_new_rows_are_followed_and_wait_for_older_transactions(
    postgres: PostgresAddress, database: "psycopg.Connection[Any]", name: str
) -> None:
    source = gp.postgres(postgres.url, name, by="id", follow=True, interval="1ms", columns=["name"])
    reader = source.open("00000", None)
    seen: list[int] = []

    def read() -> list[int]:
        batch = reader.read_batch(100)
        seen.extend(row["id"] for row in (batch.values if batch else ()))
        return seen

    with psycopg.connect(postgres.url) as slow:
        do(slow, "insert into {} (id) values (61)", name)
        do(database, "insert into {} (id) values (62)", name)
        eventually(lambda: len(read()) == 60)
        for _ in range(3):
            assert len(read()) == 60
    eventually(lambda: read()[60:] == [61, 62])
    reader.close()


def test_while_the_server_is_away_the_source_waits(own_postgres: Postgres) -> None:
    url, server = own_postgres.address.url, own_postgres.server
    with psycopg.connect(url, autocommit=True) as database:
        do(database, TABLE, "orders")
        do(database, "insert into {} (id) select generate_series(1, 20000)", "orders")
    source = gp.postgres(url, "orders", by="id")
    reader = source.open("00000", None)
    read = reader.read_batch(15_000)
    server.kill()
    assert reader.read_batch(10) is None
    assert "postgres 127.0.0.1" in reader.waits_for
    server.start()
    rest = eventually(lambda: reader.read_batch(10_000))
    reader.close()

    assert read is not None
    assert [row["id"] for row in [*read.values, *rest.values]] == list(range(1, 20_001))


def test_a_question_brings_more_rows_than_are_read_at_a_time(
    postgres: PostgresAddress, database: "psycopg.Connection[Any]", name: str
) -> None:
    """A source begins to read with one record; a question may take a second for it, too."""
    source = gp.postgres(postgres.url, name, by="id")
    reader = source.open("00000", None)
    read = [reader.read_batch(size) for size in (1, 2)]
    place = reader.snapshot()
    do(database, "delete from {} where id = 5", name)  # As others had asked before it went.
    read += [reader.read_batch(2), reader.read_batch(100)]
    again = source.open("00000", place).read_batch(2)
    reader.close()

    assert [len(each) for each in read if each] == [1, 2, 2, 55]
    assert [row["id"] for each in read if each for row in each.values] == list(range(1, 61))
    assert again is not None
    assert [row["id"] for row in again.values] == [4, 6]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"by": "nr"}, "by='nr' is no column: there are id, name"),
        ({"time": "flag"}, "time='flag'"),
        ({"columns": ["nr"]}, "has no column 'nr'"),
        ({"table": "nowhere"}, "there is no table nowhere in postgres 127.0.0.1"),
        ({"partitions": "2"}, r"partitions is '2': for more"),
        ({"url": None}, "this is no address of a database"),
        ({"by": 5}, "by is 5, must be the name of a column, or a list of names"),
        ({"interval": 5}, "interval 5 has no unit"),
        ({"partitions": 2}, r"for more than one give split=\(low, high\)"),
    ],
)
def test_a_mistake_is_found_when_the_program_is_built(
    postgres: PostgresAddress, name: str, change: dict[str, Any], text: str
) -> None:
    options = {"url": postgres.url, "table": name, "by": "id", **change}

    def build() -> None:
        app = gp.StreamApp("mistake")
        app.read(gp.postgres(**options)).write(gp.to_list([]))
        app.build()

    with pytest.raises(ConfigError, match=text):
        build()


BAD: Final[dict[int, LiteralString]] = {
    1: "price = 'NaN'",
    8: "at = 'infinity'",
    9: "at = '0044-03-15 00:00Z BC'",
    30: "at = '10000-01-01Z'",
    60: "price = 'NaN'",
}


@pytest.fixture
def with_bad(database: "psycopg.Connection[Any]", name: str) -> str:
    """Return the name of a table, of whose 60 rows some have values that no column can hold."""
    for key, change in BAD.items():
        where = sql.SQL(" where id = {}").format(key)
        database.execute(
            sql.SQL("update {} set ").format(sql.Identifier(name)) + sql.SQL(change) + where
        )
    return name


@pytest.mark.parametrize("size", [1, 7, 100])
def test_bad_rows_are_set_aside_once(postgres: PostgresAddress, with_bad: str, size: int) -> None:
    source = gp.postgres(postgres.url, with_bad, by="id", on_bad="side")
    place: Any = None
    good, bad, ended = list[int](), list[gp.BadRecord](), False
    while not ended:
        with closing(source.open("00000", place)) as reader:
            batch = reader.read_batch(size)
            good += [row["id"] for row in (batch.values if batch else ())]
            bad += reader.take_bad()
            place, ended = reader.snapshot(), reader.finished

    assert good == [key for key in range(1, 61) if key not in BAD]
    assert [each.where for each in bad] == [f"{with_bad}, row id={key}" for key in BAD]
    assert "column 'price': The string 'NaN' is not" in bad[0].error
    assert bad[1].record.startswith("8,n8,8.00,infinity,t,")


def test_bad_rows_are_left_out_or_refused(postgres: PostgresAddress, with_bad: str) -> None:
    rows = read_all(gp.postgres(postgres.url, with_bad, by="id", on_bad="skip"))
    assert [row["id"] for row in rows] == [key for key in range(1, 61) if key not in BAD]
    with pytest.raises(OperatorError) as told:
        read_all(gp.postgres(postgres.url, with_bad, by="id"))
    text = f"{with_bad}, row id=1: column 'price': The string 'NaN' is not a valid decimal"
    assert text in str(told.value)
    assert 'on_bad="skip", "quarantine" or "side"' in str(told.value)
    assert "a view can give it as text" in str(told.value)


def test_a_bad_order_is_refused_whatever_is_to_become_of_bad_rows(
    postgres: PostgresAddress, with_bad: str
) -> None:
    with pytest.raises(OperatorError, match="it orders the rows: correct it, or read a view"):
        read_all(gp.postgres(postgres.url, with_bad, by=["at", "id"], on_bad="skip", follow=True))


def test_a_row_without_an_event_time_is_a_bad_one(
    postgres: PostgresAddress, database: "psycopg.Connection[Any]", name: str
) -> None:
    do(database, "update {} set at = null where id in (3, 60)", name)
    source = gp.postgres(postgres.url, name, by="id", time="at", on_bad="skip")
    assert [row["id"] for row in read_all(source)] == [*(1, 2), *range(4, 60)]
    with pytest.raises(OperatorError, match="row id=3: column 'at' has no event time"):
        read_all(gp.postgres(postgres.url, name, by="id", time="at"))


def read_all(source: gp.Source[Any]) -> list[Any]:
    """Return the rows of a source to its end, or to where it waits for more."""
    rows: list[Any] = []
    with closing(source.open("00000", None)) as reader:
        while not reader.finished:
            batch = reader.read_batch(20)
            rows += list(batch.values) if batch else []
    return rows
