"""Sources that ask or listen on a thread of their own: a function at an interval, an async one."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from copy import copy, deepcopy
from datetime import datetime
from functools import partial
from queue import Empty, Full, Queue
from typing import Any, Final

from gearpy.connectors.files.stamps import StampedSource, in_zone
from gearpy.connectors.simple import SimpleSource
from gearpy.connectors.streams.generator import takes_part
from gearpy.core.base.times import Duration, duration_ms
from gearpy.core.base.zones import ZoneName
from gearpy.errors import ConfigError
from gearpy.messages.type_variables import T
from gearpy.task.api.failure import USER_ERRORS

#: So many records wait for the stream; the thread waits while there are more.
_WAITING_MAX: Final = 1000
_WAKE_S: Final = 0.1
_FULL_S: Final = 0.01  # Between two looks whether there is room again.
_MS_PER_S: Final = 1000
_END: Final = object()


def poll(
    function: Callable[[], Iterable[T]] | Callable[[Any], tuple[Iterable[T], Any]],
    *,
    every: Duration,
    timestamp: Callable[[T], int | datetime] | None = None,
    zone: ZoneName | None = None,
    out_of_order: Duration = "0s",
) -> SimpleSource[T]:
    """Call a function again and again, and read the records that it returns.

    It is called on a thread of its own, so it may wait for a server. An exception ends the task,
    as that of any source.

    A function with a parameter gets a position, None at first, and returns the records and the
    position for its next call, any plain data. Then a failure loses nothing: it is called again
    with the position of the checkpoint, and has to give the same records first. Without a
    parameter records that were on their way are lost: *at-most-once*.

    Args:
        function: returns an iterable of records; or, with a parameter, those and a position.
        every: the pause between two calls, such as "10s"; there is none while records come with a
            position that is another one than before.
        timestamp: gives the event time of a record, ms since the epoch or a datetime.
            Without it records have the time of their arrival.
        zone: name of the time zone of datetimes of ``timestamp`` that tell none, such as
            "Europe/Berlin".
        out_of_order: how far back in time a later record may be.

    Raises:
        ConfigError: it is no function, or the pause is none.

    Example:
        >>> import time
        >>> import gearpy as gp
        >>> def tickets(position: int | None) -> tuple[list[str], int]:
        ...     first = position or 0
        ...     return [f"ticket {n}" for n in range(first, first + 2)], first + 2
        >>> app, results = gp.StreamApp("tickets"), []
        >>> app.read(gp.poll(tickets, every="10s")).write(gp.to_list(results))
        >>> with gp.start(app):
        ...     while len(results) < 3:
        ...         time.sleep(0.01)
        >>> results[:3]
        ['ticket 0', 'ticket 1', 'ticket 2']
    """
    call: Callable[..., Any] = function
    if not callable(call):
        raise ConfigError(f"poll: {function!r:.100} is no function that returns records")
    pause_s = duration_ms(every) / _MS_PER_S
    if pause_s <= 0:
        raise ConfigError(f"poll: every is {every!r}, must be more than 0, such as '10s'")
    has_position = takes_part(function)

    def run(position: Any, waiting: _Waiting) -> None:
        # A position is that of a call, and how many of its records count already.
        asked, skipped = position or (None, 0)
        while not waiting.stopped.is_set():
            before = asked
            if has_position:
                answer = call(deepcopy(asked))  # It may change what it gets in place.
                if not (isinstance(answer, tuple) and len(answer) == 2):  # noqa: PLR2004 - a pair
                    raise TypeError(f"it returned {answer!r:.100}: return (records, position)")
                records, behind = list(answer[0]), deepcopy(answer[1])
                for number, record in enumerate(records[skipped:], skipped + 1):
                    is_last = number == len(records)
                    waiting.give((record, [behind, 0] if is_last else [asked, number]))
                asked, skipped = behind, 0
            else:
                for record in call() or ():
                    waiting.give((record, None))
            if not has_position or asked == before:
                if waiting.one_round:
                    return
                waiting.stopped.wait(pause_s)

    return _BackgroundSource(
        "poll",
        function=function,
        run=run,
        timestamp=in_zone("poll", timestamp, zone),
        out_of_order=out_of_order,
        has_position=has_position,
    )


def from_async(
    make: Callable[[], AsyncIterator[T]] | Callable[[Any], AsyncIterator[tuple[T, Any]]],
    *,
    timestamp: Callable[[T], int | datetime] | None = None,
    zone: ZoneName | None = None,
    out_of_order: Duration = "0s",
) -> SimpleSource[T]:
    """Read what an asynchronous generator yields, such as the messages of a web socket.

    It runs in an event loop on a thread of its own. While the stream does not read, it is not
    asked for more than a thousand records. The stream ends when it ends.

    A function with a parameter gets a position, None at first, and yields pairs of a record and the
    position behind it, any plain data: after a failure it is called again with the position that
    the checkpoint has. Without a parameter records that were on their way are lost: *at-most-once*.

    Args:
        make: an ``async def`` function that yields.
        timestamp: gives the event time of a record, ms since the epoch or a datetime.
            Without it records have the time of their arrival.
        zone: name of the time zone of datetimes of ``timestamp`` that tell none, such as
            "Europe/Berlin".
        out_of_order: how far back in time a later record may be.

    Raises:
        ConfigError: it is no function.

    Example:
        >>> import gearpy as gp
        >>> async def messages():
        ...     yield "hello"
        ...     yield "world"
        >>> app, results = gp.StreamApp("messages"), []
        >>> app.read(gp.from_async(messages)).write(gp.to_list(results))
        >>> _ = gp.run(app)
        >>> results
        ['hello', 'world']
    """
    begin: Callable[..., Any] = make
    if not callable(begin):
        raise ConfigError(f"from_async: {make!r:.100} is no async function that yields records")
    has_position = takes_part(make)

    def run(position: Any, waiting: _Waiting) -> None:
        async def read() -> None:
            made = begin(position) if has_position else begin()
            if not hasattr(made, "__aiter__"):
                raise TypeError(f"it returned {made!r:.100}: write async def, and yield records")
            async for each in made:
                pair = each if has_position else (each, None)
                if isinstance(pair, tuple) and len(pair) == 2:  # noqa: PLR2004 - a pair
                    pair = pair[0], deepcopy(pair[1])  # It may go on in the same object.
                # The loop goes on meanwhile, as with the signs of life of a web socket.
                while waiting.queue.full():  # noqa: ASYNC110 - the reader is no coroutine
                    await asyncio.sleep(_FULL_S)
                waiting.give(pair)

        async def until_stopped() -> None:
            reading = asyncio.ensure_future(read())
            waiting.on_close(
                partial(asyncio.get_running_loop().call_soon_threadsafe, reading.cancel)
            )
            try:
                await reading
            except asyncio.CancelledError:
                if not waiting.stopped.is_set():
                    raise

        asyncio.run(until_stopped())

    return _BackgroundSource(
        "from_async",
        function=make,
        run=run,
        timestamp=in_zone("from_async", timestamp, zone),
        out_of_order=out_of_order,
        has_position=has_position,
    )


class _Stopped(Exception):
    """Nobody reads any more."""


class _Failed:
    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Waiting(Iterator[Any]):
    """Records on their way from a thread to the stream, so many at most; None: none at present."""

    def __init__(self, *, one_round: bool) -> None:
        self.one_round = one_round  #: Nothing is asked for again, once there was nothing more.
        self.queue: Queue[Any] = Queue(_WAITING_MAX)
        self.stopped = threading.Event()  # Nobody reads any more.
        self._wake: Callable[[], object] | None = None  # It was empty when this was set.
        self._ends: Callable[[], object] = lambda: None

    def give(self, pair: Any) -> None:
        """Wait for room.

        Raises:
            _Stopped: nobody reads any more.
        """
        while not self.stopped.is_set():
            with suppress(Full):
                self.queue.put(pair, timeout=_WAKE_S)
                wake, self._wake = self._wake, None
                if wake is not None:
                    wake()
                return
        raise _Stopped

    def call_when_ready(self, wake: Callable[[], object]) -> bool:
        self._wake = wake
        if not self.queue.empty():  # It has come since it was asked.
            wake()
        return True

    def __next__(self) -> Any:
        try:
            pair = self.queue.get_nowait()
        except Empty:
            return None
        if pair is _END:
            raise StopIteration
        if isinstance(pair, _Failed):
            raise pair.error
        return pair

    def on_close(self, call: Callable[[], object]) -> None:
        self._ends = call
        if self.stopped.is_set():
            call()

    def close(self) -> None:
        self.stopped.set()
        with suppress(RuntimeError):  # Its loop has ended.
            self._ends()


class _BackgroundSource(StampedSource[Any], SimpleSource[Any]):
    """Records that a thread gives: ``run(position, waiting)``."""

    pause = "10ms"
    of_program = True  # Its function may take what another thread of the program gives.
    calls_program = False  # That thread waits, in place of the task.

    def __init__(
        self,
        kind: str,
        *,
        function: Callable[..., Any],
        run: Callable[[Any, _Waiting], None],
        timestamp: Callable[[Any], int | datetime] | None,
        out_of_order: Duration,
        has_position: bool,
    ) -> None:
        duration_ms(out_of_order)
        self.replayable = has_position
        self.out_of_order = out_of_order  # type: ignore[misc]
        self._timestamp = timestamp
        self._run = run
        self._one_round = False
        self._text = f"{kind}({getattr(function, '__name__', type(function).__name__)})"

    @property
    def description(self) -> str:
        return self._text

    reads_by = description

    def up_to_now(self) -> "_BackgroundSource":
        other = copy(self)
        other.bounded = other._one_round = True  # noqa: SLF001 - of the same class
        return other

    @property
    def is_by_arrival(self) -> bool:  # type: ignore[override]
        return self._timestamp is None

    def timestamp(self, record: Any) -> int | datetime:
        return super().timestamp(record) if self._timestamp is None else self._timestamp(record)

    def read(self, position: Any) -> _Waiting:
        waiting = _Waiting(one_round=self._one_round)

        def work() -> None:
            try:
                self._run(position, waiting)
                waiting.give(_END)
            except _Stopped:
                pass
            except BaseException as error:  # noqa: BLE001 - it is raised where the stream reads
                told = error if isinstance(error, USER_ERRORS) else RuntimeError(repr(error))
                with suppress(_Stopped):
                    waiting.give(_Failed(told))

        thread = threading.Thread(target=work, name=f"gearpy-{self._text}", daemon=True)
        thread.start()
        return waiting
