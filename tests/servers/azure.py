"""Azure's object store: Azurite, with what it has in memory."""

from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

from gearpy.storage.folder.at import file_system_at
from tests.bench.process_cluster import free_port
from tests.servers.process import Server, listens
from tests.servers.recipes import node_packages, program

_PACKAGE: Final = "azurite@3.35.0"
#: Those that every Azurite has.
_ACCOUNT: Final = "devstoreaccount1"
_KEY: Final = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


class AzureAddress(NamedTuple):
    endpoint: str

    @property
    def options(self) -> dict[str, Any]:
        return {"connection_string": self.connection}

    @property
    def connection(self) -> str:
        return (
            f"DefaultEndpointsProtocol=http;AccountName={_ACCOUNT};AccountKey={_KEY};"
            f"BlobEndpoint={self.endpoint}/{_ACCOUNT};"
        )

    def make_bucket(self) -> str:
        url = f"abfs://gearpy-{uuid4().hex}"
        files, path = file_system_at(url, self.options)
        files.mkdir(path)
        return url


class Azure:
    """A server on a free port; what it has, it forgets when it ends."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.address = AzureAddress(f"http://127.0.0.1:{port}")
        options = ["--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]
        command = [
            *(_node(), str(_blobs()), *options),
            *("--blobHost", "127.0.0.1", "--blobPort", str(port)),
        ]
        self.server = Server(command, folder, is_ready=listens(port))


def fetch() -> None:
    _node()
    _blobs()


def _node() -> str:
    return program("node", package="nodejs")


def _blobs() -> Path:
    folder = node_packages("azurite", [_PACKAGE])
    return folder / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
