"""Limits clients: how often one may ask, and how much it may send."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

_CLIENTS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """Limits for each client address, unless said otherwise; rates are requests per second.

    Attributes:
        asks_per_s, asks_burst: of all requests.
        changes_per_s, changes_burst: of unsafe ones among them.
        logins_per_s, logins_burst: of tokens that are tried.
        body_max_bytes: of a body that is no upload.
        upload_max_bytes: of one that is.
        stall_s: a request ends when nothing of its body comes for so long.
        body_bytes_per_s: what must come on average, after a grace of ``stall_s``.
        send_s: a connection ends when its client does not read for so long what waits for it.
        idle_s: a connection without a request ends after so long.
        connections_max: of all clients; further ones are closed at once.
        viewers_max: event streams of all clients.
    """

    asks_per_s: float = 200.0
    asks_burst: float = 1000.0
    changes_per_s: float = 10.0
    changes_burst: float = 100.0
    logins_per_s: float = 1.0
    logins_burst: float = 10.0
    body_max_bytes: int = 1024 * 1024
    upload_max_bytes: int = 256 * 1024 * 1024
    stall_s: float = 10.0
    body_bytes_per_s: float = 1024.0
    send_s: float = 30.0
    idle_s: float = 30.0
    connections_max: int = 4000
    viewers_max: int = 500


class RequestRates:
    """A bucket of tokens for each client; of very many clients the least recent is forgotten."""

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self._left = OrderedDict[str, tuple[float, float]]()  # By client: how much, and when.

    def wait_s(self, client: str, now_s: float) -> float:
        """Count a request; return 0, or after how long it would be allowed (it is not counted)."""
        left, at_s = self._left.get(client, (self._burst, now_s))
        left = min(self._burst, left + (now_s - at_s) * self._per_s)
        waits = left < 1
        self._left[client] = (left if waits else left - 1, now_s)
        self._left.move_to_end(client)
        while len(self._left) > _CLIENTS_MAX:
            self._left.popitem(last=False)
        return (1 - left) / self._per_s if waits else 0.0
