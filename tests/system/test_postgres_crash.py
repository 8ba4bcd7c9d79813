"""Results that are in tables once, whichever process is killed, the server too.

``bin/bench postgres-crash`` does the same for as long as one likes.
"""

from pathlib import Path
from typing import Final

import pytest

from tests.bench.crash import Blow, crash
from tests.bench.postgres_crash import POSTGRES

_PLANS: Final = {
    "sink": (Blow("executor SIGKILL", "commit"), Blow("server SIGKILL", "commit")),
    "daemons": (Blow("app master SIGKILL", "running"), Blow("worker SIGKILL", "running")),
}


@pytest.mark.long
@pytest.mark.usefixtures("postgres")  # It is skipped where there is none.
@pytest.mark.parametrize("struck", _PLANS)
def test_results_are_in_tables_once_whoever_is_killed(tmp_path: Path, struck: str) -> None:
    plan = _PLANS[struck]

    report = crash(tmp_path, POSTGRES, plan, seed=1, rate=200)

    assert report.outcome is not None
    assert report.outcome.is_exact, [*report.lines()]
    assert report.status == "succeeded"
    assert len(report.struck) == len(plan)
