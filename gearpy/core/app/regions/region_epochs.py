"""The epochs of one region, attempt after attempt: begun, stored, committed, gone back to."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from gearpy.core.app import causes
from gearpy.core.app.decisions import (
    Command,
    DamageFound,
    EpochAborted,
    EpochsRetired,
    FellBack,
    RecoveryLimits,
    StoreManifest,
)
from gearpy.core.app.deployment import Send
from gearpy.core.epoch.epochs import REPEAT_MS, CommitRound, EpochCoordinator, Manifest
from gearpy.core.epoch.history import AttemptFiles, EpochHistory
from gearpy.core.epoch.pace import CutTimes, EpochPace
from gearpy.ids import MAX_MS, MIN_MS, ExecutorId, TaskId
from gearpy.messages.app import (
    AbortEpoch,
    BeginEpoch,
    CommitEpoch,
    EpochCommitted,
    EpochStored,
    EpochUnstored,
    ExecutorMessage,
    SnapshotFile,
    SnapshotsDamaged,
    TaskClock,
)

#: So long what is in flight at the end of a last epoch has to land, before another one ends. It
#: doubles with each that follows, as each stores once more what waits for a server that is away.
_LAND_MS: Final = 100
_LAND_MAX_MS: Final = 1_600
#: Files of so many attempts are known, for what executors tell late.
_ATTEMPTS_MAX: Final = 16


class RegionEpochs:
    """Ends epochs while the tasks of a region run, and keeps the epochs that a restart needs.

    When all tasks have come to the end of their streams, or all sources have caught up with what
    was there, or the region is drained, one last epoch makes their results complete; the region is
    closed when it is stored and all sinks know.

    Invariant: the epoch that an attempt goes on from is stored; no sink is told of one that is not.
    No epoch number comes twice. Each stored file is needed, awaits an epoch, or is given out once
    to be deleted.

    Epochs end from ``first_end_ms`` on. What is complete while it ``is_held`` is not stored before
    `release`. Sources halt at ``halt_ms``, so no epoch but the last is told to end there.
    """

    def __init__(
        self,
        *,
        region: int,
        version: int,
        placement: Mapping[TaskId, ExecutorId],
        limits: RecoveryLimits,
        manifests: Iterable[Manifest],
        owns: Callable[[str], bool],
        first_epoch: int = 1,
    ) -> None:
        self._region = region
        self._version = version
        self.place(placement)
        self._timeout_ms = limits.epoch_timeout_ms
        self._owns = owns
        self.history = EpochHistory(retained=limits.epochs_retained, manifests=manifests)
        newest = 0 if self.history.newest is None else self.history.newest.epoch
        self.next_epoch = max(first_epoch, newest + 1)
        self.first_end_ms, self.halt_ms = MIN_MS, MAX_MS
        self.is_held = False
        self._pace = EpochPace(
            interval_ms=limits.epoch_interval_ms, max_overhead_percent=limits.max_overhead_percent
        )
        self._cut_times: CutTimes | None = None
        if limits.epoch_cut == "event-time":
            self._cut_times = CutTimes(newest_ms=self.history.cut_time_ms)
        self._attempt = 0
        self._is_begun = False
        self._base: Manifest | None = None
        self._coordinator: EpochCoordinator | None = None
        self._commit: CommitRound | None = None
        self._final_epoch: int | None = None
        self._is_whole = False  # The streams were at their ends when the last epoch began to end.
        self._is_draining = False
        self._last_cut_ms: int | None = None  # A drain ends at this event time.
        self.is_wanted = False  #: A task keeps so much that the epoch should end before its time.
        self.keeps_files = False  #: Another version reads them: none is written anew.
        self.stored = 0  #: So many epochs of the present attempt are.
        self._open_epochs: set[int] = set()  # Records were in flight at their ends.
        self._last_at_ms = 0  # When another last epoch may begin, after one of those.
        self._land_ms = _LAND_MS
        self._store_again_ms = 0
        self._files: dict[int, AttemptFiles] = {}
        self._garbage: dict[str, SnapshotFile] = {}
        self._clocks: dict[TaskId, int] = {}
        self._idle: set[TaskId] = set()
        self._finished: set[TaskId] = set()
        self._caught_up: set[TaskId] = set()
        self.has_caught_up = False  #: All that was there was read when the last epoch began to end.
        self.aborted = 0  #: So many epochs were given up.
        self.last_abort = ""  #: It names the last one, and the reason.

    def place(self, placement: Mapping[TaskId, ExecutorId]) -> None:
        self._placement = placement
        self._executors = sorted(set(placement.values()))

    @property
    def next_to_end(self) -> int:
        if self._coordinator is None:
            return self.next_epoch
        return self._coordinator.epoch + self._coordinator.is_ending

    @property
    def unused_epoch(self) -> int:
        last = self.next_epoch if self._coordinator is None else self._coordinator.epoch
        return last + 1

    @property
    def is_finished(self) -> bool:
        return self._coordinator is not None and len(self._finished) == len(self._placement)

    @property
    def is_caught_up(self) -> bool:
        """Whether all sources have given what was there when this attempt opened them."""
        done = len(self._finished | self._caught_up)
        return self._coordinator is not None and done == len(self._placement)

    @property
    def have_all_reported(self) -> bool:
        return len(self._clocks) == len(self._placement)

    @property
    def is_closed(self) -> bool:
        return (
            self._commit is not None
            and self._commit.epoch == self._final_epoch
            and self._commit.is_done
        )

    @property
    def is_drained(self) -> bool:
        """Whether the last epoch had begun to end before the streams came to their ends.

        What follows from an end behind that is in no epoch, however early the tasks tell of it.
        """
        return self.is_closed and not self._is_whole

    @property
    def last_took_ms(self) -> int:
        return self._pace.last_took_ms

    def is_damage(self, message: SnapshotsDamaged) -> bool:
        """Tell whether a file that the attempt has gone on from is known to be damaged.

        Without its name it only could not be read this time, which is a failure like others.
        """
        return self._base is not None and bool(message.location)

    def knows(self, attempt: int) -> bool:
        return attempt in self._files

    def on_deploy(self, attempt: int) -> Manifest | None:
        assert self.history.unstored is None, "it may have to go back further"
        self._attempt, self._base = attempt, self.history.newest
        self._is_begun, self.stored = True, 0
        self._land_ms = _LAND_MS
        self._files[attempt] = AttemptFiles(self._base.snapshots if self._base else ())
        for old in sorted(self._files)[:-_ATTEMPTS_MAX]:
            del self._files[old]
        self._clocks, self._idle, self._finished, self._caught_up = {}, set(), set(), set()
        if self._cut_times is not None:
            self._cut_times.on_restart()
        return self._base

    def on_ready(self, now_ms: int) -> None:
        self._coordinator = EpochCoordinator(
            region=self._region,
            attempt=self._attempt,
            epoch=self.next_epoch,
            placement=self._placement,
            base=self._base.snapshots if self._base else (),
            pace=self._pace,
            timeout_ms=self._timeout_ms,
            now_ms=now_ms,
        )

    def on_over(self) -> None:
        """Note that the attempt is over, or fails: none of its epochs will be complete."""
        if self._is_begun:
            # Some tasks may have run, and their records may come late.
            # A session that ends before its successor opens is known by its epoch alone.
            last = self.next_epoch if self._coordinator is None else self._coordinator.epoch
            self.next_epoch = last + 1
        self._is_begun = False
        self._coordinator = self._commit = self._final_epoch = None
        if self.is_held and (unstored := self.history.unstored) is not None:
            self._give_out(self.history.discard({unstored.epoch}))
        if self._attempt in self._files:
            self._give_out(self._files[self._attempt].on_over())

    def release(self, now_ms: int) -> Manifest:
        assert self.history.unstored is not None, "it is complete"
        self.is_held, self._store_again_ms = False, now_ms + REPEAT_MS
        return self.history.unstored

    def drain(self, cut_time_ms: int | None = None) -> None:
        """Let sources end, in this attempt and in all that follow, and the next epoch be the last.

        It may end at an event time. Gearpump ends an application wherever it is.
        """
        self._is_draining, self._last_cut_ms = True, cut_time_ms

    def go_on(self) -> None:
        self._is_draining, self._last_cut_ms = False, None

    def fall_back(self, damaged: SnapshotsDamaged) -> FellBack | None:
        """Never go on again from epochs that need a damaged file; None if no other is left.

        Then all stay as they are: files that cannot be read now may be there again later.
        """
        assert self._base is not None, "it had gone on from nothing"
        unusable = self.history.listing(damaged.location)
        epochs = {self._base.epoch, *(each.epoch for each in unusable)}
        left = [each for each in self.history.manifests if each.epoch not in epochs]
        if not left:
            return None
        self._give_out(self.history.discard(epochs))
        return FellBack(
            region=self._region,
            epochs=tuple(sorted(epochs)),
            to=left[-1].epoch,
            location=damaged.location,
            reason=damaged.reason,
        )

    def on_clock(self, clock: TaskClock) -> None:
        self._clocks[clock.task_id] = clock.clock_ms
        if clock.idle:
            self._idle.add(clock.task_id)
        else:
            self._idle.discard(clock.task_id)
        if clock.clock_ms == MAX_MS:
            self._finished.add(clock.task_id)
        if clock.caught_up:
            self._caught_up.add(clock.task_id)
        self.is_wanted = self.is_wanted or clock.wants_epoch
        if self._cut_times is not None:
            self._cut_times.on_clock(clock)

    def want(self, until: int | None = None) -> None:
        """Let the next epoch begin to end at once, unless ``until`` is stored or ends already."""
        newest = 0 if self.history.newest is None else self.history.newest.epoch
        if self._coordinator is not None and self._coordinator.is_ending:
            newest = self._coordinator.epoch
        if until is None or newest < until:
            self.is_wanted = True

    def advance(self, now_ms: int) -> list[Command]:
        commands = self._store_again(now_ms)
        coordinator = self._coordinator
        if coordinator is None:
            return commands
        if coordinator.is_late(now_ms):
            names = ", ".join(map(str, coordinator.missing))
            reason = f"not stored within {coordinator.timeout_ms} ms by executor {names}"
            commands += self._abort(coordinator, now_ms, reason)
        is_at_end = self.is_caught_up or self._is_draining
        if coordinator.is_ending or self.history.unstored is not None or now_ms < self.first_end_ms:
            may_begin = False
        elif is_at_end:
            may_begin = self._final_epoch is None and now_ms >= self._last_at_ms
        else:
            may_begin = self.is_wanted or coordinator.is_due(now_ms)
        if may_begin:
            self.is_wanted = False
            cut_time_ms = None
            if is_at_end:
                self._final_epoch, cut_time_ms = coordinator.epoch, self._last_cut_ms
                self._is_whole = self.is_finished
                self.has_caught_up = self.is_caught_up and not self._is_whole
            elif self._cut_times is not None:
                cut_time_ms = self._cut_times.next_ms()
                if cut_time_ms is not None and cut_time_ms >= self.halt_ms:
                    cut_time_ms = None
            # The application clock would not do: it does not go back when tasks do.
            start_ms = self.history.clock_ms
            busy = [task for task in self._placement if task not in self._finished | self._idle]
            lowest_ms = min((self._clocks.get(task, start_ms) for task in busy), default=start_ms)
            clock_ms = max(start_ms, lowest_ms)
            coordinator.begin(now_ms, clock_ms=clock_ms, cut_time_ms=cut_time_ms)
        if (cut := coordinator.to_announce(now_ms)) is not None:
            commands += self._send(
                BeginEpoch(
                    version=self._version,
                    attempt=self._attempt,
                    epoch=cut.epoch,
                    cut_time_ms=cut.cut_time_ms,
                    is_last=cut.epoch == self._final_epoch and not self._is_whole,
                    keeps_files=self.keeps_files or self._is_draining,
                    caught_up=cut.epoch == self._final_epoch and self.has_caught_up,
                )
            )
        return commands + self._tell_committed(now_ms)

    def on_stored(self, message: EpochStored, now_ms: int) -> list[Command]:
        files = self._files.get(message.attempt)
        if files is None or message.executor_id not in self._executors:
            return []
        self._give_out(files.on_stored(message))
        coordinator = self._coordinator
        if coordinator is None or not coordinator.awaits(message):
            return []
        had_cut_time = coordinator.cut_time_ms is not None
        if message.has_more:
            self._open_epochs.add(message.epoch)
        manifest = coordinator.on_stored(message, now_ms)
        if manifest is None:
            return []
        if self._cut_times is not None and had_cut_time:
            self._cut_times.on_complete(has_missed=manifest.cut_time_ms is None)
        # Let one more epoch follow if records were in flight at the end of the last one.
        epoch = manifest.epoch
        if epoch == self._final_epoch and epoch in self._open_epochs:
            self._final_epoch, self._last_at_ms = None, now_ms + self._land_ms
            self._land_ms = min(2 * self._land_ms, _LAND_MAX_MS)
        self._open_epochs.clear()
        self.is_wanted = False  # Whoever still wants one has told it before this one had ended.
        self.history.on_complete(manifest)
        self._give_out(files.on_complete(manifest))
        self._store_again_ms = now_ms
        return self._store_again(now_ms)

    def on_unstored(self, message: EpochUnstored, now_ms: int) -> list[Command]:
        """Give up an epoch at once that was to go on from a damaged file; the next one need not."""
        told: list[Command] = []
        if self.history.on_damage(message.damaged):
            text = causes.damage_found(message, self._region, self.history)
            told.append(DamageFound(region=self._region, text=text))
        coordinator = self._coordinator
        if coordinator is None or not coordinator.is_ending or message.attempt != self._attempt:
            return told
        if not message.damaged or message.epoch != coordinator.epoch:
            return told
        return [*told, *self._abort(coordinator, now_ms, f"{message.damaged} is damaged")]

    def on_manifest_stored(self, epoch: int, now_ms: int) -> list[Command]:
        """Note that a relaunched app master would go back to this epoch; tell the sinks."""
        retired = self.history.on_stored(epoch)
        self._give_out(self.history.discard(retired))
        commands: list[Command] = []
        if retired:
            commands.append(EpochsRetired(region=self._region, epochs=retired))
        newest = self.history.newest
        if self._coordinator is None or newest is None or newest.attempt != self._attempt:
            return commands
        self.stored += 1
        is_told = self._commit is not None and self._commit.epoch >= newest.epoch
        if self.history.unstored is None and not is_told:
            self._commit = CommitRound(newest.epoch, self._executors, now_ms)
        return commands + self._tell_committed(now_ms)

    def on_committed(self, message: EpochCommitted) -> None:
        if self._commit is not None and message.attempt == self._attempt:
            self._commit.on_committed(message.executor_id, message.epoch)

    def take_garbage(self) -> tuple[SnapshotFile, ...]:
        garbage, self._garbage = tuple(self._garbage.values()), {}
        return garbage

    def _abort(self, coordinator: EpochCoordinator, now_ms: int, reason: str) -> list[Command]:
        epoch = coordinator.epoch
        self.aborted += 1
        self.last_abort = f"epoch {epoch} of region {self._region}: {reason}"
        if self._cut_times is not None and coordinator.cut_time_ms is not None:
            self._cut_times.on_aborted()
        self._final_epoch = None
        coordinator.abort(now_ms)
        abort = AbortEpoch(version=self._version, attempt=self._attempt, epoch=epoch)
        return [EpochAborted(region=self._region, epoch=epoch, reason=reason), *self._send(abort)]

    def _store_again(self, now_ms: int) -> list[Command]:
        manifest = self.history.unstored
        if manifest is None or self.is_held or now_ms < self._store_again_ms:
            return []
        self._store_again_ms = now_ms + REPEAT_MS
        return [StoreManifest(manifest=manifest)]

    def _tell_committed(self, now_ms: int) -> list[Command]:
        if self._commit is None:
            return []
        commit = CommitEpoch(version=self._version, attempt=self._attempt, epoch=self._commit.epoch)
        return self._send(commit, self._commit.to_tell(now_ms))

    def _send(
        self, message: ExecutorMessage, executors: Iterable[ExecutorId] | None = None
    ) -> list[Command]:
        to = self._executors if executors is None else executors
        return [Send(executor_id=each, message=message) for each in to]

    def _give_out(self, files: Iterable[SnapshotFile]) -> None:
        for file in files:
            if self._owns(file.location) and not self.history.needs(file):
                self._garbage[file.location] = file
