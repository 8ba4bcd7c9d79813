"""Readers of partitions, and what finds these while a source is read: users derive from them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.type_variables import T_co

if TYPE_CHECKING:
    from gearpy.task.api.sides import BadRecord


class SourceReader(ABC, Generic[T_co]):
    """Reads one partition of a source, from where it was opened.

    Calls come in this order: `read_batch` and the questions after it, over and over, then
    `close`. All in one thread.
    """

    #: Nothing will ever come again; `read_batch` is not called any more.
    finished: bool = False
    #: Nothing comes at present; the partition holds no clock back until it gives again.
    idle: bool = False

    #: The thing outside that it waits for before it can give more, such as a server that
    #: does not answer; for people. Empty while there is nothing of that kind.
    waits_for: str = ""

    #: The time for which it gives nothing more, known since the last `read_batch`: it is not asked
    #: sooner, as a rule. 0: something may come at once.
    pause_ms: int = 0

    #: The next `read_batch` may wait for something, so what this one gave goes on before it.
    may_wait: bool = False

    #: Event times are no more than the time at which records came, or there are none: the order of
    #: arrival is the only one that records have.
    is_by_arrival: bool = False

    #: Bad records that it has left out since it was opened, where its source was told to.
    skipped_records: int = 0

    #: The watermark is the newest event time that was read less this; None: it moves by other
    #: rules, and a batch should end where it moves.
    out_of_order_ms: int | None = None

    @abstractmethod
    def read_batch(self, max_records: int) -> Batch[T_co] | None:
        """Return up to ``max_records`` records, or None if there are none now. Never waits.

        A reader of a source with a `Source.schema` gives a `Table` and its `Times`.
        """

    @abstractmethod
    def snapshot(self) -> Any:
        """Return where to resume: plain data, given to `Source.open` after a restart.

        A reader that was opened there gives the records, times and watermarks that follow.
        """

    def call_when_ready(self, wake: Callable[[], object]) -> bool:
        """Have ``wake`` called, once and on any thread, as soon as there may be more to give.

        Asked for behind a `read_batch` that gave nothing, where something may have come since.

        Returns:
            False if it is not called: the reader is asked again and again. If it is, the reader is
            asked every two seconds all the same.
        """
        return False

    def take_bad(self) -> "Sequence[BadRecord]":
        """Return the bad records that the last `read_batch` has set aside and counted; once."""
        return ()

    def take_refused(self) -> Sequence[tuple[Any, OperatorError]]:
        """Return the records that were left out, as user code raised on them, and why; once."""
        return ()

    @property
    def watermark_ms(self) -> int:
        """The watermark: no later record is older. It depends only on the records read so far."""
        return MIN_MS

    @property
    def progress(self) -> tuple[int, int]:
        """The amount that was read, and of how much, in any unit; (0, 0) if unknown."""
        return (0, 0)

    def read_little(self) -> None:
        """Take in no more at a time than is asked for, as something in the input ends processes."""

    def step_over(self, *, all_of_file: bool) -> str | None:
        """Go on behind what cannot be read, without reading it.

        That is the smallest part that can be told apart, or the rest of the file.

        Returns:
            What was left out, for people; None: nothing has come yet.

        Raises:
            ConfigError: this reader cannot do so.
        """
        raise ConfigError("this source cannot step over it unread: take it out of the input")

    def close(self) -> None:
        """Release the resources that `Source.open` took."""


class Discovery(ABC, Generic[T_co]):
    """Finds the partitions that one task reads while it runs, and opens them.

    A partition is found by the task that `Source.discover` was called for and by no other. From
    then on it is in the snapshots of that task, so it is found once. All calls come in one thread,
    those of its readers included.
    """

    finished: bool = False  #: Nothing more will be found; `find` is not called any more.
    has_looked: bool = False
    """Whether the partitions of the beginning are known. As long as they are not, the task holds
    event time back."""
    pause_ms: int = 0  #: The time for which it finds nothing more; see `SourceReader.pause_ms`.
    waits_for: str = ""  #: The thing outside that it waits for; see `SourceReader.waits_for`.
    forgets: bool = False
    """A partition that has finished is found again when it comes back, as a new one."""

    @abstractmethod
    def find(self) -> Mapping[str, Any]:
        """Return the partitions found since the last call, each with the place where it begins.

        Called again and again. Never waits.
        """

    @abstractmethod
    def open(self, partition: str, place: Any) -> SourceReader[T_co]:
        """Open a partition at the place of `find` or of a snapshot; before it has looked, too."""

    def keeps(self, partition: str) -> bool:
        """Whether a partition that has finished up to now is opened again by the next run."""
        return True

    @abstractmethod
    def snapshot(self) -> Any:
        """Return the progress of the search, as plain data, for `Source.discover`."""

    def on_commit(self, places: Mapping[str, Any]) -> None:
        """Learn that records before these places, by partition, will not be read again."""

    def close(self) -> None:
        """Release everything; its readers are closed."""
