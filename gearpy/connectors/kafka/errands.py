"""Questions to brokers and registries that may have to wait, on a thread of their own."""

import logging
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, TypeAlias

from gearpy.errors import GearpyError

_LOG: Final = logging.getLogger(__name__)

#: Returns what comes back; it may wait some seconds.
Errand: TypeAlias = Callable[[], Any]


class Errands:
    """Runs errands one after the other on a thread, so that the task need not wait for brokers."""

    def __init__(self, name: str) -> None:
        self._posted: SimpleQueue[Errand | None] = SimpleQueue()
        self._back: SimpleQueue[Any] = SimpleQueue()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def post(self, errand: Errand) -> None:
        self._posted.put(errand)

    def take(self) -> Any:
        return None if self._back.empty() else self._back.get()

    def close(self, last: Errand, timeout_s: float) -> None:
        """Run the errands that were posted and a last one; wait so long, then leave them to it."""
        self._posted.put(last)
        self._posted.put(None)
        self._thread.join(timeout_s)
        while (back := self.take()) is not None:
            if isinstance(back, Exception):
                # A question to brokers that failed since they are away matters to nobody any more.
                level = logging.WARNING if isinstance(back, GearpyError) else logging.INFO
                _LOG.log(level, "at the end: %s", back)

    def _run(self) -> None:
        while (errand := self._posted.get()) is not None:
            try:
                back = errand()
            except Exception as error:  # noqa: BLE001 - the task raises it, or tries again
                back = error
            if back is not None:
                self._back.put(back)
