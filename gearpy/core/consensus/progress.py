"""A leader's knowledge of one other member, and the next message to it."""

from collections import deque
from collections.abc import Iterator
from typing import Literal, TypeAlias

from gearpy.core.consensus.entry_log import EntryLog
from gearpy.core.consensus.limits import ReplicaLimits
from gearpy.core.consensus.messages import AppendEntries, EntriesAppended, SendSnapshotPart
from gearpy.core.consensus.stored import StateSnapshot

_Mode: TypeAlias = Literal["probe", "stream"]


class MemberProgress:
    """The progress of one other member.

    Where the logs part is found by one message at a time (probe). Then entries are sent without
    waiting for answers (stream), up to a number of messages. A member that needs entries that are
    gone is handed the snapshot.

    Invariant: ``match_index < next_index``; entries up to ``match_index`` are on the member's disk.
    """

    def __init__(self, next_index: int, limits: ReplicaLimits, now_ms: int) -> None:
        self.match_index = 0
        self.next_index = next_index
        self.round = 0  #: The newest round of the leader that the member has answered.
        self.heard_ms = now_ms
        self._limits = limits
        self._mode: _Mode = "probe"
        self._is_waiting = False  # A probe has no answer yet.
        self._unanswered = deque[int]()  # The last index of each message in the stream.
        self._snapshot: StateSnapshot | None = None
        self._offset = 0

    def to_send(
        self, log: EntryLog, commit_index: int, round_: int
    ) -> Iterator[AppendEntries | SendSnapshotPart]:
        while self._can_send and (
            self.next_index <= log.last_index or log.term_at(self.next_index - 1) is None
        ):
            message = self._message(log, commit_index, round_, self._limits.message_bytes)
            if isinstance(message, SendSnapshotPart) or self._mode == "probe":
                self._is_waiting = True  # It asks once more with each heartbeat.
            else:
                self.next_index += len(message.entries)
                self._unanswered.append(self.next_index - 1)
            yield message

    def heartbeat(
        self, log: EntryLog, commit_index: int, round_: int
    ) -> AppendEntries | SendSnapshotPart:
        """Return a message that asks for an answer, whatever was lost before."""
        bytes_max = self._limits.message_bytes if self._mode == "probe" else 0
        message = self._message(log, commit_index, round_, bytes_max)
        self._is_waiting = self._mode == "probe"
        return message

    def on_answer(self, round_: int, now_ms: int) -> None:
        self.round, self.heard_ms = max(self.round, round_), now_ms

    def on_appended(self, message: EntriesAppended) -> None:
        if message.is_match:
            index = message.index
            self.match_index = max(self.match_index, index)
            while self._unanswered and self._unanswered[0] <= index:
                self._unanswered.popleft()
            if self._mode == "probe" and index >= self.next_index - 1:
                self._mode, self._snapshot = "stream", None
                self.next_index = self.match_index + 1
            self.next_index = max(self.next_index, self.match_index + 1)
        elif message.previous_index > self.match_index and (
            self._mode == "stream" or message.previous_index == self.next_index - 1
        ):
            self._probe_from(max(self.match_index, message.index) + 1)

    def on_part_taken(self, index: int, offset: int) -> None:
        if self._snapshot is not None and self._snapshot.index == index:
            self._is_waiting = offset == self._offset
            self._offset = offset

    @property
    def _can_send(self) -> bool:
        if self._mode == "probe":
            return not self._is_waiting
        return len(self._unanswered) < self._limits.unanswered_max

    def _probe_from(self, index: int) -> None:
        self._mode, self._is_waiting = "probe", False
        self._unanswered.clear()
        self.next_index = index

    def _message(
        self, log: EntryLog, commit_index: int, round_: int, bytes_max: int
    ) -> AppendEntries | SendSnapshotPart:
        if log.term_at(self.next_index - 1) is None:
            if self._mode == "stream" or self._snapshot is None:
                self._probe_from(self.next_index)
                self._snapshot, self._offset = log.snapshot, 0
            snapshot, end = self._snapshot, self._offset + self._limits.message_bytes
            return SendSnapshotPart(
                term=log.term,
                index=snapshot.index,
                index_term=snapshot.term,
                members=snapshot.members,
                offset=self._offset,
                part=snapshot.state[self._offset : end],
                is_last=end >= len(snapshot.state),
                round=round_,
            )
        previous = self.next_index - 1
        previous_term = log.term_at(previous)
        assert previous_term is not None, "it is not lacking"
        return AppendEntries(
            term=log.term,
            previous_index=previous,
            previous_term=previous_term,
            entries=log.entries_from(self.next_index, bytes_max) if bytes_max else (),
            commit_index=commit_index,
            round=round_,
        )
