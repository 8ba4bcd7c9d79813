"""Thousands of applications, waiting or over: what an event costs depends on what it changes."""

from collections.abc import Callable, Iterator
from random import Random

import pytest

from gearpy.core.base.restart import RestartPolicy
from gearpy.core.master.app_masters import AppMasters, AppMasterTimes, LaunchTimes
from gearpy.core.master.commands import (
    AddWorker,
    ChangeStatus,
    ForgetEnded,
    LaunchAppMaster,
    Submit,
)
from gearpy.core.master.requests import ResourceRequest
from gearpy.core.master.scheduling import SlotScheduler
from gearpy.core.master.slots import SlotLedger
from gearpy.core.master.state import MasterState
from gearpy.ids import ActorPath, AppId, WorkerId
from gearpy.messages.client import Artifact, SubmitApplication
from gearpy.messages.summaries import ApplicationProgress
from tests.steps import steps_of

FEW, MANY = 50, 1000
NOW = LaunchTimes(0, 0)
NOWHERE = ("nowhere",)


def does_not_grow(costs: Callable[[int], int]) -> bool:
    """Whether work costs the same with many applications as with few, give or take a little."""
    costs(FEW)  # The first call of some methods compiles them.
    return costs(MANY) <= 1.5 * costs(FEW)


def app_master(number: int, hosts: tuple[str, ...] = NOWHERE) -> ResourceRequest:
    return ResourceRequest(
        app_id=AppId(number), launch=1, slots=1, is_for_app_master=True, hosts=hosts
    )


class Waiting:
    """A scheduler with a full worker, for whose slots so many applications wait."""

    def __init__(self, count: int, hosts: tuple[str, ...] = NOWHERE) -> None:
        self.ledger = SlotLedger(grant_timeout_ms=1000)
        self.scheduler = SlotScheduler(self.ledger)
        self.ledger.on_worker(WorkerId(0), total=0, running=())
        for number in range(count):
            self.scheduler.request(app_master(number, hosts))

    def submit(self) -> None:
        self.scheduler.request(app_master(MANY))
        self.scheduler.allocate(0)

    def come(self) -> None:
        self.ledger.on_worker(WorkerId(1), total=3, running=())
        assert len(self.scheduler.allocate(0)) == 3


@pytest.mark.parametrize(
    "event",
    [
        lambda waiting: waiting.submit(),
        lambda waiting: waiting.scheduler.allocate(0),
        lambda waiting: waiting.scheduler.cancel(AppId(FEW // 2)),
        lambda waiting: waiting.scheduler.why_waiting(AppId(FEW // 2)),
    ],
    ids=["submit", "allocate", "cancel", "why"],
)
def test_those_that_wait_cost_nothing(event: Callable[[Waiting], object]) -> None:
    def costs(count: int) -> int:
        waiting = Waiting(count)
        return steps_of(lambda: event(waiting))

    assert does_not_grow(costs)


def test_slots_cost_as_much_as_they_serve() -> None:
    """A worker comes with three slots: three are served, and nobody else is looked at."""

    def costs(count: int) -> int:
        waiting = Waiting(count, hosts=())
        return steps_of(waiting.come)

    assert does_not_grow(costs)


def state_of(count: int, *, have_ended: bool = False) -> MasterState:
    state = MasterState()
    state.apply(AddWorker())
    for number in range(1, count + 1):
        state.apply(submit(number))
        state.apply(LaunchAppMaster(app_id=AppId(number), worker_id=WorkerId(0), at_ms=0))
        if have_ended:
            state.apply(ended(number))
    return state


def submit(number: int) -> Submit:
    artifact = Artifact(kind="file", location="/a.py")
    request = SubmitApplication(name=f"a{number}", artifact=artifact, key=f"key{number}")
    return Submit(request=request, at_ms=number)


def ended(number: int) -> ChangeStatus:
    return ChangeStatus(
        app_id=AppId(number), status="terminated", at_ms=number, progress=ApplicationProgress()
    )


def changes_of(state: MasterState, count: int) -> Iterator[object]:
    """Submit one, perhaps again; end one, forget the oldest."""
    one = submit(count + 1)
    yield state.submitted_as(one.request.key)
    yield state.refusal_of(one.request)
    yield state.apply(one)
    yield state.submitted_as(one.request.key)
    yield state.apply(ended(count + 1))
    yield state.apply(ForgetEnded(keep=max(0, state.ended_count - 1)))


@pytest.mark.parametrize("have_ended", [False, True])
def test_those_that_are_known_cost_a_change_nothing(*, have_ended: bool) -> None:
    """A submission, the same again, an end: none goes through all applications."""

    def costs(count: int) -> int:
        state = state_of(count, have_ended=have_ended)
        return steps_of(lambda: list(changes_of(state, count)))

    assert does_not_grow(costs)


def test_those_that_run_cost_the_others_nothing() -> None:
    """One registers, is lost, pauses and is launched again; the next time that counts is known."""

    def costs(count: int) -> int:
        policy = RestartPolicy(max_restarts=9, backoff_ms=10, jitter=0)
        times = AppMasterTimes(start_timeout_ms=9, return_timeout_ms=100, word_timeout_ms=5)
        keeper = AppMasters(state_of(count), lambda _: policy, times, Random(0))
        keeper.on_start(NOW)
        path = ActorPath("host:1#a", "app1")

        def one() -> None:
            assert keeper.on_registered(AppId(1), 1, path)
            assert keeper.of_path(path) == 1
            assert keeper.next_due_ms == 100
            assert keeper.on_unreachable(AppId(1), "gone", NOW)
            assert keeper.next_due_ms == 5
            assert keeper.on_tick(LaunchTimes(5, 5))
            assert keeper.next_due_ms == 15

        return steps_of(one)

    assert does_not_grow(costs)


def test_a_start_costs_each_the_same() -> None:
    def costs(count: int) -> float:
        scheduler = SlotScheduler(SlotLedger(grant_timeout_ms=1000))

        def start() -> None:
            for number in range(count):
                scheduler.request(app_master(number))
            scheduler.allocate(0)

        return steps_of(start) / count

    assert costs(MANY) <= 1.5 * costs(FEW)
