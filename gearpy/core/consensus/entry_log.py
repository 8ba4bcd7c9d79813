"""The entries that a member holds, and which of them are on its disk."""

from collections.abc import Sequence

from gearpy.core.consensus.stored import DiskWrite, LogEntry, StateSnapshot, StoredLog


class EntryLog:
    """The log of a member: a snapshot, and entries. Indexes begin at 1.

    Changes are made in memory first. `begin_write` gives all that the disk lacks as one write;
    until `on_written`, no other one begins.

    Invariant: ``durable_index <= last_index``; every entry up to it is on disk.
    """

    def __init__(self, stored: StoredLog) -> None:
        self.term, self.vote = stored.term, stored.vote
        self.snapshot = stored.snapshot
        self.base_index, self.base_term = stored.base_index, stored.base_term
        self._entries = list(stored.entries)
        self.durable_index = self.last_index
        self._dirty_from: int | None = (
            None  # The first entry that the disk lacks; None if it has all.
        )
        self._snapshot_due = False
        #: Whether there are changes in no write yet of what others may be told: a term, a vote, or
        #: entries. A snapshot of one's own is none.
        self.has_promises = False
        self.is_writing_promises = False  #: Whether a write of such changes is not done.
        self._writing_to: int | None = None  # Its entries are on disk when the write is done.
        self._member_indexes = [
            index
            for index, each in enumerate(self._entries, self.base_index + 1)
            if each.members and index > self.snapshot.index
        ]

    @property
    def last_index(self) -> int:
        return self.base_index + len(self._entries)

    @property
    def last_term(self) -> int:
        return self._entries[-1].term if self._entries else self.base_term

    @property
    def members(self) -> tuple[str, ...]:
        if self._member_indexes:
            return self.entry(self._member_indexes[-1]).members
        return self.snapshot.members

    @property
    def members_index(self) -> int:
        return self._member_indexes[-1] if self._member_indexes else 0

    def members_at(self, index: int) -> tuple[str, ...]:
        known = [each for each in self._member_indexes if each <= index]
        return self.entry(known[-1]).members if known else self.snapshot.members

    def term_at(self, index: int) -> int | None:
        if index == self.base_index:
            return self.base_term
        if self.base_index < index <= self.last_index:
            return self._entries[index - self.base_index - 1].term
        return None

    def entry(self, index: int) -> LogEntry:
        assert self.base_index < index <= self.last_index, index
        return self._entries[index - self.base_index - 1]

    def entries_from(self, first: int, bytes_max: int) -> tuple[LogEntry, ...]:
        """Return entries from an index on: at least one, if there is one, and no more than fit."""
        taken, size = list[LogEntry](), 0
        for at in range(first - self.base_index - 1, len(self._entries)):
            size += len(self._entries[at].command)
            if taken and size > bytes_max:
                break
            taken.append(self._entries[at])
        return tuple(taken)

    def before_term_of(self, index: int) -> int:
        term = self.term_at(index)
        while index > self.base_index and self.term_at(index) == term:
            index -= 1
        return index

    def is_covered_by(self, last_term: int, last_index: int) -> bool:
        return (last_term, last_index) >= (self.last_term, self.last_index)

    def set_term(self, term: int, vote: str = "") -> None:
        assert (term > self.term) or (term == self.term and self.vote in {"", vote}), (term, vote)
        if (term, vote) != (self.term, self.vote):
            self.term, self.vote, self.has_promises = term, vote, True

    def append(self, entries: Sequence[LogEntry]) -> None:
        first = self.last_index + 1
        self._entries += entries
        self._member_indexes += [at for at, each in enumerate(entries, first) if each.members]
        self._touch(first)

    def truncate(self, first: int) -> None:
        assert first > self.snapshot.index, "what is in a snapshot was committed"
        del self._entries[first - self.base_index - 1 :]
        self._member_indexes = [each for each in self._member_indexes if each < first]
        self.durable_index = min(self.durable_index, first - 1)
        if self._writing_to is not None:
            self._writing_to = min(self._writing_to, first - 1)
        self._touch(first)

    def compact(self, snapshot: StateSnapshot, kept_entries: int) -> None:
        """Keep a snapshot of the state, and of the entries before it only some."""
        assert self.snapshot.index < snapshot.index <= self.durable_index, snapshot.index
        self.snapshot, self._snapshot_due = snapshot, True
        base = max(self.base_index, snapshot.index - kept_entries)
        term = self.term_at(base)
        assert term is not None, "it is here"
        del self._entries[: base - self.base_index]
        self.base_index, self.base_term = base, term
        self._member_indexes = [each for each in self._member_indexes if each > snapshot.index]

    def install(self, snapshot: StateSnapshot) -> None:
        self.snapshot, self._snapshot_due, self.has_promises = snapshot, True, True
        self.base_index, self.base_term = snapshot.index, snapshot.term
        self._entries, self._member_indexes = [], []
        self.durable_index = 0
        if self._writing_to is not None:
            self._writing_to = 0
        self._dirty_from = snapshot.index + 1

    def _touch(self, first: int) -> None:
        self.has_promises = True
        self._dirty_from = first if self._dirty_from is None else min(first, self._dirty_from)

    def begin_write(self) -> DiskWrite | None:
        """Return all that the disk lacks, unless it is busy or lacks nothing."""
        if self._writing_to is not None or not (self.has_promises or self._snapshot_due):
            return None
        first = self.last_index + 1 if self._dirty_from is None else self._dirty_from
        first = max(first, self.base_index + 1)
        write = DiskWrite(
            term=self.term,
            vote=self.vote,
            base_index=self.base_index,
            base_term=self.base_term,
            first=first,
            entries=tuple(self._entries[first - self.base_index - 1 :]),
            snapshot=self.snapshot if self._snapshot_due else None,
        )
        self.is_writing_promises, self.has_promises = self.has_promises, False
        self._snapshot_due, self._dirty_from, self._writing_to = False, None, self.last_index
        return write

    def on_written(self) -> None:
        assert self._writing_to is not None, "no write has begun"
        self.durable_index = max(self.durable_index, self._writing_to)
        self._writing_to, self.is_writing_promises = None, False
