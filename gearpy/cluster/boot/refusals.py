"""The watch for masters that refuse this process: it would look for them for ever."""

import threading
from collections.abc import Callable, Sequence
from typing import Final

from gearpy.cluster.net.limits import transport_limits
from gearpy.config.schema import Config
from gearpy.errors import AuthenticationFailed, GearpyError
from gearpy.messages.client import GetCluster
from gearpy.transport.letters.client import ControlClient
from gearpy.transport.security.credentials import Credentials

_ASK_AGAIN_S: Final = 5.0


class RefusalWatch:
    """Asks masters, while a process finds none that leads, whether they refuse it.

    Runs on: a thread of its own, from `begin` to `end`.

    Args:
        on_refused: is told once that the cluster has another secret.
        enough: so many must refuse it before that is told.
        on_refusal: is told of each master that refuses it, once, while these are not enough.
        is_over: tells whether a leader was found by now.
    """

    def __init__(
        self,
        config: Config,
        credentials: Credentials,
        masters: Sequence[str],
        *,
        on_refused: Callable[[AuthenticationFailed], object],
        enough: int = 1,
        on_refusal: Callable[[AuthenticationFailed], object] = lambda _: None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._config, self._credentials, self._masters = config, credentials, masters
        self._on_refused, self._enough = on_refused, enough
        self._on_refusal, self._is_over = on_refusal, is_over
        self._refusing: set[str] = set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gearpy-refusals", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._end.set()

    def _watch(self) -> None:
        while not self._end.is_set() and not self._is_over():
            for address in self._masters:
                try:
                    limits = transport_limits(self._config)
                    with ControlClient(address, self._credentials, limits) as client:
                        client.ask(GetCluster(), self._config.masterclient.timeout_s)
                    self._refusing.discard(address)
                except AuthenticationFailed as error:
                    if self._is_enough(address, error):
                        self._on_refused(error)
                        return
                except GearpyError:  # It is not there, or has not yet begun.
                    continue
            self._end.wait(_ASK_AGAIN_S)

    def _is_enough(self, address: str, error: AuthenticationFailed) -> bool:
        is_new = address not in self._refusing
        self._refusing.add(address)
        if len(self._refusing) >= self._enough:
            return True
        if is_new:
            self._on_refusal(error)
        return False
