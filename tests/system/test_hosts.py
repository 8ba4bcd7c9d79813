"""A cluster on machines of its own, whose network has faults: its answer is right."""

from pathlib import Path

import pytest

from tests.bench.hosts import why_no_hosts
from tests.bench.hosts_run import KINDS, run_hosts

pytestmark = pytest.mark.long


def test_answer_is_right_though_machines_are_cut_off_and_lost(tmp_path: Path) -> None:
    """Three masters, two workers and a client, with TLS and names; each kind of fault once."""
    if reason := why_no_hosts():
        pytest.skip(reason)

    run = run_hosts(tmp_path, seed=1, faults=len(KINDS))

    assert run.problem == ""
    assert {kind for kind, _ in run.done} == set(KINDS)
    assert run.leaders >= 6
