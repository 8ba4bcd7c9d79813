"""Masters: whichever master answers, over a network that may fail."""

import logging
import time
from collections.abc import Sequence
from typing import Any, Final

from gearpy.errors import (
    AskTimeout,
    AuthenticationFailed,
    ConfigError,
    ConnectionLost,
    ProtocolError,
)
from gearpy.transport.api import TransportLimits
from gearpy.transport.control.client import ControlClient
from gearpy.transport.security.credentials import Shown

__all__ = ["Masters", "the_only"]

_log = logging.getLogger(__name__)
_AGAIN_S: Final = 0.2


def the_only(masters: Sequence[str]) -> str:
    """Return the address of the master.

    Raises:
        ConfigError: several are named. What one of them knows the others do not.
    """
    if len(masters) == 1:
        return masters[0]
    raise ConfigError(
        f"cluster.masters is {', '.join(masters)}: name one master. Several do not share what they "
        "know, so that whoever changes from one to the other finds another cluster; a master that "
        "is started again over its master.folder goes on where it was"
    )


class Masters:
    """Asks one master after the other, again and again: a broken connection costs only time.

    For questions that may be asked twice.

    Runs on: any thread; `ask` blocks.

    Args:
        addresses: of all masters, ``host:port``.
        shown: in whose name to ask.
        limits: of the connections.
        timeout_s: how long a master may take to answer.
        patience_s: for how long to ask again.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        shown: Shown,
        limits: TransportLimits,
        *,
        timeout_s: float,
        patience_s: float,
    ) -> None:
        self._addresses = addresses
        self._shown = shown
        self._limits = limits
        self._timeout_s, self._patience_s = timeout_s, patience_s

    def ask(self, message: Any) -> Any:
        """Return the first answer of a master.

        Raises:
            AuthenticationFailed: the cluster has another secret.
            ConnectionLost, AskTimeout, ProtocolError: nobody has answered for too long.
            GearpyError: what the master raised.
        """
        until_s = time.monotonic() + self._patience_s
        while True:
            for address in self._addresses:
                try:
                    with ControlClient(address, self._shown, self._limits) as client:
                        return client.ask(message, self._timeout_s)
                except AuthenticationFailed:
                    raise
                except (ConnectionLost, AskTimeout, ProtocolError) as error:
                    if time.monotonic() >= until_s:
                        raise
                    _log.warning("no answer of the master at %s, asking again: %s", address, error)
            time.sleep(_AGAIN_S)
