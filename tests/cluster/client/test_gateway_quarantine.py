"""Records that were put aside: what clients see of them, and how they are given back."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from gearpy.errors import ConnectionLost
from gearpy.messages.client import (
    ListQuarantined,
    QuarantinedList,
    QuarantinedRecord,
    ReplayQuarantined,
)
from tests.cluster.gateway_build import (
    APP,
    APP_MASTER,
    FRAME_BYTES_MAX,
    World,
    a_record,
    app_master,
    raising,
)
from tests.eventually import DEADLINE_S


@pytest.fixture
def world() -> World:
    """Return a cluster without workers, whose app master takes every record."""
    return World()


def test_a_list_that_does_not_fit_is_cut_and_says_so(world: World) -> None:
    world.master.records = [a_record(number, text="z" * 200) for number in range(1, 5001)]

    answer = world.answer(ListQuarantined(app_id=APP))

    assert answer.total == 5000
    assert [each.number for each in answer.records] == list(range(1, len(answer.records) + 1))
    assert len(answer.records) > 100


def test_a_record_too_large_for_an_answer_comes_without_its_value(world: World) -> None:
    world.master.records = [a_record(1, value=bytes(FRAME_BYTES_MAX))]

    (record,) = world.answer(ListQuarantined(app_id=APP, numbers=(1,))).records

    assert (record.value, record.error.record) == (b"", "x")


def test_a_replay_gives_the_app_master_the_records_and_the_master_keeps_them(world: World) -> None:
    world.master.records = [a_record(number) for number in (1, 2, 5)]

    answer = world.answer(ReplayQuarantined(app_id=APP, numbers=(5, 1)))

    assert [each.number for each in answer.records] == [1, 5]
    ((path, given),) = world.post.asked
    assert path == APP_MASTER
    assert given.numbers == (1, 5)
    assert [(each.number, each.value) for each in given.records] == [(1, b"value"), (5, b"value")]
    assert [each.number for each in world.master.records] == [1, 2, 5]


def test_records_that_a_client_brings_along_are_not_given_to_anybody(world: World) -> None:
    """Else a client could give tasks records that no source has read."""
    world.master.records = [a_record(1)]
    forged = a_record(1, value=b"forged")

    world.answer(ReplayQuarantined(app_id=APP, numbers=(1,), records=(forged,)))

    assert [each.value for _, given in world.post.asked for each in given.records] == [b"value"]


def test_a_replay_that_names_none_is_of_all(world: World) -> None:
    world.master.records = [a_record(number, value=bytes(100_000)) for number in range(1, 21)]

    answer = world.answer(ReplayQuarantined(app_id=APP))

    assert [each.number for each in answer.records] == list(range(1, 21))
    assert len(world.post.asked) > 1


@pytest.mark.parametrize("taken", [(), (a_record(99),)])
def test_an_app_master_that_takes_none_leaves_all(
    taken: Sequence[QuarantinedRecord], world: World
) -> None:
    world.master.records = [a_record(1)]
    world.post.actors[APP_MASTER] = lambda _: QuarantinedList(app_id=APP, records=tuple(taken))

    assert "ask again in a moment" in world.refusal(ReplayQuarantined(app_id=APP))
    assert [each.number for each in world.master.records] == [1]


def test_an_app_master_that_goes_in_between_leaves_the_rest(world: World) -> None:
    world.master.records = [a_record(number, value=bytes(400_000)) for number in (1, 2, 3)]

    def once(asked: Any) -> object:
        world.post.actors[APP_MASTER] = raising(ConnectionLost("reset"))
        return QuarantinedList(app_id=APP, records=asked.records)

    world.post.actors[APP_MASTER] = once

    assert world.refusal(ReplayQuarantined(app_id=APP)).endswith("; given back before that: 1")
    assert [each.number for each in world.master.records] == [1, 2, 3]


def test_records_that_are_not_there_are_refused_before_any_is_given(world: World) -> None:
    """All or nothing: a list with a typing error is not half done."""
    assert "no record in quarantine" in world.refusal(ReplayQuarantined(app_id=APP))
    world.master.records = [a_record(1), a_record(2)]

    reason = world.refusal(ReplayQuarantined(app_id=APP, numbers=(1, 8, 7)))

    assert reason == "no record 7, 8 of application 3 is in quarantine; there: 1, 2"
    assert not world.post.asked
    assert "there: 1, 2" in world.refusal(ListQuarantined(app_id=APP, numbers=(7,)))


def test_a_replay_without_an_app_master_is_refused(world: World) -> None:
    """The application has ended: there is no operator to give a record to."""
    world.master.records = [a_record(1)]
    world.master.app_master = None

    assert "has no app master at present" in world.refusal(ReplayQuarantined(app_id=APP))
    assert [each.number for each in world.master.records] == [1]


def test_two_replays_at_once_do_not_give_a_record_twice(world: World) -> None:
    world.master.records = [a_record(1)]
    entered, let_go = threading.Event(), threading.Event()

    def slow(asked: Any) -> object:
        entered.set()
        assert let_go.wait(DEADLINE_S)
        return app_master(asked)

    world.post.actors[APP_MASTER] = slow
    first = threading.Thread(target=world.answer, args=(ReplayQuarantined(app_id=APP),))
    first.start()
    assert entered.wait(DEADLINE_S)

    reason = world.refusal(ReplayQuarantined(app_id=APP))
    let_go.set()
    first.join(DEADLINE_S)

    assert "for another client; ask again later" in reason
    assert len(world.post.asked) == 1


def test_a_record_kept_as_text_alone_is_not_given_back(world: World) -> None:
    """It was too large; who names it is told, and others are given all the same."""
    world.master.records = [a_record(1), a_record(2, value=b"")]

    assert (
        "2 cannot be given back" in world.answer(ReplayQuarantined(app_id=APP, numbers=(2,))).reason
    )
    answer = world.answer(ReplayQuarantined(app_id=APP))

    assert [each.number for each in answer.records] == [1]
