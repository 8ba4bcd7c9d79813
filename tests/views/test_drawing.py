"""Drawings of an application as SVG."""

from typing import Any
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.views.app import app_view
from gearpy.views.drawing import AMBER, RED, graph_svg
from gearpy.views.model import AppView, Headline
from tests.views.build import a_detail, a_look

_NS = "{http://www.w3.org/2000/svg}"


def a_view(**first: Any) -> AppView:
    view = app_view(a_look())
    source, *others = view.processors
    return replace(view, processors=(replace(source, **first), *others))


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 - of our own making


def words_of(svg: str) -> list[str]:
    return [each.text or "" for each in parsed(svg).iter(f"{_NS}text")]


def titles_of(svg: str) -> list[str]:
    return [each.text or "" for each in parsed(svg).iter(f"{_NS}title")]


def test_the_graph_has_names_roles_and_rates() -> None:
    words = words_of(graph_svg(a_view(records_in_rate=48_200.0, busy=0.4)))

    assert [each for each in words if each.isidentifier()] == ["orders", "join", "to_spark"]
    assert "source · 1 task · 2 steps" in words
    assert "48.2 k/s" in words


def test_back_pressure_and_the_path_of_the_clock_are_said_in_words_too() -> None:
    view = app_view(a_look())
    first, *others = view.edges
    held = replace(view, edges=(replace(first, backpressured=True), *others))

    assert "hash, back-pressure, holds the clock" in titles_of(graph_svg(held))
    assert any(each.endswith("it holds the clock") for each in titles_of(graph_svg(held)))


def test_one_box_at_most_has_the_accent() -> None:
    headline = Headline(level="bad", text="", processor=1)

    assert graph_svg(replace(a_view(), headline=headline)).count(f'stroke="{RED}"') == 1
    assert RED not in graph_svg(replace(a_view(), headline=replace(headline, level="ok")))


def test_colours_are_those_of_the_page() -> None:
    """Amber waits for what is behind it, red works all the time or is what the finding names."""
    view = replace(a_view(busy=0.5, backpressured=0.3), headline=Headline(level="ok", text=""))
    first, *others = view.edges
    held = replace(view, edges=(replace(first, backpressured=True), *others))

    assert AMBER in graph_svg(held)
    assert RED not in graph_svg(held)
    assert RED in graph_svg(a_view(busy=0.95))


@given(st.text(), st.text())
def test_text_of_users_is_text(name: str, step: str) -> None:
    svg = graph_svg(a_view(name=name, steps=(step, "<script>alert(1)</script>")))

    names = {each.tag.removeprefix(_NS) for each in parsed(svg).iter()}
    assert names <= {"svg", "style", "g", "title", "rect", "text", "path", "polyline"}


def test_an_application_that_begins_has_no_graph() -> None:
    assert graph_svg(app_view(a_look(detail=a_detail(processors=(), edges=())))) == ""
