"""SQL over tables of state."""

import sys
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from gearpy.cluster.states.query import query
from gearpy.errors import ConfigError

VISITS = pa.table({"key": ["ada", "bob"], "value": [3, 1]})
PAGES = pa.table({"key": ["ada", "ada"], "value": [{"page": "home"}, {"page": "cart"}]})


def test_one_table_is_called_state() -> None:
    found = query({"visits": VISITS}, "select key from state where value > 1")

    assert found.to_pylist() == [{"key": "ada"}]
    assert query({"visits": VISITS}, "select sum(value) as n from visits").to_pylist() == [{"n": 4}]


def test_several_states_of_a_step_can_be_joined() -> None:
    sql = "select p.value.page, v.value from visits v join pages p using (key) order by all"

    found = query({"visits": VISITS, "pages": PAGES}, sql)

    assert found.to_pylist() == [{"page": "cart", "value": 3}, {"page": "home", "value": 3}]


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("select * from stat", r'refused: .*stat.*tables are "state", "visits"'),
        ("selec", "refused: .*syntax"),
        ("select * from VISITS where nobody = 1", "nobody"),
    ],
)
def test_a_query_that_is_refused_says_which_tables_there_are(sql: str, told: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){told}"):
        query({"visits": VISITS}, sql)


def test_a_query_sees_nothing_but_the_tables(tmp_path: Path) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("a\n1\n")
    places = ("'{}'", "PAGES", "read_csv('{}')")
    for sql in [f"from {each.format(file)}" for each in places] + [f"copy state to '{file}'"]:
        with pytest.raises(ConfigError, match="the query is refused"):
            query({"visits": VISITS}, sql)
    assert file.read_text() == "a\n1\n"


def test_without_duckdb_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)

    with pytest.raises(ConfigError, match=r"SQL needs duckdb, .*pip.* install .*\[sql\]"):
        query({"visits": VISITS}, "select 1")
