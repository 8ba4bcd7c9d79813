"""The queries of Nexmark. Each takes the streams of an auction site, and returns one of answers."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from columns import remainder, tables_of
from events import Auction, Bid, Event, Nexmark, Person, is_auction, is_bid, is_offer, is_person
from winning_bids import Sale, WinningBids

import gearpy as gp

__all__ = ["QUERIES", "Answer", "Form", "Streams", "answers_of"]

#: States and category of the local items, and which auctions are selected.
LOCAL_STATES: Final = frozenset({"CA", "ID", "OR"})
LOCAL_CATEGORY: Final = 10
SELECTED_EVERY: Final = 123

WINDOW: Final = "10s"
SLIDE: Final = "2s"
SESSION_GAP: Final = "10s"
DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
#: What is called so at each hour of the day.
PARTS_OF_DAY: Final = (*["night"] * 7, "other", *["day"] * 11, "other", *["night"] * 4)
#: Prices below one, from the other one on, and between them are counted apart.
CHEAP: Final = 10_000
DEAR: Final = 100_000
#: Bids are converted if they are between these, and by this rate.
LEAST: Final = 10_000
MOST: Final = 500_000
RATE: Final = 0.908
PLACES: Final = 1000

T = TypeVar("T")

Form: TypeAlias = Literal["rows", "columns"]


class Streams:
    """The events of Nexmark as streams of an application; only those that are asked for are read.

    Args:
        app: reads them.
        nexmark: which events.
        form: "rows": one source of all events; "columns": a source for each kind of them.
    """

    def __init__(self, app: gp.StreamApp, nexmark: Nexmark, form: Form = "rows") -> None:
        self._app = app
        self.nexmark = nexmark
        self.form = form

    @cached_property
    def events(self) -> gp.Stream[Event]:
        """All of them, in rows."""
        return self._app.read(self.nexmark.source(), name="events")

    @cached_property
    def people(self) -> gp.Stream[Person]:
        """Those who join."""
        if self.form == "columns":
            return self._app.read(tables_of(Person, self.nexmark), name="people")
        return self.events.filter(is_person)

    @cached_property
    def auctions(self) -> gp.Stream[Auction]:
        """What is opened."""
        if self.form == "columns":
            return self._app.read(tables_of(Auction, self.nexmark), name="auctions")
        return self.events.filter(is_auction)

    @cached_property
    def bids(self) -> gp.Stream[Bid]:
        """Offers."""
        if self.form == "columns":
            return self._app.read(tables_of(Bid, self.nexmark), name="bids")
        return self.events.filter(is_bid)

    @cached_property
    def offers(self) -> gp.Stream[Auction | Bid]:
        """Auctions, and bids in them; in rows."""
        return self.events.filter(is_offer)


def answers_of(
    query: str, app: gp.StreamApp, nexmark: Nexmark, form: Form | None = None
) -> gp.Stream[Any]:
    """Ask a query; its events come in the form that suits it, if no other is given."""
    return QUERIES[query](
        Streams(app, nexmark, form or ("columns" if query in COLUMNS else "rows"))
    )


def chosen(
    stream: gp.Stream[T], schema: type[T], is_in: Callable[[pa.RecordBatch], pa.Array]
) -> gp.Stream[T]:
    """Return the rows of columns for which a function says so."""
    return stream.map_batches(
        lambda batch: batch.filter(is_in(batch)), schema=schema, times="event_time"
    )


# -- each event by itself --------------------------------------------------------------------------


def q0(streams: Streams) -> gp.Stream[Bid]:
    """Pass-through: every bid, as it is. Shows what reading and writing take."""
    return streams.bids


def q1(streams: Streams) -> gp.Stream[Bid]:
    """Currency conversion: every bid, in euro cents instead of dollar cents."""
    if streams.form == "rows":
        return streams.bids.map(
            lambda bid: Bid(
                bid.auction, bid.bidder, bid.price * 89 // 100, bid.channel, bid.time_ms, bid.url
            )
        )

    def in_euros(bids: pa.RecordBatch) -> pa.RecordBatch:
        euros = pc.divide(pc.multiply(bids.column("price"), 89), 100)
        return bids.set_column(bids.schema.get_field_index("price"), "price", euros)

    return streams.bids.map_batches(in_euros, schema=Bid)


@gp.register_record
class Selected(NamedTuple):
    """A bid in one of the auctions that are selected."""

    auction: int
    price: int


def q2(streams: Streams) -> gp.Stream[Selected]:
    """Selection: auction and price of the bids in some auctions."""
    if streams.form == "rows":
        some = streams.bids.filter(lambda bid: bid.auction % SELECTED_EVERY == 0)
        return some.map(lambda bid: Selected(bid.auction, bid.price))

    def select(bids: pa.RecordBatch) -> pa.RecordBatch:
        place = remainder(bids.column("auction"), SELECTED_EVERY)
        return bids.filter(pc.equal(place, 0)).select(["auction", "price", "event_time"])

    return streams.bids.map_batches(select, schema=Selected, times="event_time")


@gp.register_record
class Converted(NamedTuple):
    """A bid in another currency: at which time of the day, and how often its address has a c."""

    auction: int
    bidder: int
    price: float
    part_of_day: str
    time_ms: int
    letters: int


def q14(streams: Streams) -> gp.Stream[Converted]:
    """Calculation: bids of some size, in a currency, with the part of the day."""
    if streams.form == "rows":

        def convert(bid: Bid) -> Converted:
            part = PARTS_OF_DAY[bid.time_ms % DAY_MS // HOUR_MS]
            about = (part, bid.time_ms, bid.url.count("c"))
            return Converted(bid.auction, bid.bidder, bid.price * RATE, *about)

        return streams.bids.filter(lambda bid: LEAST < bid.price * RATE < MOST).map(convert)

    def convert_all(bids: pa.RecordBatch) -> pa.RecordBatch:
        price = pc.multiply(bids.column("price"), RATE)
        bids = bids.set_column(bids.schema.get_field_index("price"), "price", price)
        bids = bids.filter(pc.and_(pc.greater(price, LEAST), pc.less(price, MOST)))
        hours = pc.divide(bids.column("time_ms"), HOUR_MS)
        part = pa.array(PARTS_OF_DAY).take(remainder(hours, DAY_MS // HOUR_MS))
        letters = pc.count_substring(bids.column("url"), "c").cast(pa.int64())
        bids = bids.append_column("part_of_day", part).append_column("letters", letters)
        return bids.drop_columns(["channel", "url"])

    return streams.bids.map_batches(convert_all, schema=Converted, times="event_time")


@gp.register_record
class OfChannel(NamedTuple):
    """A bid with the number of its channel."""

    auction: int
    bidder: int
    price: int
    channel: str
    number: str


CHANNEL_NUMBERS: Final = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}


def q21(streams: Streams) -> gp.Stream[OfChannel]:
    """Channel numbers: known for some channels, else in the address."""
    if streams.form == "rows":

        def with_number(bid: Bid) -> OfChannel:
            number = CHANNEL_NUMBERS.get(bid.channel.lower())
            if number is None:
                number = bid.url.partition("channel_id=")[2].partition("&")[0]
            return OfChannel(bid.auction, bid.bidder, bid.price, bid.channel, number)

        return streams.bids.map(with_number)
    names, numbers = (pa.array(list(each)) for each in (CHANNEL_NUMBERS, CHANNEL_NUMBERS.values()))

    def with_numbers(bids: pa.RecordBatch) -> pa.RecordBatch:
        known = numbers.take(pc.index_in(pc.utf8_lower(bids.column("channel")), names))
        said = pc.extract_regex(bids.column("url"), "channel_id=(?P<number>[^&]*)")
        number = pc.coalesce(known, pc.struct_field(said, "number"))
        return bids.drop_columns(["time_ms", "url"]).append_column("number", number)

    return streams.bids.map_batches(with_numbers, schema=OfChannel)


@gp.register_record
class Split(NamedTuple):
    """A bid with the parts of its address."""

    auction: int
    bidder: int
    price: int
    channel: str
    folder: str
    item: str
    page: str


def q22(streams: Streams) -> gp.Stream[Split]:
    """Parts of addresses: what is between the slashes."""
    if streams.form == "rows":

        def split(bid: Bid) -> Split:
            _, _, _, folder, item, page = bid.url.split("/")
            return Split(bid.auction, bid.bidder, bid.price, bid.channel, folder, item, page)

        return streams.bids.map(split)

    def split_all(bids: pa.RecordBatch) -> pa.RecordBatch:
        parts = pc.split_pattern(bids.column("url"), "/")
        bids = bids.drop_columns(["time_ms", "url"])
        for place, name in enumerate(("folder", "item", "page"), 3):
            bids = bids.append_column(name, pc.list_element(parts, place))
        return bids

    return streams.bids.map_batches(split_all, schema=Split)


# -- joins -----------------------------------------------------------------------------------------


def of_local_category(streams: Streams) -> gp.Stream[Auction]:
    """Return the auctions of one category."""
    if streams.form == "rows":
        return streams.auctions.filter(lambda auction: auction.category == LOCAL_CATEGORY)
    return chosen(
        streams.auctions, Auction, lambda batch: pc.equal(batch["category"], LOCAL_CATEGORY)
    )


def q3(streams: Streams) -> gp.Stream[dict[str, Any]]:
    """Local item suggestion: who offers things of one category, in some states.

    A person is remembered for as long as people open auctions after they have joined.
    """
    nexmark = streams.nexmark
    if streams.form == "rows":
        people = streams.people.filter(lambda person: person.state in LOCAL_STATES)
    else:
        states = pa.array(sorted(LOCAL_STATES))
        people = chosen(streams.people, Person, lambda batch: pc.is_in(batch["state"], states))
    auctions = of_local_category(streams)
    pairs = auctions.key_by("seller").join_interval(
        people.key_by("id"),
        before=f"{nexmark.active_ms + nexmark.out_of_order_ms}ms",
        after=f"{nexmark.out_of_order_ms}ms",
    )
    of_person = [gp.col(f"right.{name}") for name in ("name", "city", "state")]
    return pairs.select(*of_person, auction=gp.col("left.id"))


def q8(streams: Streams) -> gp.Stream[dict[str, Any]]:
    """Monitor new users: who has joined, and opened an auction in the same ten seconds."""
    by_seller = streams.auctions.key_by("seller")
    pairs = streams.people.key_by("id").join(by_seller, gp.tumbling(WINDOW))
    return pairs.select(person="key", name=gp.col("left.name"), auction=gp.col("right.id"))


def q13(streams: Streams) -> gp.Stream[Any]:
    """Side input: bids with the row of a table that is loaded first."""
    side = gp.rows([{"place": place, "value": f"value {place}"} for place in range(PLACES)])
    if streams.form == "rows":
        return streams.bids.join_table(
            side,
            (lambda bid: bid.auction % PLACES, "place"),
            combine=lambda bid, row: (
                bid.auction,
                bid.bidder,
                bid.price,
                bid.time_ms,
                row["value"],
            ),
        )

    def with_place(bids: pa.RecordBatch) -> pa.RecordBatch:
        place = remainder(bids.column("auction"), PLACES)
        return bids.drop_columns(["channel", "url"]).append_column("place", place)

    return streams.bids.map_batches(with_place).join_table(side, "place", combine="merge")


OF_BID = ("auction", "bidder", "price", "channel", "time_ms")
OF_AUCTION = ("item", "seller", "category")


def q20(streams: Streams) -> gp.Stream[dict[str, Any]]:
    """Expand bids: those in auctions of one category, with the auction.

    An auction is remembered for as long as there may be bids in it.
    """
    nexmark = streams.nexmark
    pairs = streams.bids.key_by("auction").join_interval(
        of_local_category(streams).key_by("id"),
        before=f"{nexmark.longest_ms + 2 * nexmark.out_of_order_ms}ms",
        after=f"{nexmark.out_of_order_ms}ms",
    )
    of_bid = [gp.col(f"left.{name}") for name in OF_BID]
    of_auction = [gp.col(f"right.{name}") for name in OF_AUCTION]
    return pairs.select(*of_bid, *of_auction)


# -- auctions that end -----------------------------------------------------------------------------


def q9(streams: Streams) -> gp.Stream[Sale]:
    """Winning bids: what each auction was sold for, and to whom, when it expires.

    In columns with the end of the second in which it expires.
    """
    if streams.form == "columns":
        return winners(streams)

    def auction_of(event: Auction | Bid) -> int:
        return event.id if isinstance(event, Auction) else event.auction

    known_ms = streams.nexmark.longest_ms
    return streams.offers.key_by(auction_of).process(lambda task: WinningBids(task, known_ms))


def winners(streams: Streams) -> gp.Stream[Sale]:
    """Return the best bid of each auction: with the event time of its end all meet in a window."""
    nexmark = streams.nexmark
    pairs = streams.bids.key_by("auction").join_interval(
        streams.auctions.key_by("id"), before=f"{nexmark.longest_ms}ms"
    )
    bid_ms, ends_ms = gp.col("left.time_ms"), gp.col("right.expires_ms")
    price, bidder = gp.col("left.price"), gp.col("left.bidder")
    valid = pairs.filter((bid_ms < ends_ms) & (price >= gp.col("right.reserve")))
    # The highest price counts, then the earliest bid, then the person with the lowest number.
    by_time = price * (nexmark.longest_ms + 1) + (ends_ms - bid_ms)
    of_auction = [gp.col(f"right.{name}") for name in ("id", "category", "seller", "expires_ms")]
    offers = valid.select(
        *of_auction, price=price, bidder=bidder, rank=by_time * nexmark.people - bidder
    )

    def at_the_end(offers: pa.RecordBatch) -> pa.RecordBatch:
        place = offers.schema.get_field_index("event_time")
        return offers.set_column(place, "event_time", offers["expires_ms"])

    def sales(best: pa.RecordBatch) -> pa.RecordBatch:
        names = ("key_1", "key_2", "key_3", "bidder", "price", "key_4")
        return best.select(names).rename_columns(Sale._fields)

    columns = dict.fromkeys(
        ("id", "category", "seller", "expires_ms", "price", "bidder", "rank"), int
    )
    closing = offers.map_batches(at_the_end, times="event_time", schema=columns)
    by_auction = closing.key_by("id", "category", "seller", "expires_ms").window(gp.tumbling("1s"))
    best = by_auction.aggregate(
        bidder=gp.agg.arg_max("bidder", by="rank"), price=gp.agg.max("price")
    )
    return best.map_batches(sales, schema=Sale)


@gp.register_record
class CategoryPrice(NamedTuple):
    """What things of a category are sold for on average."""

    category: int
    average: float


def q4(streams: Streams) -> gp.Stream[CategoryPrice]:
    """Average price per category: of the auctions sold so far, anew with each of them."""
    averages = q9(streams).key_by("category").mean("price")
    return averages.map(lambda pair: CategoryPrice(*pair))


@gp.register_record
class SellerPrice(NamedTuple):
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
class HotItem(NamedTuple):
    """The auction with most bids in a window; of several the first one."""

    auction: int
    bids: int
    start: int
    end: int


def q5(streams: Streams) -> gp.Stream[HotItem]:
    """Hot items: the auction with most bids in the last ten seconds, every two seconds."""
    counts = streams.bids.key_by("auction").window(gp.sliding(WINDOW, SLIDE)).count()
    # The counts of one window have the same time, its last millisecond, so they meet in these.
    hottest = counts.window(gp.tumbling(SLIDE)).top_n(1, lambda of: (of.value, -of.key))
    items = hottest.map(lambda result: result.value[0])
    return items.map(lambda of: HotItem(of.key, of.value, of.start, of.end))


def q7(streams: Streams) -> gp.Stream[gp.WindowResult[None, int]]:
    """Highest bid: the highest price of each ten seconds."""
    return streams.bids.window(gp.tumbling(WINDOW)).max("price")


def q11(streams: Streams) -> gp.Stream[gp.WindowResult[int, int]]:
    """User sessions: how often each person bids before pausing for ten seconds."""
    return streams.bids.key_by("bidder").window(gp.session(SESSION_GAP)).count()


def q12(streams: Streams) -> gp.Stream[gp.WindowResult[int, int]]:
    """Processing time windows: how often each person bids in ten seconds on the wall."""
    by_bidder = streams.bids.key_by("bidder")
    return by_bidder.window(gp.tumbling(WINDOW, clock="processing")).count()


# -- reports of a day ------------------------------------------------------------------------------


#: Which bids are of a rank: functions of a row, or names of columns that `ranked` adds.
RANKS: Final[Mapping[str, Callable[[Bid], bool]]] = {
    "low": lambda bid: bid.price < CHEAP,
    "middle": lambda bid: CHEAP <= bid.price < DEAR,
    "high": lambda bid: bid.price >= DEAR,
}


def counts(form: Form) -> dict[str, gp.Aggregate]:
    """Return the aggregates that count bids: all of them, and those of each rank."""
    ranks = {rank: rank if form == "columns" else RANKS[rank] for rank in RANKS}
    return {"bids": gp.agg.count()} | {rank: gp.agg.count_if(of) for rank, of in ranks.items()}


def different(form: Form) -> dict[str, gp.Aggregate]:
    """Return the aggregates that count different bidders and auctions, in all and of each rank."""
    return {
        f"{rank} {field}".strip(): gp.agg.distinct(
            field, where=None if not rank else rank if form == "columns" else RANKS[rank]
        )
        for field in ("bidder", "auction")
        for rank in ("", *RANKS)
    }


PRICES: Final = {
    "least": gp.agg.min("price"),
    "most": gp.agg.max("price"),
    "mean": gp.agg.mean("price"),
    "total": gp.agg.sum("price"),
}


def ranked(streams: Streams) -> gp.Stream[Any]:
    """Return bids in columns, with columns that say of which day and rank they are."""
    price = gp.col("price")
    return streams.bids.with_columns(
        day=gp.col("time_ms") // DAY_MS,
        low=price < CHEAP,
        middle=(price >= CHEAP) & (price < DEAR),
        high=price >= DEAR,
    )


def q15(streams: Streams) -> gp.Stream[Any]:
    """Bidding statistics: bids, bidders and auctions of each day, by rank of the price.

    In rows anew with each bid; in columns, here and in the next ones, with each batch.
    """
    report = counts(streams.form) | different(streams.form)
    if streams.form == "columns":
        return ranked(streams).key_by("day").per_batch().aggregate(**report)
    return streams.bids.key_by(lambda bid: bid.time_ms // DAY_MS).aggregate(**report)


def q16(streams: Streams) -> gp.Stream[Any]:
    """Channel statistics: the same for each channel, and when its last bid was."""
    report = counts(streams.form) | different(streams.form) | {"last": gp.agg.max("time_ms")}
    if streams.form == "columns":
        return ranked(streams).key_by("channel", "day").per_batch().aggregate(**report)
    by_channel = streams.bids.key_by(lambda bid: (bid.channel, bid.time_ms // DAY_MS))
    return by_channel.aggregate(**report)


def q17(streams: Streams) -> gp.Stream[Any]:
    """Auction statistics: how many bids each auction has on a day, and their prices."""
    report = counts(streams.form) | PRICES
    if streams.form == "columns":
        return ranked(streams).key_by("auction", "day").per_batch().aggregate(**report)
    by_auction = streams.bids.key_by(lambda bid: (bid.auction, bid.time_ms // DAY_MS))
    return by_auction.aggregate(**report)


# -- the newest and the greatest -------------------------------------------------------------------


def q18(streams: Streams) -> gp.Stream[Any]:
    """Last bid: when each person has bid in an auction last; in columns at the end."""
    by_both = streams.bids.key_by("bidder", "auction")
    if streams.form == "columns":
        return by_both.window(gp.global_window()).aggregate(last=gp.agg.last("time_ms"))
    return by_both.reduce(lambda _, bid: bid)


def q19(streams: Streams) -> gp.Stream[Any]:
    """Top ten: the ten highest bids of each auction, when they change; in columns at the end."""
    by_auction = streams.bids.key_by("auction")
    if streams.form == "columns":
        return by_auction.window(gp.global_window()).aggregate(top=gp.agg.top(10, "price"))
    return by_auction.top_n(10, "price", when="changed")


Answer = Callable[[Streams], gp.Stream[Any]]
QUERIES: Final[Mapping[str, Answer]] = {
    query.__name__: query
    for query in (
        *(q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q11, q12),
        *(q13, q14, q15, q16, q17, q18, q19, q20, q21, q22),
    )
}
#: Queries whose events come in columns, unless it is said.
COLUMNS: Final = QUERIES.keys() - {"q15", "q16", "q17", "q18", "q19"}
