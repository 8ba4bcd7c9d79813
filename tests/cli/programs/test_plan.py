"""``gear plan``: the plan in every form, and what becomes of state in another program."""

import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from gearpy.cli.main import app
from gearpy.cli.programs.plan_layout import layered

PROGRAM = """
import gearpy as gp

app = gp.StreamApp("shop", parallelism=2)
orders = app.read(gp.collection([{"user": "<b>", "n": 1}], partitions=2), name='or"ders')
big, small = orders.split(lambda order: order["n"] > 5, name="a\\\\b")
by_user = big.key_by("user")
by_user.count(name="counts").write(gp.console(), name="shown")
by_user.join(small.key_by("user"), gp.tumbling("1s"), name="joined").write(gp.to_list([]))
"""


@pytest.fixture(autouse=True)
def _same_process_after() -> Iterator[None]:
    """Leave no program behind: others have one of this name, too."""
    modules = set(sys.modules)
    yield
    for name in set(sys.modules) - modules:
        if not name.startswith("gearpy."):
            del sys.modules[name]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return a program."""
    path = tmp_path / "shop.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def gear(*args: str | Path) -> Result:
    """Run the command line."""
    return CliRunner().invoke(app, ["plan", *map(str, args)])


def test_lines_are_no_longer_than_a_screen_is_wide(program: Path) -> None:
    """So that nothing is folded elsewhere."""
    result = gear(program)

    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert "by user" in result.stdout
    assert "at-least-once" in result.stdout


def test_names_do_not_break_drawings(program: Path) -> None:
    """Quotes, backslashes and tags stand as they are."""
    mermaid, dot = gear(program, "--format", "mermaid"), gear(program, "--format", "dot")
    svg = gear(program, "--format", "svg")

    assert "or&quot;ders" in mermaid.stdout
    assert 'or\\"ders' in dot.stdout
    assert "a\\\\b" in dot.stdout
    texts = [each.text or "" for each in ET.fromstring(svg.stdout).iter()]  # noqa: S314
    assert any('or"ders' in text for text in texts)


def test_all_forms_have_all_processors_and_edges(program: Path) -> None:
    """As many as the plan has as data."""
    plan = json.loads(gear(program, "--format", "json").stdout)
    mermaid = gear(program, "--format", "mermaid").stdout
    dot = gear(program, "--format", "dot").stdout
    svg = gear(program, "--format", "svg").stdout

    edges, boxes = len(plan["edges"]), len(plan["processors"])
    assert (mermaid.count("-->"), mermaid.count('["')) == (edges, boxes)
    assert (dot.count(" -> "), dot.count("\\l")) >= (edges, boxes)
    assert (svg.count('class="line"'), svg.count('class="box')) == (edges, boxes)


def test_a_plan_is_written_to_a_file(program: Path, tmp_path: Path) -> None:
    """Nothing is printed then; where it cannot be written, that is told."""
    result = gear(program, "--format", "svg", "--output", tmp_path / "plan.svg")
    refused = gear(program, "--output", tmp_path / "none" / "plan.svg")

    assert (result.exit_code, result.stdout) == (0, "")
    assert (tmp_path / "plan.svg").read_text(encoding="utf-8").startswith("<svg")
    assert refused.exit_code == 2
    assert "--output" in refused.stderr


def test_the_exit_code_tells_that_state_is_dropped(program: Path, tmp_path: Path) -> None:
    """And is 0 if none is."""
    other = tmp_path / "other.py"
    other.write_text(PROGRAM.replace('"counts"', '"numbers"'), encoding="utf-8")

    same, changed = gear(program, "--diff", program), gear(program, "--diff", other)

    assert (same.exit_code, changed.exit_code) == (0, 1)
    assert "no state is dropped" in same.stdout
    assert "dropped counts [counts]: count() by user" in changed.stdout
    assert "new numbers [numbers]: count() by user" in changed.stdout


def test_a_difference_is_text_or_json(program: Path) -> None:
    """No drawing."""
    found = json.loads(gear(program, "--diff", program, "--format", "json").stdout)
    refused = gear(program, "--diff", program, "--format", "svg")

    assert {each["fate"] for each in found} == {"kept"}
    assert refused.exit_code == 2
    assert "text or json" in refused.stderr


@given(data=st.data())
def test_boxes_do_not_touch_each_other(data: st.DataObject) -> None:
    """Invariant: whatever the graph; lines begin below their box, and end above the other."""
    count = data.draw(st.integers(1, 12))
    pairs = list(combinations(range(count), 2))
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    levels = dict.fromkeys(range(count), 0)
    for source, target in sorted(edges):
        levels[target] = max(levels[target], levels[source] + 1)
    sizes = {
        number: (float(data.draw(st.integers(10, 300))), float(data.draw(st.integers(10, 90))))
        for number in range(count)
    }

    layout = layered(levels, edges, sizes, between_layers=40)

    for one, other in combinations(layout.boxes.values(), 2):
        apart_x = one.x + one.width <= other.x or other.x + other.width <= one.x
        apart_y = one.y + one.height <= other.y or other.y + other.height <= one.y
        assert apart_x or apart_y
    for box in layout.boxes.values():
        assert box.x >= -1e-6
        assert box.x + box.width <= layout.width + 1e-6
        assert box.y + box.height <= layout.height + 1e-6
    for (source, target), line in zip(edges, layout.lines, strict=True):
        assert line[0][1] == layout.boxes[source].y + layout.boxes[source].height
        assert line[-1][1] == layout.boxes[target].y
