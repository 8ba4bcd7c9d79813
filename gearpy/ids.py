"""Identifiers and the two ends of event time.

The lowest layer: imports nothing of gearpy. Everything here is a number or a tuple of
plain values, so that any of it can be written into a control message.
"""

from typing import Final, NamedTuple, NewType

AppId = NewType("AppId", int)
ExecutorId = NewType("ExecutorId", int)
ProcessorId = NewType("ProcessorId", int)
SessionId = NewType("SessionId", int)
#: The first session of all: no link is older.
FIRST_SESSION: Final = SessionId(0)
WorkerId = NewType("WorkerId", int)

#: Executor id of the process that hosts an AppMaster. Gearpump: `APPMASTER_DEFAULT_EXECUTOR_ID`.
MASTER_EXECUTOR: Final = ExecutorId(-1)

#: Event time before everything: nothing is known yet. Milliseconds, int64.
MIN_MS: Final = -(2**63)
#: Event time after everything: the stream has ended. Milliseconds, int64.
MAX_MS: Final = 2**63 - 1

_INDEX_BITS: Final = 32
_INDEX_MASK: Final = (1 << _INDEX_BITS) - 1


class TaskId(NamedTuple):
    """One of the parallel instances of a processor.

    Both numbers fit 32 bits, so that a task id is 64 bits on the wire.
    Gearpump: `TaskId`.
    """

    processor: int
    task_index: int

    def packed(self) -> int:
        """Return the 64-bit form, ``processor << 32 | task_index``."""
        return self.processor << _INDEX_BITS | self.task_index

    @classmethod
    def unpack(cls, packed: int) -> "TaskId":
        """Return the task id of a 64-bit form made by `packed`."""
        return cls(packed >> _INDEX_BITS, packed & _INDEX_MASK)

    def __str__(self) -> str:
        return f"{self.processor}.{self.task_index}"


class ActorPath(NamedTuple):
    """The place of an actor, in a form that can cross a process boundary.

    ``node`` is ``""`` for the process at hand, else a text made by `node_text`, or without its
    incarnation: whichever process is there.
    ``name`` is unique in its actor system and stays the same over restarts.
    """

    node: str
    name: str

    def __str__(self) -> str:
        return f"{self.node}/{self.name}"


def node_text(address: str, incarnation: str) -> str:
    """Return ``host:port#incarnation``, which names one process for ever."""
    assert "#" not in address, f"{address!r} has an incarnation already"
    return f"{address}#{incarnation}"


def address_of(node: str) -> str:
    """Return ``host:port`` of a node text, with or without incarnation."""
    return node.partition("#")[0]


def incarnation_of(node: str) -> str:
    """Return the incarnation of a node text; empty for the process that is there, whichever."""
    return node.partition("#")[2]


def is_same_node(node: str, other: str) -> bool:
    """Tell whether two node texts can mean one process.

    Incarnations decide when both have one, as a host may have several names.
    """
    one, two = incarnation_of(node), incarnation_of(other)
    return one == two if one and two else address_of(node) == address_of(other)
