"""Quotas: the slots that all applications of a user may have together."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from gearpy.errors import ConfigError
from gearpy.ids import AppId

#: Stands for every user who is not named.
_ANYBODY: Final = "*"


class Quotas:
    """Knows how many slots a user may have for tasks; the slot of an app master does not count."""

    def __init__(self, limits: Mapping[str, int], user_of: Callable[[AppId], str]) -> None:
        self._limits = dict(limits)
        self.user_of = user_of

    def __bool__(self) -> bool:
        return bool(self._limits)

    def limit(self, user: str) -> int | None:
        return self._limits.get(user, self._limits.get(_ANYBODY))

    def used(self, user: str, slots: Mapping[AppId, int]) -> int:
        return sum(taken for app_id, taken in slots.items() if self.user_of(app_id) == user)


#: Nobody is limited.
NO_QUOTAS: Final = Quotas({}, lambda _: "")


def quotas_in(lines: Iterable[str]) -> dict[str, int]:
    limits: dict[str, int] = {}
    for line in lines:
        user, _, slots = line.partition("=")
        if user in limits:
            raise ConfigError(f"master.quotas names {user!r} twice: keep one of them")
        limits[user] = int(slots)
    return limits
