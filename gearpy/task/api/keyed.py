"""The keyed state of one task as its runner sees it: made when first used, saved, restored."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol, TypeAlias

from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch, Message
from gearpy.messages.table import Table
from gearpy.state.encoding.keys import NO_KEY, encode_key, encoded_keys
from gearpy.state.keyed import KeyedState
from gearpy.state.kinds.timers import KeyTimer, KeyTimers
from gearpy.state.open import StateSettings, open_state
from gearpy.state.stores.store import Section, StateDelta
from gearpy.task.api.failure import USER_ERRORS, ProgramFailure, outputs_of

#: Makes the keyed state of a task: its name, wall time in ms, the watermark of its inputs in ms.
OpenState: TypeAlias = Callable[[str, Callable[[], int], Callable[[], int]], KeyedState]

_REFUSAL: Final = (
    "a task with aligned = False cannot use context.state: what it changes for records of later "
    "epochs would be in the snapshot of an earlier one; set aligned = True, or keep a "
    "PersistentState"
)


class Reached(Protocol):
    """Output that is told how far event time is at its task: at the record, or timer, at hand."""

    reached_ms: int

    def reach(self, at_ms: int) -> None: ...


class KeyedTask:
    """Keyed state that costs nothing until it is used.

    Args:
        name: of the task, unlike that of any other in the process.
        watermark_ms: how far the inputs of the task are.
    """

    def __init__(
        self,
        name: str,
        open_state: OpenState,
        *,
        wall_ms: Callable[[], int],
        watermark_ms: Callable[[], int],
    ) -> None:
        self._name = name
        self._open_state = open_state
        self._wall_ms = wall_ms
        self._watermark_ms = watermark_ms
        self._state: KeyedState | None = None
        self._timers: KeyTimers | None = None  # Of the state, when they were asked for.
        self._key_of: Callable[[Any], Any] | None = None
        self._ask: Callable[[Any], Any] | None = None  # The same; gives a key that was read again.
        #: Of the records to come, as `messages` read them.
        self._keys: Iterator[bytes] | None = None
        self._message: Message | None = None  # The newest record that the task was given.
        self._is_refused = False
        self._reached_ms: int | None = None  # How far event time is, if not by the record.
        self._output: Reached | None = None
        self._fired_ms = MIN_MS  # When timers on wall time have fired last.

    @property
    def state(self) -> KeyedState:
        """The state; made at the first call.

        Raises:
            ConfigError: the task cannot have any.
        """
        if self._is_refused:
            raise ConfigError(_REFUSAL)
        if self._state is None:
            self._state = self._open_state(self._name, self._wall_ms, self._watermark_ms)
            self._state.read_keys = self._keys_of
            if self._message is not None:  # Used for the first time, at a record.
                self._enter(self._state, self._message)
        return self._state

    def refuse(self) -> None:
        """Forbid use of the state, as the task is not aligned.

        Raises:
            ConfigError: it is in use, or it was kept before the restart.
        """
        if self._state is not None:
            raise ConfigError(_REFUSAL)
        self._is_refused = True

    def load(self, sections: Iterable[Section], state: KeyedState | None = None) -> None:
        """Load saved state, in addition to ``state``; called before the state is used."""
        if state is not None:
            state.begin_at(self._watermark_ms())
            state.read_keys = self._keys_of
            self._state = state
        for section in sections:
            self.state.load(section)

    def snapshot(self) -> StateDelta | None:
        return None if self._state is None else self._state.snapshot()

    def begin_snapshot(
        self, *, of_all: bool = False
    ) -> tuple[StateDelta | None, Iterator[bool] | None]:
        """Hand over the changes of the state, and the steps that make them whole, if any.

        Each step tells whether they are not whole yet. See `KeyedState.begin_snapshot`.
        """
        if self._state is None:
            return None, None
        return self._state.begin_snapshot(of_all=of_all), self._state.copies.steps()

    def tell_again(self) -> bool:
        return self._state is None or self._state.tell_again()

    @property
    def size_bytes(self) -> int:
        """The size of the state; see `CellStore.size_bytes`."""
        return 0 if self._state is None else self._state.size_bytes

    def close(self) -> None:
        if self._state is not None:
            self._state.close()

    def _keys_of(self, batch: Batch) -> list[bytes]:
        if self._key_of is None:
            return [encode_key(NO_KEY)] * len(batch)
        keys, key_of = encoded_keys(self._key_of, batch.values)
        return [encode_key(key_of(value)) for value in batch.values] if keys is None else keys

    def messages(self, batch: Batch) -> Iterable[Message]:
        """Give the records of a batch, one after the other; their keys are read at once."""
        key_of, keys = self._key_of, None
        if key_of is not None and self._state is not None:
            if type(batch.values) is Table:  # Else its rows would be made twice.
                batch = batch.giving(list(batch.values), batch.timestamps)
            keys, self._ask = encoded_keys(key_of, batch.values)
        self._keys = None if keys is None else iter(keys)
        return batch.messages()

    def keyed(
        self, on_next: Callable[[Message], Any], key_of: Callable[[Any], Any] | None
    ) -> Callable[[Message], Any]:
        """Return ``on_next`` with the state's key and time set to those of each message before."""
        self._key_of = self._ask = key_of
        if key_of is None and self._state is None:
            return on_next

        def at_record(message: Message) -> Any:
            self._message = message
            if self._state is not None:
                self._enter(self._state, message)
            return on_next(message)

        return at_record

    def in_order(
        self,
        on_next: Callable[[Message], Any],
        on_timer: Callable[[KeyTimer], Any],
        key_of: Callable[[Any], Any] | None,
        output: Reached,
        begin: Callable[[], None],
    ) -> Callable[[Message], Any]:
        """Do as `keyed` for records in the order of event time: timers up to one fire before it.

        Args:
            output: is told how far event time is before either.
            begin: called where timers fired before a record, and it follows.
        """
        self._key_of = self._ask = key_of
        self._output = output
        state = self.state
        event = state.timers.event

        def at_record(message: Message) -> Any:
            time_ms = message.timestamp
            place_ms = time_ms if self._reached_ms is None else self._reached_ms
            if event.first_ms <= place_ms:
                return timers_first(message)
            if place_ms > output.reached_ms:  # noqa: PLR1730 - `max` is three times as slow
                output.reached_ms = place_ms
            if (keys := self._keys) is not None:
                state.enter(next(keys), time_ms)
            else:
                self._enter(state, message)
            return on_next(message)

        def timers_first(message: Message) -> Iterator[Message]:
            for timer in self.until(message):
                try:
                    yield from outputs_of(on_timer(timer), "on_key_timer")
                except ProgramFailure:
                    raise
                except USER_ERRORS as error:
                    raise ProgramFailure(error) from error
            begin()
            output.reach(self._place_of(message))
            self._enter(state, message)
            yield from outputs_of(on_next(message), "on_next")

        return at_record

    def reach(self, at_ms: int | None) -> None:
        """Let event time be so far for the records that follow; None: as far as each of them."""
        self._reached_ms = at_ms
        if at_ms is not None and self._state is not None:
            self._state.advance(at_ms)

    def until(self, message: Message) -> Iterator[KeyTimer]:
        """Give the timers up to a record."""
        if self._state is not None:
            yield from self._reached(self._state.timers.due_event(self._place_of(message)))

    def enter(self, message: Message) -> None:
        """Let event time be as far as a record, for a task that takes it in a batch."""
        if self._output is not None:
            self._output.reach(self._place_of(message))

    def _reached(self, timers: Iterator[KeyTimer]) -> Iterator[KeyTimer]:
        for timer in timers:
            if self._output is not None:
                self._output.reach(timer.at_ms)
            yield timer

    def _place_of(self, message: Message) -> int:
        return message.timestamp if self._reached_ms is None else self._reached_ms

    def _enter(self, state: KeyedState, message: Message) -> None:
        # The namespace was that of the record before; a restart would forget it.
        if self._ask is not None:
            keys = self._keys
            key = encode_key(self._ask(message.value)) if keys is None else next(keys)
            state.enter(key, message.timestamp)
        else:
            state.namespace, state.time_ms = None, message.timestamp

    def advance(self, watermark_ms: int) -> Iterator[KeyTimer]:
        """Move event time on: forget state that is over, give the timers that are due, in order."""
        if self._state is None:
            return
        if self._state.timers.event.first_ms <= watermark_ms:
            yield from self._reached(self._state.timers.due_event(watermark_ms))
        self._state.advance(watermark_ms)
        # Not at the record that came last: after a restart that would be another one.
        self._state.leave(NO_KEY)

    def due(self) -> Iterator[KeyTimer]:
        """Give the timers on wall time that are due."""
        if self._state is not None:
            now_ms = self._wall_ms()
            yield from self._state.timers.due_processing(now_ms)
            self._fired_ms = now_ms

    @property
    def wait_ms(self) -> int | None:
        """The time in ms until a timer on wall time is due; None where there is none."""
        if self._state is None:
            return None
        if (timers := self._timers) is None:
            timers = self._timers = self._state.timers
        at_ms = timers.processing_from_ms
        if at_ms >= MAX_MS:
            return None
        now_ms = self._wall_ms()
        # One that sets itself again lets records through.
        return max(at_ms - now_ms, 1 if now_ms == self._fired_ms else 0)


def open_on_heap(
    name: str, wall_ms: Callable[[], int], watermark_ms: Callable[[], int]
) -> KeyedState:
    """Return keyed state in memory; an `OpenState`."""
    return open_state(StateSettings(), name, wall_ms, watermark_ms)
