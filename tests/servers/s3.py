"""An S3 server: moto, in a process of its own, with packages of its own."""

import sys
import urllib.request
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

from tests.bench.process_cluster import free_port
from tests.servers.process import Server, listens
from tests.servers.recipes import packages

_PACKAGES: Final = ("moto[s3]>=5.1,<6", "flask>=3", "flask-cors>=5")
KEY: Final = "test-key"
SECRET: Final = "test-secret"


class S3Address(NamedTuple):
    endpoint: str

    @property
    def options(self) -> dict[str, Any]:
        return {"key": KEY, "secret": SECRET, "endpoint_url": self.endpoint}

    @property
    def env(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def make_bucket(self) -> str:
        name = f"gearpy-{uuid4().hex}"
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")  # noqa: S310
        with urllib.request.urlopen(request, timeout=30):  # noqa: S310 - of this machine
            return f"s3://{name}"


class S3:
    """A server on a free port; what it has, it forgets when it ends."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.address = S3Address(f"http://127.0.0.1:{port}")
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        self.server = Server(
            command, folder, is_ready=listens(port), env={"PYTHONPATH": str(_packages())}
        )


def fetch() -> None:
    _packages()


def _packages() -> Path:
    return packages("moto", _PACKAGES)
