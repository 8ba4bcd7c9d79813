"""The records of one application that go into quarantine, and those that are given back."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from msgspec.structs import replace

from gearpy.core.app.application import ApplicationCore
from gearpy.core.app.regions.region import Region
from gearpy.core.app.replays import GivenBack
from gearpy.ids import AppId, ExecutorId, TaskId
from gearpy.messages.app import InjectRecord, RecordInjected, RecordQuarantined
from gearpy.messages.client import QuarantinedRecord, ReplayQuarantined
from gearpy.messages.cluster import Quarantine
from gearpy.messages.summaries import ErrorCard

#: A record that was put aside: its task, its value, and why; its time may be that of its arrival.
_Key: TypeAlias = tuple[str, bytes, str]


class AppQuarantine:
    """Numbers records, and keeps them until the master has stored them.

    What a region has put aside since the epoch that it goes back to comes again, and is there.
    """

    def __init__(self, app_id: AppId, launch: int, records_max: int) -> None:
        self._app_id = app_id
        self._launch = launch
        self._records_max = records_max
        self._count = 0
        self._unstored: dict[int, Quarantine] = {}
        #: By region: what was put aside in epochs that may not be complete, and what comes again.
        self._open = defaultdict[int, list[tuple[int, _Key]]](list)
        self._again = defaultdict[int, Counter[_Key]](Counter)
        self._attempts: dict[int, int] = {}

    @property
    def unstored(self) -> list[Quarantine]:
        return list(self._unstored.values())

    def on_begin(self, region: int, attempt: int, epoch: int) -> None:
        """Note that an attempt goes on from the end of an epoch; told again, nothing changes."""
        if self._attempts.get(region) != attempt:
            self._attempts[region] = attempt
            lost = [key for each, key in self._open.pop(region, ()) if each > epoch]
            self._again[region].update(lost)

    def add(self, message: RecordQuarantined, region: int) -> Quarantine | ErrorCard | None:
        """Return the record for the master to store, or the cause of the application's failure.

        None: it is there.
        """
        error = message.error
        key = (error.task, message.value, error.cause)
        self._open[region].append((error.epoch, key))
        if self._again[region][key]:
            self._again[region][key] -= 1
            return None
        self._count += 1
        if self._count > self._records_max:
            cause = (
                f"more than {self._records_max} records were put into quarantine, the last one "
                f"because of: {message.error.cause}"
            )
            return replace(message.error, cause=cause)
        record = self._unstored[self._count] = Quarantine(
            app_id=self._app_id,
            launch=self._launch,
            number=self._count,
            processor_id=message.processor_id,
            value=message.value,
            event_time_ms=message.event_time_ms,
            error=message.error,
        )
        return record

    def on_stored(self, number: int) -> None:
        self._unstored.pop(number, None)


class AppReplays:
    """Gives records back to tasks, and once more after a restart that they would not survive.

    The master has a record until an epoch has it: if this app master is lost before, it can be
    given back once more.
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

    def on_taken(self, core: ApplicationCore, message: RecordInjected) -> None:
        region = core.regions.in_attempt(message.attempt)
        if region is not None:
            next_to_end = region.epochs.next_to_end
            self._replays.on_taken(message.number, message.attempt, next_to_end)

    def on_tick(self, core: ApplicationCore) -> None:
        """Give records again where a region has gone back to an epoch without them.

        The master is told of those that an epoch has.
        """
        done: tuple[int, ...] = ()
        for task in self._replays.tasks():
            if (region := core.regions.of_task(task)) is None:
                continue
            running = region.attempt if core.takes_records(task) else None
            unstored = region.history.unstored
            stored = [each for each in region.history.manifests if each is not unstored]
            newest = (stored[-1].attempt, stored[-1].epoch) if stored else (0, 0)
            news = self._replays.next_steps(task, running, newest)
            for record in news.again:
                self._inject(region, task, record)
            done += news.done
        self._forget(done)

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


def task_of(text: str) -> TaskId:
    processor, _, index = text.partition(".")
    if processor.isdecimal() and index.isdecimal():
        return TaskId(int(processor), int(index))
    return TaskId(-1, -1)
