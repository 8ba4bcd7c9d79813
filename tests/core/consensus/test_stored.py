"""Tests of what a member has on disk, and of the entries that it holds."""

import random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.consensus.entry_log import EntryLog
from gearpy.core.consensus.stored import (
    DiskWrite,
    LogEntry,
    StateSnapshot,
    StoredLog,
    decode_write,
    encode_write,
)
from gearpy.errors import ProtocolError


def an_entry(term: int = 1, command: bytes = b"x") -> LogEntry:
    return LogEntry(term=term, command=command)


def a_log(*terms: int) -> EntryLog:
    return EntryLog(
        StoredLog(term=max(terms, default=0), entries=[an_entry(each) for each in terms])
    )


def test_a_write_has_all_changes_since_the_last() -> None:
    log = a_log(1)

    log.set_term(2, "a")
    log.append([an_entry(2)])
    log.append([an_entry(2)])
    write = log.begin_write()

    assert write is not None
    assert (write.term, write.vote, write.first, len(write.entries)) == (2, "a", 2, 2)
    assert log.begin_write() is None


def test_an_entry_is_durable_when_its_write_is_done() -> None:
    log = a_log()
    log.append([an_entry()])
    log.begin_write()
    log.append([an_entry()])

    log.on_written()

    assert log.durable_index == 1


def test_a_replaced_entry_is_not_durable_by_the_write_of_the_old_one() -> None:
    log = a_log(1, 1)
    log.append([an_entry(1)])
    log.begin_write()
    log.truncate(2)
    log.append([an_entry(2)])

    log.on_written()

    assert log.durable_index == 1
    write = log.begin_write()
    assert write is not None
    assert (write.first, [each.term for each in write.entries]) == (2, [2])


def test_entries_are_taken_by_size_and_at_least_one() -> None:
    log = a_log()
    log.append([an_entry(1, b"x" * size) for size in (5, 1, 1, 9)])

    assert [len(log.entries_from(first, 3)) for first in (1, 2, 4, 5)] == [1, 2, 1, 0]


def test_a_compacted_log_keeps_some_entries_for_those_who_are_behind() -> None:
    log = a_log(1, 1, 2, 2)

    log.compact(StateSnapshot(index=3, term=2, state=b"s"), kept_entries=1)

    assert [log.term_at(index) for index in range(5)] == [None, None, 1, 2, 2]


def test_members_are_those_of_the_newest_entry_that_is_left() -> None:
    log = EntryLog(StoredLog.of_members("b", "a"))
    log.append([LogEntry(term=1, members=("a", "b", "c"))])
    added = log.members

    log.truncate(1)

    assert (added, log.members) == (("a", "b", "c"), ("a", "b"))


class _Disk:
    def __init__(self, rng: random.Random) -> None:
        self.rng, self.stored = rng, StoredLog.of_members("a")
        self.log = EntryLog(self.stored)
        self.writing: DiskWrite | None = None

    def append(self) -> None:
        self.log.append([an_entry(self.log.term) for _ in range(self.rng.randint(1, 3))])

    def truncate(self) -> None:
        if self.log.last_index > self.log.snapshot.index:
            first = self.rng.randint(self.log.snapshot.index + 1, self.log.last_index)
            self.log.truncate(first)

    def begin_term(self) -> None:
        self.log.set_term(self.log.term + 1, self.rng.choice(["", "a"]))

    def compact(self) -> None:
        if self.log.durable_index > self.log.snapshot.index:
            index = self.rng.randint(self.log.snapshot.index + 1, self.log.durable_index)
            term = self.log.term_at(index)
            assert term is not None
            snapshot = StateSnapshot(index=index, term=term, members=("a",))
            self.log.compact(snapshot, self.rng.randint(0, 3))

    def install(self) -> None:
        index = self.log.last_index + self.rng.randint(1, 3)
        self.log.install(StateSnapshot(index=index, term=self.log.term, members=("a", "b")))

    def begin_write(self) -> None:
        self.writing = self.writing or self.log.begin_write()

    def finish_write(self) -> None:
        if self.writing is not None:
            self.stored.apply(decode_write(encode_write(self.writing)))
            self.log.on_written()
            self.writing = None


_CHANGES: Final = (
    *(_Disk.append, _Disk.truncate, _Disk.begin_term, _Disk.compact, _Disk.install),
    *(_Disk.begin_write, _Disk.finish_write),
)


@given(st.lists(st.integers(0, len(_CHANGES) - 1), max_size=40), st.integers(0, 1000))
def test_the_disk_becomes_the_log_whatever_happens_between_writes(
    changes: list[int], seed: int
) -> None:
    """After a crash a member knows all that was written, and nothing else."""
    disk = _Disk(random.Random(seed))
    for change in changes:
        _CHANGES[change](disk)
    disk.finish_write()
    disk.begin_write()
    disk.finish_write()
    stored, log = disk.stored, disk.log

    again = EntryLog(StoredLog.from_bytes(stored.to_bytes()))

    assert (again.term, again.vote, again.snapshot) == (log.term, log.vote, log.snapshot)
    assert (again.base_index, again.last_index, again.members) == (
        *(log.base_index, log.last_index),
        log.members,
    )
    assert again.entries_from(again.base_index + 1, 1 << 30) == log.entries_from(
        log.base_index + 1, 1 << 30
    )
    assert log.durable_index == log.last_index


def test_what_another_version_has_stored_is_refused() -> None:
    with pytest.raises(ProtocolError, match="of the masters"):
        StoredLog.from_bytes(b"\x92\x63\xc0")
