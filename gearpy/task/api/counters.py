"""The counts of a task."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from gearpy.ids import MIN_MS


@dataclass(slots=True)
class TaskCounters:
    """Counters of a task's records; reported with its clock. They go on after a restart."""

    records_in: int = 0
    records_out: int = 0  #: Sent to the tasks behind it, and written.
    written_records: int = 0  #: Left the program here: by a sink, or taken by a last task.
    late_records: int = 0
    skipped_records: int = 0  #: Dropped since user code raised on them.
    quarantined_records: int = 0  #: The same, and kept to be looked at.
    done: int = 0  #: A source's progress in its own units ...
    total: int = 0  #: ... out of this many; 0 when it cannot know.
    newest_ms: int = MIN_MS  #: Newest event time that a source has read ...
    span_ms: int = 0  #: ... and how far that was ahead of its promise at most.
    ahead_records: int = 0  #: Too far ahead of the wall clock, so that a source left them out.
    held_records: int = 0  #: So many records that a source has read wait behind a cut.
    #: `taken` when the task was started; not kept.
    taken_before: int = field(default=0, compare=False)
    #: When the newest epoch ended, where that is counted; not kept.
    open_windows: int = field(default=0, compare=False)

    @property
    def taken(self) -> int:
        """The records that came in; of a source, which need not count what it reads, went out."""
        return self.records_in or self.records_out

    @property
    def untried(self) -> bool:
        """Whether none has come since the task was started."""
        return self.taken == self.taken_before

    def counted(self) -> dict[str, int]:
        """Return the counts by name, for `restore`."""
        return {name: getattr(self, name) for name in _COUNTED}

    def restore(self, counted: Mapping[str, int]) -> None:
        """Go on from earlier counts; a name that is not known any more is left out."""
        for each in fields(self):
            setattr(self, each.name, counted.get(each.name, each.default))
        self.taken_before = self.taken


#: The counts that are kept.
_COUNTED: Final = [each.name for each in fields(TaskCounters) if each.compare]
