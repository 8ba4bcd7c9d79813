"""Applications that are changed while they run, in virtual time, with faults.

See `tests.bench.simulate_changes` for what is changed and what must come out; ``bin/bench simulate
--changes`` runs many more.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from gearpy.dsl.application import StreamApp
from gearpy.ids import MASTER_EXECUTOR, AppId
from gearpy.messages.client import UpdatePlanned
from gearpy.storage.checkpoints import MemoryCheckpoints, StoredFile
from tests.bench.simulate import end_problem, slots_problem
from tests.bench.simulate_changes import (
    PAUSE_MS,
    PHASES,
    SHORTER,
    ChangingApp,
    Variant,
    run_change_seed,
    stale_epochs,
    versions_in_log,
)
from tests.bench.simulated_app import SimulatedApp
from tests.sim.phases import see_fault_in_each
from tests.world.cluster import ClusterSimulation

pytestmark = pytest.mark.usefixtures("no_log")


# 20,765: what a task has sent comes when both ends have been started again; 20,907: a process in
# which all is done has the slots that another one waits for; 22,828: a change is asked for while
# its log cannot be written, and is refused; 24,644: a process starts as its version fails.
@pytest.mark.parametrize(
    "seed",
    [22_828, *(pytest.param(n, marks=pytest.mark.long) for n in (0, 20_765, 20_907, 24_644))],
)
def test_each_record_is_shown_once_by_the_version_that_read_it(seed: int) -> None:
    result = run_change_seed(seed)

    assert not result.problem, result


@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(each, marks=pytest.mark.long) for each in range(5, 200))]
)
def test_changes_that_follow_each_other_closely_are_exact(seed: int) -> None:
    result = run_change_seed(seed, aimed=seed % 2 == 1, shorter=SHORTER)

    assert not result.problem, result


@pytest.mark.parametrize("seed", [6, 22])
def test_an_application_that_the_cluster_has_divided_is_changed(seed: int) -> None:
    result = run_change_seed(seed, divided=True, shorter=SHORTER)

    assert not result.problem, result


def test_a_version_stays_in_preparation_where_an_application_ends_without_its_log() -> None:
    result = run_change_seed(501_288, shorter=SHORTER)

    assert not result.problem, result


def test_faults_in_each_phase_of_a_change_do_no_harm() -> None:
    first = (50_010, 50_007, 50_009)  # They hit each phase as long as nothing changes what happens.
    seeds = (*first, *(seed for seed in range(50_003, 50_015) if seed not in first))
    results = (run_change_seed(seed, aimed=True) for seed in seeds)

    see_fault_in_each(PHASES, ((each.problem, each.phases) for each in results))


def test_versions_run_are_replaced_and_fail() -> None:
    results = [run_change_seed(seed, calm=True) for seed in (2, 3)]

    states = sum((each.versions for each in results), Counter[str]())
    assert not [each for each in results if each.problem]
    assert states.keys() == {"running", "replaced", "failed"}


@pytest.mark.long
def test_a_sink_keeps_what_versions_before_have_shown() -> None:
    results = [run_change_seed(26)]

    assert not [each for each in results if each.problem]


class _UnsureStore(MemoryCheckpoints):
    """A store that fails once, when a new version is put in place, and tells of it.

    Args:
        stores: what it fails at is there all the same.
        at_epoch: it fails at the first epoch of that version, and not before.
    """

    def __init__(self, *, stores: bool, at_epoch: bool = False) -> None:
        super().__init__()
        self._is_on_trial = False
        self.failed_at = b""  #: What it failed to store.
        self.stores, self._at_epoch = stores, at_epoch
        self.on_failure: Callable[[], object] = lambda: None

    def save(self, name: str, chunks: Iterable[bytes]) -> StoredFile:
        data = b"".join(chunks)
        if "/coordinator/" not in name or self.failed_at or not self._is_meant(data):
            return super().save(name, [data])
        self.failed_at = data
        if self.stores:
            super().save(name, [data])
        self.on_failure()
        raise OSError("no answer")

    def _is_meant(self, data: bytes) -> bool:
        if not self._at_epoch:
            return b"trial" in data
        was_on_trial, self._is_on_trial = self._is_on_trial, self._is_on_trial or b"trial" in data
        return was_on_trial and b"epoch" in data


def _two_versions(beside: int) -> tuple[ChangingApp, Variant, Variant]:
    one, other = (SimulatedApp(each, ("numbered",), partitions=2) for each in (900, beside))
    first, second = (
        Variant(tag=tag, parallelism=2, branches=("numbered",), has_more_steps=False, breaks="")
        for tag in (0, 1)
    )
    return ChangingApp(one, other, is_beside_first=True), first, second


def _change_soon(cluster: ClusterSimulation, app_id: AppId, build: Callable[[], StreamApp]) -> None:
    def update() -> None:
        if not isinstance(cluster.update(app_id, build), UpdatePlanned):
            cluster.world.later(50, update)

    cluster.world.later(500, update)


@pytest.mark.parametrize("stores", [True, False])
def test_a_first_epoch_that_may_be_in_the_log_leaves_it_when_the_trial_fails(
    *, stores: bool
) -> None:
    """Nobody has shown it: the version before reads its records again."""
    app, first, second = _two_versions(beside=8)
    store = _UnsureStore(stores=stores, at_epoch=True)
    cluster = ClusterSimulation(7, slots=14, checkpoints=store, idle_poll_ms=PAUSE_MS)
    running = cluster.submit(lambda: app.build(first))
    store.on_failure = lambda: setattr(app, "failing", 1)

    _change_soon(cluster, running.app_id, lambda: app.build(second))
    summary = cluster.run_to_end(running.app_id, within_ms=300_000)

    assert end_problem(summary, "finish") == ""
    assert b"running" in store.failed_at  # The end of the trial is in the log with it.
    assert Counter(tag for sink in app.tagged for *_, tag in sink.values) == {0: 900}
    assert app.base.problem() == ""


@pytest.mark.parametrize("stores", [True, False])
def test_a_version_that_never_ran_as_its_application_ends_is_taken_out_of_the_log(
    *, stores: bool
) -> None:
    app, first, second = _two_versions(beside=900)
    store = _UnsureStore(stores=stores)
    soon = {"application.total-retries": "1"}
    cluster = ClusterSimulation(
        7, slots=14, checkpoints=store, idle_poll_ms=PAUSE_MS, settings=soon
    )
    running = cluster.submit(lambda: app.build(first))
    store.on_failure = lambda: setattr(app, "is_doomed", True)

    _change_soon(cluster, running.app_id, lambda: app.build(replace(second, more=1)))
    summary = cluster.run_to_end(running.app_id, within_ms=300_000)

    assert summary is not None
    assert summary.status == "failed"
    assert [(each.state, each.reason) for each in versions_in_log(cluster)] == [
        ("running", ""),
        ("failed", "the application has ended"),
    ]
    assert stale_epochs(cluster, first) == ""
    assert slots_problem(cluster) == ""


def test_a_version_that_cannot_go_back_ends_the_application_with_both_causes() -> None:
    """The program of before is gone; also what the change did not touch ends."""
    app, first, second = _two_versions(beside=900)
    broken = replace(second, breaks="at records")
    cluster = ClusterSimulation(7, slots=14, idle_poll_ms=PAUSE_MS)
    running = cluster.submit(lambda: app.build(first))
    (first_program,) = cluster.programs

    def lose_program() -> None:
        is_on_trial = cluster.core is not None and cluster.core.succession.trial is not None
        if is_on_trial and first_program in cluster.programs:
            cluster.lose_program(first_program)

    cluster.world.on_act = lose_program
    _change_soon(cluster, running.app_id, lambda: app.build(broken))
    summary = cluster.run_to_end(running.app_id, within_ms=300_000)

    assert summary is not None
    assert summary.status == "failed"
    assert summary.cause is not None
    assert summary.cause.cause == (
        "ValueError: this version is broken; version 0 cannot take its place again: "
        f"there is no program {first_program}"
    )
    assert slots_problem(cluster) == ""


@pytest.mark.parametrize("is_first_gone", [False, True])
def test_a_version_on_trial_whose_program_is_gone_gives_way_under_another_app_master(
    *, is_first_gone: bool
) -> None:
    """The version before goes on, unless its program is gone, too."""
    app, first, second = _two_versions(beside=900)
    cluster = ClusterSimulation(7, slots=14, idle_poll_ms=PAUSE_MS)
    running = cluster.submit(lambda: app.build(first))
    gone: list[str] = []

    def lose_programs() -> None:
        is_on_trial = cluster.core is not None and cluster.core.succession.trial is not None
        if is_on_trial and not gone:
            gone.extend(cluster.programs if is_first_gone else cluster.programs[1:])
            for each in gone:
                cluster.lose_program(each)
            (app_master,) = cluster.launched(MASTER_EXECUTOR)
            cluster.world.later(1, lambda: cluster.kill(app_master))

    cluster.world.on_act = lose_programs
    _change_soon(cluster, running.app_id, lambda: app.build(second))
    summary = cluster.run_to_end(running.app_id, within_ms=300_000)

    assert gone
    assert summary is not None
    told = f"there is no program {gone[-1]}"
    if is_first_gone:
        why = f"{told}; version 0 cannot take its place again: there is no program {gone[0]}"
        assert summary.cause is not None
        assert (summary.status, summary.cause.cause) == ("failed", f"ConfigError: {why}")
    else:
        assert summary.status == "succeeded"
        assert not app.base.problem()
        assert [(each.state, each.reason) for each in versions_in_log(cluster)] == [
            ("replaced", ""),
            ("failed", told),
            ("running", ""),
        ]
    assert slots_problem(cluster) == ""


@pytest.mark.parametrize("stores", [True, False])
def test_a_drain_is_of_the_version_that_may_be_in_the_log(*, stores: bool) -> None:
    app, first, second = _two_versions(beside=900)
    store = _UnsureStore(stores=stores)
    cluster = ClusterSimulation(7, slots=14, checkpoints=store, idle_poll_ms=PAUSE_MS)
    running = cluster.submit(lambda: app.build(first))
    drained: list[bool] = []
    store.on_failure = lambda: cluster.world.later(
        20, lambda: drained.append(cluster.drain(running.app_id))
    )

    _change_soon(cluster, running.app_id, lambda: app.build(second))
    summary = cluster.run_to_end(running.app_id, within_ms=300_000)

    shown = [(number, tag) for sink in app.tagged for _, number, tag in sink.values]
    assert drained == [True]
    assert summary is not None
    assert summary.status in {"terminated", "succeeded"}
    assert len(shown) == len(dict(shown))
    assert {tag for _, tag in shown} == {0, 1}
    assert not app.base.problem(is_whole=False)
