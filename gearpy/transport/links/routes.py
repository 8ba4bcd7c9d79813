"""Tables of tasks: handlers of local tasks, addresses of the others; transports that use them."""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

from gearpy.errors import CannotTravel
from gearpy.ids import TaskId
from gearpy.messages.data import LinkMessage
from gearpy.transport.api import LinkHandler

#: A handler and the messages for it.
Delivery: TypeAlias = tuple[LinkHandler, list[LinkMessage]]
#: Messages by the address of the transport they belong to.
Elsewhere: TypeAlias = dict[str | None, list[LinkMessage]]

_log = logging.getLogger(__name__)
_LOGGED_MAX: Final = 1000  # Targets; further ones are only counted.


class Routes:
    """The tables of one transport. Reads take no lock: tables are replaced, not changed.

    Runs on: any thread.
    """

    def __init__(self) -> None:
        self._table_lock = threading.Lock()
        self._handlers: dict[TaskId, LinkHandler] = {}
        self._addresses: dict[TaskId, str] = {}
        self._logged: set[TaskId] = set()

    def register(self, task: TaskId, handler: LinkHandler) -> None:
        with self._table_lock:
            self._handlers = {**self._handlers, task: handler}

    def unregister(self, task: TaskId) -> None:
        with self._table_lock:
            self._handlers = {t: h for t, h in self._handlers.items() if t != task}

    def locate(self, routes: Mapping[TaskId, str]) -> None:
        with self._table_lock:
            self._addresses = {**self._addresses, **routes}

    def split(self, messages: Sequence[LinkMessage]) -> tuple[list[Delivery], Elsewhere]:
        """Return messages for tasks that run here with their handlers, and the others by address.

        The address is None where it is not known.
        """
        handlers, addresses = self._handlers, self._addresses
        here: dict[TaskId, Delivery] = {}
        elsewhere: Elsewhere = {}
        for message in messages:
            target = message.target
            delivery = here.get(target)
            if delivery is not None:
                delivery[1].append(message)
            elif target in handlers:
                here[target] = (handlers[target], [message])
            else:
                elsewhere.setdefault(addresses.get(target), []).append(message)
        return list(here.values()), elsewhere

    def log_unknown(self, messages: Sequence[LinkMessage]) -> None:
        for message in messages:
            target = message.target
            if target not in self._logged and len(self._logged) < _LOGGED_MAX:
                self._logged.add(target)
                _log.warning("messages for task %s dropped: it does not run here", target)


class RoutedTransport(Routes, ABC):
    """A `Transport` that looks up each target in its tables. Runs on: any thread."""

    def __init__(self) -> None:
        super().__init__()

    @property
    @abstractmethod
    def address(self) -> str:
        """The address where peers reach this transport."""

    def send(self, messages: Sequence[LinkMessage]) -> None:
        """Hand messages to handlers, on this thread, or to the peers of their targets.

        Raises:
            CannotTravel: a value in a message for another process cannot travel; the error has this
                message, and all others that were not sent.
        """
        here, elsewhere = self.split(messages)
        for handler, batch in here:
            handler(batch)
        others = iter(elsewhere.items())
        for address, batch in others:
            if address is None or address == self.address:
                self.log_unknown(batch)
                continue
            try:
                self._send_to(address, batch)
            except CannotTravel as error:
                error.unsent = [*error.unsent, *chain.from_iterable(rest for _, rest in others)]
                raise

    @abstractmethod
    def _send_to(self, address: str, messages: list[LinkMessage]) -> None:
        """Send messages to the transport at another address."""
