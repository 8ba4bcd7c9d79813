"""HDFS: a name node and a data node, each a process."""

import json
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from tests.bench.process_cluster import free_port
from tests.servers.process import Server, java
from tests.servers.recipes import jars, run

_VERSION: Final = "3.4.1"
_JARS: Final = tuple(
    f"org.apache.hadoop:{name}:{_VERSION}"
    for name in ("hadoop-hdfs", "hadoop-hdfs-client", "hadoop-common")
)
_HEAP_MB: Final = 256
_SERVER: Final = "org.apache.hadoop.hdfs.server"
_NAME_NODE: Final = f"{_SERVER}.namenode.NameNode"
_DATA_NODE: Final = f"{_SERVER}.datanode.DataNode"
_LOGGING: Final = """\
log4j.rootLogger=WARN,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c{1} %m%n
"""


class HdfsAddress(NamedTuple):
    """Where a cluster is: ``host:port`` of the name node.

    Attributes:
        web: for WebHDFS.
        rpc: for programs with Java.
    """

    web: str
    rpc: str


class Hdfs:
    """A cluster of one name node and one data node, on free ports; nobody is asked who he is.

    Args:
        folder: an empty one.

    Raises:
        Unavailable: it is not to be had here.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.address = HdfsAddress(*(f"127.0.0.1:{free_port()}" for _ in HdfsAddress._fields))
        (folder / "log4j.properties").write_text(_LOGGING)
        for name in ("hdfs", "datanode"):  # Its pages for people, which the jars lack.
            (folder / "webapps" / name).mkdir(parents=True)
        for name in ("core-site.xml", "hdfs-site.xml"):
            (folder / name).write_text(_site(self.address, folder))
        jvm = [
            *(*java(_HEAP_MB), "--add-opens", "java.base/java.lang=ALL-UNNAMED"),
            *("-cp", f"{folder}:{jars('hdfs', _JARS)}/*"),
        ]
        run("formatting HDFS", [*jvm, _NAME_NODE, "-format", "-nonInteractive"])
        self.names = self._server(folder / "names", [*jvm, _NAME_NODE])
        self.blocks = self._server(folder / "blocks", [*jvm, _DATA_NODE])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.blocks.stop()
        self.names.stop()

    def start(self) -> None:
        """Start both and wait until files can be written."""
        self.names.begin()
        self.blocks.begin()
        self.names.wait_ready()

    def _server(self, folder: Path, command: list[str]) -> Server:
        folder.mkdir(exist_ok=True)
        return Server(command, folder, is_ready=lambda _: is_usable(self.address))


def fetch() -> None:
    """Fill the cache.

    Raises:
        Unavailable: it cannot be had.
    """
    jars("hdfs", _JARS)


def is_usable(address: HdfsAddress) -> bool:
    """Tell whether the name node has a data node, and lets files be changed."""
    url = f"http://{address.web}/jmx?qry=Hadoop:service=NameNode,name="
    with suppress(OSError):
        state = _bean(f"{url}FSNamesystemState")
        return bool(state) and state["NumLiveDataNodes"] > 0 and state["FSState"] == "Operational"
    return False


def _bean(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - of this machine
        beans = json.load(answer)["beans"]
    return dict(beans[0]) if beans else {}


def _site(address: HdfsAddress, folder: Path) -> str:
    settings = {
        "fs.defaultFS": f"hdfs://{address.rpc}",
        "dfs.namenode.rpc-address": address.rpc,
        "dfs.namenode.http-address": address.web,
        "dfs.namenode.name.dir": f"{folder.as_uri()}/names/data",
        "dfs.namenode.safemode.extension": "0",
        "dfs.datanode.data.dir": f"{folder.as_uri()}/blocks/data",
        "dfs.datanode.address": "127.0.0.1:0",
        "dfs.datanode.http.address": "127.0.0.1:0",
        "dfs.datanode.ipc.address": "127.0.0.1:0",
        "dfs.datanode.hostname": "127.0.0.1",
        "dfs.heartbeat.interval": "1",
        "dfs.replication": "1",
        "dfs.permissions.enabled": "false",
        # Else each small file waits for 400 ms until its block is reported.
        "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "20",
    }
    return site(settings)


def site(settings: Mapping[str, str]) -> str:
    """Return a file of settings of Hadoop."""
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in settings.items()
    )
    return f"<configuration>{properties}</configuration>"
