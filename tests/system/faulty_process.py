"""Puts a faulty network in front of the process that imports it: of every one of a cluster.

Others reach this process through proxies that it runs itself, with a thread that injects faults.
What was done is noted in files of a folder. `environment` returns what makes a process, and all
that it starts, do so.
"""

import json
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import TimeoutError as NotInTime
from itertools import count
from pathlib import Path
from typing import Any, Final

from gearpy.cluster.net.endpoint import Endpoint
from gearpy.ids import address_of
from gearpy.transport.api import LinkLost
from gearpy.transport.letters.peers import LetterPeers
from gearpy.transport.links.tcp import TcpTransport
from tests.system.network_build import ELSEWHERE, ProxiedTransport
from tests.transport.fault_proxy import Fault, FaultProxy, Network, Way

_FOLDER: Final = "NETWORK_FAULTS_FOLDER"
_UNTIL: Final = "NETWORK_FAULTS_UNTIL"
_ROOT: Final = Path(__file__).parents[2]
_SITE: Final = """\
import sys

sys.path.insert(0, {root!r})
from tests.system.faulty_process import install

install()
"""
_PAUSE_S: Final = 0.5, 1.5
_FRAME_S: Final = 1.0  # How long to wait for a frame to hit.
_CUT_AFTER_S: Final = 5.0
_CUT_S: Final = 4.0


def environment(folder: Path, until_s: float) -> dict[str, str]:
    """Return what a process must find in its environment; faults end at this wall time."""
    folder.mkdir()
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(_SITE.format(root=str(_ROOT)), encoding="utf-8")
    return {_FOLDER: str(folder), _UNTIL: str(until_s), "PYTHONPATH": str(site)}


def noted(folder: Path) -> Counter[str]:
    """Return how often each fault was injected, by all processes together."""
    lines = [
        line
        for path in folder.glob("*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return Counter(json.loads(line)["fault"] for line in lines)


def install(environ: Mapping[str, str] = os.environ) -> None:
    if "worker" in sys.argv:  # It is told the true address of the master.
        sys.argv[:] = [
            arg.replace("cluster.masters=127.0.0.1:", f"cluster.masters={ELSEWHERE}:")
            for arg in sys.argv
        ]
    faults = _Faults(Path(environ[_FOLDER]), float(environ[_UNTIL]))
    serve_peers, data_transport = TcpTransport.serve_peers, Endpoint.data_transport

    def serve_elsewhere(transport: TcpTransport, *args: Any, **kwargs: Any) -> LetterPeers:
        nodes = serve_peers(transport, *args, **{**kwargs, "hostname": ELSEWHERE})
        faults.begin(transport.address, address_of(nodes.node))
        return nodes

    def transport_elsewhere(endpoint: Endpoint, on_lost: LinkLost) -> Any:
        return ProxiedTransport(data_transport(endpoint, on_lost), faults.network)

    setattr(TcpTransport, "serve_peers", serve_elsewhere)  # noqa: B010 - mypy refuses the other
    setattr(Endpoint, "data_transport", transport_elsewhere)  # noqa: B010 - the same


class _Faults:
    def __init__(self, folder: Path, until_s: float) -> None:
        self._until_s = until_s
        self._file, number = _new_file(folder)
        self._rng = random.Random(number)
        self.network = Network(seed=number)
        self._has_begun = False

    def begin(self, target: str, address: str) -> None:
        """Carry what others say to this process, badly; a worker may begin anew."""
        if self._has_begun:
            self.network.proxy(target, address=address)
            return
        self._has_begun = True
        self.network.__enter__()
        letters = self.network.proxy(target, address=address)
        threading.Thread(target=self._inject_often, daemon=True).start()
        if "master" in sys.argv:
            threading.Thread(target=self._cut_cable, args=(letters,), daemon=True).start()

    def _inject_often(self) -> None:
        while time.time() < self._until_s:
            time.sleep(self._rng.uniform(*_PAUSE_S))
            proxy = self._rng.choice(self.network.proxies)
            fault, way = self._rng.choice(list(Fault)), self._rng.choice(list(Way))
            try:
                proxy.inject(fault, way).result(_FRAME_S)
            except NotInTime:
                proxy.disarm()
            else:
                self._note(fault.name, way.name)

    def _cut_cable(self, proxy: FaultProxy) -> None:
        """Let no packet through for longer than others wait for a sign of life."""
        time.sleep(_CUT_AFTER_S)
        proxy.unplug()
        self._note("CUT_CABLE", "both")
        time.sleep(_CUT_S)
        proxy.plug_in()

    def _note(self, fault: str, way: str) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"fault": fault, "way": way, "of": sys.argv[:2]}) + "\n")


def _new_file(folder: Path) -> tuple[Path, int]:
    for number in count():
        path = folder / f"{number}.jsonl"
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            continue
        return path, number
    raise AssertionError
