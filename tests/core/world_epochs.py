"""The epochs of an application in a small world: its log and files, and what must hold of them."""

from typing import Any

from gearpy.core.app.application import (
    Command,
    DropSnapshots,
    Ended,
    EpochAborted,
    EpochsRetired,
    FellBack,
    StoreManifest,
)
from gearpy.core.epoch.epochs import Manifest, decode_manifest, encode_manifest
from gearpy.ids import MIN_MS
from gearpy.messages.app import (
    BeginEpoch,
    CommitEpoch,
    LaunchTasks,
    StartAllTasks,
    StopAllTasks,
)
from tests.core.world_cluster import ClusterWorld
from tests.core.world_parts import AppMaster, Attempt, Group, Process

__all__ = ["EpochWorld"]


class EpochWorld(ClusterWorld):
    """Keeps the coordinator log of the application; asserts what must hold of epochs and files."""

    def _manifests(self, region: int | None = None) -> list[Manifest]:
        """Return what is in the log, of a region or of all, oldest first."""
        found = [decode_manifest(data) for _, data in sorted(self._epoch_log.items())]
        return [each for each in found if region in (None, each.region)]

    # -- what is sent ----------------------------------------------------------------------

    def _check_sent(self, app_master: AppMaster, process: Process, message: Any) -> None:
        if isinstance(message, LaunchTasks):
            self._check_launch(app_master, process, message)
        elif isinstance(message, StartAllTasks) and message.start_time_ms != MIN_MS:
            assert message.start_time_ms <= self._attempts[message.attempt].progress
        elif isinstance(message, BeginEpoch):
            self._check_begin(app_master, message)
        elif isinstance(message, CommitEpoch):
            assert (message.attempt, message.epoch) in self._progress_at, "committed too early"
        elif isinstance(message, StopAllTasks) and message.completed:
            self._check_good_end(message)

    def _check_begin(self, app_master: AppMaster, message: BeginEpoch) -> None:
        """What must hold when an epoch begins to end, or is announced again."""
        attempt = self._attempts[message.attempt]
        last = app_master.announced.get(attempt.region, (0, 0))
        now = (message.attempt, message.epoch)
        assert now >= last, "epochs went back"
        if now == last:
            assert message.cut_time_ms == attempt.wanted[message.epoch], "another cut time"
            return
        assert message.epoch > last[1], "an epoch was announced twice"
        app_master.announced[attempt.region] = now
        attempt.wanted[message.epoch] = message.cut_time_ms
        if message.cut_time_ms is not None:
            assert self.limits.epoch_cut == "event-time"
            assert message.cut_time_ms > app_master.cut_times.get(attempt.region, MIN_MS)
            assert message.cut_time_ms > app_master.reported[message.attempt]
            app_master.cut_times[attempt.region] = message.cut_time_ms

    def _check_good_end(self, message: StopAllTasks) -> None:
        """All sinks show all that there is, and that will be so after any restart."""
        attempt = self._attempts[message.attempt]
        shown = min(self._group_of(each, message.attempt).committed for each in attempt.processes)
        wanted = attempt.progress if attempt.has_read_all else self.work
        assert self._progress_at[message.attempt, shown] == wanted, "not all is shown"

    def _group_of(self, process: Process, attempt: int) -> Group:
        group = process.group_of(attempt)
        assert group is not None
        return group

    def _check_launch(self, am: AppMaster, process: Process, message: LaunchTasks) -> None:
        """What must hold when an attempt begins."""
        region = am.manager.regions[message.region]
        newest = am.newest.get(message.region)
        if message.attempt not in self._attempts:
            assert message.attempt > self._last_attempt, "an attempt went back"
            self._last_attempt = message.attempt
            processes = [am.processes[each] for each in sorted(region.executors)]
            for each in processes:
                group = each.groups.get(message.region)
                assert group is None or group.is_stopped, "two attempts at a time"
            assert newest is None or (newest.region, newest.epoch) in self._epoch_log
            progress = self._progress_at[newest.attempt, newest.epoch] if newest else 0
            attempt = Attempt(
                message.attempt, message.region, processes, progress, self._last_session
            )
            self._attempts[message.attempt] = attempt
        sessions = [task.session for task in message.tasks]
        assert min(sessions) > self._attempts[message.attempt].last_session, "a session went back"
        self._last_session = max(self._last_session, *sessions)
        wanted = {task.task_id for task in message.tasks}
        assert wanted == {
            task for task, at in region.placement.items() if at == process.executor_id
        }
        files = newest.snapshots if newest else ()
        assert message.snapshots == tuple(each for each in files if wanted & set(each.tasks))
        assert message.epoch > (newest.epoch if newest else 0)

    # -- what is decided -------------------------------------------------------------------

    def _on_epochs(self, app_master: AppMaster, command: Command) -> None:
        match command:
            case StoreManifest():
                self._store(app_master, command.manifest)
            case EpochsRetired():
                self._retire(app_master, command)
            case FellBack():
                self._on_fell_back(app_master, command)
            case EpochAborted():
                self.aborts += 1
                self._note(f"epoch {command.epoch} of region {command.region}: {command.reason}")
            case DropSnapshots():
                self._drop(app_master, command)

    def _store(self, app_master: AppMaster, manifest: Manifest) -> None:
        newest = app_master.newest.get(manifest.region)
        assert newest is None or manifest.epoch >= newest.epoch
        if newest is None or manifest.epoch > newest.epoch:
            self._check_manifest(app_master, manifest)
        app_master.newest[manifest.region] = manifest
        self._note(f"epoch {manifest.epoch} of region {manifest.region} complete")
        if self.rng.random() > 0.1:  # Else the log cannot be written just now.
            self._send(app_master, "log", lambda: self._put(app_master, manifest))

    def _check_manifest(self, app_master: AppMaster, manifest: Manifest) -> None:
        attempt = self._attempts[manifest.attempt]
        locations = [file.location for file in manifest.snapshots]
        assert len(locations) == len(set(locations)), "a file twice"
        assert all(each in self.files for each in locations)
        tasks = {task for file in manifest.snapshots for task in file.tasks}
        assert tasks == app_master.manager.regions[manifest.region].placement.keys()
        progress, wanted = attempt.cuts[manifest.epoch], attempt.wanted[manifest.epoch]
        if manifest.epoch in attempt.missed:
            self.missed_cuts += 1
            assert manifest.cut_time_ms is None
        else:
            assert manifest.cut_time_ms == wanted
        if manifest.cut_time_ms is not None:
            self.cut_by_time += 1
            assert 10 * progress < manifest.cut_time_ms
            assert progress == self.work or manifest.cut_time_ms <= 10 * (progress + 1)

    def _put(self, app_master: AppMaster, manifest: Manifest) -> None:
        if app_master is not self.app_master or not app_master.is_alive:
            return
        region, epoch, attempt = manifest.region, manifest.epoch, manifest.attempt
        self._epoch_log[region, epoch] = encode_manifest(manifest)
        self._progress_at[attempt, epoch] = self._attempts[attempt].cuts[epoch]
        self._were_stored |= {file.location: region for file in manifest.snapshots}
        manager = app_master.manager
        self._send(
            "log",
            app_master,
            lambda: self._do(
                app_master, lambda now: manager.on_manifest_stored(region, epoch, now)
            ),
        )

    def _retire(self, app_master: AppMaster, command: EpochsRetired) -> None:
        for epoch in command.epochs:
            self._epoch_log.pop((command.region, epoch))
        kept = self._manifests(command.region)
        assert len(kept) == self.limits.epochs_retained
        assert app_master.newest[command.region] in kept

    def _on_fell_back(self, app_master: AppMaster, command: FellBack) -> None:
        self._note(command.text)
        self.fallbacks += 1
        assert command.location in self.damaged, "it is whole"
        for epoch in command.epochs:
            data = self._epoch_log.pop((command.region, epoch))
            files = decode_manifest(data).snapshots
            assert command.location in [file.location for file in files], "nothing wrong with it"
        left = self._manifests(command.region)[-1]
        assert left.epoch == command.to
        app_master.newest[command.region] = left

    def _drop(self, app_master: AppMaster, command: DropSnapshots) -> None:
        kept = {
            file.location
            for manifest in [*app_master.newest.values(), *self._manifests()]
            for file in manifest.snapshots
        }
        for region in app_master.manager.regions:
            if region.is_running and region.attempt is not None:
                for process in self._attempts[region.attempt].processes:
                    group = self._group_of(process, region.attempt)
                    kept |= {file.location for file in group.chain}
        for file in command.files:
            assert file.location not in kept, f"{file.location} is needed"
            assert self.files.pop(file.location, None), f"{file.location} dropped twice"

    def _check_failed(self, app_master: AppMaster, ended: Ended) -> None:
        """Either the budget is spent, or nothing is left to go on from."""
        assert ended.cause is not None
        self.is_beyond_repair = "gear checkpoint verify" in ended.cause.cause
        if not self.is_beyond_repair:
            assert app_master.manager.restarts == self.limits.restarts.max_restarts
            return
        number = int(ended.cause.cause.split()[1])
        for manifest in self._manifests(number):
            assert {file.location for file in manifest.snapshots} & self.damaged
