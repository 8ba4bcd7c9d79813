"""The queries of `examples/nexmark/sql.py` answer as plain Python does of the same events."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

import gearpy as gp
from gearpy.testing import EpochFaults, MemoryTransactions, Simulation
from tests.examples.nexmark_answers import (
    ANSWERS,
    last_of,
    seller_prices_by_bid,
    site_of,
    sums_of,
)
from tests.examples.program_modules import modules_of
from tests.examples.test_nexmark import FOLDER, IN_ORDER, OUT_OF_ORDER

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_QUERIES: Final = (
    *("q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q11", "q12", "q13"),
    *("q14", "q15", "q16", "q17", "q18", "q19", "q20", "q21", "q22"),
)


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, Any]]:
    with modules_of(FOLDER, ("events", "columns", "sql")) as modules:
        yield modules


def rows_of(query: str, answers: list[dict[str, Any]]) -> Any:
    """Return rows as the right answers have them; of running answers the last of each key."""
    if query == "q1":
        names = ("auction", "bidder", "price", "channel", "time_ms", "url")
        answers = [{name: row[name] for name in names} for row in answers]
    rows = [
        tuple(
            (cell - _EPOCH) // timedelta(milliseconds=1) if isinstance(cell, datetime) else cell
            for cell in row.values()
        )
        for row in answers
    ]
    match query:
        case "q4" | "q6":
            return last_of(rows)
        case "q7":
            rows = [(None, *row) for row in rows]
        case "q9":
            rows = list({row[0]: row for row in rows}.values())
        case "q12":
            return sums_of(rows)
        case "q18":
            rows = list({row[:2]: row for row in rows}.values())
        case "q19":
            rows = list({(row[0], row[2]): row[:2] for row in rows}.values())
    return Counter(rows)


def test_every_query_is_checked(modules: dict[str, Any]) -> None:
    assert tuple(modules["sql"].SQL) == _QUERIES


@pytest.mark.parametrize("query", _QUERIES)
def test_answers_are_those_of_plain_python(query: str, modules: dict[str, Any]) -> None:
    """Also out of order, of several partitions."""
    for settings in (IN_ORDER, OUT_OF_ORDER):
        events = 3025 if query == "q2" else 525
        nexmark = modules["events"].Nexmark(events=events, **settings)
        app, answers = gp.StreamApp(query), list[dict[str, Any]]()
        modules["sql"].answers_of(query, app, nexmark).write(gp.to_list(answers))

        Simulation(app).run()

        right = seller_prices_by_bid if query == "q6" else ANSWERS[query][0]
        assert rows_of(query, answers) == right(site_of(nexmark))


@pytest.mark.parametrize(
    "query",
    ["q3", "q5", *(pytest.param(each, marks=pytest.mark.long) for each in ("q9", "q11", "q16"))],
)
def test_answers_survive_crashes(query: str, modules: dict[str, Any]) -> None:
    """Each answer comes once: a query has the guarantees of the steps that it becomes."""
    nexmark = modules["events"].Nexmark(events=525, **OUT_OF_ORDER)
    app, sink = gp.StreamApp(query), MemoryTransactions()
    modules["sql"].answers_of(query, app, nexmark).write(sink)
    faults = EpochFaults(store_ms=5, commit_ms=5, given_up=0.2, commits_lost=0.2)

    simulation = Simulation(
        app, seed=5, cut_every_ms=4, crash_at_ms=[8, 16], faults=faults, may_miss=True
    ).run()

    right, _ = ANSWERS[query]
    assert simulation.crashes == 2
    assert rows_of(query, sink.values) == right(site_of(nexmark))
