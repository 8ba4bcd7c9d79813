"""Tables whose writers are killed, and writers that run side by side: each row once."""

import subprocess
import sys
from pathlib import Path
from random import Random

# Ships no type information.
import pyarrow.dataset as pa_dataset  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable

from tests.system.delta_child import EPOCHS, ROWS

KILLS = 5
DEADLINE_S = 60


def a_child(folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.system.delta_child", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def numbers(folder: Path, table: str) -> list[int]:
    if table == "delta":
        found = DeltaTable(folder / "delta").to_pyarrow_table()
    else:
        found = pa_dataset.dataset(folder / "hive", partitioning="hive").to_table(columns=["n"])
    return sorted(found["n"].to_pylist())


@pytest.mark.long
def test_a_writer_is_killed_at_any_moment(tmp_path: Path) -> None:
    """While it begins, prepares or commits; in the end each row is there once."""
    rng = Random(6)
    for _ in range(KILLS):
        with a_child(tmp_path) as child:
            assert child.stdout is not None
            child.stdout.readline()
            try:
                child.wait(rng.uniform(0, 0.15))
            except subprocess.TimeoutExpired:
                child.kill()

    with a_child(tmp_path) as child:
        output, errors = child.communicate(timeout=DEADLINE_S)

    assert "done" in output, errors
    for table in ("delta", "hive"):
        assert numbers(tmp_path, table) == list(range(EPOCHS * ROWS))


def test_of_two_writers_of_one_task_the_later_one_goes_on(tmp_path: Path) -> None:
    """The other one is told that it was given up; never do both write an epoch."""
    with a_child(tmp_path) as first:
        assert first.stdout is not None
        first.stdout.readline()
        with a_child(tmp_path) as second:
            second.communicate(timeout=DEADLINE_S)
            first.communicate(timeout=DEADLINE_S)

    with a_child(tmp_path) as last:
        output, errors = last.communicate(timeout=DEADLINE_S)

    assert "done" in output, errors
    for table in ("delta", "hive"):
        assert numbers(tmp_path, table) == list(range(EPOCHS * ROWS)), table
