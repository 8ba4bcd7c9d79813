"""Importing the data source harms nobody: Spark does it for every session with a Python source."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {name!r}:
            raise ImportError(name)
sys.meta_path.insert(0, Hidden())
import pyspark_gearpy
assert not hasattr(pyspark_gearpy, "DefaultSource"), "there should be no format"
"""

LIGHT = """
import sys
import pyspark.sql.datasource, pyspark.sql.types
before = set(sys.modules)
import pyspark_gearpy
assert pyspark_gearpy.DefaultSource.name() == "gearpy"
heavy = {"pykka", "asyncio.base_events", "uvloop", "fsspec", "pyarrow"}
assert not heavy & (set(sys.modules) - before)
"""


@pytest.mark.parametrize("name", ["pyspark", "gearpy"])
def test_without_what_it_needs_it_is_just_not_there(name: str) -> None:
    """An exception would break all other sources of the session."""
    run(WITHOUT.format(name=name))


def test_it_loads_nothing_heavy() -> None:
    run(LIGHT)


def run(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
