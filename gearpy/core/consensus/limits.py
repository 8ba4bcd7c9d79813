"""Times and sizes of a replica."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLimits:
    """Times and sizes of a replica; the same for all members.

    Attributes:
        heartbeat_ms: a leader says so often that it is there.
        election_ms: without a word of a leader for so long, a member wants to be one. A leader that
            has not heard of a majority for so long steps down.
        spread_ms: up to so much longer, so that not all want it at once.
        trial_ms: while there is no leader, a member asks on trial each time after so long, up to
            twice as long.
        message_bytes: of entries, or of a snapshot, in one message; one entry may be larger.
        unanswered_max: messages with entries that a member has not answered.
        uncommitted_max: entries that no majority has; more are not taken.
        kept_entries: entries before the newest snapshot that stay for members that are behind.
    """

    heartbeat_ms: int = 150
    election_ms: int = 1000
    spread_ms: int = 500
    trial_ms: int = 300
    message_bytes: int = 256 << 10
    unanswered_max: int = 64
    uncommitted_max: int = 4096
    kept_entries: int = 1000

    def __post_init__(self) -> None:
        assert 0 < 2 * self.heartbeat_ms <= self.election_ms, self
        assert 0 < self.trial_ms <= self.election_ms, self
        assert self.spread_ms > 0, self
        assert min(self.message_bytes, self.unanswered_max, self.uncommitted_max) > 0, self
