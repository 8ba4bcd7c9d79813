"""The records of one application that go into quarantine, and those that are given back."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from msgspec.structs import replace

from gearpy.core.app.application import ApplicationCore
from gearpy.core.app.regions.region import Region
from gearpy.core.app.replays import GivenBack
from gearpy.core.coordinator.quarantine import KeptRecord
from gearpy.core.dag.state_moves import Layout
from gearpy.core.epoch.epochs import Manifest
from gearpy.errors import ProtocolError
from gearpy.ids import AppId, ExecutorId, ProcessorId, TaskId
from gearpy.messages.app import InjectRecord, RecordInjected, RecordQuarantined
from gearpy.messages.client import QuarantinedRecord, ReplayQuarantined
from gearpy.messages.cluster import Quarantine
from gearpy.messages.summaries import ErrorCard
from gearpy.task.api.rejects import OUTPUT, Midway
from gearpy.wire.values.payload import decode_value

#: A record that was put aside: its task, its value, and why; its time may be that of its arrival.
_Key: TypeAlias = tuple[str, bytes, str]


class AppQuarantine:
    """Numbers records, and keeps them until the master has stored them.

    What a region has put aside since the epoch that it goes back to comes again, and is there.

    Args:
        wall_ms: of an application that keeps its quarantine itself, together with its epochs, as
            its master ends with it.
    """

    def __init__(
        self,
        app_id: AppId,
        launch: int,
        records_max: int,
        *,
        wall_ms: Callable[[], int] | None = None,
    ) -> None:
        self._app_id = app_id
        self._launch = launch
        self._records_max = records_max
        self._wall_ms = wall_ms
        self._count = self._number = 0
        self._unstored: dict[int, Quarantine] = {}
        self._unkept: dict[int, QuarantinedRecord] = {}
        #: By region: what was put aside in epochs that may not be complete, and what comes again,
        #: each with its numbers.
        self._open = defaultdict[int, list[tuple[int, _Key, int]]](list)
        self._again = defaultdict[int, dict[_Key, list[int]]](dict)
        self._attempts: dict[int, int] = {}

    def begin(self, kept: Iterable[KeptRecord]) -> list[Quarantine]:
        """Go on from the records that are kept; return them for a master that has none of them."""
        told = [self._message(each.record) for each in kept]
        self._number = max([self._number, *(each.number for each in told)])
        return told

    @property
    def unstored(self) -> list[Quarantine]:
        return list(self._unstored.values())

    def on_begin(self, region: int, attempt: int, epoch: int) -> None:
        """Note that an attempt goes on from the end of an epoch; told again, nothing changes."""
        if self._attempts.get(region) != attempt:
            self._attempts[region] = attempt
            for each, key, number in self._open.pop(region, ()):
                if each > epoch:
                    self._again[region].setdefault(key, []).append(number)

    def add(self, message: RecordQuarantined, region: int) -> Quarantine | ErrorCard | None:
        """Return the record for the master to store, or the cause of the application's failure.

        None: it is there.
        """
        error = message.error
        key = (error.task, message.value, error.cause)
        if numbers := self._again[region].get(key):
            self._open[region].append((error.epoch, key, numbers.pop(0)))
            return None
        self._count += 1
        self._number += 1
        self._open[region].append((error.epoch, key, self._number))
        if self._count > self._records_max:
            cause = (
                f"more than {self._records_max} records were put into quarantine, the last one "
                f"because of: {message.error.cause}"
            )
            return replace(message.error, cause=cause)
        record = QuarantinedRecord(
            number=self._number,
            processor_id=message.processor_id,
            value=message.value,
            event_time_ms=message.event_time_ms,
            error=message.error,
            at_ms=self._wall_ms() if self._wall_ms else 0,
        )
        if self._wall_ms:
            self._unkept[self._number] = record
        told = self._unstored[self._number] = self._message(record)
        return told

    def on_stored(self, number: int) -> None:
        self._unstored.pop(number, None)

    def of_epochs(self, manifests: Iterable[Manifest]) -> list[QuarantinedRecord]:
        """Return the records of epochs that are not kept yet; `on_kept` tells that they are."""
        epochs = {each.region: each.epoch for each in manifests}
        return [
            self._unkept[number]
            for region, epoch in epochs.items()
            for each, _, number in self._open[region]
            if each <= epoch and number in self._unkept
        ]

    def on_kept(self, records: Iterable[QuarantinedRecord]) -> None:
        for each in records:
            self._unkept.pop(each.number, None)

    def _message(self, record: QuarantinedRecord) -> Quarantine:
        return Quarantine(
            app_id=self._app_id,
            launch=self._launch,
            number=record.number,
            processor_id=record.processor_id,
            value=record.value,
            event_time_ms=record.event_time_ms,
            error=record.error,
            at_ms=record.at_ms,
        )


class AppReplays:
    """Gives records back to tasks, and once more after a restart that they would not survive.

    The master has a record until an epoch has it: if this app master is lost before, it can be
    given back once more. Of a run that keeps its quarantine itself a record leaves the log
    together with the first epoch that has it: neither lost nor twice.
    """

    def __init__(
        self,
        app_id: AppId,
        tell: Callable[[ExecutorId, Any], None],
        tell_master: Callable[[Any], None],
    ) -> None:
        self._app_id = app_id
        self._tell, self._tell_master = tell, tell_master
        self._replays = GivenBack()

    def give(
        self, core: ApplicationCore, records: Iterable[QuarantinedRecord]
    ) -> tuple[QuarantinedRecord, ...]:
        given = []
        for record in records:
            task = task_of(record.error.task)
            region = core.regions.of_task(task)
            if region is None or region.attempt is None or not core.takes_records(task):
                continue
            if self._replays.begin(record, task, region.attempt):
                self._inject(region, task, record)
            given.append(record)
        return tuple(given)

    def want(self, kept: Iterable[KeptRecord]) -> None:
        """Give records back that were asked for while nothing ran, as the first of their tasks."""
        for each in kept:
            if each.is_wanted:
                self._replays.begin(each.record, task_of(each.record.error.task), 0)

    def on_taken(self, core: ApplicationCore, message: RecordInjected) -> None:
        region = core.regions.in_attempt(message.attempt)
        if region is not None:
            epoch = message.epoch or region.epochs.next_to_end
            self._replays.on_taken(message.number, message.attempt, epoch)

    def on_start(self, core: ApplicationCore, executor_id: ExecutorId, attempt: int) -> None:
        """Give tasks that are about to start what no epoch has, before all other records."""
        if (region := core.regions.in_attempt(attempt)) is None:
            return
        for task in self._replays.tasks():
            if region.placement.get(task) == executor_id:
                self._next(region, task, attempt)

    def on_tick(self, core: ApplicationCore) -> None:
        """Give records again where a region has gone back to an epoch without them.

        The master is told of those that an epoch has.
        """
        for task in self._replays.tasks():
            if (region := core.regions.of_task(task)) is not None:
                self._next(region, task, region.attempt if core.takes_records(task) else None)

    def in_epochs(self, manifests: Sequence[Manifest]) -> list[int]:
        """Return the numbers of the records that these epochs are the first to have."""
        return self._replays.in_epochs([(each.attempt, each.epoch) for each in manifests])

    def _next(self, region: Region, task: TaskId, running: int | None) -> None:
        unstored = region.history.unstored
        stored = [each for each in region.history.manifests if each is not unstored]
        newest = (stored[-1].attempt, stored[-1].epoch) if stored else (0, 0)
        news = self._replays.next_steps(task, running, newest)
        for record in news.again:
            self._inject(region, task, record)
        self._forget(news.done)

    def on_end(self, core: ApplicationCore | None) -> None:
        if core is not None:
            self.on_tick(core)

    def repeat(self) -> None:
        self._forget(self._replays.done)

    def _forget(self, numbers: tuple[int, ...]) -> None:
        if numbers:
            self._tell_master(ReplayQuarantined(app_id=self._app_id, numbers=numbers))

    def _inject(self, region: Region, task: TaskId, record: QuarantinedRecord) -> None:
        assert region.attempt is not None, "its tasks run"
        inject = InjectRecord(
            task_id=task,
            attempt=region.attempt,
            number=record.number,
            value=record.value,
            event_time_ms=record.event_time_ms,
        )
        self._tell(region.placement[task], inject)


def moved(kept: KeptRecord, old: Layout, new: Layout) -> KeptRecord:
    """Return a record of one graph with the task that takes it in another one.

    That is the one that begins with the same step; of a record that had come further, all steps
    before it and the one behind have to be the same. If there is none, the record stays without a
    task, and cannot be given back.
    """
    record = kept.record
    task = task_of(record.error.task)
    before = _steps_of(old, ProcessorId(task.processor))
    heads = {place.processor: each for each, place in new.items() if place.place == 0}
    now = next((pid for pid, head in heads.items() if before[:1] == [head]), ProcessorId(-1))
    after, place = _steps_of(new, now), OUTPUT  # Where it cannot be told: all are the same.
    with suppress(ProtocolError):
        value = decode_value(record.value)
        place = value.place if isinstance(value, Midway) else 0
    length = len(before) + 1 if place == OUTPUT else place + 2 if place else 1
    tasks = next((p.parallelism for p in old.values() if p.processor == task.processor), 0)
    tasks_now = next((p.parallelism for p in new.values() if p.processor == now), 0)
    is_taken = bool(after) and before[:length] == after[:length] and tasks_now in {1, tasks}
    text = str(TaskId(now, task.task_index if tasks_now == tasks else 0)) if is_taken else ""
    error = replace(record.error, task=text)
    record = replace(record, processor_id=now, error=error)
    return replace(kept, record=record, is_wanted=kept.is_wanted and is_taken)


def _steps_of(layout: Layout, processor: ProcessorId) -> list[str]:
    places = sorted(
        (place.place, step) for step, place in layout.items() if place.processor == processor
    )
    return [step for _, step in places]


def task_of(text: str) -> TaskId:
    processor, _, index = text.partition(".")
    if processor.isdecimal() and index.isdecimal():
        return TaskId(int(processor), int(index))
    return TaskId(-1, -1)
