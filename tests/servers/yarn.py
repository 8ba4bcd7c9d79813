"""YARN: a resource manager and a node manager, each a process, over a folder of this machine."""

import json
import os
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from tests.bench.process_cluster import free_port
from tests.servers.hdfs import site
from tests.servers.process import Server, java
from tests.servers.recipes import jars

_VERSION: Final = "3.4.1"
_JARS: Final = tuple(
    f"org.apache.hadoop:{name}:{_VERSION}"
    for name in (
        "hadoop-yarn-server-resourcemanager",
        "hadoop-yarn-server-nodemanager",
        "hadoop-yarn-server-timelineservice",
    )
)
_HEAP_MB: Final = 256
_SERVER: Final = "org.apache.hadoop.yarn.server"
_LOGGING: Final = """\
log4j.rootLogger=WARN,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c{1} %m%n
"""
_SCHEDULER: Final = f"{_SERVER}.resourcemanager.scheduler.fifo.FifoScheduler"
#: Of the resource manager, each on a free port.
_PLACES: Final = ("", ".scheduler", ".resource-tracker", ".admin", ".webapp")


class Yarn:
    """A cluster with one node of 8 cores and 6 GB; nobody is asked who he is.

    Args:
        folder: an empty one; ``conf`` in it is for ``HADOOP_CONF_DIR``.

    Raises:
        Unavailable: it is not to be had here.
    """

    def __init__(self, folder: Path) -> None:
        self.conf = folder / "conf"
        self.conf.mkdir(parents=True)
        self._web = f"127.0.0.1:{free_port()}"
        addresses = {
            f"yarn.resourcemanager{name}.address": f"127.0.0.1:{free_port()}" for name in _PLACES
        }
        addresses["yarn.resourcemanager.webapp.address"] = self._web
        (self.conf / "log4j.properties").write_text(_LOGGING)
        (self.conf / "core-site.xml").write_text(site({"fs.defaultFS": "file:///"}))
        (self.conf / "yarn-site.xml").write_text(site({**addresses, **_node(folder)}))
        jvm = [
            *(*java(_HEAP_MB), "--add-opens", "java.base/java.lang=ALL-UNNAMED"),
            *("-cp", f"{self.conf}:{jars('yarn', _JARS)}/*"),
        ]
        self.manager = self._server(
            folder / "manager", [*jvm, f"{_SERVER}.resourcemanager.ResourceManager"]
        )
        self.node = self._server(folder / "node", [*jvm, f"{_SERVER}.nodemanager.NodeManager"])

    def __enter__(self) -> Self:
        self.manager.begin()
        self.node.begin()
        self.manager.wait_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.node.stop()
        self.manager.stop()

    def _server(self, folder: Path, command: list[str]) -> Server:
        folder.mkdir()
        return Server(command, folder, is_ready=lambda _: self._nodes() > 0)

    def _nodes(self) -> int:
        """Return how many nodes the resource manager has."""
        url = f"http://{self._web}/ws/v1/cluster/metrics"
        with suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
            return int(json.load(answer)["clusterMetrics"]["activeNodes"])
        return 0


def fetch() -> None:
    """Fill the cache.

    Raises:
        Unavailable: it cannot be had.
    """
    jars("yarn", _JARS)


def _node(folder: Path) -> dict[str, str]:
    return {
        "yarn.resourcemanager.hostname": "127.0.0.1",
        # The one by default wants a file with queues.
        "yarn.resourcemanager.scheduler.class": _SCHEDULER,
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.nodemanager.hostname": "127.0.0.1",
        "yarn.nodemanager.address": "127.0.0.1:0",
        "yarn.nodemanager.localizer.address": f"127.0.0.1:{free_port()}",
        "yarn.nodemanager.webapp.address": f"127.0.0.1:{free_port()}",
        "yarn.nodemanager.resource.memory-mb": "6144",
        "yarn.nodemanager.resource.cpu-vcores": "8",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "logs"),
        "yarn.nodemanager.env-whitelist": "JAVA_HOME,PATH",
        # A disk that is nearly full is no broken one.
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.5",
        "yarn.nodemanager.delete.debug-delay-sec": "600",
        # Spark brings the classes of Hadoop that it needs.
        "yarn.application.classpath": os.devnull,
    }
