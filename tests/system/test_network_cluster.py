"""An application whose network has faults: its answer is right, and no fault passes unseen."""

import queue
import random
import re
import sys
import time
from concurrent.futures import TimeoutError as NotInTime
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.worker.threads import ThreadLauncher
from gearpy.config.load import load
from gearpy.errors import GearpyError
from gearpy.ids import AppId
from gearpy.messages.client import Artifact, DescribeApplication, GetApplication
from gearpy.transport.api import LinkLost
from tests.bench import numbered
from tests.bench.process_cluster import ProcessCluster
from tests.eventually import DEADLINE_S, eventually
from tests.system.faulty_process import environment, noted
from tests.system.network_build import ProxiedTransport
from tests.transport.fault_proxy import Fault, FaultProxy, Network, Way

#: What cannot pass as anything but a fault; of whole frames, some can be done without.
LOUD: Final = frozenset(Fault) - {Fault.DROP, Fault.SWAP, Fault.DUPLICATE, Fault.DELAY}
RATE: Final = 3000
SETTINGS: Final = {
    "checkpoint.interval-ms": "200",
    "application.total-retries": "100000",
    "application.backoff-base-ms": "10",
    "cluster.heartbeat-timeout-ms": "1500",
    "masterclient.timeout": "5",
}


def status(client: ClusterClient, app_id: AppId) -> str:
    try:
        return client.ask(GetApplication(app_id=app_id)).status
    except GearpyError:
        return ""


class Proxied:
    """Lets executors of this process reach each other through proxies; notes lost links."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, network: Network) -> None:
        self.transports: list[ProxiedTransport] = []
        self.losses: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        make = ThreadLauncher._new_transport  # noqa: SLF001 - where transports are made

        def make_proxied(launcher: ThreadLauncher, name: str, on_lost: LinkLost) -> Any:
            def noted(address: str, reason: str) -> None:
                self.losses.put((address, reason))
                on_lost(address, reason)

            proxied = ProxiedTransport(make(launcher, name, noted), network)
            self.transports.append(proxied)
            return proxied

        monkeypatch.setattr(ThreadLauncher, "_new_transport", make_proxied)

    @property
    def proxies(self) -> list[FaultProxy]:
        """Those of executors that run; one that a restart in place did not help is replaced."""
        return [each.proxy for each in self.transports if each.proxy is not None]

    def inject(self, fault: Fault, proxy: FaultProxy, way: Way) -> bool:
        """Let a frame have a fault; False if none came for a while."""
        try:
            proxy.inject(fault, way).result(10)
        except NotInTime:
            proxy.disarm()
            return False
        return True

    def wait_noticed(self, proxy: FaultProxy, what: str) -> None:
        until_s = time.monotonic() + DEADLINE_S
        address = ""
        while address != proxy.address:
            try:
                address, _ = self.losses.get(timeout=max(0.0, until_s - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"{what} passed unseen") from None

    def forget_losses(self) -> None:
        while not self.losses.empty():
            self.losses.get()


def test_answer_is_right_though_links_of_executors_have_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every fault that cannot be survived is noticed and recovered from; nothing is lost."""
    rng, results = random.Random(1), tmp_path / "results"
    results.mkdir()
    settings = {**SETTINGS, "transport.secret-file": str(tmp_path / "secret")}
    with ExitStack() as stack:
        network = stack.enter_context(Network(seed=1))
        proxied = Proxied(monkeypatch, network)
        cluster = stack.enter_context(
            LocalCluster(load(env={}, overrides=settings), workers=3, slots=16, data="tcp")
        )
        args = (str(results), str(RATE))
        artifact = Artifact(kind="file", location=numbered.__file__, args=args)
        running = cluster.client.submit("numbered", artifact, executors=3)
        eventually(lambda: len(proxied.proxies) == 3, "the executors start")
        for fault in [*Fault, *Fault]:
            eventually(lambda: len(proxied.proxies) == 3, "executors are replaced")
            proxy = rng.choice(proxied.proxies)
            proxied.forget_losses()
            if proxied.inject(fault, proxy, Way.THERE) and fault in LOUD:
                proxied.wait_noticed(proxy, fault.name)
        detail = cluster.client.ask(DescribeApplication(app_id=running.app_id))
        numbered.set_end(results, end := numbered.end_after(results, RATE / 4))
        assert running.wait(timeout_s=DEADLINE_S).status == "succeeded"

    with capsys.disabled():
        named = {fault.name: times for fault, times in network.done.items()}
        sys.stdout.write(f"\n{named}, {detail.restarts} restarts\n")
    verdict = numbered.check(results, end)
    assert verdict.is_exact, [*verdict.report()]
    assert sum(network.done.values()) >= 20
    assert set(network.done) == set(Fault)
    assert detail.restarts >= 3  # One restart may be the answer to several faults.


#: What processes say about connections and nodes that they have lost.
SAID: Final = re.compile(r"connection closed: |link to \S+ lost: |connection to \S+ broken: ")


@pytest.mark.long
def test_answer_is_right_though_no_process_can_trust_its_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Letters and records of all processes go through faults; the master is cut off for long."""
    results, faults = tmp_path / "results", tmp_path / "faults"
    results.mkdir()
    numbered.set_end(results, RATE)
    with monkeypatch.context() as patch:  # Daemons get it, and what they start.
        for name, value in environment(faults, time.time() + 9).items():
            patch.setenv(name, value)
        cluster = ProcessCluster(tmp_path, workers=2, slots=16, settings=SETTINGS)

    with cluster:
        began_s = time.monotonic()
        program = Path(numbered.__file__)
        app_id = cluster.submit(program, str(results), str(RATE), executors=3)
        ended = {"succeeded", "failed", "terminated"}
        eventually(lambda: status(cluster.client, app_id) in ended, "the end")
        eventually(lambda: noted(faults)["CUT_CABLE"], "the master is cut off")
        took_s = time.monotonic() - began_s
        ending = cluster.client.ask(GetApplication(app_id=app_id))
        assert (ending.status, ending.cause) == ("succeeded", None)

    done = noted(faults)
    said = sum(len(SAID.findall(path.read_text())) for path in (tmp_path / "logs").rglob("*.log"))
    with capsys.disabled():
        sys.stdout.write(f"\n{dict(done)}, {said} times said, {took_s:.1f} s\n")
    verdict = numbered.check(results, RATE)
    assert verdict.is_exact, [*verdict.report()]
    assert done["CUT_CABLE"] == 1  # And some 30 others, if other work leaves time to talk.
    assert said >= sum(done[fault.name] for fault in (Fault.FLIP, Fault.REPEAT))
