"""Processes that may open no more files: it is told, nothing hangs, and nothing is lost."""

import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from gearpy.ids import AppId
from gearpy.messages.client import GetApplication
from tests.bench import numbered
from tests.bench.crash import EPOCHS_OFTEN
from tests.bench.epoch_signs import EpochSigns
from tests.bench.process_cluster import ProcessCluster
from tests.eventually import eventually
from tests.system.cluster_build import gear

RATE: Final = 400.0
SAYS: Final = "Too many open files"


@contextmanager
def without_files(pid: int) -> Iterator[None]:
    """Let a process open nothing more until the end; files that it has open stay so."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def of_worker(cluster: ProcessCluster, says: Callable[[], bool]) -> None:
    pid, victim = cluster.workers[0].pid, cluster.launched("executor")[0]
    assert pid is not None
    with without_files(pid):
        os.kill(victim, signal.SIGKILL)
        eventually(says, "somebody says so")


def of_executor(cluster: ProcessCluster, says: Callable[[], bool]) -> None:
    with without_files(cluster.launched("executor")[0]):
        eventually(says, "somebody says so")


@pytest.mark.long
@pytest.mark.parametrize("strike", [of_worker, of_executor])
def test_an_application_goes_on_when_its_processes_may_open_files_again(
    tmp_path: Path, strike: Callable[[ProcessCluster, Callable[[], bool]], None]
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    with ProcessCluster(tmp_path, workers=1, slots=32, settings=EPOCHS_OFTEN) as cluster:
        signs = EpochSigns(tmp_path / "checkpoints", results)
        app_id = cluster.submit(Path(numbered.__file__), str(results), str(RATE), executors=2)

        def says() -> bool:
            asked = ("why", str(app_id)), ("app", "describe", str(app_id))
            return any(SAYS in gear(*each, settings=cluster.settings) for each in asked)

        eventually(lambda: signs.newest_shown() > 2)
        strike(cluster, says)
        shown = signs.newest_shown()
        eventually(lambda: signs.newest_shown() > shown + 2, "it goes on")
        numbered.set_end(results, end := numbered.end_after(results, RATE / 4))
        eventually(
            lambda: cluster.client.ask(GetApplication(app_id=AppId(app_id))).status == "succeeded"
        )

    verdict = numbered.check(results, end)
    assert verdict.is_exact, [*verdict.report()]
