"""Left is what a checkpoint holds, right is what comes after it, and no record waits."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.gearpump.monoid_state import MonoidState, NonWindowState, PersistentState
from gearpy.core.gearpump.monoids import SumGroup


class Json:
    def to_bytes(self, value: Any) -> bytes:
        return json.dumps(value).encode()

    def from_bytes(self, data: bytes) -> Any:
        return json.loads(data)


class Record(NamedTuple):
    epoch: int
    value: int


RECORDS = st.builds(Record, st.integers(1, 6), st.integers(-9, 9))
#: Records, and ends of epochs in between as None.
STEPS = st.lists(RECORDS | st.none(), max_size=30)


def a_state() -> NonWindowState[int]:
    return NonWindowState(SumGroup(), Json())


def update(state: PersistentState[int], *records: Record) -> None:
    for record in records:
        state.enter(record.epoch)
        state.update(0, record.value)


def total(records: Iterable[Record], until: int) -> int:
    return sum(record.value for record in records if record.epoch <= until)


def test_records_of_the_epoch_that_ends_next_go_left_and_later_ones_right() -> None:
    state = MonoidState(SumGroup())
    state.set_next_checkpoint(3)

    for epoch, value in [(4, 10), (3, 1), (4, 20), (2, 2)]:
        state.enter(epoch)
        state.update(value)

    assert (state.left, state.right) == (3, 30)


def test_right_becomes_part_of_left_epoch_by_epoch() -> None:
    """An input may be two epochs ahead; the next checkpoint must not hold what is of the second."""
    state = MonoidState(SumGroup())
    for epoch in (1, 2, 3):
        state.enter(epoch)
        state.update(10**epoch)

    seen = []
    for epoch in (1, 2, 3):
        state.set_next_checkpoint(epoch)
        seen.append((state.left, state.right))

    assert seen == [(10, 1100), (110, 1000), (1110, 0)]


def test_epochs_do_not_go_back() -> None:
    state = MonoidState(SumGroup())
    state.set_next_checkpoint(2)

    with pytest.raises(AssertionError, match="epoch 1 after 2"):
        state.set_next_checkpoint(1)


def test_event_times_make_no_difference() -> None:
    state = a_state()
    state.on_watermark(1000)

    assert state.update(-5, 7)
    assert state.value == 7


@given(STEPS)
def test_checkpoint_is_exactly_the_records_of_its_epochs(steps: list[Record | None]) -> None:
    """The invariant: in any order, several epochs ahead, none twice, none missing."""
    state, epoch = a_state(), 1
    taken: list[Record] = []

    for step in steps:
        if step is None:
            assert json.loads(state.checkpoint()) == total(taken, epoch)
            epoch += 1
        else:
            record = step._replace(epoch=max(step.epoch, epoch))
            update(state, record)
            taken.append(record)
            assert state.value == total(taken, record.epoch)
        assert state.left == total(taken, epoch)
        assert state.left + state.right == total(taken, 10**6)


@given(st.lists(RECORDS, max_size=20), st.integers(1, 6), st.randoms(use_true_random=False))
def test_going_on_from_a_checkpoint_leads_to_the_same(
    records: list[Record], epoch: int, order: Any
) -> None:
    """The invariant of `PersistentState`: what is replayed comes in another order, perhaps."""
    state = a_state()
    state.set_next_checkpoint(epoch)
    update(state, *records)
    data = state.checkpoint()
    replayed = [record for record in records if record.epoch > epoch]
    order.shuffle(replayed)

    restarted = a_state()
    restarted.recover(data)
    restarted.set_next_checkpoint(epoch + 1)
    update(restarted, *replayed)

    assert (restarted.left, restarted.right) == (state.left, state.right)
    assert restarted.checkpoint() == state.checkpoint()
