"""What becomes of a cluster's applications when what they have stored is gone, or was changed."""

import pytest

from gearpy.cluster.client.client import RunningApplication
from gearpy.core.coordinator.log import draft
from gearpy.core.coordinator.views import ConfigView, EpochManifests
from gearpy.ids import MASTER_EXECUTOR, AppId
from gearpy.messages.client import GetCluster
from gearpy.messages.summaries import ApplicationSummary
from gearpy.storage.checkpoints import MemoryCheckpoints
from gearpy.storage.coordinator_log import CoordinatorLog, newest_launch, read_log
from tests.bench.simulated_app import SimulatedApp
from tests.world.cluster import ClusterSimulation

INTERVAL = "checkpoint.interval-ms"


pytestmark = pytest.mark.usefixtures("no_log")


class Run:
    def __init__(self, records: int = 600, **config: str) -> None:
        self.app = SimulatedApp(records, ["numbered"])
        self.cluster = ClusterSimulation(1)
        self.running: RunningApplication = self.cluster.submit(self.app.build, config=config)
        self.cluster.world.run(lambda: len(self.epochs()) > 1, within_ms=20_000)
        assert self.epochs(), "it has begun"

    @property
    def summary(self) -> ApplicationSummary:
        summary = self.cluster.summary(self.running.app_id)
        assert summary is not None
        return summary

    @property
    def stored(self) -> MemoryCheckpoints:
        stored = self.cluster.checkpoints.stored
        assert isinstance(stored, MemoryCheckpoints)
        return stored

    def prefix(self, app_id: int = 1) -> str:
        return f"{self.cluster.client.ask(GetCluster()).cluster_id}/app{app_id}"

    def epochs(self, app_id: int = 1) -> list[int]:
        view = EpochManifests(read_log(self.stored, self.prefix(app_id)).state)
        return [each.epoch for region in view.regions() for each in view.manifests(region)]

    def config(self, app_id: int = 1) -> dict[str, str]:
        return ConfigView(read_log(self.stored, self.prefix(app_id)).state).read()

    def set_config(self, key: str, value: str | None) -> None:
        """Change the configuration as ``gear coordinator-log append --force`` does."""
        log = CoordinatorLog(
            self.stored,
            self.prefix(),
            launch=newest_launch(self.stored, self.prefix()),
            source="gear coordinator-log",
            wall_ms=lambda: 0,
        )
        log.append([draft("set-config", key, None if value is None else {"value": value})])

    def relaunch(self) -> None:
        """Kill the app master, and wait for the next one to store something."""
        self.cluster.kill(self.cluster.launched(MASTER_EXECUTOR)[0])
        launch = newest_launch(self.stored, self.prefix())
        self.cluster.world.run(
            lambda: newest_launch(self.stored, self.prefix()) > launch, within_ms=20_000
        )
        self.cluster.world.run(lambda: False, within_ms=2_000)

    def epochs_within(self, ms: int) -> int:
        before = max(self.epochs())
        self.cluster.world.run(lambda: False, within_ms=ms)
        return max(self.epochs()) - before

    def end(self, app_id: int = 1) -> ApplicationSummary:
        summary = self.cluster.run_to_end(AppId(app_id), within_ms=120_000)
        assert summary is not None
        return summary


# -- an empty folder -------------------------------------------------------------------------


@pytest.mark.parametrize("is_relaunched", [True, False])
def test_an_application_waits_for_its_store(*, is_relaunched: bool) -> None:
    run = Run()
    run.cluster.world.run(lambda: run.summary.progress.epoch > 0, within_ms=5_000)
    before = run.summary.progress
    away_ms = 700_000 if is_relaunched else 120_000
    run.cluster.checkpoints.be_away(away_ms)
    if is_relaunched:
        run.cluster.kill(run.cluster.launched(MASTER_EXECUTOR)[0])

    run.cluster.world.run(lambda: False, within_ms=away_ms - 50_000)

    progress = run.summary.progress
    assert run.summary.status == ("pending" if is_relaunched else "active")
    assert progress.waits_for.startswith("its store: ")
    assert "checkpoint folder memory has nothing of" in progress.waits_for
    assert progress.epoch >= before.epoch > 0
    assert progress.records_in >= before.records_in > 0
    assert not run.cluster.checkpoints.misplaced
    assert run.end().status == "succeeded"
    assert (run.app.problem(), run.summary.progress.restarts) == ("", 0)


def test_an_application_that_is_started_again_without_its_store_waits_for_it() -> None:
    run = Run()
    run.cluster.checkpoints.be_away(30_000)

    again = run.cluster.client.restart(AppId(1))
    run.cluster.world.run(lambda: False, within_ms=20_000)

    summary = run.cluster.summary(again.app_id)
    assert summary is not None
    assert summary.status == "pending"
    assert f"has nothing of {run.prefix()} on" in summary.progress.waits_for
    assert not run.cluster.checkpoints.misplaced
    assert run.end(again.app_id).status == "succeeded"
    assert run.app.problem() == ""


def test_an_older_copy_of_a_store_is_not_gone_on_from() -> None:
    """What was shown since would be shown again."""
    run = Run(2_000)
    before = {name: run.stored.load(name) for name in run.stored.names(run.prefix())}
    run.relaunch()
    run.stored.drop_all(run.prefix())
    for name, data in before.items():
        run.stored.save(name, [data])

    run.cluster.kill(run.cluster.launched(MASTER_EXECUTOR)[0])
    run.cluster.world.run(lambda: False, within_ms=20_000)

    assert run.summary.status == "pending"
    assert "only one of launch 1 is there" in run.summary.progress.waits_for


@pytest.mark.parametrize("part", ["epochs", "coordinator"])
def test_a_full_store_is_waited_for(part: str) -> None:
    run = Run(3_000)
    run.cluster.checkpoints.fail(30_000, part=part)

    run.cluster.world.run(lambda: bool(run.summary.progress.waits_for), within_ms=10_000)
    assert "its store: " in run.summary.progress.waits_for
    assert "the store fails: cannot " in run.summary.progress.waits_for

    assert run.end().status == "succeeded"
    assert (run.app.problem(), run.summary.progress.waits_for) == ("", "")


def test_a_first_launch_needs_no_store_that_knows_it() -> None:
    app, cluster = SimulatedApp(50, ["numbered"]), ClusterSimulation(3)
    running = cluster.submit(app.build)
    cluster.world.run(lambda: bool(cluster.launched(MASTER_EXECUTOR)), within_ms=5_000)
    cluster.kill(cluster.launched(MASTER_EXECUTOR)[0])

    summary = cluster.run_to_end(running.app_id, within_ms=60_000)

    assert summary is not None
    assert (summary.status, app.problem()) == ("succeeded", "")


# -- configuration ---------------------------------------------------------------------------


def test_configuration_is_read_from_the_log_at_each_launch() -> None:
    run = Run(20_000, **{INTERVAL: "300"})
    assert run.config() == {INTERVAL: "300"}
    assert run.epochs_within(2_000) > 2

    run.set_config(INTERVAL, "50000")
    run.relaunch()

    assert run.config() == {INTERVAL: "50000"}
    assert run.epochs_within(2_000) == 0
    run.relaunch()
    assert run.epochs_within(2_000) == 0


def test_a_deleted_key_is_as_the_cluster_has_it() -> None:
    run = Run(20_000, **{INTERVAL: "700"})

    run.set_config(INTERVAL, None)
    run.relaunch()

    assert run.config() == {}
    assert run.epochs_within(2_000) > 5


def test_configuration_that_is_wrong_ends_the_application() -> None:
    run = Run()
    run.set_config(INTERVAL, "soon")
    run.cluster.kill(run.cluster.launched(MASTER_EXECUTOR)[0])

    summary = run.end()

    assert summary.status == "failed"
    assert summary.cause is not None
    assert f"coordinator log: override: {INTERVAL} is 'soon'" in summary.cause.cause
    assert "gear coordinator-log append ID set-config" in summary.cause.cause
    assert run.epochs()


# -- the same again --------------------------------------------------------------------------


@pytest.mark.parametrize("is_stopped", [False, True])
def test_an_application_started_again_goes_on(*, is_stopped: bool) -> None:
    """With its checkpoints, and with its configuration as it was changed since."""
    run = Run(2_000, **{INTERVAL: "300"})
    run.set_config(INTERVAL, "400")
    if is_stopped:
        run.running.shutdown()

    again = run.cluster.client.restart(AppId(1))
    run.cluster.world.run(lambda: bool(run.epochs(again.app_id)), within_ms=20_000)

    assert run.config(again.app_id) == {INTERVAL: "400"}
    assert run.epochs(again.app_id)[0] >= run.epochs()[-1]
    assert run.end(again.app_id).status == "succeeded"
    assert run.app.problem() == "", "each result is there once"


def test_what_is_started_again_completes_no_more_epochs() -> None:
    run = Run(2_000)
    old = run.cluster.launched(MASTER_EXECUTOR)[0]
    run.cluster.pause(old, 3_000)

    again = run.cluster.client.restart(AppId(1))
    run.cluster.world.run(lambda: bool(run.epochs(again.app_id)), within_ms=20_000)
    before = run.epochs()
    assert run.end(again.app_id).status == "succeeded"

    assert run.epochs() == before
    assert run.app.problem() == ""


def test_from_the_beginning_if_somebody_says_so() -> None:
    run = Run(300)

    again = run.cluster.client.restart(AppId(1), from_beginning=True)

    assert run.end(again.app_id).status == "succeeded"
    assert len(run.app.sinks["numbered"].values) > 300


def test_one_that_has_succeeded_begins_from_the_beginning() -> None:
    run = Run(100)
    assert run.end().status == "succeeded"

    again = run.cluster.client.restart(AppId(1))

    assert run.end(again.app_id).status == "succeeded"
    assert len(run.app.sinks["numbered"].values) == 200


def test_what_goes_on_takes_over_configuration_but_for_what_is_given_anew() -> None:
    run = Run(600, **{INTERVAL: "300", "streaming.stall-threshold-ms": "70000"})
    run.running.shutdown()
    point = f"{run.prefix()}@"

    run.cluster.submit(run.app.build, resume_from=point, config={INTERVAL: "250"})
    run.cluster.world.run(lambda: bool(run.epochs(2)), within_ms=20_000)

    assert run.config(2) == {INTERVAL: "250", "streaming.stall-threshold-ms": "70000"}
    assert run.end(2).status == "succeeded"
    assert run.app.problem() == ""


# -- what has succeeded ----------------------------------------------------------------------


def test_what_succeeded_is_kept_for_a_while() -> None:
    run = Run(60)
    assert run.end().status == "succeeded"
    assert run.epochs()
    hours = 24 * 3_600_000

    run.cluster.world.run(lambda: False, within_ms=1_000)
    second = run.cluster.submit(run.app.build)
    assert run.end(second.app_id).status == "succeeded"
    assert run.epochs()
    run.cluster.world.now_ms += hours
    third = run.cluster.submit(run.app.build)
    assert run.end(third.app_id).status == "succeeded"

    assert not run.stored.names(run.prefix(1))
    assert not run.stored.names(run.prefix(2))
    assert run.epochs(3)


def test_what_succeeded_goes_at_once_if_nothing_is_to_be_kept() -> None:
    run = Run(600, **{"checkpoint.keep-succeeded": "0"})

    assert run.end().status == "succeeded"

    assert not run.stored.names(run.prefix())
