"""A real cluster whose processes are killed and frozen; its answer has a closed form."""

import sys
from pathlib import Path

import pytest

from tests.bench.chaos import run_chaos


def test_no_record_is_lost_whatever_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One master, three workers, four executors, half a minute of stream, some fifteen faults."""
    report = run_chaos(tmp_path, seed=3, faults=17, seconds=30, rate=1000)

    with capsys.disabled():
        sys.stdout.write("\n".join(["", *report.lines(), ""]))
    assert report.status == "succeeded"
    assert len(report.faults) >= 8  # On a busy machine each takes longer, and the stream ends.
    assert sum(fault.during_recovery for fault in report.faults) >= 1
    assert (report.lost, report.surplus, report.wrong) == (0, 0, [])
