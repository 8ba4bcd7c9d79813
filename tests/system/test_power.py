"""A machine that loses its power, with everything on it, as far as a test can have that."""

import sys
from itertools import cycle
from pathlib import Path

import pytest

from tests.bench.crash import Blow, Phase, crash
from tests.bench.exactly_once import TARGETS

_PHASES: tuple[Phase, ...] = ("running", "prepare", "snapshot", "commit", "recovery")
_TIMES = 4


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_all_processes_are_killed_at_once_and_started_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    """At each step of an epoch, and while the time before is recovered from; twenty in all."""
    phases = cycle([*_PHASES[seed:], *_PHASES[:seed]])
    plan = (Blow("machine SIGKILL", phase) for phase in phases)

    report = crash(tmp_path, TARGETS["numbered"], plan, seed=seed, rate=500, times=_TIMES)

    with capsys.disabled():
        sys.stdout.write("\n".join(["", *report.lines(), ""]))
    assert report.is_good
    assert len(report.struck) == _TIMES
