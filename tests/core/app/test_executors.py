"""The executors that an application wants, has, and waits for."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.app.executors import ExecutorManager, Launch, Release
from gearpy.ids import ActorPath, ExecutorId, WorkerId
from gearpy.messages.app import RegisterExecutor
from gearpy.messages.cluster import Allocation

A, B, C = ExecutorId(0), ExecutorId(1), ExecutorId(2)
ALL = {A, B, C}


def a_path(worker: int = 7) -> ActorPath:
    return ActorPath(f"host:{worker}#0000000000000001", "worker")


def allocation(slots: int, worker: int = 7) -> Allocation:
    return Allocation(worker_id=WorkerId(worker), worker=a_path(worker), slots=slots)


def registration(executor: ExecutorId, launch: int) -> RegisterExecutor:
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


def test_an_allocation_goes_to_an_executor_of_its_size() -> None:
    manager = a_manager()

    launches = manager.on_allocated([allocation(2), allocation(3)], 200)

    assert launches == [
        Launch(executor_id=B, launch=1, allocation=allocation(2)),
        Launch(executor_id=A, launch=2, allocation=allocation(3)),
    ]
    assert manager.waiting_slots == 0


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
    assert manager.on_registered(registration(A, 2))
    assert manager.running[A].launch == 2


def test_those_that_do_not_register_in_time_are_late() -> None:
    manager = one_of_two_up()
    assert manager.late(10**6, 1000) == []

    manager.on_allocated([allocation(2)], 500)

    assert manager.late(1499, 1000) == []
    assert manager.late(1500, 1000) == [B]


def test_summaries_tell_where_executors_are() -> None:
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
