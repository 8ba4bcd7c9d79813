"""The cost of a look at the state of a step: the time of `gear state query`, and pauses.

Records go through the task all the time.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from gearpy.ids import AppId
from tests.bench.checkpoint import NEVER_MS, CheckpointOptions, program_of, wait_stored
from tests.bench.process_cluster import ProcessCluster

_SQL: Final = "select key, value from state where value > 1000000 or key = 'word7'"
_ALL: Final = "select count(*) as n, sum(value) as total from state"
_WAIT_S: Final = 120.0
_SHOWN: Final = 3
_ALONE_S: Final = 6.0  #: For each look: pauses that are rare without one come in this time, too.

#: Ways to look: options behind the command.
_WAYS: Final[dict[str, Sequence[str]]] = {
    "some rows": (_SQL,),
    "all rows": (_ALL,),
    "now": (_SQL, "--now"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """The looks in one way: the seconds of each and its processor time, and pauses meanwhile.

    ``gaps_ms`` are the longest times in which the task took no batch, the longest first.
    """

    way: str
    seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...]
    gaps_ms: tuple[float, ...]


def measure_looks(folder: Path, *, keys: int, times: int) -> Iterator[Looks]:
    """Look at the counts of so many keys, one look after the other; first of all do not look."""
    options = CheckpointOptions(
        folder=str(folder), pipeline="count", keys=keys, seconds=NEVER_MS / 1000, fill=True
    )
    with ProcessCluster(folder, workers=1, slots=4) as cluster:
        app_id = cluster.submit(program_of(folder), json.dumps(asdict(options)), executors=1)
        wait_stored(cluster, app_id, options.file("beats"))
        _look(cluster, app_id, _WAYS["all rows"])  # What it reads is then in memory.
        since_s = time.time()
        time.sleep(times * _ALONE_S)
        yield Looks(
            way="none", seconds=(), cpu_seconds=(), gaps_ms=_gaps(options, since_s, time.time())
        )
        for way, args in _WAYS.items():
            since_s = time.time()
            found = [_look(cluster, app_id, args) for _ in range(times)]
            yield Looks(
                way=way,
                seconds=tuple(wall_s for wall_s, _ in found),
                cpu_seconds=tuple(cpu_s for _, cpu_s in found),
                gaps_ms=_gaps(options, since_s, time.time()),
            )


def _look(cluster: ProcessCluster, app_id: AppId, args: Sequence[str]) -> tuple[float, float]:
    """Run the command as a user does; return its seconds, and those of the processor."""
    command = [sys.executable, "-P", "-m", "gearpy", "state", "query", str(app_id), "count"]
    before, began_s = os.times(), time.perf_counter()
    done = subprocess.run(
        [*command, *args, *cluster.options()],
        capture_output=True,
        text=True,
        check=False,
        timeout=_WAIT_S,
    )
    took_s, after = time.perf_counter() - began_s, os.times()
    if done.returncode:
        raise RuntimeError(done.stderr or done.stdout)
    used = (after.children_user - before.children_user, after.children_system)
    return took_s, used[0] + used[1] - before.children_system


def _gaps(options: CheckpointOptions, since_s: float, until_s: float) -> tuple[float, ...]:
    lines = options.file("long_gaps").read_text(encoding="ascii").split("\n")[:-1]
    pairs = [tuple(map(float, line.split())) for line in lines]
    gaps = sorted((gap_s for at_s, gap_s in pairs if since_s < at_s < until_s), reverse=True)
    return tuple(gap_s * 1000 for gap_s in gaps[:_SHOWN])
