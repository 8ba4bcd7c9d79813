"""The base class of the steps of a chain, and the keyed state of one."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from gearpy.ids import MAX_MS
from gearpy.messages.data import Batch
from gearpy.messages.summaries import ConsumerReport
from gearpy.state.keyed import KeyedState
from gearpy.state.kinds.bulk import BulkState
from gearpy.task.api.interfaces import TaskContext


class Stage:
    """One step of a chain. Deals with records on which user code raises by itself.

    It overrides what it needs, and nothing else: the chain asks each stage once, by `overrides`,
    and never calls what is not overridden.
    """

    name: str = ""  #: For people.
    place: int = 0  #: Number in the chain, which sets it; for `Midway`.
    keeps_times: bool = True  #: Whether its results have the event times of their records.
    #: Its results come some time after its records, by `release`. Work waits before it while it
    #: has no room; see `ChainTask`.
    defers: ClassVar[bool] = False

    def overrides(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(Stage, name)

    # -- records and event time ----------------------------------------------------------------

    def process(self, batch: Batch) -> Iterator[Batch]:
        """Take at least one record, yield the results that are ready now.

        What follows from these records is made by `Batch.giving`; what does not has no origin.
        """
        raise NotImplementedError(f"{type(self).__name__} has no process")

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        """Learn how far event time has come, yield the records that were waiting for it.

        Where that takes long, batches without records let others go on.
        """
        return iter(())

    @property
    def hold_ms(self) -> int:
        return MAX_MS

    # -- state and epochs ----------------------------------------------------------------------

    def restore(self, state: Any) -> None:
        """Go on from a snapshot, None at the first start; called once, before all else."""

    def drain(self) -> Iterator[Batch]:
        return iter(())

    def snapshot(self) -> Any:
        return None

    def commit(self, epoch: int) -> None:
        """Learn that an epoch, and all before it, are complete: what it has prepared is shown."""

    @property
    def open_windows(self) -> int:
        """The number of windows, of each key its own, that more records may come for."""
        return 0

    @property
    def epoch_fill(self) -> float:
        return 0.0

    @property
    def may_end_epoch(self) -> bool:
        return True

    def close(self, *, completed: bool) -> None:
        """Release everything."""

    # -- wall time -----------------------------------------------------------------------------

    @property
    def wake_ms(self) -> int | None:
        """The time at which to call `on_time`, in ms since the epoch; None: not at all.

        Asked after each batch: keep it at hand. Nothing of it is in snapshots; a stage that was
        restored tells again.
        """
        return None

    def on_time(self, now_ms: int) -> Iterator[Batch]:
        """Learn that ``wake_ms`` has come, yield the records that were waiting for it.

        Called at most once in each ms, and never at the end of the stream, when nothing is kept
        any more.
        """
        return iter(())

    # -- a stage that defers -------------------------------------------------------------------

    def expect(self, batch: Batch) -> None:
        """Learn of the next records: from now on ``has_room`` tells of these."""

    @property
    def has_room(self) -> bool:
        return True

    @property
    def is_ready(self) -> bool:
        return False

    def release(self) -> Iterator[Batch]:
        return iter(())

    @property
    def passed_ms(self) -> int:
        """The event time behind the stage: no older record is in it. Only grows."""
        raise NotImplementedError(f"{type(self).__name__} defers, and has no passed_ms")

    # -- the world outside ---------------------------------------------------------------------

    @property
    def is_working(self) -> bool:
        return False

    @property
    def is_delivered(self) -> bool:
        return True

    def consumers(self) -> Sequence[ConsumerReport]:
        return ()

    @property
    def waits_for(self) -> str:
        return ""


def step_state(context: TaskContext, kind: str, place: int) -> KeyedState:
    return context.state.scope(context.step_ids[place] if context.step_ids else kind)


def step_bulk(
    context: TaskContext, kind: str, place: int, *, operator: str, is_keyed: bool = True
) -> BulkState:
    # No scope is made, which would follow the state to the key of each record.
    step = context.step_ids[place] if context.step_ids else kind
    return context.state.bulk(step, kind, operator=operator, is_keyed=is_keyed)
