"""Records that user code could not take, and the policies for them.

Policies: "fail" ends the task, which is then restarted as a whole; "skip" goes on without the
record and counts it; "quarantine" also hands it over, to be kept and perhaps given to the task
once more. A step of its own policy may also send it to a side output.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from msgspec.structs import replace

from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.summaries import ErrorCard
from gearpy.task.api.counters import TaskCounters
from gearpy.task.api.failure import card_of, operator_error, shown
from gearpy.task.api.sides import FailedRecord
from gearpy.wire.values.payload import encode_value
from gearpy.wire.values.records import register_record

OnError: TypeAlias = Literal["fail", "skip", "quarantine"]
#: That of one step, which may have a side output.
StepOnError: TypeAlias = Literal["fail", "skip", "quarantine", "side"]

#: Takes a record and its event time.
Aside: TypeAlias = Callable[[Any, int], object]

#: A larger record travels to the master, and is listed, without its value.
QUARANTINED_BYTES_MAX: Final = 800_000
#: The place behind a task's last step: its output, which a partitioner could not take.
OUTPUT: Final = -1


@dataclass(frozen=True, slots=True)
class Midway:
    """A value on its way through a task, and the step that could not take it.

    Stands in quarantine where the steps before have taken what the record brought them, so
    that it does not count there twice when it is given again: then it goes on at its place.

    Attributes:
        place: number of the step in the task's chain, from 0, or `OUTPUT`.
    """

    place: int
    value: Any


register_record(Midway, "gearpy.Midway")


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedRecord:
    """A record in quarantine.

    ``value`` is encoded; its `repr` if it could not be; nothing where it is too large.
    """

    value: bytes
    event_time_ms: int
    error: ErrorCard


class Rejects:
    """Does with a record that user code raised on as the policy says.

    Invariant: `take` returns only if the record is dropped, counted and, in quarantine, handed
    over in ``records``, which the task's owner empties.
    """

    def __init__(
        self,
        policy: StepOnError = "fail",
        counters: TaskCounters | None = None,
        task: str = "",
        epoch: int = 0,
        *,
        aside: Aside | None = None,
    ) -> None:
        self.records: list[RejectedRecord] = []
        self.injected: list[tuple[int, int]] = []  #: Records that came back: number and epoch.
        self.epoch = epoch  #: That of the records that the task takes now.
        self._of_task = self  # It counts, keeps, and knows the epoch.
        self._aside = aside
        self._counters = counters or TaskCounters()
        self._policy = policy
        self._task = task

    @property
    def may_go_on(self) -> bool:
        """Whether the policy lets a task go on without a record."""
        return self._policy != "fail"

    def take(self, value: Any, event_time_ms: int, error: OperatorError, *, place: int = 0) -> None:
        """Drop a record, or raise the error.

        Args:
            place: the step of the chain that was given it; see `Midway`.

        Raises:
            OperatorError: the policy is to fail.
        """
        encoded = _encoded(value, place) if self._policy == "quarantine" else b""
        self.take_encoded(encoded, event_time_ms, error)
        if self._aside is not None:
            failed = FailedRecord(value, error.operator, error.cause, int(event_time_ms))
            self._aside(failed, event_time_ms)

    def blame(
        self, operator: str, error: BaseException, value: Any, event_time_ms: int, *, place: int
    ) -> None:
        """Name the step and the record in an error of user code; then `take` the record.

        Raises:
            OperatorError: the policy is to fail.
        """
        blamed = operator_error(operator, error, record=value, event_time_ms=event_time_ms)
        self.take(value, event_time_ms, blamed, place=place)

    def take_encoded(self, value: bytes, event_time_ms: int, error: OperatorError) -> None:
        """Do the same with a record that stays encoded, as it cannot be decoded here.

        Raises:
            OperatorError: the policy is to fail.
        """
        if self._policy == "fail":
            raise error
        if self._policy == "side":
            return
        if self._policy == "skip":
            self._counters.skipped_records += 1
            return
        self._counters.quarantined_records += 1
        card = card_of(error, task=self._task, epoch=self._of_task.epoch)
        if len(value) > QUARANTINED_BYTES_MAX:
            kept = (
                f"; quarantine keeps its text alone, as it has {len(value)} bytes, more than "
                f"{QUARANTINED_BYTES_MAX}: it cannot be given back"
            )
            card, value = replace(card, cause=card.cause + kept), b""
        self._of_task.records.append(
            RejectedRecord(value=value, event_time_ms=int(event_time_ms), error=card)
        )

    def of_step(self, policy: StepOnError, aside: Aside | None = None) -> "Rejects":
        """Return those of a step with a policy of its own: they count and keep with these.

        Args:
            aside: takes a `FailedRecord` and its event time, by "side".
        """
        made = Rejects(policy, self._counters, self._task, aside=aside)
        made._of_task = self
        return made


def _encoded(value: Any, place: int) -> bytes:
    try:
        return encode_value(value if place == 0 else Midway(place, value))
    except ConfigError:
        text = shown(value)
        return encode_value(text if place == 0 else Midway(place, text))
