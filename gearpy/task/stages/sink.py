"""The end of a chain: records go to a sink's writer."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gearpy.errors import GearpyError, OperatorError, StoreAway, causes_of, trouble_of
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.summaries import ConsumerReport
from gearpy.task.api.failure import USER_ERRORS, operator_error
from gearpy.task.api.interfaces import (
    PacedWriter,
    Sink,
    SinkContext,
    SinkWriter,
    TaskContext,
    TransactionalWriter,
)
from gearpy.task.api.window_result import rows_in
from gearpy.task.chain.stage import Stage

if TYPE_CHECKING:
    from gearpy.columns.row_schema import RowSchema

_EPOCH: Final = "epoch"  # Keys of snapshots.
_PREPARED: Final = "prepared"
_KEPT: Final = "kept"
_PASSED: Final = "passed"
_AFTER: Final = "after"
_RUN: Final = "run"
_OWN: Final = "own"
_OTHERS: Final = "others"

#: Methods of a stage that do nothing but what the writer's do.
_OF_WRITER: Final = frozenset({"on_watermark", "consumers", "epoch_fill", "waits_for"})


def unwritten_after(epoch: int) -> dict[str, int]:
    """Return the state of a task that has written nothing, and begins after an epoch.

    What the sink shows of that epoch and of those before is by others, and stays.
    """
    return {_AFTER: epoch}


def is_all_shown(state: Any) -> bool:
    return isinstance(state, dict) and _EPOCH in state and state.get(_KEPT) is None


def shared_states(states: Sequence[Any], parallelism: int) -> list[Any]:
    """Return the states of so many tasks: what others kept goes to those that there are.

    Such a task opens their writers, too, until all is shown that they had prepared.
    """
    own: dict[int, Any] = {}
    for index, state in enumerate(states):
        own[index], others = _parted(state)
        own |= others
    gone = {index: state for index, state in own.items() if index >= parallelism}
    return [
        _joined(own.get(task), {i: each for i, each in gone.items() if i % parallelism == task})
        for task in range(parallelism)
    ]


def _joined(own: Any, others: Mapping[int, Any]) -> Any:
    kept = {index: state for index, state in others.items() if state is not None}
    return {_OWN: own, _OTHERS: kept} if kept else own


def _parted(state: Any) -> tuple[Any, Mapping[int, Any]]:
    if isinstance(state, dict) and state.keys() == {_OWN, _OTHERS}:
        return state[_OWN], state[_OTHERS]
    return state, {}


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Told(NamedTuple):
    """What the program tells of the records of a sink; see `SinkContext`."""

    keys: Mapping[str, Any] = _NOTHING
    fields: Mapping[str, Any] = _NOTHING
    schema: "RowSchema | None" = None


_NOT_TOLD: Final = Told()


def sink_stage(
    context: TaskContext,
    sink: Sink,
    name: str,
    told: Told = _NOT_TOLD,
) -> "SinkStage":
    """Return the stage for a sink; where the task runs again, it shows nothing."""
    if context.is_rerun:
        return SinkStage(context, _Nowhere(), name, told)
    return (PacedSinkStage if sink.paced else SinkStage)(context, sink, name, told)


class _Nowhere(Sink[Any]):
    columnar = True

    def open(self, task_index: int, parallelism: int) -> SinkWriter[Any]:
        return _NoWriter()


class _NoWriter(SinkWriter[Any]):
    def write_batch(self, batch: Batch) -> None:
        pass


class SinkStage(Stage):
    """Hands records to a sink's writer; the end of a chain.

    A writer that raises on one record alone has not taken it. On several, it is not known which one
    it was, so that is a failure; unless the writer is `atomic`: then they are tried one by one.
    """

    def __init__(
        self,
        context: TaskContext,
        sink: Sink,
        name: str,
        told: Told = _NOT_TOLD,
    ) -> None:
        self.name = name
        self._told = told
        self._counters = context.counters
        self._rejects = context.rejects
        self._context = context
        self._prepared: dict[int, Any] = {}  # By epoch, until that is known to be complete.
        self._sink = sink
        self._others: dict[int, PacedWriter] = {}  # Writers of tasks that are no more.
        with self._blamed():
            self._writer = self._open(context.task_id.task_index)

    def _open(self, index: int) -> SinkWriter:
        context = self._context
        writer = self._sink.open(index, max(index + 1, context.parallelism))
        writer.begin(
            SinkContext(
                app_id=context.app_id,
                app_name=context.app_name,
                operator=self.name,
                limits=context.limits,
                wake=context.wake,
                **self._told._asdict(),
            )
        )
        return writer

    def overrides(self, name: str) -> bool:
        """Tell it of what the writer does, too."""
        if name in _OF_WRITER:
            return getattr(type(self._writer), name) is not getattr(SinkWriter, name)
        if name == "commit":
            return isinstance(self._writer, TransactionalWriter)
        return super().overrides(name)

    def process(self, batch: Batch) -> Iterator[Batch]:
        if self._context.shown is not None:
            self._context.shown(batch.values, batch.timestamps)
        try:
            self._writer.write_batch(batch)
            count, counters = len(batch.values), self._counters
            counters.records_out += count
            counters.written_records += count
        except USER_ERRORS as error:
            if (away := self._away(error)) is not None:  # No record is to blame.
                raise operator_error(self.name, away) from error
            if len(batch) == 1:
                record, time = rows_in(batch.values)[0], batch.timestamps[0]
                self._rejects.blame(self.name, error, record, time, place=self.place)
            elif (
                self._rejects.may_go_on and self._writer.atomic and isinstance(error, OperatorError)
            ):
                for at in range(len(batch)):
                    self.process(batch.part(at, at + 1))
            else:
                raise operator_error(self.name, error) from error
        return iter(())

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        with self._blamed():
            self._writer.on_watermark(watermark_ms)
        return iter(())

    def snapshot(self) -> Any:
        with self._blamed():
            own = self._snapshot()
            for index in [index for index, each in self._others.items() if each.is_delivered]:
                self._others.pop(index).close(completed=True)
            epoch = self._context.epoch
            others = {
                index: {_EPOCH: epoch, _PREPARED: {}, _KEPT: each.snapshot()}
                for index, each in self._others.items()
            }
            return _joined(own, others)

    def _snapshot(self) -> Any:
        if not isinstance(self._writer, TransactionalWriter):
            return self._writer.snapshot()
        epoch = self._context.epoch
        prepared = self._writer.prepare(epoch)
        if prepared is not None:
            self._prepared[epoch] = prepared
        kept = self._writer.snapshot()
        state = {_EPOCH: epoch, _PREPARED: dict(self._prepared), _KEPT: kept}
        return state | ({_RUN: self._context.run} if self._sink.waits_for_store else {})

    def commit(self, epoch: int) -> None:
        with self._blamed():
            for each in sorted(each for each in self._prepared if each <= epoch):
                assert isinstance(self._writer, TransactionalWriter)
                self._writer.commit(each, self._prepared[each])
                del self._prepared[each]

    def restore(self, state: Any) -> None:
        own, others = _parted(state)
        with self._blamed():
            self._recover(self._writer, own)
            for index, kept in others.items():
                writer = self._open(index)
                if isinstance(writer, PacedWriter):
                    self._others[index] = writer
                try:
                    self._recover(writer, kept)
                    if isinstance(writer, TransactionalWriter):
                        writer.leave()
                finally:
                    if index not in self._others:
                        writer.close(completed=False)

    def _recover(self, writer: SinkWriter, state: Any) -> None:
        after = 0
        if isinstance(state, dict) and state.keys() == {_AFTER}:
            after, state = state[_AFTER], None
        if not isinstance(writer, TransactionalWriter):
            writer.restore(state)
            return
        known = state or {_EPOCH: after, _PREPARED: {}}
        writer.restore(known.get(_KEPT))
        writer.resumes = known.get(_RUN) == self._context.run
        writer.recover(
            dict(sorted(known[_PREPARED].items())),
            epoch=known[_EPOCH],
            run=self._context.run,
            incarnation=self._context.incarnation,
        )

    @property
    def epoch_fill(self) -> float:
        return self._writer.epoch_fill

    def consumers(self) -> Sequence[ConsumerReport]:
        with self._blamed():
            return self._writer.consumers()

    @property
    def waits_for(self) -> str:
        return self._writer.waits_for

    def close(self, *, completed: bool) -> None:
        with self._blamed():
            for each in (*self._others.values(), self._writer):
                each.close(completed=completed)

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        try:
            yield
        except USER_ERRORS as error:
            raise operator_error(self.name, self._away(error) or error) from error

    def _away(self, error: BaseException) -> StoreAway | None:
        if isinstance(error, StoreAway):
            return error
        is_away = any(isinstance(each, OSError) for each in causes_of(error))
        if not (self._sink.waits_for_store and is_away):
            return None
        where = "" if isinstance(error, GearpyError) else f"{self._sink.description}: "
        return StoreAway(f"{where}{trouble_of(error)}")


class PacedSinkStage(SinkStage):
    """The stage of a sink that hands on its shown records, and may make the stream wait.

    It defers, and never yields anything: while the writer has no room, records wait
    in the stages before; when the hand-over has failed, so does the task. The end of the stream
    waits until everything was handed over.
    """

    defers = True

    def __init__(
        self,
        context: TaskContext,
        sink: Sink,
        name: str,
        told: Told = _NOT_TOLD,
    ) -> None:
        super().__init__(context, sink, name, told)
        assert isinstance(self._writer, PacedWriter), "its sink says that it is paced"
        self._paced = self._writer
        self._passed_ms = MIN_MS

    def expect(self, batch: Batch) -> None:
        if type(self._paced).expect is not PacedWriter.expect:
            with self._blamed():
                self._paced.expect(batch)

    def overrides(self, name: str) -> bool:
        """Tell it of itself: it has its own answers to all."""
        return name == "on_watermark" or super().overrides(name)

    @property
    def passed_ms(self) -> int:
        return self._passed_ms

    @property
    def has_room(self) -> bool:
        return self._paced.has_room

    @property
    def may_end_epoch(self) -> bool:
        """The answer of the writer; the end comes when its hand-over has failed."""
        return all(each.may_end_epoch or each.failure is not None for each in self._all)

    @property
    def is_ready(self) -> bool:
        return any(each.failure is not None or each.refused for each in self._all)

    def release(self) -> Iterator[Batch]:
        self._check()
        return iter(())

    @property
    def is_delivered(self) -> bool:
        """Whether there is more to come, or nothing left to hand over."""
        if self._passed_ms < MAX_MS:
            return True
        self._check()
        return self._is_all_delivered

    @property
    def is_working(self) -> bool:
        return bool(self._prepared) or not self._is_all_delivered

    @property
    def waits_for(self) -> str:
        return next((told for each in self._all if (told := each.waits_for)), "")

    @property
    def _all(self) -> Sequence[PacedWriter]:
        return (self._paced, *self._others.values())

    @property
    def _is_all_delivered(self) -> bool:
        with self._blamed():
            return all(each.is_delivered for each in self._all)

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        self._passed_ms = max(self._passed_ms, watermark_ms)
        return super().on_watermark(watermark_ms)

    def _snapshot(self) -> Any:
        return {**super()._snapshot(), _PASSED: self._passed_ms}

    def restore(self, state: Any) -> None:
        own, _ = _parted(state)
        self._passed_ms = (own or {}).get(_PASSED, MIN_MS)
        super().restore(state)

    def _check(self) -> None:
        for each in self._all:
            while each.refused:
                record, time, error = each.refused.popleft()
                self._rejects.blame(self.name, error, record, time, place=self.place)
            if (failure := each.failure) is not None:
                with self._blamed():
                    raise failure
