"""A real cluster on this machine: master and workers as processes, in a folder of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, Self

from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.net.limits import transport_limits
from gearpy.cluster.net.masters import Masters
from gearpy.config.load import from_overrides
from gearpy.errors import GearpyError
from gearpy.ids import AppId
from gearpy.messages.client import ClusterSummary, DescribeApplication, GetCluster
from gearpy.messages.summaries import ApplicationDetail
from gearpy.transport.letters.client import ControlClient
from gearpy.transport.security.secret import load_or_create_secret

_READY_S: Final = 120.0
_POLL_S: Final = 0.02
_ROLES: Final = ("appmaster", "executor")
_KEPT: Final = list[socket.socket]()  #: Bound, and not listening: their ports are taken.


class Daemon:
    """A master or worker process that can be killed and started again."""

    def __init__(
        self,
        args: list[str],
        env: Mapping[str, str],
        said: Path,
        *,
        module: str = "gearpy",
        before: Sequence[str] = (),
    ) -> None:
        self._args, self._module, self._before = args, module, before
        self._env = dict(env)
        self._python, self._more_env = sys.executable, dict[str, str]()
        self._said = said
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        if self.process is None or self.process.poll() is not None:
            return None
        return self.process.pid

    def run_as(self, python: str, more_env: Mapping[str, str]) -> None:
        self._python, self._more_env = python, dict(more_env)

    @property
    def said(self) -> str:
        return self._said.read_text(encoding="utf-8", errors="replace")

    def start(self) -> None:
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [*self._before, self._python, "-P", "-m", self._module, *self._args],
                env={**self._env, **self._more_env},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    def wait_ready(self, timeout_s: float = _READY_S) -> None:
        until_s = time.monotonic() + timeout_s
        while b" ready" not in self._said.read_bytes():
            assert self.process is not None
            if time.monotonic() > until_s or self.process.poll() is not None:
                raise TimeoutError(f"{self._args[0]} is not ready: {self._said.read_text()}")
            time.sleep(_POLL_S)

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self, timeout_s: float = 20.0) -> int:
        """Ask it to end, and wait; returns its exit code."""
        assert self.process is not None
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL


class ProcessCluster:
    """Some masters and workers; everything they write is below ``folder``.

    Args:
        masters: how many; the only one, or the first, is ``master``.
        settings: keys of the configuration, for daemons and applications alike.
        master_env: what each master has in its environment, by its address and those of all.
    """

    def __init__(
        self,
        folder: Path,
        *,
        masters: int = 1,
        workers: int = 3,
        slots: int = 16,
        settings: Mapping[str, str] | None = None,
        master_options: Sequence[str] = (),
        master_module: str = "gearpy",
        master_env: Callable[[str, Sequence[str]], Mapping[str, str]] = lambda *_: {},
    ) -> None:
        self.folder = folder
        self.addresses = [f"127.0.0.1:{free_port()}" for _ in range(masters)]
        self.address = ",".join(self.addresses)
        self.settings = {
            "cluster.masters": self.address,
            "transport.secret-file": str(folder / "secret"),
            "master.folder": str(folder / "master"),
            "worker.folder": str(folder / "worker"),
            "checkpoint.folder": str(folder / "checkpoints"),
            "log.folder": str(folder / "logs"),
            **(settings or {}),
        }
        self.config = from_overrides(self.settings)
        self._env = {key: text for key, text in os.environ.items() if not key.startswith("GEARPY_")}
        self._master_module, self._master_env = master_module, master_env
        self.masters: list[Daemon] = []
        for address in self.addresses:
            self.masters.append(self._new_master(address, *master_options))
        self.master = self.masters[0]
        args = ["worker", "--slots", str(slots), *self.options()]
        self.workers = [
            Daemon(args, self._env, folder / f"worker{number}.out") for number in range(workers)
        ]
        self._control: ControlClient | None = None
        self._asking: Masters | None = None

    def options(self) -> list[str]:
        return [part for pair in self.settings.items() for part in ("--set", "=".join(pair))]

    def _new_master(self, address: str, *options: str) -> Daemon:
        host, _, port = address.partition(":")
        name = f"master{len(self.masters) or ''}"
        own = ["--host", host, "--port", port, "--folder", str(self.folder / name)]
        args = ["master", *own, *self.options(), *options]
        env = {**self._env, **self._master_env(address, self.addresses)}
        return Daemon(args, env, self.folder / f"{name}.out", module=self._master_module)

    def add_master(self) -> str:
        """Add one more master to several; return its address. Who runs is given no new list."""
        address = f"127.0.0.1:{free_port()}"
        self.addresses.append(address)
        self.settings["cluster.masters"] = ",".join(self.addresses)
        self.masters.append(self._new_master(address, "--join"))
        self.masters[-1].start()
        self.masters[-1].wait_ready()
        self.client.change_masters("add", address)
        return address

    def start(self) -> None:
        for master in self.masters:
            master.start()
        for master in self.masters:
            master.wait_ready()
        for worker in self.workers:
            worker.start()
        for worker in self.workers:
            worker.wait_ready()

    def stop(self) -> None:
        for daemon in [*self.workers, *self.masters]:
            daemon.signal(signal.SIGCONT)
            daemon.signal(signal.SIGTERM)
        for daemon in [*self.workers, *self.masters]:
            if daemon.process is not None:
                daemon.stop()
        for asking in (self._control, self._asking):
            if asking is not None:
                asking.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def client(self) -> ClusterClient:
        """Return a client; every question may raise while the master is away."""
        secret = load_or_create_secret(self.config.transport.secret_file)
        limits = transport_limits(self.config)
        if len(self.masters) > 1:
            self._asking = self._asking or Masters(
                self.addresses, secret, limits, timeout_s=30.0, one_cluster=True
            )
            return ClusterClient(self._asking.ask)
        if self._control is None:
            self._control = ControlClient(self.address, secret, limits)
        control = self._control
        return ClusterClient(lambda message: control.ask(message, 5.0))

    def leader(self) -> Daemon | None:
        """Return the master that leads, by its own word; None if none answers so."""
        secret = load_or_create_secret(self.config.transport.secret_file)
        for address, daemon in zip(self.addresses, self.masters, strict=True):
            client = ControlClient(address, secret, transport_limits(self.config))
            with client, suppress(GearpyError):
                if isinstance(client.ask(GetCluster(), 2.0), ClusterSummary):
                    return daemon
        return None

    def detail(self, app_id: AppId) -> ApplicationDetail | None:
        """Return what the app master says; None while it, or the master, is away."""
        with suppress(GearpyError):
            return self.client.ask(DescribeApplication(app_id=app_id))
        return None

    def app_master_pid(self, app_id: AppId) -> int | None:
        """Return the process of an app master: what a worker has launched that is no executor."""
        detail = self.detail(app_id)
        executors = {each.pid for each in detail.executors} if detail else set()
        for worker in self.workers:
            if worker.process is None or worker.process.poll() is not None:
                continue
            for pid in launched_by(worker.process.pid):
                if pid not in executors:
                    return pid
        return None

    def launched(self, role: Literal["appmaster", "executor"] | None = None) -> list[int]:
        """Return the processes that workers have started, for one role or all, asking nobody."""
        roles = _ROLES if role is None else (role,)
        return sorted(
            pid
            for worker in self.workers
            if worker.pid is not None
            for pid in launched_by(worker.pid, *roles)
        )

    @contextmanager
    def frozen_executors(self) -> Iterator[list[int]]:
        """Freeze all executors, and let them go on at the end; gives their processes."""
        pids = self.launched("executor")
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            until_s = time.monotonic() + _READY_S
            while not all(map(_is_frozen, pids)):
                assert time.monotonic() < until_s
                time.sleep(_POLL_S)
            yield pids
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def submit(self, program: Path, *args: str, executors: int) -> AppId:
        done = subprocess.run(
            [
                *(sys.executable, "-P", "-m", "gearpy", "app", "submit", "--json", *self.options()),
                *("--executors", str(executors), str(program), "--", *args),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=_READY_S,
        )
        if done.returncode:
            raise RuntimeError(done.stderr or done.stdout)
        answer: dict[str, Any] = json.loads(done.stdout)
        return AppId(answer["app_id"])


def free_port() -> int:
    """Return a port that nobody listens at, to be listened at as often as one likes.

    While this process lives, nobody who asks the system for any port is given this one.
    """
    free = socket.socket()
    free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # Servers say the same of theirs.
    free.bind(("127.0.0.1", 0))
    _KEPT.append(free)
    port: int = free.getsockname()[1]
    return port


def _is_frozen(pid: int) -> bool:
    tasks = Path(f"/proc/{pid}/task").glob("*/stat")
    return all(task.read_text().rpartition(")")[2].split()[0] == "T" for task in tasks)


def _working_folder(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cwd").readlink().name
    return ""


def launched_by(worker: int, *roles: str) -> list[int]:
    """Return the living processes that a worker has launched; forks of its fork server as well."""
    found, servers = list[int](), list[int]()
    for pid in children_of(worker):
        (found if _has_role(pid, _ROLES) else servers).append(pid)
    found += [pid for server in servers for pid in children_of(server)]
    return [pid for pid in found if _has_role(pid, roles or _ROLES)]


def _has_role(pid: int, roles: Sequence[str]) -> bool:
    return any(f"-{each}" in _working_folder(pid) for each in roles)


def children_of(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(child) for child in task.read_text().split()]
    return found
