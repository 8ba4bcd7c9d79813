"""Google's object store: fake-gcs-server, with what it has in memory."""

import json
import os
import urllib.request
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

from tests.bench.process_cluster import free_port
from tests.servers.process import Server, listens
from tests.servers.recipes import go_program

#: gcsfs would ask which kind of bucket it is by gRPC with TLS, which this server does not speak.
os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")

_MODULE: Final = "github.com/fsouza/fake-gcs-server@v1.54.0"


class GcsAddress(NamedTuple):
    endpoint: str

    @property
    def options(self) -> dict[str, Any]:
        return {"endpoint_url": self.endpoint, "token": "anon", "project": "test"}

    def make_bucket(self) -> str:
        name = f"gearpy-{uuid4().hex}"
        request = urllib.request.Request(  # noqa: S310 - of this machine
            f"{self.endpoint}/storage/v1/b?project=test",
            data=json.dumps({"name": name}).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30):  # noqa: S310 - of this machine
            return f"gs://{name}"


class Gcs:
    """A server on a free port; what it has, it forgets when it ends."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.address = GcsAddress(f"http://127.0.0.1:{port}")
        command = [
            *(str(_program()), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)),
            *("-backend", "memory", "-external-url", self.address.endpoint),
            *("-public-host", f"127.0.0.1:{port}", "-log-level", "error"),
        ]
        self.server = Server(command, folder, is_ready=listens(port))


def fetch() -> None:
    _program()


def _program() -> Path:
    return go_program("fake-gcs-server", _MODULE)
