"""A cluster inside Spark on YARN: whoever is killed, each number is counted once."""

import sys
from pathlib import Path
from typing import Any, Final

import pytest

from gearpy.spark.sessions.driver import spark_home
from tests.servers.yarn import Yarn
from tests.spark.guest.guest_drives import KINDS, Recovery, drives, is_exact, run

_EXECUTORS: Final = {
    "spark.executor.instances": "2",
    "spark.executor.cores": "2",
    "spark.executor.memoryOverhead": "384m",
    # Those of this machine: nobody has to copy them.
    "spark.yarn.jars": f"local:{spark_home()}/jars/*",
}
_HERE: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.yarn.am.memory": "384m",
}

pytestmark = pytest.mark.long


def _where(yarn: Yarn, folder: Path) -> dict[str, Any]:
    """Return the plan of drivers on this machine."""
    staging = (folder / "staging").as_uri()
    return {
        "master": "yarn",
        "conf": {**_EXECUTORS, **_HERE, "spark.yarn.stagingDir": staging},
        "env": {"HADOOP_CONF_DIR": str(yarn.conf), "PYSPARK_PYTHON": sys.executable},
    }


def test_executors_of_spark_workers_and_executors_are_killed(
    own_yarn: Yarn, tmp_path: Path
) -> None:
    """A driver on this machine, executors in containers, connections that are encrypted."""
    told = run(tmp_path, KINDS, **_where(own_yarn, tmp_path))

    assert told["status"] == "terminated"
    assert is_exact(told)


def test_a_driver_that_is_killed_is_submitted_again(own_yarn: Yarn, tmp_path: Path) -> None:
    """YARN ends the containers of the first; the second, over the same folder, goes on."""
    recovery, told = drives(tmp_path, kills=1, seed=3, **_where(own_yarn, tmp_path))

    assert isinstance(recovery, Recovery)
    assert recovery.kind == "driver"
    assert isinstance(told, dict)
    assert is_exact(told)
