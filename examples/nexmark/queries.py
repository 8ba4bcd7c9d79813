"""The queries of Nexmark. Each takes the streams of an auction site, and returns one of answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from columns import read_bids
from events import Auction, Bid, Event, Nexmark, Person, is_auction, is_bid, is_offer, is_person
from winning_bids import Sale, WinningBids

import gearpy as gp

__all__ = ["QUERIES", "Answer", "Streams"]

#: States and category of the local items, and which auctions are selected.
LOCAL_STATES: Final = frozenset({"CA", "ID", "OR"})
LOCAL_CATEGORY: Final = 10
SELECTED_EVERY: Final = 123

WINDOW: Final = "10s"
SLIDE: Final = "2s"
SESSION_GAP: Final = "10s"


class Streams:
    """The events of Nexmark as streams of an application; only those that are asked for are read.

    Args:
        app: reads them.
        nexmark: which events.
    """

    def __init__(self, app: gp.StreamApp, nexmark: Nexmark) -> None:
        self._app = app
        self.nexmark = nexmark

    @cached_property
    def events(self) -> gp.Stream[Event]:
        """All of them, in rows."""
        return self._app.read(self.nexmark.source(), name="events")

    @cached_property
    def people(self) -> gp.Stream[Person]:
        """Those who join."""
        return self.events.filter(is_person)

    @cached_property
    def auctions(self) -> gp.Stream[Auction]:
        """What is opened."""
        return self.events.filter(is_auction)

    @cached_property
    def bids(self) -> gp.Stream[Bid]:
        """Offers, in rows."""
        return self.events.filter(is_bid)

    @cached_property
    def offers(self) -> gp.Stream[Auction | Bid]:
        """Auctions, and bids in them."""
        return self.events.filter(is_offer)

    @cached_property
    def bid_columns(self) -> gp.Stream[Bid]:
        """The same ones, in columns."""
        return read_bids(self._app, self.nexmark)


# -- each event by itself --------------------------------------------------------------------------


def q0(streams: Streams) -> gp.Stream[Bid]:
    """Pass-through: every bid, as it is. Shows what reading and writing take."""
    return streams.bid_columns


def q1(streams: Streams) -> gp.Stream[Bid]:
    """Currency conversion: every bid, in euro cents instead of dollar cents."""

    def in_euros(bids: pa.RecordBatch) -> pa.RecordBatch:
        euros = pc.divide(pc.multiply(bids.column("price"), 89), 100)
        return bids.set_column(bids.schema.get_field_index("price"), "price", euros)

    return streams.bid_columns.map_batches(in_euros, schema=Bid)


@gp.register_record
@dataclass(frozen=True, slots=True)
class Selected:
    """A bid in one of the auctions that are selected."""

    auction: int
    price: int


def q2(streams: Streams) -> gp.Stream[Selected]:
    """Selection: auction and price of the bids in some auctions."""

    def select(bids: pa.RecordBatch) -> pa.RecordBatch:
        auction = bids.column("auction")
        whole = pc.multiply(pc.divide(auction, SELECTED_EVERY), SELECTED_EVERY)
        chosen = bids.filter(pc.equal(auction, whole))
        return chosen.select(["auction", "price", "event_time"])

    return streams.bid_columns.map_batches(select, schema=Selected, times="event_time")


# -- joins -----------------------------------------------------------------------------------------


@gp.register_record
@dataclass(frozen=True, slots=True)
class LocalItem:
    """Something that a person of these states offers."""

    name: str
    city: str
    state: str
    auction: int


def q3(streams: Streams) -> gp.Stream[LocalItem]:
    """Local item suggestion: who offers things of one category, in some states.

    A person is remembered for as long as people open auctions after they have joined.
    """
    people = streams.people.filter(lambda person: person.state in LOCAL_STATES)
    auctions = streams.auctions.filter(lambda auction: auction.category == LOCAL_CATEGORY)
    nexmark = streams.nexmark
    return auctions.key_by("seller").join_interval(
        people.key_by("id"),
        before=nexmark.active_ms + nexmark.out_of_order_ms,
        after=nexmark.out_of_order_ms,
        combine=lambda auction, person: LocalItem(
            person.name, person.city, person.state, auction.id
        ),
    )


@gp.register_record
@dataclass(frozen=True, slots=True)
class NewSeller:
    """Somebody who has joined and opened an auction in the same window."""

    person: int
    name: str
    auction: int


def q8(streams: Streams) -> gp.Stream[NewSeller]:
    """Monitor new users: who has joined, and opened an auction in the same ten seconds."""
    return streams.people.key_by("id").join(
        streams.auctions.key_by("seller"),
        gp.tumbling(WINDOW),
        combine=lambda person, auction: NewSeller(person.id, person.name, auction.id),
    )


# -- auctions that end -----------------------------------------------------------------------------


def q9(streams: Streams) -> gp.Stream[Sale]:
    """Winning bids: what each auction was sold for, and to whom, when it expires."""

    def auction_of(event: Auction | Bid) -> int:
        return event.id if isinstance(event, Auction) else event.auction

    return streams.offers.key_by(auction_of).process(WinningBids)


@gp.register_record
@dataclass(frozen=True, slots=True)
class CategoryPrice:
    """What things of a category are sold for on average."""

    category: int
    average: float


def q4(streams: Streams) -> gp.Stream[CategoryPrice]:
    """Average price per category: of the auctions sold so far, anew with each of them."""
    averages = q9(streams).key_by("category").mean("price")
    return averages.map(lambda pair: CategoryPrice(*pair))


@gp.register_record
@dataclass(frozen=True, slots=True)
class SellerPrice:
    """What a seller gets on average."""

    seller: int
    average: float


def q6(streams: Streams) -> gp.Stream[SellerPrice]:
    """Average selling price by seller: of the ten auctions that closed last, anew with each."""

    def average(latest: tuple[int, list[Sale]]) -> SellerPrice:
        seller, sales = latest
        return SellerPrice(seller, sum(sale.price for sale in sales) / len(sales))

    by_seller = q9(streams).key_by("seller")
    return by_seller.top_n(10, by=lambda sale: (sale.closed_ms, sale.auction)).map(average)


# -- windows ---------------------------------------------------------------------------------------


@gp.register_record
@dataclass(frozen=True, slots=True)
class HotItem:
    """The auction with most bids in a window; of several the first one."""

    auction: int
    bids: int
    start: int
    end: int


def q5(streams: Streams) -> gp.Stream[HotItem]:
    """Hot items: the auction with most bids in the last ten seconds, every two seconds."""
    counts = streams.bid_columns.key_by("auction").window(gp.sliding(WINDOW, SLIDE)).count()
    items = counts.map(lambda of: HotItem(of.key, of.value, of.start, of.end))
    # The counts of one window have the same time, its last millisecond, so they meet in these.
    hottest = items.window(gp.tumbling(SLIDE)).top_n(1, lambda item: (item.bids, -item.auction))
    return hottest.map(lambda result: result.value[0])


def q7(streams: Streams) -> gp.Stream[gp.WindowResult[None, int]]:
    """Highest bid: the highest price of each ten seconds."""
    return streams.bid_columns.window(gp.tumbling(WINDOW)).max("price")


def q11(streams: Streams) -> gp.Stream[gp.WindowResult[int, int]]:
    """User sessions: how often each person bids before pausing for ten seconds."""
    return streams.bids.key_by("bidder").window(gp.session(SESSION_GAP)).count()


def q12(streams: Streams) -> gp.Stream[gp.WindowResult[int, int]]:
    """Processing time windows: how often each person bids in ten seconds on the wall."""
    by_bidder = streams.bids.key_by("bidder")
    return by_bidder.window(gp.tumbling(WINDOW, clock="processing")).count()


Answer = Callable[[Streams], gp.Stream[Any]]
QUERIES: Final[Mapping[str, Answer]] = {
    query.__name__: query for query in (q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q11, q12)
}
