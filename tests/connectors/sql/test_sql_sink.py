"""A table of any database, real ones, has each record once."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

import duckdb
import pytest
import sqlalchemy as sa

import gearpy as gp
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.testing import Simulation, check_sink
from tests.connectors.databases import ask

#: Whoever is killed closes nothing.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def run(records: list[Any], sink: gp.Sink[Any]) -> None:
    app = gp.StreamApp("sql")
    app.read(gp.collection(records)).write(sink)
    gp.run(app)


@pytest.mark.parametrize("upsert", [(), ("n",)])
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_the_contract_of_a_sink_holds(url: str, name: str, upsert: tuple[str, ...]) -> None:
    """Kills at any line, zombies, lost commits; going back takes rows back where they are added."""
    check(url, name, upsert, seeds=2)


@pytest.mark.parametrize("url", ["duckdb", "mariadb", "postgres"], indirect=True)
def test_the_contract_holds_for_each_database(url: str, name: str) -> None:
    check(url, name, (), seeds=1)


@pytest.mark.long
@pytest.mark.parametrize("upsert", [(), ("n",)])
def test_the_contract_holds_for_each_database_and_its_upserts(
    url: str, name: str, upsert: tuple[str, ...]
) -> None:
    check(url, name, upsert, seeds=3)


def check(url: str, name: str, upsert: tuple[str, ...], *, seeds: int) -> None:

    def make(place: str) -> gp.Sink[Any]:
        table = f"{name}_{place}"
        return gp.sql_sink(url, table, upsert=upsert, schema={"n": int}, create=True)

    def read(place: str) -> list[dict[str, Any]]:
        try:
            return [{"n": n} for (n,) in ask(url, f"select n from {name}_{place}")]  # noqa: S608
        except (duckdb.CatalogException, sa.exc.DBAPIError):
            return []

    check_sink(make, read, bad={"n": "one"}, seeds=seeds, goes_back=not upsert)


class Sale(NamedTuple):
    id: int
    label: str


@dataclass
class Return:
    id: int
    label: str


ROW: Final = {
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


def test_values_come_as_they_are(url: str, name: str) -> None:
    """Twice: also into a table that is there by then."""
    for key in (1, 2):
        run(
            [ROW | {"id": key}, {"id": key * 10, "label": ""}],
            gp.sql_sink(url, name, upsert="id", create=True),
        )

    found = ask(url, f"select {', '.join(ROW)} from {name} order by id")  # noqa: S608
    assert [row[0] for row in found] == [1, 2, 10, 20]
    assert found[2][1:] == ("", *[None] * 7)
    for row in found[:2]:
        texts = [str(cell).replace("+00:00", "") for cell in row[3:5]]
        assert texts == ["2026-03-04 05:06:07.000089"] * 2
        assert (row[1], row[6], row[7]) == (ROW["label"], ROW["raw"], 0.1)
        assert (float(row[2]), bool(row[5]), str(row[8])) == (12.5, True, "2026-03-04")


def test_records_of_all_kinds_and_results_of_windows_make_their_table(url: str, name: str) -> None:
    run([Sale(1, "a"), Sale(1, "b")], gp.sql_sink(url, name, upsert="id", create=True))
    run([Return(2, "c")], gp.sql_sink(url, name, upsert=["id"]))
    run([{"id": 2}], gp.sql_sink(url, name, upsert=["id"], columns=["id"]))
    assert ask(url, f"select id, label from {name} order by id") == [(1, "b"), (2, "c")]  # noqa: S608

    app = gp.StreamApp("windows")
    numbers = app.read(gp.collection(range(10), timestamp=lambda n: n * 1000))
    counts = numbers.key_by(lambda n: n % 2).window(gp.tumbling("5s")).count()
    keys = ("parity", "window_start")
    counts.write(gp.sql_sink(url, f"{name}w", key="parity", create=True, upsert=keys))
    Simulation(app).run()
    found = ask(url, f"select parity, value from {name}w order by window_start, parity")  # noqa: S608
    assert found == [(0, 3), (1, 2), (0, 2), (1, 3)]


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"id": "x"}, "column 'id'"),
        ({"id": 2**70}, "id"),
        ({"id": None}, "column 'id' of sql.* must not be null"),
        ({"id": 1, "colour": "red"}, "colour"),
    ],
)
def test_a_record_that_does_not_fit_is_refused_when_it_comes(
    url: str, name: str, record: dict[str, Any], text: str
) -> None:
    ask(url, f"create table {name} (id bigint not null, label varchar(20))")

    with pytest.raises(OperatorError, match=text):
        run([{"id": 1}, record], gp.sql_sink(url, name))


MISTAKES: Final[dict[str, tuple[Callable[[str, str], gp.Sink[Any]], str]]] = {
    "table": (lambda url, name: gp.sql_sink(url, f"{name}x"), "there is no table sql.*x in"),
    "column": (
        lambda url, name: gp.sql_sink(url, name, columns=["nr"]),
        "has no column 'nr': it has id, label",
    ),
    "unique": (gp.sql_sink, "id"),
    "index": (lambda url, name: gp.sql_sink(url, name, upsert="label"), "(?i)conflict|unique"),
}


@pytest.mark.parametrize("mistake", sorted(MISTAKES))
def test_a_mistake_is_one_clear_error(url: str, name: str, mistake: str) -> None:
    if mistake == "index" and url.startswith("mariadb"):
        pytest.skip("MySQL takes any unique index")
    ask(url, f"create table {name} (id bigint primary key, label varchar(20))")
    ask(url, f"insert into {name} values (1, 'there')")  # noqa: S608
    make, text = MISTAKES[mistake]

    with pytest.raises(GearpyError, match=text) as caught:
        run([{"id": 5, "label": "fits"}, {"id": 1, "label": "again"}], make(url, name))

    assert "gearpy-password" not in str(caught.value)
    if mistake == "unique" and not url.startswith("duckdb"):
        assert f"table {name} in" in str(caught.value)
        assert "{'id': 1, 'label': 'again'}" in str(caught.value)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("nonsense", "this is no address of a database: write sqlite:///FILE"),
        ("oracle://h/d", "there is nothing here for 'oracle': take one of sqlite, duckdb"),
        ("sqlite://", "names no file, so its rows would be gone with the process"),
    ],
)
def test_addresses_are_checked_when_the_sink_is_made(address: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        gp.sql_sink(address, "t")
