"""Callers, with what they may do."""

from dataclasses import dataclass

from gearpy.messages.client import Asker
from gearpy.transport.security.tokens import TokenScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A user who asks: a name, the scope, and the address of the client.

    The name is that of the token, or of the user who runs the services where no token is needed.
    It is the user of what the caller submits, as ``gear app list`` shows it.
    """

    name: str
    scope: TokenScope
    address: str


def asker_of(caller: Caller) -> Asker:
    is_admin = caller.scope >= TokenScope.ADMIN
    return Asker(user=caller.name, is_admin=is_admin, address=caller.address)
