"""A schema registry that fails as it is told, for tests."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import BaseRequestHandler, TCPServer
from threading import Thread
from typing import Any, Self

from gearpy.connectors.kafka.registry import SchemaRegistry

#: Of user and password: ann, secret.
_LOGIN = "Basic YW5uOnNlY3JldA=="


class FakeRegistry:
    def __init__(
        self, port: int = 0, answers: Iterable[int] = (), schemas: Iterable[dict[str, Any]] = ()
    ) -> None:
        self.answers = list(answers)
        self.schemas = list(schemas)
        handler = type("Handler", (_Handler,), {"fake": self})
        self._server = HTTPServer(("127.0.0.1", port), handler)
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def client(self) -> SchemaRegistry:
        return self.client_at(self._server.server_port)

    @staticmethod
    def client_at(port: int) -> SchemaRegistry:
        return SchemaRegistry(f"http://127.0.0.1:{port}", user="ann", password="secret")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    fake: FakeRegistry

    def do_GET(self) -> None:
        number = int(self.path.rsplit("/", 1)[1])
        if self._fails():
            return
        if number > len(self.fake.schemas):
            self._answer(404, {"error_code": 40403, "message": "Schema not found"})
        else:
            self._answer(200, self.fake.schemas[number - 1])

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != _LOGIN:
            self._answer(401, {"message": "Unauthorized"})
        elif not self._fails():
            self.fake.schemas.append(body)
            self._answer(200, {"id": len(self.fake.schemas)})

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _fails(self) -> bool:
        if self.fake.answers:
            self._answer(self.fake.answers.pop(0), {"message": "no such luck"})
            return True
        return False

    def _answer(self, status: int, body: Any) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())


@contextmanager
def server_that_says(answer: bytes) -> Iterator[str]:
    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65_536)
            self.request.sendall(answer)

    with TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
