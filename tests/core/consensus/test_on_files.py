"""The same simulation, with disks that are files: bytes that a crash tears, and are read again."""

import random
from itertools import count

import pytest

from gearpy.core.consensus.stored import DiskWrite, StoredLog
from gearpy.errors import LogDamaged
from gearpy.storage.folder.api import TEMPORARY
from gearpy.storage.folder.memory import MemoryFolder
from gearpy.storage.log import MemoryLog
from gearpy.storage.replica_store import ReplicaStore
from tests.core.consensus_world import ConsensusWorld, Disk


class _PowerCut(Exception):
    """The process is gone."""


class FileDisk(Disk):
    """A disk whose writes are appended to a file; a crash tears the one that is under way."""

    def __init__(self, stored: StoredLog) -> None:
        super().__init__(stored)
        self._folder = MemoryFolder()
        self._store = ReplicaStore(MemoryLog(self._folder), stored)

    def finish(self) -> None:
        assert self.writing is not None
        write, self.writing = self.writing, None
        self._store.write(write)

    def crash(self, rng: random.Random) -> None:
        if self.writing is not None:
            self._tear(self.writing, rng.randrange(1, 12))
            self.writing = None
        self._folder.crash(rng)
        self._store = ReplicaStore(MemoryLog(self._folder), StoredLog())
        self.stored = self._store.stored

    def _tear(self, write: DiskWrite, steps: int) -> None:
        """Begin a write, and lose power at one of its steps, unless it is done before."""
        done = count(1)

        def step(_: str) -> None:
            if next(done) >= steps:
                raise _PowerCut

        self._folder.on_step = step
        try:
            self._store.write(write)
        except _PowerCut:
            pass
        finally:
            self._folder.on_step = lambda _: None


def run_on_files(seeds: int) -> None:
    for seed in range(seeds):
        ConsensusWorld(seed, disk=FileDisk).run(events_max=400)


@pytest.mark.parametrize("block", range(2))
def test_all_rules_hold_on_files(block: int) -> None:
    for seed in range(block * 30, block * 30 + 30):
        result = ConsensusWorld(seed, disk=FileDisk).run(events_max=400)

        assert not result.problem, result


def test_a_member_that_has_lost_what_it_promised_does_not_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file system that loses synced appends would have it vote twice, where marks are left."""
    append = MemoryFolder.append

    def append_in_memory(self: MemoryFolder, name: str, data: bytes) -> None:
        before = self.files[name].durable if name in self.files else b""
        append(self, name, data)
        if name.startswith("segment") and not name.endswith(TEMPORARY):
            self.files[name].durable = before

    monkeypatch.setattr(MemoryFolder, "append", append_in_memory)

    with pytest.raises(LogDamaged, match="bytes were acknowledged"):
        run_on_files(20)
