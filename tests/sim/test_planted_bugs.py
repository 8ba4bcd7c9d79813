"""Tests of the simulator: of each class of bug one is planted, and some seed must find it.

A simulator that finds nothing may be blind. The bugs are put into the product by `monkeypatch`,
for one test each; the product has no switch for them. The same seeds find nothing without them,
see `test_cluster` and `test_exactly_once`. A bug that is not found any more means that a fault
is missing or too rare: repair the simulator, and do not raise the number of seeds.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import pytest

from gearpy.core.app.decisions import Command, StoreManifest
from gearpy.core.app.deployment import Send
from gearpy.core.app.regions.region_epochs import RegionEpochs
from gearpy.core.flow.alignment import LinkAlignment
from gearpy.core.flow.link import ReceiverCounts, Verdict
from gearpy.ids import SessionId, TaskId
from gearpy.messages.app import CommitEpoch, EpochStored
from gearpy.storage.checkpoints import MemoryCheckpoints, StoredFile
from gearpy.storage.folder.api import TEMPORARY
from gearpy.storage.folder.memory import MemoryFolder
from gearpy.task.runtime import inlet
from tests.bench.simulate import SeedResult, run_seed, run_task_seed
from tests.world import stores
from tests.world.cluster import ClusterSimulation, Process

pytestmark = pytest.mark.usefixtures("no_log")


def first_found(run: Callable[[int], SeedResult], *, seeds: int, first: int = 0) -> SeedResult:
    """Return the first seed that went wrong; where one is known, it is begun just before it."""
    for seed in range(first, first + seeds):
        if (result := run(seed)).problem:
            return result
    raise AssertionError(f"none of {seeds} seeds has found it")


def never_hold_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: no link waits for others that have not ended the epoch."""
    never = partial(LinkAlignment, is_holding_back=False)
    monkeypatch.setattr(inlet, "LinkAlignment", never)


def test_tasks_without_alignment_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    never_hold_back(monkeypatch)

    result = first_found(run_task_seed, seeds=100)

    assert "too much" in result.problem or "missing" in result.problem, result


def test_a_cluster_without_alignment_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    never_hold_back(monkeypatch)

    result = first_found(run_seed, seeds=200, first=5)

    assert "too " in result.problem or "missing" in result.problem, result


def test_a_commit_before_the_manifest_is_stored_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    on_stored = RegionEpochs.on_stored

    def and_commit(self: RegionEpochs, message: EpochStored, now_ms: int) -> list[Command]:
        commands = on_stored(self, message, now_ms)
        early: list[Command] = [
            Send(
                executor_id=executor_id,
                message=CommitEpoch(version=0, attempt=message.attempt, epoch=message.epoch),
            )
            for command in commands
            if isinstance(command, StoreManifest)
            for executor_id in self._executors
        ]
        return early + commands

    monkeypatch.setattr(RegionEpochs, "on_stored", and_commit)

    result = first_found(run_seed, seeds=400)

    assert "was committed too early" in result.problem, result


class ForgetfulCheckpoints(MemoryCheckpoints):
    def __init__(self) -> None:
        super().__init__()
        self.last = ""

    def save(self, name: str, chunks: Iterable[bytes]) -> StoredFile:
        self.last = name
        return super().save(name, chunks)


def test_a_store_that_answers_before_it_has_synced_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A crash then takes the last save along: a snapshot, or what the coordinator log was told."""
    kill = ClusterSimulation.kill

    def and_lose(self: ClusterSimulation, process: Process) -> None:
        stored = self.checkpoints.stored
        if process.is_alive and isinstance(stored, ForgetfulCheckpoints) and stored.last:
            stored.drop(stored.last)
        kill(self, process)

    monkeypatch.setattr(stores, "MemoryCheckpoints", ForgetfulCheckpoints)
    monkeypatch.setattr(ClusterSimulation, "kill", and_lose)

    result = first_found(run_seed, seeds=300)

    assert result.problem


def test_a_master_log_that_is_not_synced_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    append = MemoryFolder.append

    def append_in_memory(self: MemoryFolder, name: str, data: bytes) -> None:
        before = self.files[name].durable if name in self.files else b""
        append(self, name, data)
        if not name.endswith(TEMPORARY):
            self.files[name].durable = before

    monkeypatch.setattr(MemoryFolder, "append", append_in_memory)

    result = first_found(run_seed, seeds=300, first=14)

    is_killed = any("master killed" in fault for fault in result.faults)
    assert is_killed or "LogDamaged" in result.problem, result


def test_data_of_stale_sessions_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a task has sent before a restart then counts beside what its successor sends.

    Epochs alone would show it, as none of an older attempt comes twice: that a link has gone back
    is a failure by itself, and the restart that follows repairs it. So this is unplugged as well.
    """
    on_data, take = ReceiverCounts.on_data, LinkAlignment.take

    def accept(self: ReceiverCounts, source: TaskId, session: SessionId, seq: int) -> Verdict:
        verdict = on_data(self, source, session, seq)
        return "accept" if verdict == "stale" else verdict

    def go_back(
        self: LinkAlignment[Any], link: TaskId, message: Any, epoch: int | None
    ) -> Sequence[Any]:
        newest = self.newest.get(link)
        if epoch is not None and newest is not None:
            epoch = max(epoch, newest)
        return take(self, link, message, epoch)

    monkeypatch.setattr(ReceiverCounts, "on_data", accept)
    monkeypatch.setattr(LinkAlignment, "take", go_back)

    result = first_found(run_seed, seeds=300, first=22)

    assert "too " in result.problem or "missing" in result.problem, result
