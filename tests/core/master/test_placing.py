"""Where requests are served: hosts, racks, one worker, policies, and the quotas of users."""

from collections import Counter
from random import Random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.master.placing import PackPolicy, PlacingPolicy
from gearpy.core.master.quotas import NO_QUOTAS, Quotas, quotas_in
from gearpy.core.master.requests import Priority, Relaxation, ResourceRequest
from gearpy.core.master.scheduling import SlotScheduler
from gearpy.core.master.slots import Grant, SlotLedger, WorkerPlace
from gearpy.errors import ConfigError
from gearpy.ids import AppId, ExecutorId, WorkerId
from gearpy.messages.cluster import RunningExecutor

ANN, BEN = AppId(1), AppId(2)
USERS: Final = {ANN: "ann", BEN: "ben", AppId(3): "ann"}


class Cluster(SlotScheduler):
    """A scheduler with workers on machines, given as (machine, rack, slots)."""

    def __init__(
        self,
        *workers: tuple[str, str, int],
        policy: PlacingPolicy | None = None,
        quotas: dict[str, int] | None = None,
    ) -> None:
        self.ledger = SlotLedger(grant_timeout_ms=1000)
        limits = NO_QUOTAS if quotas is None else Quotas(quotas, lambda app: USERS[app])
        super().__init__(self.ledger, reserve_ms=5000, policy=policy, quotas=limits)
        for number, (host, rack, slots) in enumerate(workers):
            place = WorkerPlace((host, f"worker{number}"), rack)
            self.ledger.on_worker(WorkerId(number), total=slots, running=(), place=place)

    def ask(self, slots: int, executors: int = 1, app_id: AppId = ANN, **wishes: object) -> None:
        request = ResourceRequest(
            app_id=app_id,
            launch=1,
            slots=slots,
            executors=executors,
            **wishes,  # type: ignore[arg-type]
        )
        self.request(request)

    def got(self) -> list[tuple[int, int]]:
        return [(grant.worker_id, grant.slots) for grant in self.allocate(0)]

    def end(self, app_id: AppId) -> None:
        for grant in self.ledger.grants:
            if grant.app_id == app_id:
                self.ledger.give_back(grant)


# -- machines ----------------------------------------------------------------------------------


def test_executors_are_spread_over_machines_and_then_over_their_workers() -> None:
    """Two workers of one machine are lost with it; Gearpump looks at workers only."""
    cluster = Cluster(("a", "", 9), ("a", "", 9), ("b", "", 5))

    cluster.ask(4, executors=4)

    assert Counter(worker for worker, _ in cluster.got()) == {0: 1, 1: 1, 2: 2}


def test_workers_near_the_data_come_first_and_others_will_do() -> None:
    cluster = Cluster(("a", "", 9), ("b", "", 2), ("c", "", 1), policy=PackPolicy())
    cluster.ask(4, executors=4, near=("B", "c", "unknown"))
    assert Counter(worker for worker, _ in cluster.got()) == {0: 1, 1: 2, 2: 1}
    cluster.end(ANN)
    cluster.ask(1, near=("b",), hosts=("a",))
    assert cluster.got() == [(0, 1)]


def test_slots_that_are_divided_as_there_is_room_are_near_the_data() -> None:
    cluster = Cluster(("a", "", 9), ("b", "", 4))
    cluster.ask(3, executors=0, near=("b",))
    assert cluster.got() == [(1, 3)]


def test_a_request_is_served_on_its_hosts_only_and_says_which_it_waits_for() -> None:
    cluster = Cluster(("a", "", 9), ("b", "", 2))
    cluster.ask(2, hosts=("B",), named=("B",))  # Names have no capital letters.
    cluster.ask(2, app_id=BEN, hosts=("b", "c"))

    assert cluster.allocate(0) == [Grant(ANN, 1, WorkerId(1), 2, named=("B",))]
    assert cluster.why_waiting(BEN) == ("needs 2 more slots, 0 are free on the workers it may use")


def test_a_host_without_a_worker_is_told() -> None:
    cluster = Cluster(("a", "", 9))
    cluster.ask(1, hosts=("b", "worker7"))

    assert cluster.got() == []
    assert cluster.why_waiting(ANN) == "needs a worker on b or worker7, and there is none"


def test_a_worker_can_be_asked_for_by_its_number() -> None:
    cluster = Cluster(("a", "", 9), ("a", "", 3))
    cluster.ask(3, hosts=("worker1",))

    assert cluster.got() == [(1, 3)]


def test_a_rack_is_a_name_of_all_its_machines() -> None:
    cluster = Cluster(("a", "r1", 99), ("b", "r2", 4), ("c", "r2", 4))

    cluster.ask(4, executors=2, hosts=("r2",))

    assert cluster.got() == [(1, 2), (2, 2)]


def test_a_grant_is_the_same_to_its_holder_whatever_was_asked_for() -> None:
    """An app master gives back worker and slots; it does not say by which wish it has them."""
    cluster = Cluster(("a", "", 4))
    cluster.ask(4, hosts=("a",), named=("a",))
    (grant,) = cluster.allocate(0)

    assert cluster.ledger.give_back(Grant(ANN, 1, grant.worker_id, 4))
    assert cluster.workers()[WorkerId(0)].free == 4


# -- one worker --------------------------------------------------------------------------------


def test_one_worker_has_all_executors_or_none() -> None:
    cluster = Cluster(("a", "", 5), ("b", "", 5))
    cluster.ask(6, executors=3, relaxation=Relaxation.ONE_WORKER)
    assert cluster.got() == []
    assert "needs 6 slots on one worker" in str(cluster.why_waiting(ANN))
    cluster.cancel(ANN)

    cluster.ask(4, executors=2, relaxation=Relaxation.ONE_WORKER)

    assert cluster.got() == [(0, 2), (0, 2)]


def test_an_executor_that_was_lost_comes_back_to_the_others() -> None:
    cluster = Cluster(("a", "", 4), ("b", "", 2))
    cluster.ask(4, executors=2, relaxation=Relaxation.ONE_WORKER)
    first, _ = cluster.allocate(0)
    cluster.ledger.on_worker(WorkerId(1), total=99, running=(), place=WorkerPlace(("b",)))
    cluster.ledger.give_back(first)

    cluster.ask(2, relaxation=Relaxation.ONE_WORKER, is_restart=True)
    assert cluster.got() == [(0, 2)]

    cluster.ledger.on_worker_lost(WorkerId(0))
    cluster.ask(4, executors=2, relaxation=Relaxation.ONE_WORKER, is_restart=True)
    assert cluster.got() == [(1, 2), (1, 2)]


# -- policies ----------------------------------------------------------------------------------


def test_pack_leaves_workers_empty() -> None:
    cluster = Cluster(("a", "", 4), ("b", "", 4), ("c", "", 4), policy=PackPolicy())
    cluster.ask(1, app_id=BEN, hosts=("b",))
    cluster.allocate(0)

    cluster.ask(3, executors=3)
    assert cluster.got() == [(1, 1), (1, 1), (1, 1)]
    cluster.ask(3, executors=0)
    assert cluster.got() == [(0, 3)]
    cluster.ask(1)
    assert cluster.got() == [(0, 1)]


def test_high_priority_comes_first_with_its_app_master() -> None:
    cluster = Cluster(("a", "", 3))
    cluster.ask(1, is_for_app_master=True)
    cluster.ask(2, app_id=BEN, priority=Priority.HIGH)
    cluster.ask(1, app_id=BEN, priority=Priority.HIGH, is_for_app_master=True)

    assert [(each.app_id, each.slots) for each in cluster.allocate(0)] == [(BEN, 1), (BEN, 2)]


class Backwards:
    def order(self, request: ResourceRequest) -> tuple[int, ...]:
        return (request.priority,)

    def rank(self, request: ResourceRequest, offer: object) -> tuple[int, ...]:
        return ()


def test_a_policy_cannot_let_first_starts_before_restarts() -> None:
    cluster = Cluster(("a", "", 2), policy=Backwards())
    cluster.ask(2, priority=Priority.LOW)
    cluster.ask(2, app_id=BEN, priority=Priority.HIGH, is_restart=True)

    assert [each.app_id for each in cluster.allocate(0)] == [BEN]


# -- quotas ------------------------------------------------------------------------------------


def test_a_user_gets_no_more_than_the_quota_and_reads_why() -> None:
    """Its own requests wait in their order, so that a small one does not starve a big one."""
    cluster = Cluster(("a", "", 99), quotas={"ann": 5})
    cluster.ask(1, is_for_app_master=True)
    cluster.ask(6, executors=2)
    cluster.ask(1, app_id=AppId(3))
    cluster.ask(20, app_id=BEN)

    assert cluster.got() == [(0, 1), (0, 3), (0, 20)]
    assert cluster.why_waiting(ANN) == (
        "needs 3 more slots, 2 are left of the 5 that ann may have (master.quotas)"
    )
    cluster.end(ANN)
    cluster.on_application_over(ANN)
    assert cluster.got() == [(0, 1)]


def test_a_restart_gets_what_it_had_whatever_the_quota_is() -> None:
    cluster = Cluster(("a", "", 99), quotas={"*": 2})
    cluster.ask(6, executors=2, is_restart=True)

    assert cluster.got() == [(0, 3), (0, 3)]


def test_slots_that_are_kept_count_for_their_user() -> None:
    """Else somebody could take them, and be above the quota when the restart comes."""
    cluster = Cluster(("a", "", 99), quotas={"ann": 4})
    cluster.on_lost(Grant(ANN, 1, WorkerId(0), 3), 0)

    cluster.ask(2, app_id=AppId(3))

    assert cluster.got() == []
    assert "1 are left of the 4" in str(cluster.why_waiting(AppId(3)))


def test_quotas_are_read_by_name() -> None:
    assert quotas_in(["ann=20", "*=5"]) == {"ann": 20, "*": 5}
    with pytest.raises(ConfigError, match="names 'ann' twice"):
        quotas_in(["ann=20", "ann=5"])


@given(seed=st.integers(0, 2**32), quota=st.integers(0, 8))
def test_first_starts_never_go_beyond_a_quota_nor_off_their_hosts(seed: int, quota: int) -> None:
    rng = Random(seed)
    workers = [(rng.choice("ab"), rng.choice(["r1", "r2"]), rng.randint(1, 6)) for _ in range(3)]
    cluster = Cluster(*workers, quotas={"ann": quota})
    asked: dict[tuple[str, ...], set[int]] = {
        (host,): {at for at, each in enumerate(workers) if each[0] == host} for host in "ab"
    } | {(): {0, 1, 2}}

    for _ in range(rng.randint(1, 25)):
        app_id = AppId(rng.randint(1, 3))
        if rng.random() < 0.3:
            cluster.end(app_id)
            cluster.on_application_over(app_id)
        else:
            hosts = rng.choice(list(asked))
            cluster.ask(
                rng.randint(1, 5),
                executors=rng.randint(0, 3),
                app_id=app_id,
                hosts=hosts,
                named=hosts,
                relaxation=rng.choice([Relaxation.ANY, Relaxation.ONE_WORKER]),
                priority=rng.choice(list(Priority)),
            )
        for grant in cluster.allocate(0):
            assert grant.worker_id in asked[grant.named]
        taken = cluster.ledger.taken()
        assert taken[AppId(1)] + taken[AppId(3)] <= quota
        for number, its in cluster.workers().items():
            assert its.used <= workers[number][2]


@given(
    free=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    slots=st.integers(1, 8),
    executors=st.integers(1, 4),
)
def test_one_worker_waits_only_while_none_has_room(
    free: list[int], slots: int, executors: int
) -> None:
    cluster = Cluster(*((f"m{at}", "", each) for at, each in enumerate(free)))
    cluster.ask(slots, executors=executors, relaxation=Relaxation.ONE_WORKER)

    grants = cluster.got()

    assert sum(each for _, each in grants) == (slots if max(free) >= slots else 0)
    assert len({worker for worker, _ in grants}) <= 1


def test_the_slots_of_app_masters_are_not_taken_for_tasks() -> None:
    ledger = SlotLedger(grant_timeout_ms=1000)
    running = [
        RunningExecutor(app_id=ANN, executor_id=ExecutorId(at), launch=1, app_master=1, slots=2)
        for at in (-1, 0)
    ]
    ledger.on_worker(WorkerId(0), total=9, running=running)

    assert ledger.taken() == {ANN: 2}
    assert ledger.workers_of(ANN) == [0]
