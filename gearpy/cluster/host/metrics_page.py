"""The page of metrics of a process, which Prometheus reads by HTTP."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from gearpy.errors import ConfigError
from gearpy.metrics.samples import ClusterSample

_LOOPBACK: Final = "127.0.0.1"
_PORT_MAX: Final = 65_535


@contextmanager
def metrics_page(place: str, take: Callable[[], ClusterSample]) -> Iterator[str]:
    """Serve the page as long as the context lasts; give its URL.

    Args:
        place: ``PORT`` on this machine alone, or ``HOST:PORT``; port 0 lets the system choose. Who
            reaches it can read it: it asks for no token.
        take: measures; called for each look at the page, on a thread of the server.

    Raises:
        ConfigError: ``place`` is not understood, or in use.
    """
    from prometheus_client import start_http_server  # noqa: PLC0415 - only who is asked loads it

    from gearpy.metrics.prometheus import registry_of  # noqa: PLC0415 - the same

    host, port = _place_of(place)
    try:
        server, thread = start_http_server(port, addr=host, registry=registry_of(take))
    except OSError as error:
        raise ConfigError(
            f"metrics at {place}: cannot listen there: {error.strerror}: give another port, or 0"
        ) from error
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _place_of(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) <= _PORT_MAX):
        raise ConfigError(f"metrics at {text!r}: give PORT, or HOST:PORT, such as 9400")
    return host.removeprefix("[").removesuffix("]") or _LOOPBACK, int(port)
