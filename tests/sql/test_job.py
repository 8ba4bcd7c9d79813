"""Whole files of SQL: connectors by name, views, sinks, and what is wrong in them."""

from pathlib import Path

import pytest

import gearpy as gp
from gearpy.errors import ConfigError
from gearpy.sql.job import Job
from gearpy.sql.parse.tokens import SqlText
from gearpy.testing import Simulation

_SALES = "shop,price,at\nnorth,3,2026-01-01T00:00:01Z\nsouth,4,2026-01-01T00:00:02Z\n"
_SINK = "create sink a with (connector = 'console')"


def job(text: str) -> Job:
    return Job(SqlText(text, "job.sql"), gp.StreamApp("job"), {})


@pytest.mark.parametrize("connector", ["csv", "files"])
def test_rows_go_from_sources_over_views_to_sinks(tmp_path: Path, connector: str) -> None:
    """Options are arguments; an interval is a duration."""
    (tmp_path / "sales.csv").write_text(_SALES)
    made = job(
        f"""
        create source sales (shop text, price bigint, at timestamp) with (
            connector = '{connector}', path = '{tmp_path}/sales.csv', time = 'at',
            out_of_order = interval '5' seconds
        );
        create sink "out" with (connector = 'jsonl', path = '{tmp_path}/out', prefix = 'x');
        create view dear as select * from sales where price > 3; -- of all shops
        insert into "out" select shop, window_start, sum(price) as total
        from tumble(table dear, descriptor(at), interval '10' seconds) group by shop, window_start;
        """
    )
    Simulation(made.app).run()

    (written,) = (tmp_path / "out").glob("x*.jsonl")
    assert written.read_text() == (
        '{"shop":"south","window_start":"2026-01-01T00:00:00+00:00","total":4}\n'
    )


def test_a_source_of_a_job_is_read_once_and_may_be_a_table(tmp_path: Path) -> None:
    """A stream without end is joined with all of a source that ends."""
    (tmp_path / "sales.csv").write_text(_SALES)
    made = job(
        f"""
        create source sales with (connector='csv', path='{tmp_path}/sales.csv', time='at',
            follow=true, late = 'drop');
        create source shops with (connector='csv', path='{tmp_path}/sales.csv');
        with s as (select * from shops) select count(*) from s join shops using (shop);
        select sales.shop, shops.price from sales join shops using (shop);
        explain select shop from sales union all select shop from sales;
        """
    )

    assert [is_plan for _, is_plan in made.answers] == [False, False, True]
    reads = [step.name for step in made.app.plan if step.kind == "read"]
    assert sorted(name for name in reads if name != "no record") == ["sales", "shops"]
    assert any(step.kind == "join_table" for step in made.app.plan)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("create source a with (path = 'x')", "a has no connector"),
        ("create source a with (connector = 'parqet')", "did you mean parquet?"),
        ("create source a with (connector = 'csv', path = 'x', tine = 'at')", "did you mean time?"),
        ("create source a with (connector = 'csv')", "at job.sql, line 1, column 1"),
        ("create source a with (connector = 'jsonl_folder', path = 'x')", "makes a sink"),
        ("create sink a with (connector = 'stdin')", "makes a source"),
        (f"{_SINK}; {_SINK}", "is there already"),
        ("insert into a select 1 from b", "there is no sink 'a'"),
        ("create table a (x int)", "expected SOURCE, SINK or VIEW"),
        ("create source a (x strng) with (connector = 'csv', path = 'x')", "did you mean string?"),
        ("drop view a", "a statement begins with"),
        ("create source a with (connector = 'csv', path = b)", "expected a text, number"),
    ],
)
def test_mistakes_have_their_place(text: str, words: str) -> None:
    """Also those of the functions that make connectors."""
    with pytest.raises(ConfigError) as caught:
        job(text)

    assert words in str(caught.value)
    assert "job.sql, line 1" in str(caught.value)
