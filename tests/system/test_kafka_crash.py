"""Results that are in topics once, whichever process is killed, the broker too.

``bin/bench kafka-crash`` does the same for as long as one likes.
"""

import random
from itertools import islice
from pathlib import Path
from typing import Final

import pytest

from tests.bench.crash import Blow, crash
from tests.bench.kafka_crash import KAFKA, kafka_plan

_PLAN: Final = (
    Blow("executor SIGKILL", "commit"),
    Blow("broker SIGKILL", "commit"),
    Blow("executor SIGSTOP", "commit"),
    Blow("app master SIGKILL", "running"),
)


@pytest.mark.long
def test_results_are_in_topics_once_whoever_is_killed(tmp_path: Path) -> None:
    report = crash(tmp_path, KAFKA, _PLAN, seed=1, rate=500)

    assert report.outcome is not None
    assert report.outcome.is_exact, [*report.lines()]
    assert report.status == "succeeded"
    assert len(report.struck) == len(_PLAN)


def test_a_plan_strikes_the_broker_too() -> None:
    plan = [*islice(kafka_plan(random.Random(1)), 200)]

    struck = {(blow.kind, blow.phase) for blow in plan}
    assert {("broker SIGKILL", "commit"), ("broker SIGSTOP", "running")} <= struck
    assert {kind.split(" SIG")[0] for kind, _ in struck} == {
        "executor",
        "app master",
        "worker",
        "master",
        "broker",
    }
    assert plan != [*islice(kafka_plan(random.Random(2)), 200)]
