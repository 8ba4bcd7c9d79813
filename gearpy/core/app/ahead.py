"""State that the processes of the next version read before the version that runs has ended."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from gearpy.core.app.deployment import Send
from gearpy.core.dag.graph import Dag, regions_of
from gearpy.core.dag.state_moves import Layout
from gearpy.core.dag.taken_state import TakenState
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import MAX_MS, ExecutorId, ProcessorId, TaskId
from gearpy.messages.app import ReadAhead, StateReadAhead

#: State that is stored or read within this time may as well be so in the pause.
_SHORT_MS: Final = 200
#: Epochs end one after the other while each is stored in so much less time than the one before:
#: state may change as fast as it is stored.
_GAIN: Final = 0.8
_ROUNDS_MAX: Final = 8
#: The last epoch of the old version does not wait longer than this: for tens of gigabytes at rest.
_WITHIN_MS: Final = 300_000


class ReadingAhead:
    """Lets executors read stored epochs, in rounds, where the tasks of the next version will be.

    The first round reads all, each later one what has changed since, so that only what changes
    while one epoch is stored is left for the pause. ``old`` is None where tasks keep their state.
    """

    def __init__(
        self, dag: Dag, placement: Mapping[TaskId, ExecutorId], *, old: Layout | None = None
    ) -> None:
        self._version = dag.version
        self._dag = dag
        self._old = old
        self._placement = placement
        self._regions = {pid: number for number, pids in enumerate(regions_of(dag)) for pid in pids}
        self._epochs: dict[int, int] = {}  # The newest of each region of the old version.
        self._read: dict[int, int] = {}  # The epoch that is read, by region of the next version.
        self._waiting: set[tuple[ExecutorId, int]] = set()  # These have not answered.
        self._round = 0
        self._round_began_ms = self._wanted_ms = 0
        self._took_ms = MAX_MS  # The epoch of the round before was stored in this time.
        self._until_ms: int | None = None
        self.is_done = not placement
        self.wants_epochs = False  #: An epoch of each region should end soon.

    def advance(self, newest: Mapping[int, Manifest], now_ms: int) -> list[Send]:
        """Begin the next round as soon as there are epochs to read; end if it takes too long."""
        if self._until_ms is None:
            self._until_ms = now_ms + _WITHIN_MS
            if not newest:  # All begins at the beginning.
                self.is_done = True
        if now_ms >= self._until_ms:
            self.is_done = True
        if self.is_done or self._waiting or not self._is_new(newest):
            return []
        self._round_began_ms = now_ms
        self.wants_epochs = False
        sends = self._next_round(newest)
        self.is_done = not sends
        if self._round > 1:
            took_ms = now_ms - self._wanted_ms
            before_ms, self._took_ms = self._took_ms, took_ms
            gains = _SHORT_MS <= took_ms < _GAIN * before_ms
            self.is_done = self.is_done or not gains or self._round == _ROUNDS_MAX
            self.wants_epochs, self._wanted_ms = not self.is_done, now_ms
        return sends

    def is_awaited(self, message: StateReadAhead) -> bool:
        return message.version == self._version and (
            self._read.get(message.region) == message.epoch
        )

    def read_last(self, newest: Mapping[int, Manifest]) -> list[Send]:
        """Have the last epochs of the old version read while its sinks are told and its tasks stop.

        Nobody waits for an answer: what is left to be read then is so by the launch of the tasks.
        """
        return self._next_round(newest) if self._round and self._is_new(newest) else []

    def on_read(self, message: StateReadAhead, now_ms: int) -> None:
        if not self.is_awaited(message):
            return
        self._waiting.discard((message.executor_id, message.region))
        if not self._waiting and self._round == 1:
            self.is_done = now_ms - self._round_began_ms < _SHORT_MS
            self.wants_epochs, self._wanted_ms = not self.is_done, now_ms

    def _is_new(self, newest: Mapping[int, Manifest]) -> bool:
        return all(each.epoch > self._epochs.get(number, 0) for number, each in newest.items())

    def _next_round(self, newest: Mapping[int, Manifest]) -> list[Send]:
        self._epochs = {number: each.epoch for number, each in newest.items()}
        self._round += 1
        if self._old is not None:  # The files of each region that its tasks take over.
            taken = TakenState(newest.values(), self._old, self._dag)
            found: dict[int, Manifest] = {}
            for number, pids in enumerate(regions_of(self._dag)):
                sources = [taken.manifest(task) for pid in pids for task in taken.old_tasks(pid)]
                if files := taken.files(pids):
                    last = max(sources, key=lambda each: each.epoch)
                    found[number] = replace(last, region=number, snapshots=files)
            newest = found
        self._read = {number: each.epoch for number, each in newest.items()}
        sends: list[Send] = []
        for executor_id in sorted({*self._placement.values()}):
            for region, manifest in sorted(newest.items()):
                tasks = {
                    task
                    for task, place in self._placement.items()
                    if place == executor_id and self._regions[ProcessorId(task.processor)] == region
                }
                if not tasks:
                    continue
                self._waiting.add((executor_id, region))
                message = ReadAhead(
                    version=self._version,
                    region=region,
                    epoch=manifest.epoch,
                    tasks=tuple(sorted(tasks)),
                    snapshots=tuple(file for file in manifest.chain if tasks & {*file.tasks}),
                )
                sends.append(Send(executor_id=executor_id, message=message))
        return sends
