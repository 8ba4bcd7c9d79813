"""Small writes that three masters acknowledge in a second, beside what the disk allows.

Run as a module it is one of the masters; the one that leads writes, and says how much.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from gearpy.cluster.net.endpoint import Endpoint
from gearpy.cluster.quorum.log import ReplicatedLog
from gearpy.cluster.quorum.open import open_member
from gearpy.config.load import from_overrides
from gearpy.errors import LeadershipLost
from gearpy.storage.artifacts import ArtifactStore
from gearpy.transport.api import split_address
from gearpy.transport.security.credentials import Credentials
from tests.bench.process_cluster import free_port

MASTERS: Final = 3
_RECORD: Final = b"x" * 100
_WARM_S: Final = 1.0
_SYNCS: Final = 300


@dataclass(frozen=True, slots=True)
class WritesResult:
    """The writes of some writers in some time, and the entries of the log that they took."""

    writers: int
    writes: int
    entries: int
    seconds: float


def measure_syncs(folder: Path) -> float:
    """Return how often in a second a few bytes can be added to a file and be durable."""
    with (folder / "syncs").open("ab", buffering=0) as file:
        begin_s = time.perf_counter()
        for _ in range(_SYNCS):
            file.write(_RECORD)
            os.fsync(file.fileno())
        return _SYNCS / (time.perf_counter() - begin_s)


def measure_writes(folder: Path, *, writers: int, seconds: float) -> WritesResult:
    """Have so many threads of the leader of three masters write, each after its last answer."""
    folder.mkdir()
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(MASTERS)]
    told = [str(folder), ",".join(addresses), str(writers), str(seconds)]
    command = [sys.executable, "-P", "-m", "tests.bench.masters_writes"]
    members = [
        subprocess.Popen([*command, each, *told], stdout=subprocess.PIPE) for each in addresses
    ]
    try:
        while True:
            for each in members:
                assert each.stdout is not None
                os.set_blocking(each.stdout.fileno(), False)
                if line := each.stdout.readline():
                    return WritesResult(*json.loads(line))
            time.sleep(0.1)
    finally:
        for each in members:
            each.kill()
            each.wait()
            assert each.stdout is not None
            each.stdout.close()


class _Counted:
    def __init__(self) -> None:
        self.count = 0

    def apply(self, _record: bytes, /) -> None:
        self.count += 1

    def restore(self, state: bytes, /) -> None:
        self.count = int(state)

    def to_bytes(self, _version: int, /) -> bytes:
        return str(self.count).encode()


def _be_a_master(me: str, folder: str, masters: str, writers: int, seconds: float) -> None:
    host, port = split_address(me)
    settings = {"cluster.masters": masters, "transport.secret-file": f"{folder}/secret"}
    config, over = from_overrides(settings), threading.Event()
    own = Path(folder) / str(port)

    def lead(_term: int, log: ReplicatedLog, _: object) -> Any:
        threading.Thread(target=write, args=[log]).start()

    def write(log: ReplicatedLog) -> None:
        with _writing(log, writers) as counts:
            time.sleep(_WARM_S)
            before, applied, begin_s = sum(counts), desk.standing.applied, time.monotonic()
            time.sleep(seconds)
            writes, entries = sum(counts) - before, desk.standing.applied - applied
            lasted_s = time.monotonic() - begin_s
        sys.stdout.write(json.dumps([writers, writes, entries, lasted_s]) + "\n")
        sys.stdout.flush()

    with ExitStack() as opened:
        endpoint = Endpoint(config, Credentials.of_cluster(config), host=host, port=port)
        opened.callback(endpoint.close)
        desk = open_member(
            config,
            endpoint,
            own,
            ArtifactStore(own / "artifacts", config.artifact.max_bytes),
            opened,
            joins=False,
            machine=_Counted(),
            lead=cast("Any", lead),
            on_over=lambda _: over.set(),
        )
        over.wait()


@contextmanager
def _writing(log: ReplicatedLog, writers: int) -> Iterator[list[int]]:
    """Let threads write; yield how much each has written."""
    counts, is_over = [0] * writers, threading.Event()

    def write(number: int) -> None:
        try:
            while not is_over.is_set():
                log.append([_RECORD])
                counts[number] += 1
        except LeadershipLost:
            return

    threads = [threading.Thread(target=write, args=[each]) for each in range(writers)]
    for each in threads:
        each.start()
    yield counts
    is_over.set()
    for each in threads:
        each.join()


if __name__ == "__main__":
    me, folder, addresses, writers, seconds = sys.argv[1:]
    _be_a_master(me, folder, addresses, int(writers), float(seconds))
