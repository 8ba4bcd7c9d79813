"""A PostgreSQL server, of Debian's package."""

import os
import pwd
import shutil
import tempfile
from pathlib import Path
from typing import Final, NamedTuple, Self

from tests.bench.process_cluster import free_port
from tests.servers.process import Server, says
from tests.servers.recipes import program, run

_PACKAGE: Final = "postgresql"
_VERSIONS: Final = Path("/usr/lib/postgresql")
_CLUSTERS: Final = Path("/etc/postgresql-common/createcluster.conf")
_READY: Final = "database system is ready to accept connections"
_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "max_prepared_transactions": "20",
}
USER: Final = "gearpy"
PASSWORD: Final = "gearpy-password"


class PostgresAddress(NamedTuple):
    host: str
    port: str

    @property
    def url(self) -> str:
        """The database of all tests, with the name and password of its owner."""
        return f"postgresql://{USER}:{PASSWORD}@{self.host}:{self.port}/postgres"


class Postgres:
    """A server on a free port; its files are safe from SIGKILL as those of any."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.address = PostgresAddress("127.0.0.1", str(free_port()))
        user = _user()
        # The server runs as nobody's root, and must get at its files.
        self._data = Path(tempfile.mkdtemp(prefix="gearpy-postgres-"))
        password = self._data / "password"
        password.write_text(PASSWORD)
        if user is not None:
            for path in (self._data, password):
                shutil.chown(path, user)
        (folder / "data").symlink_to(self._data)  # Removed with it.
        as_user = [] if user is None else ["setpriv", f"--reuid={user}", "--clear-groups", "--"]
        run(
            "making a database",
            [
                *(*as_user, _program("initdb"), "-D", f"{self._data}/db", "--no-sync"),
                *("-U", USER, "-A", "scram-sha-256", "-E", "UTF8", f"--pwfile={password}"),
            ],
        )
        settings = {**_SETTINGS, "port": self.address.port}
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        command = [_program("postgres"), "-D", f"{self._data}/db", *options]
        self.server = Server(command, folder, is_ready=says(_READY), user=user)

    def __enter__(self) -> Self:
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()
        shutil.rmtree(self._data, ignore_errors=True)


def fetch() -> None:
    _program("initdb")


def _program(name: str) -> str:
    if not os.geteuid() and not _CLUSTERS.exists():
        # Else installing the package starts a server on the usual port.
        _CLUSTERS.parent.mkdir(parents=True, exist_ok=True)
        _CLUSTERS.write_text("create_main_cluster = false\n")
    return program(name, package=_PACKAGE, path=_folders)


def _folders() -> str:
    return os.pathsep.join(map(str, sorted(_VERSIONS.glob("*/bin"), reverse=True)))


def _user() -> str | None:
    if os.geteuid():
        return None
    _program("initdb")  # Its package makes the user.
    return pwd.getpwnam("postgres").pw_name
