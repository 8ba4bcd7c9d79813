"""What the coordinator log says of versions while they are tried."""

from dataclasses import replace

from gearpy.cluster.app.versions import AppVersions
from gearpy.core.coordinator.versions import ProgramVersion, Versions
from gearpy.dsl.application import StreamApp
from gearpy.messages.client import Artifact
from gearpy.storage.checkpoints import MemoryCheckpoints
from gearpy.storage.coordinator_log import read_log
from tests.cluster.app.test_checkpoints import PREFIX, a_manifest, opened


def test_that_a_trial_has_passed_is_stored_with_its_epochs() -> None:
    """Not behind them, where the log may fail; it goes back from there while that is not sure."""
    checkpoints, program = MemoryCheckpoints(), Artifact(kind="file", location="x.py")
    app, base = opened(checkpoints, 1), (a_manifest(0, 7),)
    first = ProgramVersion(number=0, artifact=program, change="", state="replaced")
    app.note_versions([first, replace(first, number=1, state="trial", base=base)])
    versions = AppVersions(
        app, program, load=lambda _: StreamApp("never").build(), wall_ms=lambda: 0
    )

    app.store(a_manifest(0, 9), versions=versions.tried())
    (_, tried) = Versions(read_log(checkpoints, PREFIX).state).read()
    versions.passed()

    assert (tried.state, tried.base) == ("running", base)
    assert (versions.current.state, versions.current.base) == ("running", ())
