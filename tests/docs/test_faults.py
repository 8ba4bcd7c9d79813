"""The table of failures in the page about guarantees: each row names a test that is there."""

import ast
import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_PAGE: Final = ROOT / "docs" / "guarantees.md"
_ROW: Final = re.compile(r"^\| .+ \| .+ \| `(tests/.+\.py)::(test_\w+)` \|$", re.MULTILINE)


def test_each_failure_is_shown_by_a_test() -> None:
    """Of several rows with one test, one would be about something else."""
    chapter = _PAGE.read_text(encoding="utf-8").partition("## What may fail")[2]
    chapter = chapter.partition("\n## ")[0]
    rows = [line for line in chapter.splitlines() if line.startswith("| ")]
    rows = [line for line in rows if not line.startswith("| what fails ")]

    named = _ROW.findall(chapter)

    assert len(named) == len(rows)
    assert len(set(named)) == len(named)
    missing = [f"{path}::{name}" for path, name in named if name not in _tests_in(ROOT / path)]
    assert missing == []


def _tests_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
