"""An application of processes that is changed under flow, with a process killed in the middle."""

import os
import signal
import threading
from pathlib import Path

import pytest

from gearpy.messages.client import GetVersions, UpdateApplication
from tests.bench.change_crash import SETTINGS, VICTIMS, Scene, change_crash
from tests.bench.process_cluster import ProcessCluster


@pytest.mark.long
def test_update_and_scale_under_flow_with_an_executor_killed(tmp_path: Path) -> None:
    with ProcessCluster(tmp_path, workers=2, slots=8, settings=SETTINGS) as cluster:
        scene = Scene(cluster, tmp_path)
        scene.submit()

        version = scene.update("second", "'second'")
        killer = threading.Thread(target=kill_an_executor, args=(cluster,))
        killer.start()
        second = scene.outcome(version)
        killer.join()
        if second.state == "running":
            scene.wait_for("second")
        scaled = scene.outcome(
            scene.change(UpdateApplication(app_id=scene.app_id, scale=(("count", 3),)))
        )
        broken = scene.outcome(scene.update("broken", "1 // 0"))
        history = scene.client.ask(GetVersions(app_id=scene.app_id)).versions
        scene.drain()

    assert scaled.state == "running"
    assert (broken.state, "ZeroDivisionError" in broken.reason) == ("failed", True)
    assert history[-1].change == f"back to version {scaled.number}"
    assert second.state in {"running", "failed"}  # It is given up if its own process was killed.
    assert scene.problem == ""


def kill_an_executor(cluster: ProcessCluster) -> None:
    pids = cluster.launched("executor")
    if pids:
        os.kill(pids[0], signal.SIGKILL)


@pytest.mark.long
@pytest.mark.parametrize("victim", VICTIMS)
def test_a_change_with_a_process_killed_in_the_middle(tmp_path: Path, victim: str) -> None:
    *told, summary = change_crash(tmp_path, kills=3, seed=1, victims=[victim])

    assert len(told) == 3
    assert "0 lost, 0 twice" in summary


@pytest.mark.long
def test_a_change_at_an_event_time_with_the_app_master_killed_before(tmp_path: Path) -> None:
    """The next one has the change wait on; each number is shown by the version of its time."""
    with ProcessCluster(tmp_path, workers=2, slots=8, settings=SETTINGS) as cluster:
        scene = Scene(cluster, tmp_path)
        scene.submit()

        at_ms = scene.newest + 15_000
        version = scene.update("second", "'second'", at_event_ms=at_ms)
        waited = scene.client.ask(GetVersions(app_id=scene.app_id)).versions[-1].state
        os.kill(cluster.launched("appmaster")[0], signal.SIGKILL)
        outcome = scene.outcome(version)
        scene.wait_for("second")
        scene.drain()

    assert (waited, outcome.state) == ("waiting", "running"), outcome.reason
    assert scene.shown_by(at_ms) == {False: {"first"}, True: {"second"}}
    assert scene.problem == ""
