"""Bids of Nexmark in columns: the same ones as in `events`, a batch of them at a time.

Where `events` has a number this has a column of numbers; otherwise the two say the same.
"""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from events import (
    ACTIVE_AUCTIONS,
    ACTIVE_PEOPLE,
    AUCTIONS,
    BIDS,
    CHANNELS,
    FIRST_ID,
    GROUP,
    HOT_BIDDER,
    HOT_FOR,
    PRICES,
    START_MS,
    Bid,
    Nexmark,
    constants_of,
)

import gearpy as gp

__all__ = ["read_bids"]


def read_bids(app: gp.StreamApp, nexmark: Nexmark) -> gp.Stream[Bid]:
    """Return the stream of all bids, in columns."""
    source = gp.generate_tables(
        partial(_tables, nexmark),
        schema=Bid,
        time="time_ms",
        rate=None if nexmark.rate is None else nexmark.rate * BIDS / GROUP,
        partitions=nexmark.partitions,
        out_of_order=nexmark.out_of_order_ms,
    )
    return app.read(source, name="bids")


def _tables(nexmark: Nexmark, partition: int) -> Iterator[pa.RecordBatch]:
    """Yield the bids of a partition: those of every n-th group of n partitions."""
    groups = range(partition, -(-nexmark.events // GROUP), nexmark.partitions)
    size = max(1, nexmark.table_events // GROUP)
    for start in range(0, len(groups), size):
        yield _bids(nexmark, groups[start : start + size])


def _bids(nexmark: Nexmark, groups: Sequence[int]) -> pa.RecordBatch:
    """Return the bids of some groups."""
    row, place = _rows(len(groups))
    group = pa.array(groups, pa.int64()).take(row)
    number = pc.add(pc.multiply(group, GROUP), place)
    if nexmark.events % GROUP:  # The last group may be a part of one.
        is_there = pc.less(number, nexmark.events)
        group, number = group.filter(is_there), number.filter(is_there)
    dice = _Dice(nexmark.seed, number)
    in_order = pc.add(pc.divide(pc.multiply(number, 1000), nexmark.per_second), START_MS)
    late = dice.roll(nexmark.out_of_order_ms + 1)
    columns = {
        "auction": _auction(group, dice),
        "bidder": _bidder(group, dice),
        "price": pc.multiply(pc.add(dice.roll(900), 100), _one_of(PRICES, dice)),
        "channel": _one_of(CHANNELS, dice),
        "time_ms": pc.subtract(in_order, late),
    }
    return pa.RecordBatch.from_pydict(columns)


def _auction(group: pa.Array, dice: "_Dice") -> pa.Array:
    last = pc.add(pc.multiply(group, AUCTIONS), AUCTIONS - 1)
    is_hot = pc.greater(dice.roll(2), 0)
    others = pc.min_element_wise(pc.add(last, 1), ACTIVE_AUCTIONS)
    hot = pc.subtract(last, _rest(last, HOT_FOR))
    return pc.add(pc.if_else(is_hot, hot, pc.subtract(last, dice.roll(others))), FIRST_ID)


def _bidder(group: pa.Array, dice: "_Dice") -> pa.Array:
    is_hot = pc.greater(dice.roll(4), 0)
    others = pc.min_element_wise(pc.add(group, 1), ACTIVE_PEOPLE)
    hot = pc.min_element_wise(group, pc.add(pc.subtract(group, _rest(group, HOT_FOR)), HOT_BIDDER))
    return pc.add(pc.if_else(is_hot, hot, pc.subtract(group, dice.roll(others))), FIRST_ID)


class _Dice:
    """Random numbers of many events; see `events.Dice`."""

    def __init__(self, seed: int, numbers: pa.Array) -> None:
        first, second, spread = (pa.scalar(value, pa.uint64()) for value in constants_of(seed))
        half = pa.scalar(32, pa.uint64())
        mixed = pc.add(pc.multiply(numbers.cast(pa.uint64()), first), spread)  # Both wrap round.
        mixed = pc.multiply(pc.bit_wise_xor(mixed, pc.shift_right(mixed, half)), second)
        self._left = pc.bit_wise_xor(mixed, pc.shift_right(mixed, half))

    def roll(self, sides: Any) -> pa.Array:
        """Return a number from 0 on and below ``sides``, itself a number or a column, for each."""
        if isinstance(sides, int):
            sides = pa.scalar(sides, pa.uint64())
        left, sides = self._left, sides.cast(pa.uint64())
        self._left = pc.divide(left, sides)
        return pc.subtract(left, pc.multiply(self._left, sides)).cast(pa.int64())


def _one_of(values: tuple[object, ...], dice: _Dice) -> pa.Array:
    return pa.array(values).take(dice.roll(len(values)))


def _rest(numbers: pa.Array, by: int) -> pa.Array:
    return pc.subtract(numbers, pc.multiply(pc.divide(numbers, by), by))


@cache
def _rows(groups: int) -> tuple[pa.Array, pa.Array]:
    """Return, for each bid of so many groups, which of them it is in, and its place in that."""
    row = pa.array([row for row in range(groups) for _ in range(BIDS)])
    place = pa.array(list(range(GROUP - BIDS, GROUP)) * groups)
    return row, place
