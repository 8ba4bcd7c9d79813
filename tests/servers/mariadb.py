"""A MariaDB server, of Debian's package."""

import os
import pwd
import shutil
import tempfile
from pathlib import Path
from typing import Final, NamedTuple, Self

from tests.bench.process_cluster import free_port
from tests.servers.process import Server, says
from tests.servers.recipes import program, run

_PACKAGE: Final = "mariadb-server"
_READY: Final = "ready for connections"
_FOLDERS: Final = f"{os.environ.get('PATH', '')}:/usr/sbin"
USER: Final = "gearpy"
PASSWORD: Final = "gearpy-password"


class MariadbAddress(NamedTuple):
    host: str
    port: str

    @property
    def url(self) -> str:
        """The database of all tests, with the name and password of its owner.

        Else each connection would read the certificates of the machine, which takes far longer.
        """
        return f"mariadb://{USER}:{PASSWORD}@{self.host}:{self.port}/shop?ssl_disabled=true"


class Mariadb:
    """A server on a free port."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.address = MariadbAddress("127.0.0.1", str(free_port()))
        user = "mysql" if not os.geteuid() else None
        install, daemon = _program("mariadb-install-db"), _program("mariadbd")
        self._data = Path(tempfile.mkdtemp(prefix="gearpy-mariadb-"))
        first = self._data / "first.sql"
        first.write_text(
            "create database if not exists shop;\n"
            f"create user if not exists {USER}@'127.0.0.1' identified by '{PASSWORD}';\n"
            f"grant all on *.* to {USER}@'127.0.0.1';\n"
        )
        if user is not None:
            pwd.getpwnam(user)  # The package makes it.
            for path in (self._data, first):
                shutil.chown(path, user)
        (folder / "data").symlink_to(self._data)
        as_user = [] if user is None else [f"--user={user}"]
        made = [f"--datadir={self._data}/db", "--auth-root-authentication-method=normal"]
        run("making a database", [install, "--no-defaults", *made, "--skip-test-db", *as_user])
        self.server = Server(
            [
                *(daemon, "--no-defaults", f"--datadir={self._data}/db", "--skip-name-resolve"),
                *("--bind-address=127.0.0.1", f"--port={self.address.port}"),
                *(f"--socket={self._data}/socket", f"--init-file={first}"),
                "--innodb-buffer-pool-size=32M",
                # It may be killed, but the machine stays: what was written is there without a sync.
                *("--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync"),
            ],
            folder,
            is_ready=says(_READY),
            user=user,
        )

    def __enter__(self) -> Self:
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()
        shutil.rmtree(self._data, ignore_errors=True)


def fetch() -> None:
    _program("mariadbd")


def _program(name: str) -> str:
    return program(name, package=_PACKAGE, path=lambda: _FOLDERS)
