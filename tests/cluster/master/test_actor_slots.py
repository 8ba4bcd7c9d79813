"""What a master has granted comes back, whoever dies before it is used."""

from msgspec.structs import replace

from gearpy.ids import AppId, WorkerId
from gearpy.messages.client import GetDemand, SlotDemand
from gearpy.messages.cluster import (
    LaunchExecutor,
    ReturnResource,
    ShutdownExecutor,
    WithdrawRequests,
)
from tests.cluster.master_build import (
    APP,
    Cluster,
    Role,
    a_request,
    a_running,
    a_status,
    an_exit,
    an_update,
    back,
    granted,
    running,
)

#: Both executors of an application that has eight of the nine slots, under its first app master.
FIRST = running(1, executor=0, slots=4, app_master=1)
SECOND = running(2, executor=1, slots=4, app_master=1)


def a_granted(**overrides: object) -> tuple[Cluster, Role, Role]:
    """Return a cluster with nine slots: one has the app master, eight it was granted."""
    cluster, worker, app_master = a_running(**overrides)
    cluster.tell(a_request(8, executors=2))
    assert granted(app_master) == [(0, 4), (0, 4)]
    assert cluster.free() == {0: 0}
    return cluster, worker, app_master


def lose(cluster: Cluster, launch: int = 1) -> None:
    cluster.tell(an_exit(launch), an_update())


def test_a_launch_under_way_when_its_app_master_died_is_ended_and_counted_once() -> None:
    cluster, worker, _ = a_granted()
    lose(cluster)
    worker.got.clear()

    cluster.tell(an_update(FIRST))

    assert cluster.free() == {0: 5}
    (stop,) = worker.all(ShutdownExecutor)
    assert (stop.executor_id, stop.launch, stop.kill) == (0, 1, True)
    cluster.tell(an_update(FIRST), an_update(), an_update())
    assert cluster.free() == {0: 9}


def test_an_app_master_that_was_cut_off_with_its_worker_is_soon_launched_again() -> None:
    """It has asked for executors anew that had not ended yet; all of them are lost then.

    The app master and one of three executors are on a worker that hears, and is not heard; what
    they say to the master comes by another way.
    """
    cluster, worker, app_master = a_running()
    other = cluster.worker(16)
    cluster.tell(replace(a_request(24, executors=3), total=24))
    assert sorted(granted(app_master)) == [(0, 8), (1, 8), (1, 8)]
    near, *far = (running(each, executor=each, slots=8, app_master=1) for each in (1, 2, 3))
    cluster.tell(an_update(running(), near), an_update(*far, worker=1))

    cluster.tell(replace(a_request(16, executors=2), total=24))
    worker.die()
    again = cluster.worker(16)
    assert sorted(granted(app_master))[-2:] == [(2, 8), (2, 8)]
    cluster.tell(an_update(worker=1))
    app_master.die()
    cluster.settle(1000)

    (launch,) = [*other.all(LaunchExecutor), *again.all(LaunchExecutor)]
    after = cluster.app_master(launch)
    cluster.tell(replace(a_request(24, executors=3, launch=launch.launch), total=24))
    assert sorted(granted(after)) in ([(1, 8), (1, 8), (2, 8)], [(1, 8), (2, 8), (2, 8)])


def test_what_begins_too_late_takes_no_grant_of_the_successor() -> None:
    """Same application, same worker, same size; but another app master."""
    cluster, worker, _ = a_granted()
    lose(cluster)
    cluster.settle(1000)
    cluster.tell(an_update(running(2)))
    cluster.app_master(worker.last(LaunchExecutor))
    cluster.tell(a_request(4, launch=2))

    cluster.tell(an_update(running(2), FIRST))

    assert cluster.free() == {0: 0}
    cluster.tell(an_update(running(2)))
    assert cluster.free() == {0: 4}


def test_slots_of_an_executor_that_ended_are_not_given_to_who_starts() -> None:
    cluster, worker, app_master = a_granted()
    cluster.tell(an_update(running(), FIRST, SECOND))
    cluster.submit("next")
    launched = len(worker.all(LaunchExecutor))

    cluster.tell(an_update(running(), SECOND))
    assert len(worker.all(LaunchExecutor)) == launched
    assert "kept for applications that have lost theirs" in cluster.summary(AppId(2)).progress.stall
    app_master.got.clear()
    cluster.tell(a_request(4))

    assert granted(app_master) == [(0, 4)]
    cluster.tell(a_status("succeeded"))
    assert worker.last(LaunchExecutor).name == "next"


def test_slots_that_an_application_gives_back_are_not_given_to_who_starts() -> None:
    cluster, worker, app_master = a_granted()
    cluster.submit("next")
    launched = len(worker.all(LaunchExecutor))

    cluster.tell(ReturnResource(app_id=APP, launch=1, worker_id=WorkerId(0), slots=4))
    assert len(worker.all(LaunchExecutor)) == launched
    cluster.tell(a_request(4))

    assert granted(app_master) == [(0, 4)] * 3


def test_what_a_worker_refuses_is_free() -> None:
    cluster, _, _ = a_granted()

    cluster.tell(an_update(running(), refused=(FIRST,)))
    assert cluster.free() == {0: 4}
    cluster.tell(an_update(running(), SECOND), an_update(running(), SECOND, refused=(FIRST,)))

    assert cluster.free() == {0: 4}


def test_what_an_app_master_returns_is_free() -> None:
    """It has got more than it needs; of a launch that is over it is not taken."""
    cluster, worker, _ = a_granted()
    returned = ReturnResource(app_id=APP, launch=1, worker_id=WorkerId(0), slots=4)

    cluster.tell(returned)
    assert cluster.free() == {0: 4}
    lose(cluster)
    cluster.tell(returned)

    assert cluster.free() == {0: 9}
    assert worker.last(ShutdownExecutor).launch == 1


def test_what_an_app_master_does_not_wait_for_any_more_is_missing_nowhere() -> None:
    cluster, _, _ = a_granted()
    cluster.tell(a_request(7))
    cluster.tell(WithdrawRequests(app_id=APP, launch=2))
    assert "needs 7 more slots" in cluster.summary().progress.stall
    assert cluster.ask(GetDemand(worker_slots=9)) == SlotDemand(slots=7)

    cluster.tell(WithdrawRequests(app_id=APP, launch=1))

    assert cluster.summary().progress.stall == ""
    assert cluster.ask(GetDemand(worker_slots=9)) == SlotDemand(slots=0)


def test_grants_that_are_never_used_come_back_in_time() -> None:
    cluster, _, app_master = a_granted(executor__start_timeout_seconds=5)

    cluster.settle(4000)
    assert cluster.free() == {0: 0}
    cluster.settle(2000)
    assert cluster.free() == {0: 8}

    assert app_master.ref.is_alive
    cluster.tell(an_update(running(), FIRST))
    assert cluster.free() == {0: 4}


def test_an_app_master_that_was_cut_off_gets_anew_what_it_missed() -> None:
    cluster, worker, app_master = a_granted()
    cluster.tell(an_update(running(), FIRST))

    cluster.register(app_master, worker.last(LaunchExecutor))
    assert cluster.free() == {0: 4}
    app_master.got.clear()
    cluster.tell(a_request(4))

    assert granted(app_master) == [(0, 4)]
    assert cluster.free() == {0: 0}


def test_a_new_master_counts_what_runs_and_what_begins() -> None:
    cluster, worker, _ = a_granted()
    cluster.tell(an_update(running(), FIRST))
    cluster.restart()

    cluster.tell(an_update(running(), FIRST))  # It comes before the worker has registered.
    assert cluster.free() == {}
    back(cluster, worker, running(), FIRST)
    assert cluster.free() == {0: 4}
    cluster.tell(an_update(running(), FIRST, SECOND))
    assert cluster.free() == {0: 0}
    cluster.tell(an_update())

    assert cluster.free() == {0: 9}
