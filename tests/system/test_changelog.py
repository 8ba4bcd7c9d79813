"""State that is there again although files of epochs were deleted by hand."""

import os
import signal
from pathlib import Path

import pytest

from gearpy.cluster.checkpoints.reading import StoredEpochs, stored_prefixes, verify
from gearpy.core.coordinator.views import ChangelogPartitions
from gearpy.messages.client import GetApplication
from gearpy.storage.checkpoints import checkpoints_at
from tests.bench import numbered
from tests.bench.crash import EPOCHS_OFTEN
from tests.bench.epoch_signs import EpochSigns
from tests.bench.process_cluster import ProcessCluster
from tests.eventually import eventually

RATE = 800.0
SETTINGS = {**EPOCHS_OFTEN, "checkpoint.interval-ms": "1000", "checkpoint.changelog": "on"}
_EXECUTORS = 2


@pytest.mark.long
def test_all_but_the_newest_files_may_be_deleted(tmp_path: Path) -> None:
    """Executors rebuild the state of the same epoch from the changelog, and say so.

    No epoch is lost, and no result: the numbers that records get by key go on where they were.
    """
    results = tmp_path / "results"
    results.mkdir()
    with ProcessCluster(tmp_path, workers=1, slots=32, settings=SETTINGS) as cluster:
        signs = EpochSigns(tmp_path / "checkpoints", results)
        program = Path(numbered.__file__)
        app_id = cluster.submit(program, str(results), str(RATE), executors=_EXECUTORS)
        eventually(lambda: signs.newest_shown() >= 3)
        with signs.between_epochs(cluster) as (epoch, (victim, *_)):
            deleted = _delete_older_files(tmp_path / "checkpoints")
            os.kill(victim, signal.SIGKILL)

        eventually(lambda: signs.newest_shown() > epoch + 1)
        numbered.set_end(results, end := numbered.end_after(results, RATE / 2))
        eventually(lambda: cluster.client.ask(GetApplication(app_id=app_id)).status == "succeeded")

    verdict = numbered.check(results, end)
    assert verdict.is_exact, [str(verdict), *verdict.wrong]
    logs = "".join(path.read_text() for path in (tmp_path / "logs").rglob("*.log"))
    assert logs.count("keyed state is rebuilt from") >= _EXECUTORS
    assert any(name in logs for name in deleted)
    assert "falls back" not in logs


def _delete_older_files(folder: Path) -> list[str]:
    """Delete all files of the newest epoch but those with the heads; return their names."""
    checkpoints = checkpoints_at(folder)
    (prefix,) = stored_prefixes(checkpoints)
    stored = StoredEpochs(checkpoints, prefix)
    (manifest,) = stored.find()
    assert ChangelogPartitions(stored.state).read().keys() == {
        task for file in manifest.changelog for task in file.tasks
    }
    newest = {task: file for file in manifest.chain for task in file.tasks}
    older = [file for file in manifest.chain if file not in newest.values()]
    for file in older:
        checkpoints.drop(file.location)
    (verdict,) = [each for each in verify(stored) if each.epoch == manifest.epoch]
    assert (len(verdict.damage), verdict.is_usable) == (len(older), True)
    return [file.location for file in older]
