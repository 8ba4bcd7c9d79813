"""What can happen to the processes of a real cluster: they are killed, or frozen for a while.

The machine may lose its power, too: then all of them are killed at once.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from tests.bench.process_cluster import Daemon, ProcessCluster

#: How often each kind is chosen, compared with the others.
ANY_KIND: Final[Mapping[str, int]] = {
    "executor SIGKILL": 6,
    "app master SIGKILL": 3,
    "worker SIGKILL": 3,
    "master SIGKILL": 2,
    "executor SIGSTOP": 1,
    "app master SIGSTOP": 1,
    "worker SIGSTOP": 1,
    "master SIGSTOP": 1,
}


def chosen(kinds: Mapping[str, int], rng: random.Random) -> str:
    return rng.choices([*kinds], [*kinds.values()])[0]


class Outsider(Protocol):
    """A server that is no part of gearpy, such as a broker: a `tests.servers.process.Server`."""

    @property
    def pid(self) -> int | None: ...

    def begin(self) -> None: ...

    def kill(self) -> None: ...

    def freeze(self) -> None: ...

    def thaw(self) -> None: ...


class Faults:
    """Does harm to a cluster, and later undoes what does not mend itself.

    A frozen process goes on after a time, and a killed daemon is started again, as by whoever
    supervises it; that happens in `mend_due`.

    Args:
        frozen_s: how long a frozen process is, at least and at most.

    Attributes:
        outsiders: other servers that may be struck, by what they are called.
    """

    def __init__(
        self,
        cluster: ProcessCluster,
        rng: random.Random,
        *,
        frozen_s: tuple[float, float],
        away_s: tuple[float, float],
    ) -> None:
        self.outsiders: dict[str, Outsider] = {}
        self._cluster = cluster
        self._rng = rng
        self._frozen_s = frozen_s
        self._away_s = away_s
        self._later: list[tuple[float, Callable[[], None]]] = []

    def strike(self, kind: str) -> bool:
        """Do it; False if there is nobody at present to whom it could be done."""
        what, _, how = kind.rpartition(" ")
        if what in self.outsiders:
            return self._strike_outsider(self.outsiders[what], how)
        if what == "machine":
            return self._strike_machine()
        if what in {"worker", "master"}:
            daemons = self._cluster.workers if what == "worker" else [self._cluster.master]
            return self._strike_daemon(self._rng.choice(daemons), how)
        pids = self._cluster.launched("appmaster" if what == "app master" else "executor")
        if not pids:
            return False
        pid = self._rng.choice(pids)
        if how == "SIGSTOP":
            return self._freeze(pid)
        return _has_sent(pid, signal.SIGKILL)

    def mend_due(self) -> None:
        now_s = time.monotonic()
        due = [act for at_s, act in self._later if at_s <= now_s]
        self._later = [each for each in self._later if each[0] > now_s]
        for act in due:
            act()

    def mend_all(self) -> None:
        due, self._later = self._later, []
        for _, act in due:
            act()

    def _strike_daemon(self, daemon: Daemon, how: str) -> bool:
        pid = daemon.pid
        if pid is None:
            return False
        if how == "SIGSTOP":
            return self._freeze(pid)
        daemon.kill()  # Also a frozen one.
        self._do_later(self._away_s, lambda: _start(daemon))
        return True

    def _strike_machine(self) -> bool:
        """Kill all processes at once; later all daemons are started, in any order."""
        cluster = self._cluster
        daemons = [*cluster.masters, *cluster.workers]
        processes = *(each.pid for each in daemons), *cluster.launched()
        pids = [pid for pid in processes if pid is not None]
        for pid in pids:
            _has_sent(pid, signal.SIGKILL)
        for daemon in daemons:
            daemon.kill()
            self._do_later(self._away_s, partial(_start, daemon))
        return bool(pids)

    def _strike_outsider(self, server: Outsider, how: str) -> bool:
        if server.pid is None:
            return False
        if how == "SIGSTOP":
            server.freeze()
            self._do_later(self._frozen_s, server.thaw)
        else:
            server.kill()
            self._do_later(self._away_s, lambda: _begin(server))
        return True

    def _freeze(self, pid: int) -> bool:
        self._do_later(self._frozen_s, lambda: _go_on(pid))
        return _has_sent(pid, signal.SIGSTOP)

    def _do_later(self, within_s: tuple[float, float], act: Callable[[], None]) -> None:
        self._later.append((time.monotonic() + self._rng.uniform(*within_s), act))


def _start(daemon: Daemon) -> None:
    if daemon.pid is None:
        daemon.start()


def _begin(server: Outsider) -> None:
    if server.pid is None:
        server.begin()


def _go_on(pid: int) -> None:
    _has_sent(pid, signal.SIGCONT)


def _has_sent(pid: int, number: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False
