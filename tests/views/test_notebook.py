"""HTML for notebooks: what it says, and that nothing of a user's gets out of its place."""

from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.ids import AppId
from gearpy.messages.summaries import ApplicationDetail, ApplicationSummary, ProcessorSummary
from gearpy.views.app import app_view
from gearpy.views.look import Look
from gearpy.views.notebook import app_html, mistakes_html, records_html

SCRIPT = "<script>alert('x')</script>"


class Page(HTMLParser):
    """Reads a page: its tags that were not closed, its texts, and the cells of its tables."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.open and self.open[-1] in {"td", "th"}:
            self.rows[-1][-1] += data


class Point(NamedTuple):
    x: int
    label: str


@dataclass
class Box:
    size: float


@pytest.mark.parametrize(
    ("records", "rows"),
    [
        ([1, 2], [["value"], ["1"], ["2"]]),
        ([{"a": 1}, {"b": "x"}], [["a", "b"], ["1", ""], ["", "x"]]),
        ([Point(1, "p")], [["x", "label"], ["1", "p"]]),
        ([Box(1.5)], [["size"], ["1.5"]]),
        ([], [[]]),
        (
            [gp.WindowResult("k", 3, 0, 1000)],
            [
                ["key", "value", "start", "end", "firing", "timing", "retracts"],
                ["k", "3", "1970-01-01T00:00:00Z", "1970-01-01T00:00:01Z", "0", "on-time", "False"],
            ],
        ),
    ],
    ids=["plain", "dicts", "tuples", "dataclasses", "none", "windows"],
)
def test_records_are_a_table(records: list[Any], rows: list[list[str]]) -> None:
    """A column for each field, or one of values; windows have times."""
    assert Page(records_html(records)).rows == rows


def test_a_long_table_is_cut() -> None:
    page = Page(records_html([{str(n): "x" * 1000 for n in range(30)}] * 150))

    assert len(page.rows) == 101
    assert {len(row) for row in page.rows} == {20}
    assert len(page.rows[1][0]) == 120
    assert page.texts[-1] == "50 more records, 10 more columns"


@given(
    st.recursive(
        st.text() | st.integers() | st.none(),
        lambda each: st.lists(each) | st.dictionaries(st.text(), each),
    )
)
def test_nothing_of_a_record_is_taken_for_html(value: Any) -> None:
    page = Page(records_html([value, {"name": value}]))

    assert not page.open
    assert page.tags == {"div", "table", "thead", "tbody", "tr", "th", "td"}


def test_nothing_of_an_application_is_taken_for_html() -> None:
    summary = ApplicationSummary(app_id=AppId(1), name=SCRIPT, status="active")
    detail = ApplicationDetail(
        app_id=AppId(1),
        processors=(ProcessorSummary(processor_id=0, name=SCRIPT, parallelism=1, clock_ms=None),),
    )

    for html in (
        app_html(app_view(Look(at_ms=1, summary=summary, detail=detail))),
        mistakes_html(SCRIPT, [SCRIPT]),
        records_html([SCRIPT]),
    ):
        assert "<script" not in html
        assert not Page(html).open


def test_an_application_shows_its_graph_and_why() -> None:
    summary = ApplicationSummary(app_id=AppId(1), name="words", status="succeeded")

    texts = " ".join(Page(app_html(app_view(Look(at_ms=1, summary=summary)))).texts)

    assert "words" in texts
    assert "it has come to its end" in texts
    assert "0 in · 0 out" in texts


def test_a_program_and_a_stream_show_their_plan() -> None:
    app = gp.StreamApp("words")
    stream = app.read(gp.collection(["a b"])).flat_map(str.split)
    counts = stream.key_by(str).count()
    counts.write(gp.to_list([]))

    for shown in (app, counts):
        html = shown._repr_html_()
        assert "collection(1 values)" in html
        assert html.count("<svg") == 1
    assert "count" not in stream._repr_html_()


def test_a_program_that_cannot_run_shows_why() -> None:
    app = gp.StreamApp("empty")

    assert "has no steps" in app._repr_html_()


def test_the_end_of_a_run_is_one_line() -> None:
    summary = ApplicationSummary(app_id=AppId(1), name="words", status="succeeded")

    assert summary._repr_html_() == (
        "<div><b>words</b> succeeded: 0 records in, 0 out, 0 late</div>"
    )
