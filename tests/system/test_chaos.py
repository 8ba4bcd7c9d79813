"""A real cluster whose processes are killed and frozen; its answer has a closed form."""

import random
import sys
from pathlib import Path

import pytest

from tests.bench.crash import crash
from tests.bench.exactly_once import CHAOS, chaos_plan


@pytest.mark.long
def test_no_record_is_lost_whatever_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One master, three workers, three executors, six faults; a third of them in recoveries."""
    plan = chaos_plan(random.Random(3))
    report = crash(tmp_path, CHAOS, plan, seed=3, rate=1000, times=6)

    with capsys.disabled():
        sys.stdout.write("\n".join(["", *report.lines(), ""]))
    assert report.is_good
    assert len(report.struck) == 6
    # A recovery may have nobody who could be struck.
    assert any(each.phase == "recovery" for each in report.struck)
