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
        self._names: dict[str, tuple[str, int]] = {}  # By hash of the id: token, until.

    def begin(self, token_name: str, now_ms: int) -> str:
        """Note a login; return the id for the cookie."""
        while len(self._names) >= _LOGINS_MAX:
            del self._names[next(iter(self._names))]
        login = secrets.token_urlsafe(_ID_BYTES)
        self._names[_key(login)] = (token_name, now_ms + LOGIN_LASTS_MS)
        return login

    def token_name(self, login: str, now_ms: int) -> str | None:
        """Return the name of the token that a login was made with; None if it has ended."""
        name, until_ms = self._names.get(_key(login), ("", 0))
        return name if now_ms < until_ms else None

    def end(self, login: str) -> None:
        """Forget a login, if there is such a one."""
        self._names.pop(_key(login), None)


def _key(login: str) -> str:
    return hashlib.sha256(login.encode("utf-8", "surrogateescape")).hexdigest()
