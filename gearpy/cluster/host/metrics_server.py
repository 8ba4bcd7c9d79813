"""The HTTP server of a page of metrics. Only a process that shows one imports this."""

import logging
import socket
import ssl
from collections.abc import Callable, Iterable
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import make_wsgi_app

from gearpy.errors import GearpyError
from gearpy.metrics.prometheus import registry_of
from gearpy.metrics.samples import ClusterSample

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication

_log = logging.getLogger(__name__)

#: Tells whether somebody may look, by the header ``Authorization``; "" is none.
Allows: TypeAlias = Callable[[str], bool]

_IDLE_S: Final = 30
_TEXT: Final = [("Content-Type", "text/plain; charset=utf-8")]
_UNKNOWN: Final = "a token is needed: send the header Authorization: Bearer TOKEN"


class _Handler(WSGIRequestHandler):
    """Answers one connection, and logs nothing."""

    timeout = _IDLE_S

    def log_message(self, *_: Any) -> None:
        pass


class MetricsServer(ThreadingMixIn, WSGIServer):
    """Serves the page; each request on a thread of its own."""

    daemon_threads = True

    def __init__(
        self,
        host: str,
        port: int,
        take: Callable[[], ClusterSample],
        allows: Allows | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.address_family, _, _, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        super().__init__((str(place[0]), int(place[1])), _Handler)
        if tls is not None:  # Hands are shaken by the thread of a request: nobody holds up others.
            self.socket = tls.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )
        page: WSGIApplication = make_wsgi_app(registry_of(take))

        def answer(environ: dict[str, Any], start_response: "StartResponse") -> Iterable[bytes]:
            try:
                if allows is None or allows(environ.get("HTTP_AUTHORIZATION", "")):
                    return page(environ, start_response)
            except GearpyError as error:
                start_response("503 Service Unavailable", _TEXT)
                return [f"{error}\n".encode()]
            start_response("401 Unauthorized", [*_TEXT, ("WWW-Authenticate", "Bearer")])
            return [f"{_UNKNOWN}\n".encode()]

        self.set_app(answer)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.info("a request of %s for metrics failed", client_address, exc_info=True)

    def server_bind(self) -> None:
        """Bind without asking for the name of this host, which may take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()
