"""A machine that loses its power, with everything on it, as far as a test can have that."""

import sys
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from tests.bench.crash import Blow, Phase, crash
from tests.bench.exactly_once import TARGETS

_PHASES: tuple[Phase, ...] = ("running", "prepare", "snapshot", "commit", "recovery")
_TIMES = 3


@pytest.mark.long
@pytest.mark.parametrize("seed", range(7))
def test_all_processes_are_killed_at_once_and_started_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    phases = cycle([*_PHASES[seed:], *_PHASES[:seed]])
    plan = (Blow("machine SIGKILL", phase) for phase in phases)
    target = replace(TARGETS["numbered"], healthy_s=100.0)
    report = crash(tmp_path, target, plan, seed=seed, rate=500, times=_TIMES)

    with capsys.disabled():
        sys.stdout.write("\n".join(["", *report.lines(), ""]))
    assert report.is_good
    assert len(report.struck) == _TIMES
