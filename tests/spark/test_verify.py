"""``gear verify``: a table of what was compared, and the right exit code."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gearpy.cli.main import app as commands

PROGRAM = """
import random
import gearpy as gp

app = gp.StreamApp("numbers")
numbers = app.read(gp.collection([{rows}], timestamp=lambda n: n))
numbers{steps}.write(gp.to_list([]), name="answers")
"""
_RECORDS = 5000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def _verify(folder: Path, *args: str, steps: str, rows: str = "1, 2, 3") -> Result:
    # A name of its own, since modules of one name stay known.
    path = folder / f"program_{folder.name}.py"
    path.write_text(PROGRAM.replace("{rows}", rows).replace("{steps}", steps))
    return CliRunner().invoke(commands, ["verify", str(path), "--against", "spark", *args])


def test_a_program_without_a_query_is_refused_at_once(folder: Path) -> None:
    result = _verify(folder, steps=".distinct()")

    assert result.exit_code == 2
    assert "answers: distinct 'distinct' has no Spark query" in result.stderr


def test_a_graph_by_hand_is_refused(folder: Path) -> None:
    path = folder / "by_hand.py"
    path.write_text(
        "import gearpy as gp\n"
        "class Sink(gp.Task):\n    def on_next(self, message): pass\n"
        "class Source(gp.Task):\n    def produce(self): return -1\n"
        "graph = gp.Graph()\n"
        "a = gp.Processor(Source, 1, 'a')\nb = gp.Processor(Sink, 1, 'b')\n"
        "graph.add(a); graph.add(b); graph.connect(a, b)\n"
        "app = gp.StreamApplication('by-hand', graph)\n"
    )

    result = CliRunner().invoke(commands, ["verify", str(path)])

    assert result.exit_code == 2
    assert "by hand" in result.stderr


def test_answers_that_agree_are_told_in_a_table(spark: Any, folder: Path) -> None:
    result = _verify(folder, steps=".map(lambda n: {'n': n * 2})")

    assert result.exit_code == 0, result.output
    assert "numbers: gearpy and Spark on the same records" in result.stdout
    assert result.stdout.split()[-6:-3] == ["answers", "3", "3"]
    assert result.stdout.split()[-1] == "equal"


def test_differences_are_shown_and_end_with_1(spark: Any, folder: Path) -> None:
    result = _verify(folder, "--show", "2", steps=".map(lambda n: (n, random.random()))")

    assert result.exit_code == 1
    assert "3 missing, 3 extra" in result.stdout
    assert result.stdout.count("only gearpy:") == 2
    assert result.stdout.count("only Spark:") == 2


def test_late_records_end_with_1_unless_they_are_allowed(spark: Any, folder: Path) -> None:
    steps = '.window(gp.tumbling("10ms")).count()'
    rows = f"0, *[25] * {_RECORDS}, 3"

    strict = _verify(folder, steps=steps, rows=rows)
    lenient = _verify(folder, "--allow-late", "--json", steps=steps, rows=rows)

    assert strict.exit_code == 1
    assert "leaves out 1 records that came late" in strict.stdout
    assert "3 at 3" in strict.stdout
    assert lenient.exit_code == 0
    told = json.loads(lenient.stdout)
    assert told["agrees"]
    assert told["late_records"] == 1
    assert told["sinks"][0]["equal"] == 2
