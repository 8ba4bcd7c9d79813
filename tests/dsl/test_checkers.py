"""What mypy and pyright find in programs: the mistakes that are marked, and no others.

A line of a program in `typed` that ends with ``# expect: TEXT`` has a mistake, and what a checker
says of it has the text in it. In `test_typing` are none, and both know the types that it asserts.
"""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

ROOT: Final = Path(__file__).parents[2]
TYPES: Final = Path(__file__).with_name("test_typing.py")
PROGRAMS: Final = [TYPES, *sorted(Path(__file__).with_name("typed").glob("*.py"))]

#: What is said of a line of a program, by the name of the program and the number of the line.
Findings: TypeAlias = Mapping[tuple[str, int], str]


def mypy() -> Iterator[tuple[Path, int, str]]:
    """Yield what mypy finds, by the options of this code base, which are stricter than strict."""
    shown = _output("mypy", "--no-error-summary", "--hide-error-context", "--no-pretty")
    for path, line, text in re.findall(r"^(\S+):(\d+): error: (.*)$", shown, re.MULTILINE):
        yield ROOT / path, int(line), text


def pyright() -> Iterator[tuple[Path, int, str]]:
    shown = _output("pyright", "--outputjson", "--pythonpath", sys.executable)
    found: Any = json.loads(shown)
    assert found["summary"]["filesAnalyzed"] == len(PROGRAMS)
    for each in found["generalDiagnostics"]:
        yield Path(each["file"]), each["range"]["start"]["line"] + 1, each["message"]


@pytest.mark.slow
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_checker_finds_the_mistakes_in_programs(
    checker: Callable[[], Iterator[tuple[Path, int, str]]],
) -> None:
    expected = _expected()
    found = defaultdict[tuple[str, int], str](str)
    for path, line, text in checker():
        found[path.name, line] += f"{text}\n"

    missed = [
        f"{name}:{line}: {text} is not in {found.get((name, line), 'nothing')}"
        for (name, line), text in expected.items()
        if text not in found.get((name, line), "")
    ]
    unexpected = [
        f"{name}:{line}: {text}"
        for (name, line), text in found.items()
        if (name, line) not in expected
    ]

    assert not missed + unexpected, "\n".join(missed + unexpected)


def test_programs_have_mistakes() -> None:
    """Else nothing would be checked above."""
    assert {name for name, _ in _expected()} == {each.name for each in PROGRAMS} - {TYPES.name}


def _expected() -> Findings:
    return {
        (path.name, number): line.partition("# expect: ")[2]
        for path in PROGRAMS
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if "# expect: " in line
    }


def _output(module: str, *options: str) -> str:
    """Run a checker over all programs at once, and return what it prints; it ends with 1."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            module,
            *options,
            *(str(each.relative_to(ROOT)) for each in PROGRAMS),
        ],
        cwd=ROOT,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout
