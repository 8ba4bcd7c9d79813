"""Three masters as processes that are killed, frozen, and cut off from each other, also one way."""

import random
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from gearpy.errors import GearpyError
from tests.bench.linear_site import Bug, environment
from tests.bench.process_cluster import Daemon, ProcessCluster
from tests.transport.fault_proxy import FaultProxy, Network

_WITHIN_S: Final = 120.0
_PAUSE_S: Final = 0.05
_AWAY_S: Final = (0.3, 2.0)
_CUT_S: Final = (2.5, 5.0)  # Mostly longer than it takes until another one leads.
#: Nothing fails because it waits, and a lost app master is launched again at once.
_SETTINGS: Final = {
    "resource-allocation-timeout-seconds": "86400",
    "application.total-retries": "100000",
    "application.backoff-base-ms": "10",
}


class LinearMasters:
    def __init__(self, folder: Path, *, seed: int, bug: Bug | None = None) -> None:
        self._folder, self._bug = folder, bug
        self._rng = random.Random(seed)
        self._network = Network(seed)
        self._ways: dict[tuple[str, str], FaultProxy] = {}

    def __enter__(self) -> Self:
        self._network.__enter__()
        try:
            self.cluster = ProcessCluster(
                self._folder, masters=3, workers=0, settings=_SETTINGS, master_env=self._environment
            )
            self.cluster.__enter__()
        except BaseException:
            self._network.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.mend()
        self.cluster.__exit__()
        self._network.__exit__()

    def leader(self) -> str:
        until_s = time.monotonic() + _WITHIN_S
        while time.monotonic() < until_s:
            with suppress(GearpyError):
                if (leader := self.cluster.leader()) is not None:
                    return self.cluster.addresses[self.cluster.masters.index(leader)]
            time.sleep(_PAUSE_S)
        raise TimeoutError("no master leads, although all are there")

    def strike(self, kind: str, leader: str) -> None:
        """Do one of `KINDS`, when a master leads; it lasts for a while."""
        others = [each for each in self.cluster.addresses if each != leader]
        KINDS[kind](self, leader, others)
        lasts_s = _AWAY_S if "killed" in kind else _CUT_S
        time.sleep(self._rng.uniform(*lasts_s))

    def mend(self) -> None:
        for daemon in self.cluster.masters:
            daemon.signal(signal.SIGCONT)
            if daemon.pid is None:
                daemon.start()
        for way in self._ways.values():
            way.plug_in()

    def _environment(self, address: str, all_of_them: Sequence[str]) -> Mapping[str, str]:
        """Make the ways of a master, and return what it must find in its environment."""
        for other in all_of_them:
            if other != address:
                self._ways[address, other] = self._network.proxy(other, frames=False)
        ways = {other: way.address for (one, other), way in self._ways.items() if one == address}
        number = all_of_them.index(address)
        return environment(self._folder / f"site{number}", ways, self._bug)

    # -- what is done ----------------------------------------------------------------------

    def kill(self, *addresses: str) -> None:
        daemons = [self._daemon(each) for each in addresses]
        for daemon in daemons:
            daemon.signal(signal.SIGKILL)
        for daemon in daemons:
            daemon.kill()

    def freeze(self, address: str) -> None:
        self._daemon(address).signal(signal.SIGSTOP)

    def cut(self, ones: Collection[str], others: Collection[str]) -> None:
        """Let nothing that these say come to those, nor answers on the same connections."""
        for (one, other), way in self._ways.items():
            if one in ones and other in others:
                way.unplug()

    def cut_both_ways(self, ones: Collection[str], others: Collection[str]) -> None:
        self.cut(ones, others)
        self.cut(others, ones)

    def one_of(self, addresses: Sequence[str]) -> str:
        return self._rng.choice(addresses)

    def _daemon(self, address: str) -> Daemon:
        return self.cluster.masters[self.cluster.addresses.index(address)]


#: What can be done, by name; given the leader and the others.
KINDS: Final[Mapping[str, Callable[[LinearMasters, str, Sequence[str]], None]]] = {
    "leader killed": lambda it, leader, _: it.kill(leader),
    "leader frozen": lambda it, leader, _: it.freeze(leader),
    "leader cut off": lambda it, leader, others: it.cut_both_ways([leader], others),
    "leader not heard": lambda it, leader, others: it.cut([leader], others),
    "leader hears nobody": lambda it, leader, others: it.cut(others, [leader]),
    "leader cut from one": lambda it, leader, others: it.cut_both_ways(
        [leader], [it.one_of(others)]
    ),
    "follower killed": lambda it, _, others: it.kill(it.one_of(others)),
    "follower frozen": lambda it, _, others: it.freeze(it.one_of(others)),
    "all killed": lambda it, leader, others: it.kill(leader, *others),
    "all cut off": lambda it, *_: it.cut(it.cluster.addresses, it.cluster.addresses),
}
