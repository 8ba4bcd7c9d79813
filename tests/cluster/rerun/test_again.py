"""A task that runs again does so with the version of the program that it had then."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from gearpy.cluster.app.quarantine import task_of
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.client.changes import AskedChange
from gearpy.cluster.client.client import RunningApplication
from gearpy.cluster.rerun.again import RerunOutcome, TaskAgain, Wanted
from gearpy.config.load import load
from gearpy.errors import ChangeFailed, SubmitRefused
from gearpy.ids import TaskId
from tests.cluster.rerun.build import SETTINGS, configured, program, wait_for_epochs
from tests.eventually import eventually


def changed(ask: Callable[[], AskedChange]) -> AskedChange:
    asked: list[AskedChange] = []

    def is_taken() -> bool:
        with suppress(SubmitRefused):
            asked.append(ask())
        return bool(asked)

    eventually(is_taken, within_s=120)
    return asked[0]


def task_that_failed(running: RunningApplication) -> TaskId:
    """Return the one of the newest failure: each of them would fail, but one is the first."""
    *_, task = (each.error.task for each in running.describe().failures if each.error.task)
    return task_of(task)


def test_the_failure_of_a_trial_can_be_repeated_although_epochs_go_on(tmp_path: Path) -> None:
    secret = {"transport.secret-file": str(tmp_path / "secret")}
    with LocalCluster(load(env={}, overrides=secret), workers=1, slots=16) as cluster:
        running = cluster.client.submit("numbers", program(tmp_path, "old"), config=SETTINGS)
        wait_for_epochs(running)
        with pytest.raises(ChangeFailed):
            running.update(program(tmp_path, "bad", counted="1 // 0").location).wait()
        stored = running.summary().progress.epoch + 8
        eventually(lambda: running.summary().progress.epoch > stored, within_s=120)
        wanted = Wanted(task=task_that_failed(running))
        found = TaskAgain(running.client, running.app_id, wanted, configured=configured)
        with found.program() as application:
            failed = found.run(application)

    assert failed.is_same
    assert failed.error is not None


def test_what_is_removed_while_the_program_is_loaded_is_looked_for_anew(tmp_path: Path) -> None:
    """It runs on, and keeps only the newest epochs and recordings; a debugger starts slowly."""
    secret = {"transport.secret-file": str(tmp_path / "secret")}
    with LocalCluster(load(env={}, overrides=secret), workers=1, slots=16) as cluster:
        running = cluster.client.submit("numbers", program(tmp_path, "old"), config=SETTINGS)
        wait_for_epochs(running)
        for task in (TaskId(0, 0), TaskId(1, 0)):  # One reads a source again, one what it took.
            found = TaskAgain(
                running.client, running.app_id, Wanted(task=task), configured=configured
            )
            with found.program() as application:
                stored = running.summary().progress.epoch + 8
                eventually(lambda: running.summary().progress.epoch > stored, within_s=120)  # noqa: B023 - at once
                outcome = found.run(application)
            assert outcome.error is None
            assert outcome.is_same


def test_after_an_update_the_program_is_the_one_that_ran_then(tmp_path: Path) -> None:
    secret = {"transport.secret-file": str(tmp_path / "secret")}
    kept = {**SETTINGS, "checkpoint.retained": "100", "application.trial-seconds": "1"}
    with LocalCluster(load(env={}, overrides=secret), workers=1, slots=16) as cluster:
        running = cluster.client.submit("numbers", program(tmp_path, "old"), config=kept)
        wait_for_epochs(running)
        with pytest.raises(ChangeFailed):
            running.update(program(tmp_path, "bad", counted="1 // 0").location).wait()

        task = task_that_failed(running)

        def again(**wanted: int) -> tuple[RerunOutcome, list[str]]:
            found = TaskAgain(
                running.client, running.app_id, Wanted(task=task, **wanted), configured=configured
            )
            with found.program() as application:
                return found.run(application), found.notes

        failed, notes = again()
        new = program(tmp_path, "new", counted="-before").location
        changed(lambda: running.update(new)).wait()
        wait_for_epochs(running)

        first, its_notes = again(until=1)
        _, (stateless, _) = again()
        last, none = again(epoch=running.summary().progress.epoch - 1)

    assert (first.is_same, first.failed_then, first.compared > 0) == (True, "", True)
    assert its_notes == ["version 0 of the program is what ran then; version 3 runs now"]
    assert failed.is_same
    assert failed.error is not None
    assert "ZeroDivisionError" in failed.error.cause
    assert notes == ["version 1 of the program is what ran then; version 2 runs now"]
    assert (last.is_same, last.compared > 0) == (True, True)
    assert none == []
    assert stateless.startswith("version 1 began with the state of epoch ")
