"""For tests of programs that run on gearpy.

- `driver`: `TaskDriver`, one task fed by hand; `FlowDriver`, an application fed by hand.
- `manual_source`: `ManualSource`, through which a `FlowDriver` feeds an application.
- `simulation`: `Simulation`, a whole application in one thread and virtual time, with messages
  that take a random time; a seed gives the same run again. `epochs` ends its epochs, and
  `EpochFaults` sets their faults.
- `world`: `World`, the virtual time and the chance of a `TaskDriver`, a `Simulation`, and the
  simulated clusters of gearpy's own tests.
- `transactions`: `MemoryTransactions`, a transactional sink whose content outlives every crash.

Start with `driver`. Nothing here waits or starts a thread. Imported by tests only.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gearpy.testing.driver import FlowDriver, TaskDriver
    from gearpy.testing.epochs import EpochFaults
    from gearpy.testing.manual_source import ManualSource
    from gearpy.testing.simulation import Simulation
    from gearpy.testing.transactions import MemoryTransactions

__all__ = [
    "EpochFaults",
    "FlowDriver",
    "ManualSource",
    "MemoryTransactions",
    "Simulation",
    "TaskDriver",
]

_HOME_OF = {
    "EpochFaults": "gearpy.testing.epochs",
    "FlowDriver": "gearpy.testing.driver",
    "ManualSource": "gearpy.testing.manual_source",
    "MemoryTransactions": "gearpy.testing.transactions",
    "Simulation": "gearpy.testing.simulation",
    "TaskDriver": "gearpy.testing.driver",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'gearpy.testing' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
