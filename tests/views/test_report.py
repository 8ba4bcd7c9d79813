"""The report of a run, as one HTML file."""

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.ids import AppId
from gearpy.messages.client import QuarantinedRecord
from gearpy.messages.metrics import ApplicationEvent, SeriesData
from gearpy.messages.summaries import ConsumerReport, ConsumerSummary, ErrorCard, Failure
from gearpy.views.app import app_view, processor_view
from gearpy.views.model import AlertView
from gearpy.views.report import Report, report_html
from tests.views.build import NOW_MS, a_detail, a_look, a_summary

CARD = ErrorCard(
    cause="ValueError: n/a is no price",
    operator="map(price)",
    task="1.0",
    source="shop.py:12",
    source_line="return float(order['price'])",
    record="{'price': 'n/a'}",
    traceback="Traceback (most recent call last):\n  ...",
)


class Seen(HTMLParser):
    """Collects what a file has: its elements, its texts, and all that it would load or run."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.loads: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        if tag not in {"meta", "br"}:
            self.open.append(tag)
        self.loads += [
            name for name, _ in attrs if name in {"src", "href"} or name.startswith("on")
        ]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def a_report(**changes: Any) -> Report:
    look = a_look()
    views = [processor_view(look, number) for number in range(3)]
    known = {
        "view": app_view(look),
        "cluster_id": "k3f9",
        "processors": [each for each in views if each is not None],
        **changes,
    }
    return Report(**known)


def seen(**changes: Any) -> Seen:
    return Seen(report_html(a_report(**changes)))


def test_a_report_says_what_it_is_about() -> None:
    texts = seen(config={"streaming.batch-max-records": "100"}).texts

    for words in ("revenue ", "active", "orders", "to_spark", "orders -> to_spark: exactly-once"):
        assert words in texts
    assert any(each.startswith("nothing holds the clock") for each in texts)
    assert texts[texts.index("streaming.batch-max-records") + 1] == "100"


def test_it_loads_and_runs_nothing() -> None:
    found = seen()

    assert "script" not in found.elements
    assert found.loads == []
    assert found.open == []


@given(st.text(), st.text())
def test_text_of_users_is_text(name: str, record: str) -> None:
    card = replace(CARD, record=f"<script>{record}</script>")
    view = replace(
        app_view(a_look()), name=name, failures=(Failure(at_ms=1, what=name, error=card),)
    )

    found = seen(view=view)

    assert "script" not in found.elements
    assert found.open == []


def test_errors_have_their_step_line_record_and_traceback() -> None:
    """Those that were survived, and the one that was not."""
    summary = a_summary(status="failed", cause=CARD, finished_ms=NOW_MS)
    detail = a_detail(failures=(Failure(at_ms=NOW_MS, what="task 1.0", error=CARD),))

    texts = seen(view=app_view(a_look(summary=summary, detail=detail))).texts

    assert texts.count("ValueError: n/a is no price") == 2
    assert texts.count("{'price': 'n/a'}") == 2
    assert any("Traceback" in each for each in texts)
    assert any(each.startswith("it has failed: map(price)") for each in texts)


def test_charts_have_the_newest_values_and_events() -> None:
    """Charts of what is not known are left out."""
    event = ApplicationEvent(at_ms=1_500, kind="restart", text="executor 2 restarted")
    series = SeriesData(
        app_id=AppId(7),
        at_ms=(1_000, 2_000),
        records_in_rate=(1.0, 48_200.0),
        records_out_rate=(None, 2.0),
        latency_p50_ms=(None, None),
        latency_p99_ms=(None, None),
        watermark_lag_ms=(10.0, None),
        epoch_ms=(None, None),
        epoch_bytes=(None, None),
        events=(event,),
    )

    found = seen(series=series)

    assert "48.2 k" in found.texts
    assert "Throughput, /s" in found.texts
    assert "Watermark lag, ms" in found.texts
    assert "Latency, ms" not in found.texts
    assert "executor 2 restarted" in " ".join(found.texts)


def test_what_else_is_known_is_there() -> None:
    """Alerts, consumers, quarantine; and what could not be got."""
    alert = AlertView(rule="restarts", level="warn", since_ms=NOW_MS, text="3 in 10 minutes")
    consumer = ConsumerSummary(
        sink="to_spark", task="2.0", report=ConsumerReport(name="spark", rows=5, trouble="away")
    )
    view = replace(app_view(a_look()), alerts=(alert,), consumers=(consumer,))
    record = QuarantinedRecord(
        number=3, processor_id=1, value=b"", event_time_ms=0, error=CARD, at_ms=NOW_MS
    )

    texts = seen(view=view, quarantined=[record], missing=["charts: nobody has them"]).texts

    for words in ("restarts: 3 in 10 minutes", "spark", "away", "3", "charts: nobody has them"):
        assert words in texts


@pytest.mark.parametrize(
    "answers", [{"detail": None}, {"detail": a_detail(processors=(), edges=())}]
)
def test_an_application_of_which_little_is_known_has_a_report(answers: dict[str, Any]) -> None:
    """It has ended, or has just begun."""
    texts = seen(view=app_view(a_look(**answers)), processors=()).texts

    assert "revenue " in texts
    assert "Processors" not in texts
