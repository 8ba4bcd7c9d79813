"""Who of three masters in tasks of Spark begins, and at whose place."""

from itertools import count
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from gearpy.spark.guest.seats import BeginAll, EndTask, MasterSeats, Replace, SeatDecision, Seated
from tests.eventually import eventually

_NUMBERS: Final = range(1, 4)


def _come(*attempts: str, executors: str = "abc") -> dict[int, Seated]:
    return {
        number: Seated(f"{attempt}:1", attempt, executor, number)
        for number, attempt, executor in zip(_NUMBERS, attempts, executors, strict=True)
    }


def _begun(*attempts: str) -> tuple[MasterSeats, dict[int, Seated]]:
    seats, come = MasterSeats(_NUMBERS), _come(*attempts)
    seats.on_begun(come)
    return seats, come


def test_all_begin_when_the_last_has_come() -> None:
    seats, come = MasterSeats(_NUMBERS), _come("x", "y", "z")

    assert seats.on_look({1: come[1], 3: come[3]}) == []
    assert seats.on_look(come) == [BeginAll(come)]
    assert seats.on_look(come) == [BeginAll(come)], "until it is done"
    seats.on_begun(come)
    assert seats.on_look(come) == []
    assert seats.addresses == ("x:1", "y:1", "z:1")


def test_one_that_comes_again_takes_the_place_of_the_one_that_was_lost() -> None:
    seats, come = _begun("x", "y", "z")
    come[2] = _come("-", "new", "-")[2]
    replace = Replace(2, come[2], ("x:1", "new:1", "z:1"))

    assert seats.on_look(come) == [replace]
    seats.on_told(come[2])
    assert seats.on_look(come) == [replace]
    seats.on_replaced(2, come[2])
    assert seats.on_look(come) == []


def test_a_second_loss_meanwhile_ends_all() -> None:
    """Two of three have promised nothing under their new addresses; the third one alone is none."""
    seats, come = _begun("x", "y", "z")
    come |= {2: _come("-", "new", "-")[2]}
    seats.on_look(come)
    seats.on_told(come[2])
    come |= {3: _come("-", "-", "other")[3]}

    assert seats.on_look(come) == [
        EndTask(1, "x", is_waiting=False),
        EndTask(2, "new", is_waiting=False),
    ]
    assert seats.on_look(come) == [], "each is ended once"
    come |= {1: _come("x2", "-", "-")[1], 2: _come("-", "y2", "-")[2]}
    assert seats.on_look(come) == [BeginAll(come)]


def test_two_on_one_executor_are_parted_while_that_can_help() -> None:
    """Else its loss would be that of a majority. Where there is one executor only, it gives up."""
    seats, ended = MasterSeats(_NUMBERS), 0
    for turn in range(20):
        come = _come("x", "y", f"z{turn}", executors="aba")
        if seats.on_look(come) == [BeginAll(come)]:
            break
        ended += 1
    assert 0 < ended < 20

    alone = MasterSeats(_NUMBERS, is_spread=False)
    come = _come("x", "y", "z", executors="aaa")
    assert alone.on_look(come) == [BeginAll(come)]


def test_executors_that_are_not_known_are_not_the_same() -> None:
    come = {number: Seated(f"h:{number}", f"t{number}") for number in _NUMBERS}

    assert MasterSeats(_NUMBERS).on_look(come) == [BeginAll(come)]


def test_a_master_leaves_an_executor_that_spark_takes_away() -> None:
    """Once; and nobody takes its place before it has come elsewhere."""
    seats, come = _begun("x", "y", "z")

    assert seats.on_look(come, {2}) == [EndTask(2, "y", is_waiting=False)]
    assert seats.on_look(come, {2}) == []
    come[2] = _come("-", "y2", "-")[2]
    assert seats.on_look(come) == [Replace(2, come[2], ("x:1", "y2:1", "z:1"))]


class _Spark:
    """Tasks that come, and a driver that may fail to do what was decided."""

    def __init__(self, seats: MasterSeats, data: st.DataObject) -> None:
        self._seats, self._data = seats, data
        self._names = count()
        self.come = dict[int, Seated]()

    def start(self, number: int) -> None:
        name, executor = f"{next(self._names)}", self._data.draw(st.sampled_from("abc"))
        self.come[number] = Seated(f"{name}:1", name, executor)

    def look(self, *, is_done: bool) -> bool:
        decisions = self._seats.on_look(self.come)
        for each in decisions:
            self._do(each, is_done=is_done)
        return bool(decisions)

    def _do(self, decision: SeatDecision, *, is_done: bool) -> None:
        match decision:
            case EndTask():
                self.start(decision.number)
            case Replace():
                self._seats.on_told(decision.by)
                if is_done:
                    self._seats.on_replaced(decision.number, decision.by)
            case BeginAll() if is_done:
                self._seats.on_begun(decision.seats)
            case BeginAll():
                pass


@given(st.lists(st.sampled_from([1, 2, 3, 0]), max_size=30), st.data())
def test_all_sit_again_after_any_losses(losses: list[int], data: st.DataObject) -> None:
    seats = MasterSeats(_NUMBERS)
    spark = _Spark(seats, data)
    for number in _NUMBERS:
        spark.start(number)
    for lost in losses:
        if lost:
            spark.start(lost)
        spark.look(is_done=data.draw(st.booleans()))
    eventually(lambda: not spark.look(is_done=True), "nothing is left to do")

    assert set(seats.addresses) == {each.address for each in spark.come.values()}
