"""Where and when the master gives slots, by the settings of applications and of its own."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from gearpy.cluster.master import policies
from gearpy.cluster.master.policies import policy_named
from gearpy.core.master.flapping import STAY_MS
from gearpy.core.master.placing import PackPolicy
from gearpy.errors import ConfigError
from gearpy.ids import WorkerId
from gearpy.messages.cluster import (
    LaunchExecutor,
    RegisterWorker,
    RequestResource,
    ResourceAllocated,
    ResourceUpdate,
    SlotWishes,
)
from tests.cluster.master_build import Cluster, Role


def asked(launch: LaunchExecutor, slots: int, *hosts: str, adds: bool = False) -> RequestResource:
    return RequestResource(
        app_id=launch.app_id, launch=launch.launch, slots=slots, executors=1, hosts=hosts, adds=adds
    )


def places(role: Role) -> list[tuple[int, int, Sequence[str]]]:
    return [
        (each.worker_id, each.slots, each.hosts)
        for got in role.all(ResourceAllocated)
        for each in got.allocations
    ]


def test_an_application_is_on_its_hosts_and_a_step_on_those_of_its_own() -> None:
    """The app master, too; a grant says only what the app master has named itself."""
    cluster = Cluster()
    cluster.worker(9, "a")
    worker = cluster.worker(5, "b")
    cluster.submit(**{"application.hosts": "B"})

    launch = worker.last(LaunchExecutor)
    app_master = cluster.app_master(launch)
    cluster.tell(asked(launch, 2), asked(launch, 3, "a", "c", adds=True))

    assert places(app_master) == [(1, 2, ()), (0, 3, ("a", "c"))]


def test_an_application_that_waits_for_a_host_says_so() -> None:
    cluster = Cluster()
    cluster.worker(9, "a")
    app_id = cluster.submit(**{"application.hosts": "b"})

    assert cluster.summary(app_id).progress.stall == (
        "waits for slots: needs a worker on b, and there is none"
    )


def test_the_higher_priority_is_launched_first() -> None:
    cluster = Cluster()
    cluster.submit("low", **{"application.priority": "low"})
    cluster.submit("high", **{"application.priority": "high"})

    worker = cluster.worker(1)

    assert [each.name for each in worker.all(LaunchExecutor)] == ["high"]


def test_one_worker_is_a_setting() -> None:
    cluster = Cluster()
    worker, _ = cluster.worker(4, "a"), cluster.worker(3, "b")
    cluster.submit(**{"application.relaxation": "one-worker"})
    launch = worker.last(LaunchExecutor)
    app_master = cluster.app_master(launch)

    message = RequestResource(app_id=launch.app_id, launch=launch.launch, slots=3, executors=3)
    cluster.tell(message)

    assert places(app_master) == [(0, 1, ())] * 3


def test_a_program_says_where_it_wants_to_be() -> None:
    cluster = Cluster(application__hosts="a")
    worker = cluster.worker(4, "a")
    cluster.worker(9, "b")
    cluster.submit(**{"application.relaxation": "one-worker"})
    launch = worker.last(LaunchExecutor)
    app_master = cluster.app_master(launch)
    wishes = SlotWishes(hosts=("b",), relaxation="any", priority="high")
    message = RequestResource(
        app_id=launch.app_id, launch=launch.launch, slots=3, executors=3, wishes=wishes
    )

    cluster.tell(message)

    assert places(app_master) == [(1, 1, ())] * 3


def test_a_quota_is_told_to_who_waits_for_it() -> None:
    cluster = Cluster(master__quotas="*=2")
    worker = cluster.worker(9)
    app_id = cluster.submit()
    launch = worker.last(LaunchExecutor)
    app_master = cluster.app_master(launch)

    cluster.tell(asked(launch, 3))

    assert places(app_master) == []
    assert "2 are left of the 2" in cluster.summary(app_id).progress.stall


def test_a_worker_that_leaves_gets_nothing_new() -> None:
    cluster = Cluster()
    worker = cluster.worker(4)
    cluster.submit()
    launch = worker.last(LaunchExecutor)
    app_master = cluster.app_master(launch)
    cluster.tell(ResourceUpdate(worker_id=WorkerId(0), running=(), is_leaving=True))

    cluster.tell(asked(launch, 2))
    assert places(app_master) == []
    assert (cluster.workers()[0].slots, cluster.workers()[0].is_leaving) == (0, True)
    cluster.worker(2)

    assert places(app_master) == [(1, 2, ())]


def test_a_worker_that_comes_and_goes_gets_nothing_until_it_stays() -> None:
    cluster = Cluster()
    worker = cluster.worker(1)
    cluster.submit()
    launch = worker.last(LaunchExecutor)
    app_master = cluster.app_master(launch)
    for number in range(7):
        role = Role(cluster, f"flapping{number}")
        cluster.tell(RegisterWorker(worker=role.path, slots=9, home="machine:/worker"))
        if number < 6:
            role.die()

    cluster.tell(asked(launch, 2))
    assert places(app_master) == []
    assert "nothing starts on worker 7 until it stays" in cluster.summary().progress.stall
    aside = cluster.workers()[7]
    assert aside.free_slots == 0
    assert 0 < aside.aside_until_ms - cluster.system.wall_ms() <= STAY_MS
    assert cluster.workers()[0].aside_until_ms == 0
    cluster.settle(STAY_MS + 1)

    assert places(app_master) == [(7, 2, ())]
    assert cluster.workers()[7].aside_until_ms == 0


def test_a_policy_of_a_package_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    here = {
        "mine": "gearpy.core.master.placing:PackPolicy",
        "none": "builtins:object",
        "gone": "gearpy.core.master.placing:Gone",
    }
    offered = EntryPoints(EntryPoint(name, each, policies.GROUP) for name, each in here.items())
    monkeypatch.setattr(policies, "entry_points", lambda group: offered.select(group=group))

    assert isinstance(policy_named("pack"), PackPolicy)
    assert isinstance(policy_named("mine"), PackPolicy)
    with pytest.raises(ConfigError, match="'none' has no method order and rank"):
        policy_named("none")
    with pytest.raises(ConfigError, match="'gone' cannot be made: AttributeError"):
        policy_named("gone")
    with pytest.raises(ConfigError, match="there are: gone, mine, none, pack, spread; install"):
        policy_named("other")
