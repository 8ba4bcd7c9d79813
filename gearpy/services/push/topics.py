"""Topics: what somebody watches; asked for again and again while there is one viewer."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias

import msgspec

from gearpy.clocks import wall_ms
from gearpy.errors import GearpyError
from gearpy.services.push.frames import HEARTBEAT, HELLO, frame

_log = logging.getLogger(__name__)

_THREADS: Final = 8
_HEARTBEAT_S: Final = 10.0

#: Asks the cluster; returns a frame, or None if nothing has changed. Told that viewers have seen
#: trouble since, it returns a frame in any case. Runs on threads of its own.
TopicLook: TypeAlias = Callable[[bool], bytes | None]


class TooManyViewers(Exception):
    """Refuses a viewer, as there are as many as there may be."""


class _Topic:
    """One thing that is watched, and its newest frames.

    Of a view only the newest frame counts, so that a slow viewer is late and never behind; of a
    log the last ones do.
    """

    def __init__(self, look: TopicLook, every_s: float, kept: int) -> None:
        self.look = look
        self.every_s = every_s
        self.frames = deque[tuple[int, bytes]](maxlen=kept)  # With their numbers, from 1.
        self.number = 0
        self.viewers = set[asyncio.Event]()
        self.task: asyncio.Task[None] | None = None
        self.trouble_since_ms: int | None = None

    def put(self, sent: bytes) -> None:
        self.number += 1
        self.frames.append((self.number, sent))
        for each in self.viewers:
            each.set()


class Topics:
    """All that is watched at present.

    Invariant: the cluster is asked about a topic by one task, however many watch it, and by none
    if nobody does; a viewer that reads slowly takes no more memory than one frame of each view.

    Runs on: the event loop of the services; looks on threads of its own.
    """

    def __init__(self, *, viewers_max: int, heartbeat_s: float = _HEARTBEAT_S) -> None:
        self._topics: dict[Hashable, _Topic] = {}
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="gearpy-watch")
        self._viewers_max = viewers_max
        self._heartbeat_s = heartbeat_s
        self._viewers = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    def watch(
        self, wanted: Sequence[tuple[Hashable, TopicLook, float, int]], first: Sequence[bytes] = ()
    ) -> AsyncGenerator[bytes]:
        """Return the frames of a viewer, until it goes away or the services end."""
        if self._viewers >= self._viewers_max:
            raise TooManyViewers
        return self._frames(wanted, first)

    def close(self) -> None:
        self._is_closed = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake_all)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _wake_all(self) -> None:
        for topic in self._topics.values():
            if topic.task is not None:
                topic.task.cancel()
            for viewer in topic.viewers:
                viewer.set()

    async def _frames(
        self, wanted: Sequence[tuple[Hashable, TopicLook, float, int]], first: Sequence[bytes]
    ) -> AsyncGenerator[bytes]:
        self._loop = asyncio.get_running_loop()
        wake, seen = asyncio.Event(), dict[Hashable, int]()
        self._viewers += 1
        topics = dict[Hashable, _Topic]()
        for key, look, every_s, kept in wanted:
            topic = topics[key] = self._topics.setdefault(key, _Topic(look, every_s, kept))
            if topic.task is None:
                topic.task = self._loop.create_task(self._ask(topic))
            topic.viewers.add(wake)
        try:
            yield HELLO
            for each in first:
                yield each
            while not self._is_closed:
                wake.clear()
                for key, topic in topics.items():
                    for number, sent in [*topic.frames]:
                        if number > seen.get(key, 0):
                            seen[key] = number
                            yield sent
                try:
                    async with asyncio.timeout(self._heartbeat_s):
                        await wake.wait()
                except TimeoutError:
                    yield HEARTBEAT
        finally:
            self._viewers -= 1
            for key, topic in topics.items():
                topic.viewers.discard(wake)
                if not topic.viewers and self._topics.get(key) is topic:
                    del self._topics[key]
                    if topic.task is not None:
                        topic.task.cancel()

    async def _ask(self, topic: _Topic) -> None:
        loop = asyncio.get_running_loop()
        while True:
            begun_s, was_in_trouble = loop.time(), topic.trouble_since_ms is not None
            try:
                sent = await loop.run_in_executor(self._pool, topic.look, was_in_trouble)
            except GearpyError as error:
                _tell_trouble(topic, str(error))
            except Exception:  # noqa: BLE001 - a viewer must not wait for ever
                _log.exception("a view could not be made")
                _tell_trouble(topic, "this is a mistake in gearpy; its log has the traceback")
            else:
                topic.trouble_since_ms = None
                if sent is not None:
                    topic.put(sent)
            # One that takes long is asked less often, so that it costs half of the time at most.
            took_s = loop.time() - begun_s
            await asyncio.sleep(max(took_s, topic.every_s - took_s))


def _tell_trouble(topic: _Topic, error: str) -> None:
    if topic.trouble_since_ms is None:
        topic.trouble_since_ms = wall_ms()
    content = {"error": error, "since_ms": topic.trouble_since_ms}
    topic.put(frame("trouble", msgspec.json.encode(content)))
