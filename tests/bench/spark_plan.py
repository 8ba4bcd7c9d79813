"""Whom `spark_crash` kills, and when."""

import random
import time
from collections.abc import Iterator, Sequence
from typing import Final

from tests.bench.crash import Blow, Phase

#: The JVMs: of the sink that calls a function, and of the job outside.
SINK: Final = "sink JVM SIGKILL"
READER: Final = "reader JVM SIGKILL"

#: Others of gearpy's processes, for every so many executors one of them.
_OTHERS: Final = ("app master SIGKILL", "worker SIGKILL", "app master SIGKILL", "master SIGKILL")
_OTHERS_EVERY: Final = 5
_EPOCH_PHASES: Final[tuple[Phase, ...]] = ("prepare", "snapshot", "commit")
#: Those of a call of the function.
CALL_PHASES: Final[tuple[Phase, ...]] = ("intent", "written", "done")
_PHASES: Final[tuple[Phase, ...]] = ("running", "recovery", *_EPOCH_PHASES, *CALL_PHASES)
_JVM_BLOWS: Final[tuple[Blow, ...]] = (
    Blow(SINK, "written"),
    Blow(READER, "intent"),
    Blow(SINK, "intent"),
    Blow(READER, "commit"),
    Blow(SINK, "running"),
    Blow(READER, "running"),
)


def plan_of(faults: int, jvm_faults: int, rng: random.Random) -> list[Blow]:
    """Return so many blows to executors, some to others of gearpy, and so many to JVMs, mixed."""
    blows = [Blow("executor SIGKILL", _PHASES[n % len(_PHASES)]) for n in range(faults)]
    for n in range(faults // _OTHERS_EVERY):
        phase = rng.choice(("running", "recovery", *_EPOCH_PHASES))
        blows.append(Blow(_OTHERS[n % len(_OTHERS)], phase))
    blows += [_JVM_BLOWS[n % len(_JVM_BLOWS)] for n in range(jvm_faults)]
    rng.shuffle(blows)
    return blows


def again(plan: Sequence[Blow], rng: random.Random, *, minutes: float) -> Iterator[Blow]:
    """Yield a plan, and then again and again in another order for so long."""
    until_s = time.monotonic() + minutes * 60
    yield from plan
    while time.monotonic() < until_s:
        yield from rng.sample([*plan], len(plan))
