"""``gear sql``: answers as tables and for programs, files of statements, plans."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gearpy.cli.main import app

_SALES = "shop,price,at\nnorth,3,2026-01-01T00:00:01Z\nsouth,,2026-01-01T00:00:02Z\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gearpy.cli.programs.sql.leave_out", lambda *_: None)  # For other tests.
    (tmp_path / "sales.csv").write_text(_SALES)


def gear(*args: str) -> Result:
    return CliRunner().invoke(app, args)


@pytest.mark.smoke
def test_an_answer_is_a_table_or_lines_for_programs() -> None:
    """Nulls can be told from texts."""
    query = "select shop, price, at, price > 2 as dear from 'sales.csv' order by shop"
    table, csv = gear("sql", query), gear("sql", query, "--format", "csv", "--limit", "1")

    assert table.stdout.splitlines() == [
        "shop   price  at                   dear",
        "north      3  2026-01-01 00:00:01  true",
        "south   null  2026-01-01 00:00:02  null",
    ]
    assert csv.stdout.splitlines() == [
        "shop,price,at,dear",
        "north,3,2026-01-01 00:00:01,true",
    ]


def test_a_file_of_statements_is_a_program(tmp_path: Path) -> None:
    """``gear run`` and ``gear plan`` take it, too."""
    (tmp_path / "job.sql").write_text(
        "create sink found with (connector = 'jsonl', path = 'found');\n"
        "insert into found select shop from 'sales.csv';\n"
        "select count(*) as n from 'sales.csv'"
    )
    answered, ran, planned = gear("sql", "job.sql"), gear("run", "job.sql"), gear("plan", "job.sql")

    assert answered.stdout.split() == ["n", "2"]
    assert len([*(tmp_path / "found").glob("*.jsonl")]) == 2
    assert ran.exit_code == 0
    assert planned.stdout.startswith("job: ")


def test_a_plan_is_shown_and_mistakes_are_told() -> None:
    """The exit code of wrong use."""
    plan, wrong = gear("sql", "explain select shop from 'sales.csv'"), gear("sql", "selct 1")

    assert "select(shop" in plan.stdout
    assert wrong.exit_code == 2
    assert "did you mean select?" in wrong.stderr
    assert (
        gear("sql", "no.sql").stderr == "error: no.sql cannot be read: No such file or directory\n"
    )
