"""A source in one method and a sink in one, for programs with a store or service of their own."""

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final, TypedDict

from gearpy.clocks import wall_ms
from gearpy.connectors.files.stamps import stamps_of
from gearpy.connectors.streams.generator import GeneratorReader
from gearpy.core.base.times import Duration, duration_ms
from gearpy.errors import OperatorError
from gearpy.ids import MIN_MS
from gearpy.messages.type_variables import T_co, T_contra
from gearpy.task.api.interfaces import Batch, Sink, SinkContext, SinkWriter, Source

#: The only partition of a simple source.
_ONLY: Final = "0"


class SimplePosition(TypedDict):
    """Snapshot of the reader of a `SimpleSource`."""

    position: Any
    watermark_ms: int


class SimpleSource(Source[T_co]):
    """A source of one partition, in one method: `read`.

    Read by one task. After a failure `read` goes on behind the last record that counts, so a source
    that finds its records again by a position loses none. One that cannot sets ``replayable`` to
    False, and the plan says *at-most-once*.

    Example:
        >>> import gearpy as gp
        >>> class Countdown(gp.SimpleSource[int]):
        ...     bounded = True
        ...
        ...     def read(self, position):
        ...         for number in range(3 if position is None else position, 0, -1):
        ...             yield number, number - 1
        >>> app, results = gp.StreamApp("countdown"), []
        >>> app.read(Countdown()).write(gp.to_list(results))
        >>> _ = gp.run(app)
        >>> results
        [3, 2, 1]
    """

    replayable: bool = True
    calls_program = True
    #: How far back in time a later record may be, where there is a `timestamp`.
    out_of_order: ClassVar[Duration] = "0s"
    #: So long nothing is asked for after `read` has yielded None.
    pause: ClassVar[Duration] = "100ms"
    _up_to_now = False  # It ends where it yields None.

    @abstractmethod
    def read(self, position: Any) -> Iterator[tuple[T_co, Any] | None]:
        """Yield each record with the position behind it; end when there will never be more.

        Yield None where nothing has come for now: the stream goes on without, and asks again after
        ``pause``. An answer that takes long holds up its task, so wait no longer than a second.

        Args:
            position: as yielded with the last record that counts, plain data; None at the start.
        """

    def timestamp(self, record: Any) -> int | datetime:
        """Return the event time of a record: ms since the epoch, or an aware datetime.

        Records of a source without this method of its own have the time of their arrival.
        """
        return wall_ms()

    def partitions(self) -> Sequence[str]:
        """Return the name of the only partition."""
        return (_ONLY,)

    def open(self, partition: str, resume: SimplePosition | None) -> "SimpleReader":
        """Read from the position of a snapshot on, or from the start."""
        return SimpleReader(self, resume or {"position": None, "watermark_ms": MIN_MS})

    def up_to_now(self) -> "SimpleSource[T_co]":
        """Read until `read` ends, or yields None for the first time."""
        other = copy.copy(self)
        other.bounded = other._up_to_now = True  # noqa: SLF001 - of the same class
        return other

    @property
    def reads_by(self) -> str:
        """The method that gives records, for errors."""
        return f"{type(self).__name__}.read"

    @property
    def is_by_arrival(self) -> bool:  # type: ignore[override]
        """Whether records have the time of their arrival."""
        return type(self).timestamp is SimpleSource.timestamp


class SimpleReader(GeneratorReader):
    """Reads a `SimpleSource` from a position on."""

    def __init__(self, source: SimpleSource[Any], place: SimplePosition) -> None:
        self.operator = source.reads_by
        super().__init__(
            iter(()),
            stamps_of(
                f"{type(source).__name__}.timestamp",
                None if source.is_by_arrival else source.timestamp,
                bound_ms=duration_ms(source.out_of_order),
                now_ms=wall_ms,
                watermark_ms=place["watermark_ms"],
            ),
            position=0,
            limit=None,
            pace=None,
            now_ms=wall_ms,
        )
        self._pairs = iter(source.read(copy.deepcopy(place["position"])))
        self._position_behind = place["position"]
        self._pause_ms = duration_ms(source.pause)
        self._up_to_now = source._up_to_now  # noqa: SLF001 - a class and its one maker
        self._has_ended = False

    def _take(self, wanted: int) -> tuple[list[Any], bool]:
        self.pause_ms = 0
        self._iterator = self._until_none()
        pairs, _ = super()._take(wanted)
        # A text of two letters would pass for a pair, too.
        if set(map(type, pairs)) - {tuple} or set(map(len, pairs)) - {2}:
            odd = next(each for each in pairs if type(each) is not tuple or len(each) != 2)  # noqa: PLR2004 - a pair
            raise OperatorError(
                operator=self.operator,
                cause=f"it yields {odd!r:.100}: yield (record, position behind it), or None",
                is_final=True,
            )
        if pairs:
            self._position_behind = pairs[-1][1]
        return [value for value, _ in pairs], self._has_ended

    def _until_none(self) -> Iterator[Any]:
        for pair in self._pairs:
            if pair is None:
                self.pause_ms, self._has_ended = self._pause_ms, self._up_to_now
                return
            yield pair
        self._has_ended = True

    def call_when_ready(self, wake: Callable[[], object]) -> bool:
        call = getattr(self._pairs, "call_when_ready", None)
        return call is not None and call(wake)

    def snapshot(self) -> SimplePosition:
        return {"position": self._position_behind, "watermark_ms": self.watermark_ms}

    @property
    def progress(self) -> tuple[int, int]:
        return self._position, 0

    def close(self) -> None:
        close = getattr(self._pairs, "close", None)
        if close is not None:
            close()
        self._pairs = iter(())


class SimpleSink(Sink[T_contra]):
    """A sink in one method: `write`. Each record is written at least once.

    Each task works on a shallow copy of the sink, so what `start` assigns belongs to that task.
    Set ``idempotent`` to True where to write a record twice is the same as once, such as by a key:
    it counts as effectively-once then. For exactly once there is `EpochWriter`.

    Example:
        >>> import gearpy as gp
        >>> class Shelf(gp.SimpleSink[dict]):
        ...     idempotent = True
        ...     books = {}
        ...
        ...     def write(self, records):
        ...         self.books.update((book["isbn"], book["title"]) for book in records)
        >>> app = gp.StreamApp("shelf")
        >>> app.read(gp.collection([{"isbn": 1, "title": "Emma"}])).write(Shelf())
        >>> _ = gp.run(app)
        >>> Shelf.books
        {1: 'Emma'}
    """

    def start(self) -> None:
        """Open connections, in the process and thread that writes."""

    @abstractmethod
    def write(self, records: Sequence[T_contra]) -> None:
        """Write some records. An exception is treated by ``application.on-error``.

        Of several records it is a failure under any rule, as the bad one is not known. Set
        ``atomic`` to True if nothing was written then: they are tried one by one.
        """

    atomic: ClassVar[bool] = False

    def flush(self) -> None:
        """Make durable what was written: once this has returned it is not written again.

        Called at the end of each epoch (about each second), and at the end of the stream.
        """

    def close(self) -> None:
        """Release what `start` has opened."""

    def open(self, task_index: int, parallelism: int) -> "SimpleWriter":
        """Return a writer that has a copy of this sink."""
        return SimpleWriter(copy.copy(self))


class SimpleWriter(SinkWriter):
    """Writes the records of one task by its copy of a `SimpleSink`."""

    def __init__(self, sink: SimpleSink[Any]) -> None:
        self._sink = sink
        self.atomic = sink.atomic  # type: ignore[misc]

    def begin(self, context: SinkContext) -> None:
        self._sink.start()

    def write_batch(self, batch: Batch) -> None:
        self._sink.write(batch.values)

    def snapshot(self) -> None:
        self._sink.flush()

    def close(self, *, completed: bool) -> None:
        if completed:
            self._sink.flush()
        self._sink.close()
