"""Messages between processes, which carry the other control messages between actors.

One process that speaks is a *node*: ``host:port#incarnation``, its listener and a number that no
later process at the same address has. ``host:port`` alone means whichever process is there.
"""

from typing import TypeAlias

from msgspec import Struct

from gearpy.ids import ActorPath


class Greeting(Struct, frozen=True, kw_only=True):
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


class Welcome(Struct, frozen=True, kw_only=True):
    """Answer to `Greeting`: the node that listens, and the last letter of the session there."""

    node: str
    taken: int


class Fenced(Struct, frozen=True, kw_only=True):
    """Answer to `Greeting`: this process does not listen to the sender, or not any more.

    ``given_up``: it counts the sender as lost, for ever; a sender that hears that should end.
    """

    node: str
    reason: str
    given_up: bool = False


class Letter(Struct, frozen=True, kw_only=True):
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


class LettersTaken(Struct, frozen=True, kw_only=True):
    """The receiver has handed on all letters up to this number."""

    number: int


class Ping(Struct, frozen=True, kw_only=True):
    """Are you there?"""

    number: int


class Pong(Struct, frozen=True, kw_only=True):
    """Yes."""

    number: int


#: All that one node says to another.
PeerMessage: TypeAlias = Greeting | Welcome | Fenced | Letter | LettersTaken | Ping | Pong
