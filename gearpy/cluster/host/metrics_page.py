"""The page of metrics of a process, which Prometheus reads by HTTP."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from gearpy.config.schema import Config
from gearpy.errors import ConfigError
from gearpy.metrics.samples import ClusterSample
from gearpy.transport.security.tls import page_context

if TYPE_CHECKING:
    from gearpy.cluster.host.metrics_server import Allows

_LOOPBACK: Final = "127.0.0.1"
_PORT_MAX: Final = 65_535


@contextmanager
def metrics_page(
    place: str,
    take: Callable[[], ClusterSample],
    *,
    ports: int = 1,
    allows: "Allows | None" = None,
    config: Config | None = None,
) -> Iterator[str]:
    """Serve the page as long as the context lasts; give its URL."""
    host, _, text = place.rpartition(":")
    if not (text.isascii() and text.isdigit() and int(text) <= _PORT_MAX):
        raise ConfigError(f"metrics at {place!r}: give PORT, or HOST:PORT, such as 9400")
    host, port = host.removeprefix("[").removesuffix("]") or _LOOPBACK, int(text)
    has_tls = config is not None and config.transport.tls == "on"
    tls = page_context(config.transport.tls_folder) if config and has_tls else None
    from gearpy.cluster.host.metrics_server import (  # noqa: PLC0415 - only who is asked loads it
        MetricsServer,
    )

    some = range(port, min(port + ports, _PORT_MAX + 1))
    for each in some:
        try:
            server = MetricsServer(host, each, take, allows, tls)
            break
        except OSError as error:
            failed = error
    else:
        where = f"{host}:{some[0]}" + (f" to {some[-1]}" if len(some) > 1 else "")
        raise ConfigError(
            f"metrics at {where}: cannot listen there: {failed.strerror}: give another port, or 0"
        ) from failed
    thread = threading.Thread(target=server.serve_forever, name="gearpy-metrics", daemon=True)
    thread.start()
    shown = f"[{host}]" if ":" in host else host
    try:
        yield f"http{'s' if tls else ''}://{shown}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
