"""Rows of tables of any database, real ones, are read in order, each once."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, cast

import pytest

import gearpy as gp
from gearpy.connectors.sql.source import SqlReader
from gearpy.errors import ConfigError, OperatorError
from gearpy.task.api.readers import SourceReader
from gearpy.testing import Simulation, check_source
from tests.connectors.databases import ask
from tests.connectors.sql.conftest import DATABASES
from tests.eventually import eventually
from tests.servers.postgres import PostgresAddress

#: Whoever is killed closes nothing.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def make_table(url: str, name: str) -> None:
    """Make one of 60 rows; of each three the rank is the same."""
    ask(url, f"create table {name} (id int primary key, rank_nr int, made timestamp)")
    rows = ", ".join(f"({n}, {n // 3}, '2026-01-01 00:00:{n - 1:02}')" for n in range(1, 61))
    ask(url, f"insert into {name} values {rows}")  # noqa: S608


@pytest.fixture
def table(url: str, name: str) -> str:
    make_table(url, name)
    return name


def read(source: gp.Source[Any]) -> list[dict[str, Any]]:
    app, results = gp.StreamApp("sql"), list[Any]()
    app.read(source).write(gp.to_list(results))
    gp.run(app)
    return results


def test_columns_that_are_taken_are_read_alone(tmp_path: Path, name: str) -> None:
    """With those that order the rows and tell their time; the plan says it."""
    url = f"sqlite:///{tmp_path}/some.db"
    ask(url, f"create table {name} (id int primary key, rank_nr int, made timestamp, other text)")
    ask(url, f"insert into {name} values (1, 7, '2026-01-01', 'x')")  # noqa: S608
    app, found = gp.StreamApp("some"), list[Any]()
    source = gp.sql_source(url, name, cursor="id")
    app.read(source).filter(gp.col("rank_nr") > 3).select("rank_nr").write(gp.to_list(found))
    Simulation(app).run()
    narrowed = source.narrowed(["made"], [])

    assert found == [{"rank_nr": 7}]
    assert read(narrowed) == [{"id": 1, "made": datetime(2026, 1, 1, tzinfo=UTC)}]
    assert "reads id, made alone" in narrowed.note
    assert gp.sql_source(url, name, cursor="id", on_bad="skip").narrowed(["made"], []).note == ""


OPTIONS: Final[list[dict[str, Any]]] = [
    {"cursor": ["rank_nr", "id"], "time": "made"},
    {"follow": True, "time": "made", "every": "20ms", "lag": "1ms"},
    {},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_the_contract_of_a_source_holds(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    url = f"sqlite:///{tmp_path}/contract.db"
    make_table(url, name)
    check(url, name, options)


@pytest.mark.long
def test_the_contract_holds_for_each_database(url: str, table: str) -> None:
    check(url, table, OPTIONS[0])


def check(url: str, table: str, options: dict[str, Any]) -> None:
    records = 60 if "follow" in options else None
    check_source(lambda: gp.sql_source(url, table, **options), records=records, seeds=1)


def test_values_come_as_they_were_written(url: str, name: str) -> None:
    row = {
        "id": 2**40,
        "label": "a,\"b'\\\n\N{SNOWMAN}%(x)s :y ?",
        "price": Decimal("12.50"),
        "made": datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC),
        "plain": datetime(2026, 3, 4, 5, 6, 7, 89),  # noqa: DTZ001 - one without a zone
        "flag": True,
        "raw": b"\x00\xff",
        "share": 0.1,
        "day": date(2026, 3, 4),
    }
    app = gp.StreamApp("write")
    rows = [row, {"id": 1, "label": ""}]
    app.read(gp.collection(rows)).write(gp.sql_sink(url, name, upsert="id", create=True))
    Simulation(app).run()

    assert read(gp.sql_source(url, name)) == [{**dict.fromkeys(row), **rows[1]}, row]
    assert read(gp.sql_source(url, name, cursor="id", columns=["flag"]))[1] == {
        "flag": True,
        "id": 2**40,
    }


def test_a_query_is_read_with_its_schema(url: str, table: str) -> None:
    cast = "cast(id as char(2))" if url.startswith("mariadb") else "cast(id as text)"
    query = f"select id, {cast} as name, '50%' as part, ':x' as colon from {table} where id > 57;"  # noqa: S608
    source = gp.sql_source(url, query, schema={"id": int, "name": str, "part": str, "colon": str})

    part = {"part": "50%", "colon": ":x"}
    assert read(source) == [{"id": n, "name": str(n), **part} for n in (58, 59, 60)]


def test_a_column_that_a_schema_makes_up_is_an_error(url: str, table: str) -> None:
    """SQLite would take its name for a text."""
    query = f"select id from {table}"  # noqa: S608
    for name in (table, query):
        with pytest.raises(OperatorError, match="colour"):
            read(gp.sql_source(url, name, schema={"id": int, "colour": str}))


class Polled:
    """A reader of a clock that is told, and what it gave."""

    def __init__(self, source: gp.Source[Any], place: Any = None) -> None:
        self.now_ms = 0
        self.reader: SourceReader[Any] = source.open("0", place)
        assert isinstance(self.reader, SqlReader)
        self.reader._now_ms = lambda: self.now_ms  # noqa: SLF001 - its clock
        self.seen: list[int] = []

    def at(self, now_ms: int) -> list[int]:
        self.now_ms = now_ms
        while (batch := self.reader.read_batch(40)) is not None:
            self.seen += [row["id"] for row in batch.values]
        return self.seen


def test_rows_that_come_later_are_followed_from_where_a_reader_was(url: str, table: str) -> None:
    source = gp.sql_source(url, table, follow=True, columns=["id"])
    polled = Polled(source)
    assert polled.at(0) == list(range(1, 61))
    ask(url, f"insert into {table} values (62, 1, null)")  # noqa: S608
    assert polled.at(999)[60:] == []
    assert polled.at(1000)[60:] == [62]
    place = polled.reader.snapshot()
    ask(url, f"insert into {table} values (61, 1, null), (63, 1, null)")  # noqa: S608
    polled.reader.close()

    again = Polled(source, place)
    assert again.at(0) == [63], "61 came too late"
    again.reader.close()


@pytest.mark.parametrize("follow", [False, True])
def test_with_lag_rows_that_are_committed_late_are_read(
    url: str, table: str, *, follow: bool
) -> None:
    polled = Polled(gp.sql_source(url, table, follow=follow, lag="500ms", columns=["id"]))
    ask(url, f"delete from {table} where id = 7")  # noqa: S608
    assert polled.at(0) == []
    ask(url, f"insert into {table} values (7, 1, null)")  # noqa: S608
    assert polled.at(499) == []
    assert polled.at(1000) == list(range(1, 61))
    assert polled.reader.finished is not follow
    ask(url, f"insert into {table} values (62, 1, null)")  # noqa: S608
    assert polled.at(2000)[60:] == []
    ask(url, f"insert into {table} values (61, 1, null)")  # noqa: S608
    assert polled.at(3000)[60:] == ([61, 62] if follow else [])
    polled.reader.close()


def test_a_run_until_caught_up_goes_on_in_the_next(url: str, table: str, tmp_path: Path) -> None:
    results: list[Any] = []

    def run() -> list[int]:
        app = gp.StreamApp("sql")
        app.read(gp.sql_source(url, table, follow=True)).write(gp.jsonl_folder(tmp_path / "out"))
        gp.run(app, checkpoint=tmp_path / "run", until="caught-up")
        results[:] = read(gp.jsonl(tmp_path / "out"))
        return sorted(row["id"] for row in results)

    assert run() == list(range(1, 61))
    ask(url, f"insert into {table} values (61, 1, null)")  # noqa: S608
    assert run() == list(range(1, 62))


def test_two_rows_of_one_cursor_are_refused(url: str, table: str) -> None:
    """By the keys that the table tells; of a view, where both are read."""
    with pytest.raises(ConfigError, match=r"may have the same rank_nr.*cursor=\['rank_nr', 'id'\]"):
        read(gp.sql_source(url, table, cursor="rank_nr"))

    ask(url, f"create view {table}v as select id, rank_nr from {table}")  # noqa: S608
    assert len(read(gp.sql_source(url, f"{table}v"))) == 60
    with pytest.raises(OperatorError, match=r"has two rows with rank_nr=0.*add a column to cursor"):
        read(gp.sql_source(url, f"{table}v", cursor="rank_nr"))


MISTAKES: Final[dict[str, tuple[Callable[[str, str], gp.Source[Any]], str]]] = {
    "table": (lambda url, name: gp.sql_source(url, f"{name}x"), r"there is no table sql\w+x in"),
    "column": (
        lambda url, name: gp.sql_source(url, name, columns=["nr"]),
        "has no column 'nr': it has id, rank_nr, made",
    ),
    "cursor": (lambda url, name: gp.sql_source(url, name, cursor="nr"), "by='nr' is no column"),
    "time": (lambda url, name: gp.sql_source(url, name, time="when"), "when"),
    "query": (lambda url, _: gp.sql_source(url, "select 1 as id"), "give schema="),
    "every": (lambda url, name: gp.sql_source(url, name, every="0s"), "must be more than 0"),
    "unit": (lambda url, name: gp.sql_source(url, name, lag=cast("Any", 5)), "lag 5 has no unit"),
    "no table": (lambda url, _: gp.sql_source(url, cast("Any", None)), "query_or_table is None"),
    "no cursor": (
        lambda url, name: gp.sql_source(url, name, cursor=cast("Any", None)),
        "cursor is None, must be the name of a column",
    ),
    "number": (
        lambda url, name: gp.sql_source(url, name, columns=cast("Any", ["id", 5])),
        r"columns is \['id', 5\], must be the name of a column, or a list",
    ),
    "no address": (
        lambda _, name: gp.sql_source(cast("Any", None), name),
        "this is no address of a database",
    ),
    "empty": (lambda url, _: gp.sql_source(url, " "), "name a table"),
    "address": (
        lambda _, name: gp.sql_source("nonsense", name),
        "this is no address of a database",
    ),
    "file": (
        lambda _, name: gp.sql_source("sqlite:////no/such.db", name),
        "there is no file /no/such.db",
    ),
}


#: For the others no database is asked, so one is as good as all.
_ASKED: Final = ("table", "column", "cursor", "time", "query")


@pytest.mark.parametrize(
    ("url", "mistake"),
    [
        *[(each, mistake) for mistake in _ASKED for each in DATABASES],
        *[("sqlite", mistake) for mistake in MISTAKES if mistake not in _ASKED],
    ],
    indirect=["url"],
)
def test_a_mistake_is_found_when_the_program_is_built(url: str, table: str, mistake: str) -> None:
    make, text = MISTAKES[mistake]

    def build() -> None:
        app = gp.StreamApp("mistake")
        app.read(make(url, table)).write(gp.to_list([]))
        app.build()

    with pytest.raises(ConfigError, match=text):
        build()


def test_sqlite_has_values_that_are_not_of_their_column(tmp_path: Path) -> None:
    """Times are texts of more than one form; what is none is a bad row, by on_bad."""
    url = f"sqlite:///{tmp_path}/odd.db"
    with closing(sqlite3.connect(tmp_path / "odd.db")) as database:
        database.execute("create table odd (at datetime, id integer, n integer, flag boolean)")
        database.executemany(
            "insert into odd values (?, ?, ?, ?)",
            [
                ("2026-01-01 00:00:00", 1, 1, 1),
                ("2026-01-01 00:00:00.5", 2, "two", 1),
                ("2026-01-01T00:00:00", 3, 3, 7),
                ("2026-01-01T00:00:01Z", 4, 4, 0),
                (1767225602, 5, 5, None),
                (None, 6, 6, None),
            ],
        )
        database.commit()
    source = gp.sql_source(url, "odd", cursor=["at", "id"], time="at", on_bad="side")
    with closing(source.open("0", None)) as reader:
        batch = reader.read_batch(1)
        good, bad = [row["id"] for row in batch.values] if batch else [], list(reader.take_bad())
        place = reader.snapshot()
    with closing(source.open("0", place)) as reader:
        while not reader.finished:
            batch = reader.read_batch(1)
            good += [row["id"] for row in (batch.values if batch else ())]
            bad += reader.take_bad()

    assert good == [1, 4], "the one without a cursor is left out"
    assert [each.error[:14] for each in bad] == [
        "column 'at': 1",
        "column 'n': Co",
        "column 'flag':",
    ]
    with pytest.raises(OperatorError, match=r"odd, row at=.*, id=5: column 'at'.* is no time"):
        read(gp.sql_source(url, "odd", cursor=["at", "id"]))


def test_while_a_file_of_duckdb_is_taken_the_source_waits(tmp_path: Path) -> None:
    import duckdb  # noqa: PLC0415 - of one test

    url = f"duckdb:///{tmp_path}/shop.db"
    ask(url, "create table orders as select range as id from range(3)")
    polled = Polled(gp.sql_source(url, "orders"))
    with duckdb.connect(f"{tmp_path}/shop.db"):
        assert polled.at(0) == []
        assert "shop.db" in polled.reader.waits_for
    eventually(lambda: polled.at(polled.now_ms + 1000) == [0, 1, 2])


def test_postgres_has_times_that_python_lacks(postgres: PostgresAddress, name: str) -> None:
    """A row with one is a bad row, by on_bad; also where it is the cursor."""
    ask(
        postgres.url,
        f"create table {name} (id int primary key, at timestamp, day date, moment timestamptz, "
        "price numeric(9, 2))",
    )
    plain = "'2026-01-01', '2026-01-01', '2026-01-01Z', 1"
    odd = {
        2: plain.replace("'2026-01-01'", "'infinity'", 1),
        4: plain.replace("'2026-01-01', '2026-01-01Z'", "'0044-03-15 BC', '2026-01-01Z'"),
        5: plain.replace("'2026-01-01Z'", "'10000-01-01Z'"),
        6: plain.removesuffix("1") + "'NaN'",
        7: plain.replace("'2026-01-01'", "'-infinity'", 1),
    }
    rows = ", ".join(f"({n}, {odd.get(n, plain)})" for n in range(1, 9))
    ask(postgres.url, f"insert into {name} values {rows}")  # noqa: S608

    for cursor in ("id", ["at", "id"]):
        source = gp.sql_source(postgres.url, name, cursor=cursor, on_bad="side")
        place: Any = None
        good, bad, ended = list[int](), list[str](), False
        while not ended:
            with closing(source.open("0", place)) as reader:
                batch = reader.read_batch(1)
                good += [row["id"] for row in (batch.values if batch else ())]
                bad += [each.error.partition(":")[0] for each in reader.take_bad()]
                place, ended = reader.snapshot(), reader.finished
        assert good == [1, 3, 8]
        names = ["at", "at", "day", "moment", "price"]
        assert sorted(bad) == [f"column {each!r}" for each in names]
    with pytest.raises(OperatorError, match=r"row id=2: column 'at': .*'infinity'"):
        read(gp.sql_source(postgres.url, name))


def test_duckdb_has_times_that_python_lacks(tmp_path: Path, name: str) -> None:
    url = f"duckdb:///{tmp_path}/odd.db"
    ask(url, f"create table {name} (id int primary key, made timestamp, day date)")
    ask(
        url,
        f"insert into {name} values (1, '2026-01-01', '2026-01-01'), "  # noqa: S608
        "(2, 'infinity', null), (3, null, '0044-03-15 (BC)'), (4, null, 'infinity'), "
        "(5, '2026-01-02', '2026-01-02')",
    )

    good = read(gp.sql_source(url, name, on_bad="skip"))
    assert [row["id"] for row in good] == [1, 5]
    with pytest.raises(OperatorError, match="row id=2: column 'made'"):
        read(gp.sql_source(url, name))
