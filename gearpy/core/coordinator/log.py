"""The coordinator log of one application: the memory that its app masters share.

Messages have a type and a key; of those with the same two the last one counts, and one without
values deletes. Reading all of them from the oldest to the newest gives the state, so that the
log may be compacted. `views` give the types a meaning. Samza: the coordinator stream (SAMZA-465),
`CoordinatorStreamMessage`, `CoordinatorStreamSystemConsumer`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from gearpy.errors import ProtocolError

#: The newest version of what values mean that this gearpy understands.
VERSION: Final = 2
_FIRST_VERSION: Final = 1

EPOCH: Final = "epoch"  # Region and epoch -> its manifest; `segments` counts these.

#: Plain values only: None, bool, int, float, str, bytes, list, and dict with str as keys.
Values: TypeAlias = Mapping[str, Any]


class CoordinatorMessage(Struct, frozen=True, kw_only=True):
    """One message of the log. Samza: `CoordinatorStreamMessage`.

    ``version`` is that of what ``values`` mean for the type. ``extras`` is what a newer gearpy has
    written beside them; it is kept.
    """

    type: str
    key: str
    values: Values | None
    host: str = ""
    username: str = ""
    source: str = ""
    timestamp_ms: int = 0
    version: int = _FIRST_VERSION
    extras: Values = field(default_factory=dict)

    def understood(self) -> Values:
        """Return the values, or refuse them if this gearpy may not understand them."""
        if self.version > VERSION:
            raise ProtocolError(
                f"message {self.type} {self.key} of the coordinator log has version "
                f"{self.version}, this gearpy understands {VERSION}: use the one that wrote it, "
                "or a newer one"
            )
        return self.values or {}


def draft(type_: str, key: str, values: Values | None) -> CoordinatorMessage:
    """Draft a message; the log adds its writer and its time. Without values it deletes."""
    return CoordinatorMessage(type=type_, key=key, values=values)


class CoordinatorState:
    """The state of a log: the last message of each type and key.

    Invariant: applying messages one by one, or the result of `messages` and then the rest, leads
    to the same state.
    """

    def __init__(self, messages: Iterable[CoordinatorMessage] = ()) -> None:
        self._messages: dict[tuple[str, str], CoordinatorMessage] = {}
        for each in messages:
            self.on_message(each)

    def on_message(self, message: CoordinatorMessage) -> None:
        place = (message.type, message.key)
        self._messages.pop(place, None)  # The order is that of the last messages.
        if message.values is not None:
            self._messages[place] = message

    def messages(self, type_: str | None = None) -> list[CoordinatorMessage]:
        return [each for each in self._messages.values() if type_ in (None, each.type)]

    def find(self, type_: str, key: str) -> CoordinatorMessage | None:
        return self._messages.get((type_, key))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CoordinatorState) and self.messages() == other.messages()

    __hash__ = None  # type: ignore[assignment] # It changes.


class StateView:
    """Base of the views, which read the messages of one type and draft others."""

    def __init__(self, state: CoordinatorState) -> None:
        self._state = state
