"""Limits connections: how long one may be idle or not read from, and how many there are."""

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar, Self

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

from gearpy.services.security.limits import RequestLimits

if TYPE_CHECKING:

    class _Protocol(asyncio.Protocol):
        """What both of uvicorn's protocols have."""

        loop: asyncio.AbstractEventLoop
        transport: asyncio.Transport

else:
    _Protocol = object


class _Limited(_Protocol):
    """Ends a connection whose client does not read what waits for it; that is bounded."""

    limits: ClassVar[RequestLimits]
    _unread: asyncio.TimerHandle | None = None

    @classmethod
    def with_limits(cls, limits: RequestLimits) -> type[Self]:
        return type(cls.__name__, (cls,), {"limits": limits})

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._watch_no_more()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(self.limits.send_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def _watch_no_more(self) -> None:
        if self._unread is not None:
            self._unread.cancel()


class LimitedProtocol(_Limited, H11Protocol):
    """uvicorn's protocol with limits that it does not have itself.

    A connection that does not complete the head of a request in time ends, however many single
    bytes come. One above the number of connections is closed at once.
    """

    _waits_since_s = 0.0
    _look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections_max:
            transport.abort()
            return
        self._waits_since_s = self.loop.time()
        self._look = self.loop.call_later(self.limits.idle_s, self._end_if_idle)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._watch_no_more()
        super().handle_websocket_upgrade(event)

    def _watch_no_more(self) -> None:
        super()._watch_no_more()
        if self._look is not None:
            self._look.cancel()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._waits_since_s = self.loop.time()

    def _end_if_idle(self) -> None:
        if self.transport.is_closing():
            return
        cycle: Any = self.cycle
        idle_s, is_busy = self.limits.idle_s, cycle is not None and not cycle.response_complete
        left_s = self._waits_since_s + idle_s - self.loop.time()
        if is_busy or left_s > 0:
            self._look = self.loop.call_later(idle_s if is_busy else left_s, self._end_if_idle)
        else:
            self.transport.close()


class LimitedSocket(_Limited, WSProtocol):
    """uvicorn's WebSocket, which ends when its client does not read what waits for it."""
