"""The tokens of those who look at a cluster by HTTP: a file with their scopes and hashes."""

import hashlib
import json
import os
import pwd
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

from gearpy.errors import ConfigError
from gearpy.transport.security.secret import check_private, write_private

_PREFIX: Final = "gear_"
_RANDOM_BYTES: Final = 32  # A hash without salt or work is enough for what nobody can guess.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_FILE_BYTES_MAX: Final = 1024 * 1024


class TokenScope(IntEnum):
    """A scope of a token; each allows all that the scopes below it do."""

    READ = 1
    SUBMIT = 2
    ADMIN = 3

    @property
    def text(self) -> str:
        return self.name.lower()

    @property
    def names(self) -> list[str]:
        return [each.text for each in TokenScope if each <= self]


#: The names that users write.
TOKEN_SCOPES: Final = {each.text: each for each in TokenScope}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredToken:
    """A token as it is stored. ``created_ms`` is wall time."""

    name: str
    scope: TokenScope
    sha256: str
    created_ms: int


class TokenFile:
    """The tokens in a file that only its owner can read; a change of it counts at once.

    Runs on: any thread.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self._seen: object = None
        self._tokens: Mapping[str, StoredToken] = {}

    def tokens(self) -> tuple[StoredToken, ...]:
        return tuple(sorted(self._read().values(), key=lambda each: each.name))

    def find(self, secret: str) -> StoredToken | None:
        return self.hashed(hash_of(secret))

    def hashed(self, sha256: str) -> StoredToken | None:
        return self._read().get(sha256)

    def add(self, name: str, scope: TokenScope, *, now_ms: int) -> str:
        """Make a token and store its hash; return the token, which nobody can see again.

        Raises:
            ConfigError: the name is taken, malformed, or that of a user without ``admin``; or see
                `tokens`.
        """
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r} is no name of a token: write letters, digits and ._@- (64 at most)"
            )
        known = self._read()
        if any(each.name == name for each in known.values()):
            raise ConfigError(f"there is a token {name}: take another name, or remove it first")
        if scope < TokenScope.ADMIN and _is_user(name):
            raise ConfigError(
                f"{name} is a user of this machine, and whoever has a token of this name may "
                "change what that user has submitted: take another name, or give it all with "
                "--scope admin"
            )
        secret = new_token()
        token = StoredToken(name=name, scope=scope, sha256=hash_of(secret), created_ms=now_ms)
        self._write({**known, token.sha256: token})
        return secret

    def remove(self, name: str) -> None:
        """Remove a token; who shows it from now on is refused."""
        known = self._read()
        left = {key: each for key, each in known.items() if each.name != name}
        if len(left) == len(known):
            names = ", ".join(each.name for each in self.tokens()) or "none"
            raise ConfigError(f"there is no token {name}; there are: {names}")
        self._write(left)

    def _read(self) -> Mapping[str, StoredToken]:
        """Return tokens by hash, read again only after the file has changed."""
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                seen = (status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode)
                if seen != self._seen:
                    check_private(self.path, file.fileno(), what="token file")
                    self._tokens = _parsed(file.read(_FILE_BYTES_MAX), self.path)
                    self._seen = seen
        except FileNotFoundError:
            self._seen, self._tokens = None, {}
        except OSError as error:
            raise ConfigError(f"token file {self.path} cannot be read: {error.strerror}") from error
        return self._tokens

    def _write(self, tokens: Mapping[str, StoredToken]) -> None:
        """Replace the file as a whole; it is for its owner only from the first moment on."""
        content = [
            {
                "name": each.name,
                "scope": each.scope.text,
                "sha256": each.sha256,
                "created_ms": each.created_ms,
            }
            for each in tokens.values()
        ]
        try:
            write_private(self.path, json.dumps({"tokens": content}, indent=1).encode())
        except OSError as error:
            raise ConfigError(
                f"token file {self.path} cannot be written: {error.strerror}"
            ) from error


def new_token() -> str:
    return _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _parsed(data: bytes, path: Path) -> dict[str, StoredToken]:
    try:
        listed: list[dict[str, Any]] = json.loads(data)["tokens"]
        tokens = [
            StoredToken(
                name=str(each["name"]),
                scope=TOKEN_SCOPES[each["scope"]],
                sha256=str(each["sha256"]),
                created_ms=int(each["created_ms"]),
            )
            for each in listed
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"token file {path} is damaged ({error}): remove it, and make the tokens again"
        ) from error
    return {each.sha256: each for each in tokens}
