"""Logins of browsers, each a random id in a cookie."""

import hashlib
import secrets
from typing import Final

#: So long does a login last.
LOGIN_LASTS_MS: Final = 7 * 24 * 60 * 60 * 1000
_LOGINS_MAX: Final = 10_000
_ID_BYTES: Final = 32


class Logins:
    """Knows the token that each cookie stands for, until the process ends.

    Invariant: there are never more than a fixed number; the oldest goes first.
    """

    def __init__(self) -> None:
        self._tokens: dict[str, tuple[str, int]] = {}  # By hash of the id: token, until.

    def begin(self, token: str, now_ms: int) -> str:
        """Note a login with a token, of which this is the hash; return the id for the cookie."""
        while len(self._tokens) >= _LOGINS_MAX:
            del self._tokens[next(iter(self._tokens))]
        login = secrets.token_urlsafe(_ID_BYTES)
        self._tokens[_key(login)] = (token, now_ms + LOGIN_LASTS_MS)
        return login

    def token_of(self, login: str, now_ms: int) -> str | None:
        token, until_ms = self._tokens.get(_key(login), ("", 0))
        return token if now_ms < until_ms else None

    def end(self, login: str) -> None:
        self._tokens.pop(_key(login), None)


def _key(login: str) -> str:
    return hashlib.sha256(login.encode("utf-8", "surrogateescape")).hexdigest()
