"""HDFS: a name node and a data node, each a process."""

import json
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from urllib.error import HTTPError

from tests.bench.process_cluster import free_port
from tests.servers.kerberos import Kdc
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
_HOST: Final = "127.0.0.1"
#: Principals of Kerberos have names of machines.
_NAMED_HOST: Final = "localhost"
#: Who owns a cluster where it is asked.
SUPERUSER: Final = f"nn/{_NAMED_HOST}"
_KERBEROS_IN_JAVA: Final = (
    *("--add-opens", "java.security.jgss/sun.security.krb5=ALL-UNNAMED"),
    *("--add-exports", "java.security.jgss/sun.security.krb5=ALL-UNNAMED"),
    "-Djava.net.preferIPv4Stack=true",
)
_LOGGING: Final = """\
log4j.rootLogger=WARN,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c{1} %m%n
"""


class HdfsAddress(NamedTuple):
    """Where a cluster is: ``host:port`` of the name node."""

    web: str
    rpc: str


class Hdfs:
    """A cluster of one name node and one data node, on free ports.

    Args:
        kdc: by which all say who they are, and have the rights of that user; without, nobody is
            asked, and everybody may do all. `SUPERUSER` may do all with it, too.
    """

    def __init__(self, folder: Path, kdc: Kdc | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        host = _HOST if kdc is None else _NAMED_HOST
        self.address = HdfsAddress(*(f"{host}:{free_port()}" for _ in HdfsAddress._fields))
        settings = _settings(self.address, folder)
        if kdc is not None:
            settings |= _secure(kdc)
        (folder / "log4j.properties").write_text(_LOGGING)
        for name in ("hdfs", "datanode"):  # Its pages for people, which the jars lack.
            (folder / "webapps" / name).mkdir(parents=True)
        for name in ("core-site.xml", "hdfs-site.xml"):
            (folder / name).write_text(site(settings))
        jvm = [
            *(*java(_HEAP_MB), "--add-opens", "java.base/java.lang=ALL-UNNAMED"),
            *(
                []
                if kdc is None
                else [*_KERBEROS_IN_JAVA, f"-Djava.security.krb5.conf={kdc.config}"]
            ),
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
        self.names.begin()
        self.blocks.begin()
        self.names.wait_ready()

    def _server(self, folder: Path, command: list[str]) -> Server:
        folder.mkdir(exist_ok=True)
        return Server(command, folder, is_ready=lambda _: is_usable(self.address))


def fetch() -> None:
    jars("hdfs", _JARS)


def is_usable(address: HdfsAddress) -> bool:
    """Tell whether the name node has a data node, and lets files be changed.

    One that asks for a login has begun; nothing more can be asked without one.
    """
    url = f"http://{address.web}/jmx?qry=Hadoop:service=NameNode,name="
    try:
        state = _bean(f"{url}FSNamesystemState")
    except HTTPError as error:
        return error.code == HTTPStatus.UNAUTHORIZED
    except OSError:
        return False
    return bool(state) and state["NumLiveDataNodes"] > 0 and state["FSState"] == "Operational"


def _bean(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - of this machine
        beans = json.load(answer)["beans"]
    return dict(beans[0]) if beans else {}


def _settings(address: HdfsAddress, folder: Path) -> dict[str, str]:
    host = address.rpc.partition(":")[0]
    return {
        "fs.defaultFS": f"hdfs://{address.rpc}",
        "dfs.namenode.rpc-address": address.rpc,
        "dfs.namenode.http-address": address.web,
        "dfs.namenode.name.dir": f"{folder.as_uri()}/names/data",
        "dfs.namenode.safemode.extension": "0",
        "dfs.datanode.data.dir": f"{folder.as_uri()}/blocks/data",
        "dfs.datanode.address": f"{host}:0",
        "dfs.datanode.http.address": f"{host}:0",
        "dfs.datanode.ipc.address": f"{host}:0",
        "dfs.datanode.hostname": host,
        "dfs.heartbeat.interval": "1",
        "dfs.replication": "1",
        "dfs.permissions.enabled": "false",
        # Else each small file waits for 400 ms until its block is reported.
        "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "20",
    }


def _secure(kdc: Kdc) -> dict[str, str]:
    """Return the settings by which all log in; ports need not be those that are root's."""
    web = f"HTTP/{_NAMED_HOST}"
    nodes = {"namenode": SUPERUSER, "datanode": f"dn/{_NAMED_HOST}"}
    keytab = str(kdc.keytab(*nodes.values(), web))
    settings = {
        "hadoop.security.authentication": "kerberos",
        "dfs.block.access.token.enable": "true",
        "dfs.permissions.enabled": "true",
        "hadoop.http.authentication.type": "kerberos",
        "hadoop.http.authentication.kerberos.principal": kdc.principal(web),
        "hadoop.http.authentication.kerberos.keytab": keytab,
        "dfs.web.authentication.kerberos.principal": kdc.principal(web),
        "dfs.web.authentication.kerberos.keytab": keytab,
        "ignore.secure.ports.for.testing": "true",
    }
    for node, name in nodes.items():
        settings[f"dfs.{node}.kerberos.principal"] = kdc.principal(name)
        settings[f"dfs.{node}.keytab.file"] = keytab
    return settings


def site(settings: Mapping[str, str]) -> str:
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in settings.items()
    )
    return f"<configuration>{properties}</configuration>"
