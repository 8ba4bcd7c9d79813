"""Messages between processes, which carry the other control messages between actors.

One process that speaks is a *node*: ``host:port#incarnation``, its listener and a number that no
later process at the same address has. ``host:port`` alone means whichever process is there.
"""

from typing import TypeAlias

from gearpy.ids import ActorPath
from gearpy.late_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """The first message on a connection: names its sender and its receiver.

    ``receiver`` is a node as the sender knows it. ``session`` numbers the conversations of this
    sender with this receiver: in a new one, which has a higher number, letters are numbered from 1
    again. ``resumes``: the session was welcomed before, so a receiver that does not know it must
    refuse: it cannot tell which letters it has.
    """

    sender: str
    receiver: str
    session: int
    resumes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """Answer to `Greeting`: the node that listens, and the last letter of the session there."""

    node: str
    taken: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """Answer to `Greeting`: this process does not listen to the sender, or not any more.

    ``given_up``: it counts the sender as lost, for ever; a sender that hears that should end.
    """

    node: str
    reason: str
    given_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A control message, encoded, for an actor of the receiver.

    ``ask`` is not 0 when an answer is awaited at actor ``reply_to``; in an answer, ``answers`` is
    the ``ask`` of the question.
    """

    number: int
    to: str
    body: bytes
    reply_to: ActorPath | None = None
    ask: int = 0
    answers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LettersTaken:
    """The receiver has handed on all letters up to this number."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """Are you there?"""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pong:
    """Yes."""

    number: int


#: All that one node says to another.
PeerMessage: TypeAlias = Greeting | Welcome | Fenced | Letter | LettersTaken | Ping | Pong
