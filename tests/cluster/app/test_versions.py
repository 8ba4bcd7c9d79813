"""What the coordinator log says of versions that are given up, or tried."""

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from gearpy.cluster.app.checkpoints import AppCheckpoints
from gearpy.cluster.app.versions import AppVersions, LoadedVersion, PlannedVersion
from gearpy.cluster.programs.outline import LoadedProgram, outline_of
from gearpy.config.schema import Config
from gearpy.core.coordinator.versions import ProgramVersion, Versions
from gearpy.dsl.application import StreamApp
from gearpy.errors import LogBroken
from gearpy.ids import AppId
from gearpy.messages.client import Artifact, UpdateApplication, UpdatePlanned
from gearpy.messages.summaries import ScaleBounds
from gearpy.storage.checkpoints import MemoryCheckpoints, StoredFile
from gearpy.storage.coordinator_log import read_log
from gearpy.task.api.application import StreamApplication
from gearpy.testing.transactions import MemoryTransactions
from tests.bench.simulated_app import Words
from tests.cluster.app.test_checkpoints import PREFIX, a_manifest, opened
from tests.core.manager_bench import a_dag


class _Away(MemoryCheckpoints):
    is_away = False

    def save(self, name: str, chunks: Iterable[bytes]) -> StoredFile:
        if self.is_away:
            raise OSError("no answer")
        return super().save(name, chunks)


PROGRAM = Artifact(kind="file", location="x.py")
FIRST = ProgramVersion(number=0, artifact=PROGRAM, change="", state="running")


def a_program() -> StreamApplication:
    app = StreamApp("app")
    app.read(Words(1, 1, by_bound=False)).write(MemoryTransactions("shown"))
    return app.build()


def versions_of(app: AppCheckpoints) -> AppVersions:
    return AppVersions(
        app,
        PROGRAM,
        load=lambda artifact, _: LoadedProgram(
            artifact=artifact, outline=outline_of(a_program(), artifact, Config())
        ),
        wall_ms=lambda: 0,
    )


def test_a_version_that_is_given_up_as_the_log_is_away_is_shown_as_failed() -> None:
    """The application may have ended by that; nothing would ever bring it into the log."""
    checkpoints, planned = _Away(), replace(FIRST, number=1, state="preparing")
    app = opened(checkpoints, 1)
    app.note_versions([FIRST, planned])
    versions = versions_of(app)
    versions.planned = PlannedVersion(
        version=planned,
        kept=frozenset(),
        loaded=LoadedVersion(
            artifact=PROGRAM, outline=outline_of(a_program(), PROGRAM, Config()), dag=a_dag((1, 1))
        ),
        answer=UpdatePlanned(app_id=AppId(1), version=1, moves=(), is_same=True),
    )
    checkpoints.is_away = True

    with pytest.raises(LogBroken):
        versions.give_up("the application has ended")

    assert [(each.state, each.reason) for each in versions.summaries()] == [
        ("running", ""),
        ("failed", "the application has ended"),
    ]


@pytest.mark.parametrize(
    ("change", "is_in_place"),
    [
        ({"scale": (("source", 1),)}, True),
        ({"scale": (("source", 2),)}, False),
        ({"scale": (("source", 1),), "executors": 2}, False),
        ({"scale": (("source", 1),), "bounds": (("shown", ScaleBounds(least=1, most=1)),)}, False),
        ({"scale": (), "executors": 1}, False),
    ],
)
def test_steps_that_have_so_many_tasks_make_no_version(
    change: dict[str, Any], *, is_in_place: bool
) -> None:
    versions, dag = versions_of(opened(MemoryCheckpoints(), 1)), a_program().dag
    (spec,) = dag.processors.values()
    names = {"source": spec.steps[0].id, "shown": spec.steps[-1].id}
    change = {
        key: tuple((names[step], each) for step, each in value) if key != "executors" else value
        for key, value in change.items()
    }

    assert versions.is_in_place(UpdateApplication(app_id=AppId(1), **change), dag) is is_in_place


def test_that_a_trial_has_passed_is_stored_with_its_epochs() -> None:
    checkpoints = MemoryCheckpoints()
    app, base = opened(checkpoints, 1), (a_manifest(0, 7),)
    app.note_versions(
        [
            replace(FIRST, state="replaced"),
            replace(FIRST, number=1, state="trial", base=base, reason="busy"),
        ]
    )
    versions = versions_of(app)

    app.store(a_manifest(0, 9), versions=versions.tried("no records"))
    (_, tried) = Versions(read_log(checkpoints, PREFIX).state).read()
    versions.passed()

    assert (tried.state, tried.base) == ("running", base)
    assert (versions.current.state, versions.current.base) == ("running", ())
    assert versions.current.reason == "busy; no records"
