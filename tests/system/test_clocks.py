"""Clocks that jump: leases, elections, time-outs and results do not depend on them."""

import os
import signal
from pathlib import Path
from typing import Final

import pytest

from tests.bench import numbered
from tests.bench.crash import EPOCHS_OFTEN
from tests.bench.epoch_signs import EpochSigns
from tests.bench.process_cluster import ProcessCluster
from tests.eventually import eventually
from tests.system.tampered_process import environment, tamper

HOUR_S: Final = 3600
MASTERS: Final = ("master", "master1", "master2")
RATE: Final = 200.0
WITHIN_S: Final = 60.0


@pytest.mark.long
def test_clocks_that_jump_by_an_hour_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks, results = tmp_path / "clocks", tmp_path / "results"
    results.mkdir()
    with monkeypatch.context() as patch:  # Daemons get it, and what they start.
        for name, value in environment(clocks).items():
            patch.setenv(name, value)
        cluster = ProcessCluster(tmp_path, masters=3, workers=1, slots=32, settings=EPOCHS_OFTEN)
    signs = EpochSigns(tmp_path / "checkpoints", results)

    def goes_on(epochs: int = 2) -> None:
        shown = signs.newest_shown()
        eventually(lambda: signs.newest_shown() >= shown + epochs, within_s=WITHIN_S)

    with cluster:
        program = Path(numbered.__file__)
        app_id = cluster.submit(program, str(results), str(RATE), executors=1)
        goes_on()
        before = cluster.launched()
        for roles in (MASTERS, ("worker",), ("child",)):
            for wrong_s in (HOUR_S, -HOUR_S):
                for role in roles:
                    tamper(clocks, role, wrong_s=wrong_s)
                goes_on()
        detail = eventually(lambda: cluster.detail(app_id), within_s=WITHIN_S)
        assert detail.restarts == 0
        assert cluster.launched() == before

        for role in MASTERS:  # They are an hour ahead, and workers an hour behind.
            tamper(clocks, role, wrong_s=HOUR_S)
        leader = eventually(cluster.leader, within_s=WITHIN_S)
        leader.kill()
        leader.start()
        for pid, *_ in (cluster.launched("executor"), cluster.launched("appmaster")):
            os.kill(pid, signal.SIGKILL)
            goes_on()
        end = numbered.end_after(results, RATE / 4)
        numbered.set_end(results, end)
        summary = cluster.client.wait(app_id, WITHIN_S)

    verdict = numbered.check(results, end)
    assert summary.status == "succeeded"
    assert verdict.is_exact, [*verdict.report()]
