"""The events of Nexmark in columns: the same ones as in `events`, a table of each kind at a time.

Bids are many, so they are made here: where `events` has a number this has a column of numbers;
otherwise the two say the same. Tables of people and auctions are made of those of `events`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

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
    SITE,
    START_MS,
    Auction,
    Bid,
    Nexmark,
    Person,
    constants_of,
)

import gearpy as gp

__all__ = ["PLACES", "remainder", "tables", "tables_of"]

#: How many of a group are of a kind, and which is the first.
PLACES: Final[Mapping[Any, tuple[int, int]]] = {
    Person: (1, 0),
    Auction: (AUCTIONS, 1),
    Bid: (BIDS, 1 + AUCTIONS),
}


def tables_of(kind: type[Any], nexmark: Nexmark) -> gp.Source:
    """Return the people, the auctions or the bids, in columns."""
    share, _ = PLACES[kind]
    return gp.generate_tables(
        partial(tables, kind, nexmark),
        schema=kind,
        time="time_ms",
        rate=None if nexmark.rate is None else nexmark.rate * share / GROUP,
        partitions=nexmark.partitions,
        out_of_order=f"{nexmark.out_of_order_ms}ms",
    )


def tables(kind: type[Any], nexmark: Nexmark, partition: int) -> Iterator[pa.RecordBatch]:
    """Yield the tables of a kind and a partition: every n-th group of n partitions."""
    make = _bids if kind is Bid else partial(_others, kind)
    groups = range(partition, -(-nexmark.events // GROUP), nexmark.partitions)
    size = max(1, nexmark.table_events // GROUP)
    for start in range(0, len(groups), size):
        if (table := make(nexmark, groups[start : start + size])).num_rows:
            yield table


def _others(kind: type[Any], nexmark: Nexmark, groups: Sequence[int]) -> pa.RecordBatch:
    """Return the people or auctions of some groups."""
    share, first = PLACES[kind]
    numbers = (group * GROUP + first + place for group in groups for place in range(share))
    events = [nexmark.event(number) for number in numbers if number < nexmark.events]
    fields = zip(kind._fields, zip(*events, strict=True), strict=True) if events else ()
    return pa.RecordBatch.from_pydict({name: list(values) for name, values in fields})


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
    auction, bidder = _auction(group, dice), _bidder(group, dice)
    digits = pc.add(dice.roll(900), 100)
    price = pc.multiply(digits, pa.array(PRICES).take(dice.roll(len(PRICES))))
    roll = dice.roll(len(CHANNELS))
    channel = pa.array(CHANNELS).take(roll)
    texts = (auction.cast(pa.string()), "/item.htm?query=1&channel_id=", roll.cast(pa.string()))
    columns = {
        "auction": auction,
        "bidder": bidder,
        "price": price,
        "channel": channel,
        "time_ms": pc.subtract(in_order, late),
        "url": pc.binary_join_element_wise(SITE, channel, "/", *texts, ""),
    }
    return pa.RecordBatch.from_pydict(columns)


def _auction(group: pa.Array, dice: "_Dice") -> pa.Array:
    last = pc.add(pc.multiply(group, AUCTIONS), AUCTIONS - 1)
    is_hot = pc.greater(dice.roll(2), 0)
    others = pc.min_element_wise(pc.add(last, 1), ACTIVE_AUCTIONS)
    hot = pc.subtract(last, remainder(last, HOT_FOR))
    return pc.add(pc.if_else(is_hot, hot, pc.subtract(last, dice.roll(others))), FIRST_ID)


def _bidder(group: pa.Array, dice: "_Dice") -> pa.Array:
    is_hot = pc.greater(dice.roll(4), 0)
    others = pc.min_element_wise(pc.add(group, 1), ACTIVE_PEOPLE)
    first = pc.subtract(group, remainder(group, HOT_FOR))
    hot = pc.min_element_wise(group, pc.add(first, HOT_BIDDER))
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


def remainder(numbers: pa.Array, by: int) -> pa.Array:
    """Return the remainders of a division of numbers from 0 on."""
    return pc.subtract(numbers, pc.multiply(pc.divide(numbers, by), by))


@cache
def _rows(groups: int) -> tuple[pa.Array, pa.Array]:
    """Return, for each bid of so many groups, which of them it is in, and its place in that."""
    row = pa.array([row for row in range(groups) for _ in range(BIDS)])
    place = pa.array(list(range(GROUP - BIDS, GROUP)) * groups)
    return row, place
