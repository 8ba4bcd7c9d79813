"""What ``gear top`` draws."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console, RenderableType

from gearpy.cli.apps.screen import ORDERS, application_screen, bar, overview_screen, spark
from gearpy.ids import AppId, WorkerId
from gearpy.messages.client import FiringAlert
from gearpy.messages.metrics import ApplicationEvent
from gearpy.messages.summaries import WorkerSummary
from gearpy.views.app import app_view
from gearpy.views.model import AppView, Headline
from gearpy.views.overview import overview_view, row_of
from tests.views.build import NOW_MS, a_look, a_summary


def drawn(screen: RenderableType, width: int = 80) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(screen)
    return [line.rstrip() for line in capture.get().splitlines()]


def a_view(**changes: Any) -> AppView:
    """Return a running application; ``rates`` are those of its processors."""
    view = app_view(a_look())
    figures = zip(changes.pop("rates", [1.0, 2.0, 3.0]), (0.2, 0.97, 0.1), strict=True)
    processors = tuple(
        replace(each, records_in_rate=rate, records_out_rate=rate, busy=busy)
        for each, (rate, busy) in zip(view.processors, figures, strict=True)
    )
    return replace(view, processors=processors, **changes)


def names_of(lines: list[str]) -> list[str]:
    known = ("orders", "join", "to_spark")
    return [name for line in lines for name in known if line.lstrip("! ").startswith(name)]


def test_an_application_fits_80_columns() -> None:
    headline = Headline(level="warn", text="join is slow", advice="make it fast", processor=1)
    view = a_view(
        headline=headline,
        rates=[48_200.0, 900.0, 3.2],
        alerts=(
            FiringAlert(
                app_id=AppId(7),
                name="revenue",
                rule="restarts",
                level="warn",
                since_ms=NOW_MS,
                text="3 in 5 m",
            ),
        ),
        events=(ApplicationEvent(at_ms=NOW_MS, kind="restart", text="executor 2 restarted"),),
    )

    lines = drawn(application_screen(view, width=80))

    assert lines[0].startswith("revenue  active  application 7 · 1 m 00 s · 1 executor, 4 tasks")
    assert lines[1:3] == ["! join is slow", "  make it fast"]
    assert any("orders" in line and "48.2 k/s" in line and "20 %" in line for line in lines)
    assert [line[:6] for line in lines[3:] if line.startswith("!")] == ["!  joi", "! what"]
    assert "restarts: 3 in 5 m" in lines
    assert lines[-1] == "2027-01-15T08:00:00Z  executor 2 restarted"
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("flow", ["orders", "join", "to_spark"]),
        ("rate", ["to_spark", "join", "orders"]),
        ("busy", ["join", "orders", "to_spark"]),
    ],
)
def test_processors_are_sorted_as_wished(order: str, names: list[str]) -> None:
    assert names_of(drawn(application_screen(a_view(), width=80, order=order))) == names


@pytest.mark.parametrize("order", ORDERS)
def test_what_is_not_known_is_left_out(order: str) -> None:
    bare = drawn(application_screen(app_view(a_look(detail=None)), width=80, order=order))
    counts = drawn(application_screen(app_view(a_look()), width=80, order=order))

    assert not names_of(bare)
    assert sorted(names_of(counts)) == ["join", "orders", "to_spark"]
    assert "busy" not in "".join(counts)


def test_a_wide_terminal_shows_how_rates_have_moved() -> None:
    view = a_view()
    first, *others = view.processors
    wide = replace(view, processors=(replace(first, rates=(1.0, 2.0, 4.0)), *others))

    assert any("▃▅█" in line for line in drawn(application_screen(wide, width=120), 120))


def test_a_cluster_shows_its_applications_and_what_is_wrong_with_them() -> None:
    ended = app_view(a_look(summary=a_summary(status="failed", app_id=3), detail=None))
    worker = WorkerSummary(worker_id=WorkerId(0), slots=8, free_slots=3)
    view = overview_view(
        at_ms=NOW_MS,
        cluster_id="k3f9",
        version="1",
        rows=[row_of(ended), row_of(a_view())],
        workers=[worker],
    )

    lines = drawn(overview_screen(view, width=80))

    assert lines[0] == "cluster k3f9 · 1 worker · 5 of 8 slots in use · 1 living application"
    assert [line.split()[0] for line in lines[3:]] == ["7", "3"]
    assert "✓ nothing holds the clock" in lines[3]
    assert "✗ it has failed: no cause" in lines[4]


def test_an_empty_cluster_says_how_to_start() -> None:
    view = overview_view(at_ms=NOW_MS, cluster_id="k3f9", version="1", rows=[])

    assert "gear app submit" in drawn(overview_screen(view, width=80))[-1]


@given(st.one_of(st.none(), st.floats(-1, 2)))
def test_a_bar_is_always_as_wide(part: float | None) -> None:
    assert len(bar(part)) == 8


@given(st.lists(st.floats(0, 1e12)))
def test_a_sparkline_has_a_block_for_each_value(values: list[float]) -> None:
    assert len(spark(values)) == len(values)
    assert ("█" in spark(values)) == (max(values, default=0) > 0)


def test_foreign_text_cannot_steer_the_terminal() -> None:
    lines = drawn(application_screen(a_view(name="a\x1b[2Jb"), width=80))

    assert lines[0].startswith("a\\x1b[2Jb")
