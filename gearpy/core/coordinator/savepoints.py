"""Views of how an application is to end, and of the epochs that have names, in its log."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gearpy.core.coordinator.log import CoordinatorMessage, CoordinatorState, draft
from gearpy.core.coordinator.views import APPLICATION
from gearpy.errors import ConfigError, ProtocolError

_DRAIN: Final = "drain"  # Of the application: the savepoint to make at its end.
SAVEPOINT: Final = "savepoint"  # Name -> the epoch of each region.
_NAME: Final = re.compile(r"(?!app[0-9]+$)[A-Za-z][A-Za-z0-9._-]{0,62}", re.ASCII)
_SHOWN_CHARS_MAX: Final = 100


def check_savepoint(name: str) -> None:
    """Refuse what cannot be the name of a savepoint.

    Raises:
        ConfigError: it cannot.
    """
    if _NAME.fullmatch(name) is None:
        raise ConfigError(
            f"{name[:_SHOWN_CHARS_MAX]!r} is no name of a savepoint: take up to 63 letters, "
            "digits, dots, dashes and underscores, a letter first, and not app and a number"
        )


class DrainView:
    """View of the drain that was asked for: it goes on when the app master is launched again."""

    def __init__(self, state: CoordinatorState) -> None:
        self._state = state

    @property
    def is_asked(self) -> bool:
        """Whether the application is to be drained."""
        return self._state.find(APPLICATION, _DRAIN) is not None

    @property
    def savepoint(self) -> str:
        """The name of the savepoint to make at its end; empty for none.

        Raises:
            ProtocolError: the message cannot be understood.
        """
        found = self._state.find(APPLICATION, _DRAIN)
        return "" if found is None else str(found.understood().get("savepoint", ""))

    def write(self, savepoint: str) -> list[CoordinatorMessage]:
        """Return the message that asks for it."""
        return [draft(APPLICATION, _DRAIN, {"savepoint": savepoint})]

    def clear(self) -> list[CoordinatorMessage]:
        """Return the message that takes it back; none if nobody has asked."""
        return [draft(APPLICATION, _DRAIN, None)] if self.is_asked else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Savepoint:
    """An epoch of each region under a name. ``stored_ms`` is when it was made, as wall time."""

    name: str
    epochs: Mapping[int, int]
    stored_ms: int


class Savepoints:
    """View of the savepoints of an application."""

    def __init__(self, state: CoordinatorState) -> None:
        self._state = state

    def read(self) -> list[Savepoint]:
        """Return all, the oldest first.

        Raises:
            ProtocolError: a message cannot be understood.
        """
        return [_savepoint(each) for each in self._state.messages(SAVEPOINT)]

    def write(self, name: str, epochs: Mapping[int, int]) -> list[CoordinatorMessage]:
        """Return the message that makes one."""
        by_region = {str(region): epoch for region, epoch in epochs.items()}
        return [draft(SAVEPOINT, name, {"epochs": by_region})]

    def drop(self, name: str) -> list[CoordinatorMessage]:
        """Return the message that drops one."""
        return [draft(SAVEPOINT, name, None)]


def _savepoint(message: CoordinatorMessage) -> Savepoint:
    try:
        epochs = {int(region): int(each) for region, each in message.understood()["epochs"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(
            f"savepoint {message.key} of the coordinator log has no epochs: {error!r}"
        ) from error
    return Savepoint(name=message.key, epochs=epochs, stored_ms=message.timestamp_ms)
