"""The pictures of the documentation are those that the code of today draws, and can be read."""

import itertools
import re
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

import pytest

from tests.docs.pictures import FOLDER, PICTURES

PAGES: Final = Path(__file__).parents[2] / "docs"
_SVG: Final = "{http://www.w3.org/2000/svg}"

#: A letter is about so wide, as a share of its size.
_LETTER: Final = 0.58


class Box(NamedTuple):
    """Where a text is."""

    left: float
    right: float
    base: float
    size: float
    text: str


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_what_programs_put_out(name: str) -> None:
    """Who changes windows, triggers or joins sees it here: ``python -m tests.docs.pictures``."""
    drawn = PICTURES[name]()

    kept = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")

    assert kept == drawn, "out of date: .venv/bin/python -m tests.docs.pictures"


def test_no_picture_is_left_over() -> None:
    """The folder has what is drawn, and each of it is on a page."""
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES.rglob("*.md"))

    shown = set(re.findall(r"\]\(\S*pictures/([\w-]+)\.svg\)", pages))

    assert {path.stem for path in FOLDER.iterdir()} == PICTURES.keys() == shown


@pytest.mark.parametrize("name", PICTURES)
def test_texts_of_a_picture_stand_apart(name: str) -> None:
    """None runs over another one, or out of the picture."""
    root = ET.fromstring((FOLDER / f"{name}.svg").read_text(encoding="utf-8"))  # noqa: S314 - ours
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    boxes = [_box(element) for element in root.iter(f"{_SVG}text")]

    outside = [box.text for box in boxes if box.left < 0 or box.right > width or box.base > height]
    over = [
        (one.text, other.text)
        for one, other in itertools.combinations(boxes, 2)
        if abs(one.base - other.base) < min(one.size, other.size)
        and one.left < other.right
        and other.left < one.right
    ]

    assert (outside, over) == ([], [])


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_has_colours_for_light_and_dark(name: str) -> None:
    """Every shape has a colour of the theme, which is defined for both."""
    text = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")

    light, _, dark = text.partition("prefers-color-scheme: dark")

    wanted = set(re.findall(r"var\((--\w+)\)", text)) - {"--own"}
    assert wanted == set(re.findall(r"(--\w+): #", light)) == set(re.findall(r"(--\w+): #", dark))


def _box(element: ET.Element) -> Box:
    kind, text = element.get("class", "").split(), element.text or ""
    size = 11.0 if "small" in kind else 10.0 if "on-dot" in kind else 13.0
    length, x = len(text) * size * _LETTER, float(element.attrib["x"])
    left = x - length / 2 if {"middle", "on-dot"} & {*kind} else x
    return Box(left, left + length, float(element.attrib["y"]), size, text)
