"""A TCP relay that a test can cut, hold up and make silent."""

import contextlib
import random
import socket
import threading
from collections.abc import Callable

from gearpy.transport.api import split_address

__all__ = ["Relay"]


class Relay:
    """Carries bytes between whoever connects and one address, until told otherwise.

    ``cut_after`` draws for each direction of each connection after how many bytes it is cut;
    None: never.
    """

    def __init__(self, target: str, cut_after: Callable[[], int | None] = lambda: None) -> None:
        self.cuts = 0
        self._target = split_address(target)
        self._cut_after = cut_after
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._flows = threading.Event()
        self._flows.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    @classmethod
    def cutting(cls, target: str, rng: random.Random, *, cuts: int, bytes_max: int) -> "Relay":
        """Return a relay that cuts this many times at random places."""
        limits = [rng.randrange(1, bytes_max) for _ in range(cuts)]
        return cls(target, lambda: limits.pop() if limits else None)

    def hold(self) -> None:
        """Carry nothing until `resume`; connections stay."""
        self._flows.clear()

    def resume(self) -> None:
        """Go on."""
        self._flows.set()

    def cut(self) -> None:
        """Reset all connections."""
        with self._lock:
            sockets, self._sockets = self._sockets, []
        for sock in sockets:
            _close(sock)

    def stop(self) -> None:
        """Accept nothing more and cut all."""
        _close(self._listener)
        self.resume()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection(self._target)
                except OSError:
                    _close(near)
                    continue
                with self._lock:
                    self._sockets += [near, far]
                for source, sink in ((near, far), (far, near)):
                    limit = self._cut_after()
                    threading.Thread(
                        target=self._pump, args=(source, sink, limit), daemon=True
                    ).start()

    def _pump(self, source: socket.socket, sink: socket.socket, limit: int | None) -> None:
        carried = 0
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                self._flows.wait()
                if limit is not None and carried + len(data) >= limit:
                    sink.sendall(data[: limit - carried])
                    self.cuts += 1
                    break
                sink.sendall(data)
                carried += len(data)
        _close(source)
        _close(sink)


def _close(sock: socket.socket) -> None:
    """Close a socket under the thread that waits at it."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
