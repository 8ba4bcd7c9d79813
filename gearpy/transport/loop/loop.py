"""The thread that runs the event loop, and the only way into it."""

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class LoopThread:
    """An event loop in a thread of its own: uvloop where it is installed, else asyncio's.

    The loop thread never blocks. Transports of one process may share one.

    Runs on: any thread, except `call` and `stop`, which wait for the loop thread.
    """

    def __init__(self, name: str = "gearpy-loop") -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        try:
            import uvloop  # noqa: PLC0415 - not on every platform
        except ImportError:
            self._loop = asyncio.new_event_loop()
        else:
            self._loop = uvloop.new_event_loop()
        self._loop.set_exception_handler(
            lambda _, found: _log.error(
                "in the loop thread: %s", found.get("message"), exc_info=found.get("exception")
            )
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop the loop, cancel its remaining tasks, and wait for the thread."""
        assert threading.current_thread() is not self._thread, (
            "the loop thread cannot wait for itself"
        )
        if self._thread.is_alive():
            assert self._loop is not None
            self.call_soon(self._loop.stop)
            self._thread.join()

    def call(self, coroutine: Coroutine[Any, Any, _T], timeout_s: float | None = None) -> _T:
        assert threading.current_thread() is not self._thread, (
            "the loop thread cannot wait for itself"
        )
        assert self._loop is not None, "start the loop thread first"
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(timeout_s)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise

    def call_soon(self, function: Callable[..., object], *args: object) -> bool:
        if self._loop is None:
            return False
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:  # The loop is closed; there is no way to ask without a race.
            return False
        return True

    def _run(self) -> None:
        loop = self._loop
        assert loop is not None, "made by start"
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            loop.run_until_complete(_cancel_all())
        finally:
            loop.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)  # Sockets that were aborted on the way are closed one turn later.
