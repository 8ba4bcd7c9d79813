"""The choice of a worker for an executor, and the order of requests: policies of a scheduler."""

from typing import NamedTuple, Protocol

from gearpy.core.master.requests import ResourceRequest
from gearpy.core.master.slots import WorkerPlace
from gearpy.ids import WorkerId


class Offer(NamedTuple):
    """A worker that has room for an executor of a request.

    Args:
        room: slots there that the application may get.
        used: slots there that others have.
        on_host: executors that the request has got on the same machine already.
    """

    worker_id: WorkerId
    place: WorkerPlace
    room: int
    used: int
    on_host: int
    on_worker: int


class PlacingPolicy(Protocol):
    """Orders the choices of a scheduler. Gearpump: a class for ``scheduling.scheduler-class``.

    It cannot break what a scheduler promises: restarts come first, no slot is given twice, what is
    kept for others stays theirs, and the hosts that a request names are the only ones. Both
    methods depend on their arguments alone.
    """

    def order(self, request: ResourceRequest) -> tuple[int, ...]: ...

    def rank(self, request: ResourceRequest, offer: Offer) -> tuple[int, ...]: ...


class SpreadPolicy:
    """Spreads the executors of a request over machines, then over their workers, emptiest first.

    Gearpump: `PriorityScheduler`, which looks at the free slots of workers only.
    """

    def order(self, request: ResourceRequest) -> tuple[int, ...]:
        return -request.priority, not request.is_for_app_master

    def rank(self, request: ResourceRequest, offer: Offer) -> tuple[int, ...]:
        return offer.on_host, offer.on_worker, -offer.room


class PackPolicy(SpreadPolicy):
    """Fills the worker that is in use most, so that others stay empty and can be taken away."""

    def rank(self, request: ResourceRequest, offer: Offer) -> tuple[int, ...]:
        return -offer.used, offer.room
