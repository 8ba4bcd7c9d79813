"""`gear main`: programs of any kind, which find the cluster by their environment."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gearpy.cli.terminal.exits import WRONG_USE

_TOOL = """
import sys
import gearpy as gp

def show(args):
    config = gp.load_config()
    print(args, config.cluster.masters[0], config.streaming.batch_max_records)

def plain():
    return 3

if __name__ == "__main__":
    show(sys.argv[1:])
"""


def ran(folder: Path, *words: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "gearpy", "main", "--master", "h:1", "--set"]
    done = subprocess.run(
        [*command, "streaming.batch-max-records=77", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tool.py").write_text(_TOOL)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (("tool.py", "-port", "3", "--json"), ["-port", "3", "--json"]),
        (("tool",), []),
        (("tool.py:show", "a"), ["a"]),
        (("tool:show", "--", "-b"), ["-b"]),
    ],
)
def test_a_program_finds_the_cluster_and_its_configuration(
    folder: Path, words: Any, given: list[str]
) -> None:
    assert ran(folder, *words) == (0, f"{given} h:1 77\n", "")


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("tool:plain",), 3, ""),
        (("tool:plain", "x"), 1, "error: tool:plain takes no arguments, got x\n"),
        (("tool:nope",), 1, "error: tool has no function 'nope'\n"),
        (("nowhere.py",), WRONG_USE, "error: no such file: nowhere.py\n"),
        (("nowhere:show",), WRONG_USE, "error: no such file or module: nowhere\n"),
    ],
)
def test_it_ends_as_its_function_says(folder: Path, words: Any, code: int, error: str) -> None:
    assert ran(folder, *words) == (code, "", error)
