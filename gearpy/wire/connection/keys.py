"""Keys: the cluster secret, the keys of applications, and the token of a launch.

Processes of the cluster know its secret. A process that runs code of users knows only the key of
its application, which is derived from the secret and does not lead back to it. So user code that
goes wrong, or means harm, can speak for its own application and for nobody else.
"""

import hmac
import json
import struct
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from gearpy.errors import AuthenticationFailed, ConfigError
from gearpy.ids import AppId, ExecutorId

KEY_BYTES: Final = 32
#: Unlike the beginning of any proof, see `auth`: no proof is a key, and no key a proof.
_APPLICATION_KEY: Final = struct.Struct("<25sq")
_APPLICATION_KEY_DOMAIN: Final = b"gearpy application key 1\x00"
_NO_APPLICATION: Final = -1
_INT64_END: Final = 1 << 63


class Principal(NamedTuple):
    """The name in which a process speaks: that of the cluster, or of one application."""

    application: AppId | None = None

    @property
    def key_name(self) -> str:
        return "the cluster secret" if self.application is None else f"the key of {self}"

    @property
    def number(self) -> int:
        return _NO_APPLICATION if self.application is None else self.application

    @classmethod
    def of_number(cls, number: int) -> "Principal":
        return cls(AppId(number)) if number >= 0 else CLUSTER

    def __str__(self) -> str:
        return "the cluster" if self.application is None else f"application {self.application}"


#: Masters, workers, and users who may read the secret file.
CLUSTER: Final = Principal()


def application_key(secret: bytes, app_id: AppId) -> bytes:
    derived = _APPLICATION_KEY.pack(_APPLICATION_KEY_DOMAIN, app_id)
    return hmac.digest(secret, derived, "sha256")


class KeyRing:
    """The keys that one process has; never shown.

    Invariant: the ring of an application has one key, its own.
    """

    def __init__(self, own: Principal, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ConfigError(f"{own.key_name} has {len(key)} bytes, must have {KEY_BYTES}")
        self.own = own
        self._key = key

    @classmethod
    def of_cluster(cls, secret: bytes) -> "KeyRing":
        return cls(CLUSTER, secret)

    @classmethod
    def of_application(cls, app_id: AppId, key: bytes) -> "KeyRing":
        return cls(Principal(app_id), key)

    def key_of(self, principal: Principal) -> bytes | None:
        """Return the key that proves a principal; None if this ring cannot have it."""
        if principal == self.own:
            return self._key
        if self.own == CLUSTER and principal.application is not None:
            return application_key(self._key, principal.application)
        return None

    def __repr__(self) -> str:
        return f"KeyRing({self.own}, ***)"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchToken:
    """The token of a process that a worker starts: its name, and the key of its application.

    It is one line on standard input, so that no list of processes and no environment shows it.
    ``launch`` is the number under which the launch was asked for; who expects another one
    refuses the process. After ``expires_ms`` (wall clock) the token starts nothing any more.
    """

    app_id: AppId
    executor_id: ExecutorId
    launch: int
    expires_ms: int
    key: bytes = field(repr=False)

    @classmethod
    def issued(
        cls, keys: KeyRing, app_id: AppId, executor_id: ExecutorId, *, launch: int, expires_ms: int
    ) -> "LaunchToken":
        key = keys.key_of(Principal(app_id))
        if key is None:
            raise ConfigError(f"{keys.own} cannot start processes of application {app_id}")
        return cls(
            app_id=app_id, executor_id=executor_id, launch=launch, expires_ms=expires_ms, key=key
        )

    @property
    def keys(self) -> KeyRing:
        return KeyRing.of_application(self.app_id, self.key)

    def check(self, now_ms: int) -> None:
        """Refuse a token that has been lying around."""
        if now_ms >= self.expires_ms:
            raise AuthenticationFailed(
                f"the token of launch {self.launch} of application {self.app_id} expired "
                f"{now_ms - self.expires_ms} ms ago"
            )

    def as_line(self) -> str:
        numbers = [self.app_id, self.executor_id, self.launch, self.expires_ms]
        return json.dumps([*numbers, self.key.hex()]) + "\n"

    @classmethod
    def of_line(cls, line: str) -> "LaunchToken":
        """Read a token made by `as_line`.

        Raises:
            ConfigError: it is none. The text does not hold the line.
        """
        try:
            app_id, executor_id, launch, expires_ms, key = json.loads(line)
            return cls(
                app_id=AppId(_int64(app_id, low=0)),
                executor_id=ExecutorId(_int64(executor_id)),
                launch=_int64(launch),
                expires_ms=_int64(expires_ms),
                key=_key(key),
            )
        except (ValueError, TypeError, RecursionError):
            raise ConfigError(
                "there is no launch token on standard input: workers start this process"
            ) from None


def _int64(value: object, low: int = -_INT64_END) -> int:
    if type(value) is not int or not low <= value < _INT64_END:
        raise ValueError
    return value


def _key(value: str) -> bytes:
    key = bytes.fromhex(value)
    if len(key) != KEY_BYTES:
        raise ValueError
    return key
