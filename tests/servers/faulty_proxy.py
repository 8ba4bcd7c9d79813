"""A proxy of HTTP that fails as it is told: what a store looks like on a bad day."""

import http.client
import threading
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Literal, Self
from urllib.parse import urlsplit

#: What happens to a request: an answer 503 without the server; the connection is cut before the
#: server gets it, or after the server has done it, so that the answer is lost.
Fault = Literal["unavailable", "cut", "lost-answer"]
_HOP: Final = frozenset({"connection", "transfer-encoding", "content-length", "date", "server"})
_TIMEOUT_S: Final = 60


class FaultyProxy:
    """Passes requests on to a server, but for those that meet a fault."""

    def __init__(self, endpoint: str) -> None:
        target = urlsplit(endpoint).netloc
        self._faults: deque[tuple[Fault, Callable[[str, str], bool]]] = deque()
        self._lock = threading.Lock()
        self.met: list[tuple[Fault, str, str]] = []  #: Faults that were met: with method and path.
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass_on(self) -> None:
                proxy.pass_on(self, target)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def fail(
        self, fault: Fault, *, times: int = 1, at: Callable[[str, str], bool] = lambda *_: True
    ) -> None:
        """Let some of the next requests meet a fault.

        Args:
            at: tells by method and path whether a request may meet it.
        """
        with self._lock:
            self._faults.extend([(fault, at)] * times)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def pass_on(self, request: BaseHTTPRequestHandler, target: str) -> None:
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        fault = self._fault(request.command, request.path)
        if fault == "unavailable":
            request.send_response(503)
            request.send_header("content-length", "0")
            request.end_headers()
            return
        if fault == "cut":
            request.close_connection = True
            return
        status, headers, content = _asked(request, target, body)
        if fault == "lost-answer":
            request.close_connection = True
            return
        request.send_response(status)
        length = headers.pop("content-length", str(len(content)))
        for name, value in (*headers.items(), ("content-length", length)):
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(content)

    def _fault(self, method: str, path: str) -> Fault | None:
        with self._lock:
            for each in self._faults:
                fault, may_meet = each
                if may_meet(method, path):
                    self._faults.remove(each)
                    self.met.append((fault, method, path))
                    return fault
        return None


def _asked(
    request: BaseHTTPRequestHandler, target: str, body: bytes
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(target, timeout=_TIMEOUT_S)
    try:
        connection.request(request.command, request.path, body, dict(request.headers.items()))
        answer = connection.getresponse()
        content = answer.read()
        kept = {
            name.lower(): value
            for name, value in answer.getheaders()
            if name.lower() not in _HOP or (name.lower() == "content-length" and not content)
        }
        return answer.status, kept, content
    finally:
        connection.close()
