"""The pages about the stream language leave nothing out."""

import re
from pathlib import Path
from typing import Final

import pytest

import gearpy as gp
from gearpy.core.window import trigger
from gearpy.core.window import windows as window
from gearpy.dsl.streams.keyed import KeyedStream
from gearpy.dsl.streams.stream import Stream
from gearpy.dsl.streams.windowed import WindowedStream
from gearpy.task.time.late import SOURCE_LATE

PAGES: Final = Path(__file__).parents[2] / "docs" / "operators"
TEXT: Final = {page.stem: page.read_text(encoding="utf-8") for page in PAGES.glob("*.md")}
EVERYTHING: Final = "\n".join(TEXT.values())

STEPS: Final = sorted(
    {
        name
        for kind in (Stream, KeyedStream, WindowedStream, gp.Windows)
        for name in dir(kind)
        if not name.startswith("_")
    }
    - {"trigger", "accumulation", "allowed_lateness_ms", "is_plain", "clock"}
    - {"allowing"}  # The earlier name of a step.
)
FUNCTIONS: Final = sorted(
    name
    for module in (window, trigger)
    for name, each in vars(module).items()
    if name in dir(gp) and getattr(each, "__module__", "") == module.__name__
)
CONNECTORS: Final = sorted(
    name
    for name in dir(gp)
    if getattr(getattr(gp, name), "__module__", "").startswith("gearpy.connectors")
    and name[0].islower()
)


@pytest.mark.parametrize("name", STEPS)
def test_every_step_is_explained(name: str) -> None:
    assert re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", EVERYTHING)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_window_and_trigger_is_explained(name: str) -> None:
    if name in {"CountWindows", "TumblingWindows", "Windows"}:  # Types, for annotations.
        return
    text = TEXT["windows"] + TEXT["triggers"]

    assert re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", text)


@pytest.mark.parametrize("name", gp.agg.__all__)
def test_every_aggregate_is_explained(name: str) -> None:
    assert re.search(rf"^\| .*`{name}\(", TEXT["aggregates"], re.MULTILINE)


@pytest.mark.parametrize("name", CONNECTORS)
def test_every_source_and_sink_is_explained(name: str) -> None:
    assert re.search(rf"^\| .*`gp\.{name}\b", TEXT["sources"], re.MULTILINE)


def test_policies_for_late_records_are_explained() -> None:
    rows = re.findall(r"^\| (\w+) \|", TEXT["late"], re.MULTILINE)

    assert set(SOURCE_LATE) <= set(rows)
