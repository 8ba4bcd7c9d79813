"""Numbered records through state into folders, on a real cluster whose processes are killed.

Every result must be there once, and in its order, whatever was killed or frozen, and when: while
an epoch is stored, while sinks show what belongs to it, or while a failure before is recovered
from.
"""

import random
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from tests.bench import columnar_language, numbered, stream_language
from tests.bench.crash import Blow, Phase, Target
from tests.bench.epoch_signs import EpochSigns
from tests.bench.faults import ANY_KIND, chosen

_QUICK: Final = {"cluster.heartbeat-timeout-ms": "2000"}
_PHASES: Final[tuple[Phase, ...]] = ("running", "recovery", "snapshot", "commit")
#: Those that harm what takes part in an epoch, at once.
_IN_EPOCH: Final[Mapping[str, int]] = {
    "executor SIGKILL": 6,
    "app master SIGKILL": 5,
    "executor SIGSTOP": 3,
    "app master SIGSTOP": 3,
    "worker SIGKILL": 1,
    "worker SIGSTOP": 1,
    "master SIGKILL": 1,
}

#: "language" and "columns" have more folders, and more that goes on: epochs are not as close, and
#: on a busy machine take most of a minute.
TARGETS: Final[Mapping[str, Target]] = {
    "numbered": Target(program=numbered.__file__, check=numbered.check, settings=_QUICK),
    "language": Target(
        program=stream_language.__file__,
        check=stream_language.check,
        settings={**_QUICK, "checkpoint.interval-ms": "300", "checkpoint.timeout-ms": "60000"},
        signs=partial(EpochSigns, parallelism=stream_language.PARALLELISM),
    ),
    "columns": Target(
        program=columnar_language.__file__,
        check=columnar_language.check,
        settings={**_QUICK, "checkpoint.interval-ms": "300", "checkpoint.timeout-ms": "60000"},
        signs=partial(EpochSigns, parallelism=columnar_language.PARALLELISM),
        slots=64,
    ),
}

#: Sums and windows go to files that readers see at once, and a part of which is written again.
#: Processes are frozen for longer than others wait for them, or a little shorter.
CHAOS: Final = Target(
    program=numbered.__file__,
    args=("files",),
    check=numbered.check_files,
    settings={"checkpoint.interval-ms": "500", "cluster.heartbeat-timeout-ms": "4000"},
    frozen_s=(3.0, 8.0),
    away_s=(0.1, 1.5),
)


def exactly_once_plan(rng: random.Random) -> Iterator[Blow]:
    """Yield blows without end, in all phases alike; the first one interrupts no recovery."""
    phases: list[Phase] = ["running"]
    while True:
        phases = phases or rng.sample(_PHASES * 5, 20)
        phase = phases.pop()
        kinds = _IN_EPOCH if phase in {"snapshot", "commit"} else ANY_KIND
        yield Blow(chosen(kinds, rng), phase)


def chaos_plan(rng: random.Random) -> Iterator[Blow]:
    """Yield blows without end; every third one comes before the one before is recovered from."""
    while True:
        for phase in ("running", "running", "recovery"):
            yield Blow(chosen(ANY_KIND, rng), phase)
