"""YARN: a resource manager and a node manager, each a process, over a folder of this machine."""

import getpass
import json
import os
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

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
#: What containers may have together.
NODE_MB: Final = 6144
_SERVER: Final = "org.apache.hadoop.yarn.server"
_LOGGING: Final = """\
log4j.rootLogger=WARN,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c{1} %m%n
"""
#: The queue of who has not named one may have the whole node, and gives it back to urgent ones.
_SHARES: Final = {"default": "20", "urgent": "80"}
_OF_EACH_QUEUE: Final = {
    "maximum-capacity": "100",
    "user-limit-factor": "10",
    "maximum-am-resource-percent": "1",
    "state": "RUNNING",
}
_AT_ONCE: Final = {
    "monitoring_interval": "500",
    "max_wait_before_kill": "500",
    "total_preemption_per_round": "1.0",
    "natural_termination_factor": "1.0",
    "max_ignored_over_capacity": "0",
}
#: A process that waits until it is killed.
_WAITING: Final = {
    "application-name": "urgent",
    "application-type": "tests",
    "queue": "urgent",
    "max-app-attempts": 1,
    "am-container-spec": {"commands": {"command": "sleep 3600"}},
}
#: Of the resource manager, each on a free port.
_PLACES: Final = ("", ".scheduler", ".resource-tracker", ".admin", ".webapp")


class Yarn:
    """A cluster with one node of 8 cores and 6 GB; nobody is asked who he is.

    Its applications may use all of it, until an urgent one takes memory from them.

    Args:
        folder: an empty one; ``conf`` in it is for ``HADOOP_CONF_DIR``.
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
        (self.conf / "capacity-scheduler.xml").write_text(site(_queues()))
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

    def begin_urgent(self, memory_mb: int) -> str:
        """Start an application that is worth more than others; return its id.

        Containers of others are killed where that is what it takes.
        """
        app_id = str(self._told("POST", "new-application", {})["application-id"])
        resource = {"memory": memory_mb, "vCores": 1}
        self._told("POST", "", {**_WAITING, "application-id": app_id, "resource": resource})
        return app_id

    def kill(self, app_id: str) -> None:
        self._told("PUT", f"{app_id}/state", {"state": "KILLED"})

    def state(self, app_id: str) -> str:
        return str(self._told("GET", f"{app_id}/state")["state"])

    def applications(self) -> list[dict[str, Any]]:
        found = self._told("GET", "")["apps"] or {}
        return list(found.get("app", ()))

    def _told(self, method: str, what: str, said: Mapping[str, Any] | None = None) -> Any:
        user = getpass.getuser()
        url = f"http://{self._web}/ws/v1/cluster/apps/{what}".rstrip("/")
        request = urllib.request.Request(  # noqa: S310 - it is ours
            f"{url}?user.name={user}",
            method=method,
            data=None if said is None else json.dumps(said).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - likewise
            text = answer.read()
        return json.loads(text) if text else {}

    def _server(self, folder: Path, command: list[str]) -> Server:
        folder.mkdir()
        return Server(command, folder, is_ready=lambda _: self._nodes() > 0)

    def _nodes(self) -> int:
        url = f"http://{self._web}/ws/v1/cluster/metrics"
        with suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
            return int(json.load(answer)["clusterMetrics"]["activeNodes"])
        return 0


def fetch() -> None:
    jars("yarn", _JARS)


def _queues() -> dict[str, str]:
    """Return settings of the scheduler: who may have how much, and that it is taken from others."""
    known, taking = "yarn.scheduler.capacity", "yarn.resourcemanager.monitor.capacity.preemption"
    return {
        f"{known}.root.queues": ",".join(_SHARES),
        **{f"{known}.root.{queue}.capacity": share for queue, share in _SHARES.items()},
        **{
            f"{known}.root.{queue}.{key}": value
            for queue in _SHARES
            for key, value in _OF_EACH_QUEUE.items()
        },
        **{f"{taking}.{key}": value for key, value in _AT_ONCE.items()},
    }


def _node(folder: Path) -> dict[str, str]:
    return {
        "yarn.resourcemanager.hostname": "127.0.0.1",
        "yarn.resourcemanager.scheduler.monitor.enable": "true",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.resourcemanager.am.max-attempts": "5",
        # One that never says a word waits as long as it takes.
        "yarn.am.liveness-monitor.expiry-interval-ms": "3600000",
        "yarn.nodemanager.hostname": "127.0.0.1",
        "yarn.nodemanager.address": "127.0.0.1:0",
        "yarn.nodemanager.localizer.address": f"127.0.0.1:{free_port()}",
        "yarn.nodemanager.webapp.address": f"127.0.0.1:{free_port()}",
        "yarn.nodemanager.resource.memory-mb": str(NODE_MB),
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
