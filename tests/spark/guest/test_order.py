"""What a worker inside Spark is told, and what it makes of it."""

from pathlib import Path

import pytest

from gearpy.config.load import load
from gearpy.errors import ConfigError
from gearpy.spark.guest.order import (
    Authority,
    MasterOrder,
    WorkerOrder,
    check_version,
    master_config,
    order_of,
    task_of,
    worker_config,
)

_CONFIG = {
    "cluster.masters": "10.0.0.1:4711",
    "hostname": "driver",
    "master.folder": "/driver/master",
    "log.folder": "/driver/logs",
    "transport.secret-file": "/driver/secret",
    "transport.tls": "on",
    "checkpoint.folder": "hdfs://names/shop",
    "worker.slots": "7",
}


def _order(**more: str) -> WorkerOrder:
    config = load(env={}, overrides={**_CONFIG, **more})
    return order_of(config, version="1", secret=b"secret!", authority=Authority(b"ca!", b"key!"))


def test_a_worker_has_folders_and_a_name_of_its_own() -> None:
    config = worker_config(
        _order(), folder=Path("/task"), host="10.0.0.2", machine="node7", task=17
    )

    assert (config.hostname, config.log.folder) == ("10.0.0.2", "/task/logs")
    assert config.worker.machine == "node7"
    assert (config.worker.folder, config.state.folder) == ("/task/spark-task-17", "/task/state")
    assert (task_of(config.worker.folder), task_of("/elsewhere")) == (17, None)
    assert config.transport.tls_folder == "/task/certs"
    assert config.cluster.masters == ("10.0.0.1:4711",)
    assert (config.checkpoint.folder, config.worker.slots) == ("hdfs://names/shop", 7)
    assert not any("driver" in value for value in _order().config.values())


@pytest.mark.parametrize(
    ("asked", "mib", "found"),
    [({}, 512, 512 << 20), ({}, None, 0), ({"executor.memory-max-bytes": "4096"}, 512, 4096)],
    ids=["spark's", "none", "asked for"],
)
def test_memory_is_limited_as_spark_limits_it(
    asked: dict[str, str], mib: int | None, found: int
) -> None:
    config = worker_config(_order(**asked), folder=Path("/t"), host="h", memory_mib=mib)

    assert config.executor.memory_max_bytes == found


def test_an_order_shows_no_secret() -> None:
    assert "!" not in repr(_order())


def test_another_gearpy_is_refused_by_name() -> None:
    check_version(_order(), here="1", place="machine (python)")
    with pytest.raises(ConfigError, match=r"gearpy is 1 in the driver and 2 at machine \(python\)"):
        check_version(_order(), here="2", place="machine (python)")


def test_a_master_in_a_task_goes_on_from_the_folder_of_its_seat() -> None:
    """All else that it needs of the machine is the task's own; keys of masters hold there, too."""
    order = MasterOrder(
        version="1",
        config={**_CONFIG, "master.scheduler": "spread"},
        folder="/shared/masters",
        secret=b"secret!",
        authority=Authority(b"ca!", b"key!"),
    )
    masters = ["10.0.0.2:1", "10.0.0.3:2", "10.0.0.4:3"]
    config = master_config(
        order, number=2, folder=Path("/task"), address=masters[1], masters=masters
    )

    assert config.cluster.masters == tuple(masters)
    assert (config.hostname, config.master.folder) == ("10.0.0.3", "/shared/masters/2")
    assert config.transport.secret_file == "/task/secret"
    assert (config.transport.tls_folder, config.master.scheduler) == ("/task/certs", "spread")
    assert "!" not in repr(order)
