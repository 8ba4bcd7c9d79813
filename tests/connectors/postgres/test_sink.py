"""A table of PostgreSQL, the real one, has each record once."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count, takewhile
from typing import Any, Final, LiteralString

import psycopg
import pytest
from psycopg import sql

import gearpy as gp
from gearpy.connectors.postgres.connection import PostgresAddress
from gearpy.connectors.postgres.writer import PostgresWriter
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.testing import check_sink
from tests.eventually import eventually
from tests.servers.postgres import Postgres
from tests.servers.postgres import PostgresAddress as ServerAddress

#: Whoever is killed closes nothing.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

_NUMBERS = count()
_LOCKS: Final = 3000  #: Batches; with a table for each there would be four as many locks.


@pytest.fixture
def database(postgres: ServerAddress) -> Iterator["psycopg.Connection[Any]"]:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def name() -> str:
    return f"sink{next(_NUMBERS)}"


def ask(database: "psycopg.Connection[Any]", text: LiteralString, name: str) -> list[Any]:
    cursor = database.execute(sql.SQL(text).format(sql.Identifier(name)))
    return cursor.fetchall() if cursor.description else []


def run(records: list[Any], sink: gp.Sink[Any]) -> None:
    app = gp.StreamApp("postgres")
    app.read(gp.collection(records)).write(sink)
    gp.run(app)


@pytest.mark.parametrize("upsert", [(), ("n",)])
def test_an_epoch_of_very_many_batches_fits_into_the_table_of_locks(
    postgres: ServerAddress, database: "psycopg.Connection[Any]", name: str, upsert: tuple[str, ...]
) -> None:
    """A slow stream has one record in each; a server has 64 locks for each of its connections."""
    writer = gp.postgres_sink(postgres.url, name, upsert=upsert, create=True).open(0, 1)
    assert isinstance(writer, PostgresWriter)
    writer.recover({}, epoch=0, run="locks", incarnation=1)
    for number in range(_LOCKS):
        writer.write_batch(gp.Batch([{"n": number % 7, "total": number}], [number]))
    writer.commit(1, writer.prepare(1))
    writer.close(completed=True)

    assert writer.failure is None
    assert writer.waits_for == ""
    rows = ask(database, "select n, total from {}", name)
    assert len(rows) == (7 if upsert else _LOCKS)
    assert max(rows) == (6, max(n for n in range(_LOCKS) if n % 7 == 6))


@pytest.mark.parametrize("upsert", [(), ("n",)])
def test_the_contract_of_a_sink_holds(
    postgres: ServerAddress, database: "psycopg.Connection[Any]", name: str, upsert: tuple[str, ...]
) -> None:
    """Kills at any line, zombies, lost commits; going back takes rows back where they are added."""

    def make(place: str) -> gp.Sink[Any]:
        table = f"{name}_{place}"
        return gp.postgres_sink(postgres.url, table, upsert=upsert, schema={"n": int}, create=True)

    def read(place: str) -> list[dict[str, Any]]:
        try:
            return [{"n": n} for (n,) in ask(database, "select n from {}", f"{name}_{place}")]
        except psycopg.errors.UndefinedTable:
            return []

    check_sink(make, read, bad={"n": "one"}, seeds=2, goes_back=not upsert)


ROW = {
    "id": 1,
    "name": "a,\"b'\\\n",
    "price": Decimal("12.50"),
    "at": datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC),
    "flag": True,
    "raw": b"\x00\xff",
    "doc": '{"a": [1, null]}',
    "share": 0.1,
}
TABLE: Final = """create table {} (id int primary key,
    name varchar(20) not null, price numeric(8,2), at timestamptz, flag bool,
    raw bytea, doc jsonb, share float8,
    made timestamptz default now())"""


def test_values_come_as_they_are(
    postgres: ServerAddress, database: "psycopg.Connection[Any]", name: str
) -> None:
    ask(database, TABLE, name)

    run([ROW, {"id": 2, "name": ""}], gp.postgres_sink(postgres.url, name))

    first, second = ask(database, "select *, made is null from {} order by id", name)
    assert first[:6] == (1, ROW["name"], ROW["price"], ROW["at"], True, ROW["raw"])
    assert (first[6], first[7], first[9]) == ({"a": [1, None]}, 0.1, False)
    assert second[:8] == (2, "", None, None, None, None, None, None)


def test_results_of_windows_make_their_table(
    postgres: ServerAddress, database: "psycopg.Connection[Any]", name: str
) -> None:
    app = gp.StreamApp("windows")
    numbers = app.read(gp.collection(range(10), timestamp=lambda n: n * 1000))
    counts = numbers.key_by(lambda n: n % 2).window(gp.tumbling("5s")).count()
    sink = gp.postgres_sink(
        postgres.url, name, key="parity", create=True, upsert=("parity", "window_start")
    )
    counts.write(sink)
    gp.run(app)

    rows = ask(database, "select parity, value from {} order by window_start, parity", name)
    assert rows == [(0, 3), (1, 2), (0, 2), (1, 3)]

    run(
        [{"id": 1, "v": 1}, {"id": 1, "v": 2}],
        gp.postgres_sink(postgres.url, f"{name}b", upsert="id", create=True),
    )
    assert ask(database, "select * from {}", f"{name}b") == [(1, 2)]


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({**ROW, "id": "x"}, "column 'id'"),
        ({**ROW, "id": 2**40}, "id"),
        ({**ROW, "name": None}, "name"),
        ({**ROW, "name": "x" * 21}, "column 'name' takes 20 characters, not 21"),
        ({**ROW, "name": "\0"}, "column 'name': a text with a NUL character: remove it"),
        ({**ROW, "doc": "{"}, "column 'doc' is jsonb, and '{' is none"),
        ({**ROW, "colour": "red"}, "colour"),
    ],
)
def test_a_record_that_does_not_fit_is_refused_when_it_comes(
    postgres: ServerAddress,
    database: "psycopg.Connection[Any]",
    name: str,
    record: dict[str, Any],
    text: str,
) -> None:
    ask(database, TABLE, name)

    with pytest.raises(OperatorError, match=text):
        run([ROW, record], gp.postgres_sink(postgres.url, name))


def test_while_the_server_is_away_the_stream_waits(own_postgres: Postgres) -> None:
    """It says so; when the server is back it goes on, and each row is there once."""
    url, server = own_postgres.address.url, own_postgres.server
    app, is_over = gp.StreamApp("away"), threading.Event()
    endless = gp.generate(lambda: takewhile(lambda _: not is_over.is_set(), count()), rate=400)
    numbers = app.read(endless)
    numbers.map(lambda n: {"n": n}).write(gp.postgres_sink(url, "numbers", create=True))

    with gp.start(app) as run:
        eventually(lambda: len(numbers_of(url)) > 100, within_s=120)
        server.kill()
        eventually(lambda: "postgres 127.0.0.1" in run.summary.progress.waits_for, within_s=120)
        server.start()
        shown = len(numbers_of(url))
        eventually(lambda: len(numbers_of(url)) > shown, within_s=120)
        is_over.set()
        assert run.wait(120).status == "succeeded"

    found = numbers_of(url)
    assert found == list(range(len(found)))


def numbers_of(url: str) -> list[int]:
    with psycopg.connect(url) as database:
        try:
            return [n for (n,) in ask(database, "select n from {} order by n", "numbers")]
        except psycopg.errors.UndefinedTable:
            return []


MISTAKES: dict[str, tuple[Callable[[str, str], gp.Sink[Any]], str]] = {
    "table": (lambda url, name: gp.postgres_sink(url, f"{name}x"), "there is no table sink.*x in"),
    "column": (
        lambda url, name: gp.postgres_sink(url, name, columns=["nr"]),
        "has no column 'nr': it has id, name",
    ),
    "password": (
        lambda url, name: gp.postgres_sink(url.replace("gearpy-password", "no"), name),
        "password authentication failed",
    ),
    "database": (
        lambda url, name: gp.postgres_sink(url.replace("/postgres", "/shop"), name),
        'database "shop" does not exist',
    ),
    "index": (
        lambda url, name: gp.postgres_sink(url, name, upsert="name"),
        "no unique or exclusion constraint",
    ),
}


@pytest.mark.parametrize("mistake", sorted(MISTAKES))
def test_a_mistake_is_one_clear_error(
    postgres: ServerAddress, database: "psycopg.Connection[Any]", name: str, mistake: str
) -> None:
    ask(database, TABLE, name)
    make, text = MISTAKES[mistake]

    with pytest.raises(GearpyError, match=text) as caught:
        run([ROW], make(postgres.url, name))

    assert "gearpy-password" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        ("connection refused", True),
        ("FATAL:  the database system is starting up", True),
        ("FATAL:  the database system is not yet accepting connections", True),
        ("FATAL:  the database system is not accepting connections", True),
        ("FATAL:  the database system is in recovery mode", True),
        ("FATAL:  the database system is shutting down", True),
        ("FATAL:  terminating connection due to administrator command", True),
        ("FATAL:  sorry, too many clients already", True),
        ('FATAL:  password authentication failed for user "ann"', False),
        ('FATAL:  database "shop" does not exist', False),
    ],
)
def test_a_server_that_will_take_connections_later_is_waited_for(
    said: str, *, passes: bool
) -> None:
    """It says so in several ways, each of them for a moment only."""
    address = PostgresAddress("sink", "postgresql://ann@localhost/shop")
    assert bool(address.trouble(psycopg.OperationalError(said))) is passes


def test_addresses_are_checked_when_the_sink_is_made() -> None:
    with pytest.raises(ConfigError, match="this is no address of a database: write postgresql://"):
        gp.postgres_sink("localhost:5432", "t")
    with pytest.raises(ConfigError, match=r"table is 'a.b.c': write 'table' or 'schema.table'"):
        gp.postgres_sink("postgresql://localhost", "a.b.c")
