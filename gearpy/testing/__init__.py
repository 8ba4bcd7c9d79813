"""Helps to test programs that run on gearpy.

- `driver`: `TaskDriver`, one task fed by hand; `FlowDriver`, an application fed by hand.
- `manual_source`: `ManualSource`, through which a `FlowDriver` feeds an application.
- `simulation`: `Simulation`, a whole application in one thread and virtual time, with messages
  that take a random time; a seed gives the same run again. `epochs` ends its epochs, and
  `EpochFaults` sets their faults.
- `world`: `World`, the virtual time and the chance of a `TaskDriver`, a `Simulation`, and the
  simulated clusters of gearpy's own tests.
- `source_contract`: `check_source`, which reads a source of your own in every way that gearpy does.
- `sink_contract`: `check_sink`, which writes to a sink of your own in every way that gearpy does.
- `contract`: the rules for both. `watched`: a source that is watched while it is read.
- `writer_world`: one task that writes, with its crashes and zombies.
- `chaos`: `Chaos`, a whole program under crashes, compared with itself undisturbed: `gear chaos`.
- `transactions`: `MemoryTransactions`, a transactional sink whose content outlives every crash.

Start with `driver`. Nothing here starts a thread, and only the contracts may wait, for a source or
sink that has not finished yet. Imported by tests, and `chaos` by its command.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gearpy.testing.driver import FlowDriver, TaskDriver
    from gearpy.testing.epochs import EpochFaults
    from gearpy.testing.manual_source import ManualSource
    from gearpy.testing.simulation import Simulation
    from gearpy.testing.sink_contract import check_sink
    from gearpy.testing.source_contract import check_source
    from gearpy.testing.transactions import MemoryTransactions

__all__ = [
    "EpochFaults",
    "FlowDriver",
    "ManualSource",
    "MemoryTransactions",
    "Simulation",
    "TaskDriver",
    "check_sink",
    "check_source",
]

_HOME_OF = {
    "EpochFaults": "gearpy.testing.epochs",
    "FlowDriver": "gearpy.testing.driver",
    "ManualSource": "gearpy.testing.manual_source",
    "MemoryTransactions": "gearpy.testing.transactions",
    "Simulation": "gearpy.testing.simulation",
    "TaskDriver": "gearpy.testing.driver",
    "check_sink": "gearpy.testing.sink_contract",
    "check_source": "gearpy.testing.source_contract",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'gearpy.testing' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
