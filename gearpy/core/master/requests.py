"""Requests for slots: how many, for whom, and the places that they may be at."""

from enum import Enum, IntEnum

from msgspec import Struct

from gearpy.core.master.slots import equal_parts
from gearpy.errors import ConfigError
from gearpy.ids import AppId, WorkerId


class Priority(IntEnum):
    """The order in which requests are served. Gearpump: `Priority`."""

    LOW = 0
    NORMAL = 1
    HIGH = 2


class Relaxation(Enum):
    """The places that slots may be at. Gearpump: `Relaxation`."""

    ANY = "any"  #: Any workers do, spread fairly.
    ONE_WORKER = "one-worker"  #: All on one worker, whichever.
    SPECIFIC_WORKER = "specific-worker"  #: All on the worker that the request names.


class ResourceRequest(Struct, frozen=True, kw_only=True):
    """``slots`` for ``executors`` executors of an application. Gearpump: `ResourceRequest`.

    A request is divided into one part for each executor, of its ``sizes`` or as equal as can be,
    which may be granted one by one; with ``ONE_WORKER`` only all together. With 0 executors and
    ``ANY`` it is divided as there is room, and granted as a whole.

    Only workers with one of the names in ``hosts`` will do, see `WorkerPlace`; ``named`` are those
    that the app master has named itself. Workers ``near`` come first, and the one to ``avoid``
    last.
    """

    app_id: AppId
    launch: int
    slots: int
    executors: int = 1
    sizes: tuple[int, ...] = ()
    is_restart: bool = False
    is_for_app_master: bool = False
    priority: Priority = Priority.NORMAL
    relaxation: Relaxation = Relaxation.ANY
    worker_id: WorkerId | None = None
    avoid: WorkerId | None = None
    hosts: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    near: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        mistakes = []
        if self.slots < 1:
            mistakes.append(f"a request for {self.slots} slots: ask for 1 or more")
        if self.executors < 0:
            mistakes.append(
                f"a request for {self.executors} executors: ask for 0, as there is room, or more"
            )
        if self.sizes and (sum(self.sizes), len(self.sizes)) != (self.slots, self.executors):
            mistakes.append(
                f"a request for {self.slots} slots and {self.executors} executors of sizes "
                f"{list(self.sizes)}: name a size for each executor, all slots together"
            )
        if (self.relaxation is Relaxation.SPECIFIC_WORKER) != (self.worker_id is not None):
            mistakes.append(
                f"a request with relaxation {self.relaxation.value} and worker {self.worker_id}: "
                "name a worker for specific-worker, and only then"
            )
        if mistakes:
            raise ConfigError(*mistakes)

    @property
    def is_divisible(self) -> bool:
        return self.executors == 0 and self.relaxation is Relaxation.ANY

    def parts(self) -> list[int]:
        if self.executors == 0 or self.relaxation is Relaxation.SPECIFIC_WORKER:
            return [self.slots]
        return sorted(self.sizes, reverse=True) or equal_parts(self.slots, self.executors)
