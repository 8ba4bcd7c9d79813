"""A schema registry with Confluent's interface: Apicurio, with what it has in memory."""

from pathlib import Path
from typing import Final

from tests.bench.process_cluster import free_port
from tests.servers.process import Server, java, says
from tests.servers.recipes import unpacked_artifact

_ARTIFACT: Final = "io.apicurio:apicurio-registry-app:3.3.3:tar.gz:all"
_JAVA: Final = 21
_HEAP_MB: Final = 320
_READY: Final = "Listening on: http"


class Registry:
    """A server on a free port; what it has, it forgets when it ends."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": port,
            "quarkus.management.host": "127.0.0.1",
            "quarkus.management.port": free_port(),
        }
        command = [*java(_HEAP_MB, _JAVA), *(f"-D{key}={value}" for key, value in settings.items())]
        program = _program() / "quarkus-run.jar"
        self.server = Server([*command, "-jar", str(program)], folder, is_ready=says(_READY))


def fetch() -> None:
    _program()


def _program() -> Path:
    return unpacked_artifact("apicurio", _ARTIFACT)
