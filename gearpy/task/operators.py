"""The tasks that the stream language lowers to: a chain of stages, fed by a source or by inputs.

A stage takes columns of records and yields columns of records; all of a chain run in one task,
one after the other on each batch.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol, runtime_checkable

from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS
from gearpy.messages.data import Batch
from gearpy.task.api import Task, TaskContext
from gearpy.task.failure import USER_ERRORS
from gearpy.task.output import Columns
from gearpy.task.rejects import Midway
from gearpy.task.snapshots import decode_state, encode_state

__all__ = ["ChainTask", "CommittingStage", "Stage"]

_STAGES: Final = "stages"  # Keys of snapshots.


class Stage(Protocol):
    """One step of a chain. Deals with records on which user code raises by itself."""

    name: str  #: For people.
    place: int  #: Number in the chain, which sets it; for `Midway`.

    def process(self, values: list[Any], timestamps: list[int]) -> Iterator[Columns]:
        """Take records, yield what follows from them now."""
        ...

    def on_watermark(self, watermark_ms: int) -> Iterator[Columns]:
        """Learn how far event time has come, yield what was waiting for it."""
        ...

    def snapshot(self) -> Any:
        """Return what is kept between records, as plain data; None for nothing."""
        ...

    def restore(self, state: Any) -> None:
        """Go on from a snapshot, None at the first start; called once, before all else."""
        ...

    def close(self, *, completed: bool) -> None:
        """Release everything."""
        ...

    @property
    def hold_ms(self) -> int:
        """Oldest event time that is kept here and not yielded; `MAX_MS` if none."""
        ...


@runtime_checkable
class CommittingStage(Protocol):
    """A stage that shows what it has done only when the epoch is complete."""

    def commit(self, epoch: int) -> None:
        """Learn that an epoch, and all before it, are complete."""
        ...


class ChainTask(Task):
    """Runs a chain of stages over its inputs.

    Args:
        make_stages: makes this task's own stages; called by `on_start`.
    """

    counts_output = True  # A sink is one of the stages.

    def __init__(
        self, context: TaskContext, make_stages: Callable[[TaskContext], Sequence[Stage]]
    ) -> None:
        super().__init__(context)
        self._make_stages = make_stages
        self._stages: Sequence[Stage] = ()

    def on_start(self, start_time_ms: int) -> None:
        """Make the stages; each goes on from where it was."""
        self._stages = self._make_stages(self.context)
        kept = (self.context.resume or {}).get(_STAGES, [b""] * len(self._stages))
        if len(kept) != len(self._stages):
            raise ConfigError(
                f"snapshot has {len(kept)} steps, the program has {len(self._stages)}: "
                "it is of another program"
            )
        for place, (stage, state) in enumerate(zip(self._stages, kept, strict=True)):
            stage.place = place
            stage.restore(decode_state(state))

    def snapshot(self) -> dict[str, Any]:
        """Return what each stage keeps, encoded, so that an error names the stage."""
        return {_STAGES: [encode_state(stage.name, stage.snapshot()) for stage in self._stages]}

    def on_commit(self, epoch: int) -> None:
        """Let the sinks of the chain show what belongs to the epoch."""
        for stage in self._stages:
            if isinstance(stage, CommittingStage):
                stage.commit(epoch)

    def on_batch(self, batch: Batch) -> Iterator[Batch]:
        """Push the records through all stages."""
        first = batch.values[0] if len(batch) == 1 else None
        if isinstance(first, Midway):
            return self._push(first.place, [first.value], batch.timestamps)
        return self._push(0, batch.values, batch.timestamps)

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        """Tell each stage, and push what it yields through the stages behind it."""
        for index, stage in enumerate(self._stages):
            for values, timestamps in stage.on_watermark(watermark_ms):
                yield from self._push(index + 1, values, timestamps)

    def on_stop(self, *, completed: bool) -> None:
        """Close all stages, also when one of them raises."""
        errors = []
        for stage in self._stages:
            try:
                stage.close(completed=completed)
            except USER_ERRORS as error:
                errors.append(error)
        if errors:
            raise errors[0]

    @property
    def hold_ms(self) -> int:
        """Oldest event time that a stage keeps."""
        return min((stage.hold_ms for stage in self._stages), default=MAX_MS)

    def _push(self, index: int, values: list[Any], timestamps: list[int]) -> Iterator[Batch]:
        if index == len(self._stages):
            yield Batch(values, timestamps)
            return
        for out, times in self._stages[index].process(values, timestamps):
            yield from self._push(index + 1, out, times)
