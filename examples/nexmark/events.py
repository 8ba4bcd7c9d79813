"""The events of Nexmark: people who join an auction site, auctions that they open, bids on them.

Of 50 events one is a person, three are auctions and 46 are bids. Which event has which number, and
what is in it, follows from that number and a seed alone: so a source can give the same events
again, and several partitions share them. Half of the bids go to one hot auction, three quarters of
them come from one hot bidder, and of the auctions three quarters are by one hot seller; who is hot
changes as people and auctions come.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, NamedTuple, TypeAlias, TypeGuard, TypeVar

import gearpy as gp

__all__ = [
    "ACTIVE_AUCTIONS",
    "ACTIVE_PEOPLE",
    "AUCTIONS",
    "BIDS",
    "CHANNELS",
    "FIRST_ID",
    "GROUP",
    "HOT_BIDDER",
    "HOT_FOR",
    "PRICES",
    "SITE",
    "START_MS",
    "Auction",
    "Bid",
    "Event",
    "Nexmark",
    "Person",
    "constants_of",
    "is_auction",
    "is_bid",
    "is_offer",
    "is_person",
]

#: Events come in groups of 50: a person, then three auctions, then bids.
GROUP: Final = 50
AUCTIONS: Final = 3
BIDS: Final = GROUP - 1 - AUCTIONS

#: Event time of the first event: 2026-01-01T00:00:00Z.
START_MS: Final = 1_767_225_600_000

FIRST_ID: Final = 1000
FIRST_CATEGORY: Final = 10
#: So many of the newest people and auctions take part.
ACTIVE_PEOPLE: Final = 1000
ACTIVE_AUCTIONS: Final = 100
#: Whoever is hot stays so for so many people or auctions.
HOT_FOR: Final = 100
#: The hot seller and the hot bidder are these of a hundred people.
HOT_SELLER: Final = 0
HOT_BIDDER: Final = 1

CATEGORIES: Final = 5
ITEMS: Final = ("bike", "book", "chair", "clock", "coat", "lamp", "piano", "ring", "vase")
#: Of four the number is known (`q21`), of the others their address has it.
CHANNELS: Final = (
    *("Apple", "Baidu", "Facebook", "Google"),
    *("channel-4", "channel-5", "channel-6", "channel-7"),
)
STATES: Final = {
    "AZ": "Phoenix",
    "CA": "Los Angeles",
    "ID": "Boise",
    "OR": "Portland",
    "WA": "Seattle",
    "WY": "Cheyenne",
}
FIRST_NAMES: Final = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jo", "Kit")
LAST_NAMES: Final = ("Abel", "Brown", "Cole", "Doe", "Ellis", "Fox", "Gray", "Hill", "Jones")
SITE: Final = "https://www.nexmark.com/"
#: A price has three digits, and up to three zeros.
PRICES: Final = (1, 10, 100, 1000)

T = TypeVar("T")

_MASK: Final = (1 << 64) - 1


@gp.register_record
class Person(NamedTuple):
    """Somebody has joined."""

    id: int
    name: str
    city: str
    state: str
    time_ms: int


@gp.register_record
class Auction(NamedTuple):
    """A person offers something; bids count until it expires."""

    id: int
    item: str
    seller: int
    category: int
    reserve: int
    time_ms: int
    expires_ms: int


@gp.register_record
class Bid(NamedTuple):
    """A person offers a price, in cents, in an auction."""

    auction: int
    bidder: int
    price: int
    channel: str
    time_ms: int
    url: str


Event: TypeAlias = Person | Auction | Bid


def is_person(event: Event) -> TypeGuard[Person]:
    """Tell whether somebody has joined."""
    return isinstance(event, Person)


def is_auction(event: Event) -> TypeGuard[Auction]:
    """Tell whether an auction was opened."""
    return isinstance(event, Auction)


def is_bid(event: Event) -> TypeGuard[Bid]:
    """Tell whether somebody has bid."""
    return isinstance(event, Bid)


def is_offer(event: Event) -> TypeGuard[Auction | Bid]:
    """Tell whether it is about something on offer."""
    return not isinstance(event, Person)


class Dice:
    """Random numbers of one event: the digits of a hash of its number."""

    def __init__(self, seed: int, number: int) -> None:
        first, second, spread = constants_of(seed)
        mixed = (number * first + spread) & _MASK
        mixed = ((mixed ^ (mixed >> 32)) * second) & _MASK
        self._left = mixed ^ (mixed >> 32)

    def roll(self, sides: int) -> int:
        """Return a number from 0 on and below ``sides``."""
        self._left, rolled = divmod(self._left, sides)
        return rolled


def constants_of(seed: int) -> tuple[int, int, int]:
    """Return two large factors and a summand, of 64 bits, to hash numbers with."""
    return 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, (seed * 0xA24BAED4963EE407 + 1) & _MASK


@dataclass(frozen=True, slots=True, kw_only=True)
class Nexmark:
    """Some events of Nexmark: how many, which, and how close together.

    Attributes:
        events: how many.
        seed: others have other events.
        per_second: events in a second of event time.
        out_of_order_ms: events are late by up to so much.
        rate: events that are read in a second of wall time; None for as fast as they are taken.
        partitions: parts of them that can be read in parallel.
        table_events: in columns, the bids among so many events are made at a time.
    """

    events: int = 100_000
    seed: int = 1
    per_second: int = 100
    out_of_order_ms: int = 2000
    rate: float | None = None
    partitions: int = 1
    table_events: int = 10_000

    def source(self) -> gp.Source:
        """Return all events as a source."""
        return gp.generate(
            self.part,
            timestamp=time_of,
            limit=self.events,
            rate=self.rate,
            partitions=self.partitions,
            out_of_order=f"{self.out_of_order_ms}ms",
        )

    def part(self, partition: int) -> Iterator[Event]:
        """Yield the events of a partition without end: every n-th one of n partitions."""
        return map(self.event, count(partition, self.partitions))

    def event(self, number: int) -> Event:
        """Return the event of a number, from 0 on."""
        group, place = divmod(number, GROUP)
        dice = Dice(self.seed, number)
        time_ms = self.in_order_ms(number) - dice.roll(self.out_of_order_ms + 1)
        if place == 0:
            return _person(FIRST_ID + group, time_ms, dice)
        if place <= AUCTIONS:
            auction = FIRST_ID + group * AUCTIONS + place - 1
            return _auction(auction, group, time_ms, self.longest_ms, dice)
        return _bid(group, time_ms, dice)

    def in_order_ms(self, number: int) -> int:
        """Return the event time of an event that is not late."""
        return START_MS + number * 1000 // self.per_second

    @property
    def longest_ms(self) -> int:
        """No auction is open for longer: bids are on newer ones then."""
        return 2 * ACTIVE_AUCTIONS * GROUP * 1000 // (AUCTIONS * self.per_second)

    @property
    def people(self) -> int:
        """The numbers of all people are below this."""
        return FIRST_ID + self.events // GROUP + 1

    @property
    def active_ms(self) -> int:
        """Nobody opens an auction later than this after joining."""
        return ACTIVE_PEOPLE * GROUP * 1000 // self.per_second


def time_of(event: Event) -> int:
    """Return when an event happened."""
    return event.time_ms


def _person(number: int, time_ms: int, dice: Dice) -> Person:
    state = _one_of(list(STATES), dice)
    name = f"{_one_of(FIRST_NAMES, dice)} {_one_of(LAST_NAMES, dice)}"
    return Person(number, name, STATES[state], state, time_ms)


def _auction(number: int, group: int, time_ms: int, longest_ms: int, dice: Dice) -> Auction:
    return Auction(
        id=number,
        item=_one_of(ITEMS, dice),
        seller=_someone(group, dice, hot=HOT_SELLER),
        category=FIRST_CATEGORY + dice.roll(CATEGORIES),
        reserve=_price(dice),
        time_ms=time_ms,
        expires_ms=time_ms + 1 + dice.roll(longest_ms),
    )


def _bid(group: int, time_ms: int, dice: Dice) -> Bid:
    last = group * AUCTIONS + AUCTIONS - 1
    is_hot = dice.roll(2) > 0
    other = last - dice.roll(min(ACTIVE_AUCTIONS, last + 1))
    auction = FIRST_ID + (last - last % HOT_FOR if is_hot else other)
    bidder, price = _someone(group, dice, hot=HOT_BIDDER), _price(dice)
    channel = dice.roll(len(CHANNELS))
    url = f"{SITE}{CHANNELS[channel]}/{auction}/item.htm?query=1&channel_id={channel}"
    return Bid(auction, bidder, price, CHANNELS[channel], time_ms, url)


def _someone(group: int, dice: Dice, *, hot: int) -> int:
    """Return a person: three times of four the hot one, else one that takes part."""
    is_hot = dice.roll(4) > 0
    other = group - dice.roll(min(ACTIVE_PEOPLE, group + 1))
    return FIRST_ID + (min(group, group - group % HOT_FOR + hot) if is_hot else other)


def _price(dice: Dice) -> int:
    return (100 + dice.roll(900)) * _one_of(PRICES, dice)


def _one_of(values: Sequence[T], dice: Dice) -> T:
    return values[dice.roll(len(values))]
