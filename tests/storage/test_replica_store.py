"""Tests of the disk of one of several masters."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.consensus.entry_log import EntryLog
from gearpy.core.consensus.stored import LogEntry, StateSnapshot, StoredLog
from gearpy.errors import LogBroken
from gearpy.storage.folder.memory import MemoryFolder
from gearpy.storage.log import MemoryLog
from gearpy.storage.replica_store import ReplicaStore


class _PowerCut(Exception):
    """The process is gone."""


def _new() -> StoredLog:
    return StoredLog.of_members("a", "b", "c")


def test_members_are_those_of_the_first_start() -> None:
    """The configuration may have changed since; the log knows better."""
    log = MemoryLog()
    ReplicaStore(log, _new())

    again = ReplicaStore(log.crash(), StoredLog.of_members("x"))

    assert again.stored == _new()


@given(st.integers(0, 10_000), st.integers(0, 60))
def test_a_crash_at_any_step_leaves_a_write_whole_or_undone(seed: int, steps: int) -> None:
    """Votes and entries that were answered for are there; torn ones are not."""
    rng, left = random.Random(seed), [steps]

    def count(_: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise _PowerCut

    folder = MemoryFolder()
    store = ReplicaStore(MemoryLog(folder), _new())
    log = EntryLog(_new())
    before = after = store.stored.to_bytes()
    folder.on_step = count
    try:
        for number in range(20):
            log.set_term(number + 1, "a")
            log.append([LogEntry(term=log.term, command=bytes([number]))])
            if rng.random() < 0.2:
                log.truncate(log.last_index)
            if rng.random() < 0.2 and log.durable_index > log.snapshot.index:
                index = log.durable_index
                snapshot = StateSnapshot(index=index, term=log.term_at(index) or 0)
                log.compact(snapshot, kept_entries=1)
            write = log.begin_write()
            assert write is not None
            changed = StoredLog.from_bytes(before)
            changed.apply(write)
            after = changed.to_bytes()
            store.write(write)
            log.on_written()
            before = after
    except _PowerCut:
        pass
    folder.on_step = lambda _: None
    folder.crash(rng)

    found = ReplicaStore(MemoryLog(folder), _new()).stored.to_bytes()

    assert found in {before, after}


def test_a_full_disk_breaks_it_for_good() -> None:
    """Nobody knows what is there: the master must end, and others lead."""
    folder = MemoryFolder()
    store, log = ReplicaStore(MemoryLog(folder), _new()), EntryLog(_new())
    log.set_term(1, "a")
    write = log.begin_write()
    assert write is not None

    def full(_: str) -> None:
        raise OSError(28, "No space left on device")

    folder.on_step = full
    with pytest.raises(LogBroken, match="No space left"):
        store.write(write)
    folder.on_step = lambda _: None

    with pytest.raises(LogBroken):
        store.write(write)
