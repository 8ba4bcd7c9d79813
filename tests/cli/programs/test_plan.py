"""``gear plan``: the plan in every form, and what becomes of state in another program."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gearpy.cli.main import app

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
            sys.modules.pop(name, None)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def gear(*args: str | Path) -> Result:
    return CliRunner().invoke(app, ["plan", *map(str, args)])


def test_lines_are_no_longer_than_a_screen_is_wide(program: Path) -> None:
    result = gear(program)

    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert "by user" in result.stdout
    assert "at-least-once" in result.stdout


def test_names_do_not_break_drawings(program: Path) -> None:
    mermaid, dot = gear(program, "--format", "mermaid"), gear(program, "--format", "dot")

    assert "or&quot;ders" in mermaid.stdout
    assert 'or\\"ders' in dot.stdout
    assert "a\\\\b" in dot.stdout


def test_all_forms_have_all_processors_and_edges(program: Path) -> None:
    plan = json.loads(gear(program, "--format", "json").stdout)
    mermaid = gear(program, "--format", "mermaid").stdout
    dot = gear(program, "--format", "dot").stdout

    edges, boxes = len(plan["edges"]), len(plan["processors"])
    assert (mermaid.count("-->"), mermaid.count('["')) == (edges, boxes)
    assert (dot.count(" -> "), dot.count("\\l")) >= (edges, boxes)


def test_a_plan_is_written_to_a_file(program: Path, tmp_path: Path) -> None:
    """Nothing is printed then; where it cannot be written, that is told."""
    result = gear(program, "--format", "dot", "--output", tmp_path / "plan.dot")
    refused = gear(program, "--output", tmp_path / "none" / "plan.dot")

    assert (result.exit_code, result.stdout) == (0, "")
    assert (tmp_path / "plan.dot").read_text(encoding="utf-8").startswith("digraph")
    assert refused.exit_code == 2
    assert "--output" in refused.stderr


def test_the_exit_code_tells_that_state_is_dropped(program: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(PROGRAM.replace('"counts"', '"numbers"'), encoding="utf-8")

    same, changed = gear(program, "--diff", program), gear(program, "--diff", other)

    assert (same.exit_code, changed.exit_code) == (0, 1)
    assert "no state is dropped" in same.stdout
    assert "dropped counts [counts]: count() by user" in changed.stdout
    assert "new numbers [numbers]: count() by user" in changed.stdout


def test_a_difference_is_text_or_json(program: Path) -> None:
    found = json.loads(gear(program, "--diff", program, "--format", "json").stdout)
    refused = gear(program, "--diff", program, "--format", "dot")

    assert {each["fate"] for each in found} == {"kept"}
    assert refused.exit_code == 2
    assert "text or json" in refused.stderr


@pytest.mark.parametrize("asked", [["--svg"], ["--format", "svg"], ["--format", "png"]])
def test_an_unknown_form_names_the_one_that_is_drawn_everywhere(
    asked: list[str], program: Path
) -> None:
    refused = gear(program, *asked)

    assert refused.exit_code == 2
    assert "--format mermaid" in refused.stderr


def test_a_plan_for_several_processes_has_the_tasks_of_a_run_on_so_many(tmp_path: Path) -> None:
    (path := tmp_path / "spread.py").write_text(
        "import gearpy as gp\napp = gp.StreamApp('spread')\n"
        "rows = app.read(gp.collection(range(9), partitions=3)).key_by(lambda n: n)\n"
        "rows.count().write(gp.console())\n"
    )

    one, three = gear(path), gear(path, "--processes", "3")

    assert one.stdout.startswith("spread: 2 processors, 2 tasks, 1 region")
    assert three.stdout.startswith("spread: 3 processors, 9 tasks, 1 region")
    assert gear(path, "--processes", "0").exit_code == 2
    assert gear(path, "--processes", "2", "--diff", path).exit_code == 2
