"""Three masters as processes that are killed and frozen, while clients submit and read."""

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.net.limits import transport_limits
from gearpy.cluster.net.masters import Masters
from gearpy.errors import GearpyError, SubmitRefused
from gearpy.messages.client import Artifact, GetApplication
from gearpy.messages.masters import GetMasters
from gearpy.transport.security.secret import load_or_create_secret
from tests.bench.history import Added, Seen, problem_of
from tests.bench.process_cluster import Daemon, ProcessCluster

_KINDS: Final = ("leader SIGKILL", "leader SIGSTOP", "follower SIGKILL", "all SIGKILL")
_WEIGHTS: Final = (5, 2, 1, 1)
_WITHIN_S: Final = 120.0
_PAUSE_S: Final = 0.05
_QUIET_S: Final = 0.5
#: Such an application waits for ever: it costs the masters their log, and nobody else anything.
WAITS: Final = {"application.hosts": "nowhere"}
NOWHERE: Final = Artifact(kind="file", location="/nowhere.py")
_RUNNING: Final = """\
from itertools import count
import gearpy as gp

app = gp.StreamApp("running")
words = app.read(gp.generate(count, rate=50)).map(lambda n: f"word{n % 7}")
words.key_by(lambda word: word).window(gp.tumbling("1s")).count().write(gp.console())
"""


@dataclass(frozen=True, slots=True)
class Blow:
    """One thing that was done to masters, and how long after it a new submission was accepted."""

    kind: str
    accepted_s: float


@dataclass(slots=True)
class MastersResult:
    blows: list[Blow] = field(default_factory=list)
    added: list[Added] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    problem: str = ""


class Clients:
    """Clients that submit and read, each on a thread of its own, and note what they see."""

    def __init__(self, cluster: ProcessCluster, result: MastersResult) -> None:
        self._cluster, self._result = cluster, result
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        #: Whether to submit often; each waiting application costs the masters a little.
        self.is_eager = False
        self._threads = [
            threading.Thread(target=self._submit, args=(number,)) for number in range(2)
        ] + [threading.Thread(target=self._read)]

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for each in self._threads:
            each.join()

    def accepted_after(self, begin_s: float) -> float:
        until_s = begin_s + _WITHIN_S
        while time.monotonic() < until_s:
            with self._lock:
                ends = [
                    each.end_s
                    for each in self._result.added
                    if each.begin_s > begin_s and each.end_s < until_s
                ]
            if ends:
                return min(ends)
            time.sleep(_PAUSE_S)
        raise TimeoutError("no submission was accepted any more")

    @contextmanager
    def _client(self) -> Iterator[ClusterClient]:
        config = self._cluster.config
        secret = load_or_create_secret(config.transport.secret_file)
        limits = transport_limits(config)
        with Masters(
            self._cluster.addresses, secret, limits, timeout_s=10.0, one_cluster=True
        ) as asking:
            yield ClusterClient(asking.ask)

    def _submit(self, number: int) -> None:
        with self._client() as client:
            count = 0
            while not self._is_over.wait(_PAUSE_S if self.is_eager else _QUIET_S):
                count += 1
                name, begin_s, end_s = f"waits-{number}-{count}", time.monotonic(), float("inf")
                try:
                    client.submit(name, NOWHERE, config=WAITS)
                    end_s = time.monotonic()
                except SubmitRefused as error:
                    self._result.problem = self._result.problem or f"{name} was refused: {error}"
                except GearpyError:
                    pass  # It may have been done.
                with self._lock:
                    self._result.added.append(Added(name, begin_s, end_s))

    def _read(self) -> None:
        with self._client() as client:
            while not self._is_over.wait(_PAUSE_S):
                begin_s = time.monotonic()
                with suppress(GearpyError):
                    names = {each.name for each in client.applications()}
                    waiting = frozenset(each for each in names if each.startswith("waits-"))
                    read = Seen(waiting, begin_s, time.monotonic())
                    with self._lock:
                        self._result.seen.append(read)


def measure_masters(folder: Path, *, rounds: int, seed: int = 0) -> MastersResult:
    """Strike so many times; check in the end that nothing was lost, and that nothing restarted."""
    result, rng = MastersResult(), random.Random(seed)
    program = folder / "running.py"
    program.write_text(_RUNNING, encoding="utf-8")
    cluster = ProcessCluster(folder, masters=3, workers=1)
    with cluster:
        running = cluster.submit(program, executors=1)
        until(lambda: cluster.client.ask(GetApplication(app_id=running)).status == "active")
        before = cluster.launched()
        with Clients(cluster, result) as clients:
            clients.accepted_after(time.monotonic())
            for _ in range(rounds):
                (kind,) = rng.choices(_KINDS, _WEIGHTS)
                clients.is_eager = True
                time.sleep(_QUIET_S)
                begin_s = _strike(cluster, kind, rng)
                accepted_s = clients.accepted_after(begin_s) - begin_s
                clients.is_eager = False
                result.blows.append(Blow(kind, accepted_s))
                _heal(cluster, rng)
        until(lambda: cluster.client.ask(GetApplication(app_id=running)).status == "active")
        after = cluster.launched()
        if before != after:
            result.problem = result.problem or f"the application has restarted: {before}, {after}"
    result.problem = result.problem or problem_of(result.added, result.seen)
    return result


def _strike(cluster: ProcessCluster, kind: str, rng: random.Random) -> float:
    leader = until(cluster.leader)
    followers = [each for each in cluster.masters if each is not leader]
    struck: list[Daemon] = {"all": cluster.masters, "follower": [rng.choice(followers)]}.get(
        kind.split(maxsplit=1)[0], [leader]
    )
    begin_s = time.monotonic()
    for each in struck:
        each.signal(signal.SIGSTOP if kind.endswith("STOP") else signal.SIGKILL)
    if kind.startswith("all"):
        for each in struck:
            each.kill()
            each.start()
    return begin_s


def _heal(cluster: ProcessCluster, rng: random.Random) -> None:
    """Start what was killed, and let go on what was frozen; then all are there again."""
    time.sleep(rng.random() * 2)
    for each in cluster.masters:
        each.signal(signal.SIGCONT)
        if each.pid is None:
            each.start()
            each.wait_ready()
    until(lambda: all(each.role != "away" for each in cluster.client.ask(GetMasters()).masters))


def until(holds: Callable[[], Any]) -> Any:
    """Wait until something holds, while masters may be away; return it."""
    until_s, failure = time.monotonic() + _WITHIN_S, "it does not hold"
    while True:
        try:
            if found := holds():
                return found
        except GearpyError as error:
            failure = str(error)
        if time.monotonic() > until_s:
            raise TimeoutError(f"the masters do not come back: {failure}")
        time.sleep(_PAUSE_S)
