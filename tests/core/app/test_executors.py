"""The executors that an application wants, has, and waits for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.app.executors import ExecutorManager, Launch, Release, RequestSlots, Stop
from gearpy.ids import ActorPath, ExecutorId, WorkerId
from gearpy.messages.app import LinkBroken, RegisterExecutor
from gearpy.messages.cluster import Allocation

A, B, C = ExecutorId(0), ExecutorId(1), ExecutorId(2)
ALL = {A, B, C}


def a_path(worker: int = 7) -> ActorPath:
    """Return where a worker is."""
    return ActorPath(f"host:{worker}#0000000000000001", "worker")


def allocation(slots: int, worker: int = 7) -> Allocation:
    """Return slots on a worker."""
    return Allocation(worker_id=WorkerId(worker), worker=a_path(worker), slots=slots)


def registration(executor: ExecutorId, launch: int) -> RegisterExecutor:
    """Return what a process says when it is up."""
    return RegisterExecutor(
        executor_id=executor,
        launch=launch,
        executor=ActorPath("", f"executor-{executor}"),
        data_address=f"data:{executor}-{launch}",
        slots=2,
        graph_hash="",
        pid=40 + launch,
    )


def a_manager(*, slots: int = 5, asked: bool = True) -> ExecutorManager:
    """Return a manager of two executors, by default with its request made at 100."""
    manager = ExecutorManager(slots=slots, executors=2)
    if asked:
        manager.request(ALL, 100)
    return manager


def one_of_two_up() -> ExecutorManager:
    """Return a manager of A, which is up as launch 1, and B, which waits for 2 slots."""
    manager = a_manager()
    manager.on_allocated([allocation(3)], 200)
    assert manager.on_registered(registration(A, 1))
    return manager


@pytest.mark.parametrize(
    ("slots", "executors", "sizes"),
    [(5, 2, [3, 2]), (4, 2, [2, 2]), (3, 3, [1, 1, 1]), (7, 3, [3, 2, 2]), (4, 1, [4])],
)
def test_slots_are_shared_as_equally_as_can_be(
    slots: int, executors: int, sizes: list[int]
) -> None:
    """As the scheduler divides a request."""
    assert list(ExecutorManager(slots=slots, executors=executors).slots.values()) == sizes


def test_what_is_wanted_is_asked_for_once() -> None:
    """Each request takes the place of the one before, so it has all that still waits."""
    manager = a_manager(asked=False)

    assert manager.request({A}, 100) == [RequestSlots(slots=3, executors=1)]
    assert manager.request({A}, 200) == []
    assert manager.request({A, B}, 300) == [RequestSlots(slots=5, executors=2)]
    assert (manager.waiting_slots, manager.waiting_since_ms()) == (5, 100)


def test_nothing_waits_before_it_was_asked_for() -> None:
    """Time that the master was not asked does not count."""
    manager = a_manager(asked=False)

    assert (manager.waiting_slots, manager.waiting_since_ms()) == (0, None)
    assert manager.request_again(50) == []


def test_a_master_that_is_back_is_asked_for_all_that_waits() -> None:
    """And has the whole time for it."""
    manager = one_of_two_up()

    assert manager.request_again(500) == [RequestSlots(slots=2, executors=1)]
    assert manager.waiting_since_ms() == 500


def test_an_allocation_goes_to_an_executor_of_its_size() -> None:
    """However they come."""
    manager = a_manager()

    launches = manager.on_allocated([allocation(2), allocation(3)], 200)

    assert launches == [
        Launch(executor_id=B, launch=1, allocation=allocation(2)),
        Launch(executor_id=A, launch=2, allocation=allocation(3)),
    ]
    assert manager.waiting_slots == 0


def test_an_allocation_of_another_size_is_used_too() -> None:
    """Better an executor with fewer slots than none."""
    manager = a_manager()

    assert manager.on_allocated([allocation(9)], 200) == [
        Launch(executor_id=A, launch=1, allocation=allocation(9))
    ]


def test_what_nobody_waits_for_is_given_back() -> None:
    """A request that was repeated may be granted twice."""
    manager = one_of_two_up()

    assert manager.on_allocated([allocation(2), allocation(2)], 300) == [
        Launch(executor_id=B, launch=2, allocation=allocation(2)),
        Release(worker_id=WorkerId(7), slots=2),
    ]


def test_what_was_not_asked_for_is_given_back() -> None:
    """It came for an executor that is not wanted now."""
    assert a_manager(asked=False).on_allocated([allocation(3)], 0) == [
        Release(worker_id=WorkerId(7), slots=3)
    ]


def test_only_the_newest_launch_counts() -> None:
    """A zombie may register, or be reported gone; nothing follows."""
    manager = one_of_two_up()
    assert manager.on_gone(A, 1)
    manager.request(ALL, 300)
    manager.on_allocated([allocation(3)], 400)

    assert not manager.on_registered(registration(A, 1))
    assert not manager.on_gone(A, 1)
    assert manager.is_current(A, 2)
    assert not manager.is_current(A, 1)
    assert manager.stale == 2
    assert manager.on_registered(registration(A, 2))
    assert manager.running[A].launch == 2


def test_one_that_is_gone_is_gone_until_it_was_launched_again() -> None:
    """It neither runs nor can it go once more."""
    manager = one_of_two_up()
    manager.on_gone(A, 1)

    assert A not in manager.running
    assert manager.worker_of(A) is None
    assert not manager.on_gone(A, 1)
    assert manager.stop(A, kill=True, reason="") == []


def test_strangers_do_not_count() -> None:
    """An id that was never given."""
    manager = one_of_two_up()

    assert not manager.is_current(ExecutorId(9), 1)
    assert not manager.on_registered(registration(ExecutorId(9), 1))
    assert not manager.on_gone(ExecutorId(9), 1)


def test_a_lost_executor_is_asked_for_again() -> None:
    """Together with all that waits."""
    manager = one_of_two_up()
    manager.on_gone(A, 1)

    assert manager.request(ALL, 300) == [RequestSlots(slots=5, executors=2)]


def test_a_pause_is_kept() -> None:
    """An executor that dies as it starts does so again at once."""
    manager = one_of_two_up()
    manager.on_gone(A, 1)
    manager.pause(A, 700)

    assert manager.request(ALL, 699) == []
    assert manager.request(ALL, 700) == [RequestSlots(slots=5, executors=2)]


def test_those_that_do_not_register_in_time_are_late() -> None:
    """From their launch on; not those that wait for slots, nor those that are up."""
    manager = one_of_two_up()
    assert manager.late(10**6, 1000) == []

    manager.on_allocated([allocation(2)], 500)

    assert manager.late(1499, 1000) == []
    assert manager.late(1500, 1000) == [B]


def test_executors_of_a_worker() -> None:
    """Also those that are being launched there."""
    manager = a_manager()
    manager.on_allocated([allocation(3, worker=1), allocation(2, worker=2)], 0)
    manager.on_registered(registration(A, 1))

    assert manager.on_worker(a_path(1)) == [(A, 1)]
    assert manager.on_worker(a_path(2)) == [(B, 2)]
    assert manager.on_worker(a_path(3)) == []
    assert manager.worker_of(B) == a_path(2)


def test_all_that_has_a_place_is_stopped() -> None:
    """Also what has not registered yet."""
    manager = a_manager()
    manager.on_allocated([allocation(3)], 0)

    assert manager.stop_all("enough") == [
        Stop(executor_id=A, launch=1, worker=a_path(), kill=False, reason="enough")
    ]


def test_launches_of_a_relaunched_app_master_are_others() -> None:
    """Executors of the old one may still be there."""
    manager = ExecutorManager(slots=1, executors=1, first_launch=10_001)
    manager.request(ALL, 0)

    [launch] = manager.on_allocated([allocation(1)], 0)

    assert isinstance(launch, Launch)
    assert launch.launch == 10_001


def test_summaries_tell_where_executors_are() -> None:
    """Those without a place are not there."""
    manager = one_of_two_up()

    [summary] = manager.summaries({A: ["0.0", "1.0"]})

    assert (summary.executor_id, summary.launch, summary.worker_id) == (A, 1, 7)
    assert (summary.status, summary.pid, summary.slots) == ("running", 41, 3)
    assert (summary.data_address, summary.tasks) == ("data:0-1", ("0.0", "1.0"))
    manager.on_allocated([allocation(2)], 300)
    assert manager.summaries({})[1].status == "launching"


events = st.lists(
    st.tuples(
        st.sampled_from(["request", "again", "grant", "register", "gone", "pause"]),
        st.sampled_from([A, B, C]),
        st.integers(1, 4),
    ),
    max_size=60,
)


def test_the_ends_of_a_link_are_those_that_are_up() -> None:
    """The one that complains, and the one at the address; each only if it is there."""
    manager = one_of_two_up()
    manager.on_allocated([allocation(2)], 200)

    def ends(executor: ExecutorId, address: str) -> tuple[tuple[ExecutorId, int], ...]:
        message = LinkBroken(executor_id=executor, address=address, reason="eof")
        return manager.ends_of(message)

    assert ends(A, "data:1-2") == ((A, 1),)
    manager.on_registered(registration(B, 2))
    assert ends(A, "data:1-2") == ends(B, "data:0-1") == ((A, 1), (B, 2))
    assert ends(A, "data:1-9") == ((A, 1),)
    assert ends(C, "elsewhere") == ()


@given(events)
def test_slots_are_used_or_given_back(events: list[tuple[str, ExecutorId, int]]) -> None:
    """The invariant: every grant is one launch or one release, and one launch counts at a time."""
    manager, launches = ExecutorManager(slots=5, executors=3), list[Launch]()
    current: dict[ExecutorId, int] = {}
    for now_ms, (kind, executor, number) in enumerate(events):
        launch = current.get(executor, number)
        if kind == "request":
            manager.request({executor}, now_ms)
        elif kind == "again":
            manager.request_again(now_ms)
        elif kind == "grant":
            [command] = manager.on_allocated([allocation(number)], now_ms)
            if isinstance(command, Launch):
                assert command.executor_id not in current
                assert not launches or command.launch > launches[-1].launch
                current[command.executor_id] = command.launch
                launches.append(command)
            else:
                assert command == Release(worker_id=WorkerId(7), slots=number)
        elif kind == "register":
            assert manager.on_registered(registration(executor, launch)) == (executor in current)
        elif kind == "gone":
            assert manager.on_gone(executor, launch) == (executor in current)
            current.pop(executor, None)
        else:
            manager.pause(executor, now_ms + number)
        assert set(manager.running) <= set(current)
        assert {executor for executor, _ in manager.on_worker(a_path())} == set(current)
