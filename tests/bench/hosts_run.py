"""A cluster on machines of its own: three masters, two workers and a client, with TLS.

The machines are those of `hosts`. Their cables are pulled, packets pass one way only, machines
freeze or are gone, and between workers and masters all is slow at times, and connections break. The
stream that runs meanwhile has a closed form as its answer. `run_hosts` starts this module as a
program on the machine of the client.
"""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.net.limits import transport_limits
from gearpy.cluster.net.masters import Masters
from gearpy.config.load import from_overrides
from gearpy.core.master.registry import TERMINAL
from gearpy.errors import GearpyError
from gearpy.ids import AppId
from gearpy.messages.client import GetApplication, ListWorkers
from gearpy.messages.masters import GetMasters, MasterSummary
from gearpy.transport.security.certificates import make_authority_and_node, make_node
from gearpy.transport.security.credentials import Credentials
from tests.bench import numbered
from tests.bench.hosts import Hosts, enter
from tests.bench.process_cluster import Daemon
from tests.transport.fault_proxy import FaultProxy, Network, Shape

_MASTERS: Final = ("master1", "master2", "master3")
_WORKERS: Final = ("worker1", "worker2")
_CLIENT: Final = "client"
_PORT: Final = 3000
_EXECUTORS: Final = 3
_SLOTS: Final = 16
_RATE: Final = 1000.0
_WITHIN_S: Final = 180.0
_PAUSE_S: Final = 0.1
_DAYS: Final = 30
_SLOW: Final = Shape(latency_ms=80, bytes_per_s=200_000)
#: Longer than a machine may be silent (``heartbeat-timeout-ms``), so that it is given up.
_LONG_S: Final = (3.0, 5.0)
_SETTINGS: Final = {
    "transport.tls": "on",
    "listen-host": "0.0.0.0",  # noqa: S104 - of a machine that others cannot reach
    "cluster.heartbeat-timeout-ms": "2000",
    "checkpoint.interval-ms": "200",
    "application.total-retries": "100000",
    "application.backoff-base-ms": "10",
}


@dataclass(slots=True)
class HostsRun:
    """What was done, how long after it all were there again, and what was wrong."""

    seed: int
    done: list[tuple[str, float]] = field(default_factory=list)
    leaders: int = 0  # Terms in which somebody led.
    records: int = 0
    problem: str = ""


class _Cluster:
    """The daemons, each on a machine of its own, as the client sees them."""

    def __init__(self, folder: Path, hosts: Hosts, stack: ExitStack, seed: int) -> None:
        self.hosts, self._folder = hosts, folder
        self.rng = random.Random(seed)
        self._masters = [f"{each}:{_PORT}" for each in _MASTERS]
        self._secret = folder / "secret"
        _make_certificates(folder)
        self.proxies = self._make_proxies(stack, seed)
        self.daemons = {each: self._master(each) for each in _MASTERS}
        self.daemons |= {each: self._worker(each) for each in _WORKERS}
        config = from_overrides(self._settings(_CLIENT))
        asking = Masters(
            self._masters,
            Credentials.of_cluster(config),
            transport_limits(config),
            timeout_s=10.0,
            one_cluster=True,
        )
        self.client = ClusterClient(stack.enter_context(asking).ask)
        stack.callback(self._stop)
        for each in self.daemons.values():
            each.start()
        for each in self.daemons.values():
            each.wait_ready()

    def submit(self, results: Path) -> AppId:
        """Submit the program as a user on the machine of the client does; return its id."""
        options = [part for pair in self._settings(_CLIENT).items() for part in _option(pair)]
        program = [sys.executable, "-P", "-m", "gearpy", "app", "submit", "--json", *options]
        arguments = [str(numbered.__file__), "--", str(results), str(_RATE)]
        done = subprocess.run(
            [*program, "--executors", str(_EXECUTORS), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=_WITHIN_S,
        )
        assert not done.returncode, done.stderr or done.stdout
        return AppId(json.loads(done.stdout)["app_id"])

    def masters(self) -> tuple[MasterSummary, ...]:
        return self.client.ask(GetMasters()).masters

    def leader(self, *, beside: str = "") -> str:
        (leader,) = (each.address for each in self.masters() if each.leads)
        name = leader.partition(":")[0]
        return "" if name == beside else name

    def is_whole(self) -> bool:
        are_there = all(each.role != "away" for each in self.masters())
        return are_there and len(self.client.ask(ListWorkers()).workers) == len(_WORKERS)

    def restart(self, name: str) -> None:
        self.daemons[name].kill()
        self.daemons[name].start()

    # -- inside ----------------------------------------------------------------------------

    def _settings(self, host: str) -> dict[str, str]:
        folder = self._folder
        return {
            **_SETTINGS,
            "cluster.masters": ",".join(self._masters),
            "hostname": host,
            "transport.secret-file": str(self._secret),
            "transport.tls-folder": str(folder / "certs" / host),
            "checkpoint.folder": str(folder / "checkpoints"),
            "master.folder": str(folder / host),
            "worker.folder": str(folder / host),
            "log.folder": str(folder / "logs" / host),
        }

    def _master(self, name: str) -> Daemon:
        return self._daemon(name, "master", "--host", name, "--port", str(_PORT))

    def _worker(self, name: str) -> Daemon:
        return self._daemon(name, "worker", "--slots", str(_SLOTS))

    def _daemon(self, name: str, *args: str) -> Daemon:
        options = [part for pair in self._settings(name).items() for part in _option(pair)]
        said = self._folder / f"{name}.out"
        return Daemon([*args, *options], {}, said, before=self.hosts.on(name))

    def _make_proxies(self, stack: ExitStack, seed: int) -> list[FaultProxy]:
        """Let workers know masters by addresses of the router, which carries badly at times."""
        network = stack.enter_context(Network(seed))
        network.call(lambda: enter(self.hosts.router))
        known = {name: self.hosts.places[name] for name in _MASTERS}
        for name in _WORKERS:
            self.hosts.know(name, known)
        return [
            network.proxy(
                f"{self.hosts.addresses[name]}:{_PORT}", frames=False, address=f"{place}:{_PORT}"
            )
            for name, place in known.items()
        ]

    def _stop(self) -> None:
        self.hosts.heal()
        for name, daemon in reversed(self.daemons.items()):
            self.hosts.signal(name, signal.SIGCONT)
            if daemon.process is not None:
                daemon.stop()


# -- what is done --------------------------------------------------------------------------------


def _for_long(cluster: _Cluster) -> None:
    time.sleep(cluster.rng.uniform(*_LONG_S))


def _until_deposed(cluster: _Cluster, leader: str) -> None:
    _until(lambda: cluster.leader(beside=leader), "another master leads")
    time.sleep(cluster.rng.uniform(0, 2))


def _cut_leader(cluster: _Cluster, *, there: bool, back: bool) -> None:
    leader = _leader(cluster)
    others = [each for each in _MASTERS if each != leader]
    if there:
        cluster.hosts.cut([leader], others)
    if back:
        cluster.hosts.cut(others, [leader])
    _until_deposed(cluster, leader)


def _unplug_leader(cluster: _Cluster) -> None:
    leader = _leader(cluster)
    cluster.hosts.unplug(leader)
    _until_deposed(cluster, leader)


def _freeze_leader(cluster: _Cluster) -> None:
    leader = _leader(cluster)
    cluster.hosts.signal(leader, signal.SIGSTOP)
    _until_deposed(cluster, leader)
    cluster.hosts.signal(leader, signal.SIGCONT)


def _lose_leader(cluster: _Cluster) -> None:
    """Cut the power of a machine: nobody is told of it."""
    leader = _leader(cluster)
    cluster.hosts.unplug(leader)
    cluster.hosts.signal(leader, signal.SIGKILL)
    _until_deposed(cluster, leader)
    cluster.hosts.heal()
    cluster.restart(leader)


def _unplug_worker(cluster: _Cluster) -> None:
    cluster.hosts.unplug(cluster.rng.choice(_WORKERS))
    _for_long(cluster)


def _freeze_worker(cluster: _Cluster) -> None:
    worker = cluster.rng.choice(_WORKERS)
    cluster.hosts.signal(worker, signal.SIGSTOP)
    _for_long(cluster)
    cluster.hosts.signal(worker, signal.SIGCONT)


def _lose_worker(cluster: _Cluster) -> None:
    worker = cluster.rng.choice(_WORKERS)
    cluster.hosts.unplug(worker)
    cluster.hosts.signal(worker, signal.SIGKILL)
    _for_long(cluster)
    cluster.hosts.heal()
    cluster.restart(worker)


def _cut_workers(cluster: _Cluster) -> None:
    one, other = cluster.rng.sample(_WORKERS, 2)
    cluster.hosts.cut([one], [other])
    _for_long(cluster)


def _hide_worker(cluster: _Cluster) -> None:
    worker = cluster.rng.choice(_WORKERS)
    cluster.hosts.cut([worker], [*_MASTERS, *_WORKERS])
    _for_long(cluster)


def _be_slow(cluster: _Cluster) -> None:
    for proxy in cluster.proxies:
        proxy.shape = _SLOW
    _for_long(cluster)


def _break_connections(cluster: _Cluster) -> None:
    until_s = time.monotonic() + cluster.rng.uniform(*_LONG_S)
    while time.monotonic() < until_s:
        proxy = cluster.rng.choice(cluster.proxies)
        proxy.cut()
        time.sleep(cluster.rng.uniform(0, 0.5))


def _take_cables(cluster: _Cluster) -> None:
    for proxy in cluster.proxies:
        proxy.unplug()
    _for_long(cluster)


#: What can happen, by name.
KINDS: Final[Mapping[str, Callable[[_Cluster], None]]] = {
    "leader cut off from masters": lambda it: _cut_leader(it, there=True, back=True),
    "leader not heard by masters": lambda it: _cut_leader(it, there=True, back=False),
    "leader hears no master": lambda it: _cut_leader(it, there=False, back=True),
    "leader unplugged": _unplug_leader,
    "leader frozen": _freeze_leader,
    "leader gone": _lose_leader,
    "worker unplugged": _unplug_worker,
    "worker frozen": _freeze_worker,
    "worker gone": _lose_worker,
    "worker not heard": _hide_worker,
    "workers cut one way": _cut_workers,
    "workers and masters cut": _take_cables,
    "slow to masters": _be_slow,
    "connections to masters break": _break_connections,
}


def _heal(cluster: _Cluster) -> None:
    cluster.hosts.heal()
    for proxy in cluster.proxies:
        proxy.plug_in()
        proxy.shape = Shape()


def _leader(cluster: _Cluster) -> str:
    leader: str = _until(cluster.leader, "a master leads")
    return leader


def _until(holds: Callable[[], Any], what: str) -> Any:
    until_s = time.monotonic() + _WITHIN_S
    while time.monotonic() < until_s:
        with suppress(GearpyError, ValueError):
            if found := holds():
                return found
        time.sleep(_PAUSE_S)
    raise TimeoutError(f"not within {_WITHIN_S:g} s: {what}")


def _option(pair: tuple[str, str]) -> tuple[str, str]:
    return "--set", "=".join(pair)


def _make_certificates(folder: Path) -> None:
    first, *others = (*_MASTERS, *_WORKERS, _CLIENT)
    certificates = folder / "certs"
    make_authority_and_node(certificates / first, [first], days=_DAYS)
    for name in others:
        make_node(certificates / name, [name], authority=certificates / first, days=_DAYS)


# -- a run ---------------------------------------------------------------------------------------


def run_hosts(
    folder: Path, *, seed: int, faults: int, kinds: tuple[str, ...] = tuple(KINDS)
) -> HostsRun:
    """Make machines, start a cluster on them, and do so much to them.

    Args:
        faults: how many; the first ones are each of the kinds once.
    """
    with Hosts(folder / "hosts", [*_MASTERS, *_WORKERS, _CLIENT]) as hosts:
        order = json.dumps({"seed": seed, "faults": faults, "kinds": kinds, "tag": hosts.tag})
        module = [sys.executable, "-P", "-c", _START, str(folder), order]
        done = subprocess.run(
            [*hosts.on(_CLIENT), *module],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    if done.returncode:
        return HostsRun(seed, problem=f"the run ended with {done.returncode}: {done.stdout}")
    said = json.loads(done.stdout)
    return HostsRun(**{**said, "done": [(kind, took_s) for kind, took_s in said["done"]]})


_START: Final = """\
import sys
sys.path.insert(0, "")
from tests.bench.hosts_run import main
main(*sys.argv[1:])
"""


def main(folder: str, order: str) -> None:
    """Do a run, on the machine of the client; print what came of it."""
    told = json.loads(order)
    hosts = Hosts(Path(folder) / "hosts", [*_MASTERS, *_WORKERS, _CLIENT], tag=told["tag"])
    run = HostsRun(told["seed"])
    try:
        _run(run, Path(folder), hosts, told["faults"], told["kinds"])
    except (AssertionError, TimeoutError, subprocess.SubprocessError) as error:
        run.problem = f"{type(error).__name__}: {error}"
    sys.stdout.write(json.dumps(asdict(run)))


def _run(run: HostsRun, folder: Path, hosts: Hosts, faults: int, kinds: list[str]) -> None:
    results = folder / "results"
    results.mkdir()
    with ExitStack() as stack:
        cluster = _Cluster(folder, hosts, stack, run.seed)
        app_id = cluster.submit(results)

        def stored() -> int:
            """Return the newest epoch that is stored of the application, if all tasks run."""
            (app,) = cluster.client.applications()
            return app.progress.epoch if cluster.is_whole() and app.status == "active" else 0

        _until(stored, "the application runs")
        plan = cluster.rng.sample(kinds, min(faults, len(kinds)))
        plan += cluster.rng.choices(kinds, k=faults - len(plan))
        for kind in plan:
            KINDS[kind](cluster)
            _heal(cluster)
            healed_s = time.monotonic()
            (app,) = _until(cluster.client.applications, "a master leads")

            def goes_on(before: int = app.progress.epoch) -> bool:
                return stored() > before

            _until(goes_on, f"all are there again after: {kind}")
            run.done.append((kind, round(time.monotonic() - healed_s, 2)))
        run.leaders = cluster.client.ask(GetMasters()).term
        end = numbered.end_after(results, _RATE)
        numbered.set_end(results, end)
        _until(
            lambda: cluster.client.ask(GetApplication(app_id=app_id)).status in TERMINAL, "the end"
        )
        status = cluster.client.ask(GetApplication(app_id=app_id))
        verdict = numbered.check(results, end)
        run.records = end * numbered.PARTITIONS
        if status.status != "succeeded" or not verdict.is_exact:
            run.problem = f"{status!r}: {' '.join(verdict.report())}"
