"""Scopes of tokens, and callers."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from gearpy.messages.client import Asker


class TokenScope(IntEnum):
    """A scope of a token; each allows what those below it do."""

    READ = 1
    SUBMIT = 2
    ADMIN = 3

    @property
    def text(self) -> str:
        """The name of the scope, as users write it."""
        return self.name.lower()

    @property
    def names(self) -> list[str]:
        """This scope and all that are part of it, by name."""
        return [each.text for each in TokenScope if each <= self]


#: What users write.
TOKEN_SCOPES: Final = {each.text: each for each in TokenScope}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Somebody who asks: a name, the scope, and the address of the client.

    The name is that of the token, or of the user who runs the services where no token is needed.
    It is the user of what the caller submits, as ``gear app list`` shows it.
    """

    name: str
    scope: TokenScope
    address: str


def asker_of(caller: Caller) -> Asker:
    """Return a caller as the master knows it, which has the rule who may change what."""
    is_admin = caller.scope >= TokenScope.ADMIN
    return Asker(user=caller.name, is_admin=is_admin, address=caller.address)
