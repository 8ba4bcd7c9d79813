"""How many records a source reads at a time, see `gearpy.core.flow.read_size`."""

from collections.abc import Callable
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.flow.read_size import ReadSize

#: The ms that the work for so many records takes.
Cost: TypeAlias = Callable[[int], float]

MOST = 1024


class Reading:
    """Reads records that cost something, and remembers the sizes and times."""

    def __init__(self, *, most: int = MOST) -> None:
        self.sizes = ReadSize(most)
        self.reads: list[tuple[int, float]] = []  #: Records and ms.
        self._worked_ms = 0.0

    def work(self, cost: Cost, *, for_ms: int, reads_max: int = 2000) -> "Reading":
        """Work for so long at least; return itself."""
        self.reads, until_ms = [], self._worked_ms + for_ms
        while self._worked_ms < until_ms and len(self.reads) < reads_max:
            records = self.sizes.size
            took_ms = cost(records)
            self._worked_ms += took_ms
            self.reads.append((records, took_ms))
            self.sizes.on_read(records, int(self._worked_ms))
        return self

    @property
    def rate(self) -> float:
        return sum(n for n, _ in self.reads) / sum(ms for _, ms in self.reads)

    @property
    def longest_ms(self) -> float:
        return max(ms for _, ms in self.reads)


@given(st.floats(0.001, 200))
def test_a_read_is_soon_done_whatever_a_record_costs(cost_ms: float) -> None:
    reading = Reading().work(lambda records: cost_ms * records, for_ms=100_000)

    assert reading.longest_ms <= max(550, 2 * cost_ms, cost_ms * 4)


@given(st.integers(200, 5000))
def test_a_record_of_seconds_is_read_with_one_other_at_most(cost_ms: int) -> None:
    reading = Reading().work(lambda records: cost_ms * records, for_ms=40 * cost_ms)

    assert max(records for records, _ in reading.reads) <= 2


def test_what_is_quick_is_read_in_whole_batches() -> None:
    """After ten reads; a step that loads something with its first record is no slow one."""
    quick = Reading().work(lambda records: records * 0.0001, for_ms=100, reads_max=12)
    late = Reading()
    late.work(lambda _: 3000, for_ms=1).work(lambda _: 0.05, for_ms=100, reads_max=200)

    assert [records for records, _ in quick.reads] == [*(1 << at for at in range(11)), MOST]
    assert late.sizes.size == MOST


@given(st.integers(300, 3000), st.floats(0, 0.1))
def test_what_costs_the_same_for_each_batch_gets_large_ones(batch_ms: int, cost_ms: float) -> None:
    """Smaller ones would only be more of them. It takes some trials to find out."""

    def cost(records: int) -> float:
        return batch_ms + cost_ms * records

    reading = Reading().work(cost, for_ms=40 * batch_ms)

    reading.work(cost, for_ms=100 * batch_ms)

    assert reading.rate >= 0.6 * MOST / cost(MOST)


@given(st.integers(10, 1000), st.integers(1, 50))
def test_of_two_costs_the_one_for_a_batch_is_a_lesser_part(batch_ms: int, cost_ms: int) -> None:
    def cost(records: int) -> int:
        return batch_ms + cost_ms * records

    reading = Reading().work(cost, for_ms=100 * (batch_ms + cost_ms))

    reading.work(cost, for_ms=50_000)

    assert reading.rate >= 0.45 * MOST / cost(MOST)


def test_what_has_become_slow_is_read_in_small_batches_and_again_in_large_ones() -> None:
    reading = Reading().work(lambda _: 1, for_ms=100)

    reading.work(lambda records: 5 * records, for_ms=20_000)
    slow = reading.reads[-1][0]
    reading.work(lambda _: 1, for_ms=300)

    assert slow <= 150
    assert reading.sizes.size == MOST


def test_a_size_that_was_worth_it_is_given_up_when_it_is_no_longer() -> None:
    reading = Reading().work(lambda _: 1000, for_ms=60_000)
    large = reading.sizes.size

    reading.work(lambda records: 5 * records, for_ms=300_000)

    assert large == MOST
    assert reading.reads[-1][0] <= 100


@pytest.mark.parametrize("records", [0, 1])
def test_reads_that_are_not_full_change_nothing(records: int) -> None:
    """A thin stream says nothing of what a batch would cost."""
    sizes = ReadSize(MOST)
    for _ in range(4):
        sizes.on_read(sizes.size, 0)
    before = sizes.size

    for at in range(20):
        sizes.on_read(records, at)

    assert (before, sizes.size) == (16, 16)


def test_a_share_of_the_size_is_a_full_read() -> None:
    sizes = ReadSize(MOST, share=2)
    for _ in range(20):
        sizes.on_read(max(1, sizes.size // 2), 0)

    assert sizes.size == MOST


def test_small_batches_are_joined_for_a_share_of_the_work_before() -> None:
    """Up to all that is read at a time, if that is little; the first record waits for that."""
    quick, slow = ReadSize(MOST, share=16), ReadSize(MOST, share=16)
    for _ in range(11):
        quick.on_read(quick.size, 0)
    for worked_ms in (200, 400):
        slow.on_read(slow.size, worked_ms)

    assert (quick.size, quick.enough, quick.read_on_ms) == (MOST, MOST // 16, 1)
    assert (slow.size, slow.enough, slow.read_on_ms) == (1, 1, 25)
    slow.on_read(1, 60_000)
    assert slow.read_on_ms == 31, "however long it had to wait for room"
