"""What a cluster inside Spark refuses, on a real standalone cluster: a line each, nothing left."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from gearpy.cli.terminal.exits import NO_CLUSTER
from tests.spark.guest.guest_drives import driver, lines
from tests.spark.standalone import standalone_cluster

_PATIENCE_S: Final = 15

pytestmark = pytest.mark.long


def test_what_cannot_be_is_told_in_a_line_and_leaves_room(tmp_path: Path) -> None:
    """Two cores that Spark does not tell of before: too few slots, wrong images, wrong secrets.

    After each refusal a job of Spark would hold a core if it were left, so the cluster that is
    asked for last, and takes both, would not start.
    """
    bare, spark = tmp_path / "bare", tmp_path / "spark"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    spark.mkdir()
    with (
        standalone_cluster(spark) as url,
        driver(
            tmp_path,
            env={"PYSPARK_PYTHON": sys.executable},
            scene="refusals",
            master=url,
            bare=str(bare / "bin" / "python"),
            patience_s=_PATIENCE_S,
        ) as process,
    ):
        told = list(lines(process))

    said: dict[str, dict[str, Any]] = {each["what"]: each for each in told if "what" in each}
    print(said)  # noqa: T201
    asked = (
        rf"a cluster of 3 x 1 cores was asked for, and Spark has started [012] in {_PATIENCE_S} s"
    )
    assert re.match(asked, said["slots"]["said"])
    assert "lacks a module: install gearpy there" in said["image"]["said"]
    assert "run another Python than the driver" in said["version"]["said"]
    assert "is in use by process" in said["folder"]["said"].splitlines()[-1]
    for each in ("client", "worker"):
        assert said[each]["code"] == NO_CLUSTER
        assert "it has another cluster secret" in said[each]["said"].splitlines()[-2]
    assert told[-2:] == [{"workers": 2}, {"jobs": 0}]
    for each in ("slots", "image", "version"):
        assert "\n" not in said[each]["said"]
        assert said[each]["left"] == []
