"""Who wins an auction: a task that keeps what is open, and says when it is over."""

from collections.abc import Iterator
from typing import NamedTuple

from events import Auction, Bid

import gearpy as gp

__all__ = ["Sale", "WinningBids"]


@gp.register_record
class Sale(NamedTuple):
    """What became of an auction that somebody has won."""

    auction: int
    category: int
    seller: int
    bidder: int
    price: int
    closed_ms: int


class WinningBids(gp.Task):
    """Takes auctions and bids by auction; gives a `Sale` when one expires.

    The highest bid wins that was made while the auction was open, and is not below the reserve; of
    equal ones the first. A bid may come before its auction, by as much as events are out of order:
    it waits until its auction must have come. An auction is known for longer than it is open, so
    that a bid that comes too late does not wait for it.

    Args:
        known_ms: there are no bids in an auction any more so long after it was opened.
    """

    def __init__(self, context: gp.TaskContext, known_ms: int) -> None:
        super().__init__(context)
        self.known_ms = known_ms

    def on_start(self, start_time_ms: int) -> None:
        """Declare what is kept for each auction."""
        self.state = self.context.state
        self.auction = self.state.value("auction")
        self.best = self.state.value("best")
        self.waiting = self.state.list("waiting")

    def on_next(self, message: gp.Message) -> None:
        """Take an auction, or a bid in one."""
        event = message.value
        if isinstance(event, Auction):
            self.auction.set(event)
            self.state.timers.event_time(event.expires_ms)  # Moves the one of a bid that waits.
            for bid in self.waiting:
                self.consider(bid, event)
            self.waiting.clear()
        elif (auction := self.auction.get()) is not None:
            self.consider(event, auction)
        else:
            self.waiting.append(event)
            self.state.timers.event_time(event.time_ms + 1)

    def consider(self, bid: Bid, auction: Auction) -> None:
        """Keep a bid if it is the best one by now."""
        if not auction.time_ms <= bid.time_ms < auction.expires_ms or bid.price < auction.reserve:
            return
        best = self.best.get()
        if best is None or (-bid.price, bid.time_ms, bid.bidder) < (
            -best.price,
            best.time_ms,
            best.bidder,
        ):
            self.best.set(bid)

    def on_key_timer(self, timer: gp.KeyTimer) -> Iterator[gp.Message]:
        """Close an auction, or give up bids whose auction has closed before."""
        auction, best = self.auction.get(), self.best.get()
        if auction is not None and best is not None:
            sale = Sale(
                auction=auction.id,
                category=auction.category,
                seller=auction.seller,
                bidder=best.bidder,
                price=best.price,
                closed_ms=auction.expires_ms,
            )
            yield gp.Message(sale, timer.at_ms)
        if auction is not None and timer.at_ms < (end_ms := auction.time_ms + self.known_ms):
            self.best.clear()
            self.state.timers.event_time(end_ms)
        else:
            self.state.clear()
