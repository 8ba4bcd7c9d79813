"""Applications that are changed while they run, in virtual time, with faults.

See `tests.bench.simulate_changes` for what is changed and what must come out; ``bin/bench simulate
--changes`` runs many more.
"""

from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from gearpy.messages.client import UpdatePlanned
from gearpy.storage.checkpoints import MemoryCheckpoints, StoredFile
from tests.bench.simulate_changes import (
    PAUSE_MS,
    PHASES,
    SHORTER,
    ChangingApp,
    Variant,
    run_change_seed,
)
from tests.bench.simulated_app import SimulatedApp
from tests.sim.phases import see_fault_in_each
from tests.world.cluster import ClusterSimulation

pytestmark = pytest.mark.usefixtures("no_log")


# 20,765: what a task has sent comes when both ends have been started again; 20,907: a process in
# which all is done has the slots that another one waits for; 22,828: a change is asked for while
# its log cannot be written, and is refused; 24,644: a process starts as its version fails.
@pytest.mark.parametrize("seed", [0, 20_765, 20_907, 22_828, 24_644])
def test_each_record_is_shown_once_by_the_version_that_read_it(seed: int) -> None:
    """Whatever fails meanwhile, and also if the new version does."""
    result = run_change_seed(seed)

    assert not result.problem, result


@pytest.mark.parametrize("seed", range(200))
def test_changes_that_follow_each_other_closely_are_exact(seed: int) -> None:
    """In short runs, as there is time for many of them."""
    result = run_change_seed(seed, aimed=seed % 2 == 1, shorter=SHORTER)

    assert not result.problem, result


def test_faults_in_each_phase_of_a_change_do_no_harm() -> None:
    """Also while a version takes the place of another, which is over within one turn."""
    results = (run_change_seed(seed, aimed=True) for seed in range(50_003, 50_015))

    see_fault_in_each(PHASES, ((each.problem, each.phases) for each in results))


def test_versions_run_are_replaced_and_fail() -> None:
    """Without faults all of it happens, and nothing restarts but for changes."""
    results = [run_change_seed(seed, calm=True) for seed in (2, 5)]

    states = sum((each.versions for each in results), Counter[str]())
    assert not [each for each in results if each.problem]
    assert states.keys() == {"running", "replaced", "failed"}


def test_a_sink_keeps_what_versions_before_have_shown() -> None:
    """Also where a task that has shown something was gone for a version, and is there again."""
    results = [run_change_seed(seed) for seed in (26, 33)]

    assert not [each for each in results if each.problem]


class _UnsureStore(MemoryCheckpoints):
    """A store that fails once, when a new version is put in place, and tells of it."""

    def __init__(self, *, stores: bool) -> None:
        super().__init__()
        self.has_failed, self.stores = False, stores
        self.on_failure: Callable[[], object] = lambda: None

    def save(self, name: str, chunks: Iterable[bytes]) -> StoredFile:
        data = b"".join(chunks)
        if "/coordinator/" not in name or b"trial" not in data or self.has_failed:
            return super().save(name, [data])
        self.has_failed = True
        if self.stores:
            super().save(name, [data])
        self.on_failure()
        raise OSError("no answer")


@pytest.mark.parametrize("stores", [True, False])
def test_a_drain_is_of_the_version_that_may_be_in_the_log(*, stores: bool) -> None:
    """While nobody knows whether it is the version before cannot be gone on with."""
    base = SimulatedApp(900, ("numbered",), partitions=2)
    app = ChangingApp(base, SimulatedApp(900, ("numbered",), partitions=2), is_beside_first=True)
    first, second = (
        Variant(tag=tag, parallelism=2, branches=("numbered",), has_more_steps=False, breaks=False)
        for tag in (0, 1)
    )
    store = _UnsureStore(stores=stores)
    cluster = ClusterSimulation(7, slots=14, checkpoints=store, idle_poll_ms=PAUSE_MS)
    running = cluster.submit(lambda: app.build(first))
    drained: list[bool] = []
    store.on_failure = lambda: cluster.world.later(
        20, lambda: drained.append(cluster.drain(running.app_id))
    )

    def update() -> None:
        answer = cluster.update(running.app_id, lambda: app.build(second))
        if not isinstance(answer, UpdatePlanned):
            cluster.world.later(50, update)

    cluster.world.later(500, update)
    summary = cluster.run_to_end(running.app_id, within_ms=300_000)

    shown = [(number, tag) for sink in app.tagged for _, number, tag in sink.values]
    assert drained == [True]
    assert summary is not None
    assert summary.status in {"terminated", "succeeded"}
    assert len(shown) == len(dict(shown))
    assert {tag for _, tag in shown} == {0, 1}
    assert not base.problem(is_whole=False)
