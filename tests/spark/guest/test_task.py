"""What a task of Spark finds out about its machine."""

import subprocess
import sys
from pathlib import Path

import pytest

from gearpy.errors import ConfigError
from gearpy.spark.guest.order import WorkerOrder
from gearpy.spark.guest.task import address_towards, config_here, machine_here


def test_the_address_of_a_worker_is_that_on_the_way_to_the_driver() -> None:
    assert address_towards("127.0.0.1", 1) == "127.0.0.1"
    with pytest.raises(ConfigError, match=r"does not reach the driver's host no\.such\.invalid"):
        address_towards("no.such.invalid", 1)


def test_checkpoints_that_a_machine_does_not_see_are_told(tmp_path: Path) -> None:
    """Else an application would begin anew there."""
    config = {"cluster.masters": "127.0.0.1:1", "checkpoint.folder": str(tmp_path / "elsewhere")}
    order = WorkerOrder(version="1", config=config, secret=b"secret")

    with pytest.raises(ConfigError, match=r"does not see checkpoint.folder, .*elsewhere: name one"):
        config_here(order, tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="it is seen in /proc")
def test_a_machine_is_called_as_spark_calls_it() -> None:
    """Its executor, whose child a worker is, was told so; in a session of this machine nobody."""
    look = "from gearpy.spark.guest.task import machine_here; print(machine_here())"
    as_spark = ["sh", "-c", '"$0" -c "$1"; :', sys.executable, look, "--hostname", "node7"]
    told = subprocess.run(as_spark, capture_output=True, text=True, check=True)

    assert told.stdout == "node7\n"
    assert machine_here() == ""
